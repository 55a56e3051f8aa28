// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_HARD_LINKS_CUH
#define WIC_BENCH_HARD_LINKS_CUH
// Each says in *out_text what happened, and whether it is as it must be. The plan pulls, for chunks
// of 64 KiB. No other kernel is there.
#include "wic/bench/base/bench.cuh"

bool counters_wrap(const wic_transfer_plan &plan, bool rounds, std::string *out_text);
bool deaf_kernel_is_left_behind(const wic_transfer_plan &plan, std::string *out_text);
bool too_long_is_refused(const wic_transfer_plan &plan, std::string *out_text);
#endif
