/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tiff_header.h"

#include "pipeline/text_clean.h"
#include "pipeline/tiff_directory.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_VALUES 512                 /* of an offset array read at once */
#define BLOCKS_MAX   (UINT64_C(1) << 27) /* keeps the walk over their places within seconds */

/* A size that must be there, at least 1, at most max: what key of the config says. */
static int read_size(const struct pb_tiff_file *file, const struct pb_tiff_field *field,
                     const char *what, uint64_t otherwise, int32_t max, const char *key,
                     int32_t *out_size)
{
    uint64_t value = 0;
    int rc = pb_tiff_field_or(file, field, otherwise, what, &value);
    if (rc < 0)
        return rc;
    if (value == 0)
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED, "the file declares no %s, or 0", what);
    if (value > (uint64_t)max)
        return PB_TIFF_FAIL(file, PB_E_INPUT_LIMIT,
                            "the file declares %s %llu; the limit is %ld (%s)", what,
                            (unsigned long long)value, (long)max, key);
    *out_size = (int32_t)value;
    return 0;
}

static int read_blocks(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                       struct pb_tiff_header *out)
{
    uint64_t w = (uint64_t)out->width, h = UINT32_MAX;
    out->tiled = dir->tile_w.there;
    int rc = out->tiled ? pb_tiff_field_or(file, &dir->tile_w, 0, "the tile width", &w) : 0;
    if (rc == 0 && out->tiled)
        rc = pb_tiff_field_or(file, &dir->tile_h, 0, "the tile height", &h);
    if (rc == 0 && !out->tiled)
        rc = pb_tiff_field_or(file, &dir->rows, UINT32_MAX, "the rows per strip", &h);
    if (rc < 0)
        return rc;
    if (!out->tiled && h > (uint64_t)out->height)
        h = (uint64_t)out->height;
    if (w == 0 || h == 0)
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED,
                            "the file declares blocks of %llu x %llu pixels", (unsigned long long)w,
                            (unsigned long long)h);
    if (w > INT32_MAX || h > INT32_MAX)
        return PB_TIFF_FAIL(file, PB_E_INPUT_LIMIT,
                            "the file declares blocks of %llu x %llu pixels", (unsigned long long)w,
                            (unsigned long long)h);
    out->block_w = (uint32_t)w;
    out->block_h = (uint32_t)h;
    uint64_t across = ((uint64_t)out->width + w - 1) / w,
             down = ((uint64_t)out->height + h - 1) / h;
    out->n_blocks = across * down * (uint64_t)(out->planar ? out->bands : 1);
    if (out->n_blocks > BLOCKS_MAX)
        return PB_TIFF_FAIL(file, PB_E_INPUT_LIMIT, "the file declares %llu blocks of %llu x %llu",
                            (unsigned long long)out->n_blocks, (unsigned long long)w,
                            (unsigned long long)h);
    out->one_strip = !out->tiled && down == 1 && out->compression != 1 && out->height > 1;
    return 0;
}

/* One decoded block. An uncompressed single strip is taken apart by libtiff and not counted. */
static int check_block_limit(const struct pb_tiff_file *file, const struct pb_tiff_header *header)
{
    if (!header->tiled && header->n_blocks == 1 && header->compression == 1)
        return 0;
    uint64_t sample = header->bits <= 8 ? 1 : (header->bits + 7u) / 8;
    uint64_t samples = (uint64_t)header->block_w * header->block_h;
    uint64_t pixel = sample * (uint64_t)(header->planar ? 1 : header->bands);
    if (samples > file->limits->max_block_bytes / (pixel ? pixel : 1))
        return PB_TIFF_FAIL(
            file, PB_E_INPUT_LIMIT,
            "one %s of the file is %lu x %lu pixels, more than the limit of %llu bytes "
            "(limits.max_block_bytes)",
            header->tiled ? "tile" : "strip", (unsigned long)header->block_w,
            (unsigned long)header->block_h, (unsigned long long)file->limits->max_block_bytes);
    return 0;
}

static int read_shape(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                      struct pb_tiff_header *out)
{
    const struct pb_limits *limits = file->limits;
    uint64_t compression = 1, planar = 1, bits = 1;
    int rc = read_size(file, &dir->width, "width", 0, limits->max_side_px, "limits.max_side_px",
                       &out->width);
    if (rc == 0)
        rc = read_size(file, &dir->height, "height", 0, limits->max_side_px, "limits.max_side_px",
                       &out->height);
    if (rc == 0)
        rc = read_size(file, &dir->bands, "bands", 1, limits->max_bands, "limits.max_bands",
                       &out->bands);
    if (rc == 0)
        rc = pb_tiff_field_or(file, &dir->compression, 1, "the compression", &compression);
    if (rc == 0)
        rc = pb_tiff_field_or(file, &dir->planar, 1, "the planar configuration", &planar);
    if (rc == 0)
        rc = pb_tiff_field_or(file, &dir->bits, 1, "the bits per sample", &bits);
    if (rc < 0)
        return rc;
    if ((uint64_t)out->width * (uint64_t)out->height > limits->max_pixels)
        return PB_TIFF_FAIL(
            file, PB_E_INPUT_LIMIT,
            "the file declares %ld x %ld pixels; the limit is %llu pixels (limits.max_pixels)",
            (long)out->width, (long)out->height, (unsigned long long)limits->max_pixels);
    out->compression = (uint16_t)compression;
    out->planar = planar == 2 && out->bands > 1;
    out->bits = bits > 1024 ? 1024 : (uint32_t)bits;
    rc = read_blocks(file, dir, out);
    return rc < 0 ? rc : check_block_limit(file, out);
}

/* Walks an array of integers in chunks. */
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

/* Bytes an uncompressed single strip really needs: libtiff, too, mistrusts its tag. */
static uint64_t strip_need(const struct pb_tiff_header *header)
{
    uint64_t samples = (uint64_t)header->width * (uint64_t)(header->planar ? 1 : header->bands);
    return (samples * header->bits + 7) / 8 * (uint64_t)header->height;
}

/* Holds one block's byte range against the file; *end grows to the last byte needed. */
static int check_range(const struct pb_tiff_file *file, struct pb_tiff_header *header, uint64_t i,
                       uint64_t offset, uint64_t bytes, uint64_t *end)
{
    if (bytes == 0) {
        header->n_sparse++;
        return 0;
    }
    if (offset < 8 || offset > INT64_MAX || bytes > INT64_MAX - offset)
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED,
                            "block %llu of the image has an impossible place: "
                            "byte %llu, length %llu",
                            (unsigned long long)i, (unsigned long long)offset,
                            (unsigned long long)bytes);
    if (!header->tiled && header->n_blocks == 1 && header->compression == 1)
        bytes = strip_need(header);
    else if (bytes > header->stored_block_max)
        header->stored_block_max = bytes;
    if (offset + bytes > *end)
        *end = offset + bytes;
    return 0;
}

/* Every block of a directory lies inside the file. Fills n_sparse and stored_block_max. */
static int check_ranges(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                        struct pb_tiff_header *header)
{
    struct cursor offsets = {.field = &dir->offsets}, counts = {.field = &dir->counts};
    uint64_t end = 0, outside = 0;
    if (!dir->offsets.there && header->compression == 6)
        return 0; /* old-style JPEG keeps its place elsewhere */
    if (!dir->offsets.there)
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED, "the file does not say where its pixels are");
    if (dir->offsets.count < header->n_blocks ||
        (dir->counts.there && dir->counts.count < header->n_blocks))
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED,
                            "the file declares %llu blocks of pixels but lists the place of %llu",
                            (unsigned long long)header->n_blocks,
                            (unsigned long long)(dir->offsets.count < header->n_blocks
                                                     ? dir->offsets.count
                                                     : dir->counts.count));
    for (uint64_t i = 0; i < header->n_blocks; i++) {
        uint64_t offset = 0, bytes = 1, before = end;
        int rc = cursor_value(file, &offsets, &offset);
        if (rc == 0 && dir->counts.there)
            rc = cursor_value(file, &counts, &bytes);
        if (rc == 0)
            rc = check_range(file, header, i, offset, bytes, &end);
        if (rc < 0)
            return rc;
        outside += end > before && end > file->bytes;
    }
    if (end > file->bytes)
        return PB_TIFF_FAIL(
            file, PB_E_INPUT_TRUNCATED,
            "the file has %llu bytes but its pixels reach to byte %llu: %llu bytes are "
            "missing (at least %llu of %llu blocks)",
            (unsigned long long)file->bytes, (unsigned long long)end,
            (unsigned long long)(end - file->bytes), (unsigned long long)outside,
            (unsigned long long)header->n_blocks);
    if (header->stored_block_max > file->limits->max_block_bytes)
        return PB_TIFF_FAIL(file, PB_E_INPUT_LIMIT,
                            "one stored block of the file has %llu bytes; the limit is %llu "
                            "(limits.max_block_bytes)",
                            (unsigned long long)header->stored_block_max,
                            (unsigned long long)file->limits->max_block_bytes);
    return 0;
}

static int read_first(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                      struct pb_tiff_header *out)
{
    int rc = read_shape(file, dir, out);
    if (rc == 0)
        rc = check_ranges(file, dir, out);
    if (rc == 0 && dir->nodata.there) {
        char text[sizeof out->nodata] = "";
        uint64_t n = dir->nodata.count < sizeof text - 1 ? dir->nodata.count : sizeof text - 1;
        rc = pb_tiff_read_at(file, dir->nodata.at, text, (size_t)n, "the nodata tag");
        (void)pb_text_clean(text, out->nodata, sizeof out->nodata);
    }
    return rc;
}

/* A full-size mask counts as pixels: without it invalid pixels would be taken for valid. */
static int check_mask(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir)
{
    struct pb_tiff_header mask = {0};
    uint64_t subfile = 0;
    int rc = pb_tiff_field_or(file, &dir->subfile, 0, "the kind of image", &subfile);
    if (rc < 0 || (subfile & 5) != 4)
        return rc;
    rc = read_shape(file, dir, &mask);
    return rc < 0 ? rc : check_ranges(file, dir, &mask);
}

static int walk(const struct pb_tiff_file *file, uint64_t at, uint64_t *seen, int32_t max,
                struct pb_tiff_header *out)
{
    struct pb_tiff_directory dir;
    int32_t n = 0;
    for (; at != 0; at = dir.next) {
        for (int32_t i = 0; i < n; i++) {
            if (seen[i] == at)
                return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED,
                                    "the chain of image directories loops: %d is followed by %d",
                                    (int)n, (int)i + 1);
        }
        if (n == max)
            return PB_TIFF_FAIL(
                file, PB_E_INPUT_LIMIT,
                "the file has more than %ld image directories (limits.max_directories)", (long)max);
        seen[n++] = at;
        int rc = pb_tiff_read_directory(file, at, (int)n, &dir);
        if (rc == 0)
            rc = n == 1 ? read_first(file, &dir, out) : check_mask(file, &dir);
        if (rc < 0)
            return rc;
    }
    out->n_directories = n;
    return 0;
}

int pb_tiff_header_read(int fd, uint64_t file_bytes, const char *name,
                        const struct pb_limits *limits, struct pb_err *err,
                        struct pb_tiff_header *out_header)
{
    struct pb_tiff_file file = {
        .fd = fd, .bytes = file_bytes, .name = name, .limits = limits, .err = err};
    struct pb_tiff_header header;
    int32_t max = limits->max_directories < 1 ? 1 : limits->max_directories;
    if (max > PB_TIFF_ENTRIES_MAX)
        max = PB_TIFF_ENTRIES_MAX;
    uint64_t at = 0;
    int rc = pb_tiff_read_magic(&file, &at);
    if (rc < 0)
        return rc;
    header = (struct pb_tiff_header){.big_endian = file.big_endian, .big_tiff = file.big_tiff};
    uint64_t *seen = malloc((size_t)max * sizeof *seen);
    if (seen == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to look at %s", name);
    rc = walk(&file, at, seen, max, &header);
    free(seen);
    if (rc == 0)
        *out_header = header;
    return rc;
}
