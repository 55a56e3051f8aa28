/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* The product on a real scene, and its file read back by the project's own raster reader. */
#include "pipeline/product/cog/cog.h"
#include "config/limits_config.h"
#include "pipeline/product/product.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCENE PB_SHARED_DATA "/real/landsat7_L7_ETMs_6band.tif"

static char directory[64] = "/tmp/pb-cogproduct-XXXXXX";
static const struct pb_limits limits = {.max_pixels = 1 << 30,
                                        .max_block_bytes = 1 << 28,
                                        .max_side_px = 1 << 20,
                                        .max_bands = PB_BANDS_MAX,
                                        .max_directories = 64};
static const char *const planes[] = {"A", "B", "C"};

struct run {
    struct pb_raster *raster;
    struct pb_grid grid;
    struct pb_product_env env;
    struct pb_cog_config config;
    char *bands[2];
};

static void start(struct run *run)
{
    static char c[] = "C", a[] = "A";
    struct pb_err err = {0};
    memset(run, 0, sizeof *run);
    pb_raster_init();
    ck_assert_msg(pb_raster_open(SCENE, &limits, &err, &run->raster) == 0, "%s", err.msg);
    const struct pb_raster_info *info = pb_raster_info(run->raster);
    ck_assert_int_eq(pb_grid_init(&run->grid, info->width, info->height, 128), 0);
    run->env = (struct pb_product_env){.raster = run->raster,
                                       .info = info,
                                       .grid = &run->grid,
                                       .order = PB_ORDER_Z,
                                       .tiles_in_flight = 4,
                                       .workers = 1,
                                       .scene = "scene",
                                       .input = SCENE,
                                       .directory = directory,
                                       .band_names = planes,
                                       .n_bands = 3,
                                       .device = "cpu"};
    pb_product_place(&run->env, NULL);
    run->bands[0] = c;
    run->bands[1] = a;
    run->config.product.kind = &pb_kind_cog;
    run->config.product.bands = run->bands;
    run->config.product.n_bands = 2;
    run->config.type = PB_I16;
    run->config.compress = PB_COMPRESS_ZSTD;
    run->config.blocksize = 64;
    run->config.has_nodata = true;
    run->config.nodata = -32768;
}

/* Plane p is p * 1000 + column; one pixel is invalid. */
static void feed(const struct run *run, void *product)
{
    float *data = malloc(3 * 128 * 128 * sizeof *data);
    uint32_t tiles[4];
    for (uint32_t u = 0; u < pb_order_units(&run->grid, PB_ORDER_Z); u++) {
        uint32_t n = pb_order_unit(&run->grid, PB_ORDER_Z, u, tiles);
        for (uint32_t i = 0; i < n; i++) {
            struct pb_rect core = pb_grid_core(&run->grid, tiles[i]);
            size_t px = (size_t)core.w * (size_t)core.h;
            for (size_t p = 0; p < 3 * px; p++)
                data[p] = (float)(p / px * 1000 + (size_t)core.x + p % px % (size_t)core.w);
            if (core.x == 0 && core.y == 0)
                data[5] = NAN;
            const struct pb_tile tile = {.number = tiles[i], .core = core};
            const struct pb_tile_planes pixels = {data, px, NULL};
            ck_assert_int_eq(pb_product_cog.tile(product, &tile, &pixels, 0, NULL), 0);
        }
    }
    free(data);
}

static void look_at(const struct run *run, const char *path)
{
    struct pb_err err = {0};
    struct pb_raster *raster;
    const struct pb_raster_info *in = run->env.info;
    ck_assert_msg(pb_raster_open(path, &limits, &err, &raster) == 0, "%s", err.msg);
    const struct pb_raster_info *out = pb_raster_info(raster);
    ck_assert_int_eq(out->width, in->width);
    ck_assert_int_eq(out->n_bands, 2);
    ck_assert_int_eq(out->type, PB_I16);
    ck_assert_str_eq(out->crs_code, in->crs_code);
    ck_assert(memcmp(out->transform, in->transform, sizeof in->transform) == 0);
    ck_assert_str_eq(out->band[0].description, "C");
    ck_assert_str_eq(out->band[1].description, "A");
    ck_assert(out->band[1].has_nodata && out->band[1].nodata == -32768);
    int16_t row[2][16];
    struct pb_rect rect = {0, 0, 16, 1};
    int32_t bands[2] = {1, 2};
    ck_assert_int_eq(
        pb_raster_read(raster, bands, 2,
                       &(struct pb_window){row, sizeof row[0], sizeof row[0], NULL, 0, rect}, &err),
        0);
    for (int i = 0; i < 16; i++) {
        ck_assert_int_eq(row[0][i], 2000 + i);
        ck_assert_int_eq(row[1][i], i == 5 ? -32768 : i);
    }
    pb_raster_close(raster);
}

START_TEST(carries_bands_names_and_georeference_of_the_scene)
{
    struct run run;
    struct pb_err err = {0};
    struct pb_product_result result;
    void *product;
    start(&run);
    uint64_t declared = pb_product_cog.bytes(&run.env, &run.config.product);
    ck_assert(declared > 0 && declared < 64 << 20);
    ck_assert_msg(pb_product_cog.create(&run.env, &run.config.product, &err, &product) == 0, "%s",
                  err.msg);
    feed(&run, product);
    ck_assert_msg(pb_product_cog.finish(product, NULL, 0, &err, &result) == 0, "%s", err.msg);
    pb_product_cog.destroy(product);
    ck_assert_str_eq(result.file, "scene.tif");
    ck_assert_str_eq(result.media_type, "image/tiff; application=geotiff; profile=cloud-optimized");
    ck_assert_int_eq(result.width, run.grid.image_w);
    ck_assert_uint_eq(strlen(result.checksum), 71);
    char path[400];
    (void)snprintf(path, sizeof path, "%s/%s", directory, result.file);
    look_at(&run, path);
    unlink(path);
    pb_raster_close(run.raster);
}
END_TEST

START_TEST(refuses_unknown_bands_before_anything_is_written)
{
    struct run run;
    struct pb_err err = {0};
    void *product = NULL;
    static char typo[] = "D";
    start(&run);
    run.bands[1] = typo;
    ck_assert_int_eq(pb_product_cog.create(&run.env, &run.config.product, &err, &product), -EINVAL);
    ck_assert_int_eq(err.code, PB_E_PIPELINE_PRODUCT);
    ck_assert_ptr_null(product);
    pb_product_cog.destroy(NULL);
    pb_raster_close(run.raster);
}
END_TEST

int main(void)
{
    if (access(SCENE, R_OK) != 0) {
        (void)printf("skipped: %s is not there\n", SCENE);
        return 77;
    }
    if (mkdtemp(directory) == NULL)
        return 77;
    Suite *suite = suite_create("cog");
    TCase *tc = tcase_create("cog");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, carries_bands_names_and_georeference_of_the_scene);
    tcase_add_test(tc, refuses_unknown_bands_before_anything_is_written);
    suite_add_tcase(suite, tc);
    int status = run_suite(suite);
    (void)rmdir(directory);
    return status;
}
