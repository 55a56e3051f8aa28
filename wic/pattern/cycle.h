/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_CYCLE_H
#define WIC_CYCLE_H
/* What the built-in patterns and those of wic/patterns have in common: party 0 exchanges with each
 * of the others in turns; one cycle is a turn with each, n0 chunks down (from D0) and then n1 up.
 * For the source of a pattern: everything is static, so that a plugin still links to nothing. */
#include "wic/pattern/pattern.h"

#include <errno.h>
#include <stdlib.h>

struct wic_cycle {
    uint32_t parties;
    uint32_t turn; /* of the cycle: 2 * (peer - 1), and 1 more upward */
    uint64_t chunk_bytes;
    uint64_t portion[2]; /* chunks of a turn down and up, at most */
    uint64_t cycles;     /* begun */
    struct {
        uint64_t left, moved;
        int is_open;           /* left is then what the pattern may still ask for */
    } way[2][WIC_PARTIES_MAX]; /* down and up, by peer */
};

/* -EINVAL: a way that is not between D0 and another party has chunks. */
static inline int wic_cycle_init(struct wic_cycle *cycle, const struct wic_pattern_params *params)
{
    *cycle = (struct wic_cycle){.parties = params->parties, .chunk_bytes = params->chunk_bytes};
    for (uint32_t from = 0; from < params->parties; from++) {
        for (uint32_t to = 0; to < params->parties; to++) {
            uint64_t chunks = params->chunks[from][to];
            if (chunks != 0 && from != 0 && to != 0) {
                return -EINVAL;
            }
            int up = from != 0;
            if (from != to && (from == 0 || to == 0)) {
                cycle->way[up][up ? from : to].is_open = chunks == WIC_OPEN;
                cycle->way[up][up ? from : to].left =
                    chunks == WIC_OPEN ? WIC_PATTERN_CHUNKS_MAX : chunks;
            }
        }
    }
    return 0;
}

static inline int wic_cycle_is_open(const struct wic_cycle *cycle)
{
    for (uint32_t peer = 1; peer < cycle->parties; peer++) {
        if (cycle->way[0][peer].is_open || cycle->way[1][peer].is_open) {
            return 1;
        }
    }
    return 0;
}

static inline int wic_cycle_is_over(const struct wic_cycle *cycle)
{
    uint64_t left = 0;
    for (uint32_t peer = 1; peer < cycle->parties; peer++) {
        left |= cycle->way[0][peer].left | cycle->way[1][peer].left;
    }
    return left == 0;
}

/* This way with the peer has ended. The other one ends with it, if it is open: upward after the
 * turn that answers the last chunks down. */
static inline void wic_cycle_end(struct wic_cycle *cycle, uint32_t peer, int up, uint64_t count)
{
    cycle->way[up][peer].left = 0;
    if (cycle->way[!up][peer].is_open) {
        cycle->way[!up][peer].left = !up && count > 0 ? cycle->portion[1] : 0;
    }
}

/* Fills in the step with the peer, `most` chunks or what is left. 0: nothing is left. */
static inline int wic_cycle_step(struct wic_cycle *cycle, uint32_t peer, int up, uint64_t most,
                                 struct wic_step *out_step)
{
    uint64_t left = cycle->way[up][peer].left;
    uint64_t count = left < most ? left : most;
    if (count == 0) {
        return 0;
    }
    out_step->from = (uint16_t)(up ? peer : 0);
    out_step->to = (uint16_t)(up ? 0 : peer);
    out_step->flags = cycle->way[up][peer].is_open ? WIC_STEP_TOLD : 0;
    out_step->first = cycle->way[up][peer].moved;
    out_step->count = count;
    out_step->chunk_bytes = cycle->chunk_bytes;
    cycle->way[up][peer].moved += count;
    cycle->way[up][peer].left -= count;
    if (cycle->way[up][peer].left == 0) {
        wic_cycle_end(cycle, peer, up, count);
    }
    return 1;
}

/* `next` of a pattern: the turns of the cycle, and as many cycles as there are chunks for, at most
 * `limit` (0: any number). */
static inline int wic_cycle_next(struct wic_cycle *cycle, uint64_t limit, struct wic_step *out_step)
{
    while (!wic_cycle_is_over(cycle)) {
        if (cycle->turn == 0 && limit > 0 && cycle->cycles == limit) {
            return 0;
        }
        uint32_t peer = 1 + cycle->turn / 2;
        int up = cycle->turn % 2 != 0;
        cycle->cycles += cycle->turn == 0;
        cycle->turn = (cycle->turn + 1) % (2 * (cycle->parties - 1));
        if (wic_cycle_step(cycle, peer, up, cycle->portion[up], out_step)) {
            return 1;
        }
    }
    return 0;
}

/* `told` of a pattern. */
static inline void wic_cycle_told(struct wic_cycle *cycle, const struct wic_step *step,
                                  const struct wic_outcome *outcome)
{
    int up = step->from != 0;
    uint32_t peer = up ? step->from : step->to;
    if (outcome->count < step->count) {
        cycle->way[up][peer].moved -= step->count - outcome->count;
        wic_cycle_end(cycle, peer, up, outcome->count);
    }
}

#endif
