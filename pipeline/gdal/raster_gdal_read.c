/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Reads pixels of a scene.
 *
 * Plain layouts are decoded by block_reader.c; the rest of this comment describes the others. A
 * decoder may return without an error and leave memory unwritten: its memory is cleared
 * (zero_malloc.c), and while pixels are read a warning is an error, too.
 *
 * A pixel-interleaved file is read block by block and, within a block, band by band: GDAL caches
 * the last block it decoded, therefore each block is decoded once with any cache size, and an
 * error names the block. Other layouts are read band by band. */
#include "config/product_words.h"
#include "pipeline/gdal/raster_gdal_complex.h"
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/lines/segment.h"
#include "pipeline/profile/work.h"
#include "pipeline/raster/raw_blocks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A read in progress. */
struct read {
    struct pb_raster *raster;
    const struct pb_window *to;
    struct pb_gdal_words words;
    int band;              /* band that failed; 0 = the mask */
    struct pb_rect failed; /* part of to->rect that failed */
};

/* Reads part (image coordinates, inside rect) of one band to its place. */
static bool read_part(struct read *read, const struct pb_rect *part, int band, size_t plane)
{
    enum pb_type type = read->raster->info.type;
    char *to = (char *)read->to->data + plane * read->to->plane_bytes +
               (size_t)(part->y - read->to->rect.y) * read->to->row_bytes +
               (size_t)(part->x - read->to->rect.x) * (size_t)pb_gdal_types[type].bytes;
    bool is_complex = read->raster->info.complex.kind != PB_COMPLEX_NONE;
    int rc = is_complex
                 ? pb_gdal_read_complex(read->raster, band, part, to, read->to->row_bytes)
                 : (int)GDALRasterIOEx(GDALGetRasterBand(read->raster->dataset, band), GF_Read,
                                       part->x, part->y, part->w, part->h, to, part->w, part->h,
                                       pb_gdal_types[type].gdal, pb_gdal_types[type].bytes,
                                       (GSpacing)read->to->row_bytes, NULL);
    if (rc == CE_None && read->words.n == 0)
        return true;
    read->band = band;
    read->failed = *part;
    return false;
}

static int32_t min_px(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static bool read_by_block(struct read *read, const int32_t *bands, size_t n_bands)
{
    const struct pb_raster_info *info = &read->raster->info;
    const struct pb_rect *rect = &read->to->rect;
    struct pb_rect part;
    for (part.y = rect->y; part.y < rect->y + rect->h; part.y += part.h) {
        part.h = min_px(info->block_h - part.y % info->block_h, rect->y + rect->h - part.y);
        for (part.x = rect->x; part.x < rect->x + rect->w; part.x += part.w) {
            part.w = min_px(info->block_w - part.x % info->block_w, rect->x + rect->w - part.x);
            for (size_t i = 0; i < n_bands; i++) {
                if (!read_part(read, &part, bands[i], i))
                    return false;
            }
        }
    }
    return true;
}

static bool read_by_band(struct read *read, const int32_t *bands, size_t n_bands)
{
    for (size_t i = 0; i < n_bands; i++) {
        if (!read_part(read, &read->to->rect, bands[i], i))
            return false;
    }
    return true;
}

/* An alpha of another type is clamped to bytes: below one half counts as 0. */
static bool read_mask(struct read *read)
{
    const struct pb_raster *raster = read->raster;
    const struct pb_rect *rect = &read->to->rect;
    const struct pb_window *to = read->to;
    if (!raster->info.has_mask) {
        for (size_t y = 0; y < (size_t)rect->h; y++)
            memset(to->mask + y * to->mask_row_bytes, 255, (size_t)rect->w);
        return true;
    }
    GDALRasterBandH band = raster->dataset_mask
                               ? GDALGetMaskBand(GDALGetRasterBand(raster->dataset, 1))
                               : GDALGetRasterBand(raster->dataset, raster->info.alpha_band);
    CPLErr rc = GDALRasterIOEx(band, GF_Read, rect->x, rect->y, rect->w, rect->h, to->mask, rect->w,
                               rect->h, GDT_Byte, 1, (GSpacing)to->mask_row_bytes, NULL);
    read->band = 0;
    read->failed = *rect;
    return rc == CE_None && read->words.n == 0;
}

static int read_failed(const struct read *read, struct pb_err *err)
{
    const struct pb_gdal_words *words = &read->words;
    const struct pb_rect *r = &read->failed;
    enum pb_code code = PB_E_INPUT_DAMAGED;
    char band[24] = "mask";
    int rc = pb_raster_file_check(&read->raster->file, err);
    if (rc == 0)
        rc = pb_raster_unchanged(read->raster, err);
    if (rc < 0)
        return rc; /* the better explanation */
    if (words->number == CPLE_OutOfMemory)
        code = PB_E_MEMORY;
    else if (pb_gdal_says(words, "Read error") || pb_gdal_says(words, "Seek error") ||
             pb_gdal_says(words, "Cannot read offset"))
        code = PB_E_INPUT_TRUNCATED;
    else if (pb_gdal_says(words, "nsupported") || pb_gdal_says(words, "can not handle"))
        code = PB_E_INPUT_UNSUPPORTED;
    if (read->band > 0)
        (void)snprintf(band, sizeof band, "band %d", read->band);
    return pb_fail_at(err, code, read->raster->file.path, 0, 0,
                      "%s, window at x %d, y %d of %d x %d pixels does not decode: %s: %s", band,
                      (int)r->x, (int)r->y, (int)r->w, (int)r->h, read->raster->info.compression,
                      pb_gdal_said(words));
}

/* Reports the error of our own decoders, unless there is a better explanation. */
static int own_failed(const struct pb_raster *raster, const struct pb_err *own, struct pb_err *err)
{
    bool input = own->code == PB_E_INPUT_DAMAGED || own->code == PB_E_INPUT_TRUNCATED;
    int rc = input ? pb_raster_unchanged(raster, err) : 0;
    if (rc < 0)
        return rc;
    if (err != NULL && err->code == PB_OK)
        *err = *own;
    return pb_code_errno(own->code);
}

static int check_blocks(struct read *read, bool mask, struct pb_err *err)
{
    struct pb_raster *raster = read->raster;
    struct pb_err own = {0};
    if (pb_raster_blocks_check(&raster->blocks, mask, &raster->info, &read->to->rect, &own) == 0)
        return 0;
    return own_failed(read->raster, &own, err);
}

/* *to: a window without the mask if that is GDAL's. */
static struct pb_block_target target_of(const struct pb_raster *raster, const int32_t *bands,
                                        size_t n_bands, struct pb_window *to)
{
    if (raster->dataset_mask)
        to->mask = NULL;
    return (struct pb_block_target){
        .layout = pb_block_reader_layout(raster->blocks.image),
        .rect = &to->rect,
        .bands = bands,
        .n_bands = n_bands,
        .sample_bytes = (size_t)pb_gdal_types[raster->info.type].bytes,
        .type = raster->info.type,
        .complex = raster->info.complex.kind != PB_COMPLEX_NONE ? &raster->info.complex : NULL,
        .alpha_band = raster->info.alpha_band,
        .fill = &raster->blocks.fill,
        .to = to,
    };
}

/* Reads the mask of a window whose pixels are read, if that is GDAL's. */
static int read_own_mask(struct read *read, struct pb_err *err)
{
    struct pb_raster *raster = read->raster;
    if (read->to->mask == NULL || !raster->dataset_mask)
        return 0;
    int rc = check_blocks(read, true, err);
    if (rc < 0)
        return rc;
    pb_gdal_listen(&read->words, raster);
    read->words.least = CE_Warning;
    bool fine = read_mask(read);
    pb_gdal_unlisten();
    return fine && raster->file.error == 0 ? 0 : read_failed(read, err);
}

static int read_own(struct read *read, const int32_t *bands, size_t n_bands, struct pb_err *err)
{
    struct pb_window to = *read->to;
    const struct pb_block_target target = target_of(read->raster, bands, n_bands, &to);
    struct pb_err own = {0};
    if (pb_block_reader_read(read->raster->blocks.image, &target, &own) < 0)
        return own_failed(read->raster, &own, err);
    return read_own_mask(read, err);
}

static void read_two_own(struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                         const struct pb_window *to, unsigned n, struct pb_read_result *result)
{
    struct pb_window image[2] = {{0}};
    struct pb_block_target target[2] = {{0}};
    struct pb_read_result own[2] = {{0}};
    for (unsigned i = 0; i < n; i++) {
        image[i] = to[i];
        target[i] = target_of(raster, bands, n_bands, &image[i]);
    }
    pb_block_reader_read_two(raster->blocks.image, target, n, own);
    for (unsigned i = 0; i < n; i++) {
        struct read read = {.raster = raster, .to = &to[i]};
        result[i].rc = own[i].rc < 0 ? own_failed(raster, &own[i].err, &result[i].err)
                                     : read_own_mask(&read, &result[i].err);
    }
}

bool pb_raster_is_ahead(const struct pb_raster *raster)
{
    return raster->info.own_blocks && pb_block_reader_is_ahead(raster->blocks.image);
}

void pb_raster_expect(struct pb_raster *raster, const struct pb_rect *rect)
{
    const struct pb_raster_info *info = &raster->info;
    const struct pb_rect none = {0};
    bool fits = rect->w > 0 && rect->h > 0 && rect->x >= 0 && rect->y >= 0 &&
                rect->w <= info->width - rect->x && rect->h <= info->height - rect->y;
    if (info->own_blocks)
        pb_block_reader_expect(raster->blocks.image, fits ? rect : &none);
}

int pb_raster_stored_block(const struct pb_raster *raster, uint32_t col, uint32_t row, void *out,
                           size_t capacity, struct pb_err *err, size_t *out_bytes)
{
    return pb_block_reader_stored(raster->blocks.image, col, row, out, capacity, err, out_bytes);
}

const struct pb_block_reader *pb_raster_block_reader(const struct pb_raster *raster)
{
    return raster->blocks.image;
}

const struct pb_block_reader *pb_raster_mask_reader(const struct pb_raster *raster)
{
    return raster->blocks.mask;
}

const struct pb_block_fill *pb_raster_block_fill(const struct pb_raster *raster)
{
    return &raster->blocks.fill;
}

/* Reader of a block, whose number in it replaces *index. */
static struct pb_block_reader *reader_of(const struct pb_raster *raster, uint64_t *index)
{
    const uint64_t n = pb_block_layout_count(pb_block_reader_layout(raster->blocks.image));
    if (*index < n)
        return raster->blocks.image;
    *index -= n;
    return raster->blocks.mask;
}

int pb_raster_decode_block(struct pb_raster *raster, uint64_t index, struct pb_err *err,
                           const void **out_data)
{
    struct pb_err own = {0};
    struct pb_block_reader *reader = reader_of(raster, &index);
    if (pb_block_reader_decode(reader, index, &own, out_data) < 0)
        return own_failed(raster, &own, err);
    return 0;
}

int pb_raster_fetch_block(const struct pb_raster *raster, uint64_t index,
                          const struct pb_block_place *place, uint64_t from, void *out,
                          size_t bytes, struct pb_err *err)
{
    struct pb_err own = {0};
    const struct pb_block_reader *reader = reader_of(raster, &index);
    if (pb_block_reader_fetch(reader, index, place, from, out, bytes, &own) < 0)
        return own_failed(raster, &own, err);
    return 0;
}

static int check_window(const struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                        const struct pb_window *to, struct pb_err *err)
{
    const struct pb_raster_info *info = &raster->info;
    const struct pb_rect *rect = &to->rect;
    if (rect->x < 0 || rect->y < 0 || rect->w < 1 || rect->h < 1 ||
        rect->w > info->width - rect->x || rect->h > info->height - rect->y)
        return pb_fail_at(err, PB_E_SYSTEM, raster->file.path, 0, 0,
                          "a window outside the image was requested (%d, %d, %d x %d)",
                          (int)rect->x, (int)rect->y, (int)rect->w, (int)rect->h);
    /* The caller planned with the state of the file when another raster was opened. */
    if (to->row_bytes < (size_t)rect->w * (size_t)pb_gdal_types[info->type].bytes)
        return pb_fail_at(err, PB_E_INPUT_CHANGED, raster->file.path, 0, 0,
                          "its pixels are %s now; the file was replaced by another one",
                          pb_type_name(info->type));
    for (size_t i = 0; i < n_bands; i++) {
        if (bands[i] < 1 || bands[i] > info->n_bands)
            return pb_fail_at(err, PB_E_PIPELINE_BAND, raster->file.path, 0, 0,
                              "band %d does not exist; the file has %d", (int)bands[i],
                              (int)info->n_bands);
    }
    if (info->complex.kind != PB_COMPLEX_NONE && !info->complex.is_chosen)
        return pb_fail_at(err, PB_E_INPUT_COMPLEX, raster->file.path, 0, 0,
                          "its pixels are complex numbers (%s); no way to read them was chosen",
                          pb_complex_name(info->complex.kind));
    return 0;
}

int pb_raster_await(const struct pb_raster *raster, int32_t lines, struct pb_err *err)
{
    const struct pb_segment *const segment = raster->file.segment;
    if (segment == NULL)
        return raster->info.height;
    const int rc = pb_segment_wait(segment, lines, PB_SEGMENT_NO_DEADLINE);
    if (rc == -ENODATA)
        return pb_fail_at(err, PB_E_INPUT_SHORTER, raster->file.path, 0, 0,
                          "the lines ended at %d of %d", (int)pb_segment_lines(segment),
                          (int)raster->info.height);
    return rc < 0 ? rc : pb_segment_lines(segment);
}

void pb_raster_poll(const struct pb_raster *raster, int64_t ns)
{
    if (raster != NULL && raster->file.segment != NULL)
        pb_segment_spin(raster->file.segment, ns);
}

/* Waits for the lines of a window, and copies them. */
static int read_lines(struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                      const struct pb_window *to, struct pb_err *err)
{
    const struct pb_segment *const segment = raster->file.segment;
    const struct pb_rect *const rect = &to->rect;
    const int rc = pb_raster_await(raster, rect->y + rect->h, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n_bands; i++)
        pb_segment_copy(segment, bands[i], rect, (char *)to->data + i * to->plane_bytes,
                        to->row_bytes);
    for (size_t y = 0; y < (size_t)rect->h && to->mask != NULL; y++)
        memset(to->mask + y * to->mask_row_bytes, 255, (size_t)rect->w);
    return 0;
}

bool pb_raster_is_growing(const struct pb_raster *raster)
{
    const struct pb_segment *const segment = raster->file.segment;
    return segment != NULL && pb_segment_state(segment) == PB_SEGMENT_OPEN &&
           pb_segment_lines(segment) < raster->info.height;
}

int64_t pb_raster_published_ns(const struct pb_raster *raster, int32_t line)
{
    const struct pb_segment *const segment = raster->file.segment;
    return segment != NULL && line >= 0 && line < pb_segment_lines(segment)
               ? pb_segment_line(segment, line).published_ns
               : 0;
}

/* The segment that the file is, or was when its lines arrived; NULL: neither. */
static const struct pb_segment *segment_of(const struct pb_raster *raster)
{
    return raster->lines != NULL ? raster->lines : raster->file.segment;
}

static struct pb_segment_line facts_of(const struct pb_raster *raster, int32_t line)
{
    const struct pb_segment *const segment = segment_of(raster);
    return segment != NULL && line >= 0 && line < pb_segment_lines(segment)
               ? pb_segment_line(segment, line)
               : (struct pb_segment_line){0};
}

int64_t pb_raster_acquired_ns(const struct pb_raster *raster, int32_t line)
{
    return facts_of(raster, line).acquired_ns;
}

bool pb_raster_is_gap(const struct pb_raster *raster, int32_t line)
{
    return facts_of(raster, line).is_gap != 0;
}

bool pb_raster_has_lines(const struct pb_raster *raster)
{
    return raster != NULL && segment_of(raster) != NULL;
}

int32_t pb_raster_next_gap(const struct pb_raster *raster, int32_t from, int32_t *out_first)
{
    int32_t n = 0;
    if (!pb_raster_has_lines(raster))
        return 0;
    const int32_t height = raster->info.height;
    while (from < height && !pb_raster_is_gap(raster, from))
        from++;
    while (from + n < height && pb_raster_is_gap(raster, from + n))
        n++;
    *out_first = from;
    return n;
}

void pb_raster_abort(const struct pb_raster *raster)
{
    if (raster != NULL && raster->file.segment != NULL)
        pb_segment_abort(raster->file.segment);
}

static int read_window(struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                       const struct pb_window *to, struct pb_err *err)
{
    const struct pb_raster_info *info = &raster->info;
    struct read read = {.raster = raster, .to = to};
    int rc = check_window(raster, bands, n_bands, to, err);
    if (rc < 0)
        return rc;
    if (info->is_made)
        return pb_gdal_read_made(raster, bands, n_bands, to, err);
    if (info->is_growing)
        return read_lines(raster, bands, n_bands, to, err);
    if (info->own_blocks)
        return read_own(&read, bands, n_bands, err);
    rc = check_blocks(&read, false, err);
    if (rc == 0 && to->mask != NULL && raster->dataset_mask)
        rc = check_blocks(&read, true, err);
    if (rc < 0)
        return rc;
    pb_gdal_listen(&read.words, raster);
    read.words.least = CE_Warning;
    bool by_block = info->pixel_interleaved || info->complex.kind != PB_COMPLEX_NONE;
    bool fine = (by_block ? read_by_block : read_by_band)(&read, bands, n_bands);
    if (fine && to->mask != NULL)
        fine = read_mask(&read);
    pb_gdal_unlisten();
    fine = fine && raster->file.error == 0; /* GDAL may hide the error */
    return fine ? 0 : read_failed(&read, err);
}

int pb_raster_read(struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                   const struct pb_window *to, struct pb_err *err)
{
    pb_work_begin(PB_WORK_DECODE, (uint32_t)to->rect.y);
    int rc = read_window(raster, bands, n_bands, to, err);
    pb_work_end();
    return rc;
}

void pb_raster_read_two(struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                        const struct pb_window *to, unsigned n, struct pb_read_result *out_result)
{
    bool fit = pb_raster_is_ahead(raster) && !raster->info.is_made;
    for (unsigned i = 0; i < n; i++) {
        out_result[i] = (struct pb_read_result){0};
        fit = fit && check_window(raster, bands, n_bands, &to[i], NULL) == 0;
    }
    pb_work_begin(PB_WORK_DECODE, (uint32_t)to->rect.y);
    for (unsigned i = 0; i < n && !fit; i++)
        out_result[i].rc = read_window(raster, bands, n_bands, &to[i], &out_result[i].err);
    if (fit)
        read_two_own(raster, bands, n_bands, to, n, out_result);
    pb_work_end();
}
