// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_POLL_ELECTED_CUH
#define WIC_APP_POLL_ELECTED_CUH
// poll-elected: one thread of each block that takes a piece polls the chunk's word in pinned memory
// when the block has done C1; then the block reads the piece there.
#include "wic/apps/strategies/resident_kernel.cuh"

struct poll_elected_see {
    __device__ uint64_t operator()(const uint64_t *word, uint32_t number) const
    {
        return resident_plain::mapped(word, number);
    }
};

template <class A>
std::unique_ptr<app_strategy<A>> app_by_poll_elected(const app_place<A> &place, std::string *why)
{
    return resident_strategy<A, resident_polling<poll_elected_see, 1>>::open(place, {false, false},
                                                                             why);
}
#endif
