// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_REPLAY_CUH
#define WIC_BENCH_REPLAY_CUH
// The parts of --replay. The patterns are those of wic/patterns, linked into the program so that it
// stays one file.
#include "wic/pattern/schedule.h"

extern "C" {
extern const wic_pattern wic_pattern_alternating, wic_pattern_multiple, wic_pattern_probabilistic;
}

bool replay_told();   // replay_told.cu: steps that the device decides on
bool replay_device(); // replay_device.cu: with the resident kernel of wic/device
#endif
