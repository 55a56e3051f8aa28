/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_APP_PAIR_FIGURES_H
#define WIC_APP_PAIR_FIGURES_H
/* The bar for two GPUs: the geometric mean of wic's gain over EffShare, GPS and FinePack, and each
 * row no slower than its best rival, unless there is nothing to win. */
#include "wic/apps/figures.h"

#include <stdbool.h>

#define PAIR_PAPER_RIVALS 3
#define PAIR_MEAN_LEAST   1.15
#define PAIR_CASES_MOST   64

/* An application of one size; times in seconds. */
struct pair_case {
    double wic, oracle, best;        /* best: of the fastest rival */
    double rival[PAIR_PAPER_RIVALS]; /* 0: not measured */
};

/* Geometric mean of the gains over one rival, or over all of them if `rival` is < 0; 0 if none was
 * measured. n: at most PAIR_CASES_MOST */
static inline double pair_mean(const struct pair_case *cases, size_t n, int rival)
{
    double gains[PAIR_CASES_MOST * PAIR_PAPER_RIVALS];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        for (int r = 0; r < PAIR_PAPER_RIVALS; r++) {
            if ((rival < 0 || rival == r) && cases[i].rival[r] > 0.0) {
                gains[count++] = cases[i].rival[r] / cases[i].wic;
            }
        }
    }
    return count > 0 ? app_geometric_mean(gains, count) : 0.0;
}

static inline bool pair_is_won(const struct pair_case *c)
{
    return c->wic <= c->best || app_headroom(c->oracle, c->best) < APP_HEADROOM_LEAST;
}

/* Every rival of every case was measured, and both parts of the bar are met. */
static inline bool pair_bar_is_met(const struct pair_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (int r = 0; r < PAIR_PAPER_RIVALS; r++) {
            if (cases[i].rival[r] <= 0.0) {
                return false;
            }
        }
        if (!pair_is_won(&cases[i])) {
            return false;
        }
    }
    return n > 0 && pair_mean(cases, n, -1) >= PAIR_MEAN_LEAST;
}
#endif
