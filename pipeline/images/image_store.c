/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/images/image_store.h"
#include "kernels/pixel.h"
#include "pipeline/cog/spool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum kind { NOTHING, CLASSES, FLOATS };
enum { INVALID = 255 };

struct cell {
    uint64_t at;
    uint32_t kind; /* enum kind */
};

struct pb_image_store {
    int32_t image_w, image_h, side, cols, rows;
    struct pb_spool *spool;
    struct cell *cell;
};

static int32_t parts(int32_t length, int32_t side)
{
    return (int32_t)(((int64_t)length + side - 1) / side);
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

uint64_t pb_image_store_bytes(uint64_t cells)
{
    return sizeof(struct pb_image_store) + PB_SPOOL_BYTES + cells * sizeof(struct cell);
}

int pb_image_store_create(const char *directory, int32_t image_w, int32_t image_h, int32_t side,
                          struct pb_err *err, struct pb_image_store **out_store)
{
    struct pb_image_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for an image between two passes");
    *store = (struct pb_image_store){.image_w = image_w,
                                     .image_h = image_h,
                                     .side = side,
                                     .cols = parts(image_w, side),
                                     .rows = parts(image_h, side)};
    store->cell = calloc((size_t)store->cols * (size_t)store->rows, sizeof *store->cell);
    int rc = store->cell == NULL
                 ? pb_fail(err, PB_E_MEMORY, "out of memory for an image between two passes")
                 : pb_spool_create(directory, err, &store->spool);
    if (rc < 0) {
        pb_image_store_destroy(store);
        return rc;
    }
    *out_store = store;
    return 0;
}

void pb_image_store_destroy(struct pb_image_store *store)
{
    if (store == NULL)
        return;
    pb_spool_destroy(store->spool);
    free(store->cell);
    free(store);
}

static struct pb_rect rect_of(const struct pb_image_store *store, uint32_t cell)
{
    struct pb_rect rect = {.x = (int32_t)(cell % (uint32_t)store->cols) * store->side,
                           .y = (int32_t)(cell / (uint32_t)store->cols) * store->side};
    rect.w = smaller(store->side, store->image_w - rect.x);
    rect.h = smaller(store->side, store->image_h - rect.y);
    return rect;
}

static size_t pixel_bytes(uint32_t kind)
{
    return kind == CLASSES ? 1 : sizeof(float);
}

/* --- pixels and classes ---------------------------------------------------------------------- */

static enum kind kind_of(const float *pixels, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const float v = pixels[i];
        if (v != v)
            continue;
        any = true;
        if (!(v >= 0.0f && v < (float)INVALID && v == (float)(int32_t)v))
            return FLOATS;
    }
    return any ? CLASSES : NOTHING;
}

/* The bytes are stored at the beginning of the pixels. */
static void pack(float *pixels, size_t n)
{
    unsigned char *bytes = (unsigned char *)pixels;
    for (size_t i = 0; i < n; i++) {
        const float v = pixels[i];
        bytes[i] = v != v ? INVALID : (unsigned char)v;
    }
}

/* The bytes are at the end of the pixels: none is overwritten before it is read. */
static void unpack(float *pixels, size_t n)
{
    const unsigned char *bytes = (const unsigned char *)(pixels + n) - n;
    for (size_t i = 0; i < n; i++) {
        const unsigned char byte = bytes[i];
        pixels[i] = byte == INVALID ? pb_pixel_nan() : (float)byte;
    }
}

int pb_image_store_put(struct pb_image_store *store, uint32_t cell, float *pixels,
                       struct pb_err *err)
{
    const struct pb_rect rect = rect_of(store, cell);
    const size_t n = (size_t)rect.w * (size_t)rect.h;
    struct cell *to = &store->cell[cell], made = {.kind = kind_of(pixels, n)};
    int rc = 0;
    if (made.kind == CLASSES)
        pack(pixels, n);
    for (size_t i = 0; made.kind == FLOATS && i < n; i++)
        pixels[i] += 0.0f;
    if (made.kind != NOTHING)
        rc = pb_spool_append(store->spool, pixels, n * pixel_bytes(made.kind), err, &made.at);
    if (rc < 0)
        return rc;
    if (to->kind != NOTHING)
        pb_spool_drop(store->spool, to->at, n * pixel_bytes(to->kind));
    *to = made;
    return 0;
}

bool pb_image_store_has(const struct pb_image_store *store, uint32_t cell)
{
    return store->cell[cell].kind != NOTHING;
}

/* Reads n pixels of a cell, beginning with pixel `from`. */
static int read_pixels(const struct pb_image_store *store, const struct cell *cell, size_t from,
                       size_t n, float *out, struct pb_err *err)
{
    const size_t bytes = pixel_bytes(cell->kind);
    if (cell->kind == NOTHING) {
        for (size_t i = 0; i < n; i++)
            out[i] = pb_pixel_nan();
        return 0;
    }
    int rc = pb_spool_read(store->spool, cell->at + from * bytes,
                           (unsigned char *)(out + n) - n * bytes, n * bytes, err);
    if (rc == 0 && cell->kind == CLASSES)
        unpack(out, n);
    return rc;
}

/* Copies the intersection of a cell with rect; out: the pixels of rect. */
static int read_cell(const struct pb_image_store *store, uint32_t number,
                     const struct pb_rect *rect, unsigned char *out, size_t row_bytes,
                     struct pb_err *err)
{
    const struct pb_rect own = rect_of(store, number);
    const int32_t x = rect->x > own.x ? rect->x : own.x, y = rect->y > own.y ? rect->y : own.y;
    const int32_t right = smaller(rect->x + rect->w, own.x + own.w);
    const int32_t bottom = smaller(rect->y + rect->h, own.y + own.h);
    const bool tight = right - x == own.w && row_bytes == (size_t)own.w * sizeof(float);
    const int32_t rows = tight ? bottom - y : 1; /* rows per read */
    int rc = 0;
    for (int32_t row = y; row < bottom && rc == 0; row += rows) {
        void *to =
            out + (size_t)(row - rect->y) * row_bytes + (size_t)(x - rect->x) * sizeof(float);
        rc = read_pixels(store, &store->cell[number],
                         (size_t)(row - own.y) * (size_t)own.w + (size_t)(x - own.x),
                         (size_t)(right - x) * (size_t)rows, to, err);
    }
    return rc;
}

int pb_image_store_get(const void *of, int32_t band, const struct pb_rect *rect, void *out,
                       size_t row_bytes, struct pb_err *err)
{
    const struct pb_image_store *store = of;
    int rc = 0;
    (void)band;
    if (rect->w < 1 || rect->h < 1)
        return 0;
    for (int32_t row = rect->y / store->side; row <= (rect->y + rect->h - 1) / store->side; row++)
        for (int32_t col = rect->x / store->side;
             col <= (rect->x + rect->w - 1) / store->side && rc == 0; col++)
            rc = read_cell(store, (uint32_t)row * (uint32_t)store->cols + (uint32_t)col, rect, out,
                           row_bytes, err);
    return rc;
}
