/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A compressed block is decoded completely into memory of this reader and copied from there, or
 * two blocks at once, or the only block, are copied row by row while they are decoded: its users
 * (block_cache.c, tiles of whole blocks) read a block once. Uncompressed blocks are read
 * in runs of rows, however large a block is, and only the requested columns if these are few. */
#include "pipeline/raster/block_reader_inside.h"

#include "pipeline/codec/predictor.h"
#include "pipeline/codec/unpredict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- life ------------------------------------------------------------------------------------ */

static int create(struct pb_block_reader *reader, uint64_t directory, struct pb_err *err)
{
    struct pb_tiff_directory dir;
    struct pb_tiff_file *file = &reader->file;
    uint64_t first = 0;
    int rc = pb_tiff_read_magic(file, &first);
    if (rc == 0)
        rc = pb_tiff_read_directory(file, directory, 1, &dir);
    if (rc == 0)
        rc = pb_block_layout_read(file, &dir, &reader->layout);
    if (rc < 0)
        return rc;
    return pb_block_decoder_init(&reader->decoder, &reader->layout, err);
}

int pb_block_reader_create(const struct pb_file_part *part, const char *name, uint64_t directory,
                           struct pb_err *err, struct pb_block_reader **out_reader)
{
    struct pb_block_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for a decoder");
    reader->file = (struct pb_tiff_file){.part = *part, .name = name, .err = err};
    int rc = create(reader, directory, err);
    if (rc < 0) {
        pb_block_reader_destroy(reader);
        reader = NULL;
    }
    if (rc == 0 || rc == -ENOTSUP)
        *out_reader = reader;
    return rc == -ENOTSUP ? 0 : rc;
}

void pb_block_reader_destroy(struct pb_block_reader *reader)
{
    if (reader == NULL)
        return;
    pb_block_decoder_fini(&reader->decoder);
    free(reader);
}

bool pb_block_reader_decodes(const struct pb_block_reader *reader)
{
    const struct pb_decode *decode = reader->decoder.decode;
    return pb_block_layout_is_plain(&reader->layout) && (decode == NULL || !decode->verifies_only);
}

const struct pb_block_layout *pb_block_reader_layout(const struct pb_block_reader *reader)
{
    return &reader->layout;
}

uint64_t pb_block_reader_bytes(const struct pb_block_reader *reader)
{
    return sizeof *reader + pb_block_decoder_bytes(&reader->decoder);
}

uint64_t pb_block_reader_spared_bytes(const struct pb_block_reader *reader)
{
    return pb_block_decoder_spared_bytes(&reader->decoder);
}

/* --- a block --------------------------------------------------------------------------------- */

static int rows_in_image(const struct pb_block_layout *l, uint32_t row)
{
    int64_t left = l->height - (int64_t)row * l->block_h;
    return left < l->block_h ? (int)left : (int)l->block_h;
}

static void unpredict(const struct pb_block_reader *reader, unsigned char *row, size_t n_px,
                      unsigned char *temp)
{
    const struct pb_block_layout *l = &reader->layout;
    size_t parts = pb_block_layout_is_complex(l) ? 2 : 1; /* parts of a sample */
    pb_unpredict_row(pb_block_layout_predictor(l), l->bits / 8 / parts, pb_block_layout_swaps(l),
                     row, n_px, (l->planar ? 1 : (size_t)l->bands) * parts, temp);
}

static bool is_by_band(const struct pb_block_reader *reader, const struct pb_block_target *target,
                       const struct pb_block *block)
{
    return block->part.x == (int64_t)block->col * reader->layout.block_w &&
           pb_block_is_by_band(target, block->plane);
}

/* Copies rows of a block in which the predictor is not undone. */
static void take_bands(const struct pb_block_reader *reader, const struct pb_block_target *target,
                       const struct pb_block *block, const unsigned char *pixels)
{
    const struct pb_block_layout *l = &reader->layout;
    const struct pb_rect *p = &block->part;
    pixels += (size_t)(p->y - (int64_t)block->row * l->block_h) * l->row_bytes;
    for (int32_t y = 0; y < p->h; y++)
        pb_block_undo_row(target, block->plane, p->x, p->y + y, p->w,
                          pixels + (size_t)y * l->row_bytes);
}

static int take_decoded(struct pb_block_reader *reader, const struct pb_block_target *target,
                        const struct pb_block *block, const struct pb_block *next)
{
    const struct pb_block_layout *l = &reader->layout;
    const struct pb_rect *p = &block->part;
    size_t px = (l->planar ? 1 : (size_t)l->bands) * (l->bits / 8);
    struct pb_block_buffer *buffer = NULL;
    int rc = pb_block_decode(&reader->decoder, &reader->file, block, next, &buffer);
    if (rc < 0 || target->to == NULL)
        return rc;
    bool is_new = buffer->state != PB_BLOCK_READY;
    if (is_new && is_by_band(reader, target, block)) {
        take_bands(reader, target, block, buffer->decoded);
        return 0;
    }
    int rows = rows_in_image(l, block->row);
    size_t x0 = (size_t)(p->x - (int64_t)block->col * l->block_w);
    int32_t first = (int32_t)(p->y - (int64_t)block->row * l->block_h);
    for (int y = 0; y < rows; y++) { /* a row is copied while it is in the cache */
        unsigned char *row = buffer->decoded + (size_t)y * l->row_bytes;
        if (is_new)
            unpredict(reader, row, l->block_w, reader->decoder.row);
        if (y >= first && y < first + p->h)
            pb_block_copy_row(target, block->plane, p->x, p->y + y - first, p->w, row + x0 * px);
    }
    buffer->state = PB_BLOCK_READY;
    return 0;
}

/* Copies rows of an uncompressed block. */
static int take_stored(struct pb_block_reader *reader, const struct pb_block_target *target,
                       const struct pb_block *block)
{
    const struct pb_block_layout *l = &reader->layout;
    const struct pb_rect *p = &block->part;
    size_t px = (l->planar ? 1 : (size_t)l->bands) * (l->bits / 8);
    size_t x0 = (size_t)(p->x - (int64_t)block->col * l->block_w) * px, some = (size_t)p->w * px;
    bool whole = some >= l->row_bytes / 2; /* reads whole rows */
    uint64_t first = (uint64_t)(p->y - (int64_t)block->row * l->block_h);
    uint64_t at = block->place.offset + first * l->row_bytes;
    int32_t run = whole ? (int32_t)(reader->decoder.decoded_bytes / l->row_bytes) : 1;
    for (int32_t y = 0; y < p->h; y += run) {
        int32_t n = p->h - y < run ? p->h - y : run;
        uint64_t from = at + (uint64_t)y * l->row_bytes + (whole ? 0 : x0);
        int rc = pb_block_read_bytes(&reader->decoder, &reader->file, block, from,
                                     reader->decoder.buffer[0].decoded,
                                     whole ? (uint64_t)n * l->row_bytes : some);
        if (rc < 0)
            return rc;
        for (int32_t i = 0; i < n; i++) {
            unsigned char *row =
                reader->decoder.buffer[0].decoded + (size_t)i * l->row_bytes + (whole ? x0 : 0);
            unpredict(reader, row, (size_t)p->w, reader->decoder.row);
            pb_block_copy_row(target, block->plane, p->x, p->y + y + i, p->w, row);
        }
    }
    return 0;
}

int pb_block_check_stored(const struct pb_block_reader *reader, const struct pb_block *block)
{
    const struct pb_block_layout *l = &reader->layout;
    uint64_t need = pb_block_layout_need(l, block->row);
    bool single = !l->tiled && l->down == 1;
    if (block->place.bytes < need && !single)
        return pb_block_damaged(&reader->decoder, &reader->file, block, pb_decode_short);
    if (block->place.offset > reader->file.part.bytes ||
        need > reader->file.part.bytes - block->place.offset)
        return PB_TIFF_FAIL(&reader->file, PB_E_INPUT_TRUNCATED,
                            "strip or tile %llu at byte %llu reaches past the end of the file "
                            "(%llu bytes)",
                            (unsigned long long)block->index,
                            (unsigned long long)block->place.offset,
                            (unsigned long long)reader->file.part.bytes);
    return 0;
}

static int take_block(struct pb_block_reader *reader, const struct pb_block_target *target,
                      const struct pb_block *block, const struct pb_block *next)
{
    if (block->place.bytes == 0) {
        if (target->to != NULL)
            pb_block_fill_part(target, block->plane, &block->part);
        return 0;
    }
    if (reader->decoder.decode == NULL) {
        int rc = pb_block_check_stored(reader, block);
        return rc < 0 || target->to == NULL ? rc : take_stored(reader, target, block);
    }
    return take_decoded(reader, target, block, next);
}

/* --- blocks below a rectangle ----------------------------------------------------------------- */

static int32_t min_px(int64_t a, int64_t b)
{
    return (int32_t)(a < b ? a : b);
}

/* Finds the block of `plane` that contains the pixel x, y, and its part of the rectangle. */
static int block_at(const struct pb_block_reader *reader, const struct pb_rect *r, uint32_t plane,
                    int32_t x, int32_t y, struct pb_block *out)
{
    const struct pb_block_layout *l = &reader->layout;
    struct pb_block b = {
        .plane = plane, .col = (uint32_t)x / l->block_w, .row = (uint32_t)y / l->block_h};
    b.part.x = x;
    b.part.y = y;
    b.part.w = min_px((int64_t)(b.col + 1) * l->block_w - x, r->x + r->w - x);
    b.part.h = min_px((int64_t)(b.row + 1) * l->block_h - y, r->y + r->h - y);
    b.index = ((uint64_t)plane * l->down + b.row) * l->across + b.col;
    *out = b;
    return pb_block_layout_place(l, &reader->file, b.index, &out->place);
}

/* Returns the first wanted plane from `plane` on, or the count of planes. */
static uint32_t wanted_plane(const struct pb_block_reader *reader,
                             const struct pb_block_target *target, uint32_t plane)
{
    uint32_t planes = reader->layout.planar ? (uint32_t)reader->layout.bands : 1;
    while (plane < planes && !pb_block_wants_plane(target, plane))
        plane++;
    return plane;
}

/* Steps to the next block: along the row, then down, then by plane. Returns 1, or 0 after the
 * last block. */
static int block_after(const struct pb_block_reader *reader, const struct pb_block_target *target,
                       const struct pb_block *block, struct pb_block *out)
{
    const struct pb_rect *r = target->rect, *p = &block->part;
    uint32_t planes = reader->layout.planar ? (uint32_t)reader->layout.bands : 1;
    uint32_t plane = block->plane;
    int32_t x = p->x + p->w, y = p->y;
    if (x == r->x + r->w) {
        x = r->x;
        y += p->h;
    }
    if (y == r->y + r->h) {
        y = r->y;
        plane = wanted_plane(reader, target, plane + 1);
    }
    if (plane >= planes)
        return 0;
    int rc = block_at(reader, r, plane, x, y, out);
    return rc < 0 ? rc : 1;
}

/* Finds the first block of the next read, in the same planes. An invalid place is reported by
 * that read, not here. */
static bool expected_block(struct pb_block_reader *reader, uint32_t plane, struct pb_block *out)
{
    const struct pb_rect *r = &reader->expected;
    struct pb_err *told = reader->file.err, quiet = {0};
    reader->file.err = &quiet;
    bool known = r->w > 0 && block_at(reader, r, plane, r->x, r->y, out) == 0;
    reader->file.err = told;
    return known;
}

static int take_blocks(struct pb_block_reader *reader, const struct pb_block_target *target)
{
    uint32_t planes = reader->layout.planar ? (uint32_t)reader->layout.bands : 1;
    uint32_t plane = wanted_plane(reader, target, 0);
    struct pb_block block, next;
    if (plane >= planes)
        return 0;
    int rc = block_at(reader, target->rect, plane, target->rect->x, target->rect->y, &block);
    rc = rc < 0 ? rc : 1;
    while (rc == 1) {
        rc = block_after(reader, target, &block, &next);
        bool known = rc == 1 || (rc == 0 && expected_block(reader, plane, &next));
        int taken = rc < 0 ? rc : take_block(reader, target, &block, known ? &next : NULL);
        if (taken < 0)
            return taken;
        block = next;
    }
    return rc;
}

static int take_all(struct pb_block_reader *reader, const struct pb_block_target *target,
                    struct pb_err *err)
{
    reader->file.err = err;
    int rc = pb_block_decoder_take_memory(&reader->decoder, err);
    rc = rc ? rc : take_blocks(reader, target);
    reader->file.err = NULL;
    return rc;
}

bool pb_block_reader_is_ahead(const struct pb_block_reader *reader)
{
    return reader->decoder.n_buffers > 1;
}

void pb_block_reader_expect(struct pb_block_reader *reader, const struct pb_rect *rect)
{
    reader->expected = *rect;
}

static void fill_mask(const struct pb_block_target *target)
{
    const struct pb_window *to = target->to;
    if (to->mask != NULL && target->alpha_band == 0)
        for (size_t y = 0; y < (size_t)target->rect->h; y++)
            memset(to->mask + y * to->mask_row_bytes, 255, (size_t)target->rect->w);
}

int pb_block_reader_check(struct pb_block_reader *reader, const struct pb_rect *rect,
                          struct pb_err *err)
{
    const struct pb_block_target target = {.layout = &reader->layout, .rect = rect};
    return take_all(reader, &target, err);
}

/* --- blocks through windows ------------------------------------------------------------------- */

/* A block that is decoded. */
struct lane {
    bool is_busy;
    unsigned target;
    struct pb_block block;
    int32_t row; /* next row of the block */
    size_t at;   /* offset of this row in the window */
};

struct two {
    struct pb_block_reader *reader;
    const struct pb_block_target *target;
    struct pb_read_result *result; /* results of the targets */
    unsigned n;
    unsigned current; /* number of the target whose blocks are started */
    bool is_begun;    /* true if `block` is its last started block; false: no block is started */
    struct pb_block block;
    struct lane lane[2];
};

/* Finds the next block of the current target. Returns 1, or 0 after the last one. */
static int next_of_target(const struct two *two, struct pb_block *out)
{
    const struct pb_block_target *target = &two->target[two->current];
    const uint32_t planes = two->reader->layout.planar ? (uint32_t)two->reader->layout.bands : 1;
    const uint32_t plane = wanted_plane(two->reader, target, 0);
    if (two->is_begun)
        return block_after(two->reader, target, &two->block, out);
    if (plane >= planes)
        return 0;
    int rc = block_at(two->reader, target->rect, plane, target->rect->x, target->rect->y, out);
    return rc < 0 ? rc : 1;
}

/* Steps to the next stored block of the targets that have not failed; fills those that are not
 * stored. Returns false after the last one. */
static bool next_block(struct two *two)
{
    for (; two->current < two->n; two->current++, two->is_begun = false) {
        struct pb_read_result *result = &two->result[two->current];
        struct pb_block next;
        int rc = result->rc < 0 ? 0 : 1;
        two->reader->file.err = &result->err;
        while (rc == 1 && (rc = next_of_target(two, &next)) == 1) {
            two->is_begun = true;
            two->block = next;
            if (next.place.bytes > 0)
                return true;
            pb_block_fill_part(&two->target[two->current], next.plane, &next.part);
        }
        result->rc = rc < 0 ? rc : result->rc;
    }
    return false;
}

/* Starts the next block in a free lane. */
static void start_next(struct two *two, unsigned i)
{
    struct lane *lane = &two->lane[i];
    while (!lane->is_busy && next_block(two)) {
        struct pb_read_result *result = &two->result[two->current];
        result->rc =
            pb_block_start_window(&two->reader->decoder, &two->reader->file, &two->block, i);
        *lane = (struct lane){result->rc == 0, two->current, two->block, 0, 0};
    }
}

/* Copies the whole rows of a lane's window, which has `bytes` bytes. */
static void take_rows(struct two *two, unsigned i, size_t bytes)
{
    const struct pb_block_reader *reader = two->reader;
    const struct pb_block_layout *l = &reader->layout;
    const size_t px = (l->planar ? 1 : (size_t)l->bands) * (l->bits / 8);
    struct lane *lane = &two->lane[i];
    const struct pb_rect *part = &lane->block.part;
    const size_t x = (size_t)(part->x - (int64_t)lane->block.col * l->block_w);
    const int32_t y = (int32_t)(part->y - (int64_t)lane->block.row * l->block_h);
    const unsigned char *window = pb_block_window(&reader->decoder, i);
    const struct pb_block_target *target = &two->target[lane->target];
    const bool by_band = is_by_band(reader, target, &lane->block);
    unsigned char *row = pb_block_window_row(&reader->decoder, 0);
    for (; lane->row < y + part->h && bytes - lane->at >= l->row_bytes; lane->row++) {
        const int32_t to = part->y + lane->row - y;
        if (lane->row >= y && by_band) {
            pb_block_undo_row(target, lane->block.plane, part->x, to, part->w, window + lane->at);
        } else if (lane->row >= y) {
            memcpy(row, window + lane->at, (size_t)l->row_bytes);
            unpredict(reader, row, l->block_w, pb_block_window_row(&reader->decoder, 1));
            pb_block_copy_row(target, lane->block.plane, part->x, to, part->w, row + x * px);
        }
        lane->at += (size_t)l->row_bytes;
    }
    if (lane->row == y + part->h)
        lane->at = bytes; /* the rest is not needed */
}

/* Decodes until a block has ended or a window is full. */
static void decode_part(struct two *two)
{
    const struct pb_block_decoder *d = &two->reader->decoder;
    struct pb_decode_part part;
    unsigned i;
    int rc = d->decode->next_part(d->context, &i, &part);
    struct lane *lane = &two->lane[i];
    struct pb_read_result *result = &two->result[lane->target];
    two->reader->file.err = &result->err;
    if (rc == 0)
        take_rows(two, i, part.bytes);
    else if (result->rc == 0)
        result->rc = pb_block_damaged(d, &two->reader->file, &lane->block, part.why);
    if (!part.ended) {
        lane->at -= d->decode->slide(d->context, i, lane->at);
        return;
    }
    lane->is_busy = false;
    start_next(two, i);
}

void pb_block_reader_read_two(struct pb_block_reader *reader, const struct pb_block_target *target,
                              unsigned n, struct pb_read_result *result)
{
    struct two two = {.reader = reader, .target = target, .n = n, .result = result};
    for (unsigned k = 0; k < n; k++) {
        fill_mask(&target[k]);
        result[k].rc = pb_block_decoder_take_windows(&reader->decoder, &result[k].err);
    }
    start_next(&two, 0);
    start_next(&two, 1);
    while (two.lane[0].is_busy || two.lane[1].is_busy)
        decode_part(&two);
    reader->file.err = NULL;
}

/* True for the first read of an image that is one block. A window needs a fraction of the block's
 * memory, which the kernel would zero. Later reads decode the block into memory and keep it. */
static bool is_read_once(const struct pb_block_reader *reader, const struct pb_block_target *target)
{
    const struct pb_block_layout *l = &reader->layout;
    const struct pb_block_decoder *d = &reader->decoder;
    return d->has_windows && d->n_buffers == 1 && d->windows == NULL &&
           d->buffer[0].decoded == NULL && target->rect->w == l->width &&
           target->rect->h == l->height;
}

int pb_block_reader_read(struct pb_block_reader *reader, const struct pb_block_target *target,
                         struct pb_err *err)
{
    if (is_read_once(reader, target)) {
        struct pb_read_result result = {.rc = 0};
        pb_block_reader_read_two(reader, target, 1, &result);
        if (result.rc < 0 && err != NULL && err->code == PB_OK)
            *err = result.err;
        return result.rc;
    }
    fill_mask(target);
    return take_all(reader, target, err);
}
