/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TURNS_H
#define PB_TURNS_H
/* Decides which jobs compute at the same time on the CPU. A job begins in a worker slot, opens its
 * scene and makes its plan; then it waits for its turn. Jobs of few tiles, which cannot use all
 * cores, compute together, as many as there are cores; a job that fills all cores computes alone.
 * All jobs together use compute.memory: each plan is made for all of it, and a job gets its turn
 * when the others leave what its plan needs.
 *
 * The plan of a job is unknown when it begins; the last plan is the estimate. A wrong estimate
 * costs time, never memory. Jobs that read polygons hold them before they have a plan, in addition
 * to compute.memory; therefore one of them at a time makes its plan. Turns are given in the order
 * in which the jobs began. Plain arithmetic without I/O. Thread: any, one at a time for each
 * object. */
#include <stdbool.h>
#include <stdint.h>

#define PB_TURNS_MAX 64 /* worker slots */

struct pb_compute_config;

enum pb_turn_state {
    PB_TURN_NONE,
    PB_TURN_BEGUN, /* the plan is unknown */
    PB_TURN_WAITS,
    PB_TURN_RUNS
};

struct pb_turn {
    enum pb_turn_state state;
    uint32_t cores;
    uint64_t memory_bytes, number;
};

struct pb_turns {
    uint32_t cores;
    bool apart;                              /* one job at a time makes its plan */
    uint64_t memory_bytes, begun;            /* begun: count of jobs so far */
    struct pb_turn slot[PB_TURNS_MAX], last; /* last: the latest plan */
};

/* Sets the cores and the memory that jobs share; jobs that have begun keep their turns. apart: a
 * job needs much memory before it has its plan; therefore one job at a time makes its plan. An
 * all-zero object has no jobs. */
void pb_turns_share(struct pb_turns *turns, const struct pb_compute_config *compute, bool apart);
/* Returns true if another job may begin. */
bool pb_turns_may_begin(const struct pb_turns *turns);
void pb_turns_begin(struct pb_turns *turns, int slot);
/* The job of the slot computes without a turn: it may use all cores and all memory. */
void pb_turns_take_all(struct pb_turns *turns, int slot);
/* The job of the slot has its plan and waits. */
void pb_turns_plan(struct pb_turns *turns, int slot, int64_t tiles, int64_t memory_bytes);
/* Gives a turn: returns the slot of a job that may compute now; -1 if no job may. Call it again
 * until it returns -1, after each plan and each end. */
int pb_turns_next(struct pb_turns *turns);
/* The job of the slot computes no more; nothing if it has ended already. */
void pb_turns_end(struct pb_turns *turns, int slot);
#endif
