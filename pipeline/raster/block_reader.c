/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A compressed block is decoded into memory of this reader and copied from there, whole: its users
 * (block_cache.c, tiles of whole blocks) read a block once. Uncompressed blocks are read in runs of
 * rows, however large a block is, and only the requested columns when those are few. */
#include "pipeline/raster/block_reader.h"

#include "pipeline/codec/decode.h"
#include "pipeline/codec/decode_inflate.h"
#include "pipeline/device/mem.h"
#include "pipeline/codec/predictor.h"
#include "pipeline/codec/unpredict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPRESSION_NONE = 1, RUN_BYTES = 1 << 20, FEED_BYTES = 1 << 16 };

struct pb_block_reader {
    struct pb_tiff_file file;
    struct pb_block_layout layout;
    const struct pb_decode *decode; /* NULL: stored as it is */
    void *context;
    unsigned char *decoded, *stored, *row;
    uint64_t decoded_bytes, stored_bytes;
    uint64_t held; /* the block that lies in `decoded`, plus 1 */
};

/* One block of one plane, and the part of rect that lies in it. */
struct block {
    uint64_t index;
    uint32_t plane, col, row;
    struct pb_block_place place;
    struct pb_rect part; /* image coordinates */
};

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
    reader->decode = pb_decode_of(reader->layout.compression);
    if (reader->decode == NULL)
        return reader->layout.compression == COMPRESSION_NONE ? 0 : -ENOTSUP;
    if (reader->layout.block_bytes > UINT32_MAX)
        return -ENOTSUP;
    if (reader->decode->create(&reader->context) < 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for a decoder");
    return 0;
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
    if (reader->decode != NULL)
        reader->decode->destroy(reader->context);
    pb_mem_free(PB_MEM_HOST, reader->decoded, reader->decoded_bytes);
    pb_mem_free(PB_MEM_HOST, reader->stored, reader->stored_bytes);
    free(reader);
}

bool pb_block_reader_decodes(const struct pb_block_reader *reader)
{
    return pb_block_layout_is_plain(&reader->layout) &&
           (reader->decode == NULL || !reader->decode->verifies_only);
}

const struct pb_block_layout *pb_block_reader_layout(const struct pb_block_reader *reader)
{
    return &reader->layout;
}

/* Bytes of `decoded` without the row behind it. */
static uint64_t scratch_bytes(const struct pb_block_reader *reader)
{
    const struct pb_block_layout *l = &reader->layout;
    if (reader->decode != NULL && reader->decode->verifies_only)
        return 0;
    if (reader->decode != NULL || l->block_bytes <= RUN_BYTES)
        return l->block_bytes;
    return l->row_bytes < RUN_BYTES ? RUN_BYTES : l->row_bytes;
}

uint64_t pb_block_reader_bytes(const struct pb_block_reader *reader)
{
    uint64_t bytes = sizeof *reader + scratch_bytes(reader) + reader->layout.row_bytes;
    if (reader->decode != NULL)
        bytes += reader->layout.stored_max + reader->decode->context_bytes;
    return bytes;
}

static int take_memory(struct pb_block_reader *reader, struct pb_err *err)
{
    void *memory = NULL;
    if (reader->decoded != NULL)
        return 0;
    uint64_t bytes = scratch_bytes(reader);
    int rc = pb_mem_alloc(PB_MEM_HOST, bytes + reader->layout.row_bytes, err, &memory);
    if (rc < 0)
        return rc;
    reader->decoded = memory; /* pages of zeros */
    reader->decoded_bytes = bytes + reader->layout.row_bytes;
    reader->row = reader->decoded + bytes;
    if (reader->decode == NULL)
        return 0;
    rc = pb_mem_alloc(PB_MEM_HOST, reader->layout.stored_max, err, &memory);
    if (rc < 0)
        return rc;
    reader->stored = memory;
    reader->stored_bytes = reader->layout.stored_max;
    return 0;
}

/* --- a block --------------------------------------------------------------------------------- */

static int damaged(const struct pb_block_reader *reader, const struct block *block, const char *why)
{
    const struct pb_block_layout *l = &reader->layout;
    char plane[24] = "";
    if (l->planar)
        (void)snprintf(plane, sizeof plane, "band %lu, ", (unsigned long)block->plane + 1);
    return PB_TIFF_FAIL(
        &reader->file, PB_E_INPUT_DAMAGED,
        "%s%s %llu (column %lu, row %lu; %llu bytes at byte %llu) does not decode: %s: %s", plane,
        l->tiled ? "tile" : "strip", (unsigned long long)block->index, (unsigned long)block->col,
        (unsigned long)block->row, (unsigned long long)block->place.bytes,
        (unsigned long long)block->place.offset,
        reader->decode != NULL ? reader->decode->name : "uncompressed", why);
}

static int read_bytes(const struct pb_block_reader *reader, const struct block *block,
                      uint64_t offset, void *out, uint64_t bytes)
{
    char what[80];
    (void)snprintf(what, sizeof what, "%s %llu of the image",
                   reader->layout.tiled ? "tile" : "strip", (unsigned long long)block->index);
    return pb_tiff_read_at(&reader->file, offset, out, (size_t)bytes, what);
}

/* Decodes a stored block; the samples are still as the file has them. */
static int decode_block(struct pb_block_reader *reader, const struct block *block)
{
    const struct pb_block_layout *l = &reader->layout;
    uint64_t need = pb_block_layout_need(l, block->row), bytes = block->place.bytes;
    const char *why = "";
    if (bytes > reader->stored_bytes)
        bytes = reader->stored_bytes; /* far more than a block of this size can be */
    reader->held = 0;
    int rc = read_bytes(reader, block, block->place.offset, reader->stored, bytes);
    if (rc < 0)
        return rc;
    rc = reader->decode->run(reader->context, reader->stored, (size_t)bytes, reader->decoded,
                             (size_t)need, (size_t)l->block_bytes, &why);
    return rc < 0 ? damaged(reader, block, why) : 0;
}

static int rows_in_image(const struct pb_block_layout *l, uint32_t row)
{
    int64_t left = l->height - (int64_t)row * l->block_h;
    return left < l->block_h ? (int)left : (int)l->block_h;
}

static void unpredict(const struct pb_block_reader *reader, unsigned char *row, size_t n_px)
{
    const struct pb_block_layout *l = &reader->layout;
    size_t parts = pb_block_layout_is_complex(l) ? 2 : 1; /* of a sample */
    pb_unpredict_row(reader->decode == NULL || l->compression == 32773 ? 1 : l->predictor,
                     l->bits / 8 / parts, l->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__),
                     row, n_px, (l->planar ? 1 : (size_t)l->bands) * parts, reader->row);
}

static int take_decoded(struct pb_block_reader *reader, const struct pb_block_target *target,
                        const struct block *block)
{
    const struct pb_block_layout *l = &reader->layout;
    const struct pb_rect *p = &block->part;
    size_t px = (l->planar ? 1 : (size_t)l->bands) * (l->bits / 8);
    int rc = reader->held == block->index + 1 ? 0 : decode_block(reader, block);
    if (rc < 0)
        return rc;
    bool is_new = reader->held != block->index + 1;
    int rows = rows_in_image(l, block->row);
    size_t x0 = (size_t)(p->x - (int64_t)block->col * l->block_w);
    int32_t first = (int32_t)(p->y - (int64_t)block->row * l->block_h);
    for (int y = 0; y < rows; y++) { /* a row is copied while it is in the cache */
        unsigned char *row = reader->decoded + (size_t)y * l->row_bytes;
        if (is_new)
            unpredict(reader, row, l->block_w);
        if (y >= first && y < first + p->h)
            pb_block_copy_row(target, block->plane, p->x, p->y + y - first, p->w, row + x0 * px);
    }
    reader->held = block->index + 1;
    return 0;
}

/* Rows of a block that is stored as it is. */
static int take_stored(struct pb_block_reader *reader, const struct pb_block_target *target,
                       const struct block *block)
{
    const struct pb_block_layout *l = &reader->layout;
    const struct pb_rect *p = &block->part;
    size_t px = (l->planar ? 1 : (size_t)l->bands) * (l->bits / 8);
    size_t x0 = (size_t)(p->x - (int64_t)block->col * l->block_w) * px, some = (size_t)p->w * px;
    bool whole = some >= l->row_bytes / 2; /* in one read, with the columns beside them */
    uint64_t first = (uint64_t)(p->y - (int64_t)block->row * l->block_h);
    uint64_t at = block->place.offset + first * l->row_bytes;
    int32_t run = whole ? (int32_t)(scratch_bytes(reader) / l->row_bytes) : 1;
    for (int32_t y = 0; y < p->h; y += run) {
        int32_t n = p->h - y < run ? p->h - y : run;
        uint64_t from = at + (uint64_t)y * l->row_bytes + (whole ? 0 : x0);
        int rc = read_bytes(reader, block, from, reader->decoded,
                            whole ? (uint64_t)n * l->row_bytes : some);
        if (rc < 0)
            return rc;
        for (int32_t i = 0; i < n; i++) {
            unsigned char *row = reader->decoded + (size_t)i * l->row_bytes + (whole ? x0 : 0);
            unpredict(reader, row, (size_t)p->w);
            pb_block_copy_row(target, block->plane, p->x, p->y + y + i, p->w, row);
        }
    }
    return 0;
}

/* A single strip that is stored as it is may give any length for itself, as far as libtiff goes. */
static int check_stored(const struct pb_block_reader *reader, const struct block *block)
{
    const struct pb_block_layout *l = &reader->layout;
    uint64_t need = pb_block_layout_need(l, block->row);
    bool single = !l->tiled && l->down == 1;
    if (block->place.bytes < need && !single)
        return damaged(reader, block, pb_decode_short);
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
                      const struct block *block)
{
    if (block->place.bytes == 0) {
        if (target->to != NULL)
            pb_block_fill_part(target, block->plane, &block->part);
        return 0;
    }
    if (reader->decode == NULL) {
        int rc = check_stored(reader, block);
        return rc < 0 || target->to == NULL ? rc : take_stored(reader, target, block);
    }
    return target->to != NULL ? take_decoded(reader, target, block) : decode_block(reader, block);
}

/* --- blocks below a rectangle ----------------------------------------------------------------- */

static int32_t min_px(int64_t a, int64_t b)
{
    return (int32_t)(a < b ? a : b);
}

static int take_plane(struct pb_block_reader *reader, const struct pb_block_target *target,
                      uint32_t plane)
{
    const struct pb_block_layout *l = &reader->layout;
    const struct pb_rect *r = target->rect;
    struct block b = {.plane = plane};
    struct pb_rect *p = &b.part;
    for (p->y = r->y; p->y < r->y + r->h; p->y += p->h) {
        b.row = (uint32_t)p->y / l->block_h;
        p->h = min_px((int64_t)(b.row + 1) * l->block_h - p->y, r->y + r->h - p->y);
        for (p->x = r->x; p->x < r->x + r->w; p->x += p->w) {
            b.col = (uint32_t)p->x / l->block_w;
            p->w = min_px((int64_t)(b.col + 1) * l->block_w - p->x, r->x + r->w - p->x);
            b.index = ((uint64_t)plane * l->down + b.row) * l->across + b.col;
            int rc = pb_block_layout_place(l, &reader->file, b.index, &b.place);
            if (rc == 0)
                rc = take_block(reader, target, &b);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int take_planes(struct pb_block_reader *reader, const struct pb_block_target *target,
                       struct pb_err *err)
{
    uint32_t planes = reader->layout.planar ? (uint32_t)reader->layout.bands : 1;
    reader->file.err = err;
    int rc = take_memory(reader, err);
    for (uint32_t plane = 0; rc == 0 && plane < planes; plane++) {
        if (pb_block_wants_plane(target, plane))
            rc = take_plane(reader, target, plane);
    }
    reader->file.err = NULL;
    return rc;
}

int pb_block_reader_read(struct pb_block_reader *reader, const struct pb_block_target *target,
                         struct pb_err *err)
{
    const struct pb_window *to = target->to;
    if (to->mask != NULL && target->alpha_band == 0)
        for (size_t y = 0; y < (size_t)target->rect->h; y++)
            memset(to->mask + y * to->mask_row_bytes, 255, (size_t)target->rect->w);
    return take_planes(reader, target, err);
}

int pb_block_reader_check(struct pb_block_reader *reader, const struct pb_rect *rect,
                          struct pb_err *err)
{
    const struct pb_block_target target = {.layout = &reader->layout, .rect = rect};
    return take_planes(reader, &target, err);
}

int pb_block_reader_stored(const struct pb_block_reader *reader, uint32_t col, uint32_t row,
                           void *out, size_t capacity, struct pb_err *err, size_t *out_bytes)
{
    const struct pb_block_layout *l = &reader->layout;
    struct pb_tiff_file file = reader->file;
    struct pb_block_place place;
    file.err = err;
    int rc = pb_block_layout_place(l, &file, (uint64_t)row * l->across + col, &place);
    bool fits = rc == 0 && place.bytes > 0 && place.bytes <= capacity;
    if (fits)
        rc = pb_tiff_read_at(&file, place.offset, out, (size_t)place.bytes, "a block of the image");
    if (rc == 0)
        *out_bytes = fits ? (size_t)place.bytes : 0;
    return rc;
}

/* --- strips that are not held ---------------------------------------------------------------- */

static int inflate_block(const struct pb_block_reader *reader, const struct block *block,
                         struct pb_inflate *inflate)
{
    unsigned char part[FEED_BYTES];
    const char *why = pb_decode_short;
    int ended = 0;
    for (uint64_t at = 0; ended == 0 && at < block->place.bytes; at += sizeof part) {
        uint64_t left = block->place.bytes - at;
        size_t n = left < sizeof part ? (size_t)left : sizeof part;
        int rc = read_bytes(reader, block, block->place.offset + at, part, n);
        if (rc < 0)
            return rc;
        ended = pb_inflate_feed(inflate, part, n, pb_block_layout_need(&reader->layout, block->row),
                                reader->layout.block_bytes, &why);
    }
    return ended > 0 ? 0 : damaged(reader, block, ended == 0 ? pb_decode_short : why);
}

static int check_long(const struct pb_block_reader *reader, const struct block *block)
{
    struct pb_inflate *inflate = NULL;
    if (pb_inflate_create(&inflate) < 0)
        return pb_fail(reader->file.err, PB_E_MEMORY, "out of memory for a decoder");
    int rc = inflate_block(reader, block, inflate);
    pb_inflate_destroy(inflate);
    return rc;
}

int pb_block_reader_check_long(struct pb_block_reader *reader, struct pb_err *err)
{
    const struct pb_block_layout *l = &reader->layout;
    uint64_t n = (uint64_t)l->across * l->down * (l->planar ? (uint64_t)l->bands : 1);
    int rc = 0;
    reader->file.err = err;
    for (uint64_t i = 0; rc == 0 && reader->decode == &pb_decode_deflate && i < n; i++) {
        struct block block = {.index = i, .plane = (uint32_t)(i / l->across / l->down)};
        block.row = (uint32_t)(i / l->across % l->down);
        block.col = (uint32_t)(i % l->across);
        rc = pb_block_layout_place(l, &reader->file, i, &block.place);
        if (rc == 0 && block.place.bytes > 0)
            rc = check_long(reader, &block);
    }
    reader->file.err = NULL;
    return rc;
}
