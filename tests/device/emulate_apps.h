/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_APPS_H
#define PB_EMULATE_APPS_H
/* The applications of wic/apps in their smallest size, by the strategy without a device. */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EMULATE_EARLY_READ = 1, EMULATE_LOST_LAST, EMULATE_STALE };

struct emulate_apps {
    uint32_t threads, pieces;
    bool parallel, backwards;
    uint32_t rounds;
    int fault, receiver; /* 0: no fault */
    uint32_t round, step;
};

/* NULL after the last one. */
const char *emulate_app(unsigned app);

/* Runs the rounds; returns the number of those that are right. *met: the fault was in one of them.
 * *steps: of the last round. why: the first mistake. */
unsigned emulate_rounds(unsigned app, const struct emulate_apps *how, bool *met, uint32_t *steps,
                        char why[200]);

#ifdef __cplusplus
}
#endif
#endif
