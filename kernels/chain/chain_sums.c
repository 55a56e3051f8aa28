/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The sums of one reduction at a time are in shared memory, over what the chain's programs had
 * there. A block has code of its own, into which it puts the numbers of a round when it sees the
 * first tile of that. */
#include "kernels/chain/chain_sums.h"
#include "kernels/chain/chain_numbers.h"
#include "kernels/chain/chain_stage.h"
#include "kernels/reduce/cluster_sums.h"

#include <errno.h>
#include <string.h>

enum { ALIGN = 256, WORDS = 4 };

static size_t aligned(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

struct pb_chain_sums pb_chain_sums_find(const struct pb_chain *pass)
{
    struct pb_chain_sums sums;

    memset(&sums, 0, sizeof sums);
    sums.n_code = (uint32_t)pb_chain_instruction_count(pass);
    for (size_t i = 0; i < pass->n_reductions; i++) {
        const struct pb_chain_reduction *const from = &pass->reductions[i];
        struct pb_chain_sums_of *const to = &sums.of[i];

        if (i == PB_CHAIN_SUMS_MAX || pass->n_images > 0 || pass->n_curve_places > 0 ||
            !pb_reduce_has_sums(&from->reduce)) {
            memset(&sums, 0, sizeof sums);
            return sums;
        }
        to->classes = from->reduce.clusters.classes;
        to->bands = from->reduce.clusters.bands;
        memcpy(to->output, from->output, sizeof to->output);
        to->at = sums.words;
        to->words = pb_cluster_sums_words(to->classes, to->bands);
        to->first_number = sums.n_numbers;
        sums.words += (uint32_t)aligned(to->words, WORDS);
        sums.n_numbers += from->reduce.n_numbers;
        sums.n++;
    }
    return sums;
}

void pb_chain_sums_numbers(const struct pb_chain *pass, const struct pb_chain_sums *sums,
                           float *out_numbers)
{
    memset(out_numbers, 0, sums->n_numbers * sizeof *out_numbers);
    for (uint32_t i = 0; i < sums->n; i++)
        pb_chain_numbers_of_loop(pass, pass->reductions[i].number,
                                 out_numbers + sums->of[i].first_number,
                                 pass->reductions[i].reduce.n_numbers);
}

/* The place in a slot's head of a number that a loop finds; false: it is another number. */
static bool find_place(const struct pb_chain *pass, const struct pb_chain_sums *sums,
                       const struct pb_chain_number *number, uint32_t *out)
{
    if (number->kind != PB_NODE_ROUND)
        return false;
    for (uint32_t i = 0; i < sums->n; i++)
        if (number->index / PB_REDUCE_RESULTS_MAX == pass->reductions[i].number) {
            *out = sums->of[i].first_number + number->index % PB_REDUCE_RESULTS_MAX;
            return true;
        }
    return false;
}

size_t pb_chain_sums_patches(const struct pb_chain *pass, const struct pb_chain_sums *sums,
                             struct pb_chain_sums_patch *out)
{
    size_t n = 0;

    for (size_t i = 0; i < pass->n_patches; i++) {
        const struct pb_chain_patch *const at = &pass->patches[i];
        struct pb_chain_sums_patch made = {at->instr, at->imm, 0};

        if (!find_place(pass, sums, &pass->numbers[at->number], &made.number))
            continue;
        for (uint32_t k = 0; k < at->stage; k++)
            made.instr += pass->stages[k].n_code;
        if (out)
            out[n] = made;
        n++;
    }
    return n;
}

static uint32_t most_words(const struct pb_chain_sums *sums)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < sums->n; i++)
        most = sums->of[i].words > most ? sums->of[i].words : most;
    return most;
}

int pb_chain_sums_measure(const struct pb_chain *pass, const struct pb_chain_sums *sums,
                          int32_t part_w, int32_t part_h, uint32_t threads, uint32_t shared_limit,
                          struct pb_chain_block_needs *out_needs,
                          struct pb_chain_sums_scratch *out_scratch)
{
    const size_t shared = aligned(most_words(sums) * sizeof(int32_t), 16);
    const size_t px = (size_t)part_w * (size_t)part_h;
    struct pb_chain_block_needs needs;
    const int rc = pb_chain_block_measure(pass, part_w, part_h, threads, shared_limit, &needs);

    if (rc < 0)
        return rc;
    if (px > PB_CLUSTER_PART_PX || shared > shared_limit)
        return -E2BIG;
    needs.shared_bytes = needs.shared_bytes > shared ? needs.shared_bytes : (uint32_t)shared;
    out_scratch->out_px = aligned(px, ALIGN / sizeof(float));
    out_scratch->outputs = aligned(needs.scratch_bytes, ALIGN);
    out_scratch->code =
        out_scratch->outputs + pass->n_outputs * out_scratch->out_px * sizeof(float);
    out_scratch->bytes = out_scratch->code + aligned(sums->n_code * sizeof(struct pb_instr), ALIGN);
    needs.scratch_bytes = out_scratch->bytes;
    *out_needs = needs;
    return 0;
}
