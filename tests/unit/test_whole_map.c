/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Order of the blocks that are sent to a device: the sizes of groups, and the parts of tiles. */
#include "pipeline/run/whole/whole_map.h"
#include "pipeline/plan/choose.h"
#include "run_suite.h"
#include "tests/unit/whole_session.h"

#include <cpl_string.h>
#include <gdal.h>

enum { SIDE = 1280, BLOCK = 64, ALL = SIDE / BLOCK * (SIDE / BLOCK) };

static char folder[] = "/tmp/pb-whole-map-XXXXXX", first[100], second[100];

static void make_file(const char *path)
{
    static uint8_t pixels[SIDE * SIDE];
    char **options = CSLSetNameValue(NULL, "TILED", "YES");
    options = CSLSetNameValue(options, "BLOCKXSIZE", "64");
    options = CSLSetNameValue(options, "BLOCKYSIZE", "64");
    options = CSLSetNameValue(options, "COMPRESS", "DEFLATE");
    GDALDatasetH file = GDALCreate(GDALGetDriverByName("GTiff"), path, SIDE, SIDE, 1, GDT_Byte,
                                   (CSLConstList)options);
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(1 + i % 251);
    ck_assert_int_eq(GDALRasterIO(GDALGetRasterBand(file, 1), GF_Write, 0, 0, SIDE, SIDE, pixels,
                                  SIDE, SIDE, GDT_Byte, 0, 0),
                     CE_None);
    GDALClose(file);
    CSLDestroy(options);
}

static struct pb_raw_blocks stored[2];
static struct pb_whole_map map;

/* Two files of one grid, whose tiles follow the pattern `multiple`. */
static void setup(void)
{
    struct pb_err err = {0};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(first, sizeof first, "%s/a.tif", folder);
    (void)snprintf(second, sizeof second, "%s/b.tif", folder);
    GDALAllRegister();
    make_file(first);
    make_file(second);
    other_path = second;
    tile_px = 256;
    ck_assert_int_eq(open_scene(first, "      - math: {bands: {A_1: B1, A_2: Q}}\n"
                                       "      - composite: {bands: {OUT: A}, of: [_1, _2]}\n"
                                       "      - math: {bands: {SUM: OUT}}\n"),
                     0);
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_msg(plan->engine.whole.used, "%s", plan->engine.whole.why_not);
    ck_assert_int_eq(pb_raw_blocks_open(&stored[0], raster, &plan->engine.whole.how[0], &err), 0);
    ck_assert_int_eq(pb_raw_blocks_open(&stored[1], other, &plan->engine.whole.how[1], &err), 0);
    ck_assert_msg(pb_whole_map_init(&map, plan, stored, plan->layout.in_slot_bytes,
                                    plan->engine.whole.device_bytes, NULL, &err) == 0,
                  "%s", err.msg);
}

static void teardown(void)
{
    pb_whole_map_fini(&map);
    pb_raw_blocks_free(&stored[0]);
    pb_raw_blocks_free(&stored[1]);
    pb_plan_destroy(plan);
    close_scene();
    (void)unlink(first);
    (void)unlink(second);
    (void)rmdir(folder);
}

START_TEST(first_groups_are_small_and_grow)
{
    static const uint32_t sizes[] = {16, 32, 64, 128};
    ck_assert_uint_eq(map.n_pieces, 2 * ALL);
    ck_assert_uint_gt(map.n_groups, 4);
    for (uint32_t g = 0; g < 4; g++)
        ck_assert_uint_eq(map.group[g].end - map.group[g].first, sizes[g]);
    for (uint32_t g = 1; g < map.n_groups; g++)
        ck_assert_uint_eq(map.group[g].first, map.group[g - 1].end);
    ck_assert_uint_eq(map.group[map.n_groups - 1].end, map.n_pieces);
}
END_TEST

/* Position of a piece in the order of the pattern `multiple`: tile after tile, part after part.
 * Within a group, pieces are sorted by source. */
static uint32_t position(const struct pb_whole_piece *piece)
{
    return piece->first * map.n_parts + piece->part;
}

START_TEST(parts_of_a_tile_follow_each_other)
{
    uint32_t before = 0;
    ck_assert_uint_eq(map.n_parts, 2);
    for (uint32_t g = 0; g < map.n_groups; g++) {
        uint32_t most = before;
        for (uint32_t i = map.group[g].first; i < map.group[g].end; i++) {
            const struct pb_whole_piece *piece = &map.piece[i];
            ck_assert_uint_eq(piece->part, piece->source);
            ck_assert_uint_ge(position(piece), before);
            ck_assert_uint_gt(pb_whole_map_need(&map, piece->first, piece->part), g);
            most = position(piece) > most ? position(piece) : most;
        }
        before = most;
    }
    for (uint32_t t = 1; t < map.n_tiles; t++)
        for (uint32_t p = 0; p < map.n_parts; p++)
            ck_assert_uint_ge(pb_whole_map_need(&map, t, p), pb_whole_map_need(&map, t - 1, p));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("whole_map");
    TCase *tc = tcase_create("all");
    pb_raster_init();
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, first_groups_are_small_and_grow);
    tcase_add_test(tc, parts_of_a_tile_follow_each_other);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
