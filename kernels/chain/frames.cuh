// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_FRAMES_CUH
#define PB_FRAMES_CUH
// Of each grid of another coordinate system than the outputs': the rect that a core needs.
#include "kernels/chain/chain_device.h"
#include "kernels/chain/frames_pixel.h"
#include "kernels/vm/program.cuh"

namespace pb_device
{
// pb_chain_rect_on of the CPU, from rects that were found before.
inline __device__ pb_rect rect_of_grid(const pb_chain_device &chain, const pb_rect *bases,
                                       uint32_t grid, const pb_rect &core, int32_t margin)
{
    const pb_chain_grid &on = chain.grids[grid];
    if (on.frame == chain.frame) {
        return pb_rect_on(&on.map, on.w, on.h, &core, margin);
    }
    return base_grown(bases[grid], margin, on.w, on.h);
}

// Fills in bases[grid] of all of them. One thread.
inline __device__ void find_bases(const pb_chain_device &chain, const pb_rect &core, pb_rect *bases)
{
    for (uint32_t i = 0; i < chain.n_apart; i++) {
        const uint32_t grid = chain.apart[i];
        const pb_chain_grid &on = chain.grids[grid];
        pb_warp_box box = pb_frames_no_box();
        for (uint32_t k = 0; k < chain.n_legs; k++) {
            const pb_chain_leg &leg = chain.legs[k];
            if (leg.from_frame == on.frame) {
                const pb_rect rect = rect_of_grid(chain, bases, leg.to_grid, core, leg.to_margin);
                pb_frames_add(&box, &leg, &chain.grids[leg.to_grid], &on, &rect);
            }
        }
        bases[grid] = pb_frames_rect(&box, on.w, on.h);
    }
}
} // namespace pb_device
#endif
