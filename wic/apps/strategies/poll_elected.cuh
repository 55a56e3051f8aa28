// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_POLL_ELECTED_CUH
#define WIC_APP_POLL_ELECTED_CUH
// poll-elected: when a block has done C1, its elected thread polls the ready board for the chunk of
// the next piece; then the block reads the piece in pinned memory.
#include "wic/apps/strategies/resident_monitor.cuh"

template <uint32_t density> using poll_elected_way = resident_mirrored<1, density>;

template <class A>
std::unique_ptr<app_strategy<A>> app_by_poll_elected(const app_place<A> &place, std::string *why)
{
    return resident_open<A, poll_elected_way, resident_monitor_side>(place, {false, false}, why);
}
#endif
