/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/gate_answers.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { UNKNOWN, PASSES, IS_LEFT_OUT };

struct pb_gate_answers {
    pthread_mutex_t lock; /* protects the answers from `known` on, and aborted */
    pthread_cond_t more;
    _Atomic uint32_t known; /* stored after the answers before it */
    uint32_t tiles;
    bool aborted;
    uint8_t answer[];
};

struct pb_gate_answers *pb_gate_answers_create(uint32_t tiles)
{
    struct pb_gate_answers *a = calloc(1, sizeof *a + tiles);
    if (a == NULL)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->more, NULL);
    a->tiles = tiles;
    return a;
}

void pb_gate_answers_destroy(struct pb_gate_answers *a)
{
    if (a == NULL)
        return;
    pthread_cond_destroy(&a->more);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

int pb_gate_answers_put(struct pb_gate_answers *a, uint32_t tile, bool passes)
{
    int rc = -EPROTO;
    pthread_mutex_lock(&a->lock);
    if (tile < a->tiles && a->answer[tile] == UNKNOWN) {
        uint32_t known = atomic_load(&a->known);
        a->answer[tile] = passes ? PASSES : IS_LEFT_OUT;
        while (known < a->tiles && a->answer[known] != UNKNOWN)
            known++;
        atomic_store(&a->known, known);
        pthread_cond_broadcast(&a->more);
        rc = 0;
    }
    pthread_mutex_unlock(&a->lock);
    return rc;
}

uint32_t pb_gate_answers_known(const struct pb_gate_answers *a)
{
    return atomic_load(&a->known);
}

bool pb_gate_answers_passes(const struct pb_gate_answers *a, uint32_t tile)
{
    return a->answer[tile] == PASSES;
}

int pb_gate_answers_wait(struct pb_gate_answers *a, uint32_t tile)
{
    pthread_mutex_lock(&a->lock);
    while (!a->aborted && atomic_load(&a->known) <= tile)
        pthread_cond_wait(&a->more, &a->lock);
    const int rc = a->aborted ? -ECANCELED : 0;
    pthread_mutex_unlock(&a->lock);
    return rc;
}

void pb_gate_answers_abort(struct pb_gate_answers *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->aborted = true;
    pthread_cond_broadcast(&a->more);
    pthread_mutex_unlock(&a->lock);
}
