/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_SUMS_DEVICE_H
#define PB_CHAIN_SUMS_DEVICE_H
/* What summing up is to a kernel: tables in device memory, and memory for the pixels of tiles from
 * round to round. Plain data, passed to a kernel by value. Errors as in chain_cuda.h. CUDA builds
 * only. */
#include "kernels/chain/chain_sums.h"
#include "kernels/tile_slot.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pb_chain_sums_device {
    struct pb_chain_sums sums;
    const struct pb_chain_sums_patch *patches; /* device memory */
    uint32_t n_patches;
    /* The pixels of tile i < n_stored, as they lie in a slot, at store + i * stored_bytes. */
    unsigned char *store;
    size_t stored_bytes;
    uint32_t n_stored;
};

/* Uploads to the current device. Of n_tiles tiles that take up to tile_bytes each it makes room for
 * as many as fit into a quarter of the device's free memory, all zero. */
int pb_chain_sums_device_create(const struct pb_chain *pass, const struct pb_chain_sums *sums,
                                size_t tile_bytes, uint32_t n_tiles,
                                struct pb_chain_sums_device *out_device);
void pb_chain_sums_device_destroy(struct pb_chain_sums_device *device); /* zeroed: nothing */

/* One tile in one kernel, for streams. */
struct pb_chain_sums_launch {
    const struct pb_chain_device *chain;
    const struct pb_chain_sums_device *sums;
    struct pb_chain_block_needs needs; /* as pb_chain_sums_measure said for parts and threads */
    struct pb_chain_sums_scratch places;
    int32_t part_w, part_h;
    uint32_t threads, blocks;
    void *scratch;                   /* of each block, device memory */
    const struct pb_slot_head *head; /* device-readable, as are the windows and out */
    struct pb_tile_in in;
    int32_t *out; /* sums.words for each part of the core, row-major */
};

/* Queues on stream (cudaStream_t). -EIO. */
int pb_chain_sums_cuda(const struct pb_chain *pass, const struct pb_chain_sums_launch *launch,
                       void *stream);
#ifdef __cplusplus
}
#endif
#endif
