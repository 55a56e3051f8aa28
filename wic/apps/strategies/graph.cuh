// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_GRAPH_CUH
#define WIC_APP_GRAPH_CUH
// graph: launches; as stream-batch, but the kernels after the last chunk of a step are one graph.
#include "wic/apps/strategies/launches.cuh"

template <class A>
std::unique_ptr<app_strategy<A>> app_by_graph(const app_place<A> &place, std::string *)
{
    return std::make_unique<app_launches<A>>(place, app_launch_kind{true, true, true});
}
#endif
