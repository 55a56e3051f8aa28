/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Makes a synthetic scene: fields, coast or relief, as a GeoTIFF of any size, type, layout and
 * compression, the same bytes for the same arguments. For demonstrations, tests and benchmarks.
 *
 * The ground is fractal value noise (integer hash of a lattice, smooth interpolation, four
 * octaves): smooth like nature and noisy in the low bits like a sensor, so that it compresses about
 * as a real scene does. */
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

enum kind { FIELDS, COAST, RELIEF };

struct scene {
    int width, height, bands, block, epsg;
    enum kind kind;
    GDALDataType type;
    const char *compress, *interleave, *path;
    bool strips, collar;
    uint32_t seed;
    double pixel, east, north; /* metres; of the upper left corner */
    double clouds;             /* share of the image under them; the last band says where */
    int cloud_octaves;         /* 1: closed decks; 4: broken ones */
    float cloud_level;         /* of their noise, above which a pixel is under a cloud */
};

static uint32_t hash(uint32_t x, uint32_t y, uint32_t seed)
{
    uint32_t h = x * 0x9E3779B1u ^ y * 0x85EBCA77u ^ seed * 0xC2B2AE3Du;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 12;
    h *= 0x297A2D39u;
    return h ^ h >> 15;
}

static float unit(uint32_t h)
{
    return (float)(h >> 8) * (1.0f / 16777216.0f);
}

/* One octave along a row: lattice of `cell` pixels. */
static void add_octave(float *row, int width, int y, int cell, float gain, uint32_t seed)
{
    int cy = y / cell;
    float ty = (float)(y % cell) / (float)cell;
    ty = ty * ty * (3.0f - 2.0f * ty);
    for (int cx = 0; cx * cell < width; cx++) {
        uint32_t x = (uint32_t)cx, v = (uint32_t)cy;
        float a = unit(hash(x, v, seed)), b = unit(hash(x + 1, v, seed));
        float c = unit(hash(x, v + 1, seed)), d = unit(hash(x + 1, v + 1, seed));
        float left = a + (c - a) * ty, right = b + (d - b) * ty;
        int end = (cx + 1) * cell < width ? (cx + 1) * cell : width;
        for (int px = cx * cell; px < end; px++) {
            float tx = (float)(px - cx * cell) / (float)cell;
            row[px] += gain * (left + (right - left) * tx * tx * (3.0f - 2.0f * tx));
        }
    }
}

static void noise_row(float *row, int width, int y, int cell, int octaves, uint32_t seed)
{
    memset(row, 0, (size_t)width * sizeof *row);
    float gain = 0.5f;
    for (int i = 0; i < octaves && cell >= 4; i++, cell /= 3, gain *= 0.5f)
        add_octave(row, width, y, cell, gain, seed + (uint32_t)i);
}

/* Reflectance of band b (0 blue, 1 green, 2 red, 3 near infrared, ...) over vegetation v, soil, or
 * water. */
static float reflectance(int b, float green, float wet, float bright)
{
    static const float leaf[4] = {0.03f, 0.07f, 0.04f, 0.45f};
    static const float soil[4] = {0.10f, 0.14f, 0.19f, 0.27f};
    static const float water[4] = {0.07f, 0.06f, 0.03f, 0.01f};
    int k = b < 4 ? b : 3;
    float land = soil[k] + (leaf[k] - soil[k]) * green;
    float value = land + (water[k] - land) * wet;
    return value * (0.8f + 0.4f * bright) * (b < 4 ? 1.0f : 1.0f / (float)(b - 2));
}

static float clamp01(float x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* Classes of the last band, as in Sentinel-2's scene classification. */
enum { CLEAR = 4, CLOUD = 9 };

struct rows {
    float *ground, *detail, *moist, *cloud;
};

static void cloud_row(const struct scene *s, float *row, int y)
{
    /* Of a size on the ground, 25 km, whatever the pixels. */
    noise_row(row, s->width, y, (int)(25000 / s->pixel) + 1, s->cloud_octaves, s->seed + 41u);
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

static float pixel(const struct scene *s, const struct rows *r, int b, int x, int y)
{
    float sensor =
        (unit(hash((uint32_t)x, (uint32_t)y, s->seed + 97u + (uint32_t)b)) - 0.5f) * 0.006f;
    if (s->clouds >= 0 && b == s->bands - 1)
        return r->cloud[x] >= s->cloud_level ? CLOUD : CLEAR;
    if (s->kind == RELIEF)
        return 2400.0f * r->ground[x] * r->ground[x] + 120.0f * r->detail[x] + 20.0f * sensor;
    float plot = unit(hash((uint32_t)(x / 90), (uint32_t)(y / 70), s->seed + 5u));
    float green = clamp01(1.6f * r->detail[x] * (0.4f + 0.9f * plot));
    float shore = s->kind == COAST ? 14.0f : 40.0f;
    float level = s->kind == COAST ? 0.47f : 0.27f;
    float wet = clamp01((level - r->ground[x]) * shore);
    return reflectance(b, green, wet, r->moist[x]) + sensor;
}

/* Pixels outside the swath of a scene taken in passing: a slanted border without data. */
static bool outside(const struct scene *s, int x, int y)
{
    int slant = (int)((int64_t)(s->height - y) * s->width / 8 / s->height);
    return s->collar && (x < slant || x >= s->width - s->width / 8 + slant);
}

static double stored(const struct scene *s, int b, float value)
{
    if (s->kind == RELIEF || (s->clouds >= 0 && b == s->bands - 1))
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
        GDALSetRasterNoDataValue(GDALGetRasterBand(ds, 1), s->kind == RELIEF ? -9999 : 0);
    GDALSetMetadataItem(ds, "TIFFTAG_DATETIME", "2026:06:21 10:30:31", NULL);
    return ds;
}

static int fill(const struct scene *s, GDALDatasetH ds)
{
    enum { STEP = 256 };
    size_t w = (size_t)s->width;
    float *block = malloc(sizeof(float) * w * STEP * (size_t)s->bands);
    struct rows r = {malloc(sizeof(float) * w), malloc(sizeof(float) * w),
                     malloc(sizeof(float) * w), malloc(sizeof(float) * w)};
    int rc = block && r.ground && r.detail && r.moist && r.cloud ? 0 : -1;
    for (int y0 = 0; y0 < s->height && rc == 0; y0 += STEP) {
        int n = s->height - y0 < STEP ? s->height - y0 : STEP;
        for (int y = y0; y < y0 + n; y++) {
            noise_row(r.ground, s->width, y, 900, 4, s->seed);
            noise_row(r.detail, s->width, y, 120, 4, s->seed + 11u);
            noise_row(r.moist, s->width, y, 400, 4, s->seed + 23u);
            if (s->clouds >= 0)
                cloud_row(s, r.cloud, y);
            for (int b = 0; b < s->bands; b++) {
                float *row = block + ((size_t)b * STEP + (size_t)(y - y0)) * w;
                for (int x = 0; x < s->width; x++)
                    row[x] = outside(s, x, y) ? (s->kind == RELIEF ? -9999.0f : 0.0f)
                                              : (float)stored(s, b, pixel(s, &r, b, x, y));
            }
        }
        if (GDALDatasetRasterIO(ds, GF_Write, 0, y0, s->width, n, block, s->width, n, GDT_Float32,
                                s->bands, NULL, 4, (int)(w * 4), (int)(w * STEP * 4)) != CE_None)
            rc = -1;
    }
    free(block);
    free(r.ground);
    free(r.detail);
    free(r.moist);
    free(r.cloud);
    return rc;
}

static void usage(FILE *out)
{
    fputs("usage: make_scene [options] OUT.tif\n"
          "  --size WxH        pixels (1024x1024)\n"
          "  --kind KIND       fields | coast | relief (fields)\n"
          "  --bands N         B G R N and weaker ones after (4; relief 1)\n"
          "  --type TYPE       Byte UInt16 Int16 UInt32 Int32 Float32 Float64 (UInt16; relief "
          "Float32)\n"
          "  --compress CODEC  NONE DEFLATE LZW ZSTD ... (DEFLATE)\n"
          "  --interleave WAY  PIXEL | BAND (PIXEL)\n"
          "  --block N         side of a tile, or rows of a strip (512)\n"
          "  --strips          strips instead of tiles\n"
          "  --collar          a slanted border without data\n"
          "  --clouds SHARE    0 to 1: the last band is a mask, 9 under clouds, which take that "
          "share, and 4 elsewhere\n"
          "  --cloud-octaves N 1: closed clouds, to 4: broken ones (4)\n"
          "  --epsg CODE       CRS (32632)\n"
          "  --pixel METRES    side of a pixel (10)\n"
          "  --corner E,N      of the upper left pixel (600000,5900040)\n"
          "  --seed N          another ground (1)\n",
          out);
}

/* One option; *type is the name of the sample type. */
static int take_option(int option, struct scene *s, const char **type)
{
    switch (option) {
    case 's':
        return sscanf(optarg, "%dx%d", &s->width, &s->height) == 2 ? 0 : -1;
    case 'k':
        s->kind = EQUAL(optarg, "coast") ? COAST : EQUAL(optarg, "relief") ? RELIEF : FIELDS;
        return 0;
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
        s->bands = s->kind == RELIEF ? 1 : 4;
    s->type = type ? GDALGetDataTypeByName(type) : s->kind == RELIEF ? GDT_Float32 : GDT_UInt16;
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
