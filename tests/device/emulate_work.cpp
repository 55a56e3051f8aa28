// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulator.h"

#include "kernels/work/work.cuh"
#include "tests/device/emulate_work.h"

void emulate_work(const struct pb_work_view *view, const struct pb_chain *chain,
                  emulate_part *run_part, unsigned order)
{
    emulator.order = order;
    emulate(1, PB_WORK_THREADS, sizeof(pb_work::arena), [&] {
        auto &mine = *reinterpret_cast<pb_work::arena *>(emulated_shared);
        pb_work_run(
            *view, mine,
            [&](const pb_tile_in &in, const pb_rect &part, float *out, size_t out_px, void *) {
                if (threadIdx.x == 0) {
                    run_part(chain, &in, &part, out, out_px);
                }
            },
            pb_codec_block());
    });
}
