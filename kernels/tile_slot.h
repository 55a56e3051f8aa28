/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_SLOT_H
#define PB_TILE_SLOT_H
/* A tile in a slot: which pixels of which sources lie there, and how. A tile is plain data that
 * travels beside its pixels, to a device too; the format is one for all tiles of a run. C11 and
 * C++17. Thread: any. */
#include "kernels/pixel.h"
#include "kernels/view.h"

#define PB_PLANE_ALIGN 256 /* bytes, of planes in a slot: a GPU copies and loads whole lines */
#define PB_LINE_ALIGN  16  /* of bands in a line: what a bulk copy moves */
#define PB_OUT_ALIGN   64  /* floats, of planes of results */

/* In front of the pixels in a slot of a format that has heads: what a round of a loop is made with,
 * as chain_sums.h has it. Any bits are a value. */
struct pb_slot_head {
    uint32_t round;     /* from 1 */
    uint32_t unused[3]; /* the numbers follow */
};

/* One tile. What a source's window holds begins where the one before it ends. */
struct pb_tile {
    uint32_t number, unit; /* row-major; of the visiting order */
    uint32_t parts;        /* that were read of it */
    uint32_t is_stored;    /* 1: the device has its pixels; the slot has a head alone */
    struct pb_rect core;   /* on the grid of the outputs */
    struct pb_rect read[PB_SOURCES_MAX]; /* on each source's grid; empty: nothing */
};

struct pb_source_format {
    uint32_t n_planes, sample_bytes;
    bool has_mask;
};

struct pb_slot_format {
    struct pb_source_format source[PB_SOURCES_MAX]; /* n_planes 0: nothing is read */
    int32_t line_px; /* 0: plane by plane, as tight as PB_PLANE_ALIGN allows. Else the width of the
                        widest tile, and all planes of a line lie side by side: lines are the units
                        in which a GPU pulls; one source */
    int32_t image_w, image_h; /* of the grid of the outputs */
    uint32_t head_bytes;      /* 0: slots begin with pixels; else a multiple of PB_PLANE_ALIGN */
};

PB_PIXEL size_t pb_slot_align(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

PB_PIXEL bool pb_slot_is_read(const struct pb_source_format *source, const struct pb_rect *read)
{
    return source->n_planes > 0 && read->w > 0 && read->h > 0;
}

/* Of a line of so many pixels with all its planes, where slots hold lines. */
PB_PIXEL size_t pb_slot_line_bytes(const struct pb_source_format *source, size_t px)
{
    return pb_slot_align(px * source->sample_bytes, PB_LINE_ALIGN) * source->n_planes +
           (source->has_mask ? pb_slot_align(px, PB_LINE_ALIGN) : 0);
}

/* Bytes that the pixels `read` of a source take. */
PB_PIXEL size_t pb_slot_window_bytes(const struct pb_slot_format *format, uint32_t s,
                                     const struct pb_rect *read)
{
    const struct pb_source_format *const source = &format->source[s];
    const size_t px = (size_t)read->w * (size_t)read->h;
    if (!pb_slot_is_read(source, read)) {
        return 0;
    }
    if (format->line_px > 0) {
        return pb_slot_line_bytes(source, (size_t)read->w) * (size_t)read->h;
    }
    return pb_slot_align(px * source->sample_bytes, PB_PLANE_ALIGN) * source->n_planes +
           (source->has_mask ? pb_slot_align(px, PB_PLANE_ALIGN) : 0);
}

/* The pixels `read` of a source that lie at `at`; all zero where there are none. */
PB_PIXEL struct pb_window pb_slot_window(const struct pb_slot_format *format, uint32_t s,
                                         const struct pb_rect *read, void *at)
{
    const struct pb_source_format *const source = &format->source[s];
    const size_t w = (size_t)read->w, h = (size_t)read->h;
    struct pb_window window;
    memset(&window, 0, sizeof window);
    if (!pb_slot_is_read(source, read)) {
        return window;
    }
    window.data = at;
    window.rect = *read;
    if (format->line_px > 0) {
        window.plane_bytes = pb_slot_align(w * source->sample_bytes, PB_LINE_ALIGN);
        window.row_bytes = pb_slot_line_bytes(source, w);
        window.mask_row_bytes = window.row_bytes;
    } else {
        window.row_bytes = w * source->sample_bytes;
        window.plane_bytes = pb_slot_align(window.row_bytes * h, PB_PLANE_ALIGN);
        window.mask_row_bytes = w;
    }
    if (source->has_mask) {
        window.mask = (uint8_t *)at + window.plane_bytes * source->n_planes;
    } else {
        window.mask_row_bytes = 0;
    }
    return window;
}

/* The chain's view of a tile whose pixels lie at `pixels`. */
PB_PIXEL void pb_slot_pixels(const struct pb_slot_format *format, const struct pb_tile *tile,
                             void *pixels, struct pb_tile_in *out)
{
    uint8_t *at = (uint8_t *)pixels;
    out->core = tile->core;
    out->image_w = format->image_w;
    out->image_h = format->image_h;
    for (uint32_t s = 0; s < PB_SOURCES_MAX; s++) {
        out->window[s] = pb_slot_window(format, s, &tile->read[s], at);
        at += pb_slot_window_bytes(format, s, &tile->read[s]);
    }
}

/* The same of one that lies in the slot `base`. */
PB_PIXEL void pb_slot_tile(const struct pb_slot_format *format, const struct pb_tile *tile,
                           void *base, struct pb_tile_in *out)
{
    pb_slot_pixels(format, tile, (uint8_t *)base + format->head_bytes, out);
}

/* Bytes of the slot that the tile takes. */
PB_PIXEL size_t pb_slot_tile_bytes(const struct pb_slot_format *format, const struct pb_tile *tile)
{
    size_t bytes = format->head_bytes;
    for (uint32_t s = 0; s < PB_SOURCES_MAX; s++) {
        bytes += pb_slot_window_bytes(format, s, &tile->read[s]);
    }
    return bytes;
}

/* Floats from plane to plane of a tile's results. */
PB_PIXEL size_t pb_tile_out_px(const struct pb_tile *tile)
{
    return pb_slot_align((size_t)tile->core.w * (size_t)tile->core.h, PB_OUT_ALIGN);
}
#endif
