/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VIEW_H
#define PB_VIEW_H
/* What kernels see of pixels: types, rectangles and the planes of one tile. Plain data, C11 and
 * C++17. */
#include <stddef.h>
#include <stdint.h>

enum pb_type { PB_U8, PB_I16, PB_U16, PB_I32, PB_U32, PB_F32, PB_F64, PB_TYPE_COUNT };

static inline size_t pb_type_bytes(enum pb_type type)
{
    return type == PB_U8 ? 1 : type <= PB_U16 ? 2 : type <= PB_F32 ? 4 : 8;
}

/* Pixel rectangle of an image: x to the right, y down. */
struct pb_rect {
    int32_t x, y, w, h;
};

/* rect grown by margin on every side, clipped to the image. */
static inline struct pb_rect pb_rect_grow(const struct pb_rect *rect, int32_t margin,
                                          int32_t image_w, int32_t image_h)
{
    const int32_t x = rect->x > margin ? rect->x - margin : 0;
    const int32_t y = rect->y > margin ? rect->y - margin : 0;
    const int32_t right = rect->x + rect->w, bottom = rect->y + rect->h;
    struct pb_rect grown;
    grown.x = x;
    grown.y = y;
    grown.w = (margin < image_w - right ? right + margin : image_w) - x;
    grown.h = (margin < image_h - bottom ? bottom + margin : image_h) - y;
    return grown;
}

/* The most sources that a chain reads from: the delivered scene is the first. */
#define PB_SOURCES_MAX 6

/* Pixels of one source, as stored in its file, a plane a band: where a reader puts them and a chain
 * finds them. Planes lie one behind the other or interleaved by line. Memory is host or device,
 * whichever runs the chain. */
struct pb_window {
    void *data; /* plane p at data + p * plane_bytes, rows row_bytes apart */
    size_t row_bytes, plane_bytes;
    uint8_t *mask;         /* NULL = none; else rect.h rows of rect.w bytes, 0 = invalid pixel */
    size_t mask_row_bytes; /* from row to row of the mask; at least rect.w where there is one */
    struct pb_rect rect;   /* pixels that are there, on the source's grid */
};

/* Input of a chain for one tile: what the chain needs of each source (pb_chain_need). */
struct pb_tile_in {
    struct pb_window window[PB_SOURCES_MAX];
    struct pb_rect core;      /* pixels that are wanted, on the grid of the outputs */
    int32_t image_w, image_h; /* of the grid of the outputs */
};

/* Output of a chain: float32 planes of core.w x core.h, tightly packed, invalid pixels NaN. Plane p
 * at data + p * plane_px; plane_px 0: no pixel is valid, and data is NULL. */
struct pb_tile_out {
    float *data;
    size_t plane_px;
};
#endif
