/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_RESIDENT_H
#define PB_EMULATE_RESIDENT_H
/* The applications of wic/apps in their smallest size by the frame of resident kernels: each thread
 * of each block is a thread of the host, like the host's loop. */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct emulate_resident {
    uint32_t blocks, threads; /* threads of a block */
    bool sliced;              /* looks for chunks between slices of independent work */
    uint32_t slots;           /* least places in a ring, a power of two */
    uint32_t rounds;
    int fault; /* EMULATE_EARLY_READ and so on (emulate_apps.h); 0: none */
    uint32_t round, step;
    uint32_t late; /* the host gives up at this step of each round; 0: it does not */
};

/* Runs the rounds; returns the number of those that are right. *met: the fault was in one of them.
 * *steps: of the last round. why: the first mistake. */
unsigned emulate_resident_rounds(unsigned app, const struct emulate_resident *how, bool *met,
                                 uint32_t *steps, char why[200]);

#ifdef __cplusplus
}
#endif
#endif
