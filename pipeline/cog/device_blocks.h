/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_BLOCKS_H
#define PB_DEVICE_BLOCKS_H
/* Products whose blocks a device makes of planes that it has (kernels/codec/encode_device.h): those
 * of the image and of all overviews, with the bytes that the CPU makes. Or what it finds in them
 * (kernels/reduce/statistics_device.h): a part for each tile and band. Pure; any thread. */
#include "kernels/codec/encode_device.h"

struct pb_cog_options;

struct pb_device_blocks {
    struct pb_encode_format format; /* of the values; its planes are those of tiles */
    bool has_mask;                  /* each block has one of a mask as well, which is encoded ... */
    enum pb_encode_with mask_with;  /* ... so */
    uint32_t levels;                /* of overviews */
    bool nearest;                   /* they are; else averages */
    uint32_t n_join; /* of the format's bands the first so many are valid together: averages, and
                        the mask; 0: each by itself */
    bool any;        /* where one of them is valid; else where all are */
    float fill;      /* struct pb_pixel_join */
    bool top_only;   /* only blocks of the coarsest overview are made, of the image where there is
                        none */
    bool parts; /* a block is a struct pb_statistics_part of one plane of one tile: its level is the
                   band, its column the tile's number; of the format bands and planes count */
};

/* NULL and *out; or why the host has to make them: static words. plane: of tiles, by band. */
const char *pb_device_blocks_of(const struct pb_cog_options *options, const uint32_t *plane,
                                struct pb_device_blocks *out);
/* Parts of n bands. */
void pb_device_parts_of(uint32_t n, const uint32_t *plane, struct pb_device_blocks *out);
/* How overviews join planes, which the format counts. */
struct pb_pixel_join pb_device_blocks_join(const struct pb_device_blocks *blocks);
/* The format of a mask's blocks. */
struct pb_encode_format pb_device_blocks_mask(const struct pb_device_blocks *blocks);
#endif
