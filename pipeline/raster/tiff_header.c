/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/tiff_header.h"

#include "config/limits_config.h"
#include "pipeline/io/file_holes.h"
#include "config/base/text_clean.h"
#include "pipeline/raster/tiff_directory.h"
#include "pipeline/raster/tiff_geo.h"
#include "pipeline/raster/tiff_ranges.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX (UINT64_C(1) << 27) /* keeps the check of their ranges within seconds */

/* Reads a required size, from 1 to max; `key` is the configuration key of the limit. */
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
    uint64_t w = 0, h = 0;
    int rc = pb_tiff_block_sides(file, dir, (uint64_t)out->width, (uint64_t)out->height, &w, &h);
    if (rc < 0)
        return rc;
    out->tiled = dir->tile_w.there;
    if (w == 0 || h == 0)
        return PB_TIFF_FAIL(file, PB_E_INPUT_DAMAGED,
                            "the file declares blocks of %llu x %llu pixels", (unsigned long long)w,
                            (unsigned long long)h);
    if (w > INT32_MAX || h > INT32_MAX)
        return PB_TIFF_FAIL(file, PB_E_INPUT_UNSUPPORTED,
                            "the file declares blocks of %llu x %llu pixels; at most %d a side are "
                            "read",
                            (unsigned long long)w, (unsigned long long)h, INT32_MAX);
    out->block_w = (uint32_t)w;
    out->block_h = (uint32_t)h;
    uint64_t across = ((uint64_t)out->width + w - 1) / w,
             down = ((uint64_t)out->height + h - 1) / h;
    out->n_blocks = across * down * (uint64_t)(out->planar ? out->bands : 1);
    if (out->n_blocks > BLOCKS_MAX)
        return PB_TIFF_FAIL(file, PB_E_INPUT_UNSUPPORTED,
                            "the file declares %llu blocks of %llu x %llu pixels; at most %llu are "
                            "read",
                            (unsigned long long)out->n_blocks, (unsigned long long)w,
                            (unsigned long long)h, (unsigned long long)BLOCKS_MAX);
    out->one_strip = !out->tiled && down == 1 && out->compression != 1 && out->height > 1;
    return 0;
}

/* Bytes of a decoded sample; 1 for 0 bits, which is refused later. */
static uint64_t sample_bytes(const struct pb_tiff_header *header)
{
    return header->bits <= 8 ? 1 : (header->bits + 7u) / 8;
}

/* Checks the size of one decoded block. An uncompressed single strip is read in parts by libtiff
 * and not checked. */
static int check_block_limit(const struct pb_tiff_file *file, const struct pb_tiff_header *header)
{
    if (!header->tiled && header->n_blocks == 1 && header->compression == 1)
        return 0;
    uint64_t sample = sample_bytes(header);
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

static int read_nodata(const struct pb_tiff_file *file, const struct pb_tiff_field *field,
                       struct pb_tiff_header *out)
{
    char text[sizeof out->nodata] = "";
    uint64_t n = field->count < sizeof text - 1 ? field->count : sizeof text - 1;
    if (!field->there)
        return 0;
    if (field->type != 2) {
        out->geo.nodata = true; /* type that no reader accepts */
        return 0;
    }
    int rc = pb_tiff_read_at(file, field->at, text, (size_t)n, "the nodata tag");
    (void)pb_text_clean(text, out->nodata, sizeof out->nodata);
    out->geo.nodata = out->nodata[0] != '\0';
    return rc;
}

/* Checks that the stored bytes can hold that many pixels. Small images pass. */
static int check_ratio(const struct pb_tiff_file *file, const struct pb_tiff_header *header)
{
    uint64_t max = file->limits->max_ratio, sample = sample_bytes(header);
    uint64_t pixels = (uint64_t)header->width * (uint64_t)header->height;
    uint64_t bytes = pixels * (uint64_t)header->bands; /* below 2^63: both are limited */
    struct pb_file_holes holes;
    if (max == 0 || bytes <= PB_TIFF_RATIO_FLOOR / sample)
        return 0;
    pb_file_holes_init(&holes, &file->part);
    if (pb_file_holes_data(&holes, bytes / max * sample))
        return 0;
    return PB_TIFF_FAIL(file, PB_E_INPUT_LIMIT,
                        "the file declares %ld x %ld pixels of %ld bands, more than %llu decoded "
                        "bytes for each of the few that it stores (limits.max_ratio); %llu of its "
                        "%llu blocks are stored",
                        (long)header->width, (long)header->height, (long)header->bands,
                        (unsigned long long)max,
                        (unsigned long long)(header->n_blocks - header->n_sparse),
                        (unsigned long long)header->n_blocks);
}

static int read_first(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                      struct pb_tiff_header *out)
{
    int rc = read_shape(file, dir, out);
    if (rc == 0)
        rc = pb_tiff_check_ranges(file, dir, out);
    if (rc == 0) /* a file whose pixels are missing too is reported as truncated */
        rc = pb_tiff_check_outside(file, dir);
    if (rc == 0 && out->n_sparse + out->n_unwritten == out->n_blocks)
        rc = PB_TIFF_FAIL(file, PB_E_INPUT_EMPTY,
                          "none of its %llu blocks of pixels was ever written (%llu are absent, "
                          "%llu are in holes of the file)",
                          (unsigned long long)out->n_blocks, (unsigned long long)out->n_sparse,
                          (unsigned long long)out->n_unwritten);
    if (rc == 0)
        rc = check_ratio(file, out);
    if (rc == 0)
        rc = pb_tiff_read_geo(file, dir, &out->geo);
    return rc < 0 ? rc : read_nodata(file, &dir->nodata, out);
}

enum { REDUCED = 1, MASK = 4 }; /* bits of NewSubfileType */

/* Reads those bits; 0: the image is a page. */
static int read_kind(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                     uint64_t *out)
{
    int rc = pb_tiff_field_or(file, &dir->subfile, 0, "the kind of image", out);
    *out &= REDUCED | MASK;
    return rc;
}

/* Notes the page of a full-size mask: the page before it. n: masks after that page. */
static void note_mask(int32_t n, struct pb_tiff_header *out)
{
    out->unclear_masks |= n > 1 && (out->n_pages_more == 0 || !out->own_mask);
    out->own_mask |= out->n_pages_more == 0;
    out->foreign_mask |= !out->own_mask;
}

/* Checks a directory after the first. A full-size mask of the first image is checked like pixels:
 * without it invalid pixels would count as valid. Images other than overviews and masks are pages,
 * which are counted. n_masks: full-size masks after the last page. */
static int check_other(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                       int32_t *n_masks, struct pb_tiff_header *out)
{
    struct pb_tiff_header mask = {0};
    uint64_t kind = 0;
    int rc = read_kind(file, dir, &kind);
    if (rc < 0)
        return rc;
    if (kind == 0) {
        out->n_pages_more++;
        *n_masks = 0;
    }
    if (kind != MASK)
        return 0;
    note_mask(++*n_masks, out);
    if (out->n_pages_more > 0)
        return 0;
    rc = read_shape(file, dir, &mask);
    return rc < 0 ? rc : pb_tiff_check_ranges(file, dir, &mask);
}

static int walk(const struct pb_tiff_file *file, uint64_t at, uint64_t *seen, int32_t max,
                struct pb_tiff_header *out)
{
    struct pb_tiff_directory dir;
    int32_t n = 0, n_masks = 0;
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
            rc = n == 1 ? read_first(file, &dir, out) : check_other(file, &dir, &n_masks, out);
        if (rc < 0)
            return rc;
    }
    out->n_directories = n;
    return 0;
}

static void put_number(const struct pb_tiff_file *file, uint64_t value, unsigned char *out,
                       size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[file->big_endian ? bytes - 1 - i : i] = (unsigned char)(value >> (8 * i));
}

int pb_tiff_page_head(const struct pb_file_part *part, const char *name, int32_t page,
                      const struct pb_limits *limits, struct pb_err *err, unsigned char out[16],
                      size_t *out_bytes)
{
    struct pb_tiff_file file = {.part = *part, .name = name, .limits = limits, .err = err};
    struct pb_tiff_directory dir = {.next = 0};
    uint64_t at = 0, kind = 0;
    int32_t n_pages = 0;
    int rc = pb_tiff_read_magic(&file, &dir.next);
    for (int n = 1; rc == 0 && n_pages < page && dir.next != 0; n++) {
        if (n > limits->max_directories)
            return PB_TIFF_FAIL(
                &file, PB_E_INPUT_LIMIT,
                "the file has more than %ld image directories (limits.max_directories)",
                (long)limits->max_directories);
        at = dir.next;
        rc = pb_tiff_read_directory(&file, at, n, &dir);
        rc = rc ? rc : read_kind(&file, &dir, &kind);
        n_pages += rc == 0 && kind == 0;
    }
    if (rc == 0 && n_pages < page)
        rc = PB_TIFF_FAIL(
            &file, PB_E_PIPELINE_BAND,
            "the file has %d pages, and page %d is wanted (page in input.files, or input.pages)",
            (int)n_pages, (int)page);
    const size_t begin = file.big_tiff ? 8 : 4, bytes = begin;
    rc = rc ? rc : pb_tiff_read_at(&file, 0, out, begin, "the header");
    if (rc < 0)
        return rc;
    put_number(&file, at, out + begin, bytes);
    *out_bytes = begin + bytes;
    return 0;
}

int pb_tiff_header_read(const struct pb_file_part *part, const char *name,
                        const struct pb_limits *limits, struct pb_err *err,
                        struct pb_tiff_header *out_header)
{
    struct pb_tiff_file file = {.part = *part, .name = name, .limits = limits, .err = err};
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
