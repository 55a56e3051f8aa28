/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_PARENTS_H
#define PB_PUBLISH_PARENTS_H
/* Directories between products/ and the place of a scene, which scenes share. Links are not
 * followed. Thread: any. */
#include <stdbool.h>

/* Opens products/<parents> ("a/b", "" = products itself); the caller's to close. make: creates
 * missing directories, with permissions `mode` (0: 0755 without the umask's bits), each synced
 * into the directory above it before the next. Negative errno; -ENOENT: missing, and make is
 * false. */
int pb_publish_parents(int products_fd, const char *parents, bool make, unsigned mode);
#endif
