/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Registers are [register][thread] of as many floats as a thread makes pixels at a time; the
 * patches of focal operations come between programs and lie over them. */
#include "kernels/chain/chain_block.h"
#include "kernels/chain/chain_stage.h"

#include <errno.h>

static size_t patch_bytes(const struct pb_chain *chain)
{
    size_t most = 0;

    for (size_t k = 0; k < chain->n_stages; k++)
        for (size_t i = 0; i < chain->stages[k].n_focals; i++) {
            const size_t bytes = pb_focal_patch_bytes(&chain->stages[k].focals[i].focal);

            most = bytes > most ? bytes : most;
        }
    return most;
}

int pb_chain_block_measure(const struct pb_chain *chain, int32_t part_w, int32_t part_h,
                           uint32_t threads, uint32_t shared_limit,
                           struct pb_chain_block_needs *out_needs)
{
    const size_t registers = chain->n_registers ? chain->n_registers : 1;
    const size_t patch = patch_bytes(chain);
    static const int choices[] = {4, 1};
    struct pb_chain_layout layout;

    if (part_w < 1 || part_h < 1 || threads < 32 || threads > 1024 || threads % 32 != 0)
        return -EINVAL;
    if ((int64_t)part_w * part_h > INT32_MAX)
        return -EINVAL;
    pb_chain_measure(chain, part_w, part_h, &layout);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        const size_t program = registers * threads * (size_t)choices[i] * sizeof(float);
        const size_t bytes = program > patch ? program : patch;

        if (bytes > shared_limit)
            continue;
        *out_needs = (struct pb_chain_block_needs){
            .shared_bytes = (uint32_t)((bytes + 15) / 16 * 16),
            .scratch_bytes = (layout.planes_px + pb_chain_bases_px(chain)) * sizeof(float),
            .plane_px = layout.plane_px,
            .px = choices[i]};
        return 0;
    }
    return -E2BIG;
}
