/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ARCHIVE_NAMES_H
#define PB_ARCHIVE_NAMES_H
/* Rules for the names of an archive's members. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

/* Writes the name of a member, without "./", double slashes and trailing slashes, to out;
 * returns false with the reason: it is empty, absolute, leaves the archive, is too long or has
 * more than max_depth components. */
bool pb_archive_member_name(const char *name, int max_depth, char *out, size_t bytes,
                            const char **out_why);
#endif
