/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_CODECS_H
#define PB_EMULATE_CODECS_H
/* The device functions of kernels/codec as host code (emulator.h), called as their kernels call
 * them. order: in which the threads run between two barriers; any number. Thread: one at a time. */
#include "kernels/codec/decode_device.h"
#include "kernels/codec/unpredict_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shapes of the thread block that inflates: the one that kernels use, and smaller ones. */
enum { EMULATED_SHAPES = 3 };

/* One stream. Returns the enum pb_decode_status. abort, progress: NULL, or as in a batch. */
uint32_t emulate_decode(enum pb_device_codec codec, unsigned shape, unsigned order,
                        const struct pb_decode_stream *stream, const uint32_t *abort,
                        uint32_t *progress, uint32_t *out_bytes);
/* One block. */
void emulate_unpredict(const struct pb_unpredict_form *form, const struct pb_unpredict_block *block,
                       unsigned order);
void emulate_copy_rect(const struct pb_rect_copy *copy, unsigned order);

#ifdef __cplusplus
}
#endif
#endif
