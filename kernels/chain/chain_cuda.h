/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_CUDA_H
#define PB_CHAIN_CUDA_H
/* A chain on a GPU: the chain's programs in device memory plus scratch for one tile at a time, used
 * in order on one stream. One object per stream. Errors are negative errno: -ENOMEM (device
 * memory), -ENODEV, -EIO (a launch or the device failed; the object is then good for destroy only).
 * Present in CUDA builds only. */
#include "kernels/chain/chain.h"

#ifdef __cplusplus
extern "C" {
#endif
struct pb_chain_cuda;

/* Uploads to the current device and allocates scratch for cores of at most core_w x core_h. chain
 * is borrowed until destroy. */
int pb_chain_cuda_create(const struct pb_chain *chain, int32_t core_w, int32_t core_h,
                         struct pb_chain_cuda **out_gpu);
/* Queues all kernels of one tile on `stream` (a cudaStream_t). in and out hold device-readable
 * addresses (device, managed, or mapped pinned). */
int pb_chain_cuda_launch(struct pb_chain_cuda *gpu, const struct pb_tile_in *in,
                         const struct pb_tile_out *out, void *stream);
void pb_chain_cuda_destroy(struct pb_chain_cuda *gpu);
#ifdef __cplusplus
}
#endif
#endif
