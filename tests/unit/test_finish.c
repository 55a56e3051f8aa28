/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* The order of results, parallel parts, and that the first failure ends all, with products that
 * only record their calls. */
#include "pipeline/run/finish.h"

#include "run_suite.h"

#include <check.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { PRODUCTS = 8, PATIENCE_MS = 20000 };

struct fake {
    uint32_t number;
    int wait_for; /* number of calls that are under way at the same time */
    int rc;       /* return code once they are */
    bool until_stopped;
    size_t earlier; /* count that finish sees */
};

static struct pb_file_progress files;
static _Atomic int under_way, most, finished;
static struct fake fake[PRODUCTS];
static void *products[PRODUCTS];
static const struct pb_product_type *types[PRODUCTS];
static struct pb_product_result results[PRODUCTS];
static size_t n_results;
static struct pb_run_products all;

static int finish(void *product, const struct pb_product_result *earlier, size_t n_earlier,
                  struct pb_err *err, struct pb_product_result *out_result)
{
    struct fake *f = product;
    int now = atomic_fetch_add(&under_way, 1) + 1, rc = f->rc;
    for (int old = atomic_load(&most);
         now > old && !atomic_compare_exchange_weak(&most, &old, now);)
        ;
    for (int ms = 0; atomic_load(&most) < f->wait_for && ms < PATIENCE_MS; ms++)
        usleep(1000);
    for (int ms = 0; f->until_stopped && rc == 0 && ms < PATIENCE_MS; ms++) {
        usleep(1000);
        if (atomic_load(&files.stop))
            rc = pb_fail(err, PB_E_JOB_DISMISSED, "product %u was stopped", f->number);
    }
    if (f->rc != 0)
        rc = pb_fail(err, PB_E_OUTPUT_FULL, "product %u is full", f->number);
    f->earlier = n_earlier;
    if (n_earlier > 0)
        ck_assert_ptr_nonnull(earlier);
    *out_result = (struct pb_product_result){.bytes = f->number};
    atomic_fetch_sub(&under_way, 1);
    atomic_fetch_add(&finished, rc == 0);
    return rc;
}

static const struct pb_product_kind any = {.describes_others = false};
static const struct pb_product_kind last = {.describes_others = true};
static const struct pb_product_type plain = {.kind = &any, .finish = finish};
static const struct pb_product_type item = {.kind = &last, .finish = finish};

/* Product `stac` is a STAC item. */
static void setup(size_t n, size_t stac)
{
    for (size_t i = 0; i < n; i++) {
        fake[i] = (struct fake){.number = (uint32_t)i};
        products[i] = &fake[i];
        types[i] = i == stac ? &item : &plain;
    }
    atomic_store(&files.stop, false);
    atomic_store(&most, 0);
    atomic_store(&finished, 0);
    all = (struct pb_run_products){.product = products, .type = types, .n = n};
}

START_TEST(results_are_in_pipeline_order_with_items_last)
{
    for (uint32_t threads = 0; threads <= 16; threads++) {
        setup(PRODUCTS, 2);
        ck_assert_int_eq(pb_finish_products(&all, threads, &files, NULL, results, &n_results), 0);
        ck_assert_uint_eq(n_results, PRODUCTS);
        for (uint32_t i = 0; i < PRODUCTS; i++)
            ck_assert_uint_eq(results[i].bytes, i == PRODUCTS - 1 ? 2 : i + (i >= 2));
        ck_assert_uint_eq(fake[2].earlier, PRODUCTS - 1);
        ck_assert_uint_eq(fake[3].earlier, 0);
        ck_assert_int_le(atomic_load(&most), threads > 1 ? (int)threads : 1);
    }
}
END_TEST

START_TEST(products_finish_side_by_side)
{
    setup(4, 4);
    for (int i = 0; i < 4; i++)
        fake[i].wait_for = 4;
    ck_assert_int_eq(pb_finish_products(&all, 4, &files, NULL, results, &n_results), 0);
    ck_assert_int_eq(atomic_load(&most), 4);
}
END_TEST

START_TEST(the_first_failure_ends_the_others_and_is_told)
{
    struct pb_err err = {0};
    setup(6, 5);
    for (int i = 0; i < 3; i++) {
        fake[i].wait_for = 3;
        fake[i].until_stopped = i != 1;
    }
    fake[1].rc = -1;
    ck_assert_int_eq(pb_finish_products(&all, 3, &files, &err, results, &n_results), -ENOSPC);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_FULL);
    ck_assert_ptr_nonnull(strstr(err.msg, "product 1 is full"));
    ck_assert_int_eq(atomic_load(&finished), 0); /* the rest was not begun */
    ck_assert_int_eq(atomic_load(&under_way), 0);
    ck_assert_uint_eq(n_results, 0);
}
END_TEST

static void *stop_soon(void *arg)
{
    (void)arg;
    while (atomic_load(&under_way) < 2)
        usleep(1000);
    atomic_store(&files.stop, true);
    return NULL;
}

START_TEST(a_run_that_is_cancelled_ends_what_is_under_way)
{
    struct pb_err err = {0};
    pthread_t thread;
    setup(5, 4);
    for (int i = 0; i < 5; i++)
        fake[i].until_stopped = true;
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_soon, NULL), 0);
    ck_assert_int_eq(pb_finish_products(&all, 2, &files, &err, results, &n_results), -ECANCELED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(err.code, PB_E_JOB_DISMISSED);
    ck_assert_int_eq(atomic_load(&finished), 0);
    ck_assert_int_eq(atomic_load(&most), 2);
}
END_TEST

START_TEST(a_failing_item_is_told)
{
    struct pb_err err = {0};
    setup(3, 0);
    fake[0].rc = -1;
    ck_assert_int_eq(pb_finish_products(&all, 3, &files, &err, results, &n_results), -ENOSPC);
    ck_assert_ptr_nonnull(strstr(err.msg, "product 0 is full"));
    ck_assert_int_eq(atomic_load(&finished), 2);
    ck_assert_uint_eq(n_results, 0);
    setup(0, 0);
    ck_assert_int_eq(pb_finish_products(&all, 3, &files, NULL, results, &n_results), 0);
    ck_assert_uint_eq(n_results, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("finish");
    TCase *tc = tcase_create("finish");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, results_are_in_pipeline_order_with_items_last);
    tcase_add_test(tc, products_finish_side_by_side);
    tcase_add_test(tc, the_first_failure_ends_the_others_and_is_told);
    tcase_add_test(tc, a_run_that_is_cancelled_ends_what_is_under_way);
    tcase_add_test(tc, a_failing_item_is_told);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
