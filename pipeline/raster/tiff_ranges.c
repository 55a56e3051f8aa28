/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Rules for blocks whose bytes are in a hole of the file:
 *
 * - A compressed block that is completely in a hole was never written: no codec's output is a
 *   page of zeros. A block that is partly in a hole was not written in full if its codec has no
 *   check of its own (LZW, PackBits, JPEG, ...): zeros would decode to pixels. For codecs with a
 *   check (deflate, zstd, LZMA, LERC) the decoder detects it.
 * - An uncompressed block of zeros that 'cp --sparse' stored as a hole is valid. It was never
 *   written if its space is reserved: copying makes holes, preallocation reserves space. */
#include "pipeline/raster/tiff_ranges.h"

#include "config/limits_config.h"
#include "pipeline/io/file_holes.h"

#define CHUNK_VALUES 512 /* values of an offset array read at once */

/* Iterator over an array of integers, read in chunks. */
struct cursor {
    const struct pb_tiff_field *field;
    uint64_t next, first;
    size_t n;
    unsigned char raw[CHUNK_VALUES * 8];
};

static int cursor_value(const struct pb_tiff_file *file, struct cursor *cursor, uint64_t *out_value)
{
    unsigned each = pb_tiff_type_bytes(cursor->field->type);
    if (cursor->next - cursor->first >= cursor->n) {
        uint64_t left = cursor->field->count - cursor->next;
        cursor->first = cursor->next;
        cursor->n = left < CHUNK_VALUES ? (size_t)left : CHUNK_VALUES;
        int rc = pb_tiff_read_at(file, cursor->field->at + cursor->first * each, cursor->raw,
                                 cursor->n * each, "the list of blocks");
        if (rc < 0)
            return rc;
    }
    *out_value = pb_tiff_number(file, cursor->raw + (cursor->next++ - cursor->first) * each, each);
    return 0;
}

/* Bytes that an uncompressed single strip needs: libtiff ignores its tag, too. */
static uint64_t strip_need(const struct pb_tiff_header *header)
{
    uint64_t samples = (uint64_t)header->width * (uint64_t)(header->planar ? 1 : header->bands);
    return (samples * header->bits + 7) / 8 * (uint64_t)header->height;
}

/* State of an iteration over the blocks of one directory. */
struct walk {
    const struct pb_tiff_file *file;
    struct pb_tiff_header *header;
    struct pb_file_holes holes;
    uint64_t end;                              /* end of the last byte range */
    uint64_t outside;                          /* blocks that extend past the end of the file */
    uint64_t missing, first_missing, first_at; /* blocks that were not written in full */
};

/* Returns true if zeros in the middle of a stored block make its decoder fail. */
static bool has_check(uint16_t compression)
{
    return compression == 8 || compression == 32946 ||     /* deflate */
           compression == 34925 || compression == 50000 || /* LZMA, zstd */
           compression == 34887;                           /* LERC */
}

static void check_written(struct walk *walk, uint64_t i, uint64_t offset, uint64_t bytes)
{
    uint16_t compression = walk->header->compression;
    if (!walk->holes.any || offset + bytes > walk->file->part.bytes)
        return;
    struct pb_holes_found found = pb_file_holes_look(&walk->holes, offset, bytes, compression == 1);
    walk->header->n_unwritten += !found.data;
    bool missing = compression == 1         ? found.reserved
                   : has_check(compression) ? !found.data
                                            : found.hole;
    if (!missing || walk->missing++ > 0)
        return;
    walk->first_missing = i;
    walk->first_at = offset;
}

/* Checks one block's byte range against the file. */
static int check_range(struct walk *walk, uint64_t i, uint64_t offset, uint64_t bytes)
{
    struct pb_tiff_header *header = walk->header;
    if (bytes == 0) {
        header->n_sparse++;
        return 0;
    }
    if (offset < 8 || offset > INT64_MAX || bytes > INT64_MAX - offset)
        return PB_TIFF_FAIL(walk->file, PB_E_INPUT_DAMAGED,
                            "block %llu of the image has an impossible place: "
                            "byte %llu, length %llu",
                            (unsigned long long)i, (unsigned long long)offset,
                            (unsigned long long)bytes);
    if (!header->tiled && header->n_blocks == 1 && header->compression == 1)
        bytes = strip_need(header);
    else if (bytes > header->stored_block_max)
        header->stored_block_max = bytes;
    if (offset + bytes > walk->end) {
        walk->end = offset + bytes;
        walk->outside += walk->end > walk->file->part.bytes;
    }
    check_written(walk, i, offset, bytes);
    return 0;
}

static int check_lists(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                       const struct pb_tiff_header *header)
{
    if (!dir->offsets.there)
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED, "the file has no addresses of its pixels");
    if (dir->offsets.count < header->n_blocks ||
        (dir->counts.there && dir->counts.count < header->n_blocks))
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED,
                            "the file declares %llu blocks of pixels but lists the place of %llu",
                            (unsigned long long)header->n_blocks,
                            (unsigned long long)(dir->offsets.count < header->n_blocks
                                                     ? dir->offsets.count
                                                     : dir->counts.count));
    return 0;
}

/* Reports the problems that were found. */
static int check_found(const struct walk *walk)
{
    const struct pb_tiff_file *file = walk->file;
    const struct pb_tiff_header *header = walk->header;
    if (walk->end > file->part.bytes)
        return PB_TIFF_FAIL(
            file, PB_E_INPUT_TRUNCATED,
            "the file has %llu bytes but its pixels reach to byte %llu: %llu bytes are "
            "missing (at least %llu of %llu blocks)",
            (unsigned long long)file->part.bytes, (unsigned long long)walk->end,
            (unsigned long long)(walk->end - file->part.bytes), (unsigned long long)walk->outside,
            (unsigned long long)header->n_blocks);
    if (walk->missing > 0 && header->n_sparse + header->n_unwritten < header->n_blocks)
        return PB_TIFF_FAIL(
            file, PB_E_INPUT_TRUNCATED,
            "%llu of %llu blocks were never written in full, the first is block %llu at byte %llu: "
            "%s",
            (unsigned long long)walk->missing, (unsigned long long)header->n_blocks,
            (unsigned long long)walk->first_missing, (unsigned long long)walk->first_at,
            header->compression == 1
                ? "space is reserved for it, but nothing was written there (a whole file loses "
                  "that mark by 'cp --sparse=never')"
                : "it is in a hole of the file");
    if (header->stored_block_max > file->limits->max_block_bytes)
        return PB_TIFF_FAIL(file, PB_E_INPUT_LIMIT,
                            "one stored block of the file has %llu bytes; the limit is %llu "
                            "(limits.max_block_bytes)",
                            (unsigned long long)header->stored_block_max,
                            (unsigned long long)file->limits->max_block_bytes);
    return 0;
}

int pb_tiff_check_ranges(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                         struct pb_tiff_header *header)
{
    struct cursor offsets = {.field = &dir->offsets}, counts = {.field = &dir->counts};
    struct walk walk = {.file = file, .header = header};
    if (!dir->offsets.there && header->compression == 6)
        return 0; /* old-style JPEG stores its offset in another tag */
    int rc = check_lists(file, dir, header);
    pb_file_holes_init(&walk.holes, &file->part);
    for (uint64_t i = 0; rc == 0 && i < header->n_blocks; i++) {
        uint64_t offset = 0, bytes = 1;
        rc = cursor_value(file, &offsets, &offset);
        if (rc == 0 && dir->counts.there)
            rc = cursor_value(file, &counts, &bytes);
        if (rc == 0)
            rc = check_range(&walk, i, offset, bytes);
    }
    return rc < 0 ? rc : check_found(&walk);
}
