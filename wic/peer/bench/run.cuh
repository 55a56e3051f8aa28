// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_PEER_RUN_CUH
#define WIC_PEER_RUN_CUH
// One run of parties that make chunks by a formula and check every element that they use.
#include "wic/device/link.h"
#include "wic/pattern/schedule.h"
#include "wic/peer/bench/bench.cuh"

struct peer_task {
    const peer_options &options;
    wic_peer_plan plan;
    std::vector<wic_step> steps;
    uint32_t parties;
    peer_break mistake;
};

struct peer_result {
    bool is_right = false;
    uint64_t wrong = 0, used = 0; // elements, chunks
    double seconds = 0, gb_s = 0; // time and rate of the last party
    std::string why;
};

// Party p is on options.from if p is even, else on options.to.
peer_result peer_run(const peer_task &task);
#endif
