/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_BLOCK_H
#define PB_CHAIN_BLOCK_H
/* A chain run by the threads of one block of a GPU, a part of a tile at a time: what that takes,
 * and one kernel that does nothing else. The device code is kernels/chain/chain_block.cuh. C11 and
 * C++17.
 */
#include "kernels/chain/chain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a group of threads needs to run a chain. */
struct pb_chain_block_needs {
    uint32_t shared_bytes; /* 16-byte aligned; registers and the focal operations' patches lie on
                              each other */
    size_t scratch_bytes;  /* planes; a multiple of 64; 0 = none */
    size_t plane_px;       /* floats from plane to plane */
    int px;                /* pixels that a thread makes at a time: 4, or 1 where 4 do not fit */
};

/* Of parts of at most part_w x part_h pixels, by `threads` threads (whole warps), in at most
 * shared_limit bytes of shared memory. 0; -EINVAL; -E2BIG when not even one pixel a thread fits.
 * Arithmetic only; in every build. Thread: any. */
int pb_chain_block_measure(const struct pb_chain *chain, int32_t part_w, int32_t part_h,
                           uint32_t threads, uint32_t shared_limit,
                           struct pb_chain_block_needs *out_needs);

/* How pb_chain_block_launch cuts a tile. */
struct pb_chain_block_shape {
    int32_t part_w, part_h;
    uint32_t threads; /* of a block: 32 .. 512, whole warps */
    uint32_t blocks;  /* each with scratch of its own, taking parts in turn; at least 1 */
};
struct pb_chain_device;

/* CUDA builds only. One tile in one kernel, without the sweeps over the whole tile that
 * pb_chain_cuda_launch makes one after the other: every block runs the whole chain on a part.
 * Queues on stream (cudaStream_t). `device` is `chain` on the current device, in and out as in
 * pb_chain_cuda_launch, scratch is device memory of shape->blocks times scratch_bytes as measured
 * with PB_CHAIN_BLOCK_SHARED. 0, -EINVAL, -E2BIG, or -EIO. */
#define PB_CHAIN_BLOCK_SHARED (48 * 1024)
int pb_chain_block_launch(const struct pb_chain *chain, const struct pb_chain_device *device,
                          const struct pb_chain_block_shape *shape, const struct pb_tile_in *in,
                          const struct pb_tile_out *out, void *scratch, void *stream);
#ifdef __cplusplus
}
#endif
#endif
