// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_ABLATION_CUH
#define WIC_BENCH_ABLATION_CUH
// wic's kernel with parts exchanged, one by one.

enum ablation_gate { // where a working warp waits for its piece
    GATE_NAMED,      // wic's: bar.sync
    GATE_MBARRIER,   // mbarrier.try_wait; a bulk copy opens it without the Activator
    GATE_SHARED,     // polls a word in shared memory
    GATE_BOARD,      // polls the ready board in device memory, then that word
    GATES
};

enum ablation_pull {
    PULL_BULK,  // wic's: a bulk copy to shared memory
    PULL_LOADS, // loads of the Activator's warp
    PULLS
};

const void *ablation_kernel(ablation_gate gate, ablation_pull pull);
#endif
