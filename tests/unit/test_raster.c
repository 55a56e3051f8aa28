/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads arm64
 *
 * Scenes through GDAL: opened files, refused ones with their codes, windows, masks, and the
 * metadata of products. Works on real files below PB_SHARED_DATA; without them it is skipped with a
 * message. */
#include "pipeline/raster/raster.h"

#include "config/base/err.h"
#include "config/limits_config.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define REAL(name)    PB_SHARED_DATA "/real/" name
#define DERIVED(name) PB_SHARED_DATA "/derived/" name
#define HOSTILE(name) PB_SHARED_DATA "/hostile/" name

static const struct pb_limits limits = {
    .max_pixels = UINT64_C(200000000000),
    .max_block_bytes = UINT64_C(256) << 20,
    .max_side_px = 1000000,
    .max_bands = 64,
    .max_directories = 64,
};

static struct pb_raster *opened(const char *path)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    int rc = pb_raster_open(path, &limits, &err, &raster);
    ck_assert_msg(rc == 0, "%s: %s", path, err.msg);
    return raster;
}

static void refused(const char *path, const struct pb_limits *with, enum pb_code code,
                    const char *part)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    int rc = pb_raster_open(path, with, &err, &raster);
    ck_assert_msg(rc == pb_code_errno(code), "%s: %d", path, rc);
    ck_assert_ptr_null(raster);
    ck_assert_msg(err.code == code, "%s: %s, %s", path, pb_code_id(err.code), err.msg);
    ck_assert_msg(strstr(err.msg, part) != NULL, "'%s' is not in '%s'", part, err.msg);
    ck_assert_str_eq(err.file, path);
}

/* Copies the first `bytes` bytes of a file to a temporary one. */
static char *copied(const char *path, size_t bytes)
{
    static char name[64];
    char buffer[4096];
    (void)snprintf(name, sizeof name, "/tmp/pb_test_raster_XXXXXX");
    int to = mkstemp(name), from = open(path, O_RDONLY);
    ck_assert(to >= 0 && from >= 0);
    while (bytes > 0) {
        ssize_t n = read(from, buffer, bytes < sizeof buffer ? bytes : sizeof buffer);
        if (n <= 0)
            break;
        ck_assert_int_eq(write(to, buffer, (size_t)n), n);
        bytes -= (size_t)n;
    }
    close(from);
    close(to);
    return name;
}

/* --- open -------------------------------------------------------------------------------------*/

START_TEST(says_what_a_landsat_scene_is)
{
    struct pb_raster *raster = opened(REAL("landsat7_L7_ETMs_6band.tif"));
    const struct pb_raster_info *info = pb_raster_info(raster);
    ck_assert_int_eq(info->width, 349);
    ck_assert_int_eq(info->height, 352);
    ck_assert_int_eq(info->n_bands, 6);
    ck_assert_int_eq(info->type, PB_U8);
    ck_assert_int_eq(info->block_w, 349);
    ck_assert_int_eq(info->block_h, 3);
    ck_assert(info->pixel_interleaved && !info->has_mask && !info->lossy && !info->top_down);
    ck_assert_str_eq(info->compression, "DEFLATE");
    ck_assert_str_eq(info->crs_code, "EPSG:31985");
    ck_assert(info->has_transform && info->has_crs && !info->has_rpc && info->n_gcps == 0);
    ck_assert_double_eq(info->transform[0], 288776.25000080315);
    ck_assert_double_eq(info->transform[5], -28.499999999274539);
    ck_assert(info->file_bytes == 798453 && info->stored_block_bytes > 0);
    pb_raster_close(raster);
}
END_TEST

START_TEST(reads_nodata_alpha_and_descriptions_of_bands)
{
    struct pb_raster *raster = opened(DERIVED("l7_nodata255.tif"));
    ck_assert(pb_raster_info(raster)->band[5].has_nodata);
    ck_assert_double_eq(pb_raster_info(raster)->band[5].nodata, 255);
    pb_raster_close(raster);
    raster = opened(DERIVED("l7_rgba.tif"));
    ck_assert(pb_raster_info(raster)->has_mask && pb_raster_info(raster)->band[3].is_alpha);
    pb_raster_close(raster);
    raster = opened(DERIVED("l7_scaleoffset.tif"));
    ck_assert(pb_raster_info(raster)->band[0].scale != 1);
    pb_raster_close(raster);
}
END_TEST

START_TEST(takes_nonsense_in_the_nodata_tag_for_no_nodata)
{
    struct pb_raster *raster = opened(HOSTILE("syn__meta_nodata_text.tif"));
    ck_assert(!pb_raster_info(raster)->band[0].has_nodata);
    pb_raster_close(raster);
    raster = opened(HOSTILE("syn__meta_nodata_nan.tif"));
    ck_assert(!pb_raster_info(raster)->band[0].has_nodata); /* no integer is NaN */
    ck_assert(pb_raster_info(raster)->band[0].nodata_unfit);
    ck_assert(isnan(pb_raster_info(raster)->band[0].nodata));
    pb_raster_close(raster);
}
END_TEST

START_TEST(refuses_a_place_that_is_promised_and_not_there)
{
    refused(HOSTILE("syn__geo_nan_matrix.tif"), &limits, PB_E_INPUT_GEOREFERENCE, "matrix");
    refused(HOSTILE("syn__geo_short_matrix.tif"), &limits, PB_E_INPUT_GEOREFERENCE, "matrix");
    refused(REAL("odd/gdal_sparse_tiled_contig.tif"), &limits, PB_E_INPUT_EMPTY, "ever written");
}
END_TEST

START_TEST(keeps_rotated_and_south_up_transforms)
{
    struct pb_raster *raster = opened(REAL("global/southup_small.tif"));
    ck_assert_double_gt(pb_raster_info(raster)->transform[5], 0);
    pb_raster_close(raster);
    raster = opened(REAL("odd/rotated_packbits.tif"));
    ck_assert(pb_raster_info(raster)->transform[2] != 0);
    pb_raster_close(raster);
}
END_TEST

START_TEST(refuses_each_kind_of_bad_file_with_its_code)
{
    struct pb_limits small = limits;
    refused("/nonexistent/x.tif", &limits, PB_E_INPUT_MISSING, "No such file");
    refused("/dev/null", &limits, PB_E_INPUT_NOT_TIFF, "regular");
    refused(HOSTILE("syn__hdr_text.tif"), &limits, PB_E_INPUT_NOT_TIFF, "TIFF");
    refused(HOSTILE("syn__hdr_png.tif"), &limits, PB_E_INPUT_NOT_TIFF, "TIFF");
    refused(HOSTILE("syn__hdr_empty.tif"), &limits, PB_E_INPUT_TRUNCATED, "empty");
    refused(HOSTILE("syn__trunc_sr_b4_20200829_50.tif"), &limits, PB_E_INPUT_TRUNCATED, "missing");
    refused(HOSTILE("rasterio__corrupt.tif"), &limits, PB_E_INPUT_TRUNCATED, "8854 bytes");
    refused(HOSTILE("syn__bomb_deflate_30000sq_1strip.tif"), &limits, PB_E_INPUT_LIMIT, "30000");
    refused(HOSTILE("syn__dim_spp_30000_planar.tif"), &limits, PB_E_INPUT_LIMIT, "30000");
    refused(REAL("odd/gdal_int64.tif"), &limits, PB_E_INPUT_UNSUPPORTED, "Int64");
    refused(REAL("odd/gdal_byte_JXL.tif"), &limits, PB_E_INPUT_UNSUPPORTED, "JXL");
    small.max_pixels = 349 * 352 - 1;
    refused(REAL("landsat7_L7_ETMs_6band.tif"), &small, PB_E_INPUT_LIMIT, "349 x 352");
    small = limits;
    small.max_bands = 5;
    refused(REAL("landsat7_L7_ETMs_6band.tif"), &small, PB_E_INPUT_LIMIT, "bands 6");
}
END_TEST

START_TEST(complex_pixels_need_a_chosen_conversion)
{
    static const struct pb_complex_choice none = {.is_given = false},
                                          power = {.is_given = true, .as = PB_COMPLEX_POWER};
    static const int32_t band = 1;
    float pixels[20 * 20] = {0};
    const struct pb_window to = {
        .data = pixels, .row_bytes = 80, .plane_bytes = sizeof pixels, .rect = {0, 0, 20, 20}};
    struct pb_err err = {0};
    struct pb_raster *raster = opened(REAL("odd/gdal_cint16.tif"));
    ck_assert_int_eq(pb_raster_info(raster)->type, PB_F32);
    ck_assert_int_lt(pb_raster_read(raster, &band, 1, &to, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_COMPLEX);
    err = (struct pb_err){0};
    ck_assert_int_lt(pb_raster_choose_complex(raster, &none, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_COMPLEX);
    ck_assert(strstr(err.msg, "CInt16") != NULL);
    err = (struct pb_err){0};
    ck_assert_int_eq(pb_raster_choose_complex(raster, &power, &err), 0);
    ck_assert_int_eq(pb_raster_read(raster, &band, 1, &to, &err), 0);
    ck_assert_float_gt(pixels[0], 0);
    pb_raster_close(raster);
}
END_TEST

START_TEST(opens_no_virtual_path_and_no_other_driver)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    ck_assert_int_lt(pb_raster_open("GTIFF_DIR:1:x.tif", &limits, &err, &raster), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_MISSING);
    err = (struct pb_err){0};
    ck_assert_int_lt(pb_raster_open("/vsizip/a.zip/x.tif", &limits, &err, &raster), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_MISSING);
}
END_TEST

/* --- read -------------------------------------------------------------------------------------*/

/* The same pixels in another layout, window by window. */
static void same_pixels(const char *path, const char *like, int32_t w, int32_t h)
{
    const int32_t bands[2] = {4, 2};
    uint8_t a[2][128 * 128], b[2][128 * 128];
    struct pb_err err = {0};
    struct pb_raster *one = opened(path), *two = opened(like);
    const struct pb_raster_info *info = pb_raster_info(one);
    for (int32_t y = 0; y < info->height; y += h) {
        for (int32_t x = 0; x < info->width; x += w) {
            struct pb_rect rect = {x, y, w, h};
            if (rect.w > info->width - x)
                rect.w = info->width - x;
            if (rect.h > info->height - y)
                rect.h = info->height - y;
            memset(a, 1, sizeof a);
            memset(b, 1, sizeof b);
            ck_assert_int_eq(pb_raster_read(one, bands, 2,
                                            &(struct pb_window){a, 128, sizeof a[0], NULL, 0, rect},
                                            &err),
                             0);
            ck_assert_int_eq(pb_raster_read(two, bands, 2,
                                            &(struct pb_window){b, 128, sizeof b[0], NULL, 0, rect},
                                            &err),
                             0);
            ck_assert_mem_eq(a, b, sizeof a); /* with the bytes between the rows */
        }
    }
    pb_raster_close(one);
    pb_raster_close(two);
}

START_TEST(reads_the_same_windows_from_every_layout)
{
    static const char *const names[] = {
        DERIVED("l7_tiled16.tif"),      DERIVED("l7_tiled32x64_band.tif"),
        DERIVED("l7_1row_strips.tif"),  DERIVED("l7_one_strip.tif"),
        DERIVED("l7_bigendian.tif"),    DERIVED("l7_bigtiff_be_deflate.tif"),
        DERIVED("l7_zstd_p2_band.tif"), DERIVED("l7_lerc0.tif"),
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        same_pixels(names[i], DERIVED("l7_none_pixel.tif"), 128, 128);
        same_pixels(names[i], DERIVED("l7_none_pixel.tif"), 31, 17);
        same_pixels(names[i], DERIVED("l7_none_pixel.tif"), 1, 64);
    }
}
END_TEST

/* --- an image of one block --------------------------------------------------------------------*/

enum { ONE_SIDE = 512, ONE_HEAD = 256 };

static void one_entry(unsigned char *head, uint16_t tag, uint16_t type, uint32_t value)
{
    const uint32_t count = 1;
    uint16_t n;
    memcpy(&n, head + 8, 2);
    unsigned char *at = head + 10 + 12 * n++;
    memcpy(head + 8, &n, 2);
    memcpy(at, &tag, 2);
    memcpy(at + 2, &type, 2);
    memcpy(at + 4, &count, 4);
    memcpy(at + 8, &value, 4);
}

static void fill_one(uint16_t *pixels)
{
    uint32_t random = 1;
    for (uint32_t i = 0; i < ONE_SIDE * ONE_SIDE; i++) {
        random = random * 1664525u + 1013904223u;
        pixels[i] = (uint16_t)((random >> 22) + i / 700);
    }
}

/* Writes pixels of 16 bits as one tile of deflate; flip: offset of a byte in it to change. */
static char *one_tile(const uint16_t *pixels, size_t flip)
{
    unsigned char head[ONE_HEAD] = "II\x2a\0\x08\0\0";
    uLongf bytes = compressBound(2 * ONE_SIDE * ONE_SIDE);
    unsigned char *packed = malloc(bytes);
    char *name = strdup("/tmp/pb_test_one_XXXXXX");
    ck_assert_int_eq(
        compress2(packed, &bytes, (const unsigned char *)pixels, 2 * ONE_SIDE * ONE_SIDE, 6), Z_OK);
    ck_assert_uint_lt(flip, bytes);
    packed[flip] ^= flip > 0 ? 0x55 : 0;
    one_entry(head, 256, 4, ONE_SIDE);
    one_entry(head, 257, 4, ONE_SIDE);
    one_entry(head, 258, 3, 16);
    one_entry(head, 259, 3, 8);
    one_entry(head, 262, 3, 1);
    one_entry(head, 322, 4, ONE_SIDE);
    one_entry(head, 323, 4, ONE_SIDE);
    one_entry(head, 324, 4, ONE_HEAD);
    one_entry(head, 325, 4, (uint32_t)bytes);
    int fd = mkstemp(name);
    ck_assert_int_eq(write(fd, head, sizeof head), sizeof head);
    ck_assert_int_eq(write(fd, packed, bytes), (ssize_t)bytes);
    close(fd);
    free(packed);
    return name;
}

static int read_one(struct pb_raster *raster, struct pb_rect rect, uint16_t *out,
                    struct pb_err *err)
{
    const int32_t band = 1;
    *err = (struct pb_err){0};
    return pb_raster_read(raster, &band, 1,
                          &(struct pb_window){.data = out,
                                              .row_bytes = 2 * (size_t)rect.w,
                                              .plane_bytes = 2 * (size_t)rect.w * (size_t)rect.h,
                                              .rect = rect},
                          err);
}

/* The first read of the whole block uses a window, and later ones use memory. */
START_TEST(reads_one_block_the_same_each_time)
{
    static uint16_t pixels[ONE_SIDE * ONE_SIDE], out[ONE_SIDE * ONE_SIDE];
    const struct pb_rect whole = {0, 0, ONE_SIDE, ONE_SIDE}, part = {40, 300, 100, 150};
    struct pb_err err;
    fill_one(pixels);
    char *name = one_tile(pixels, 0);
    for (int first = 0; first < 2; first++) { /* 1: a part is read before the whole */
        struct pb_raster *raster = opened(name);
        for (int turn = first; turn < 4; turn++) {
            const bool is_part = turn % 2 == 1;
            memset(out, 0, sizeof out);
            ck_assert_int_eq(read_one(raster, is_part ? part : whole, out, &err), 0);
            for (int32_t y = 0; is_part && y < part.h; y++)
                ck_assert_mem_eq(out + y * part.w, pixels + (part.y + y) * ONE_SIDE + part.x,
                                 2 * (size_t)part.w);
            if (!is_part)
                ck_assert_mem_eq(out, pixels, sizeof pixels);
        }
        pb_raster_close(raster);
    }
    unlink(name);
    free(name);
}
END_TEST

START_TEST(refuses_a_damaged_only_block_each_time)
{
    static uint16_t pixels[ONE_SIDE * ONE_SIDE], out[ONE_SIDE * ONE_SIDE];
    const struct pb_rect whole = {0, 0, ONE_SIDE, ONE_SIDE};
    struct pb_err first, again;
    fill_one(pixels);
    char *name = one_tile(pixels, 200000);
    struct pb_raster *raster = opened(name);
    ck_assert_int_lt(read_one(raster, whole, out, &first), 0);
    ck_assert_int_eq(first.code, PB_E_INPUT_DAMAGED);
    ck_assert_ptr_nonnull(strstr(first.msg, "tile 0 "));
    ck_assert_int_lt(read_one(raster, whole, out, &again), 0);
    ck_assert_str_eq(again.msg, first.msg);
    pb_raster_close(raster);
    unlink(name);
    free(name);
}
END_TEST

/* --- blocks decoded in turn -------------------------------------------------------------------*/

enum { SIDE = 1098, BLOCK = 512, ACROSS = 3 };
#define LARGE_BLOCKS REAL("sentinel2_29RKH/B04.tif")

static bool has_large_blocks(void)
{
    if (access(LARGE_BLOCKS, R_OK) == 0)
        return true;
    (void)printf("skipped: %s is not there\n", LARGE_BLOCKS);
    return false;
}

static struct pb_rect block_rect(int i)
{
    struct pb_rect r = {i % ACROSS * BLOCK, i / ACROSS * BLOCK, BLOCK, BLOCK};
    r.w = r.x + r.w > SIDE ? SIDE - r.x : r.w;
    r.h = r.y + r.h > SIDE ? SIDE - r.y : r.h;
    return r;
}

static int read_rect(struct pb_raster *raster, struct pb_rect r, uint16_t *image,
                     struct pb_err *err)
{
    const int32_t band = 1;
    const struct pb_window to = {.data = image + (size_t)r.y * SIDE + (size_t)r.x,
                                 .row_bytes = SIDE * sizeof *image,
                                 .plane_bytes = SIDE * SIDE * sizeof *image,
                                 .rect = r};
    return pb_raster_read(raster, &band, 1, &to, err);
}

/* The block that is announced when block i is read: the right one, others, itself, outside. */
static int announced(int way, int i)
{
    return way == 0 ? i + 1 : way == 1 ? ACROSS * ACROSS - 1 - i : way == 2 ? i : (i + 5) % 9;
}

START_TEST(reads_the_same_pixels_whatever_was_expected)
{
    static uint16_t whole[SIDE * SIDE], blocks[SIDE * SIDE];
    struct pb_err err = {0};
    if (!has_large_blocks())
        return;
    struct pb_raster *raster = opened(LARGE_BLOCKS);
    ck_assert(pb_raster_is_ahead(raster));
    ck_assert_int_eq(read_rect(raster, (struct pb_rect){0, 0, SIDE, SIDE}, whole, &err), 0);
    for (int way = 0; way < 4; way++) {
        memset(blocks, 0x5a, sizeof blocks);
        for (int i = 0; i < ACROSS * ACROSS; i++) {
            const struct pb_rect next = block_rect(announced(way, i));
            pb_raster_expect(raster, &next);
            ck_assert_int_eq(read_rect(raster, block_rect(i), blocks, &err), 0);
        }
        ck_assert(memcmp(whole, blocks, sizeof whole) == 0);
    }
    pb_raster_close(raster);
}
END_TEST

/* Byte 1000 and those after it of block i, which the raster reads from the file at `path`. */
static void damage_block(const struct pb_raster *raster, const char *path, uint32_t i)
{
    static unsigned char stored[1 << 20], file[4 << 20];
    struct pb_err err = {0};
    size_t bytes = 0;
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(
        pb_raster_stored_block(raster, i % ACROSS, i / ACROSS, stored, sizeof stored, &err, &bytes),
        0);
    ssize_t n = read(fd, file, sizeof file);
    ck_assert(bytes > 2000 && n > 0);
    const unsigned char *at = memmem(file, (size_t)n, stored, bytes);
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(pwrite(fd, "0123456789abcdef", 16, at - file + 1000), 16);
    (void)close(fd);
}

START_TEST(damaged_block_is_reported_when_read_and_not_before)
{
    static uint16_t image[SIDE * SIDE];
    struct pb_err err = {0};
    if (!has_large_blocks())
        return;
    struct pb_raster *raster = opened(LARGE_BLOCKS);
    char *path = copied(LARGE_BLOCKS, 4 << 20);
    damage_block(raster, path, 1);
    pb_raster_close(raster);
    raster = opened(path);
    for (int turn = 0; turn < 2; turn++) {
        const struct pb_rect bad = block_rect(1), good = block_rect(3);
        pb_raster_expect(raster, &bad);
        ck_assert_int_eq(read_rect(raster, block_rect(0), image, &err), 0);
        pb_raster_expect(raster, &good);
        ck_assert_int_lt(read_rect(raster, bad, image, &err), 0);
        ck_assert_int_eq(err.code, PB_E_INPUT_DAMAGED);
        ck_assert_ptr_nonnull(strstr(err.msg, "tile 1 (column 1, row 0; "));
        err = (struct pb_err){0};
        ck_assert_int_eq(read_rect(raster, good, image, &err), 0);
    }
    pb_raster_close(raster);
    unlink(path);
}
END_TEST

/* Reads blocks i and k of the image at once. */
static void read_blocks(struct pb_raster *raster, int i, int k, uint16_t *image,
                        struct pb_read_result result[2])
{
    const int32_t band = 1;
    const int number[2] = {i, k};
    struct pb_window to[2];
    for (int j = 0; j < 2; j++) {
        const struct pb_rect r = block_rect(number[j]);
        to[j] = (struct pb_window){.data = image + (size_t)r.y * SIDE + (size_t)r.x,
                                   .row_bytes = SIDE * sizeof *image,
                                   .plane_bytes = SIDE * SIDE * sizeof *image,
                                   .rect = r};
    }
    pb_raster_read_two(raster, &band, 1, to, 2, result);
}

START_TEST(test_two_blocks_at_once_equal_the_image)
{
    static uint16_t whole[SIDE * SIDE], blocks[SIDE * SIDE];
    struct pb_err err = {0};
    struct pb_read_result result[2];
    if (!has_large_blocks())
        return;
    struct pb_raster *raster = opened(LARGE_BLOCKS);
    ck_assert_int_eq(read_rect(raster, (struct pb_rect){0, 0, SIDE, SIDE}, whole, &err), 0);
    for (int step = 1; step < ACROSS * ACROSS; step++) {
        memset(blocks, 0x5a, sizeof blocks);
        for (int i = 0; i < ACROSS * ACROSS; i++) {
            read_blocks(raster, i, (i + step) % (ACROSS * ACROSS), blocks, result);
            ck_assert_int_eq(result[0].rc, 0);
            ck_assert_int_eq(result[1].rc, 0);
        }
        ck_assert(memcmp(whole, blocks, sizeof whole) == 0);
    }
    pb_raster_close(raster);
}
END_TEST

START_TEST(test_damaged_block_fails_one_of_two)
{
    static uint16_t whole[SIDE * SIDE], image[SIDE * SIDE];
    struct pb_err err = {0};
    struct pb_read_result result[2];
    if (!has_large_blocks())
        return;
    struct pb_raster *raster = opened(LARGE_BLOCKS);
    ck_assert_int_eq(read_rect(raster, (struct pb_rect){0, 0, SIDE, SIDE}, whole, &err), 0);
    char *path = copied(LARGE_BLOCKS, 4 << 20);
    damage_block(raster, path, 1);
    pb_raster_close(raster);
    raster = opened(path);
    for (int bad = 0; bad < 2; bad++) {
        const struct pb_rect r = block_rect(3);
        read_blocks(raster, bad == 0 ? 1 : 3, bad == 0 ? 3 : 1, image, result);
        ck_assert_int_lt(result[bad].rc, 0);
        ck_assert_int_eq(result[bad].err.code, PB_E_INPUT_DAMAGED);
        ck_assert_ptr_nonnull(strstr(result[bad].err.msg, "tile 1 (column 1, row 0; "));
        ck_assert_int_eq(result[1 - bad].rc, 0);
        ck_assert_int_eq(result[1 - bad].err.code, PB_OK);
        for (int32_t y = r.y; y < r.y + r.h; y++)
            ck_assert(memcmp(whole + y * SIDE + r.x, image + y * SIDE + r.x,
                             (size_t)r.w * sizeof *whole) == 0);
    }
    pb_raster_close(raster);
    unlink(path);
}
END_TEST

/* Counts invalid and other pixels of the whole mask. */
static void count_mask(const char *path, size_t *out_invalid, size_t *out_valid)
{
    struct pb_err err = {0};
    struct pb_raster *raster = opened(path);
    const struct pb_raster_info *info = pb_raster_info(raster);
    const struct pb_rect all = {0, 0, info->width, info->height};
    size_t n = (size_t)all.w * (size_t)all.h, row = (size_t)all.w * 2;
    uint8_t *mask = malloc(n), *data = malloc(n * 2);
    const int32_t band = 1;
    ck_assert_int_eq(pb_raster_read(raster, &band, 1,
                                    &(struct pb_window){data, row, n * 2, mask, (size_t)all.w, all},
                                    &err),
                     0);
    *out_invalid = *out_valid = 0;
    for (size_t i = 0; i < n; i++) {
        *out_invalid += mask[i] == 0;
        *out_valid += mask[i] != 0;
    }
    free(mask);
    free(data);
    pb_raster_close(raster);
}

START_TEST(fills_the_mask_from_mask_bands_and_alpha)
{
    size_t invalid = 0, valid = 0;
    count_mask(REAL("mask_alpha/cog_rgb_mask.tif"), &invalid, &valid);
    ck_assert(invalid == 2739 && valid == 86117);
    count_mask(REAL("mask_alpha/cog_rgba.tif"), &invalid, &valid);
    ck_assert(invalid == 10044 && valid == 78812);
    count_mask(REAL("mask_alpha/RGBA.uint16_alpha255.tif"), &invalid, &valid);
    ck_assert(invalid == 133258 && valid == 127316);
    count_mask(DERIVED("l7_nodata255.tif"), &invalid, &valid); /* nodata is not the mask's matter */
    ck_assert_uint_eq(invalid, 0);
}
END_TEST

START_TEST(fails_a_read_with_codec_and_block)
{
    struct pb_err err = {0};
    uint8_t data[4096];
    const int32_t band = 1;
    struct pb_raster *raster = opened(HOSTILE("gdal__byte_zstd_corrupted.tif"));
    const struct pb_rect rect = {0, 0, 20, 20};
    ck_assert_int_eq(
        pb_raster_read(raster, &band, 1, &(struct pb_window){data, 20, 400, NULL, 0, rect}, &err),
        -EIO);
    ck_assert_int_eq(err.code, PB_E_INPUT_DAMAGED);
    ck_assert_ptr_nonnull(strstr(err.msg, "strip 0 (column 0, row 0; "));
    ck_assert_ptr_nonnull(strstr(err.msg, "does not decode: zstd: "));
    pb_raster_close(raster);
}
END_TEST

START_TEST(fails_a_read_whose_codec_only_complains)
{
    struct pb_err err = {0};
    static uint8_t data[512 * 512];
    const int32_t band = 1;
    struct pb_raster *raster =
        opened(HOSTILE("pillow__crash-74d2a78403a5a59db1fb0a2b8735ac068a75f6e3.tif"));
    const struct pb_raster_info *info = pb_raster_info(raster);
    const struct pb_rect rect = {0, 0, info->width, info->height};
    ck_assert_uint_le((size_t)rect.w * (size_t)rect.h, sizeof data);
    ck_assert_int_lt(
        pb_raster_read(raster, &band, 1,
                       &(struct pb_window){data, (size_t)rect.w, sizeof data, NULL, 0, rect}, &err),
        0);
    ck_assert_ptr_nonnull(strstr(err.msg, "Fax4Decode"));
    pb_raster_close(raster);
}
END_TEST

START_TEST(refuses_windows_and_bands_that_are_not_there)
{
    struct pb_err err = {0};
    uint8_t data[16];
    struct pb_raster *raster = opened(DERIVED("l7_tiled16.tif"));
    const struct pb_rect out = {96, 0, 2, 1}, in = {0, 0, 1, 1};
    int32_t band = 1;
    ck_assert_int_lt(
        pb_raster_read(raster, &band, 1, &(struct pb_window){data, 4, 4, NULL, 0, out}, &err), 0);
    band = 7;
    err = (struct pb_err){0};
    ck_assert_int_lt(
        pb_raster_read(raster, &band, 1, &(struct pb_window){data, 4, 4, NULL, 0, in}, &err), 0);
    ck_assert_int_eq(err.code, PB_E_PIPELINE_BAND);
    pb_raster_close(raster);
}
END_TEST

START_TEST(notices_that_the_file_changed)
{
    struct pb_err err = {0};
    char *name = copied(DERIVED("l7_tiled16.tif"), SIZE_MAX);
    struct pb_raster *raster = opened(name);
    ck_assert_int_eq(pb_raster_unchanged(raster, &err), 0);
    FILE *file = fopen(name, "ab");
    fputc('x', file);
    fclose(file);
    ck_assert_int_eq(pb_raster_unchanged(raster, &err), -EAGAIN);
    ck_assert_int_eq(err.code, PB_E_INPUT_CHANGED);
    err = (struct pb_err){0};
    ck_assert_int_eq(unlink(name), 0);
    ck_assert_int_eq(pb_raster_unchanged(raster, &err), -EAGAIN);
    pb_raster_close(raster);
}
END_TEST

START_TEST(says_changed_when_the_file_is_cut_while_it_is_read)
{
    struct pb_err err = {0};
    static uint8_t data[97 * 83];
    const int32_t band = 6;
    const struct pb_rect all = {0, 0, 97, 83};
    char *name = copied(DERIVED("l7_tiled32x64_band.tif"), SIZE_MAX);
    struct pb_raster *raster = opened(name);
    ck_assert_int_eq(truncate(name, 4096), 0);
    ck_assert_int_eq(pb_raster_read(raster, &band, 1,
                                    &(struct pb_window){data, 97, sizeof data, NULL, 0, all}, &err),
                     -EAGAIN);
    ck_assert_int_eq(err.code, PB_E_INPUT_CHANGED);
    pb_raster_close(raster);
    unlink(name);
}
END_TEST

static void *read_all(void *path)
{
    static const int32_t bands[6] = {1, 2, 3, 4, 5, 6};
    struct pb_err err = {0};
    struct pb_raster *raster = opened(path);
    const struct pb_raster_info *info = pb_raster_info(raster);
    size_t row = (size_t)info->width, plane = row * 16;
    uint8_t *data = malloc(plane * 6);
    pb_raster_cache_reserve(1 << 20);
    for (int32_t y = 0; y < info->height; y += 16) {
        struct pb_rect rect = {0, y, info->width, info->height - y < 16 ? info->height - y : 16};
        ck_assert_int_eq(pb_raster_read(raster, bands, 6,
                                        &(struct pb_window){data, row, plane, NULL, 0, rect}, &err),
                         0);
    }
    pb_raster_cache_reserve(-(1 << 20));
    free(data);
    pb_raster_close(raster);
    return NULL;
}

START_TEST(reads_on_several_threads_with_a_raster_each)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, read_all, (void *)REAL("landsat7_L7_ETMs_6band.tif")),
            0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}
END_TEST

static void *open_often(void *barrier)
{
    pthread_barrier_wait(barrier);
    for (int i = 0; i < 100; i++)
        pb_raster_close(opened(REAL("landsat7_L7_ETMs_6band.tif")));
    return NULL;
}

/* GDAL requires a name, which is searched for among the rasters of all threads. */
START_TEST(opens_on_several_threads_at_once)
{
    pthread_barrier_t barrier;
    pthread_t thread[4];
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, open_often, &barrier), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&barrier);
}
END_TEST

START_TEST(counts_the_cache_that_windows_need)
{
    struct pb_raster_info info = {.width = 10980, .height = 10980, .n_bands = 4, .type = PB_U16};
    const struct pb_rect aligned = {0, 0, 512, 512}, odd = {-7, -7, 526, 526};
    const struct pb_rect whole = {0, 0, 10980, 16};
    info.pixel_interleaved = true;
    info.block_w = info.block_h = 512;
    uint64_t tile = 512 * 512 * 2 * 4;
    ck_assert_uint_le(pb_raster_cache_bytes(&info, &aligned), 2 * tile + 4096);
    ck_assert_uint_ge(pb_raster_cache_bytes(&info, &odd), 2 * 22 * tile);
    info.block_w = 10980;
    info.block_h = 1;
    ck_assert_uint_ge(pb_raster_cache_bytes(&info, &aligned), UINT64_C(512) * 10980 * 8);
    ck_assert_uint_le(pb_raster_cache_bytes(&info, &whole), UINT64_C(2) * 10980 * 8 + 4096);
    ck_assert_uint_ge(pb_raster_reader_bytes(&info), UINT64_C(10980) * 8);
}
END_TEST

/* --- main -------------------------------------------------------------------------------------*/

int main(void)
{
    if (access(REAL("landsat7_L7_ETMs_6band.tif"), R_OK) != 0) {
        printf("skipped: no sample files below %s\n", PB_SHARED_DATA);
        return 77;
    }
    pb_raster_init();
    pb_raster_init();
    Suite *suite = suite_create("raster");
    TCase *open_case = tcase_create("open"), *read_case = tcase_create("read");
    tcase_add_test(open_case, says_what_a_landsat_scene_is);
    tcase_add_test(open_case, reads_nodata_alpha_and_descriptions_of_bands);
    tcase_add_test(open_case, takes_nonsense_in_the_nodata_tag_for_no_nodata);
    tcase_add_test(open_case, refuses_a_place_that_is_promised_and_not_there);
    tcase_add_test(open_case, keeps_rotated_and_south_up_transforms);
    tcase_add_test(open_case, refuses_each_kind_of_bad_file_with_its_code);
    tcase_add_test(open_case, complex_pixels_need_a_chosen_conversion);
    tcase_add_test(open_case, opens_no_virtual_path_and_no_other_driver);
    tcase_add_test(read_case, reads_the_same_windows_from_every_layout);
    tcase_add_test(read_case, reads_one_block_the_same_each_time);
    tcase_add_test(read_case, refuses_a_damaged_only_block_each_time);
    tcase_add_test(read_case, reads_the_same_pixels_whatever_was_expected);
    tcase_add_test(read_case, damaged_block_is_reported_when_read_and_not_before);
    tcase_add_test(read_case, test_two_blocks_at_once_equal_the_image);
    tcase_add_test(read_case, test_damaged_block_fails_one_of_two);
    tcase_add_test(read_case, fills_the_mask_from_mask_bands_and_alpha);
    tcase_add_test(read_case, fails_a_read_with_codec_and_block);
    tcase_add_test(read_case, fails_a_read_whose_codec_only_complains);
    tcase_add_test(read_case, refuses_windows_and_bands_that_are_not_there);
    tcase_add_test(read_case, notices_that_the_file_changed);
    tcase_add_test(read_case, says_changed_when_the_file_is_cut_while_it_is_read);
    tcase_add_test(read_case, reads_on_several_threads_with_a_raster_each);
    tcase_add_test(read_case, opens_on_several_threads_at_once);
    tcase_add_test(read_case, counts_the_cache_that_windows_need);
    tcase_set_timeout(read_case, 60);
    suite_add_tcase(suite, open_case);
    suite_add_tcase(suite, read_case);
    return run_suite(suite);
}
