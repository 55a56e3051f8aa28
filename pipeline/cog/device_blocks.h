/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_BLOCKS_H
#define PB_DEVICE_BLOCKS_H
/* Products whose blocks a device makes from planes in its memory (kernels/codec/encode_device.h):
 * those of the image and of all overviews, with the same bytes as on the CPU. Or statistics of the
 * planes (kernels/reduce/statistics_device.h): a part for each tile and band, and the values of
 * each band (kernels/reduce/value_table.h). Pure; any thread. */
#include "kernels/codec/encode_device.h"

struct pb_cog_options;
struct pb_paint_steps;

struct pb_device_blocks {
    struct pb_encode_format format; /* format of the values; its planes are those of tiles */
    bool has_mask;                  /* each block has a mask block as well, which is encoded ... */
    enum pb_encode_with mask_with;  /* ... with this encoder */
    uint32_t levels;                /* count of overview levels */
    bool nearest;                   /* true: overviews use the nearest pixel; false: averages */
    /* Count of leading bands of the format that are valid together, in averages and the mask; 0:
     * each by itself. */
    uint32_t n_join;
    bool any;   /* true: a pixel is valid if one of them is; false: if all are */
    float fill; /* as in struct pb_pixel_join */
    /* Only blocks of the coarsest overview are made, or those of the image without overviews. */
    bool top_only;
    /* A block is a struct pb_statistics_part of one plane of one tile: its level is the band, its
     * column the tile's number; only bands and planes of the format are used. */
    bool parts;
    /* With parts: limit of a table that counts each value of a band, a power of two; 0: values are
     * not counted. After the last tile its parts are blocks, too: the level is the band, the column
     * the number of the part. */
    uint32_t values;
    const struct pb_paint_step *steps; /* format.paint.n_steps; borrowed from the configuration */
};

/* NULL and *out; or static text why the host has to make them. plane: planes of tiles, by band.
 * steps: colours of the options' painter (paint_steps.h); NULL: no painter, or it has too many. */
const char *pb_device_blocks_of(const struct pb_cog_options *options, const uint32_t *plane,
                                const struct pb_paint_steps *steps, struct pb_device_blocks *out);
/* Fills *out for statistics parts of n bands; values: as in the struct. */
void pb_device_parts_of(uint32_t n, const uint32_t *plane, uint32_t values,
                        struct pb_device_blocks *out);
/* Join of planes in overviews, as counted in the format. */
struct pb_pixel_join pb_device_blocks_join(const struct pb_device_blocks *blocks);
/* Format of a mask's blocks. */
struct pb_encode_format pb_device_blocks_mask(const struct pb_device_blocks *blocks);
#endif
