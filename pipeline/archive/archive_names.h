/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ARCHIVE_NAMES_H
#define PB_ARCHIVE_NAMES_H
/* What the names of an archive's members may be. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

/* The name of a member, without "./", double slashes and slashes at its end, into out; false and
 * what is wrong with it: it is empty, absolute, leads out of the archive, is too long or has more
 * than max_depth components. */
bool pb_archive_member_name(const char *name, int max_depth, char *out, size_t bytes,
                            const char **out_why);
#endif
