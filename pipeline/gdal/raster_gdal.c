/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Opens and closes scenes: plain GeoTIFFs by tiff_plain.c, others with GDAL. Only the files
 * raster_gdal_*.c call GDAL; its handles do not leave them. Functions that do not need GDAL have
 * their own files (tiff_header.c, tiff_tags.c, outline.c, raster_memory.c, text_clean.c). */
#include "config/limits_config.h"
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_info.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/gdal/raster_gdal_sidecars.h"
#include "pipeline/gdal/raster_gdal_vsi.h"
#include "pipeline/lines/segment.h"
#include "pipeline/raster/jp2_header.h"
#include "pipeline/raster/tiff_header.h"
#include "pipeline/raster/tiff_plain.h"

#include <stdlib.h>
#include <string.h>

const struct pb_gdal_type pb_gdal_types[PB_TYPE_COUNT] = {
    [PB_U8] = {GDT_Byte, 1},     [PB_I16] = {GDT_Int16, 2},  [PB_U16] = {GDT_UInt16, 2},
    [PB_I32] = {GDT_Int32, 4},   [PB_U32] = {GDT_UInt32, 4}, [PB_F32] = {GDT_Float32, 4},
    [PB_F64] = {GDT_Float64, 8},
};

static enum pb_code open_code(const struct pb_gdal_words *words)
{
    if (words->number == CPLE_OutOfMemory)
        return PB_E_MEMORY;
    if (pb_gdal_says(words, "Too large block size") || pb_gdal_says(words, "Too many blocks"))
        return PB_E_INPUT_LIMIT;
    if (words->number == CPLE_NotSupported || pb_gdal_says(words, "missing codec") ||
        pb_gdal_says(words, "nsupported") || pb_gdal_says(words, "not supported") ||
        pb_gdal_says(words, "Cannot open TIFF file"))
        return PB_E_INPUT_UNSUPPORTED;
    return PB_E_INPUT_DAMAGED;
}

static int open_dataset(struct pb_raster *raster, const char *path, struct pb_err *err)
{
    static const char *const drivers[2][2] = {{"GTiff", NULL}, {"JP2OpenJPEG", NULL}};
    static const char *const options[2][2] = {
        {"GEOREF_SOURCES=INTERNAL", NULL}, {"GEOREF_SOURCES=PAM,INTERNAL,TABFILE,WORLDFILE", NULL}};
    struct pb_gdal_words words;
    char **siblings = pb_gdal_file_siblings(raster);
    pb_gdal_listen(&words, raster);
    if (raster->has_sidecars)
        CPLSetThreadLocalConfigOption("GDAL_PAM_ENABLED", "YES");
    raster->dataset = GDALOpenEx(
        raster->vsi_name, GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR,
        drivers[raster->is_jp2], options[raster->has_sidecars], (const char *const *)siblings);
    if (raster->has_sidecars)
        CPLSetThreadLocalConfigOption("GDAL_PAM_ENABLED", NULL);
    pb_gdal_unlisten();
    CSLDestroy(siblings);
    int rc = pb_raster_file_check(&raster->file, err); /* the better explanation */
    if (rc == 0 && raster->dataset == NULL)
        rc = pb_fail_at(err, open_code(&words), path, 0, 0, "GDAL cannot open it: %s",
                        pb_gdal_said(&words));
    return rc;
}

/* Memory of OpenJPEG for a tile: its coefficients, 32 bits each, a copy of them during the
 * inverse wavelet transform, and the same number of bytes of code-blocks. */
static uint64_t jp2_bytes(const struct pb_raster_info *info)
{
    return (uint64_t)info->block_w * (uint64_t)info->block_h * (uint64_t)info->n_bands * 12;
}

/* Sets the value of blocks that are not stored, which is GDAL's: nodata, else 0. */
static void set_fill(struct pb_raster *raster, int i)
{
    const struct pb_raster_band *const band = &raster->info.band[i];
    int has = band->has_nodata;
    double fill = band->nodata;
    if (!raster->is_plain)
        fill = GDALGetRasterNoDataValue(GDALGetRasterBand(raster->dataset, i + 1), &has);
    if (has && fill != 0)
        GDALCopyWords(&fill, GDT_Float64, 0, raster->blocks.fill.sample[i],
                      pb_gdal_types[raster->info.type].gdal, 0, 1);
}

/* Opens our own decoders. */
static int open_blocks(struct pb_raster *raster, const struct pb_limits *limits, struct pb_err *err)
{
    struct pb_raster_info *info = &raster->info;
    if (raster->is_jp2) {
        info->decoder_bytes = jp2_bytes(info);
        return 0;
    }
    const struct pb_file_part part = pb_raster_file_part(&raster->file);
    int rc = pb_raster_blocks_open(&raster->blocks, &part, raster->file.path,
                                   limits->max_directories, info, err);
    if (pb_gdal_has_mask_file(raster)) /* GDAL may prefer that mask */
        info->mask_blocks.block_w = 0;
    for (int i = 0; rc == 0 && i < info->n_bands; i++)
        set_fill(raster, i);
    return rc;
}

/* Opens a plain GeoTIFF whose CRS is loaded, and whose blocks are decoded here; any other file
 * stays as it was. */
static int open_plain(struct pb_raster *raster, const struct pb_tiff_header *header,
                      const struct pb_limits *limits, struct pb_err *err)
{
    const struct pb_file_part part = pb_raster_file_part(&raster->file);
    if (raster->is_jp2 || raster->has_sidecars)
        return 0;
    raster->known = pb_gdal_known(&header->geo.keys);
    if (raster->known == NULL)
        return 0;
    int rc =
        pb_tiff_plain_read(&part, raster->file.path, header, err, &raster->info, &raster->is_plain);
    if (rc < 0 || !raster->is_plain)
        return rc;
    raster->info.file_bytes = raster->file.bytes;
    raster->info.file_mtime_ns = raster->file.mtime_ns;
    pb_gdal_read_known(raster);
    rc = open_blocks(raster, limits, err);
    raster->is_plain = raster->info.own_blocks;
    if (rc < 0 || raster->is_plain)
        return rc;
    pb_raster_blocks_close(&raster->blocks);
    memset(&raster->info, 0, sizeof raster->info);
    return 0;
}

static int open_by_gdal(struct pb_raster *raster, const struct pb_tiff_header *header,
                        const struct pb_limits *limits, struct pb_err *err)
{
    int rc = open_dataset(raster, raster->file.path, err);
    rc = rc ? rc : pb_gdal_read_info(raster, limits, header, err);
    rc = rc ? rc : pb_gdal_check_sidecars(raster, err);
    return rc ? rc : open_blocks(raster, limits, err);
}

/* Chooses the page and checks the header. */
static int check_header(struct pb_raster *raster, int32_t page, const struct pb_limits *limits,
                        struct pb_err *err, struct pb_tiff_header *out_header)
{
    struct pb_raster_file *file = &raster->file;
    struct pb_file_part part = pb_raster_file_part(file);
    int rc = pb_jp2_look(&part, file->path, err, &raster->is_jp2);
    if (rc == 0 && raster->is_jp2 && page > 1)
        return pb_fail_at(err, PB_E_PIPELINE_BAND, file->path, 0, 0,
                          "it is a JPEG 2000 file, which has no page %d", (int)page);
    if (rc == 0 && raster->is_jp2)
        return pb_jp2_header_read(&part, file->path, limits, err, out_header);
    if (rc == 0 && page > 0)
        rc = pb_tiff_page_head(&part, file->path, page, limits, err, file->head, &file->head_bytes);
    part = pb_raster_file_part(file);
    rc = rc ? rc : pb_tiff_header_read(&part, file->path, limits, err, out_header);
    if (rc == 0 && out_header->unclear_masks && (page > 0 || out_header->n_pages_more > 0))
        rc = pb_fail_at(err, PB_E_INPUT_UNSUPPORTED, file->path, 0, 0,
                        "it has several masks after one of its pages, so that the mask of a page "
                        "is unknown; write each mask directly after its page");
    if (rc == 0 && page > 0)
        out_header->n_pages_more = 0; /* the configuration knows them */
    return rc;
}

/* Lines of a segment are copied from its memory: neither its blocks nor GDAL's cache are used. */
static void grow(struct pb_raster *raster)
{
    struct pb_raster_info *const info = &raster->info;
    info->is_growing = true;
    info->own_blocks = info->top_down = false;
    info->decoder_bytes = info->spared_bytes = 0;
    info->mask_blocks.block_w = 0;
}

int pb_raster_open(const char *path, const struct pb_limits *limits, struct pb_err *err,
                   struct pb_raster **out_raster)
{
    return pb_raster_open_page(path, 0, limits, err, out_raster);
}

int pb_raster_open_page(const char *path, int32_t page, const struct pb_limits *limits,
                        struct pb_err *err, struct pb_raster **out_raster)
{
    struct pb_tiff_header header;
    struct pb_raster *raster = calloc(1, sizeof *raster);
    if (raster == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to open %s", path);
    int rc = pb_raster_file_open(&raster->file, path, err);
    if (rc == 0 && raster->file.segment != NULL && page > 1)
        rc = pb_fail_at(err, PB_E_PIPELINE_BAND, path, 0, 0,
                        "it is a stream of lines, which has no page %d", (int)page);
    rc = rc ? rc
            : check_header(raster, raster->file.segment != NULL ? 0 : page, limits, err, &header);
    if (rc == 0) {
        pb_gdal_file_add(raster);
        rc = pb_gdal_limit_sidecars(raster, limits, err);
    }
    rc = rc ? rc : open_plain(raster, &header, limits, err);
    if (rc == 0 && !raster->is_plain)
        rc = open_by_gdal(raster, &header, limits, err);
    if (rc == 0 && raster->file.segment != NULL)
        grow(raster);
    const int is_closed =
        rc == 0 && raster->file.base == 0 ? pb_segment_is_closed(raster->file.fd) : 0;
    if (is_closed < 0)
        rc = pb_raster_file_fail(err, -is_closed, path, "cannot read the file");
    else if (is_closed)
        rc = pb_segment_open(raster->file.fd, path, err, &raster->lines);
    if (rc == 0)
        rc = pb_raster_unchanged(raster, err); /* header and metadata are of one state */
    if (rc == 0)
        *out_raster = raster;
    else
        pb_raster_close(raster);
    return rc;
}

int pb_raster_open_again(const struct pb_raster *first, const struct pb_limits *limits,
                         struct pb_err *err, struct pb_raster **out_raster)
{
    if (first->info.is_made)
        return pb_raster_make(&first->made, err, out_raster);
    struct pb_raster *raster = calloc(1, sizeof *raster);
    if (raster == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to open %s", first->file.path);
    raster->info = first->info;
    raster->dataset_mask = first->dataset_mask;
    raster->is_jp2 = first->is_jp2;
    int rc = pb_raster_file_again(&raster->file, &first->file, err);
    const struct pb_file_part part = pb_raster_file_part(&raster->file);
    const bool is_growing = raster->info.is_growing;
    if (rc == 0 && !raster->is_jp2 && !is_growing)
        rc = pb_raster_blocks_open(&raster->blocks, &part, raster->file.path,
                                   limits->max_directories, &raster->info, err);
    raster->blocks.fill = first->blocks.fill;
    if (rc == 0 && !is_growing && (!raster->info.own_blocks || raster->dataset_mask)) {
        pb_gdal_file_add(raster);
        rc = open_dataset(raster, raster->file.path, err);
    }
    if (rc == 0)
        rc = pb_raster_unchanged(raster, err); /* else the header could be another file's */
    if (rc == 0)
        *out_raster = raster;
    else
        pb_raster_close(raster);
    return rc;
}

void pb_raster_close(struct pb_raster *raster)
{
    struct pb_gdal_words words;
    if (raster == NULL)
        return;
    if (raster->dataset != NULL) {
        pb_gdal_listen(&words, raster);
        GDALClose(raster->dataset);
        pb_gdal_unlisten();
    }
    OSRDestroySpatialReference(raster->system); /* NULL is allowed */
    pb_gdal_file_remove(raster);
    pb_raster_blocks_close(&raster->blocks);
    pb_raster_file_close(&raster->file);
    pb_segment_destroy(raster->lines);
    free(raster->complex_row);
    free(raster->palette);
    free(raster);
}

const struct pb_raster_info *pb_raster_info(const struct pb_raster *raster)
{
    return &raster->info;
}

int pb_raster_unchanged(const struct pb_raster *raster, struct pb_err *err)
{
    return raster->info.is_made ? 0 : pb_raster_file_unchanged(&raster->file, err);
}
