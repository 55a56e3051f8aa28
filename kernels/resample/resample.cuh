// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_RESAMPLE_CUH
#define PB_RESAMPLE_CUH
// Resampling on a GPU: a thread makes a pixel, all of it, by the pixel function that both devices
// share. The CPU's rows of sums would need a barrier for every row of a footprint; what neighbours
// read twice here comes from the caches.
#include "kernels/resample/resample_pixel.h"

namespace pb_device
{
// A plane by the threads of a group, which says `thread` and `threads`. Nobody syncs.
template <class Group>
__device__ void run_resample(const pb_resample &resample, const pb_plane &in, const pb_plane &out,
                             const Group &group)
{
    const pb_resample_source source = {in.data, in.rect};
    const pb_map &map = resample.map;
    const uint32_t width = static_cast<uint32_t>(out.rect.w);
    const uint32_t total = width * static_cast<uint32_t>(out.rect.h);
    for (uint32_t i = group.thread; i < total; i += group.threads) {
        const int32_t row = static_cast<int32_t>(i / width);
        const int32_t column = static_cast<int32_t>(i % width);
        const pb_taps x = pb_taps_of(resample.how, out.rect.x + column, map.scale_x, map.offset_x,
                                     resample.source_w);
        const pb_taps y = pb_taps_of(resample.how, out.rect.y + row, map.scale_y, map.offset_y,
                                     resample.source_h);
        out.data[i] = pb_resample_pixel(&resample, &source, &x, &y);
    }
}
} // namespace pb_device
#endif
