/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * What was measured of GPUs: kept in a file, found again, and used by plans. */
#include "pipeline/device/device.h"
#include "pipeline/device/tuning.h"
#include "pipeline/tune/device_plan.h"
#include "pipeline/tune/tune.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1u << 20)

static const char gpu[] = "NVIDIA H200", driver[] = "580.65.06";

/* A row that no table has: recognised in every plan that is made by it. */
static const struct wic_transfer_row odd = {24576, 3, 55, 16, WIC_PUSH_STORES, 786432, 2 * MIB};

static struct pb_tuning one_row(void)
{
    struct pb_tuning t = {.n_rows = 1, .date = "2026-11-23T01:02Z"};
    t.rows[0] = (struct pb_tuning_row){4 * MIB, 4 * MIB, odd, 41000000000, 48000000000};
    return t;
}

static char directory[] = "/tmp/test_tuning-XXXXXX";
static char path[64];

static void make_directory(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/tuning.json", directory);
}

static void remove_directory(void)
{
    (void)unlink(path);
    (void)rmdir(path);
    (void)rmdir(directory);
}

static void write_file(const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* Saves like the command. */
static void keep(const char *name, const char *version, const struct pb_tuning *tuning)
{
    struct pb_err err = {0};
    char *text = pb_tuning_text(path, name, version, tuning, &err);
    ck_assert_msg(text != NULL, "%s", err.msg);
    write_file(text);
    free(text);
}

static void expect_read(int rc, const char *name, const char *version, const char *said)
{
    struct pb_err err = {0};
    struct pb_tuning found = {.n_rows = 4711};
    ck_assert_int_eq(pb_tuning_read(path, name, version, &err, &found), rc);
    if (rc != 0)
        ck_assert_uint_eq(found.n_rows, 4711);
    if (said != NULL)
        ck_assert_msg(strstr(err.msg, said) != NULL && strstr(err.msg, path) != NULL, "%s",
                      err.msg);
    else
        ck_assert_int_eq(err.code, PB_OK);
}

/* Not byte by byte: a plan has padding. */
static void expect_same_plan(const struct wic_transfer_plan *a, const struct wic_transfer_plan *b)
{
    char text_a[300], text_b[300];
    (void)wic_transfer_plan_print(a, text_a, sizeof text_a);
    (void)wic_transfer_plan_print(b, text_b, sizeof text_b);
    ck_assert_str_eq(text_a, text_b);
    ck_assert_uint_eq(a->pulls, b->pulls);
    ck_assert_uint_eq(a->engine_backlog, b->engine_backlog);
}

/* --- the file --- */

START_TEST(what_is_written_is_read_again)
{
    struct pb_tuning written = one_row(), found;
    struct pb_err err = {0};
    for (uint32_t i = 1; i < PB_TUNING_ROWS_MAX; i++) {
        written.rows[i] = written.rows[0];
        written.rows[i].in_bytes += i;
        written.rows[i].plan.depth = 1 + i % WIC_PLAN_DEPTH_MAX;
        written.rows[i].plan.results = i % 2 ? WIC_PUSH_BULK : WIC_PUSH_STORES;
        written.n_rows++;
    }
    keep(gpu, driver, &written);
    ck_assert_int_eq(pb_tuning_read(path, gpu, driver, &err, &found), 0);
    ck_assert_uint_eq(found.n_rows, PB_TUNING_ROWS_MAX);
    ck_assert_str_eq(found.date, written.date);
    for (uint32_t i = 0; i < found.n_rows; i++) {
        const struct pb_tuning_row *a = &found.rows[i], *b = &written.rows[i];
        ck_assert_uint_eq(a->in_bytes, b->in_bytes);
        ck_assert_uint_eq(a->out_bytes, b->out_bytes);
        ck_assert_mem_eq(&a->plan, &b->plan, sizeof a->plan); /* it has no padding; a row has */
        ck_assert_uint_eq(a->rate, b->rate);
        ck_assert_uint_eq(a->copies, b->copies);
    }
}
END_TEST

START_TEST(another_gpu_or_driver_was_not_measured)
{
    struct pb_tuning tuning = one_row();
    expect_read(-ENOENT, gpu, driver, NULL);
    keep(gpu, driver, &tuning);
    expect_read(0, gpu, driver, NULL);
    expect_read(-ENOENT, "NVIDIA H100", driver, NULL);
    expect_read(-ENOENT, gpu, "590.10", NULL);
}
END_TEST

START_TEST(each_gpu_is_kept_and_a_new_driver_replaces_the_old)
{
    struct pb_tuning tuning = one_row();
    keep(gpu, driver, &tuning);
    keep("NVIDIA H100", driver, &tuning);
    expect_read(0, gpu, driver, NULL);
    expect_read(0, "NVIDIA H100", driver, NULL);
    keep(gpu, "590.10", &tuning);
    expect_read(0, gpu, "590.10", NULL);
    expect_read(-ENOENT, gpu, driver, NULL);
    expect_read(0, "NVIDIA H100", driver, NULL);
}
END_TEST

/* Every 13th byte in turn cut off or replaced: it is read unchanged, reported as damaged, or the
 * byte was part of a number or name that is another one now. */
START_TEST(damage_is_told_and_ignored)
{
    struct pb_tuning tuning = one_row();
    struct pb_err err = {0};
    char *text = pb_tuning_text(path, gpu, driver, &tuning, &err);
    size_t bytes = strlen(text);
    unsigned told = 0;
    for (size_t i = 0; i < 2 * bytes; i += 13) {
        char *damaged = strdup(text);
        struct pb_tuning found;
        err = (struct pb_err){0};
        damaged[i / 2] = i % 2 ? '\0' : (char)(damaged[i / 2] ^ 0x11);
        write_file(damaged);
        int rc = pb_tuning_read(path, gpu, driver, &err, &found);
        if (rc == 0)
            ck_assert(wic_transfer_row_is_valid(&found.rows[0].plan));
        else if (rc != -ENOENT) {
            ck_assert_int_ne(err.code, PB_OK);
            told++;
        }
        free(damaged);
    }
    ck_assert_uint_gt(told, bytes / 13);
    free(text);
}
END_TEST

START_TEST(numbers_out_of_bounds_are_damage)
{
    static const char *const wrong[][2] = {
        {"\"depth\": 3", "\"depth\": 6"},
        {"\"depth\": 3", "\"depth\": 0"},
        {"\"piece\": 24576", "\"piece\": 9999999"},
        {"\"piece\": 24576", "\"piece\": -1"},
        {"\"warps\": 16", "\"warps\": 31"},
        {"\"blocks_percent\": 55", "\"blocks_percent\": 0"},
        {"\"stores\"", "\"storks\""},
        {"\"warps\": 16", "\"warps\": \"16\""},
        {"\"link_bytes\": 786432", "\"link_bytes\": 99999999999"},
        {"\"engine_backlog\": 2097152", "\"engine_backlog\": 1e99"},
        {"\"tile_bytes\": 4194304", "\"tile_bytes\": 0"}};
    struct pb_tuning tuning = one_row();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct pb_err err = {0};
        char *text = pb_tuning_text(path, gpu, driver, &tuning, &err), changed[4000];
        char *at = strstr(text, wrong[i][0]);
        ck_assert_msg(at != NULL, "%s", wrong[i][0]);
        (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, wrong[i][1],
                       at + strlen(wrong[i][0]));
        write_file(changed);
        expect_read(-EIO, gpu, driver, "damaged");
        free(text);
        (void)unlink(path);
    }
}
END_TEST

START_TEST(another_version_is_told_and_replaced)
{
    struct pb_tuning tuning = one_row();
    write_file("{\"pushbroom_tuning\": 2, \"gpus\": {}}");
    expect_read(-EIO, gpu, driver, "another version");
    keep(gpu, driver, &tuning);
    expect_read(0, gpu, driver, NULL);
}
END_TEST

START_TEST(what_pushbroom_did_not_write_is_never_replaced)
{
    static const char *const others[] = {"", "my notes\n", "{\"gpus\": []}", "[]",
                                         "{ \"pushbroom_tuning_of_mine\": 1}"};
    struct pb_tuning tuning = one_row();
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct pb_err err = {0};
        write_file(others[i]);
        ck_assert_ptr_null(pb_tuning_text(path, gpu, driver, &tuning, &err));
        ck_assert_int_eq(err.code, PB_E_OUTPUT_EXISTS);
        expect_read(-EIO, gpu, driver, "damaged");
    }
    (void)unlink(path);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    struct pb_err err = {0};
    ck_assert_ptr_null(pb_tuning_text(path, gpu, driver, &tuning, &err));
    expect_read(-EIO, gpu, driver, "no regular file");
}
END_TEST

START_TEST(the_file_is_the_one_that_is_named)
{
    char where[PB_TUNING_PATH_BYTES];
    struct pb_tuning tuning = one_row(), found;
    keep(gpu, driver, &tuning);
    ck_assert_int_eq(setenv("PUSHBROOM_TUNING", path, 1), 0);
    pb_tuning_path(where);
    ck_assert_str_eq(where, path);
    pb_tuning_load(gpu, driver, &found);
    ck_assert_uint_eq(found.n_rows, 1);
    ck_assert_str_eq(found.why, "");
    write_file("{\"pushbroom_tuning\": 1");
    pb_tuning_load(gpu, driver, &found);
    ck_assert_uint_eq(found.n_rows, 0);
    ck_assert_ptr_nonnull(strstr(found.why, "damaged"));
    (void)unlink(path);
    pb_tuning_load(gpu, driver, &found);
    ck_assert_uint_eq(found.n_rows, 0);
    ck_assert_str_eq(found.why, "");
}
END_TEST

/* --- its use --- */

START_TEST(a_tile_gets_the_row_of_the_tile_most_like_it)
{
    struct pb_tuning t = {0};
    static const uint64_t measured[][2] = {
        {256, 512}, {1024, 2048}, {512, 512}, {4096, 4096}, {4096, 1024}};
    static const uint64_t asked[][3] = {{300, 600, 0},   {100000, 200000, 1}, {1, 1, 2},
                                        {3000, 3000, 3}, {3000, 3500, 3},     {100, 10, 4},
                                        {700, 700, 2},   {5, 0, 4},           {256, 4000, 0}};
    ck_assert_ptr_null(pb_tuning_find(&t, 100, 100));
    for (; t.n_rows < 5; t.n_rows++)
        t.rows[t.n_rows] = (struct pb_tuning_row){.in_bytes = measured[t.n_rows][0] << 10,
                                                  .out_bytes = measured[t.n_rows][1] << 10};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        ck_assert_msg(pb_tuning_find(&t, asked[i][0] << 10, asked[i][1] << 10) ==
                          &t.rows[asked[i][2]],
                      "%zu", i);
}
END_TEST

START_TEST(plans_are_made_by_what_was_measured)
{
    struct pb_device_traits h200 = {.gpu = {"NVIDIA H200", 90, 132, 233472, 232448}};
    struct pb_device_plan before[PB_DEVICE_PLANS], after[PB_DEVICE_PLANS];
    pb_device_plan_list(&h200, before);
    h200.tuning = one_row();
    pb_device_plan_list(&h200, after);
    for (int i = 0; i < PB_DEVICE_PLANS; i++)
        ck_assert(!before[i].measured);
    /* Lines of two bands of 1024 pixels: 24576 bytes are six of them; 55 % of 132 blocks. */
    ck_assert(after[0].measured && after[1].measured && after[2].measured);
    ck_assert_msg(strstr(after[0].plan, "pieces of 24576 bytes, 3 deep, 72 blocks"), "%s",
                  after[0].plan);
    /* With a halo tiles are not pulled. */
    ck_assert(!after[3].measured);
    ck_assert_str_eq(before[3].plan, after[3].plan);
}
END_TEST

/* --- what is measured --- */

START_TEST(every_shape_can_be_measured_on_every_gpu)
{
    static const struct wic_gpu gpus[] = {{"NVIDIA H200", 90, 132, 233472, 232448},
                                          {"Tesla T4", 75, 40, 65536, 65536}};
    static struct wic_tune_trial trials[WIC_TUNE_TRIALS_MAX];
    for (size_t g = 0; g < 2; g++)
        for (size_t i = 0; i < PB_TUNE_SHAPES; i++) {
            const struct pb_tune_shape *shape = &pb_tune_shapes[i];
            struct pb_device_traits traits = {
                .gpu = gpus[g], .tuning = one_row(), .memory_bytes = UINT64_C(16) << 30};
            struct pb_tune_scene scene;
            struct pb_err err = {0};
            ck_assert_msg(pb_tune_scene_open(shape, &traits, &err, &scene) == 0, "%s", err.msg);
            uint64_t px = (uint64_t)shape->side_px * (uint64_t)shape->side_px;
            ck_assert_uint_eq(scene.posted.bytes, px * 2 * (uint64_t)shape->bands);
            ck_assert_uint_eq(scene.posted.out_bytes, px * 4);
            ck_assert_uint_eq(scene.posted.units, (uint32_t)shape->side_px);
            ck_assert_ptr_eq(scene.posted.user, scene.user);
            ck_assert_uint_ge(scene.slots, 4);
            ck_assert_uint_le(scene.slots * scene.in_stride, PB_TUNE_SLOTS_BYTES);
            ck_assert_uint_le(scene.slots * scene.out_stride, PB_TUNE_SLOTS_BYTES);
            ck_assert(!scene.plan->engine.resident.measured);
            size_t n = wic_tune_enumerate(&traits.gpu, &scene.shape, &scene.work, trials);
            ck_assert_uint_gt(n, 5);
            expect_same_plan(&trials[0].plan, &scene.plan->engine.resident.chunks);
            pb_tune_scene_close(&scene);
        }
}
END_TEST

START_TEST(a_gpu_that_pulls_no_tiles_has_nothing_to_tune)
{
    struct pb_device_traits old = {.gpu = {"old", 70, 80, 98304, 98304}};
    struct pb_device_traits shared = {.gpu = {"shared", 90, 20, 233472, 232448},
                                      .integrated = true};
    struct pb_tune_scene scene;
    struct pb_err err = {0};
    ck_assert_int_eq(pb_tune_scene_open(&pb_tune_shapes[0], &old, &err, &scene), -ENODEV);
    ck_assert_ptr_nonnull(strstr(err.msg, "older than sm_75"));
    err = (struct pb_err){0};
    ck_assert_int_eq(pb_tune_scene_open(&pb_tune_shapes[0], &shared, &err, &scene), -ENODEV);
    ck_assert_ptr_nonnull(strstr(err.msg, "not pulled"));
}
END_TEST

START_TEST(the_limit_of_a_row_is_named)
{
    struct pb_tuning_row row = {.in_bytes = 4, .out_bytes = 4, .rate = 48, .copies = 49};
    ck_assert_str_eq(pb_tune_limit(&row, 55, 55), "link, both ways");
    row.rate = 40;
    ck_assert_str_eq(pb_tune_limit(&row, 55, 55), "kernel");
    row = (struct pb_tuning_row){.in_bytes = 4, .out_bytes = 1, .rate = 53, .copies = 54};
    ck_assert_str_eq(pb_tune_limit(&row, 55, 55), "link to the GPU");
    row = (struct pb_tuning_row){.in_bytes = 2, .out_bytes = 4, .rate = 26, .copies = 26};
    ck_assert_str_eq(pb_tune_limit(&row, 55, 55), "link from the GPU");
    row.copies = 0;
    row.rate = 20;
    ck_assert_str_eq(pb_tune_limit(&row, 0, 0), "kernel");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tuning");
    TCase *files = tcase_create("file"), *plans = tcase_create("plans");
    tcase_add_checked_fixture(files, make_directory, remove_directory);
    tcase_add_test(files, what_is_written_is_read_again);
    tcase_add_test(files, another_gpu_or_driver_was_not_measured);
    tcase_add_test(files, each_gpu_is_kept_and_a_new_driver_replaces_the_old);
    tcase_add_test(files, damage_is_told_and_ignored);
    tcase_add_test(files, numbers_out_of_bounds_are_damage);
    tcase_add_test(files, another_version_is_told_and_replaced);
    tcase_add_test(files, what_pushbroom_did_not_write_is_never_replaced);
    tcase_add_test(files, the_file_is_the_one_that_is_named);
    tcase_add_test(plans, a_tile_gets_the_row_of_the_tile_most_like_it);
    tcase_add_test(plans, plans_are_made_by_what_was_measured);
    tcase_add_test(plans, every_shape_can_be_measured_on_every_gpu);
    tcase_add_test(plans, a_gpu_that_pulls_no_tiles_has_nothing_to_tune);
    tcase_add_test(plans, the_limit_of_a_row_is_named);
    suite_add_tcase(suite, files);
    suite_add_tcase(suite, plans);
    return run_suite(suite);
}
