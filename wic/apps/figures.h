/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_APP_FIGURES_H
#define WIC_APP_FIGURES_H
/* Figures of an application's row, from measured times (seconds, or any one unit). The oracle is
 * the time of the same kernels when all data is there before they start. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Part of the time in which the consumer has to wait for data, or pays for waiting: 0 .. 1. */
static inline double app_exposed_wait(double total, double oracle)
{
    return total > oracle ? (total - oracle) / total : 0.0;
}

/* Part of the producer's time (the sum over all chunks) that the consumer does not notice. 1: all
 * of it; below 0: moving the data and waiting cost more than making it. NAN without a producer. */
static inline double app_overlap(double total, double oracle, double producer)
{
    return producer > 0.0 ? 1.0 - (total > oracle ? total - oracle : 0.0) / producer : NAN;
}

/* Stamps of one block in one step, in ns of one clock. */
struct app_stamps {
    uint64_t begin;           /* start of the step */
    uint64_t independent_end; /* C1 is done */
    uint64_t ready;           /* the producer has handed over the last chunk */
    uint64_t in_hand;         /* the block can read the last chunk */
    uint64_t dependent_end;   /* C2 is done */
};

/* Overhead of the consumer: the part of all steps in which its data was ready and C1 was done, but
 * the block could not read the data. 0 for no stamps. */
static inline double app_overhead(const struct app_stamps *stamps, size_t n)
{
    double lost = 0.0, all = 0.0;
    for (size_t i = 0; i < n; i++) {
        const struct app_stamps *s = &stamps[i];
        const uint64_t possible = s->ready > s->independent_end ? s->ready : s->independent_end;
        lost += s->in_hand > possible ? (double)(s->in_hand - possible) : 0.0;
        all += s->dependent_end > s->begin ? (double)(s->dependent_end - s->begin) : 0.0;
    }
    return all > 0.0 ? lost / all : 0.0;
}

/* n > 0 positive ratios. */
static inline double app_geometric_mean(const double *ratio, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += log(ratio[i]);
    }
    return exp(sum / (double)n);
}

#define APP_HEADROOM_LEAST 0.05 /* part of the best rival's time; below, nothing to win */
#define APP_HEADROOM_HALF  0.5  /* part of the headroom that may be left */
#define APP_RIVAL_MOST     1.03 /* times the best rival, where there is nothing to win */

enum app_verdict {
    APP_TAKES_HEADROOM,     /* at least half of it */
    APP_MISSES_HEADROOM,    /* less than half of it */
    APP_NOTHING_TO_WIN,     /* and as fast as the best rival */
    APP_NOTHING_BUT_SLOWER, /* nothing to win, and slower than the best rival */
    APP_ORACLE_IS_BEATEN,   /* more than noise: the oracle or a check is wrong */
};

/* Part of the best rival's time that a strategy without any waiting would save. */
static inline double app_headroom(double oracle, double best)
{
    return best > oracle ? (best - oracle) / best : 0.0;
}

/* wic: time of the strategy that is judged; best: of its best rival; noise: relative spread of
 * times. */
static inline enum app_verdict app_judge(double wic, double oracle, double best, double noise)
{
    if (fmin(wic, best) < oracle * (1.0 - noise)) {
        return APP_ORACLE_IS_BEATEN;
    }
    if (app_headroom(oracle, best) >= APP_HEADROOM_LEAST) {
        return wic <= oracle + APP_HEADROOM_HALF * (best - oracle) ? APP_TAKES_HEADROOM
                                                                   : APP_MISSES_HEADROOM;
    }
    return wic <= APP_RIVAL_MOST * best ? APP_NOTHING_TO_WIN : APP_NOTHING_BUT_SLOWER;
}

/* Trials of several shapes of one thing: each twice, but only once if it is slower by more than a
 * factor. Then the fastest is used. All zero: no shape yet. */
#define APP_SHAPES_MOST 10
#define APP_TRIAL_HOPE  1.3
struct app_trials {
    size_t shapes, runs;           /* number of shapes; of trials that were made or left out */
    double least[APP_SHAPES_MOST]; /* shortest time, by shape */
};

static inline size_t app_trials_fastest(const struct app_trials *t)
{
    size_t best = 0;
    for (size_t i = 1; i < t->shapes && i < t->runs; i++) {
        best = t->least[i] < t->least[best] ? i : best;
    }
    return best;
}

/* True if app_trials_next() stays the same. */
static inline int app_trials_end(const struct app_trials *t)
{
    return t->shapes < 2 || t->runs >= 2 * t->shapes;
}

/* The shape of the next run. */
static inline size_t app_trials_next(struct app_trials *t)
{
    const size_t best = app_trials_fastest(t);
    while (t->runs >= t->shapes && !app_trials_end(t) &&
           t->least[t->runs % t->shapes] > APP_TRIAL_HOPE * t->least[best]) {
        t->runs++;
    }
    return app_trials_end(t) ? best : t->runs % t->shapes;
}

/* The time of a run of that shape. */
static inline void app_trials_add(struct app_trials *t, size_t shape, double time)
{
    t->least[shape] = t->runs < t->shapes || time < t->least[shape] ? time : t->least[shape];
    t->runs++;
}
#endif
