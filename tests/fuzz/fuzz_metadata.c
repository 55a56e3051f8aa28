/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a TIFF: opened, and everything but its pixels taken over into a product: geo tags,
 * GDAL_METADATA, nodata, RPCs, CRS texts, footprint. A file is refused with a code of its own and
 * clean words, or its metadata are consistent. */
#include "config/limits_config.h"
#include "fuzz_check.h"
#include "pipeline/raster/raster.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct pb_limits limits = {.max_pixels = 1u << 24,
                                        .max_block_bytes = 1u << 24,
                                        .max_ratio = 10000,
                                        .max_side_px = 100000,
                                        .max_bands = 8,
                                        .max_directories = 8};

static void check_info(const struct pb_raster_info *info)
{
    require(info->n_bands >= 1 && info->n_bands <= limits.max_bands, "bands");
    require(info->width >= 1 && info->height >= 1, "size");
    require(info->block_w >= 1 && info->block_h >= 1, "blocks");
    for (int i = 0; info->has_transform && i < 6; i++)
        require(isfinite(info->transform[i]), "a transform that is not finite");
    for (int i = 0; info->has_orientation && i < 4; i++)
        require(isfinite(info->orientation[i]), "an orientation that is not finite");
    for (int32_t i = 0; i < info->n_bands; i++)
        require(memchr(info->band[i].description, '\0', sizeof info->band[i].description) != NULL,
                "a description without an end");
}

static void take(struct pb_raster *raster)
{
    static const char *const names[] = {"NDVI"};
    const struct pb_geo_extra extra = {
        .band_names = names, .n_bands = 1, .has_nodata = true, .nodata = -1, .type = PB_F32};
    struct pb_tiff_tags tags = {NULL, 0};
    struct pb_footprint footprint;
    struct pb_err err = {0};
    check_info(pb_raster_info(raster));
    if (pb_raster_geo_tags(raster, &extra, &err, &tags) == 0)
        for (size_t i = 1; i < tags.n; i++)
            require(tags.tag[i - 1].tag < tags.tag[i].tag, "the order of tags");
    else
        check_err(&err);
    pb_tiff_tags_free(&tags);
    if (pb_raster_footprint(raster, NULL, &footprint) == 0)
        for (size_t i = 0; i < footprint.n; i++)
            require(isfinite(footprint.lonlat[i][0]) && isfinite(footprint.lonlat[i][1]),
                    "a footprint that is not finite");
    free(pb_raster_wkt2(raster));
    free(pb_raster_projjson(raster));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static bool ready;
    char path[64];
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    if (!ready)
        pb_raster_init();
    ready = true;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes, "no memory file");
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (pb_raster_open(path, &limits, &err, &raster) == 0)
        take(raster);
    else
        check_err(&err);
    pb_raster_close(raster);
    (void)close(fd);
    return 0;
}
