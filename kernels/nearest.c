/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Optimal string alignment distance over three rows. Close means: at most one edit and one more for
 * every four letters, and something of the word must be left. */
#include "kernels/nearest.h"

#include <string.h>

#define WORD_MAX 63

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static unsigned min_u(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned rows[3][WORD_MAX + 1];
    unsigned *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= b_len; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            const char x = lower(a[i - 1]), y = lower(b[j - 1]);
            unsigned d = min_u(last[j] + 1, now[j - 1] + 1);

            d = min_u(d, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
                d = min_u(d, before[j - 2] + 1);
            now[j] = d;
        }
        unsigned *const spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[b_len];
}

/* Letters that differ in case only, where the words lie side by side. */
static unsigned case_changes(const char *a, const char *b)
{
    unsigned n = 0;

    for (; *a && *b; a++, b++)
        n += *a != *b && lower(*a) == lower(*b);
    return n;
}

/* Of words at one distance: the same letters in another order first, then a longer beginning. */
static unsigned likeness(const char *a, const char *b)
{
    int letters[256] = {0};
    unsigned same = 1, beginning = 0;

    for (const char *c = a; *c; c++)
        letters[(unsigned char)lower(*c)]++;
    for (const char *c = b; *c; c++)
        letters[(unsigned char)lower(*c)]--;
    for (int i = 0; i < 256; i++)
        same = same && letters[i] == 0;
    while (a[beginning] && lower(a[beginning]) == lower(b[beginning]))
        beginning++;
    return same * WORD_MAX + beginning;
}

const char *pb_nearest(const char *word, const char *const *words, size_t n)
{
    const size_t len = strlen(word);
    const char *best = NULL;
    unsigned best_score = 0;

    if (len == 0 || len > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const size_t other = words[i] ? strlen(words[i]) : 0;

        if (other == 0 || other > WORD_MAX)
            continue;
        const unsigned d = distance(word, len, words[i], other);
        if (d > 1 + len / 4 || d >= (len > other ? len : other))
            continue;
        const unsigned score = d * (WORD_MAX + 1) + case_changes(word, words[i]);
        if (!best || score < best_score ||
            (score == best_score && likeness(word, words[i]) > likeness(word, best))) {
            best = words[i];
            best_score = score;
        }
    }
    return best;
}
