/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_RESIDENT_H
#define PB_CHAIN_RESIDENT_H
/* A chain as the work of a resident kernel (wic/device/wic_device.h).
 * Each piece that wic hands to a block is a part of a tile; the working warps of the block run the
 * whole chain on it and store the results straight to the tile's output slot. Present in CUDA
 * builds only. */
#include "kernels/chain/chain_sums.h"
#include "kernels/tile_slot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Warps of a block that work, at most, by lines and by parts; of the latter two blocks fit on a
 * multiprocessor. */
#define PB_RESIDENT_LINE_WARPS 16
#define PB_RESIDENT_PART_WARPS 8
/* Shared memory of a block that it needs beside what pb_chain_block_measure says. */
#define PB_RESIDENT_OWN_BYTES 832

struct pb_chain_resident_shape {
    int px;               /* and below: as pb_chain_block_measure said for the parts and warps */
    size_t scratch_bytes; /* of device memory, a block */
    size_t plane_px;
    uint32_t blocks;
    /* Pieces are lines of the tile, with all their bands, in shared memory; a unit is a line. Else
     * the tile lies where the whole device sees it, and unit u is part u, row-major, of part_w x
     * part_h pixels of its core. */
    bool by_line;
    int32_t part_w, part_h;
    struct pb_slot_format format; /* of the input slots */
    /* sums.n > 0: what comes back of unit u are sums.words of 4 bytes, at u times that. Then px,
     * bytes and planes are as pb_chain_sums_measure said, and parts are not lines. */
    struct pb_chain_sums sums;
    struct pb_chain_sums_scratch places;
    size_t tile_bytes; /* of the largest tile's pixels in a slot, and */
    uint32_t n_tiles;  /* how many tiles there are, of which the device keeps what fits */
};

struct pb_chain_resident;

/* Uploads to the current device. chain is borrowed until destroy. -ENOMEM, -ENODEV, -EIO. */
int pb_chain_resident_create(const struct pb_chain *chain,
                             const struct pb_chain_resident_shape *shape,
                             struct pb_chain_resident **out_resident);
/* For struct wic_device_options. The kernel's user bytes are a struct pb_tile; its work bytes
 * are PB_RESIDENT_OWN_BYTES and the shared bytes of pb_chain_block_measure. The argument lives as
 * long as the object. */
const void *pb_chain_resident_kernel(const struct pb_chain_resident *resident);
const void *pb_chain_resident_argument(const struct pb_chain_resident *resident);
size_t pb_chain_resident_argument_bytes(void);
/* With sums: tiles of a lower number than this stay on the device; from the second round on their
 * slots need a head alone. */
uint32_t pb_chain_resident_stored(const struct pb_chain_resident *resident);
void pb_chain_resident_destroy(struct pb_chain_resident *resident);
#ifdef __cplusplus
}
#endif
#endif
