// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_NBLOCKING_CUH
#define WIC_APP_NBLOCKING_CUH
// nblocking, after the persistent kernels with non-blocking notifications of NBlocking: C1 is done
// in slices. After each the block looks, without waiting, whether its next piece is there, and if
// so takes it first.
#include "wic/apps/strategies/resident_monitor.cuh"

constexpr uint32_t nblocking_slices = 4;

template <uint32_t density> using nblocking_way = resident_mirrored<nblocking_slices, density>;

template <class A>
std::unique_ptr<app_strategy<A>> app_by_nblocking(const app_place<A> &place, std::string *why)
{
    return resident_open<A, nblocking_way, resident_monitor_side>(place, {false, false}, why);
}
#endif
