/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_CHAIN_H
#define PB_EMULATE_CHAIN_H
/* kernels/chain/chain_block.cuh as host code (emulator.h): a chain of several grids, part by part.
 * Thread: one at a time. */
#include "kernels/chain/chain_block.h"
#include "kernels/chain/chain_device.h"

#ifdef __cplusplus
extern "C" {
#endif
/* The tile by one block. device: laid out where it is; scratch: as needed. order: of the
 * threads between two barriers. */
void emulate_chain(const struct pb_chain_device *device, const struct pb_chain_block_shape *shape,
                   const struct pb_chain_block_needs *needs, const struct pb_tile_in *in,
                   const struct pb_tile_out *out, float *scratch, unsigned order);
#ifdef __cplusplus
}
#endif
#endif
