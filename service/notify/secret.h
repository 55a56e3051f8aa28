/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SECRET_H
#define PB_SECRET_H
/* Secrets of the receivers. They are read from their file for each use, so that a file that is
 * replaced counts at once; no message has any part of one. Thread: any. */
#include "config/base/err.h"

#include <stddef.h>

#define PB_SECRET_BYTES 4096

struct pb_secret {
    char text[PB_SECRET_BYTES + 1]; /* without the line's end; NUL-terminated */
    size_t bytes;
};

/* name: an absolute path, or the name of a credential in $CREDENTIALS_DIRECTORY. A file that other
 * users may read is refused (notify.secret). 0, then wipe it; negative and *err. */
int pb_secret_read(const char *name, struct pb_secret *out, struct pb_err *err);
void pb_secret_wipe(struct pb_secret *secret);
#endif
