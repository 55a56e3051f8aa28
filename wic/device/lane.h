/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_LANE_H
#define WIC_LANE_H
/* Which of several lanes (wic/device/launch.h) a block takes its next piece from. Start-time fair
 * queueing: each lane counts the bytes that the block took from it, as `served`; the block's clock
 * is the count at which its last piece started. The next piece is that of the lane whose count is
 * lowest. A lane that had nothing to take is not owed what it left to others: its count starts at
 * the clock. While a lane of a higher priority has a piece to take, a byte counts as
 * WIC_LANE_WEIGHT for those below, so they get so much less; of equal counts, the higher goes
 * first. None of them waits without end, because then its host would take the device for hung.
 *
 * Each block decides by itself. The counts are 64 bits and wrap with nobody. One text for C11 and
 * CUDA, without state. */
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WIC_LANE __host__ __device__ __forceinline__
#else
#define WIC_LANE static inline
#endif

#define WIC_LANES_MAX   8u
#define WIC_LANE_WEIGHT 8u

/* The count at which the lane's next piece would start. */
WIC_LANE uint64_t wic_lane_start(uint64_t served, uint64_t clock)
{
    return served > clock ? served : clock;
}

/* The lane with the lowest key goes first. below: a lane of a higher priority has a piece, too. */
WIC_LANE uint64_t wic_lane_key(uint64_t start, uint64_t clock, bool below, uint32_t lane)
{
    const uint64_t most = UINT64_MAX >> 5, ahead = start - clock;
    return (ahead < most ? ahead : most) << 4 | (below ? WIC_LANES_MAX : 0) | lane;
}

WIC_LANE uint32_t wic_lane_of_key(uint64_t key)
{
    return (uint32_t)key % WIC_LANES_MAX;
}

/* What a piece of so many bytes adds to the count of its lane. */
WIC_LANE uint64_t wic_lane_cost(uint32_t bytes, bool below)
{
    return (uint64_t)(bytes > 0 ? bytes : 1) * (below ? WIC_LANE_WEIGHT : 1);
}

/* Of `all` pieces that may cross the link at a time, those of one of `high` lanes of the highest
 * priority and `low` ones below that have tiles. At least one: then the oldest piece of each lane
 * always has its credit. */
WIC_LANE uint32_t wic_lane_share(uint32_t all, uint32_t high, uint32_t low, bool below)
{
    const uint32_t sum = WIC_LANE_WEIGHT * high + low;
    const uint32_t part = all * (below ? 1 : WIC_LANE_WEIGHT) / (sum > 0 ? sum : 1);
    return part == 0 ? 1 : part < all ? part : all;
}
#endif
