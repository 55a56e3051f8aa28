/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NEAREST_H
#define PB_NEAREST_H
/* "did you mean ...?": the known word that a typo most likely stands for. Any thread. */
#include <stddef.h>

/* The word of words[0..n) nearest to `word`: fewest letters inserted, dropped, changed or swapped,
 * upper and lower case being alike unless that decides a tie. NULL when none is close or word is
 * longer than 63 bytes. NULL entries are passed over. */
const char *pb_nearest(const char *word, const char *const *words, size_t n);
#endif
