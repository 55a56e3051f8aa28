/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_COMPARE_H
#define PB_WHOLE_COMPARE_H
/* A file's pixels by the CPU and by the device's way: the same, or the same words of an error. */
#include "pipeline/plan/choose.h"
#include "tests/unit/whole_session.h"

#include <ftw.h>
#include <math.h>

/* The least memory that the plan can do with: as many bands as there can be. */
static inline void shrink_memory(void)
{
    uint64_t least = plan->engine.whole.device_bytes, tried = 1 << 26;
    struct image image;
    ck_assert_msg(plan->engine.whole.used, "%s", plan->engine.whole.why_not);
    for (int rc = 0; rc == 0; tried /= 2) {
        struct pb_pass *pass = NULL;
        struct pb_err err = {0};
        plan->engine.whole.device_bytes = tried;
        rc = make_pass(&image, &err, &pass);
        least = rc == 0 ? tried : least;
        pb_pass_destroy(pass);
        free(image.planes);
    }
    plan->engine.whole.device_bytes = least;
}

/* Plans again with the least memory of the plan. */
static inline void plan_least(void)
{
    config->compute.device_memory_bytes = plan->engine.whole.least_bytes;
    pb_plan_destroy(plan);
    ck_assert_int_eq(make_plan(true), 0);
    config->compute.device_memory_bytes = 0;
}

static inline void same(const char *path, const struct image *a, const struct image *b)
{
    size_t n = (size_t)a->w * (size_t)a->h * a->n;
    if (memcmp(a->planes, b->planes, n * sizeof(float)) == 0)
        return;
    for (size_t i = 0; i < n; i++) /* a NaN may have other bits */
        ck_assert_msg(memcmp(a->planes + i, b->planes + i, sizeof(float)) == 0 ||
                          (isnan(a->planes[i]) && isnan(b->planes[i])),
                      "%s: pixel %zu is %.9g, not %.9g", path, i, (double)a->planes[i],
                      (double)b->planes[i]);
}

static int scenes, others, by_host, masks[PB_RAW_MASK_HOST + 1];

/* Data that GDAL decodes is read by other windows than tiles have, which its messages name. */
static inline void same_words(const struct pb_err *a, const struct pb_err *b)
{
    ck_assert_msg(a->code == b->code, "%s, %s", a->msg, b->msg);
    if (strstr(a->msg, "window at") == NULL)
        ck_assert_str_eq(a->msg, b->msg);
}

/* Runs by the CPU and by the device's way, with much memory and with little, and by another
 * process. Returns the result of all of them. */
static inline int compare(const char *path, const char *steps)
{
    struct pb_err err = {0}, own = {0};
    int rc = 0;
    struct image cpu = {.n = 0}, whole = {.n = 0};
    if (open_scene(path, steps) < 0 || make_plan(true) < 0) {
        close_scene();
        return 0;
    }
    const struct pb_raster_info *info = pb_raster_info(raster);
    bool used = plan->engine.whole.used;
    if (plan->engine.whole.all_by_host && (int64_t)info->width * info->height > 1 << 20)
        used = false; /* it would take seconds */
    by_host += used && plan->engine.whole.all_by_host;
    masks[plan->engine.whole.how[0].mask] += used;
    pb_plan_destroy(plan);
    if (used) {
        ck_assert_int_eq(make_plan(false), 0);
        rc = run(&cpu, &err);
        pb_plan_destroy(plan);
        /* Another process cannot decode what the device refuses. */
        enum way ways = whole_host.refuse_each > 0 ? ANOTHER : WAYS;
        for (enum way way = MUCH; way < ways; way++) {
            by_another = way == ANOTHER;
            ck_assert_int_eq(make_plan(true), 0);
            ck_assert(plan->engine.whole.used);
            if (way == LITTLE)
                shrink_memory();
            if (way == LEAST)
                plan_least();
            ck_assert_msg(run(&whole, &own) == rc, "%s: %s, %s", path, err.msg, own.msg);
            same_words(&err, &own);
            if (rc == 0)
                same(path, &cpu, &whole);
            free(whole.planes);
            pb_plan_destroy(plan);
            memset(&own, 0, sizeof own);
        }
        by_another = false;
        free(cpu.planes);
    }
    scenes += used;
    others += !used;
    close_scene();
    return rc;
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { EACH = 12 }; /* file is looked at */
#else
enum { EACH = 1 };
#endif

static inline int visit(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    static int n_files;
    (void)status, (void)where;
    size_t n = strlen(path);
    if (kind != FTW_F || n < 4 || strcmp(path + n - 4, ".tif") != 0)
        return 0;
    if (n_files++ % EACH != 0)
        return 0;
    compare(path, BLUR);
    compare(path, PLAIN);
    return 0;
}

#endif
