/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/tiff_directory.h"
#include "pipeline/io/io_watch.h"
#include "pipeline/raster/raster_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    TAG_SUBFILE = 254,
    TAG_WIDTH = 256,
    TAG_HEIGHT = 257,
    TAG_BITS = 258,
    TAG_COMPRESSION = 259,
    TAG_PHOTOMETRIC = 262,
    TAG_FILL_ORDER = 266,
    TAG_STRIP_OFFSETS = 273,
    TAG_BANDS = 277,
    TAG_ROWS_PER_STRIP = 278,
    TAG_STRIP_BYTES = 279,
    TAG_PLANAR = 284,
    TAG_PREDICTOR = 317,
    TAG_TILE_W = 322,
    TAG_TILE_H = 323,
    TAG_TILE_OFFSETS = 324,
    TAG_TILE_BYTES = 325,
    TAG_FORMAT = 339,
    TAG_SUBSAMPLING = 530,
    TAG_DEPTH = 32997,
    TAG_TILE_DEPTH = 32998,
    TAG_PIXEL_SCALE = 33550,
    TAG_TIE_POINTS = 33922,
    TAG_MATRIX = 34264,
    TAG_GEO_KEYS = 34735,
    TAG_GEO_DOUBLES = 34736,
    TAG_GEO_TEXTS = 34737,
    TAG_METADATA = 42112,
    TAG_NODATA = 42113,
    TAG_RPC = 50844,
};

#define DIRECTORY_CHUNK 64 /* entries read at once */

uint64_t pb_tiff_number(const struct pb_tiff_file *file, const unsigned char *p, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)p[file->big_endian ? bytes - 1 - i : i] << (8 * i);
    return value;
}

unsigned pb_tiff_type_bytes(unsigned type)
{
    static const unsigned char bytes[19] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4,
                                            8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

static bool is_integer(unsigned type)
{
    return type == 1 || type == 3 || type == 4 || type == 6 || type == 8 || type == 9 ||
           type == 13 || (type >= 16 && type <= 18);
}

static int read_error(const struct pb_tiff_file *file, int error, uint64_t at, const char *what)
{
    char text[96];
    (void)snprintf(text, sizeof text, "cannot read %s at byte %llu", what, (unsigned long long)at);
    return pb_raster_file_fail(file->err, error, file->name, text);
}

int pb_tiff_read_at(const struct pb_tiff_file *file, uint64_t at, void *out, size_t bytes,
                    const char *what)
{
    if (at > file->part.bytes || bytes > file->part.bytes - at)
        return PB_TIFF_FAIL(file, PB_E_INPUT_TRUNCATED,
                            "%s at byte %llu is past the end of the file (%llu bytes)", what,
                            (unsigned long long)at, (unsigned long long)file->part.bytes);
    size_t done = 0;
    ssize_t n = pb_file_part_read(&file->part, at, out, bytes, &done);
    if (n < 0)
        return read_error(file, (int)-n, at + done, what);
    if (done < bytes)
        return PB_TIFF_FAIL(file, PB_E_INPUT_TRUNCATED, "the file ended early while %s was read",
                            what);
    return 0;
}

int pb_tiff_field_or(const struct pb_tiff_file *file, const struct pb_tiff_field *field,
                     uint64_t otherwise, const char *what, uint64_t *out_value)
{
    unsigned char raw[8];
    unsigned bytes = pb_tiff_type_bytes(field->type);
    *out_value = otherwise;
    int rc = field->there ? pb_tiff_read_at(file, field->at, raw, bytes, what) : 0;
    if (rc == 0 && field->there)
        *out_value = pb_tiff_number(file, raw, bytes);
    return rc;
}

static struct pb_tiff_field *field_of(struct pb_tiff_directory *dir, uint64_t tag)
{
    switch (tag) {
    case TAG_SUBFILE:
        return &dir->subfile;
    case TAG_WIDTH:
        return &dir->width;
    case TAG_HEIGHT:
        return &dir->height;
    case TAG_BITS:
        return &dir->bits;
    case TAG_COMPRESSION:
        return &dir->compression;
    case TAG_PHOTOMETRIC:
        return &dir->photometric;
    case TAG_FILL_ORDER:
        return &dir->fill_order;
    case TAG_PREDICTOR:
        return &dir->predictor;
    case TAG_FORMAT:
        return &dir->format;
    case TAG_SUBSAMPLING:
        return &dir->subsampling;
    case TAG_DEPTH:
    case TAG_TILE_DEPTH:
        return &dir->depth;
    case TAG_BANDS:
        return &dir->bands;
    case TAG_ROWS_PER_STRIP:
        return &dir->rows;
    case TAG_PLANAR:
        return &dir->planar;
    case TAG_TILE_W:
        return &dir->tile_w;
    case TAG_TILE_H:
        return &dir->tile_h;
    case TAG_STRIP_OFFSETS:
    case TAG_TILE_OFFSETS:
        return &dir->offsets;
    case TAG_STRIP_BYTES:
    case TAG_TILE_BYTES:
        return &dir->counts;
    case TAG_NODATA:
        return &dir->nodata;
    case TAG_TIE_POINTS:
        return &dir->tie_points;
    case TAG_MATRIX:
        return &dir->matrix;
    case TAG_GEO_KEYS:
        return &dir->geo_keys;
    case TAG_GEO_DOUBLES:
        return &dir->geo_doubles;
    case TAG_GEO_TEXTS:
        return &dir->geo_texts;
    case TAG_METADATA:
        return &dir->metadata;
    case TAG_RPC:
        return &dir->rpc;
    default:
        return NULL;
    }
}

/* Tags without which a product would be misplaced, or would treat nodata as measurements. */
static bool is_geo(uint64_t tag)
{
    static const uint16_t tags[] = {TAG_PIXEL_SCALE, TAG_TIE_POINTS,  TAG_MATRIX,
                                    TAG_GEO_KEYS,    TAG_GEO_DOUBLES, TAG_GEO_TEXTS,
                                    TAG_METADATA,    TAG_NODATA,      TAG_RPC};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (tags[i] == tag)
            return true;
    }
    return false;
}

static int past_the_end(const struct pb_tiff_file *file, enum pb_code code, uint64_t tag,
                        uint64_t count, uint64_t at)
{
    return PB_TIFF_FAIL(file, code,
                        "the %llu values of tag %llu at byte %llu reach past the end of the file "
                        "(%llu bytes)",
                        (unsigned long long)count, (unsigned long long)tag, (unsigned long long)at,
                        (unsigned long long)file->part.bytes);
}

int pb_tiff_check_outside(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir)
{
    if (dir->outside == 0)
        return 0;
    return past_the_end(file, is_geo(dir->outside) ? PB_E_INPUT_GEOREFERENCE : PB_E_INPUT_TRUNCATED,
                        dir->outside, dir->outside_count, dir->outside_at);
}

/* Reads one entry. If a tag is repeated the first one counts, as in libtiff. */
static int take_entry(const struct pb_tiff_file *file, const unsigned char *entry,
                      uint64_t entry_at, struct pb_tiff_directory *dir)
{
    uint64_t tag = pb_tiff_number(file, entry, 2);
    struct pb_tiff_field *field = field_of(dir, tag);
    unsigned type = (unsigned)pb_tiff_number(file, entry + 2, 2);
    unsigned inside = file->big_tiff ? 8 : 4;
    bool geo = is_geo(tag);
    if (field != NULL && (field->there || (!geo && !is_integer(type))))
        return 0; /* reported by GDAL */
    uint64_t count = pb_tiff_number(file, entry + 4, inside);
    unsigned each = pb_tiff_type_bytes(type);
    uint64_t at = entry_at + 4 + inside;
    if (each > 0 && count > inside / each) {
        at = pb_tiff_number(file, entry + 4 + inside, inside);
        bool there = at <= file->part.bytes && count <= (file->part.bytes - at) / each;
        if (!there && field != NULL && !geo)
            return past_the_end(file, PB_E_INPUT_TRUNCATED, tag, count, at);
        if (!there && (dir->outside == 0 || (geo && !is_geo(dir->outside)))) {
            dir->outside = (uint16_t)tag;
            dir->outside_count = count;
            dir->outside_at = at;
        }
        if (!there)
            return 0;
    }
    if (field != NULL && (count > 0 || geo))
        *field =
            (struct pb_tiff_field){.there = true, .type = (uint16_t)type, .count = count, .at = at};
    return 0;
}

int pb_tiff_read_directory(const struct pb_tiff_file *file, uint64_t at, int index,
                           struct pb_tiff_directory *out)
{
    unsigned head = file->big_tiff ? 8 : 2, each = file->big_tiff ? 20 : 12;
    unsigned tail = file->big_tiff ? 8 : 4;
    unsigned char raw[DIRECTORY_CHUNK * 20];
    memset(out, 0, sizeof *out);
    if (at < (file->big_tiff ? 16 : 8))
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED, "image directory %d is inside the header",
                            index);
    if (at > INT64_MAX)
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED, "image directory %d has an impossible offset",
                            index);
    int rc = pb_tiff_read_at(file, at, raw, head, "an image directory");
    if (rc < 0)
        return rc;
    uint64_t n = pb_tiff_number(file, raw, head);
    if (n == 0 || n > PB_TIFF_ENTRIES_MAX)
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED, "image directory %d claims %llu entries",
                            index, (unsigned long long)n);
    at += head;
    if (n * each > file->part.bytes - at)
        return PB_TIFF_FAIL(file, PB_E_INPUT_TRUNCATED,
                            "image directory %d reaches %llu bytes past the end of the file", index,
                            (unsigned long long)(n * each - (file->part.bytes - at)));
    for (uint64_t i = 0; i < n;) {
        uint64_t take = n - i < DIRECTORY_CHUNK ? n - i : DIRECTORY_CHUNK;
        rc = pb_tiff_read_at(file, at, raw, (size_t)(take * each), "an image directory");
        for (uint64_t j = 0; rc == 0 && j < take; j++)
            rc = take_entry(file, raw + j * each, at + j * each, out);
        if (rc < 0)
            return rc;
        i += take;
        at += take * each;
    }
    rc = pb_tiff_read_at(file, at, raw, tail, "the offset of the next image directory");
    if (rc == 0)
        out->next = pb_tiff_number(file, raw, tail);
    return rc;
}

int pb_tiff_read_magic(struct pb_tiff_file *file, uint64_t *out_at)
{
    unsigned char raw[16] = {0};
    if (file->part.bytes == 0)
        return PB_TIFF_FAIL(file, PB_E_INPUT_TRUNCATED, "the file is empty");
    size_t there = file->part.bytes < sizeof raw ? (size_t)file->part.bytes : sizeof raw;
    int rc = pb_tiff_read_at(file, 0, raw, there, "the header");
    if (rc < 0)
        return rc;
    file->big_endian = raw[0] == 'M';
    uint64_t version = pb_tiff_number(file, raw + 2, 2);
    if ((memcmp(raw, "II", 2) != 0 && memcmp(raw, "MM", 2) != 0) ||
        (there >= 4 && version != 42 && version != 43))
        return PB_TIFF_FAIL(file, PB_E_INPUT_NOT_TIFF,
                            "the file does not begin as a TIFF or a JPEG 2000 file does");
    file->big_tiff = version == 43;
    if (there < (file->big_tiff ? 16 : 8))
        return PB_TIFF_FAIL(file, PB_E_INPUT_TRUNCATED,
                            "the file ends within its header (%zu bytes)", there);
    if (file->big_tiff &&
        (pb_tiff_number(file, raw + 4, 2) != 8 || pb_tiff_number(file, raw + 6, 2) != 0))
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED,
                            "the header is a BigTIFF's, but its offsets have not 8 bytes");
    *out_at = file->big_tiff ? pb_tiff_number(file, raw + 8, 8) : pb_tiff_number(file, raw + 4, 4);
    if (*out_at == 0)
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED, "the header names no image directory");
    return 0;
}

int pb_tiff_block_sides(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                        uint64_t width, uint64_t height, uint64_t *out_w, uint64_t *out_h)
{
    if (dir->tile_w.there) {
        int rc = pb_tiff_field_or(file, &dir->tile_w, 0, "the tile width", out_w);
        return rc ? rc : pb_tiff_field_or(file, &dir->tile_h, 0, "the tile height", out_h);
    }
    *out_w = width;
    int rc = pb_tiff_field_or(file, &dir->rows, UINT32_MAX, "the rows per strip", out_h);
    if (*out_h > height)
        *out_h = height;
    return rc;
}
