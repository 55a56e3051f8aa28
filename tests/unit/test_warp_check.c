/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tables of a warp that another process may have made: those of pb_warp_create() pass the check,
 * and any other order, index or number is refused. All positions of a table that passes are in the
 * boxes that are made from it: a tile of the scene holds all pixels that it reads. */
#include "kernels/resample/warp_pixel.h"
#include "tests/op_ground.h"
#include "tests/unit/chain_fixture.h"

#include <math.h>

enum { SIDE = 300 };

/* Jumps, ends, and is curved: a tree of many depths, with pixels that are torn. */
static void hard_points(void *of, size_t n, double *x, double *y)
{
    (void)of;
    for (size_t i = 0; i < n; i++) {
        const double u = x[i], v = y[i];

        x[i] = u + 0.2 * v + 2 * sin(u / 40) + (u + v / 7 < 141.5 ? 0 : -SIDE);
        y[i] = v + u * u / 900;
        if (hypot(u - 250, v - 250) > 203)
            x[i] = y[i] = NAN;
    }
}

static struct pb_warp *make(pb_warp_points *points)
{
    struct pb_warp *warp = NULL;
    const struct pb_warp_want want = {
        .w = SIDE, .h = SIDE, .source_w = SIDE, .source_h = SIDE, .has_areas = true};

    ck_assert_int_eq(pb_warp_create(&want, points, NULL, &warp), 0);
    return warp;
}

/* First entry of a kind, from `first` on. */
static uint32_t *find_entry(struct pb_warp *w, uint32_t bits, size_t first)
{
    for (size_t i = first; i < w->n_tree; i++)
        if (w->tree[i] != PB_WARP_VOID && (w->tree[i] & (PB_WARP_BRANCH | PB_WARP_TORN)) == bits)
            return &w->tree[i];
    ck_abort_msg("the tree has no such entry");
}

START_TEST(made_tables_are_sound)
{
    pb_warp_points *const points[] = {hard_points, op_ground_points};

    for (int i = 0; i < 2; i++) {
        struct pb_warp *const w = make(points[i]);

        ck_assert(pb_warp_is_sound(w));
        pb_warp_put(w);
    }
}
END_TEST

START_TEST(any_other_table_is_refused)
{
    struct pb_warp *const w = make(hard_points);
    const struct pb_warp made = *w;
    const size_t cells = (size_t)w->cols * (size_t)w->rows;
    uint32_t *const branch = find_entry(w, PB_WARP_BRANCH, 0);
    uint32_t *const lower = find_entry(w, PB_WARP_BRANCH, cells);
    uint32_t *const torn = find_entry(w, PB_WARP_BRANCH | PB_WARP_TORN, 0);
    uint32_t *const leaf = find_entry(w, 0, cells);
    uint32_t *const more = &w->tree[PB_WARP_CHILD(*torn) + 4];

#define NUMBER(change)                                                                             \
    do {                                                                                           \
        change;                                                                                    \
        ck_assert_msg(!pb_warp_is_sound(w), #change);                                              \
        *w = made;                                                                                 \
        ck_assert(pb_warp_is_sound(w));                                                            \
    } while (0)
#define ENTRY(at, value)                                                                           \
    do {                                                                                           \
        const uint32_t own = *(at);                                                                \
        *(at) = (value);                                                                           \
        ck_assert_msg(!pb_warp_is_sound(w), #at " " #value);                                       \
        *(at) = own;                                                                               \
    } while (0)
#define POSITION(at, value)                                                                        \
    do {                                                                                           \
        const double own = *(at);                                                                  \
        *(at) = (value);                                                                           \
        ck_assert_msg(!pb_warp_is_sound(w), #at " " #value);                                       \
        *(at) = own;                                                                               \
    } while (0)
    NUMBER(w->w = 0);
    NUMBER(w->h = -1);
    NUMBER(w->w = INT32_MAX); /* more squares than the tree has */
    NUMBER(w->source_w = 0);
    NUMBER(w->source_h = INT32_MAX);
    NUMBER(w->scale_x = NAN);
    NUMBER(w->scale_y = -1);
    NUMBER(w->n_tree = 0);
    NUMBER(w->n_tree--);
    NUMBER(w->n_tree = SIZE_MAX);
    NUMBER(w->n_leaf--);
    NUMBER(w->n_leaf = SIZE_MAX);
    NUMBER(w->n_torn++);
    ENTRY(branch, PB_WARP_VOID);                              /* entries that nothing names */
    ENTRY(branch, PB_WARP_BRANCH);                            /* itself or one before it */
    ENTRY(branch, *branch + 1);                               /* shared entries */
    ENTRY(branch, PB_WARP_BRANCH | (uint32_t)w->n_tree);      /* beyond */
    ENTRY(branch, *branch | PB_WARP_TORN);                    /* larger than a pixel */
    ENTRY(lower, *branch);                                    /* two parents */
    ENTRY(leaf, *leaf + 1);                                   /* shared leaves */
    ENTRY(leaf, (uint32_t)w->n_leaf);                         /* beyond */
    ENTRY(leaf, PB_WARP_BRANCH | (uint32_t)(w->n_tree - 4u)); /* out of its order */
    ENTRY(torn, *torn & ~PB_WARP_TORN);
    ENTRY(more, (uint32_t)w->n_leaf);
    ENTRY(more + 1, UINT32_MAX);
    ENTRY(more + 1, more[1] + 1);
    ENTRY(&w->tree[PB_WARP_CHILD(*torn)], PB_WARP_BRANCH | (uint32_t)w->n_tree); /* half a pixel */
    POSITION(&w->leaf[0].x[8], NAN);
    POSITION(&w->leaf[0].y[0], INFINITY);
    POSITION(&w->leaf[0].y[3], 1e12);
    POSITION(&w->leaf[more[0]].x[4], NAN);
    ck_assert(pb_warp_is_sound(w));
    pb_warp_put(w);
}
END_TEST

/* Gives every leaf other positions, of any size that is allowed. */
static void scatter(struct pb_warp *w, uint32_t *random)
{
    for (size_t i = 0; i < w->n_leaf; i++)
        for (int k = 0; k < PB_WARP_KNOWN; k++) {
            const float size = powf(10, fx_uniform(random, 0, 7.9f));

            w->leaf[i].x[k] = (double)fx_uniform(random, -size, size);
            w->leaf[i].y[k] = (double)fx_uniform(random, -size, size);
        }
    ck_assert(pb_warp_is_sound(w));
    ck_assert_int_eq(pb_warp_complete(w), 0);
}

static void expect_in_boxes(const struct pb_warp *w, uint32_t *random, int n)
{
    const struct pb_warp_job job = {.warp = w, .to = pb_map_identity(), .from = pb_map_identity()};

    for (int i = 0; i < n; i++) {
        const double x = (double)fx_uniform(random, 0, SIDE),
                     y = (double)fx_uniform(random, 0, SIDE);
        const float height = fx_uniform(random, -50, 1500);
        const struct pb_warp_box at = {x, y, x, y}, box = pb_warp_bounds(w, &at);
        const struct pb_warp_at p = pb_warp_position(&job, x, y, height);

        ck_assert_msg(isnan(p.x) ||
                          (p.x >= box.x0 && p.x <= box.x1 && p.y >= box.y0 && p.y <= box.y1),
                      "%g %g is outside of %g %g %g %g", p.x, p.y, box.x0, box.y0, box.x1, box.y1);
    }
}

START_TEST(boxes_hold_any_positions)
{
    struct pb_warp *const w = make(hard_points);
    uint32_t random = 11;

    for (int round = 0; round < 8; round++) {
        scatter(w, &random);
        expect_in_boxes(w, &random, 5000);
    }
    pb_warp_put(w);
}
END_TEST

START_TEST(boxes_hold_positions_of_any_height)
{
    pb_warp_points *const points[] = {hard_points, op_ground_points, hard_points};
    uint32_t random = 12;

    for (int round = 0; round < 2; round++) {
        struct pb_warp *level[3], *w = NULL;

        for (int i = 0; i < 3; i++) {
            level[i] = make(points[i]);
            scatter(level[i], &random);
        }
        ck_assert_int_eq(pb_warp_stack(level, 3, 100, 400, &w), 0);
        expect_in_boxes(w, &random, 5000);
        pb_warp_put(w);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("warp_check");
    TCase *tests = tcase_create("tables");

    tcase_add_test(tests, made_tables_are_sound);
    tcase_add_test(tests, any_other_table_is_refused);
    tcase_add_test(tests, boxes_hold_any_positions);
    tcase_add_test(tests, boxes_hold_positions_of_any_height);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
