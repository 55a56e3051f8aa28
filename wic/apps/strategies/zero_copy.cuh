// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_ZERO_COPY_CUH
#define WIC_APP_ZERO_COPY_CUH
// zero-copy: launches; kernels read and write chunks in pinned memory.
#include "wic/apps/strategies/launches.cuh"

template <class A>
std::unique_ptr<app_strategy<A>> app_by_zero_copy(const app_place<A> &place, std::string *)
{
    return std::make_unique<app_launches<A>>(place, app_launch_kind{false, true, false});
}
#endif
