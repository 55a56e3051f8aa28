/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Makes a synthetic scene (scene_ground.h has the kinds) as a GeoTIFF of any size, type, layout and
 * compression, the same bytes for the same arguments. For demonstrations, tests and benchmarks. */
#include "scene_ground.h"

#include <gdal.h>
#include <cpl_conv.h>
#include <cpl_string.h>
#include <ogr_srs_api.h>

#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scene {
    int width, height, bands, block, epsg;
    enum ground_kind kind;
    GDALDataType type;
    const char *compress, *interleave, *path;
    bool strips, collar;
    uint32_t seed;
    double pixel, east, north; /* metres; of the upper left corner */
    double clouds;             /* share of the image under them; the last band says where */
    int cloud_octaves;         /* 1: closed decks; 4: broken ones */
    float cloud_level;         /* of their noise, above which a pixel is under a cloud */
};

/* Classes of the last band, as in Sentinel-2's scene classification. */
enum { CLEAR = 4, CLOUD = 9 };

static void cloud_row(const struct scene *s, float *row, int y)
{
    /* Of a size on the ground, 25 km, whatever the pixels. */
    ground_noise(row, s->width, y, (int)(25000 / s->pixel) + 1, s->cloud_octaves, s->seed + 41u);
}

/* So that the wanted share of the pixels lies above it; every sixteenth row counts. */
static int find_cloud_level(struct scene *s)
{
    enum { BINS = 4096, STEP = 16 };
    uint64_t count[BINS] = {0}, n = 0, above = 0;
    float *row = malloc(sizeof *row * (size_t)s->width);
    if (row == NULL)
        return -1;
    for (int y = 0; y < s->height; y += STEP) {
        cloud_row(s, row, y);
        for (int x = 0; x < s->width; x++, n++)
            count[(int)(row[x] * (BINS - 1))]++;
    }
    free(row);
    int bin = BINS;
    while (bin > 0 && (double)above < s->clouds * (double)n)
        above += count[--bin];
    s->cloud_level = s->clouds < 1 ? (float)bin / (BINS - 1) : 0;
    return 0;
}

/* Pixels outside the swath of a scene taken in passing: a slanted border without data. */
static bool outside(const struct scene *s, int x, int y)
{
    int slant = (int)((int64_t)(s->height - y) * s->width / 8 / s->height);
    return s->collar && (x < slant || x >= s->width - s->width / 8 + slant);
}

static double stored(const struct scene *s, int b, float value)
{
    if (s->kind == GROUND_RELIEF || (s->clouds >= 0 && b == s->bands - 1))
        return value;
    double dn = s->type == GDT_Byte                                ? value * 400.0
                : s->type == GDT_Float32 || s->type == GDT_Float64 ? value
                                                                   : value * 10000.0;
    return dn < 0 ? 0 : dn;
}

static GDALDatasetH create(const struct scene *s)
{
    char text[32];
    char **options = CSLSetNameValue(NULL, "COMPRESS", s->compress);
    options = CSLSetNameValue(options, "INTERLEAVE", s->interleave);
    options = CSLSetNameValue(options, "NUM_THREADS", "ALL_CPUS");
    options = CSLSetNameValue(options, "BIGTIFF", "IF_SAFER");
    if (!EQUAL(s->compress, "NONE") && s->type != GDT_Float32 && s->type != GDT_Float64)
        options = CSLSetNameValue(options, "PREDICTOR", "2");
    (void)snprintf(text, sizeof text, "%d", s->block);
    if (!s->strips) {
        options = CSLSetNameValue(options, "TILED", "YES");
        options = CSLSetNameValue(options, "BLOCKXSIZE", text);
    }
    options = CSLSetNameValue(options, "BLOCKYSIZE", text);
    GDALDatasetH ds = GDALCreate(GDALGetDriverByName("GTiff"), s->path, s->width, s->height,
                                 s->bands, s->type, options);
    CSLDestroy(options);
    if (ds == NULL)
        return NULL;
    double transform[6] = {s->east, s->pixel, 0, s->north, 0, -s->pixel};
    GDALSetGeoTransform(ds, transform);
    OGRSpatialReferenceH crs = OSRNewSpatialReference(NULL);
    if (OSRImportFromEPSG(crs, s->epsg) == OGRERR_NONE)
        GDALSetSpatialRef(ds, crs);
    OSRDestroySpatialReference(crs);
    if (s->collar)
        GDALSetRasterNoDataValue(GDALGetRasterBand(ds, 1), s->kind == GROUND_RELIEF ? -9999 : 0);
    GDALSetMetadataItem(ds, "TIFFTAG_DATETIME", "2026:06:21 10:30:31", NULL);
    return ds;
}

/* How thick clouds are over the pixels of a row, 0 .. 1. */
static void thickness(const struct scene *s, float *row, int y)
{
    cloud_row(s, row, y);
    for (int x = 0; x < s->width; x++) {
        float above = (row[x] - s->cloud_level) * 9.0f;
        row[x] = above < 0 ? 0 : above > 1 ? 1 : above;
    }
}

static void make_row(const struct scene *s, struct ground *ground, int y, float *clouds, float *row)
{
    enum { SHADOW_PX = 38 };
    size_t w = (size_t)s->width, n = w * (size_t)s->bands;
    struct ground_sky sky = {NULL, NULL};
    if (s->clouds >= 0) {
        thickness(s, clouds, y);
        thickness(s, clouds + w, y + SHADOW_PX);
        sky = (struct ground_sky){clouds, clouds + w};
    }
    ground_row(ground, y, s->bands, &sky, row);
    if (s->clouds >= 0) {
        cloud_row(s, clouds, y);
        for (size_t x = 0; x < w; x++)
            row[n - w + x] = clouds[x] >= s->cloud_level ? CLOUD : CLEAR;
    }
    for (size_t i = 0; i < n; i++)
        row[i] = outside(s, (int)(i % w), y) ? (s->kind == GROUND_RELIEF ? -9999.0f : 0.0f)
                                             : (float)stored(s, (int)(i / w), row[i]);
}

static int fill(const struct scene *s, GDALDatasetH ds)
{
    enum { STEP = 256 };
    size_t w = (size_t)s->width, bands = (size_t)s->bands;
    float *block = malloc(sizeof(float) * w * STEP * bands);
    float *clouds = malloc(sizeof(float) * w * 2);
    struct ground *ground = ground_create(s->kind, s->width, s->seed);
    int rc = block != NULL && clouds != NULL && ground != NULL ? 0 : -1;
    for (int y0 = 0; y0 < s->height && rc == 0; y0 += STEP) {
        int n = s->height - y0 < STEP ? s->height - y0 : STEP;
        for (int y = y0; y < y0 + n; y++)
            make_row(s, ground, y, clouds, block + (size_t)(y - y0) * w * bands);
        if (GDALDatasetRasterIO(ds, GF_Write, 0, y0, s->width, n, block, s->width, n, GDT_Float32,
                                s->bands, NULL, 4, (int)(w * bands * 4), (int)(w * 4)) != CE_None)
            rc = -1;
    }
    free(block);
    free(clouds);
    ground_destroy(ground);
    return rc;
}

static void list_kinds(FILE *out, const char *indent)
{
    for (const struct ground_kind_text *kind = ground_kinds; kind->name != NULL; kind++)
        (void)fprintf(out, "%s%-12s %s\n", indent, kind->name, kind->shows);
}

static void usage(FILE *out)
{
    fputs("usage: make_scene [options] OUT.tif\n"
          "  --size WxH        pixels (1024x1024)\n"
          "  --kind KIND       what is seen (fields); 'list' lists them:\n",
          out);
    list_kinds(out, "      ");
    fputs(
        "  --bands N         B G R N and weaker ones after (4; relief 1)\n"
        "  --type TYPE       Byte UInt16 Int16 UInt32 Int32 Float32 Float64 (UInt16; relief "
        "Float32)\n"
        "  --compress CODEC  NONE DEFLATE LZW ZSTD ... (DEFLATE)\n"
        "  --interleave WAY  PIXEL | BAND (PIXEL)\n"
        "  --block N         side of a tile, or rows of a strip (512)\n"
        "  --strips          strips instead of tiles\n"
        "  --collar          a slanted border without data\n"
        "  --clouds SHARE    0 to 1: clouds take that share, and cast shadows; the last band is a "
        "mask, 9 under clouds and 4 elsewhere\n"
        "  --cloud-octaves N 1: closed clouds, to 4: broken ones (4)\n"
        "  --epsg CODE       CRS (32632)\n"
        "  --pixel METRES    side of a pixel (10)\n"
        "  --corner E,N      of the upper left pixel (600000,5900040)\n"
        "  --seed N          another ground (1)\n",
        out);
}

static int take_kind(struct scene *s)
{
    if (EQUAL(optarg, "list")) {
        list_kinds(stdout, "");
        exit(0);
    }
    for (int i = 0; ground_kinds[i].name != NULL; i++)
        if (EQUAL(optarg, ground_kinds[i].name)) {
            s->kind = (enum ground_kind)i;
            return 0;
        }
    return -1;
}

/* One option; *type is the name of the sample type. */
static int take_option(int option, struct scene *s, const char **type)
{
    switch (option) {
    case 's':
        return sscanf(optarg, "%dx%d", &s->width, &s->height) == 2 ? 0 : -1;
    case 'k':
        return take_kind(s);
    case 'b':
        s->bands = atoi(optarg);
        return 0;
    case 't':
        *type = optarg;
        return 0;
    case 'c':
        s->compress = optarg;
        return 0;
    case 'i':
        s->interleave = optarg;
        return 0;
    case 'B':
        s->block = atoi(optarg);
        return 0;
    case 'S':
        s->strips = true;
        return 0;
    case 'C':
        s->collar = true;
        return 0;
    case 'e':
        s->epsg = atoi(optarg);
        return 0;
    case 'r':
        s->seed = (uint32_t)strtoul(optarg, NULL, 10);
        return 0;
    case 'p':
        s->pixel = atof(optarg);
        return 0;
    case 'o':
        return sscanf(optarg, "%lf,%lf", &s->east, &s->north) == 2 ? 0 : -1;
    case 'l':
        s->clouds = atof(optarg);
        return s->clouds >= 0 && s->clouds <= 1 ? 0 : -1;
    case 'O':
        s->cloud_octaves = atoi(optarg);
        return s->cloud_octaves >= 1 && s->cloud_octaves <= 4 ? 0 : -1;
    case 'h':
        usage(stdout);
        exit(0);
    default:
        return -1;
    }
}

static int parse(int argc, char **argv, struct scene *s)
{
    static const struct option longs[] = {{"size", 1, 0, 's'},
                                          {"kind", 1, 0, 'k'},
                                          {"bands", 1, 0, 'b'},
                                          {"type", 1, 0, 't'},
                                          {"compress", 1, 0, 'c'},
                                          {"interleave", 1, 0, 'i'},
                                          {"block", 1, 0, 'B'},
                                          {"strips", 0, 0, 'S'},
                                          {"collar", 0, 0, 'C'},
                                          {"epsg", 1, 0, 'e'},
                                          {"seed", 1, 0, 'r'},
                                          {"help", 0, 0, 'h'},
                                          {"pixel", 1, 0, 'p'},
                                          {"corner", 1, 0, 'o'},
                                          {"clouds", 1, 0, 'l'},
                                          {"cloud-octaves", 1, 0, 'O'},
                                          {0, 0, 0, 0}};
    const char *type = NULL;
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;)
        if (take_option(c, s, &type) < 0)
            return -1;
    if (s->bands == 0)
        s->bands = s->kind == GROUND_RELIEF ? 1 : 4;
    s->type = type                       ? GDALGetDataTypeByName(type)
              : s->kind == GROUND_RELIEF ? GDT_Float32
                                         : GDT_UInt16;
    s->path = argv[optind];
    return optind + 1 == argc && s->type != GDT_Unknown && s->width > 0 && s->height > 0 &&
                   s->bands > 0 && s->pixel > 0
               ? 0
               : -1;
}

int main(int argc, char **argv)
{
    struct scene s = {.width = 1024,
                      .height = 1024,
                      .block = 512,
                      .epsg = 32632,
                      .compress = "DEFLATE",
                      .interleave = "PIXEL",
                      .seed = 1,
                      .pixel = 10,
                      .clouds = -1,
                      .cloud_octaves = 4,
                      .east = 600000,
                      .north = 5900040};
    if (parse(argc, argv, &s) < 0) {
        usage(stderr);
        return 2;
    }
    GDALAllRegister();
    GDALDatasetH ds = s.clouds < 0 || find_cloud_level(&s) == 0 ? create(&s) : NULL;
    int rc = ds ? fill(&s, ds) : -1;
    if (ds)
        GDALClose(ds);
    if (rc < 0)
        fprintf(stderr, "make_scene: %s could not be written\n", s.path);
    return rc < 0 ? 1 : 0;
}
