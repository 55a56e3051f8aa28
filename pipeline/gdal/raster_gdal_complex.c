/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Conversion of complex pixels, and reading of those that GDAL decodes. */
#include "pipeline/gdal/raster_gdal_complex.h"
#include "pipeline/gdal/raster_gdal_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const GDALDataType gdal_types[PB_COMPLEX_COUNT] = {
    [PB_COMPLEX_NONE] = GDT_Unknown, [PB_COMPLEX_I16] = GDT_CInt16,   [PB_COMPLEX_I32] = GDT_CInt32,
    [PB_COMPLEX_F32] = GDT_CFloat32, [PB_COMPLEX_F64] = GDT_CFloat64,
};

enum pb_complex_kind pb_gdal_complex_kind(GDALDataType type)
{
    int i = PB_COMPLEX_COUNT - 1;
    while (i > PB_COMPLEX_NONE && gdal_types[i] != type)
        i--;
    return (enum pb_complex_kind)i;
}

/* Converts the value of blocks that are not stored: the file's nodata value, else 0. */
static void convert_fill(struct pb_raster *raster)
{
    struct pb_complex how = raster->info.complex;
    how.kind = PB_COMPLEX_F64;
    for (int i = 0; i < raster->info.n_bands; i++) {
        int has = 0;
        double fill = GDALGetRasterNoDataValue(GDALGetRasterBand(raster->dataset, i + 1), &has);
        const double sample[2] = {has ? fill : 0, 0};
        pb_complex_row(&how, sample, 1, 1, (float *)(void *)raster->blocks.fill.sample[i]);
    }
}

int pb_raster_choose_complex(struct pb_raster *raster, const struct pb_complex_choice *choice,
                             struct pb_err *err)
{
    struct pb_raster_info *info = &raster->info;
    struct pb_complex *how = &info->complex;
    if (how->kind == PB_COMPLEX_NONE)
        return 0;
    if (!choice->is_given)
        return pb_fail_at(err, PB_E_INPUT_COMPLEX, raster->file.path, 0, 0,
                          "its pixels are complex numbers (%s), and the configuration does not "
                          "choose how to read them (input.complex)",
                          pb_complex_name(how->kind));
    how->is_chosen = true;
    how->power = choice->as == PB_COMPLEX_POWER;
    how->has_nodata = choice->has_nodata || info->band[0].has_nodata; /* a TIFF has one value */
    how->nodata = choice->has_nodata ? choice->nodata : info->band[0].nodata;
    for (int i = 0; i < info->n_bands; i++)
        info->band[i].has_nodata = false;
    if (!raster->is_jp2)
        convert_fill(raster);
    return 0;
}

int pb_gdal_read_complex(struct pb_raster *raster, int band, const struct pb_rect *part, char *to,
                         size_t row_bytes)
{
    const struct pb_complex *how = &raster->info.complex;
    int bytes = (int)pb_complex_bytes(how->kind);
    if (raster->complex_row == NULL)
        raster->complex_row = malloc((size_t)raster->info.block_w * (size_t)bytes);
    if (raster->complex_row == NULL)
        return CE_Failure;
    for (int32_t y = 0; y < part->h; y++) {
        CPLErr rc = GDALRasterIOEx(GDALGetRasterBand(raster->dataset, band), GF_Read, part->x,
                                   part->y + y, part->w, 1, raster->complex_row, part->w, 1,
                                   gdal_types[how->kind], bytes, (GSpacing)part->w * bytes, NULL);
        if (rc != CE_None)
            return (int)rc;
        pb_complex_row(how, raster->complex_row, 1, (size_t)part->w,
                       (float *)(void *)(to + (size_t)y * row_bytes));
    }
    return CE_None;
}
