/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties of a scene, read by GDAL from the header: type, layout, bands, nodata, mask,
 * limits. */
#include "pipeline/gdal/raster_gdal_info.h"

#include "config/limits_config.h"
#include "kernels/nodata.h"
#include "pipeline/gdal/raster_gdal_complex.h"
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "kernels/expr/mask_presets.h"
#include "pipeline/raster/tiff_header.h"
#include "pipeline/raster/tiff_plain.h"
#include "config/base/text_clean.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_lossy(GDALDatasetH dataset, const char *compression)
{
    const char *kind = GDALGetMetadataItem(dataset, "COMPRESSION_REVERSIBILITY", "IMAGE_STRUCTURE");
    const char *error = GDALGetMetadataItem(dataset, "MAX_Z_ERROR", "IMAGE_STRUCTURE");
    if (strstr(compression, "JPEG") != NULL && strcmp(compression, "JPEG2000") != 0)
        return true;
    if (strcmp(compression, "JPEG2000") == 0 || strcmp(compression, "WEBP") == 0 ||
        strcmp(compression, "JXL") == 0)
        return kind == NULL || strncmp(kind, "LOSSLESS", 8) != 0;
    return strstr(compression, "LERC") != NULL && error != NULL && CPLAtof(error) > 0;
}

/* Returns true for a number: GDAL reads a nodata tag that is no number as 0. */
static bool is_number(const char *text)
{
    char *end = NULL;
    (void)CPLStrtod(text, &end);
    while (end != NULL && *end == ' ')
        end++;
    return text[0] != '\0' && end != text && *end == '\0';
}

/* GDAL returns values beyond float32 as an infinity, which is a valid float32; the tag decides. */
static void drop_unfit(const struct pb_raster *raster, const struct pb_tiff_header *header,
                       struct pb_raster_band *band)
{
    if (!band->has_nodata || raster->info.complex.kind != PB_COMPLEX_NONE)
        return;
    const double value = header->geo.nodata ? CPLStrtod(header->nodata, NULL) : band->nodata;
    band->nodata_unfit = !pb_nodata_fits(raster->info.type, value);
    band->has_nodata = !band->nodata_unfit;
    if (band->nodata_unfit)
        band->nodata = value;
}

static void read_band(struct pb_raster *raster, const struct pb_tiff_header *header, int i)
{
    GDALRasterBandH band = GDALGetRasterBand(raster->dataset, i + 1);
    struct pb_raster_band *out = &raster->info.band[i];
    int has = 0;
    out->nodata = GDALGetRasterNoDataValue(band, &has);
    out->nodata = has ? out->nodata : 0;
    /* Without a tag in the file the value is the sidecar's. */
    bool told = header->geo.nodata ? is_number(header->nodata) : raster->has_sidecars;
    out->has_nodata = has && told;
    out->nodata_unreadable = header->geo.nodata && !out->has_nodata;
    drop_unfit(raster, header, out);
    out->is_alpha = GDALGetRasterColorInterpretation(band) == GCI_AlphaBand &&
                    raster->info.complex.kind == PB_COMPLEX_NONE;
    (void)pb_text_clean(GDALGetDescription(band), out->description, sizeof out->description);
    if (raster->known == NULL || header->geo.unit) /* else GDAL would derive the CRS for its unit */
        (void)pb_text_clean(GDALGetRasterUnitType(band), out->unit, sizeof out->unit);
    out->color = (int32_t)GDALGetRasterColorInterpretation(band);
    out->scale = GDALGetRasterScale(band, &has);
    out->offset = GDALGetRasterOffset(band, &has);
    out->is_class =
        raster->info.type != PB_F32 && raster->info.type != PB_F64 &&
        (GDALGetRasterColorTable(band) != NULL || GDALGetRasterCategoryNames(band) != NULL ||
         pb_mask_is_quality_band(out->description));
    if (out->is_alpha && raster->info.alpha_band == 0)
        raster->info.alpha_band = i + 1;
}

static int read_type(struct pb_raster *raster, struct pb_err *err)
{
    GDALRasterBandH band = GDALGetRasterBand(raster->dataset, 1);
    GDALDataType type = GDALGetRasterDataType(band);
    const char *pixel = GDALGetMetadataItem(band, "PIXELTYPE", "IMAGE_STRUCTURE");
    int i = 0;
    while (i < PB_TYPE_COUNT && pb_gdal_types[i].gdal != type)
        i++;
    if (pixel != NULL && strcmp(pixel, "SIGNEDBYTE") == 0)
        return pb_fail_at(err, PB_E_INPUT_UNSUPPORTED, raster->file.path, 0, 0,
                          "its pixels are signed 8-bit integers; pushbroom reads Byte, Int16, "
                          "UInt16, Int32, UInt32, Float32 and Float64");
    raster->info.complex.kind = pb_gdal_complex_kind(type);
    if (raster->info.complex.kind != PB_COMPLEX_NONE)
        i = PB_F32; /* type as which they are read */
    if (i == PB_TYPE_COUNT)
        return pb_fail_at(err, PB_E_INPUT_UNSUPPORTED, raster->file.path, 0, 0,
                          "its pixels are %s; pushbroom reads Byte, Int16, UInt16, Int32, UInt32, "
                          "Float32, Float64 and complex ones of Int16, Int32, Float32 and Float64",
                          GDALGetDataTypeName(type));
    raster->info.type = (enum pb_type)i;
    return 0;
}

static int read_palette(struct pb_raster *raster, struct pb_err *err)
{
    GDALColorTableH table = GDALGetRasterColorTable(GDALGetRasterBand(raster->dataset, 1));
    int n = table != NULL ? GDALGetColorEntryCount(table) : 0;
    raster->info.has_palette = table != NULL;
    if (n <= 0)
        return 0;
    raster->palette = calloc((size_t)n, sizeof *raster->palette);
    if (raster->palette == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the colours of %s", raster->file.path);
    for (int i = 0; i < n; i++) {
        GDALColorEntry entry = {0, 0, 0, 0};
        (void)GDALGetColorEntryAsRGB(table, i, &entry);
        const short level[4] = {entry.c1, entry.c2, entry.c3, entry.c4};
        for (int c = 0; c < 4; c++)
            raster->palette[i][c] = (uint8_t)level[c];
    }
    raster->info.palette = (const uint8_t(*)[4])raster->palette;
    raster->info.n_palette = (size_t)n;
    return 0;
}

static int read_layout(struct pb_raster *raster, const struct pb_tiff_header *header,
                       struct pb_err *err)
{
    struct pb_raster_info *info = &raster->info;
    GDALRasterBandH band = GDALGetRasterBand(raster->dataset, 1);
    const char *interleave = GDALGetMetadataItem(raster->dataset, "INTERLEAVE", "IMAGE_STRUCTURE");
    const char *compression =
        GDALGetMetadataItem(raster->dataset, "COMPRESSION", "IMAGE_STRUCTURE");
    GDALGetBlockSize(band, &info->block_w, &info->block_h);
    info->pixel_interleaved =
        info->n_bands > 1 && interleave != NULL && strcmp(interleave, "PIXEL") == 0;
    if (raster->is_jp2)
        compression = "JPEG2000";
    (void)pb_text_clean(compression ? compression : "NONE", info->compression,
                        sizeof info->compression);
    info->lossy = is_lossy(raster->dataset, info->compression);
    info->n_pages_more = header->n_pages_more;
    info->top_down = header->one_strip && info->block_h < info->height;
    info->stored_block_bytes = header->stored_block_max;
    for (int i = 0; i < info->n_bands; i++)
        read_band(raster, header, i);
    int flags = GDALGetMaskFlags(band);
    /* GDAL takes the first mask in the file, whatever its page. */
    raster->dataset_mask =
        (flags & GMF_PER_DATASET) && !(flags & GMF_ALPHA) && !header->foreign_mask;
    if (raster->dataset_mask)
        raster->info.alpha_band = 0;
    info->has_mask = raster->dataset_mask || raster->info.alpha_band > 0;
    if (info->width != header->width || info->height != header->height)
        return pb_fail_at(err, PB_E_INPUT_DAMAGED, raster->file.path, 0, 0,
                          "its header is contradictory: %d x %d or %d x %d pixels",
                          (int)header->width, (int)header->height, (int)info->width,
                          (int)info->height);
    return read_palette(raster, err);
}

/* Checks the limits again, on GDAL's values of the header. */
static int check_limits(const struct pb_raster *raster, const struct pb_limits *limits,
                        struct pb_err *err)
{
    const struct pb_raster_info *info = &raster->info;
    uint64_t planes = info->pixel_interleaved ? (uint64_t)info->n_bands : 1;
    uint64_t pixels = (uint64_t)info->block_w * (uint64_t)info->block_h;
    if (info->block_w < 1 || info->block_h < 1)
        return pb_fail_at(err, PB_E_INPUT_DAMAGED, raster->file.path, 0, 0,
                          "its blocks have no size");
    if (pixels > limits->max_block_bytes / (pb_raster_sample_bytes(info) * planes))
        return pb_fail_at(err, PB_E_INPUT_LIMIT, raster->file.path, 0, 0,
                          "one block has %d x %d pixels of %llu bands, more than the limit of %llu "
                          "bytes (limits.max_block_bytes)",
                          (int)info->block_w, (int)info->block_h, (unsigned long long)planes,
                          (unsigned long long)limits->max_block_bytes);
    return 0;
}

int pb_gdal_read_info(struct pb_raster *raster, const struct pb_limits *limits,
                      const struct pb_tiff_header *header, struct pb_err *err)
{
    struct pb_raster_info *info = &raster->info;
    struct pb_gdal_words words; /* a warning about metadata is not an error */
    int n_bands = GDALGetRasterCount(raster->dataset);
    if (n_bands < 1)
        return pb_fail_at(err, PB_E_INPUT_DAMAGED, raster->file.path, 0, 0,
                          "the file has no bands");
    if (n_bands > limits->max_bands || n_bands > PB_BANDS_MAX)
        return pb_fail_at(err, PB_E_INPUT_LIMIT, raster->file.path, 0, 0,
                          "the file has %d bands; at most %d are taken (limits.max_bands)", n_bands,
                          limits->max_bands < PB_BANDS_MAX ? (int)limits->max_bands : PB_BANDS_MAX);
    info->width = GDALGetRasterXSize(raster->dataset);
    info->height = GDALGetRasterYSize(raster->dataset);
    info->n_bands = n_bands;
    info->file_bytes = raster->file.bytes;
    info->file_mtime_ns = raster->file.mtime_ns;
    int rc = read_type(raster, err);
    if (rc < 0)
        return rc;
    if (!raster->is_jp2 && !raster->has_sidecars)
        raster->known = pb_gdal_known(&header->geo.keys);
    pb_gdal_listen(&words, raster);
    rc = read_layout(raster, header, err);
    if (rc == 0) {
        pb_gdal_read_place(raster);
        pb_tiff_datetime(GDALGetMetadataItem(raster->dataset, "TIFFTAG_DATETIME", NULL),
                         info->datetime);
        rc = check_limits(raster, limits, err);
    }
    pb_gdal_unlisten();
    /* Metadata that could not be read looks like absent metadata. */
    if (rc == 0)
        rc = pb_raster_file_check(&raster->file, err);
    return rc < 0 ? rc : pb_gdal_check_place(raster, &header->geo, &words, err);
}

/* 999 is GDAL's value for "unknown". */
double pb_raster_cloud_cover(struct pb_raster *raster)
{
    struct pb_gdal_words words;
    char *end = NULL;
    if (raster->is_plain) /* has no metadata */
        return (double)NAN;
    pb_gdal_listen(&words, raster);
    const char *text = GDALGetMetadataItem(raster->dataset, "CLOUDCOVER", "IMAGERY");
    double percent = text != NULL ? CPLStrtod(text, &end) : NAN;
    pb_gdal_unlisten();
    bool is_number = text != NULL && end != text && *end == '\0';
    return is_number && percent >= 0 && percent <= 100 ? percent : NAN;
}

void pb_raster_acquired(struct pb_raster *raster, char *out, size_t bytes)
{
    struct pb_gdal_words words;
    out[0] = '\0';
    if (raster->is_plain)
        return;
    pb_gdal_listen(&words, raster);
    const char *text = GDALGetMetadataItem(raster->dataset, "ACQUISITIONDATETIME", "IMAGERY");
    int n = snprintf(out, bytes, "%s", text != NULL ? text : "");
    pb_gdal_unlisten();
    if (n < 0 || (size_t)n >= bytes)
        out[0] = '\0';
}
