/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RANDOM_SCENE_H
#define PB_RANDOM_SCENE_H
/* A GeoTIFF of random size, type, layout, codec and content, written by GDAL: the same file for the
 * same seed and the same GDAL. GDAL is registered by the caller. Thread: any. */
#include "tests/tools/mutate.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal.h>
#include <math.h>
#include <ogr_srs_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct random_scene {
    int w, h, bands, block_w, block_h;
    GDALDataType type;
    const char *codec, *interleave, *endian, *mask; /* mask: NULL, "mask" or "alpha" */
    int predictor, level;
    bool tiled, big, sparse, cog, overviews, has_nodata, is_south_up;
    double nodata;
    int content; /* index into RANDOM_CONTENTS */
};

enum { RANDOM_CONTENTS = 6, RANDOM_BYTES_MOST = 24 << 20 };

static inline int random_of(struct mutate *m, int from, int to)
{
    return from + (int)mutate_below(m, (size_t)(to - from + 1));
}

static inline bool random_one_in(struct mutate *m, size_t n)
{
    return mutate_below(m, n) == 0;
}

static inline void random_size(struct mutate *m, int side_most, struct random_scene *s)
{
    static const int most[] = {40, 200, 200, 600, 600, 600, 1500};
    int side = most[mutate_below(m, sizeof most / sizeof *most)];
    side = side < side_most ? side : side_most;
    s->w = random_of(m, 1, side);
    s->h = random_of(m, 1, side);
    s->bands = random_of(m, 1, 6);
    while ((int64_t)s->w * s->h * s->bands * GDALGetDataTypeSizeBytes(s->type) > RANDOM_BYTES_MOST)
        s->bands > 1 ? s->bands-- : (s->h /= 2);
}

static inline void random_blocks(struct mutate *m, struct random_scene *s)
{
    static const int sides[] = {16, 32, 48, 64, 128, 256, 256, 512, 512};
    enum { SIDES = sizeof sides / sizeof *sides };
    s->tiled = !random_one_in(m, 3);
    s->block_w = s->block_h = sides[mutate_below(m, SIDES)];
    if (random_one_in(m, 4))
        s->block_w = sides[mutate_below(m, SIDES)];
    if (!s->tiled) {
        s->block_w = s->w;
        s->block_h = random_one_in(m, 3) ? 1 : random_of(m, 1, s->h);
    }
}

/* Sets the values that GDAL's COG driver fixes. */
static inline void random_cog(struct mutate *m, struct random_scene *s)
{
    static const int sides[] = {128, 256, 512};
    s->cog = s->tiled = true;
    s->block_w = s->block_h = sides[mutate_below(m, 3)];
    s->codec = EQUAL(s->codec, "PACKBITS") ? "LZW" : s->codec;
    s->interleave = "PIXEL";
    s->endian = "LITTLE";
    s->overviews = false; /* it makes its own */
}

/* Prefers properties that a GPU decodes. */
static inline struct random_scene random_scene_of(struct mutate *m, int side_most)
{
    static const GDALDataType types[] = {GDT_Byte,    GDT_Byte,    GDT_UInt16, GDT_UInt16,
                                         GDT_UInt16,  GDT_Int16,   GDT_UInt32, GDT_Int32,
                                         GDT_Float32, GDT_Float32, GDT_Float64};
    static const char *const codecs[] = {"DEFLATE", "DEFLATE", "DEFLATE", "DEFLATE",
                                         "LZW",     "LZW",     "LZW",     "NONE",
                                         "NONE",    "ZSTD",    "PACKBITS"};
    struct random_scene s = {.type = types[mutate_below(m, sizeof types / sizeof *types)]};
    random_size(m, side_most, &s);
    random_blocks(m, &s);
    s.codec = codecs[mutate_below(m, sizeof codecs / sizeof *codecs)];
    bool predicts = EQUAL(s.codec, "DEFLATE") || EQUAL(s.codec, "LZW") || EQUAL(s.codec, "ZSTD");
    bool is_float = s.type == GDT_Float32 || s.type == GDT_Float64;
    s.predictor = predicts && random_one_in(m, 2) ? (is_float ? random_of(m, 2, 3) : 2) : 1;
    s.level = random_of(m, 1, 9);
    s.interleave = random_one_in(m, 3) ? "BAND" : "PIXEL";
    s.endian = random_one_in(m, 4) ? "BIG" : "LITTLE";
    s.big = random_one_in(m, 5);
    s.sparse = random_one_in(m, 6);
    s.overviews = random_one_in(m, 6);
    s.is_south_up = random_one_in(m, 20);
    s.mask = random_one_in(m, 14) ? "mask" : NULL;
    s.has_nodata = random_one_in(m, 3);
    s.nodata = is_float ? (random_one_in(m, 2) ? (double)NAN : -9999) : random_one_in(m, 2) ? 0 : 7;
    s.content = random_of(m, 0, RANDOM_CONTENTS - 1);
    if (random_one_in(m, 8))
        random_cog(m, &s);
    return s;
}

/* One value of a band, 0 .. 1: smooth ground with noise, constant fields, noise, nothing. */
static inline double random_value(struct mutate *m, const struct random_scene *s, int b, int x,
                                  int y)
{
    double noise = (double)(mutate_next(m) >> 11) / 9007199254740992.0;
    double ground = 0.5 + 0.3 * sin(x * 0.011 + b) * cos(y * 0.017 - b);
    switch (s->content) {
    case 0:
        return ground + 0.02 * noise;
    case 1:
        return (double)((x / 37 + y / 23 * 3 + b) % 11) / 11;
    case 2:
        return noise;
    case 3: /* long runs, as nodata makes them */
        return (x + y) % (s->w + s->h) < (s->w + s->h) / 3 ? 0 : ground + 0.01 * noise;
    case 4:
        return 0.25;
    default: /* repeated rows, which are long matches far back */
        return (double)(((unsigned)x * 2654435761u) >> 24) / 256 * ((y & 1) != 0 ? 1 : 0.5);
    }
}

static inline double random_stored(struct mutate *m, const struct random_scene *s, double value)
{
    if (s->type == GDT_Float32 || s->type == GDT_Float64) {
        if (s->content == 2 && random_one_in(m, 50))
            return random_one_in(m, 2) ? (double)NAN : (double)INFINITY;
        return value;
    }
    double most = s->type == GDT_Byte ? 255 : s->type == GDT_Int16 ? 32767 : 65535;
    if (s->has_nodata && random_one_in(m, 40))
        return s->nodata;
    return floor((random_one_in(m, 300) ? 1 : value) * most);
}

static inline bool random_fill(struct mutate *m, const struct random_scene *s, GDALDatasetH ds)
{
    double *row = malloc(sizeof *row * (size_t)s->w);
    bool good = row != NULL;
    /* Blocks that are not written are absent from a sparse file. */
    int from = s->sparse ? s->h / 3 : s->h, to = s->sparse ? s->h * 2 / 3 : s->h;
    for (int b = 0; b < s->bands && good; b++)
        for (int y = 0; y < s->h && good; y++) {
            for (int x = 0; x < s->w; x++)
                row[x] = random_stored(m, s, random_value(m, s, b, x, y));
            if (y < from || y >= to)
                good = GDALRasterIO(GDALGetRasterBand(ds, b + 1), GF_Write, 0, y, s->w, 1, row,
                                    s->w, 1, GDT_Float64, 0, 0) == CE_None;
        }
    free(row);
    return good;
}

static inline bool random_mask(const struct random_scene *s, GDALDatasetH ds)
{
    if (s->mask == NULL)
        return true;
    if (GDALCreateDatasetMaskBand(ds, GMF_PER_DATASET) != CE_None)
        return false;
    GDALRasterBandH mask = GDALGetMaskBand(GDALGetRasterBand(ds, 1));
    unsigned char *row = malloc((size_t)s->w);
    bool good = row != NULL;
    for (int y = 0; y < s->h && good; y++) {
        for (int x = 0; x < s->w; x++)
            row[x] = (x / 9 + y / 13) % 5 == 0 ? 0 : 255;
        good = GDALRasterIO(mask, GF_Write, 0, y, s->w, 1, row, s->w, 1, GDT_Byte, 0, 0) == CE_None;
    }
    free(row);
    return good;
}

static inline char **random_options(const struct random_scene *s)
{
    char **o = CSLSetNameValue(NULL, "COMPRESS", s->codec);
    o = CSLSetNameValue(o, "BIGTIFF", s->big ? "YES" : "NO");
    o = CSLSetNameValue(o, "SPARSE_OK", s->sparse ? "TRUE" : "FALSE");
    if (s->cog) {
        o = CSLSetNameValue(o, "BLOCKSIZE", CPLSPrintf("%d", s->block_h));
        return CSLSetNameValue(o, "PREDICTOR", s->predictor > 1 ? "YES" : "NO");
    }
    if (s->predictor > 1)
        o = CSLSetNameValue(o, "PREDICTOR", CPLSPrintf("%d", s->predictor));
    if (EQUAL(s->codec, "DEFLATE"))
        o = CSLSetNameValue(o, "ZLEVEL", CPLSPrintf("%d", s->level));
    o = CSLSetNameValue(o, "INTERLEAVE", s->interleave);
    o = CSLSetNameValue(o, "ENDIANNESS", s->endian);
    if (s->tiled) {
        o = CSLSetNameValue(o, "TILED", "YES");
        o = CSLSetNameValue(o, "BLOCKXSIZE", CPLSPrintf("%d", s->block_w));
    }
    return CSLSetNameValue(o, "BLOCKYSIZE", CPLSPrintf("%d", s->block_h));
}

static inline void random_place(const struct random_scene *s, GDALDatasetH ds)
{
    double north[6] = {600000, 10, 0, 5900040, 0, -10}, south[6] = {600000, 10, 0, 5800040, 0, 10};
    GDALSetGeoTransform(ds, s->is_south_up ? south : north);
    OGRSpatialReferenceH crs = OSRNewSpatialReference(NULL);
    if (OSRImportFromEPSG(crs, 32632) == OGRERR_NONE)
        GDALSetSpatialRef(ds, crs);
    OSRDestroySpatialReference(crs);
    for (int b = 1; b <= s->bands && s->has_nodata; b++)
        GDALSetRasterNoDataValue(GDALGetRasterBand(ds, b), s->nodata);
}

/* A COG is made of a whole image. */
static inline GDALDatasetH random_create(const struct random_scene *s, const char *path)
{
    char **options = s->cog ? NULL : random_options(s);
    GDALDriverH driver = GDALGetDriverByName(s->cog ? "MEM" : "GTiff");
    GDALDatasetH ds = GDALCreate(driver, path, s->w, s->h, s->bands, s->type, options);
    CSLDestroy(options);
    return ds;
}

static inline bool random_finish(const struct random_scene *s, GDALDatasetH ds, const char *path)
{
    int levels[] = {2, 4};
    bool good = true;
    if (s->cog) {
        char **options = random_options(s);
        GDALDatasetH cog =
            GDALCreateCopy(GDALGetDriverByName("COG"), path, ds, 0, options, NULL, NULL);
        CSLDestroy(options);
        good = cog != NULL;
        if (cog != NULL)
            GDALClose(cog);
    } else if (s->overviews) {
        good = GDALBuildOverviews(ds, "NEAREST", 2, levels, 0, NULL, NULL, NULL) == CE_None;
    }
    GDALClose(ds);
    return good;
}

/* Writes the scene of the seed; its sides are at most `side_most` pixels. False: GDAL failed. */
static inline bool random_scene_make(uint64_t seed, int side_most, const char *path,
                                     struct random_scene *out)
{
    struct mutate m = {seed};
    *out = random_scene_of(&m, side_most);
    CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES");
    GDALDatasetH ds = random_create(out, path);
    if (ds == NULL)
        return false;
    random_place(out, ds);
    bool good = random_mask(out, ds) && random_fill(&m, out, ds);
    return random_finish(out, ds, path) && good;
}

static inline void random_scene_say(const struct random_scene *s, FILE *to)
{
    (void)fprintf(to,
                  "{\"size\": [%d, %d], \"bands\": %d, \"type\": \"%s\", \"codec\": \"%s\", "
                  "\"layout\": \"%s %dx%d %s %s%s%s%s%s%s\", \"predictor\": %d, \"nodata\": %s}\n",
                  s->w, s->h, s->bands, GDALGetDataTypeName(s->type), s->codec,
                  s->cog     ? "COG"
                  : s->tiled ? "tiles"
                             : "strips",
                  s->block_w, s->block_h, s->interleave, s->endian, s->big ? " BigTIFF" : "",
                  s->sparse ? " sparse" : "", s->overviews ? " overviews" : "",
                  s->mask != NULL ? " mask" : "", s->is_south_up ? " south-up" : "", s->predictor,
                  s->has_nodata ? "true" : "false");
}
#endif
