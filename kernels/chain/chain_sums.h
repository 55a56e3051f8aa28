/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_SUMS_H
#define PB_CHAIN_SUMS_H
/* A pass whose loops a device reduces itself: what comes back of a part of a tile are sums
 * (kernels/reduce/cluster_sums.h) and not planes. The numbers of a round go down with its tiles, in
 * the head of each slot (kernels/tile_slot.h), so rounds follow each other without a change of what
 * lies on the device. C11 and C++17. */
#include "kernels/chain/chain_block.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_CHAIN_SUMS_MAX 8 /* reductions of a pass */

/* One reduction. */
struct pb_chain_sums_of {
    uint32_t classes, bands;
    uint32_t output[PB_REDUCE_INPUTS_MAX]; /* of the pass */
    uint32_t at, words;                    /* of a part's sums: its first one, how many */
    uint32_t first_number;                 /* in a slot's head */
};

struct pb_chain_sums {
    uint32_t n; /* reductions; 0: what comes back are planes */
    uint32_t n_numbers;
    uint32_t n_code; /* instructions of all stages */
    uint32_t words;  /* of a part's sums: of 4 bytes, a multiple of 4 */
    struct pb_chain_sums_of of[PB_CHAIN_SUMS_MAX];
};

/* Where a number of a slot's head goes: imm[imm] of an instruction, counted over all stages. */
struct pb_chain_sums_patch {
    uint32_t instr, imm, number;
};

/* n 0 for a pass that has something else to reduce, or more. */
struct pb_chain_sums pb_chain_sums_find(const struct pb_chain *pass);
/* Its numbers now, as a slot's head has them. */
void pb_chain_sums_numbers(const struct pb_chain *pass, const struct pb_chain_sums *sums,
                           float *out_numbers);
/* Where they go; returns how many. out may be NULL. */
size_t pb_chain_sums_patches(const struct pb_chain *pass, const struct pb_chain_sums *sums,
                             struct pb_chain_sums_patch *out);

/* What a block of threads has in its scratch, in bytes: planes of the chain first. */
struct pb_chain_sums_scratch {
    size_t outputs, code, bytes; /* bytes: of all; a multiple of 256 */
    size_t out_px;               /* floats from output to output */
};

/* As pb_chain_block_measure, for parts that are summed up: adds to what that said. -E2BIG: a part
 * has more than PB_CLUSTER_PART_PX pixels, or shared memory does not do. */
int pb_chain_sums_measure(const struct pb_chain *pass, const struct pb_chain_sums *sums,
                          int32_t part_w, int32_t part_h, uint32_t threads, uint32_t shared_limit,
                          struct pb_chain_block_needs *out_needs,
                          struct pb_chain_sums_scratch *out_scratch);

#ifdef __cplusplus
}
#endif
#endif
