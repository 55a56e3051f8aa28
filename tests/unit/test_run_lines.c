/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Runs that start while their scene is a growing segment of lines: same values as those of the
 * complete file. */
#include "run_fixture.h"
#include "run_suite.h"

#include "pipeline/lines/segment.h"
#include "served_session.h"

#include <fcntl.h>
#include <pthread.h>

enum { WIDTH = 300, HEIGHT = 260, BANDS = 2 };

static const struct pb_segment_spec spec = {
    .width = WIDTH,
    .height = HEIGHT,
    .n_bands = BANDS,
    .type = PB_U16,
    .has_nodata = true,
    .nodata = 0,
    .has_transform = true,
    .transform = {500000, 10, 0, 4600000, 0, -10},
    .epsg = 32633,
};

struct feed {
    struct pb_segment *segment;
    int32_t lines, gap_from, gap_n, pause_every;
    bool closes;
};

static void append(struct pb_segment *segment, int32_t line)
{
    static uint16_t data[BANDS][WIDTH];
    for (int32_t b = 0; b < BANDS; b++)
        for (int32_t x = 0; x < WIDTH; x++)
            data[b][x] = (uint16_t)(1 + (((uint32_t)line * 7919u + (uint32_t)x * 104729u) *
                                             (2654435761u + (uint32_t)b) >>
                                         18));
    const struct pb_segment_group group = {data, sizeof data, sizeof data[0], 1, NULL, 0};
    ck_assert_int_eq(pb_segment_append(segment, &group, NULL), 1);
}

static void *feed_body(void *user)
{
    const struct feed *const f = user;
    struct pb_err err = {0};
    for (int32_t line = 0; line < f->lines; line++) {
        if (line >= f->gap_from && line < f->gap_from + f->gap_n)
            ck_assert_int_eq(pb_segment_gap(f->segment, 1, NULL), 1);
        else
            append(f->segment, line);
        if (f->pause_every > 0 && line % f->pause_every == 0)
            (void)usleep(2000);
    }
    if (f->closes)
        ck_assert_int_eq(pb_segment_close(f->segment, &err), 0);
    return NULL;
}

static void make_segment(struct feed *f)
{
    struct pb_err err = {0};
    (void)unlink(input);
    ck_assert_msg(pb_segment_create(input, &spec, &err, &f->segment) == 0, "%s", err.msg);
}

/* The bytes of a product; *n: their count. */
static char *bytes_of(const struct pb_run_result *result, const char *file, size_t *n)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", result->directory, file);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    char *data = malloc(1 << 22);
    *n = fread(data, 1, 1 << 22, f);
    fclose(f);
    return data;
}

static void check_equal(const struct pb_run_result *a, const struct pb_run_result *b)
{
    ck_assert_uint_eq(a->n_products, b->n_products);
    for (size_t i = 0; i < a->n_products; i++) {
        if (strstr(a->products[i].file, ".stac.") != NULL)
            continue; /* has the time of the file */
        size_t n, m;
        char *const x = bytes_of(a, a->products[i].file, &n);
        char *const y = bytes_of(b, b->products[i].file, &m);
        ck_assert_msg(n == m && memcmp(x, y, n) == 0, "%s differs", a->products[i].file);
        free(x);
        free(y);
    }
}

/* Writes a table of the columns of the sensor, which the run reads like a source. */
static void write_columns(const char *path)
{
    FILE *const f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fprintf(f, "column,band,dark,gain\n");
    for (int x = 0; x < WIDTH; x++)
        (void)fprintf(f, "%d,A,%d,1.%02d\n%d,B,%d,0.%02d\n", x, x % 7, x % 90, x, x % 5,
                      50 + x % 50);
    ck_assert_int_eq(fclose(f), 0);
}

static void use_columns(void)
{
    char path[100], steps[240];
    (void)snprintf(path, sizeof path, "%s/columns.csv", root);
    (void)snprintf(steps, sizeof steps,
                   "      - calibrate: {columns: %s, bands: [A, B]}\n"
                   "      - math: {bands: {S: '(A - B) / (A + B)'}}\n",
                   path);
    write_columns(path);
    config_use_steps("", steps);
}

static void use_steps(int which)
{
    static const char *const steps[] = {
        "      - math: {bands: {S: '(A - B) / (A + B)'}}\n",
        "      - math: {bands: {S: 'A + B', D: 'A - B'}}\n"
        "      - convolve: {kernel: box, size: 9}\n",
        "      - math: {bands: {S: 'A + B'}}\n"
        "      - stretch: {bands: [S]}\n",
    };
    if (which == 3)
        use_columns();
    else
        config_use_steps("", steps[which]);
}

static struct pb_served_job kept; /* memory of the process that computes, between two passes */

static int open_session(void *user, const struct pb_plan *pass,
                        const struct pb_served_request *request, const struct pb_served_tail *tail,
                        struct pb_err *err, struct pb_remote_session *out)
{
    return served_session_open(user, pass, request, tail, &kept, err, out);
}

/* Loop: four chains, computed by this process, then by another one. */
START_TEST(test_growing_scene_has_values_of_the_file)
{
    enum { CHAINS = 4 };
    struct feed feed = {
        .lines = HEIGHT, .gap_from = 70, .gap_n = 9, .pause_every = 8, .closes = true};
    struct pb_run_result live, file;
    char other[160];
    pthread_t thread;
    use_steps(_i % CHAINS);
    make_segment(&feed);
    struct pb_err err = {0};
    struct pb_run *run = NULL;
    struct pb_plan_request base = {
        .config = config, .pipeline = pb_config_pipeline(config, "p"), .device_index = -1};
    const struct pb_remote remote = {.device = "cpu",
                                     .device_index = -1,
                                     .user = &base,
                                     .open = open_session,
                                     .wait = served_session_wait,
                                     .close = served_session_close};
    struct pb_run_options options = options_of(input);
    options.remote = _i < CHAINS ? NULL : &remote;
    ck_assert_msg(pb_run_create(&options, &err, &run) == 0, "%s", err.msg);
    ck_assert_msg(pb_run_start(run, &err) == 0, "%s", err.msg);
    struct pb_run_progress progress;
    pb_run_progress(run, &progress);
    ck_assert(progress.waits);
    ck_assert_int_eq(pb_run_wait(run, 20, &err), -ETIMEDOUT);
    ck_assert_int_eq(pthread_create(&thread, NULL, feed_body, &feed), 0);
    ck_assert_msg(pb_run_wait(run, -1, &err) == 0, "%s", err.msg);
    ck_assert_msg(pb_run_publish(run, &err, &live) == 0, "%s", err.msg);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(live.report.latency.n >= HEIGHT &&
              live.report.latency.p50_ns <= live.report.latency.p99_ns);
    pb_segment_destroy(feed.segment);
    snprintf(other, sizeof other, "%s/again", root);
    struct pb_run *const again = run_published(other, NULL, &file);
    check_equal(&live, &file);
    pb_run_destroy(again);
    pb_run_destroy(run);
    pb_served_job_end(&kept);
}
END_TEST

START_TEST(test_early_end_fails_and_the_file_is_computed)
{
    struct feed feed = {.lines = 100, .pause_every = 50, .closes = true};
    struct pb_run_result result;
    pthread_t thread;
    struct pb_err err = {0};
    make_segment(&feed);
    struct pb_run *const run = run_create();
    ck_assert_msg(pb_run_start(run, &err) == 0, "%s", err.msg);
    ck_assert_int_eq(pthread_create(&thread, NULL, feed_body, &feed), 0);
    ck_assert_int_lt(pb_run_wait(run, -1, &err), 0);
    ck_assert_msg(err.code == PB_E_INPUT_SHORTER, "%s: %s", pb_code_id(err.code), err.msg);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pb_run_destroy(run);
    pb_segment_destroy(feed.segment);
    struct pb_run *const again = run_published(products, NULL, &result);
    ck_assert_int_eq(result.env->info->height, 100);
    pb_run_destroy(again);
}
END_TEST

START_TEST(test_abort_ends_a_run_that_waits)
{
    struct feed feed = {.lines = 70};
    struct pb_err err = {0};
    make_segment(&feed);
    struct pb_run *const run = run_create();
    ck_assert_msg(pb_run_start(run, &err) == 0, "%s", err.msg);
    (void)feed_body(&feed);
    ck_assert_int_eq(pb_run_wait(run, 20, &err), -ETIMEDOUT);
    if (_i == 0)
        pb_run_abort(run);
    else
        pb_segment_destroy(feed.segment); /* its writer failed */
    ck_assert_int_lt(pb_run_wait(run, -1, &err), 0);
    if (_i == 1)
        ck_assert_int_eq(err.code, PB_E_INPUT_SHORTER);
    pb_run_destroy(run);
    if (_i == 0)
        pb_segment_destroy(feed.segment);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run_lines");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, run_setup, run_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_growing_scene_has_values_of_the_file, 0, 8);
    tcase_add_test(tc, test_early_end_fails_and_the_file_is_computed);
    tcase_add_loop_test(tc, test_abort_ends_a_run_that_waits, 0, 2);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
