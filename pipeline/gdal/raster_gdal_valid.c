/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Selection of the validity source among those of a file. GDAL uses the first existing one of a
 * mask of the data set, nodata values and an alpha band (RFC 15, GDALRasterBand::GetMaskFlags).
 * A nodata value that the type cannot hold does not count (raster_gdal_info.c).
 *
 * A band that the configuration names is data, even if the file tags it as alpha: images of red,
 * green, blue and near infrared are often tagged as RGBA, and water, whose near infrared is 0,
 * would be invalid. */
#include "config/input_config.h"
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

static bool is_named(const struct pb_band_config *bands, size_t n_bands, int32_t number)
{
    bool found = false;
    for (size_t i = 0; i < n_bands; i++)
        found = found || bands[i].index == number;
    return found;
}

/* Uses the first alpha band that the configuration does not name. */
static void read_named_as_data(struct pb_raster *raster, const struct pb_band_config *bands,
                               size_t n_bands)
{
    struct pb_raster_info *info = &raster->info;
    while (info->alpha_band > 0 && is_named(bands, n_bands, info->alpha_band)) {
        int32_t next = info->alpha_band + 1;
        if (info->data_alpha == 0)
            info->data_alpha = info->alpha_band;
        while (next <= info->n_bands && !info->band[next - 1].is_alpha)
            next++;
        info->alpha_band = next <= info->n_bands ? next : 0;
    }
    info->has_mask = info->alpha_band > 0;
}

void pb_raster_choose_valid(struct pb_raster *raster, enum pb_valid valid,
                            const struct pb_band_config *bands, size_t n_bands)
{
    if (valid == PB_VALID_AUTO && !raster->dataset_mask && !has_nodata(&raster->info))
        read_named_as_data(raster, bands, n_bands);
    if (valid == PB_VALID_AUTO)
        valid = raster->dataset_mask        ? PB_VALID_MASK
                : has_nodata(&raster->info) ? PB_VALID_NODATA
                                            : PB_VALID_BOTH;
    if (valid == PB_VALID_MASK)
        leave_nodata(&raster->info);
    if (valid == PB_VALID_NODATA)
        leave_mask(raster);
}
