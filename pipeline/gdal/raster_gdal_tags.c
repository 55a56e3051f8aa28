/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Georeferencing of a product as TIFF tags, which GDAL writes into a file of one pixel unless they
 * are plain. */
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/raster/tiff_plain.h"
#include "pipeline/raster/tiff_tags.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Maps the GCPs to pixels of another grid; the caller frees them with free_gcps(). NULL: out of
 * memory. */
static GDAL_GCP *map_gcps(const struct pb_raster *raster, const struct pb_map *map)
{
    int n = raster->info.n_gcps;
    GDAL_GCP *gcps = GDALDuplicateGCPs(n, GDALGetGCPs(raster->dataset));
    for (int i = 0; gcps != NULL && i < n; i++) {
        gcps[i].dfGCPPixel = gcps[i].dfGCPPixel * map->scale_x + map->offset_x;
        gcps[i].dfGCPLine = gcps[i].dfGCPLine * map->scale_y + map->offset_y;
    }
    return gcps;
}

static void free_gcps(const struct pb_raster *raster, GDAL_GCP *gcps)
{
    if (gcps == NULL)
        return;
    GDALDeinitGCPs(raster->info.n_gcps, gcps);
    CPLFree(gcps);
}

/* Maps one number of the RPCs to another grid. Their pixel 0 is the centre of the first pixel. */
static void map_rpc(char ***rpc, const char *offset, const char *scale, double map_scale,
                    double map_offset)
{
    char text[40];
    const char *at = CSLFetchNameValue(*rpc, offset), *size = CSLFetchNameValue(*rpc, scale);
    if (at == NULL || size == NULL)
        return;
    (void)CPLsnprintf(text, sizeof text, "%.17g",
                      (CPLAtof(at) + 0.5) * map_scale + map_offset - 0.5);
    *rpc = CSLSetNameValue(*rpc, offset, text);
    (void)CPLsnprintf(text, sizeof text, "%.17g", CPLAtof(size) * map_scale);
    *rpc = CSLSetNameValue(*rpc, scale, text);
}

static void copy_rpc(GDALDatasetH from, GDALDatasetH to, const struct pb_map *map)
{
    const struct pb_map same = pb_map_identity();
    char **rpc = CSLDuplicate(GDALGetMetadata(from, "RPC"));
    if (rpc != NULL && !pb_map_equal(map, &same)) {
        map_rpc(&rpc, "SAMP_OFF", "SAMP_SCALE", map->scale_x, map->offset_x);
        map_rpc(&rpc, "LINE_OFF", "LINE_SCALE", map->scale_y, map->offset_y);
    }
    if (rpc != NULL)
        (void)GDALSetMetadata(to, rpc, "RPC");
    CSLDestroy(rpc);
}

/* A plain GeoTIFF has the GeoKeys of a sample, whose pixels are areas. */
static const char *point_of(const struct pb_raster *raster)
{
    return raster->is_plain ? GDALMD_AOP_AREA
                            : GDALGetMetadataItem(raster->dataset, GDALMD_AREA_OR_POINT, NULL);
}

static void copy_place(const struct pb_raster *raster, const struct pb_map *map, GDALDatasetH to)
{
    GDALDatasetH from = raster->dataset;
    const char *point = point_of(raster);
    OGRSpatialReferenceH srs = pb_gdal_system(raster);
    if (point != NULL) /* before the transform, which is shifted by half a pixel when written */
        (void)GDALSetMetadataItem(to, GDALMD_AREA_OR_POINT, point, NULL);
    if (srs != NULL)
        (void)GDALSetSpatialRef(to, srs);
    if (raster->info.has_transform) {
        double transform[6];
        pb_map_transform(map, raster->info.transform, transform);
        (void)GDALSetGeoTransform(to, transform);
    } else if (raster->info.n_gcps > 0) {
        GDAL_GCP *gcps = map_gcps(raster, map);
        (void)GDALSetGCPs2(to, raster->info.n_gcps, gcps, GDALGetGCPSpatialRef(from));
        free_gcps(raster, gcps);
    }
    if (raster->info.has_rpc)
        copy_rpc(from, to, map);
}

static struct pb_map map_of(const struct pb_geo_extra *extra)
{
    return extra->grid != NULL ? extra->grid->map : pb_map_identity();
}

static void write_colours(const struct pb_band_facts *facts, GDALRasterBandH band)
{
    GDALColorTableH table = GDALCreateColorTable(GPI_RGB);
    for (size_t i = 0; table != NULL && i < facts->n_colours; i++) {
        const uint8_t *c = facts->colours[i];
        const GDALColorEntry entry = {c[0], c[1], c[2], c[3]};
        GDALSetColorEntry(table, (int)i, &entry);
    }
    if (table != NULL)
        (void)GDALSetRasterColorTable(band, table);
    GDALDestroyColorTable(table);
}

static void write_facts(const struct pb_band_facts *facts, GDALRasterBandH band)
{
    if (facts->scale != 0) {
        (void)GDALSetRasterScale(band, facts->scale);
        (void)GDALSetRasterOffset(band, facts->offset);
    }
    if (facts->unit[0] != '\0')
        (void)GDALSetRasterUnitType(band, facts->unit);
    if (facts->n_colours > 0)
        write_colours(facts, band);
    else if (facts->color > 0)
        (void)GDALSetRasterColorInterpretation(band, (GDALColorInterp)facts->color);
}

static bool write_small(const struct pb_raster *raster, const struct pb_geo_extra *extra,
                        const char *name)
{
    bool palette = extra->facts != NULL && extra->facts[0].n_colours > 0;
    const char *const options[] = {"PROFILE=GDALGeoTIFF",
                                   palette ? "PHOTOMETRIC=PALETTE" : "PHOTOMETRIC=MINISBLACK",
                                   "INTERLEAVE=PIXEL", "BIGTIFF=NO", NULL};
    int n = extra->n_bands > 0 ? (int)extra->n_bands : 1;
    GDALDatasetH to = GDALCreate(GDALGetDriverByName("GTiff"), name, 1, 1, n,
                                 pb_gdal_types[extra->type].gdal, (char **)(uintptr_t)options);
    if (to == NULL)
        return false;
    const struct pb_map map = map_of(extra);
    copy_place(extra->placed != NULL ? extra->placed : raster, &map, to);
    for (int i = 0; i < n; i++) {
        GDALRasterBandH band = GDALGetRasterBand(to, i + 1);
        if (extra->band_names != NULL && extra->band_names[i] != NULL)
            GDALSetDescription(band, extra->band_names[i]);
        if (extra->facts != NULL)
            write_facts(&extra->facts[i], band);
        if (extra->has_nodata)
            (void)GDALSetRasterNoDataValue(band, extra->nodata);
    }
    GDALClose(to);
    return true;
}

/* GDAL shifts the tie points of a PixelIsPoint file by half a pixel when reading, and GCPs by
 * another half when writing: a copy would move them by a pixel. This restores the values that a
 * reader shifts back. */
static void fix_tie_points(const struct pb_raster *raster, const struct pb_geo_extra *extra,
                           struct pb_tiff_tags *tags)
{
    const struct pb_map map = map_of(extra);
    const char *point = point_of(raster);
    double shift = point != NULL && strcmp(point, GDALMD_AOP_POINT) == 0 ? 0.5 : 0;
    uint64_t n = extra->placed != NULL ? 0 : (uint64_t)raster->info.n_gcps;
    GDAL_GCP *gcp = n > 0 ? map_gcps(raster, &map) : NULL;
    for (size_t i = 0; gcp != NULL && i < tags->n && !raster->info.has_transform; i++) {
        double *value = tags->tag[i].value;
        if (tags->tag[i].tag != 33922 || tags->tag[i].type != 12 || tags->tag[i].count != 6 * n)
            continue;
        for (uint64_t k = 0; k < n; k++) {
            value[6 * k] = gcp[k].dfGCPPixel - shift;
            value[6 * k + 1] = gcp[k].dfGCPLine - shift;
        }
    }
    free_gcps(raster, gcp);
}

/* Makes the tags of a plain product of a plain GeoTIFF; see pb_tiff_plain_tags. */
static int plain_tags(const struct pb_raster *raster, const struct pb_geo_extra *extra,
                      struct pb_err *err, struct pb_tiff_tags *out_tags, bool *out_done)
{
    const struct pb_tiff_keys *keys = raster->is_plain ? pb_gdal_known_keys(raster->known) : NULL;
    const struct pb_map map = map_of(extra);
    double transform[6];
    if (keys == NULL)
        return 0;
    pb_map_transform(&map, raster->info.transform, transform);
    return pb_tiff_plain_tags(keys, transform, extra, out_tags, out_done) == 0
               ? 0
               : pb_fail(err, PB_E_MEMORY, "no memory for the tags of %s", raster->file.path);
}

int pb_raster_geo_tags(struct pb_raster *raster, const struct pb_geo_extra *extra,
                       struct pb_err *err, struct pb_tiff_tags *out_tags)
{
    static const uint16_t wanted[] = {320,   33550, 33922, 34264, 34735,
                                      34736, 34737, 42112, 42113, 50844};
    struct pb_gdal_words words;
    char name[64];
    vsi_l_offset n_bytes = 0;
    int rc = -EIO, io = 0;
    bool done = false;
    if ((io = plain_tags(raster, extra, err, out_tags, &done)) < 0 || done)
        return io;
    if (raster->is_plain && pb_gdal_system(raster) == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the coordinate system of a product");
    (void)snprintf(name, sizeof name, "/vsimem/pb_geo_tags_%p.tif", (void *)raster);
    pb_gdal_listen(&words, raster);
    bool fine = write_small(raster, extra, name) && raster->file.error == 0;
    const GByte *bytes = fine ? VSIGetMemFileBuffer(name, &n_bytes, FALSE) : NULL;
    if (bytes != NULL)
        rc = pb_tiff_tags_take(bytes, (size_t)n_bytes, wanted, sizeof wanted / sizeof wanted[0],
                               out_tags);
    if (rc == 0)
        fix_tie_points(raster, extra, out_tags);
    (void)VSIUnlink(name);
    pb_gdal_unlisten();
    if ((io = pb_raster_file_check(&raster->file, err)) < 0)
        return io;
    if (rc < 0)
        return pb_fail_at(err, rc == -ENOMEM ? PB_E_MEMORY : PB_E_SYSTEM, raster->file.path, 0, 0,
                          "its georeferencing cannot be put into a product: %s",
                          pb_gdal_said(&words));
    return 0;
}
