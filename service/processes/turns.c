/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/turns.h"

#include "config/compute_config.h"
#include "pipeline/device/device.h"

/* Tiles that are worth a core: a job of fewer has more work that one core does alone (opening,
 * planning, publishing) than work that further cores could share. */
#define TILES_A_CORE 4

static uint32_t cores_of(const struct pb_turns *turns, int64_t tiles)
{
    int64_t cores = (tiles + TILES_A_CORE - 1) / TILES_A_CORE;
    return cores < 1 ? 1 : cores < turns->cores ? (uint32_t)cores : turns->cores;
}

void pb_turns_share(struct pb_turns *turns, const struct pb_compute_config *compute, bool apart)
{
    turns->apart = apart;
    turns->cores = pb_device_threads(compute->threads);
    turns->memory_bytes = compute->memory_bytes;
    if (turns->begun == 0) /* the first job may need everything */
        turns->last = (struct pb_turn){.cores = turns->cores, .memory_bytes = turns->memory_bytes};
}

bool pb_turns_may_begin(const struct pb_turns *turns)
{
    uint64_t cores = 0, bytes = 0;
    int n = 0;
    for (int i = 0; i < PB_TURNS_MAX; i++) {
        const struct pb_turn *turn = &turns->slot[i];
        const struct pb_turn *needs = turn->state == PB_TURN_BEGUN ? &turns->last : turn;
        if (turn->state == PB_TURN_NONE)
            continue;
        if (turn->state == PB_TURN_WAITS || (turns->apart && turn->state == PB_TURN_BEGUN))
            return false;
        cores += needs->cores;
        bytes += needs->memory_bytes;
        n++;
    }
    return n == 0 || (n < PB_TURNS_MAX && cores + turns->last.cores <= turns->cores &&
                      bytes + turns->last.memory_bytes <= turns->memory_bytes);
}

void pb_turns_begin(struct pb_turns *turns, int slot)
{
    turns->slot[slot] = (struct pb_turn){.state = PB_TURN_BEGUN, .number = ++turns->begun};
}

void pb_turns_take_all(struct pb_turns *turns, int slot)
{
    turns->slot[slot] = (struct pb_turn){.state = PB_TURN_RUNS,
                                         .cores = turns->cores,
                                         .memory_bytes = turns->memory_bytes,
                                         .number = ++turns->begun};
}

void pb_turns_plan(struct pb_turns *turns, int slot, int64_t tiles, int64_t memory_bytes)
{
    struct pb_turn *turn = &turns->slot[slot];
    turn->state = PB_TURN_WAITS;
    turn->cores = cores_of(turns, tiles);
    turn->memory_bytes = (uint64_t)memory_bytes;
    turns->last = *turn;
}

int pb_turns_next(struct pb_turns *turns)
{
    uint64_t cores = 0, bytes = 0;
    int first = -1;
    for (int i = 0; i < PB_TURNS_MAX; i++) {
        const struct pb_turn *turn = &turns->slot[i];
        if (turn->state == PB_TURN_RUNS) {
            cores += turn->cores;
            bytes += turn->memory_bytes;
        } else if (turn->state == PB_TURN_WAITS &&
                   (first < 0 || turn->number < turns->slot[first].number)) {
            first = i;
        }
    }
    if (first < 0)
        return -1;
    struct pb_turn *turn = &turns->slot[first];
    if (cores > 0 &&
        (cores + turn->cores > turns->cores || bytes + turn->memory_bytes > turns->memory_bytes))
        return -1;
    turn->state = PB_TURN_RUNS;
    return first;
}

void pb_turns_end(struct pb_turns *turns, int slot)
{
    turns->slot[slot] = (struct pb_turn){.state = PB_TURN_NONE};
}
