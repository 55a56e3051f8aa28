/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_PARENTS_H
#define PB_PUBLISH_PARENTS_H
/* The directories between products/ and the place of a scene, which scenes share. No link is
 * followed. Thread: any. */
#include <stdbool.h>

/* Opens products/<parents> ("a/b", "" = products itself); the caller's to close. make: creates what
 * is missing, with permissions `mode` (0: 0755 without the umask's bits), each synced into the
 * directory above it before the next. Negative errno; -ENOENT: missing, and not to be made. */
int pb_publish_parents(int products_fd, const char *parents, bool make, unsigned mode);
#endif
