// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulator.h"

#include "kernels/codec/encode_stages.cuh"
#include "kernels/codec/halve.cuh"
#include "tests/device/emulate_encode.h"

int emulate_encode(const struct pb_encode_batch *batch, unsigned order)
{
    pb_encode_view view;
    const int rc = pb_encode_view_of(batch, &view);
    if (rc < 0) {
        return rc;
    }
    const auto launch = [&](auto stage) {
        using Stage = decltype(stage);
        using Arena = typename Stage::arena;
        emulate(Stage::blocks(view), Stage::THREADS, sizeof(Arena), [&] {
            Stage::run(view, *reinterpret_cast<Arena *>(emulated_shared), blockIdx.x,
                       pb_block_group{threadIdx.x, blockDim.x});
        });
    };
    emulator.order = order;
    switch (order % 3) { // the numbers of a kernel and of a worker, and few
    case 0:
        pb_encode_stages(view, launch);
        break;
    case 1:
        pb_encode_stages<160>(view, launch);
        break;
    default:
        pb_encode_stages<32>(view, launch);
    }
    return 0;
}

void emulate_halve(const struct pb_halve_part *part, uint32_t plane, bool nearest)
{
    constexpr uint32_t WARPS = 4;
    const auto rows = static_cast<unsigned>((part->h + 1) / 2);
    emulate((rows + WARPS - 1) / WARPS, WARPS * 32, 0, [&] {
        const auto y = static_cast<int32_t>(blockIdx.x * WARPS + threadIdx.x / 32);
        if (nearest) {
            pb_halve_row<true>(*part, plane, y, threadIdx.x % 32);
        } else {
            pb_halve_row<false>(*part, plane, y, threadIdx.x % 32);
        }
    });
}
