/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads arm64 */
/* The pyramid against a model that halves whole images, under schedules that stay inside the
 * window of tiles in flight and are as nasty as they can be. */
#include "pipeline/cog/pyramid.h"
#include "pipeline/cog/pyramid_bound.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS 16

struct scene {
    struct pb_grid grid;
    struct pb_pyramid_options options;
    float *level[LEVELS];                          /* bands one after the other */
    _Atomic uint32_t wrong, nothing, seen[LEVELS]; /* nothing: blocks without pixels */
    struct pb_pyramid *pyramid;
    uint32_t *visit;
};

static float pixel(const float *plane, int32_t w, int32_t h, int32_t x, int32_t y)
{
    return x < w && y < h ? plane[(size_t)y * (size_t)w + (size_t)x] : NAN;
}

static float mean(const float *plane, int32_t w, int32_t h, int32_t x, int32_t y)
{
    double sum[2] = {0, 0};
    int n = 0;
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 2; i++) {
            float v = pixel(plane, w, h, x + i, y + j);
            if (!isnan(v)) {
                sum[j] += (double)v;
                n++;
            }
        }
    return n > 0 ? (float)((sum[0] + sum[1]) / n) : NAN;
}

/* Returns the value of a band's pixel of the image, by the definition. */
static float joined(const struct scene *scene, const float *image, size_t plane_px, uint32_t b,
                    size_t at)
{
    const struct pb_pixel_join *join = &scene->options.join;
    const float v = image[b * plane_px + at], other = image[(1 - b) * plane_px + at];
    if (join->planes == 0)
        return v;
    if (!join->any)
        return isnan(other) ? NAN : v;
    return isnan(v) && !isnan(other) ? join->fill : v;
}

/* The image that averages are made of. */
static float *base(const struct scene *scene)
{
    const size_t plane_px = (size_t)scene->grid.image_w * (size_t)scene->grid.image_h;
    float *out = malloc(2 * plane_px * sizeof *out);
    for (uint32_t b = 0; b < 2; b++)
        for (size_t i = 0; i < plane_px; i++)
            out[b * plane_px + i] = joined(scene, scene->level[0], plane_px, b, i);
    return out;
}

static float *half(const struct scene *scene, uint32_t k)
{
    int32_t w = pb_pyramid_size(scene->grid.image_w, k),
            h = pb_pyramid_size(scene->grid.image_h, k);
    int32_t W = (w + 1) / 2, H = (h + 1) / 2;
    float *out = malloc(sizeof(float) * (size_t)W * (size_t)H * scene->options.n_bands), *to = out;
    float *image = k == 0 && !scene->options.nearest ? base(scene) : NULL;
    for (uint32_t b = 0; b < scene->options.n_bands; b++) {
        const float *plane =
            (image != NULL ? image : scene->level[k]) + (size_t)b * (size_t)w * (size_t)h;
        for (int32_t y = 0; y < H; y++)
            for (int32_t x = 0; x < W; x++)
                *to++ = scene->options.nearest ? pixel(plane, w, h, 2 * x, 2 * y)
                                               : mean(plane, w, h, 2 * x, 2 * y);
    }
    free(image);
    return out;
}

static int compare(void *user, uint32_t level, uint32_t col, uint32_t row, int32_t w, int32_t h,
                   const float *const *half, uint32_t worker, struct pb_err *err)
{
    struct scene *scene = user;
    int32_t px = scene->options.block_px;
    int32_t W = pb_pyramid_size(scene->grid.image_w, level);
    int32_t H = pb_pyramid_size(scene->grid.image_h, level);
    (void)worker;
    (void)err;
    int32_t left = W - (int32_t)col * px, below = H - (int32_t)row * px;
    if (w != (left < px ? left : px) || h != (below < px ? below : px))
        atomic_fetch_add(&scene->wrong, 1);
    for (uint32_t b = 0; b < scene->options.n_bands; b++)
        for (int32_t y = 0; y < h; y++)
            for (int32_t x = 0; x < w; x++) {
                const size_t row_at = b * (size_t)(px / 2) + (size_t)(y % (px / 2));
                float have =
                    half == NULL ? NAN : half[y / (px / 2)][row_at * (size_t)px + (size_t)x];
                float want =
                    scene->level[level][((size_t)b * (size_t)H + row * (size_t)px + (size_t)y) *
                                            (size_t)W +
                                        col * (size_t)px + (size_t)x];
                if (!(have == want || (isnan(have) && isnan(want))))
                    atomic_fetch_add(&scene->wrong, 1);
            }
    atomic_fetch_add(&scene->seen[level], 1);
    atomic_fetch_add(&scene->nothing, half == NULL);
    return 0;
}

/* A third of the tiles, and all of the left half but one, have no valid pixel. */
static bool is_empty(const struct scene *scene, uint32_t tile)
{
    struct pb_rect core = pb_grid_core(&scene->grid, tile);
    return tile % 3 == 1 || (tile > 0 && 2 * (core.x + core.w) <= scene->grid.image_w);
}

static void clear(const struct scene *scene, uint32_t tile)
{
    struct pb_rect core = pb_grid_core(&scene->grid, tile);
    const size_t w = (size_t)scene->grid.image_w, h = (size_t)scene->grid.image_h;
    for (size_t b = 0; b < scene->options.n_bands; b++)
        for (int32_t y = 0; y < core.h; y++)
            for (int32_t x = 0; x < core.w; x++)
                scene->level[0][(b * h + (size_t)(core.y + y)) * w + (size_t)(core.x + x)] = NAN;
}

static void make_joined(struct scene *scene, int32_t w, int32_t h, int32_t tile, int32_t block,
                        enum pb_order order, uint32_t flight, uint32_t workers, bool nearest,
                        struct pb_pixel_join join)
{
    memset(scene, 0, sizeof *scene);
    ck_assert_int_eq(pb_grid_init(&scene->grid, w, h, tile), 0);
    scene->options = (struct pb_pyramid_options){
        .grid = &scene->grid,
        .order = order,
        .tiles_in_flight = flight,
        .workers = workers,
        .block_px = block,
        .levels = pb_pyramid_levels(w, h, block),
        .n_bands = 2,
        .nearest = nearest,
        .join = join,
        .sink = compare,
        .user = scene,
    };
    size_t n = (size_t)w * (size_t)h * 2;
    scene->level[0] = malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        scene->level[0][i] = rand() % 5 == 0 ? NAN : (float)(rand() % 1000) / 7;
    for (uint32_t i = 0; i < pb_grid_count(&scene->grid); i++)
        if (is_empty(scene, i))
            clear(scene, i);
    for (uint32_t k = 0; k < scene->options.levels; k++)
        scene->level[k + 1] = half(scene, k);
    uint32_t units = pb_order_units(&scene->grid, order), at = 0;
    scene->visit = malloc(sizeof(uint32_t) * (pb_grid_count(&scene->grid) + 4));
    for (uint32_t u = 0; u < units; u++)
        at += pb_order_unit(&scene->grid, order, u, scene->visit + at);
    ck_assert_int_eq(pb_pyramid_create(&scene->options, NULL, &scene->pyramid), 0);
}

static void make(struct scene *scene, int32_t w, int32_t h, int32_t tile, int32_t block,
                 enum pb_order order, uint32_t flight, uint32_t workers, bool nearest)
{
    make_joined(scene, w, h, tile, block, order, flight, workers, nearest,
                (struct pb_pixel_join){.planes = 0});
}

static int add(struct scene *scene, uint32_t place, uint32_t worker, struct pb_err *err)
{
    struct pb_rect core = pb_grid_core(&scene->grid, scene->visit[place]);
    size_t w = (size_t)scene->grid.image_w;
    const float *first = scene->level[0] + (size_t)core.y * w + (size_t)core.x;
    const float *planes[2] = {first, first + w * (size_t)scene->grid.image_h};
    bool any = !is_empty(scene, scene->visit[place]);
    return pb_pyramid_add(scene->pyramid, &core, any ? planes : NULL, w, worker, err);
}

static void done(struct scene *scene)
{
    ck_assert_uint_eq(scene->wrong, 0);
    for (uint32_t k = 1; k <= scene->options.levels; k++)
        ck_assert_int_eq((int)scene->seen[k],
                         pb_pyramid_blocks(scene->grid.image_w, scene->options.block_px, k) *
                             pb_pyramid_blocks(scene->grid.image_h, scene->options.block_px, k));
    pb_pyramid_destroy(scene->pyramid);
    for (uint32_t k = 0; k < LEVELS; k++)
        free(scene->level[k]);
    free(scene->visit);
}

/* Tiles complete at random inside the window; with `stubborn` the first one is always the last. */
static void schedule(struct scene *scene, bool stubborn)
{
    uint32_t n = pb_grid_count(&scene->grid), window = scene->options.tiles_in_flight, first = 0;
    char *finished = calloc(n + window, 1);
    struct pb_err err = {0};
    while (first < n) {
        uint32_t end = first + window < n ? first + window : n, pick = first;
        for (uint32_t tries = 0; tries < 2 * window; tries++) {
            pick = first + (uint32_t)rand() % (end - first);
            if (!finished[pick] && !(stubborn && pick == first))
                break;
            pick = first;
        }
        if (stubborn && pick == first)
            for (pick = end - 1; finished[pick] && pick > first;)
                pick--;
        ck_assert_msg(add(scene, pick, 0, &err) == 0, "%s", err.msg);
        finished[pick] = 1;
        while (first < n && finished[first])
            first++;
    }
    free(finished);
}

static const struct shape {
    int32_t w, h, tile, block;
} shapes[] = {
    {1, 1, 8, 8},       {9, 8, 8, 8},        {8, 9, 8, 8},       {200, 140, 8, 8},
    {129, 127, 16, 8},  {200, 260, 64, 8},   {300, 90, 24, 8},   {1, 900, 8, 8},
    {900, 1, 8, 8},     {333, 50, 40, 8},    {100, 100, 128, 8}, {65, 65, 8, 8},
    {100, 70, 128, 32}, {100, 70, 128, 256},
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

START_TEST(any_order_equals_the_model_and_never_runs_out)
{
    uint32_t nothing = 0;
    for (size_t s = 0; s < N_SHAPES; s++)
        for (uint32_t flight = 1; flight < 100; flight = flight * 3 + 1)
            for (int kind = 0; kind < 8; kind++) {
                struct scene scene;
                make(&scene, shapes[s].w, shapes[s].h, shapes[s].tile, shapes[s].block,
                     kind & 1 ? PB_ORDER_Z : PB_ORDER_ROWS, flight, 1, kind & 2);
                schedule(&scene, kind & 4);
                nothing += scene.nothing;
                done(&scene);
            }
    ck_assert_uint_gt(nothing, 1000);
}
END_TEST

START_TEST(test_joined_bands_average_pixels_that_both_show)
{
    static const struct pb_pixel_join joins[] = {
        {3, false, NAN}, {3, true, 0}, {3, true, NAN}, {3, true, 1e9f}};
    for (size_t s = 0; s < N_SHAPES; s++)
        for (int kind = 0; kind < 4; kind++) {
            struct scene scene;
            make_joined(&scene, shapes[s].w, shapes[s].h, shapes[s].tile, shapes[s].block,
                        kind & 1 ? PB_ORDER_Z : PB_ORDER_ROWS, 5, 1, kind & 2, joins[_i]);
            schedule(&scene, false);
            done(&scene);
        }
}
END_TEST

struct group {
    struct scene *scene;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint32_t first, started;
    char *finished;
    _Atomic int rc;
};

struct member {
    struct group *group;
    uint32_t worker;
};

static void *work(void *argument)
{
    struct member *member = argument;
    struct group *group = member->group;
    struct scene *scene = group->scene;
    uint32_t n = pb_grid_count(&scene->grid);
    pthread_mutex_lock(&group->lock);
    while (group->started < n) {
        if (group->started >= group->first + scene->options.tiles_in_flight) {
            pthread_cond_wait(&group->moved, &group->lock);
            continue;
        }
        uint32_t place = group->started++;
        pthread_mutex_unlock(&group->lock);
        int rc = add(scene, place, member->worker, NULL);
        if (rc != 0)
            group->rc = rc;
        pthread_mutex_lock(&group->lock);
        group->finished[place] = 1;
        while (group->first < n && group->finished[group->first])
            group->first++;
        pthread_cond_broadcast(&group->moved);
    }
    pthread_mutex_unlock(&group->lock);
    return NULL;
}

START_TEST(threads_share_parents_without_tearing_them)
{
    enum { WORKERS = 6 };
    for (size_t s = 3; s < 10; s++)
        for (int order = 0; order < 2; order++) {
            struct scene scene;
            make(&scene, shapes[s].w, shapes[s].h, shapes[s].tile, shapes[s].block,
                 (enum pb_order)order, 9, WORKERS, false);
            struct group group = {.scene = &scene,
                                  .lock = PTHREAD_MUTEX_INITIALIZER,
                                  .moved = PTHREAD_COND_INITIALIZER};
            group.finished = calloc(pb_grid_count(&scene.grid), 1);
            pthread_t thread[WORKERS];
            struct member member[WORKERS];
            for (uint32_t i = 0; i < WORKERS; i++) {
                member[i] = (struct member){&group, i};
                pthread_create(&thread[i], NULL, work, &member[i]);
            }
            for (uint32_t i = 0; i < WORKERS; i++)
                pthread_join(thread[i], NULL);
            ck_assert_int_eq(group.rc, 0);
            free(group.finished);
            done(&scene);
        }
}
END_TEST

/* In halves of blocks. */
static uint32_t halves(int32_t w, int32_t h, enum pb_order order, uint32_t flight, uint32_t level)
{
    struct pb_grid grid;
    struct pb_pyramid_held out[32];
    ck_assert_int_eq(pb_grid_init(&grid, w, h, 512), 0);
    struct pb_pyramid_options options = {.grid = &grid,
                                         .order = order,
                                         .tiles_in_flight = flight,
                                         .workers = 2,
                                         .block_px = 512,
                                         .n_bands = 1};
    options.levels = pb_pyramid_levels(w, h, 512);
    ck_assert_int_eq(pb_pyramid_bound(&options, out), 0);
    return level <= options.levels ? out[level].halves : 0;
}

START_TEST(by_rows_it_holds_about_half_a_row_of_blocks)
{
    /* 22 tiles and 11 parents a row: the upper halves, and lower ones of the tiles in flight. */
    ck_assert_uint_ge(halves(10980, 10980, PB_ORDER_ROWS, 4, 1), 11);
    ck_assert_uint_le(halves(10980, 10980, PB_ORDER_ROWS, 4, 1), 11 + 4);
    ck_assert_uint_le(halves(10980, 10980, PB_ORDER_ROWS, 4, 2), 6 + 3);
    /* A window of two rows touches at most two rows of parents. */
    ck_assert_uint_le(halves(10980, 10980, PB_ORDER_ROWS, 42, 1), 2 * 22);
    ck_assert_uint_le(halves(10980, 10980, PB_ORDER_ROWS, 42, 2), 2 * 12);
    ck_assert_uint_le(halves(10980, 10980, PB_ORDER_ROWS, 42, 3), 2 * 6);
    /* It depends on the width alone. */
    ck_assert_uint_eq(halves(10980, 10980, PB_ORDER_ROWS, 42, 1),
                      halves(10980, 109800, PB_ORDER_ROWS, 42, 1));
}
END_TEST

START_TEST(curve_order_holds_few_blocks_for_any_image)
{
    uint32_t small = halves(16384, 16384, PB_ORDER_Z, 16, 1);
    ck_assert_uint_le(small, 2 * 8);
    for (int32_t side = 10980; side < 300000; side = side * 2 + 4321)
        for (uint32_t level = 1; level < 12; level++) {
            ck_assert_uint_le(halves(side, side, PB_ORDER_Z, 16, level), 2 * 10);
            ck_assert_uint_le(halves(side, 40000, PB_ORDER_Z, 16, level), 2 * 10);
        }
    ck_assert_uint_le(halves(512, 5120000, PB_ORDER_Z, 16, 1), 2 * 10);
}
END_TEST

START_TEST(takes_no_more_memory_than_it_says)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("skipped: takes_no_more_memory_than_it_says: a sanitizer's malloc does not count\n");
    return;
#endif
    struct pb_grid grid;
    struct pb_pyramid_options options = {.grid = &grid,
                                         .order = PB_ORDER_ROWS,
                                         .tiles_in_flight = 30,
                                         .block_px = 256,
                                         .n_bands = 3,
                                         .sink = compare};
    struct pb_pyramid *pyramid;
    ck_assert_int_eq(pb_grid_init(&grid, 9000, 7000, 512), 0);
    options.levels = pb_pyramid_levels(9000, 7000, 256);
    uint64_t declared = pb_pyramid_bytes(&options);
    struct mallinfo2 before = mallinfo2();
    ck_assert_int_eq(pb_pyramid_create(&options, NULL, &pyramid), 0);
    struct mallinfo2 after = mallinfo2();
    size_t taken = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    ck_assert_uint_gt(taken, declared / 2);
    ck_assert_uint_le(taken, declared + 32 * 1024 * options.levels); /* pages and malloc's heads */
    pb_pyramid_destroy(pyramid);
}
END_TEST

START_TEST(sizes_and_levels)
{
    ck_assert_uint_eq(pb_pyramid_levels(512, 512, 512), 0);
    ck_assert_uint_eq(pb_pyramid_levels(513, 1, 512), 1);
    ck_assert_uint_eq(pb_pyramid_levels(10980, 10980, 512), 5);
    ck_assert_int_eq(pb_pyramid_size(10980, 5), 344);
    ck_assert_int_eq(pb_pyramid_size(1, 9), 1);
    ck_assert_int_eq(pb_pyramid_size(INT32_MAX, 1), 1 << 30);
}
END_TEST

static int refuse(void *user, uint32_t level, uint32_t col, uint32_t row, int32_t w, int32_t h,
                  const float *const *half, uint32_t worker, struct pb_err *err)
{
    (void)user, (void)level, (void)col, (void)row, (void)w, (void)h, (void)half, (void)worker;
    return pb_fail(err, PB_E_OUTPUT_FULL, "no room");
}

START_TEST(errors_of_the_sink_come_back)
{
    struct scene scene;
    make(&scene, 32, 32, 32, 8, PB_ORDER_Z, 1, 1, false);
    pb_pyramid_destroy(scene.pyramid);
    scene.options.sink = refuse;
    ck_assert_int_eq(pb_pyramid_create(&scene.options, NULL, &scene.pyramid), 0);
    struct pb_err err = {0};
    ck_assert_int_eq(add(&scene, 0, 0, &err), -ENOSPC);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_FULL);
    scene.options.levels = 0;
    pb_pyramid_destroy(scene.pyramid);
    for (uint32_t k = 0; k < LEVELS; k++)
        free(scene.level[k]);
    free(scene.visit);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pyramid");
    TCase *tc = tcase_create("pyramid");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, any_order_equals_the_model_and_never_runs_out);
    tcase_add_loop_test(tc, test_joined_bands_average_pixels_that_both_show, 0, 4);
    tcase_add_test(tc, threads_share_parents_without_tearing_them);
    tcase_add_test(tc, by_rows_it_holds_about_half_a_row_of_blocks);
    tcase_add_test(tc, curve_order_holds_few_blocks_for_any_image);
    tcase_add_test(tc, takes_no_more_memory_than_it_says);
    tcase_add_test(tc, sizes_and_levels);
    tcase_add_test(tc, errors_of_the_sink_come_back);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
