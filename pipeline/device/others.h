/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OTHERS_H
#define PB_OTHERS_H
#include <stdint.h>

/* How many other processes have compute contexts on a CUDA device on which this one has one, and
 * the id of one that lives (0: not known, as in another PID namespace). By NVML, which is loaded at
 * the first call; 0 where it is not there or does not tell. Takes about a millisecond; up to a
 * second while there are some and none is known to live, as the context of a process that has ended
 * goes a little later. Thread: any, one at a time. */
int pb_device_others(int32_t index, int32_t *out_pid);
#endif
