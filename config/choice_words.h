/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHOICE_WORDS_H
#define PB_CHOICE_WORDS_H
/* What people call the choices of a key in other words (pb_key.called): "landsat7 etm=landsat-etm|
 * landsat8=landsat-oli or landsat-oli-sr". Upper and lower case, '-', '_', '+' and spaces are
 * alike. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

/* What to write in place of a word: its length, with *out where it begins in `called`; 0: nobody
 * calls a choice that. called: NULL is fine. */
size_t pb_choice_called(const char *called, const char *word, const char **out);
#endif
