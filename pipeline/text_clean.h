/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEXT_CLEAN_H
#define PB_TEXT_CLEAN_H
/* Strings out of foreign files, made fit for messages, JSON and tags: control characters (C0, DEL,
 * C1 and the line separators U+2028 and U+2029) become spaces, every byte that is not part of valid
 * UTF-8 becomes '?', spaces at both ends go, and what does not fit is cut between two characters.
 * Pure: no allocation, any thread. */
#include <stddef.h>

/* text may be NULL (gives ""). out_bytes > 0 counts the terminating NUL. Returns strlen(out). */
size_t pb_text_clean(const char *text, char *out, size_t out_bytes);
#endif
