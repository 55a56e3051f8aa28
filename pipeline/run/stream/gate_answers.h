/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GATE_ANSWERS_H
#define PB_GATE_ANSWERS_H
/* Answers of a gate that a device computes: for each tile, whether it passes. The readers of stored
 * blocks wait for them, because they read only the blocks that passing tiles need. Answers may be
 * put in any order; they are known up to the first tile without one. Thread: any. */
#include <stdbool.h>
#include <stdint.h>

struct pb_gate_answers;

/* NULL: out of memory. */
struct pb_gate_answers *pb_gate_answers_create(uint32_t tiles);
void pb_gate_answers_destroy(struct pb_gate_answers *answers); /* NULL is fine */
/* Puts the answer of a tile. -EPROTO: there is no such tile, or it has an answer. */
int pb_gate_answers_put(struct pb_gate_answers *answers, uint32_t tile, bool passes);
/* Count of leading tiles whose answers are known. */
uint32_t pb_gate_answers_known(const struct pb_gate_answers *answers);
/* tile < pb_gate_answers_known(). */
bool pb_gate_answers_passes(const struct pb_gate_answers *answers, uint32_t tile);
/* Waits until the answers up to the tile are known. 0, or -ECANCELED after abort. */
int pb_gate_answers_wait(struct pb_gate_answers *answers, uint32_t tile);
void pb_gate_answers_abort(struct pb_gate_answers *answers); /* NULL is fine */
#endif
