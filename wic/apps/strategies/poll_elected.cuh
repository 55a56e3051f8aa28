// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_POLL_ELECTED_CUH
#define WIC_APP_POLL_ELECTED_CUH
// poll-elected: when a block has done C1, its elected thread polls the ready board for the chunk of
// the next piece; then the block reads the piece in pinned memory.
#include "wic/apps/strategies/resident_monitor.cuh"

template <class A>
std::unique_ptr<app_strategy<A>> app_by_poll_elected(const app_place<A> &place, std::string *why)
{
    return resident_strategy<A, resident_mirrored<1>, resident_monitor_side>::open(
        place, {false, false}, why);
}
#endif
