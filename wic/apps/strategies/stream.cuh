// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_STREAM_CUH
#define WIC_APP_STREAM_CUH
// stream: launches; a copy and a kernel for each chunk, the others of a step.
#include "wic/apps/strategies/launches.cuh"

template <class A>
std::unique_ptr<app_strategy<A>> app_by_stream(const app_place<A> &place, std::string *)
{
    return std::make_unique<app_launches<A>>(place, app_launch_kind{true, false, false});
}
#endif
