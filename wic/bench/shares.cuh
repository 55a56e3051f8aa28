// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_SHARES_CUH
#define WIC_BENCH_SHARES_CUH
#include "wic/bench/measure/options.cuh"

// Measures the ways to share the multiprocessors (wic/device/share.h): a stream of chunks at fixed
// rates next to kernels that fill the GPU, and the loss of either. False: a result was wrong.
bool measure_shares(const bench_options &opt);
#endif
