/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHECKSUM_H
#define PB_CHECKSUM_H
/* Compares an input with the checksum file that its sender delivered with it: MD5, SHA-256 or
 * SHA-512, in the lines of md5sum and similar programs ("<hex> name") or of BSD ("MD5 (name) =
 * <hex>"), or the digits alone. One thread. */
#include "config/base/err.h"

#include <stdint.h>

struct pb_checksum_job {
    const char *file;  /* path of the file with the checksums; "" = missing */
    const char *input; /* a file, or a folder: then each file that has a line is compared */
    const char *name;  /* delivered name of the input */
    /* Called repeatedly with the number of bytes of the input read since. */
    void (*alive)(void *user, uint64_t bytes);
    void *user;
};

/* Returns 0, or *err: input.checksum, or the error of reading. */
int pb_checksum_verify(const struct pb_checksum_job *job, struct pb_err *err);
#endif
