/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_PAIR_H
#define PB_EMULATE_PAIR_H
/* The applications of wic/apps in their smallest size between two kernels (wic/apps/pair): each
 * thread of each block of both is a thread of the host. */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum emulate_send { /* pair_way_out */
                    EMULATE_IN_PLACE,
                    EMULATE_PUT_SIGNAL,
                    EMULATE_GPS,
                    EMULATE_FINEPACK,
                    EMULATE_EFFSHARE,
                    EMULATE_LETTERS,
};

struct emulate_pair {
    uint32_t blocks[2], threads; /* blocks by party, threads in a block */
    uint32_t places;             /* the least in a ring, a power of two */
    uint32_t rounds;
    int fault, receiver; /* EMULATE_EARLY_READ and so on (emulate_apps.h); 0: none */
    uint32_t step;
    int send;   /* how chunks are brought, EMULATE_IN_PLACE and so on */
    bool stops; /* the host stops each round at once */
    bool alone; /* then each party repeats the round alone; needs a place for each chunk */
};

/* NULL after the last one. */
const char *emulate_pair_app(unsigned app);

/* Runs the rounds; returns the number of those that are right. why: the first mistake. */
unsigned emulate_pair_rounds(unsigned app, const struct emulate_pair *how, char why[200]);

#ifdef __cplusplus
}
#endif
#endif
