/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_ENCODE_H
#define PB_EMULATE_ENCODE_H
/* The encoder's device code on the host (device/emulator.h), as a device would run it. order: in
 * which the threads of a block run, and how many share a chunk; any number. C11 and C++17; one
 * thread. */
#include "kernels/codec/encode_device.h"
#include "kernels/codec/halve_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does the work of pb_encode_cuda. */
int emulate_encode(const struct pb_encode_batch *batch, unsigned order);
/* Does the work of pb_halve_cuda, for one part and plane. */
void emulate_halve(const struct pb_halve_part *part, uint32_t plane, bool nearest);

#ifdef __cplusplus
}
#endif
#endif
