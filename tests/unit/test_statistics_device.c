/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Statistics by device code, run on the host: the CPU's to the last bit, however many thread blocks
 * share a plane. */
#include "kernels/reduce/percentiles.h"
#include "kernels/reduce/value_counts.h"
#include "tests/device/emulate_statistics.h"
#include "tests/statistics_cases.h"

#include "run_suite.h"

#include <check.h>

START_TEST(planes_have_the_statistics_of_the_cpu)
{
    const struct statistics_case *c = &statistics_cases[_i];
    float *px = malloc(statistics_case_px(c) * sizeof *px);
    struct pb_statistics_part *part = malloc(sizeof *part);
    static struct statistics_found want, got;
    ck_assert(px != NULL && part != NULL);
    statistics_case_fill(c, px);
    statistics_by_cpu(c, px, &want);
    for (uint32_t shares = 1; shares < 6; shares += 2) {
        const struct pb_statistics_plane plane = {px, (uint32_t)(c->w + c->extra), c->w, c->h};
        memset(part, 0xa5, sizeof *part);
        emulate_statistics(&plane, shares, shares, part);
        statistics_by_device(part, &got);
        const char *what = statistics_difference(&want, &got);
        ck_assert_msg(what == NULL, "%s, %u shares: the %s differs", c->name, shares, what);
    }
    free(part);
    free(px);
}
END_TEST

enum { PERCENTILES = 5 };
static const double wanted[PERCENTILES] = {0, 2, 50, 97.3, 100};
/* Any values, and the reflectances of the first case. */
static const struct pb_samples samples[] = {{.n = 0}, {-1000, 12000, true, 0.0001f, 0.0f}};

/* Counts like a pass. Returns the rounds. */
static int percentiles(const struct pb_samples *of, const struct pb_statistics_plane *plane,
                       bool on_device, double *out)
{
    size_t bytes = pb_percentiles_bytes(PERCENTILES, of);
    struct pb_percentiles *all = malloc(bytes), *part = malloc(bytes);
    int rounds = 1;
    ck_assert(all != NULL && part != NULL);
    pb_percentiles_begin(all, wanted, PERCENTILES, of);
    for (pb_percentiles_begin(part, wanted, PERCENTILES, of);;
         pb_percentiles_again(part, all), rounds++) {
        if (on_device)
            emulate_percentiles(part, plane, 3, (unsigned)rounds);
        for (int32_t y = 0; y < plane->h && !on_device; y++)
            pb_percentiles_add(part, plane->data + (size_t)y * plane->row_px, (size_t)plane->w);
        pb_percentiles_merge(all, part);
        if (pb_percentiles_end(all, out))
            break;
    }
    free(all);
    free(part);
    return rounds;
}

START_TEST(planes_have_the_percentiles_of_the_cpu)
{
    const struct statistics_case *c = &statistics_cases[_i];
    float *px = malloc(statistics_case_px(c) * sizeof *px);
    ck_assert_ptr_nonnull(px);
    statistics_case_fill(c, px);
    const struct pb_statistics_plane plane = {px, (uint32_t)(c->w + c->extra), c->w, c->h};
    for (int k = 0; k < (c->values == 0 ? 2 : 1); k++) {
        double want[PERCENTILES], got[PERCENTILES];
        int rounds = percentiles(&samples[k], &plane, false, want);
        ck_assert_int_eq(percentiles(&samples[k], &plane, true, got), rounds);
        for (int i = 0; i < PERCENTILES; i++)
            ck_assert_msg(got[i] == want[i] || (got[i] != got[i] && want[i] != want[i]),
                          "%s: percentile %g is %.9g, not %.9g", c->name, wanted[i], got[i],
                          want[i]);
    }
    free(px);
}
END_TEST

/* Counts a plane like a tile of a product, and then with rows of three calls. */
static void count_here(const struct pb_statistics_plane *plane, struct pb_value_counts *part,
                       struct pb_value_counts *all)
{
    for (int32_t y = 0; y < plane->h; y++) {
        pb_value_counts_take_level(part, all);
        for (size_t done = 0; done < (size_t)plane->w;) {
            done += pb_value_counts_add(part, 0, plane->data + (size_t)y * plane->row_px + done,
                                        (size_t)plane->w - done);
            ck_assert(pb_value_counts_merge(all, part));
        }
    }
}

static void same_entries(struct pb_value_counts *a, struct pb_value_counts *b, const char *what)
{
    size_t n, m;
    pb_value_counts_sort(a);
    pb_value_counts_sort(b);
    const struct pb_value_count *x = pb_value_counts_of(a, 0, &n);
    const struct pb_value_count *y = pb_value_counts_of(b, 0, &m);
    ck_assert_msg(pb_value_counts_level(a) == pb_value_counts_level(b), "%s: level %u, not %u",
                  what, pb_value_counts_level(b), pb_value_counts_level(a));
    ck_assert_msg(n == m, "%s: %zu values, not %zu", what, m, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(x[i].key == y[i].key && x[i].n == y[i].n, "%s: value %zu differs", what, i);
}

/* Tables of few entries raise their level many times. */
START_TEST(planes_have_the_values_of_the_cpu)
{
    const struct statistics_case *c = &statistics_cases[_i];
    float *px = malloc(statistics_case_px(c) * sizeof *px);
    ck_assert_ptr_nonnull(px);
    statistics_case_fill(c, px);
    const struct pb_statistics_plane plane[2] = {{px, (uint32_t)(c->w + c->extra), c->w, c->h},
                                                 {NULL, 0, c->w, c->h}};
    for (uint32_t limit = 4; limit <= 16384; limit *= 64) {
        struct pb_value_table *table = malloc(pb_value_table_bytes(limit)),
                              *spare = malloc(pb_value_table_bytes(limit));
        struct pb_value_counts *want = malloc(pb_value_counts_bytes(limit)),
                               *got = malloc(pb_value_counts_bytes(limit)),
                               *part = malloc(pb_value_counts_bytes(64));
        struct pb_value_part *listed = malloc(sizeof *listed);
        const int32_t fit = (int32_t)(pb_value_table_px(limit) / (uint64_t)c->w);
        int32_t rows = fit < c->h ? fit : c->h;
        pb_value_counts_begin(want, limit);
        pb_value_counts_begin(got, limit);
        pb_value_counts_begin(part, 64);
        count_here(&plane[0], part, want);
        emulate_values_begin(table, limit, 2);
        emulate_values_begin(spare, limit, 1);
        if (rows == 0) { /* a row at a time would not fit: only its first pixels */
            free(table), free(spare), free(want), free(got), free(part), free(listed);
            continue;
        }
        for (int32_t y = 0; y < c->h; y += rows) {
            const struct pb_value_planes some = {plane, 2, 1, y, rows};
            emulate_values_add(table, spare, &some, 3, (unsigned)(y + _i) % 5);
        }
        emulate_values_list(table, listed, 2);
        ck_assert(pb_value_counts_take_part(got, listed));
        same_entries(want, got, c->name);
        listed->key[0] = UINT32_MAX;
        ck_assert(listed->n == 0 || listed->level == 0 || !pb_value_counts_take_part(got, listed));
        free(table), free(spare), free(want), free(got), free(part), free(listed);
    }
    free(px);
}
END_TEST

START_TEST(a_plane_without_pixels_has_none)
{
    const struct pb_statistics_plane plane = {NULL, 0, 64, 64};
    struct pb_statistics_part *part = malloc(sizeof *part);
    static struct statistics_found got;
    ck_assert_ptr_nonnull(part);
    emulate_statistics(&plane, 2, 0, part);
    statistics_by_device(part, &got);
    ck_assert_uint_eq(got.moments.valid, 0);
    free(part);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("statistics_device");
    TCase *tc = tcase_create("statistics_device");
    tcase_add_loop_test(tc, planes_have_the_statistics_of_the_cpu, 0, STATISTICS_CASES);
    tcase_add_loop_test(tc, planes_have_the_percentiles_of_the_cpu, 0, STATISTICS_CASES);
    tcase_add_loop_test(tc, planes_have_the_values_of_the_cpu, 0, STATISTICS_CASES);
    tcase_add_test(tc, a_plane_without_pixels_has_none);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
