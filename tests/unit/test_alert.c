/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Alerts: reported while lines arrive, each once, and the same ones whatever the tiles are. */
#include "run_fixture.h"
#include "run_suite.h"

#include "config/base/json_reader.h"
#include "pipeline/lines/segment.h"

#include <math.h>
#include <pthread.h>

enum { WIDTH = 200, HEIGHT = 150, ALERTS_MOST = 16 };

static const struct pb_segment_spec spec = {
    .width = WIDTH,
    .height = HEIGHT,
    .n_bands = 2,
    .type = PB_U16,
    .has_nodata = true,
    .nodata = 0,
    .has_transform = true,
    .transform = {500000, 10, 0, 4600000, 0, -10},
    .epsg = 32633,
};

static struct got {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct pb_alert alert[ALERTS_MOST];
    uint32_t n;
} got = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void on_alert(void *user, const struct pb_alert *alert)
{
    (void)user;
    ck_assert_str_eq(alert->band, "A");
    pthread_mutex_lock(&got.lock);
    ck_assert_uint_lt(got.n, ALERTS_MOST);
    got.alert[got.n++] = *alert;
    pthread_cond_signal(&got.more);
    pthread_mutex_unlock(&got.lock);
}

static void use(int tile)
{
    char text[700];
    struct pb_err_list *errors = calloc(1, sizeof *errors);
    snprintf(text, sizeof text,
             "compute: {device: cpu, tile: %d, threads: 3}\n"
             "pipelines:\n"
             "  p:\n"
             "    input: {match: ['*.tif'], bands: {A: 1, B: 2}}\n"
             "    products:\n"
             "      - alert: {band: A, above: 500, pixels: 3}\n"
             "      - cog: {type: float32, compress: none, blocksize: 64}\n",
             tile);
    pb_config_destroy(config);
    config = NULL;
    ck_assert_msg(pb_config_parse(text, strlen(text), "test", &pb_products, errors, &config) == 0,
                  "%s", errors->err[0].msg);
    free(errors);
}

/* Line 20 has two pixels beyond 500, lines 40 to 42 and 149 three or more, line 41 the largest. */
static uint16_t value(int32_t line, int32_t x)
{
    if (line == 20 && x >= 10 && x < 12)
        return 900;
    if (line >= 40 && line <= 42 && x >= 62 && x < 67)
        return (uint16_t)(line == 41 && x == 65 ? 777 : 600);
    return line == 149 && x >= WIDTH - 3 ? 501 : 500;
}

static void append(struct pb_segment *segment, int32_t from, int32_t to)
{
    for (int32_t line = from; line < to; line++) {
        uint16_t data[2][WIDTH];
        const int64_t acquired = INT64_C(1700000000) * 1000000000 + line * INT64_C(1000000);
        for (int32_t x = 0; x < WIDTH; x++)
            data[0][x] = data[1][x] = value(line, x);
        const struct pb_segment_group group = {data, sizeof data, sizeof data[0], 1, &acquired, 0};
        ck_assert_int_eq(pb_segment_append(segment, &group, NULL), 1);
    }
}

static void wait_for_alerts(uint32_t n)
{
    pthread_mutex_lock(&got.lock);
    while (got.n < n)
        pthread_cond_wait(&got.more, &got.lock);
    pthread_mutex_unlock(&got.lock);
}

static struct pb_run *begin(const char *directory)
{
    struct pb_err err = {0};
    struct pb_run *run = NULL;
    struct pb_run_options options = options_of(input);
    options.alert = on_alert;
    options.products = directory;
    got.n = 0;
    ck_assert_msg(pb_run_create(&options, &err, &run) == 0, "%s", err.msg);
    ck_assert_msg(pb_run_start(run, &err) == 0, "%s", err.msg);
    return run;
}

/* The text of the alerts' file, for the caller to free. */
static char *end(struct pb_run *run)
{
    struct pb_err err = {0};
    struct pb_run_result result;
    char path[4400];
    ck_assert_msg(pb_run_wait(run, -1, &err) == 0, "%s", err.msg);
    ck_assert_msg(pb_run_publish(run, &err, &result) == 0, "%s", err.msg);
    snprintf(path, sizeof path, "%s/%s", result.directory, result.products[0].file);
    ck_assert_ptr_nonnull(strstr(path, ".alerts.geojson"));
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    char *text = calloc(1, 1 << 16);
    ck_assert_uint_gt(fread(text, 1, (1 << 16) - 1, f), 0);
    fclose(f);
    pb_run_destroy(run);
    return text;
}

static void check_alerts(void)
{
    ck_assert_uint_eq(got.n, 2);
    const struct pb_alert *const a = &got.alert[0], *const b = &got.alert[1];
    ck_assert(a->number == 1 && a->line == 40 && a->sample == 62 && a->pixels == 5);
    ck_assert(a->value == 600);
    ck_assert(b->number == 2 && b->line == 149 && b->sample == WIDTH - 3 && b->pixels == 3);
    ck_assert_int_eq(a->acquired_ns, INT64_C(1700000000) * 1000000000 + 40 * INT64_C(1000000));
    /* Easting 500625 of zone 33 is 0.0075 degrees east of 15. */
    ck_assert(a->has_place && fabs(a->lon - 15.00755) < 0.0002 && fabs(a->lat - 41.548) < 0.01);
}

START_TEST(test_alerts_are_reported_while_lines_arrive)
{
    struct pb_err err = {0};
    struct pb_segment *segment = NULL;
    char other[160];
    use(64);
    (void)unlink(input);
    ck_assert_msg(pb_segment_create(input, &spec, &err, &segment) == 0, "%s", err.msg);
    struct pb_run *const run = begin(products);
    append(segment, 0, 41);
    wait_for_alerts(1); /* before the next line exists */
    append(segment, 41, HEIGHT);
    wait_for_alerts(2);
    ck_assert_int_eq(pb_segment_close(segment, &err), 0);
    pb_segment_destroy(segment);
    char *const live = end(run);
    check_alerts();
    /* The complete file, with other tiles. */
    use(256);
    snprintf(other, sizeof other, "%s/again", root);
    char *const file = end(begin(other));
    check_alerts();
    ck_assert_str_eq(live, file);
    ck_assert_ptr_nonnull(strstr(live, "\"first_line\": 40"));
    ck_assert_ptr_nonnull(strstr(live, "\"last_line\": 42"));
    ck_assert_ptr_nonnull(strstr(live, "\"line\": 41"));
    ck_assert_ptr_nonnull(strstr(live, "\"value\": 777"));
    ck_assert_ptr_nonnull(strstr(live, "2023-11-14T22:13:20"));
    free(live);
    free(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("alert");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, run_setup, run_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_alerts_are_reported_while_lines_arrive);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
