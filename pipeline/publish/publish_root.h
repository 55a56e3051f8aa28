/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_ROOT_H
#define PB_PUBLISH_ROOT_H
/* Token of a directory of products: the file .pushbroom-root in it has one line with an id.
 * Services that share products on a network file system know that id. If the file system is not
 * mounted, the directory below its mount point has no token, and nothing is published there. Other
 * directories of products have no token.
 *
 * output.root is the error of a directory that is absent, has no token, or one with another id.
 * Thread: any. */
#include "config/base/err.h"

#define PB_PUBLISH_ROOT_FILE  ".pushbroom-root"
#define PB_PUBLISH_ROOT_BYTES 64 /* size of an id with its NUL */

/* Opens the directory, and checks the token through its descriptor, which is returned; or a
 * negative errno and *err. */
int pb_publish_root_open(const char *products, const char *id, struct pb_err *err);
/* Returns 0 if that is possible now. A later open may find another directory there. */
int pb_publish_root_look(const char *products, const char *id, struct pb_err *err);
/* Makes the token of that id unless the directory has it, and syncs it. A token of another id is
 * not changed: output.root. */
int pb_publish_root_make(const char *products, const char *id, struct pb_err *err);
#endif
