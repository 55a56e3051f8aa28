/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A ring of window + 1 slots, of which slot n % (window + 1) holds piece n. The number of the next
 * piece only wraps modulo 2^64; those of pieces are compared with its remainder. */
#include "service/ccsds/reorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pb_reorder_init(struct pb_reorder *reorder)
{
    const size_t slots = (size_t)reorder->window + 1;
    reorder->is_started = reorder->continues = false;
    reorder->next = reorder->seen = 0;
    reorder->n_held = 0;
    reorder->held_bytes = calloc(slots, sizeof *reorder->held_bytes);
    reorder->held = calloc(slots, reorder->most_bytes);
    if (reorder->held_bytes != NULL && reorder->held != NULL)
        return 0;
    pb_reorder_fini(reorder);
    return -ENOMEM;
}

void pb_reorder_fini(struct pb_reorder *reorder)
{
    free(reorder->held_bytes);
    free(reorder->held);
    reorder->held_bytes = NULL;
    reorder->held = NULL;
}

static size_t slot_of(const struct pb_reorder *reorder, uint64_t number)
{
    return (size_t)(number % ((uint64_t)reorder->window + 1));
}

/* Delivers the next piece, or counts it as lost (data NULL). */
static void step(struct pb_reorder *reorder, const uint8_t *data, size_t bytes)
{
    const bool continues = reorder->continues;
    reorder->next++;
    reorder->seen = reorder->seen << 1 | (data != NULL);
    reorder->continues = data != NULL;
    if (data != NULL)
        reorder->deliver(reorder->user, data, bytes, continues);
    else
        (*reorder->lost)++;
}

/* The same with the piece that is held, if it is. */
static void step_held(struct pb_reorder *reorder)
{
    const size_t slot = slot_of(reorder, reorder->next);
    const uint32_t bytes = reorder->held_bytes[slot];
    reorder->held_bytes[slot] = 0;
    reorder->n_held -= bytes > 0;
    step(reorder, bytes > 0 ? reorder->held + slot * reorder->most_bytes : NULL, bytes);
}

static void deliver_ready(struct pb_reorder *reorder)
{
    while (reorder->n_held > 0 && reorder->held_bytes[slot_of(reorder, reorder->next)] > 0)
        step_held(reorder);
}

void pb_reorder_flush(struct pb_reorder *reorder)
{
    while (reorder->n_held > 0)
        step_held(reorder);
}

/* Gives up what is missing until the piece `ahead` numbers after the next one is in the window.
 * Returns the distance that is left. */
static uint64_t advance(struct pb_reorder *reorder, uint64_t ahead)
{
    for (; ahead > reorder->window && reorder->n_held > 0; ahead--)
        step_held(reorder);
    if (ahead <= reorder->window)
        return ahead;
    const uint64_t n = ahead - reorder->window; /* nothing is held any more */
    *reorder->lost += n;
    reorder->next += n;
    reorder->seen = n < PB_REORDER_HISTORY ? reorder->seen << n : 0;
    reorder->continues = false;
    return reorder->window;
}

static void hold(struct pb_reorder *reorder, uint64_t ahead, const uint8_t *data, size_t bytes)
{
    const size_t slot = slot_of(reorder, reorder->next + ahead);
    if (reorder->held_bytes[slot] > 0) {
        (*reorder->duplicate)++;
        return;
    }
    memcpy(reorder->held + slot * reorder->most_bytes, data, bytes);
    reorder->held_bytes[slot] = (uint32_t)bytes;
    reorder->n_held++;
}

static void begin_at(struct pb_reorder *reorder, uint32_t number)
{
    reorder->is_started = true;
    reorder->next =
        number + 256ull * reorder->modulus; /* so that no number before it is negative */
    reorder->seen = 0;
    reorder->continues = false;
}

void pb_reorder_push(struct pb_reorder *reorder, uint32_t number, const uint8_t *data, size_t bytes)
{
    if (!reorder->is_started)
        begin_at(reorder, number);
    const uint32_t at = (uint32_t)(reorder->next % reorder->modulus);
    const uint32_t forward = (number + reorder->modulus - at) % reorder->modulus;
    const uint32_t back = reorder->modulus - forward;
    uint64_t ahead = forward;
    if (forward >= reorder->modulus / 2 && back <= PB_REORDER_HISTORY) {
        *((reorder->seen >> (back - 1) & 1) ? reorder->duplicate : reorder->late) += 1;
        return;
    }
    if (forward >= reorder->modulus / 2) {
        pb_reorder_flush(reorder);
        (*reorder->jumps)++;
        begin_at(reorder, number);
        ahead = 0;
    }
    ahead = advance(reorder, ahead);
    deliver_ready(reorder);
    ahead = (number + reorder->modulus - (uint32_t)(reorder->next % reorder->modulus)) %
            reorder->modulus;
    if (ahead > 0) {
        hold(reorder, ahead, data, bytes);
        return;
    }
    step(reorder, data, bytes);
    deliver_ready(reorder);
}
