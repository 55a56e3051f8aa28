/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_H
#define PB_PUBLISH_H
/* A directory of products that appears all at once: files are written into
 * <products>/.<scene>.<pid>-<n>.tmp, which is renamed to <products>/<scene> when everything is on
 * disk. An older <scene> is exchanged for the new one in the same step and then removed. A lock on
 * the temporary directory tells leftovers of dead processes from live ones. */
#include "config/err.h"

#include <stddef.h>

struct pb_publish;

/* Creates products (with parents) and the temporary directory. Strings are copied. A scene without
 * a name, with a leading dot or with a slash is refused: it would hide, or land elsewhere. */
int pb_publish_open(const char *products, const char *scene, struct pb_err *err,
                    struct pb_publish **out_publish);
const char *pb_publish_directory(const struct pb_publish *publish); /* where to write */
/* Makes it visible; *out_path (PATH_MAX bytes) gets the final directory. After it only close is
 * left. */
int pb_publish_commit(struct pb_publish *publish, struct pb_err *err, char *out_path);
/* Removes what was not committed. NULL is fine. */
void pb_publish_close(struct pb_publish *publish);
/* Removes temporary directories below products whose process is gone. Returns how many.
 * pb_publish_open does it too. */
int pb_publish_sweep(const char *products);
#endif
