/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OTHERS_H
#define PB_OTHERS_H
#include <stdint.h>

/* Counts other processes with compute contexts on a CUDA device on which this process has one;
 * *out_pid is the id of a live one (0: unknown, as in another PID namespace). Uses NVML, which
 * is loaded at the first call; 0 if it is absent or does not report them. Takes about a
 * millisecond; up to a second if there are some and none is known to be alive, because the
 * context of an ended process disappears a little later. Thread: any, one at a time. */
int pb_device_others(int32_t index, int32_t *out_pid);
#endif
