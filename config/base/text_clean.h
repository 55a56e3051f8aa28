/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEXT_CLEAN_H
#define PB_TEXT_CLEAN_H
/* Cleans strings of foreign files for messages, JSON and tags: control characters (C0, DEL, C1, the
 * line separators U+2028 and U+2029, and the characters that change the direction of text, U+202A
 * to U+202E and U+2066 to U+2069) become spaces, every byte that is not part of valid UTF-8 becomes
 * '?', spaces at both ends are removed, and a text that is too long is cut between two characters.
 * Pure: no allocation, any thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* text may be NULL (gives ""). out_bytes > 0 counts the terminating NUL. Returns strlen(out). */
size_t pb_text_clean(const char *text, char *out, size_t out_bytes);
/* Bytes of the valid UTF-8 character at text and its number; 0 when there is none (a byte that does
 * not fit, an overlong form, a surrogate, a value past U+10FFFF). */
size_t pb_text_character(const char *text, uint32_t *out_code);
/* Whether it is one of the characters above, which control a terminal or hide the text after
 * them. */
bool pb_text_is_control(uint32_t code);
#endif
