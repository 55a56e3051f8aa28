/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Which of a file's own means say what is valid. GDAL asks the first that is there of a mask of the
 * data set, nodata values and an alpha band (RFC 15, GDALRasterBand::GetMaskFlags). */
#include "pipeline/gdal/raster_gdal_inside.h"

static bool has_nodata(const struct pb_raster_info *info)
{
    bool has = false;
    for (int32_t i = 0; i < info->n_bands; i++)
        has = has || info->band[i].has_nodata || info->band[i].nodata_unreadable;
    return has;
}

static void leave_nodata(struct pb_raster_info *info)
{
    info->not_looked_at = has_nodata(info) ? "its nodata values" : NULL;
    for (int32_t i = 0; i < info->n_bands; i++)
        info->band[i].has_nodata = info->band[i].nodata_unreadable = false;
}

static void leave_mask(struct pb_raster *raster)
{
    struct pb_raster_info *info = &raster->info;
    if (info->has_mask)
        info->not_looked_at = raster->dataset_mask ? "its mask" : "its alpha band";
    raster->dataset_mask = info->has_mask = false;
    raster->info.alpha_band = 0;
}

void pb_raster_choose_valid(struct pb_raster *raster, enum pb_valid valid)
{
    if (valid == PB_VALID_AUTO)
        valid = raster->dataset_mask        ? PB_VALID_MASK
                : has_nodata(&raster->info) ? PB_VALID_NODATA
                                            : PB_VALID_BOTH;
    if (valid == PB_VALID_MASK)
        leave_nodata(&raster->info);
    if (valid == PB_VALID_NODATA)
        leave_mask(raster);
}
