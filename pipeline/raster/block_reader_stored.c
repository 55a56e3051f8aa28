/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Stored blocks for decoders elsewhere, and verification of strips that are not held in memory. */
#include "pipeline/raster/block_reader_inside.h"

#include "pipeline/codec/decode_inflate.h"

#include <errno.h>

enum { FEED_BYTES = 1 << 16, PLACES_AT_ONCE = 512 };

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

/* --- blocks as they are stored --------------------------------------------------------------- */

static struct pb_block block_of(const struct pb_block_layout *l, uint64_t index)
{
    struct pb_block block = {.index = index, .plane = (uint32_t)(index / l->across / l->down)};
    block.row = (uint32_t)(index / l->across % l->down);
    block.col = (uint32_t)(index % l->across);
    return block;
}

/* Count of bytes that a read of the block fetches. */
static uint64_t read_of(const struct pb_block_reader *reader, uint64_t index, uint64_t stored)
{
    const struct pb_block_layout *l = &reader->layout;
    if (stored == 0)
        return 0;
    if (reader->decoder.decode == NULL)
        return pb_block_layout_need(l, (uint32_t)(index / l->across % l->down));
    return stored < l->stored_max ? stored : l->stored_max;
}

static int list_values(const struct pb_tiff_file *file, const struct pb_tiff_field *field,
                       uint64_t first, size_t n, uint64_t *out)
{
    unsigned char raw[PLACES_AT_ONCE * 8];
    unsigned each = pb_tiff_type_bytes(field->type);
    int rc =
        pb_tiff_read_at(file, field->at + first * each, raw, n * each, "the places of the blocks");
    for (size_t i = 0; i < n && rc == 0; i++)
        out[i] = pb_tiff_number(file, raw + i * each, each);
    return rc;
}

int pb_block_reader_places(const struct pb_block_reader *reader, struct pb_err *err,
                           struct pb_block_place *out_place)
{
    const struct pb_block_layout *l = &reader->layout;
    struct pb_tiff_file file = reader->file;
    uint64_t n = (uint64_t)l->across * l->down * (l->planar ? (uint64_t)l->bands : 1);
    uint64_t offset[PLACES_AT_ONCE], bytes[PLACES_AT_ONCE];
    file.err = err;
    for (uint64_t i = 0; i < n; i += PLACES_AT_ONCE) {
        size_t some = n - i < PLACES_AT_ONCE ? (size_t)(n - i) : PLACES_AT_ONCE;
        int rc = list_values(&file, &l->offsets, i, some, offset);
        rc = rc ? rc : list_values(&file, &l->counts, i, some, bytes);
        if (rc != 0)
            return rc;
        for (size_t j = 0; j < some; j++)
            out_place[i + j] = (struct pb_block_place){offset[j], read_of(reader, i + j, bytes[j])};
    }
    return 0;
}

int pb_block_reader_fetch(const struct pb_block_reader *reader, uint64_t index,
                          const struct pb_block_place *place, uint64_t from, void *out,
                          size_t bytes, struct pb_err *err)
{
    struct pb_block_reader own = *reader; /* copy with its own place for errors */
    struct pb_block block = block_of(&reader->layout, index);
    int rc = 0;
    own.file.err = err;
    block.place = *place;
    if (own.decoder.decode ==
        NULL) { /* `place` has the bytes that are needed, not the bytes that are stored */
        rc = pb_block_layout_place(&own.layout, &own.file, index, &block.place);
        rc = rc ? rc : pb_block_check_stored(&own, &block);
    }
    return rc < 0 ? rc
                  : pb_block_read_bytes(&own.decoder, &own.file, &block, block.place.offset + from,
                                        out, bytes);
}

int pb_block_reader_decode(struct pb_block_reader *reader, uint64_t index, struct pb_err *err,
                           const void **out_data)
{
    struct pb_block block = block_of(&reader->layout, index);
    struct pb_block_buffer *buffer = NULL;
    reader->file.err = err;
    int rc = pb_block_decoder_take_memory(&reader->decoder, err);
    rc = rc ? rc : pb_block_layout_place(&reader->layout, &reader->file, index, &block.place);
    rc = rc ? rc : pb_block_decode(&reader->decoder, &reader->file, &block, NULL, &buffer);
    reader->file.err = NULL;
    if (rc == 0)
        *out_data = buffer->decoded;
    return rc;
}

/* --- strips that are not held ---------------------------------------------------------------- */

static int inflate_block(const struct pb_block_reader *reader, const struct pb_block *block,
                         struct pb_inflate *inflate)
{
    unsigned char part[FEED_BYTES];
    const char *why = pb_decode_short;
    int ended = 0;
    for (uint64_t at = 0; ended == 0 && at < block->place.bytes; at += sizeof part) {
        uint64_t left = block->place.bytes - at;
        size_t n = left < sizeof part ? (size_t)left : sizeof part;
        int rc = pb_block_read_bytes(&reader->decoder, &reader->file, block,
                                     block->place.offset + at, part, n);
        if (rc < 0)
            return rc;
        ended = pb_inflate_feed(inflate, part, n, pb_block_layout_need(&reader->layout, block->row),
                                reader->layout.block_bytes, &why);
    }
    return ended > 0 ? 0
                     : pb_block_damaged(&reader->decoder, &reader->file, block,
                                        ended == 0 ? pb_decode_short : why);
}

static int check_long(const struct pb_block_reader *reader, const struct pb_block *block)
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
    for (uint64_t i = 0; rc == 0 && reader->decoder.decode == &pb_decode_deflate && i < n; i++) {
        struct pb_block block = block_of(l, i);
        rc = pb_block_layout_place(l, &reader->file, i, &block.place);
        if (rc == 0 && block.place.bytes > 0)
            rc = check_long(reader, &block);
    }
    reader->file.err = NULL;
    return rc;
}
