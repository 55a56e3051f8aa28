/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: early
 *
 * Plain GeoTIFFs: GDAL opens a file while its CRS is not loaded, and tiff_plain.c afterwards. Both
 * have the same facts and make the same tags, of sample files, random scenes and damaged ones. */
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/raster/raster.h"
#include "pipeline/raster/tiff_directory.h"

#include "config/limits_config.h"
#include "run_suite.h"
#include "tests/tools/random_scene.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MOST = 600, EXTRAS = 6 };

static const struct pb_limits limits = {
    .max_pixels = UINT64_C(200000000000),
    .max_block_bytes = UINT64_C(256) << 20,
    .max_side_px = 1000000,
    .max_bands = 64,
    .max_directories = 64,
};

/* Facts of an open file. */
struct said {
    int code;
    struct pb_raster_info info;
    struct pb_tiff_tags tags[EXTRAS];
    struct pb_footprint *footprint;
    char *wkt;
};

static const char *const names[] = {"NDVI", "B_2.x-1", "a<b", "water & ice"};
static const struct pb_band_facts facts[] = {
    {.scale = 0}, {.scale = 0.5, .offset = 1}, {.unit = "m"}, {.color = 3}};
static const struct pb_geometry shifted = {10, 10, {1, 1, -3, -2}, 0},
                                halved = {10, 10, {0.5, 0.5, 0, 0}, 0};

static const struct pb_geo_extra extras[EXTRAS] = {
    {.band_names = names, .facts = facts, .n_bands = 1, .has_nodata = true, .type = PB_F32},
    {.band_names = names, .n_bands = 2, .has_nodata = true, .nodata = -9999, .type = PB_I16},
    {.band_names = names, .n_bands = 4, .type = PB_U8, .grid = &halved},
    {.facts = facts, .n_bands = 4, .has_nodata = true, .nodata = 0.1, .type = PB_F64},
    {.n_bands = 3, .has_nodata = true, .nodata = 255, .type = PB_U8, .grid = &shifted},
    {.n_bands = 1, .has_nodata = true, .nodata = 1e30, .type = PB_F32},
};

static void forget(struct said *said)
{
    for (size_t i = 0; i < EXTRAS; i++)
        pb_tiff_tags_free(&said->tags[i]);
    free(said->footprint);
    free(said->wkt);
    *said = (struct said){0};
}

/* Opens the file; returns true if GDAL has not opened it. details: not only its facts. */
static bool look(const char *path, bool details, struct said *out)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    *out = (struct said){0};
    if (pb_raster_open(path, &limits, &err, &raster) < 0) {
        out->code = (int)err.code;
        return false;
    }
    const bool plain = raster->dataset == NULL;
    ck_assert(plain == raster->is_plain);
    out->info = raster->info;
    for (size_t i = 0; details && i < EXTRAS; i++) {
        struct pb_geo_extra extra = extras[i];
        extra.nodata = i == 0 ? (double)NAN : extra.nodata;
        if (pb_raster_geo_tags(raster, &extra, &err, &out->tags[i]) < 0)
            out->tags[i] = (struct pb_tiff_tags){NULL, 0};
    }
    out->footprint = details ? calloc(1, sizeof *out->footprint) : NULL;
    if (details)
        (void)pb_raster_footprint(raster, NULL, out->footprint);
    out->wkt = details ? pb_raster_wkt2(raster) : NULL;
    ck_assert(isnan(pb_raster_cloud_cover(raster)) || !plain);
    pb_raster_close(raster);
    return plain;
}

static bool same_tags(const struct pb_tiff_tags *a, const struct pb_tiff_tags *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = a->tag[i].tag == b->tag[i].tag && a->tag[i].type == b->tag[i].type &&
               a->tag[i].count == b->tag[i].count &&
               memcmp(a->tag[i].value, b->tag[i].value,
                      a->tag[i].count * pb_tiff_type_bytes(a->tag[i].type)) == 0;
    return same;
}

static bool same_info(const struct pb_raster_info *a, const struct pb_raster_info *b)
{
    struct pb_raster_info x = *a, y = *b;
    x.palette = y.palette = NULL;
    for (int i = 0; i < PB_BANDS_MAX; i++) {
        if (isnan(x.band[i].nodata) && isnan(y.band[i].nodata))
            x.band[i].nodata = y.band[i].nodata = 0;
    }
    return memcmp(&x, &y, sizeof x) == 0;
}

static void compare(const char *path, const struct said *gdal, const struct said *plain)
{
    ck_assert_msg(gdal->code == plain->code, "%s: %s, then %s", path,
                  pb_code_id((enum pb_code)gdal->code), pb_code_id((enum pb_code)plain->code));
    ck_assert_msg(same_info(&gdal->info, &plain->info), "%s: other facts", path);
    for (size_t i = 0; i < EXTRAS; i++)
        ck_assert_msg(same_tags(&gdal->tags[i], &plain->tags[i]), "%s: other tags of %zu", path, i);
    ck_assert_msg((gdal->footprint == NULL && plain->footprint == NULL) ||
                      memcmp(gdal->footprint, plain->footprint, sizeof *gdal->footprint) == 0,
                  "%s: another footprint", path);
    ck_assert_msg(
        (gdal->wkt == NULL && plain->wkt == NULL) ||
            (gdal->wkt != NULL && plain->wkt != NULL && strcmp(gdal->wkt, plain->wkt) == 0),
        "%s: another system", path);
}

/* --- files --- */

static char *paths[FILES_MOST];
static struct said before[FILES_MOST];
static size_t n_paths;

static int add_path(const char *path, const struct stat *st, int kind, struct FTW *of)
{
    const char *dot = strrchr(path, '.');
    (void)st;
    (void)of;
    if (kind == FTW_F && dot != NULL && (strcmp(dot, ".tif") == 0 || strcmp(dot, ".TIF") == 0) &&
        n_paths < FILES_MOST)
        paths[n_paths++] = strdup(path);
    return 0;
}

/* Loads the systems of all files that were opened before. */
static void warm_all(void)
{
    for (size_t i = 0; i < n_paths; i++) {
        int code = 0;
        if (sscanf(before[i].info.crs_code, "EPSG:%6d", &code) == 1)
            pb_raster_warm(code);
    }
    pb_raster_warm(32632);
}

/* Returns the number of plain files. */
static size_t compare_all(void)
{
    size_t n_plain = 0;
    for (size_t i = 0; i < n_paths; i++)
        ck_assert(!look(paths[i], true, &before[i]));
    warm_all();
    for (size_t i = 0; i < n_paths; i++) {
        struct said said;
        n_plain += look(paths[i], true, &said);
        compare(paths[i], &before[i], &said);
        forget(&said);
        forget(&before[i]);
        free(paths[i]);
    }
    n_paths = 0;
    return n_plain;
}

START_TEST(sample_files_have_the_facts_that_gdal_reads)
{
    pb_raster_init();
    if (access(PB_SHARED_DATA "/derived", R_OK) != 0)
        return;
    ck_assert_int_eq(nftw(PB_SHARED_DATA, add_path, 16, FTW_PHYS), 0);
    const size_t n = n_paths, n_plain = compare_all();
    (void)printf("%zu of %zu files are plain\n", n_plain, n);
    ck_assert_uint_gt(n_plain, 0);
}
END_TEST

START_TEST(random_scenes_have_the_facts_that_gdal_reads)
{
    char directory[] = "/tmp/pb_test_raster_plain_XXXXXX", path[96];
    struct random_scene scene;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    GDALAllRegister();
    pb_raster_init();
    for (int seed = 1; seed <= 150; seed++) {
        (void)snprintf(path, sizeof path, "%s/%d.tif", directory, seed);
        ck_assert(random_scene_make((uint64_t)seed, 100, path, &scene));
        paths[n_paths++] = strdup(path);
    }
    ck_assert_uint_gt(compare_all(), 30);
    for (int seed = 1; seed <= 150; seed++) {
        (void)snprintf(path, sizeof path, "%s/%d.tif", directory, seed);
        (void)unlink(path);
    }
    (void)rmdir(directory);
}
END_TEST

/* --- small scenes --- */

struct sample {
    const char *options[8];
    GDALDataType type;
    int bands, epsg; /* epsg 0 = 32632 */
    double nodata;   /* value of the first band */
    bool wide;       /* block offsets are 8-byte numbers, though the file is no BigTIFF */
    bool whole;      /* one block */
};

static void write_scene(const char *path, const struct sample *sample)
{
    const bool degrees = sample->epsg == 4326;
    double metres[6] = {600000, 10, 0, 5900040, 0, -10}, angles[6] = {9.5, 1e-4, 0, 53.1, 0, -1e-4};
    GDALDatasetH set = GDALCreate(GDALGetDriverByName("GTiff"), path, sample->whole ? 60 : 70, 50,
                                  sample->bands, sample->type, (char **)(uintptr_t)sample->options);
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    ck_assert_ptr_nonnull(set);
    ck_assert_int_eq(OSRImportFromEPSG(srs, sample->epsg ? sample->epsg : 32632), OGRERR_NONE);
    GDALSetSpatialRef(set, srs);
    GDALSetGeoTransform(set, degrees ? angles : metres);
    GDALSetRasterNoDataValue(GDALGetRasterBand(set, 1), sample->nodata);
    GDALSetMetadataItem(set, "TIFFTAG_DATETIME", "2020:02:19 11:02:03", NULL);
    for (int i = 1; i <= sample->bands; i++)
        GDALFillRaster(GDALGetRasterBand(set, i), 5 + i, 0);
    OSRDestroySpatialReference(srs);
    GDALClose(set);
}

/* Writes the offsets of tiles of a classic TIFF in this machine's byte order again, at the end of
 * the file and as 8-byte numbers, which libtiff takes there as well. */
static void widen_offsets(const char *path)
{
    enum { TILE_OFFSETS = 324, LONG = 4, LONG8 = 16, OFFSETS_MOST = 16 };
    unsigned char entry[12];
    uint32_t directory, count = 0, at, narrow[OFFSETS_MOST];
    uint64_t offsets[OFFSETS_MOST];
    uint16_t n, tag = 0, type = 0;
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(pread(fileno(file), &directory, 4, 4), 4);
    ck_assert_int_eq(pread(fileno(file), &n, 2, directory), 2);
    for (directory += 2; n > 0 && tag != TILE_OFFSETS; n--, directory += 12) {
        ck_assert_int_eq(pread(fileno(file), entry, 12, directory), 12);
        memcpy(&tag, entry, 2);
        memcpy(&type, entry + 2, 2);
        memcpy(&count, entry + 4, 4);
    }
    ck_assert(tag == TILE_OFFSETS && type == LONG && count >= 1 && count <= OFFSETS_MOST);
    memcpy(&at, entry + 8, 4);
    if (count == 1)
        narrow[0] = at;
    else
        ck_assert_int_eq(pread(fileno(file), narrow, 4 * count, at), 4 * count);
    for (uint32_t i = 0; i < count; i++)
        offsets[i] = narrow[i];
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    at = (uint32_t)ftell(file);
    ck_assert_uint_eq(fwrite(offsets, 8, count, file), count);
    type = LONG8;
    memcpy(entry + 2, &type, 2);
    memcpy(entry + 8, &at, 4);
    ck_assert_int_eq(fseek(file, (long)directory - 12, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(entry, 1, 12, file), 12);
    ck_assert_int_eq(fclose(file), 0);
}

#define TILES "TILED=YES", "BLOCKXSIZE=32", "BLOCKYSIZE=32"
#define ONE   "TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64"

static const struct sample samples[] = {
    {{TILES, "BIGTIFF=YES", "COMPRESS=LZW"}, GDT_Int16, 3, 0, -9999, false, false},
    {{ONE, "BIGTIFF=YES"}, GDT_Byte, 1, 0, 0, false, true},
    {{"BIGTIFF=YES", "BLOCKYSIZE=16"}, GDT_Float64, 2, 0, -1, false, false},
    {{TILES, "COMPRESS=ZSTD", "PREDICTOR=2"}, GDT_UInt16, 4, 0, 0, false, false},
    {{TILES, "COMPRESS=ZSTD", "PREDICTOR=3"}, GDT_Float32, 1, 0, (double)NAN, false, false},
    {{"BLOCKYSIZE=8", "COMPRESS=DEFLATE"}, GDT_Float64, 2, 0, (double)NAN, false, false},
    {{TILES, "COMPRESS=LZW"}, GDT_UInt16, 1, 4326, 65535, false, false},
    {{TILES, "BIGTIFF=YES"}, GDT_Float32, 3, 4326, (double)NAN, false, false},
    {{TILES}, GDT_Byte, 1, 0, 255, true, false},
    {{ONE, "COMPRESS=DEFLATE"}, GDT_UInt16, 2, 0, 0, true, true},
};

START_TEST(test_directed_files_have_the_facts_that_gdal_reads)
{
    char path[] = "/tmp/pb_test_raster_plain_XXXXXX";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    pb_raster_init();
    write_scene(path, &samples[_i]);
    if (samples[_i].wide)
        widen_offsets(path);
    paths[n_paths++] = strdup(path);
    const size_t n_plain = compare_all();
    (void)unlink(path);
    ck_assert_uint_eq(n_plain, 1);
}
END_TEST

/* --- damaged files --- */

enum { HEADER_BYTES = 480, VALUES = 4 };

/* Writes one byte of the file, looks at it and writes the old byte. */
static bool look_changed(int fd, const char *path, size_t at, int how, struct said *out)
{
    unsigned char was, is;
    ck_assert_int_eq(pread(fd, &was, 1, (off_t)at), 1);
    const unsigned char values[VALUES] = {0, 255, (unsigned char)(was + 1),
                                          (unsigned char)(was - 1)};
    is = values[how];
    ck_assert_int_eq(pwrite(fd, &is, 1, (off_t)at), 1);
    const bool plain = look(path, false, out);
    ck_assert_int_eq(pwrite(fd, &was, 1, (off_t)at), 1);
    out->info.file_mtime_ns = 0;
    return plain;
}

static void compare_changed(const struct sample *sample)
{
    static struct said said[HEADER_BYTES][VALUES];
    char path[] = "/tmp/pb_test_raster_plain_XXXXXX";
    struct said again;
    size_t n_plain = 0;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    write_scene(path, sample);
    const off_t bytes = lseek(fd, 0, SEEK_END);
    const size_t n = bytes < HEADER_BYTES ? (size_t)bytes : HEADER_BYTES;
    for (size_t at = 0; at < n; at++)
        for (int how = 0; how < VALUES; how++)
            ck_assert(!look_changed(fd, path, at, how, &said[at][how]));
    pb_raster_warm(32632);
    for (size_t at = 0; at < n; at++)
        for (int how = 0; how < VALUES; how++) {
            char what[96];
            (void)snprintf(what, sizeof what, "byte %zu changed, %d", at, how);
            n_plain += look_changed(fd, path, at, how, &again);
            compare(what, &said[at][how], &again);
        }
    ck_assert_uint_gt(n_plain, 100);
    (void)close(fd);
    (void)unlink(path);
}

START_TEST(damaged_tiles_have_the_facts_that_gdal_reads)
{
    static const struct sample sample = {.options = {TILES, "COMPRESS=DEFLATE", "PREDICTOR=2"},
                                         .type = GDT_UInt16,
                                         .bands = 4,
                                         .nodata = 7};
    pb_raster_init();
    compare_changed(&sample);
}
END_TEST

START_TEST(damaged_strips_have_the_facts_that_gdal_reads)
{
    static const struct sample sample = {.options = {"BLOCKYSIZE=16", "INTERLEAVE=BAND"},
                                         .type = GDT_Float32,
                                         .bands = 2,
                                         .nodata = 123456789}; /* a float32 cannot hold it */
    pb_raster_init();
    compare_changed(&sample);
}
END_TEST

START_TEST(damaged_pictures_have_the_facts_that_gdal_reads)
{
    static const struct sample sample = {.options = {ONE, "COMPRESS=LZW", "PHOTOMETRIC=RGB"},
                                         .type = GDT_Byte,
                                         .bands = 3,
                                         .nodata = 7};
    pb_raster_init();
    compare_changed(&sample);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("raster_plain");
    TCase *tc = tcase_create("raster_plain");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, sample_files_have_the_facts_that_gdal_reads);
    tcase_add_test(tc, random_scenes_have_the_facts_that_gdal_reads);
    tcase_add_loop_test(tc, test_directed_files_have_the_facts_that_gdal_reads, 0,
                        (int)(sizeof samples / sizeof samples[0]));
    tcase_add_test(tc, damaged_tiles_have_the_facts_that_gdal_reads);
    tcase_add_test(tc, damaged_strips_have_the_facts_that_gdal_reads);
    tcase_add_test(tc, damaged_pictures_have_the_facts_that_gdal_reads);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
