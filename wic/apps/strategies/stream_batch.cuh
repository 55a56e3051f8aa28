// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_STREAM_BATCH_CUH
#define WIC_APP_STREAM_BATCH_CUH
// stream-batch: launches; chunks that have gathered are one copy and one kernel.
#include "wic/apps/strategies/launches.cuh"

template <class A>
std::unique_ptr<app_strategy<A>> app_by_stream_batch(const app_place<A> &place, std::string *)
{
    return std::make_unique<app_launches<A>>(place, app_launch_kind{true, true, false});
}
#endif
