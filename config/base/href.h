/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HREF_H
#define PB_HREF_H
/* File names in URI references: all bytes but RFC 3986's unreserved characters are escaped. A text
 * that does not fit is cut between two characters. Pure: no allocation. Thread: any. */
#include <stddef.h>

/* Writes one part of a path; a '/' in it is escaped. bytes > 0 counts the terminating NUL. Returns
 * the length. */
size_t pb_href_part(const char *part, char *out, size_t bytes);
/* The same for a whole path, whose '/' remain. */
size_t pb_href_path(const char *path, char *out, size_t bytes);
#endif
