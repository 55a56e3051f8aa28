// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_STRATEGIES_CUH
#define WIC_APP_STRATEGIES_CUH
// All strategies (strategies.def).
#include "wic/apps/strategies/demandcpy.cuh"
#include "wic/apps/strategies/graph.cuh"
#include "wic/apps/strategies/graph_while.cuh"
#include "wic/apps/strategies/managed_flag.cuh"
#include "wic/apps/strategies/nblocking.cuh"
#include "wic/apps/strategies/poll_elected.cuh"
#include "wic/apps/strategies/stream.cuh"
#include "wic/apps/strategies/stream_batch.cuh"
#include "wic/apps/strategies/wic.cuh"
#include "wic/apps/strategies/zero_copy.cuh"
#endif
