// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulator.h"

// gcc does not know that a sample has one of the types.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "kernels/chain/chain_block.cuh"
#include "tests/device/emulate_chain.h"

namespace
{
template <int PX>
void run_parts(const pb_chain_device &device, const pb_chain_block_shape &shape,
               const pb_chain_block_needs &needs, const pb_tile_in &in, const pb_tile_out &out,
               float *scratch)
{
    const pb_rect core = in.core;
    for (int32_t y = 0; y < core.h; y += shape.part_h) {
        for (int32_t x = 0; x < core.w; x += shape.part_w) {
            const pb_rect part = {core.x + x, core.y + y, std::min(shape.part_w, core.w - x),
                                  std::min(shape.part_h, core.h - y)};
            pb_chain_block_run<PX, pb_chain_kind::GRIDS>(device, in, part, out.data, out.plane_px,
                                                         {emulated_shared, scratch, needs.plane_px},
                                                         pb_block_group{threadIdx.x, blockDim.x});
        }
    }
}
} // namespace

void emulate_chain(const pb_chain_device *device, const pb_chain_block_shape *shape,
                   const pb_chain_block_needs *needs, const pb_tile_in *in, const pb_tile_out *out,
                   float *scratch, unsigned order)
{
    emulator.order = order;
    emulate(1, shape->threads, needs->shared_bytes, [&] {
        if (needs->px == 4) {
            run_parts<4>(*device, *shape, *needs, *in, *out, scratch);
        } else {
            run_parts<1>(*device, *shape, *needs, *in, *out, scratch);
        }
    });
}
