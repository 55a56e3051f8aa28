/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sieving by cells, against the same definition over the whole image at once: areas by flooding,
 * neighbours by one walk. tests/integration/test_sieve.py compares with GDAL. */
#include "kernels/areas/areas.h"

#include "any_number.h"
#include "run_suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 48 * 48 };

struct whole {
    int32_t w, h;
    struct pb_sieve sieve;
    float px[MOST];
    int32_t area[MOST], size[MOST], best[MOST], n;
    float value[MOST];
};

static int32_t flood(struct whole *s, int32_t from, int32_t *stack)
{
    int32_t n = 1, size = 0;

    stack[0] = from;
    s->area[from] = s->n;
    while (n > 0) {
        const int32_t at = stack[--n], x = at % s->w, y = at / s->w;

        size++;
        for (int32_t k = 0; k < 9; k++) {
            const int32_t dx = k % 3 - 1, dy = k / 3 - 1, nx = x + dx, ny = y + dy;
            const int32_t next = ny * s->w + nx;

            if ((s->sieve.connectivity == 4 && dx != 0 && dy != 0) || nx < 0 || ny < 0 ||
                nx >= s->w || ny >= s->h || s->area[next] >= 0 || s->px[next] != s->px[at])
                continue;
            s->area[next] = s->n;
            stack[n++] = next;
        }
    }
    return size;
}

static void meet(struct whole *s, int32_t at, int32_t dx, int32_t dy)
{
    const int32_t x = at % s->w + dx, y = at / s->w + dy;

    if (x < 0 || x >= s->w || y < 0)
        return;
    const int32_t pair[2] = {s->area[at], s->area[y * s->w + x]};
    for (int i = 0; i < 2; i++) {
        const int32_t one = pair[i], other = pair[1 - i];

        if (one >= 0 && other >= 0 && one != other &&
            (s->best[one] < 0 || s->size[s->best[one]] < s->size[other]))
            s->best[one] = other;
    }
}

static float end_of(const struct whole *s, int32_t area)
{
    int32_t at = area;

    for (int32_t steps = 0; s->size[at] < s->sieve.size; steps++) {
        at = s->best[at];
        if (at < 0 || steps > s->n)
            return s->value[area];
    }
    return s->value[at];
}

static void sieve_whole(struct whole *s, float *out)
{
    int32_t *const stack = malloc(9 * MOST * sizeof *stack);

    s->n = 0;
    for (int32_t i = 0; i < s->w * s->h; i++)
        s->area[i] = -1;
    for (int32_t i = 0; i < s->w * s->h; i++) {
        if (isnan(s->px[i]) || s->area[i] >= 0)
            continue;
        s->size[s->n] = flood(s, i, stack);
        s->value[s->n] = s->px[i];
        s->best[s->n++] = -1;
    }
    free(stack);
    for (int32_t i = 0; i < s->w * s->h; i++) {
        meet(s, i, 0, -1);
        if (s->sieve.connectivity == 8) {
            meet(s, i, -1, -1);
            meet(s, i, 1, -1);
        }
        meet(s, i, -1, 0);
    }
    for (int32_t i = 0; i < s->w * s->h; i++)
        out[i] = s->area[i] < 0 ? s->px[i] : end_of(s, s->area[i]);
}

/* The cells from the last to the first. */
static void sieve_by_cells(const struct whole *s, int32_t side, float *out)
{
    struct pb_areas *areas = NULL;
    uint64_t *const scratch = malloc(pb_areas_scratch_bytes(s->w, s->h, side));

    ck_assert_int_eq(pb_areas_create(&s->sieve, s->w, s->h, side, &areas), 0);
    memcpy(out, s->px, sizeof s->px);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = pb_areas_cells(areas); i-- > 0;) {
            const struct pb_rect r = pb_areas_cell(areas, i);
            float *const plane = out + (size_t)r.y * (size_t)s->w + (size_t)r.x;

            if (round == 0)
                pb_areas_add(areas, i, plane, (size_t)s->w, scratch);
            else if (round == 1)
                pb_areas_look(areas, i, plane, (size_t)s->w, scratch);
            else
                (void)pb_areas_replace(areas, i, plane, (size_t)s->w, scratch);
        }
        if (round == 0)
            ck_assert(pb_areas_connect(areas, NULL, NULL));
        else if (round == 1)
            ck_assert(pb_areas_resolve(areas, NULL, NULL));
    }
    free(scratch);
    pb_areas_destroy(areas);
}

static bool same(const struct whole *s, const float *a, const float *b)
{
    for (int32_t i = 0; i < s->w * s->h; i++)
        if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))))
            return false;
    return true;
}

static void make_image(struct whole *s, uint32_t kind)
{
    s->w = 1 + (int32_t)(any_number() % 48);
    s->h = 1 + (int32_t)(any_number() % 48);
    s->sieve.size = 2 + (int32_t)(any_number() % (kind % 2 ? 6 : 90));
    s->sieve.connectivity = any_number() % 2 ? 8 : 4;
    for (int32_t i = 0; i < s->w * s->h; i++) {
        s->px[i] = (float)(any_number() % (2 + kind % 4));
        if (kind % 3 == 1 && any_number() % 3 > 0 && i > 0) /* runs, so areas of several sizes */
            s->px[i] = s->px[i - 1];
        if (kind % 5 == 2 && any_number() % 8 == 0)
            s->px[i] = NAN;
    }
}

START_TEST(cells_of_any_side_give_what_the_whole_image_does)
{
    static const int32_t sides[] = {1, 2, 5, 8, 16, 64};
    static struct whole s;
    static float whole[MOST], cells[MOST];
    int changed = 0;

    for (uint32_t kind = 0; kind < 120; kind++) {
        make_image(&s, kind);
        sieve_whole(&s, whole);
        changed += !same(&s, whole, s.px);
        for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
            sieve_by_cells(&s, sides[i], cells);
            ck_assert_msg(same(&s, whole, cells), "image %u (%d x %d), areas under %d, cells of %d",
                          kind, s.w, s.h, s.sieve.size, sides[i]);
        }
    }
    ck_assert_int_gt(changed, 60);
}
END_TEST

START_TEST(cells_that_are_not_added_are_invalid)
{
    const struct pb_sieve sieve = {.size = 3, .connectivity = 4};
    struct pb_areas *areas = NULL;
    static uint64_t scratch[1000];
    float px[4] = {1, 2, 2, 2};

    ck_assert_uint_le(pb_areas_scratch_bytes(8, 2, 2), sizeof scratch);
    ck_assert_int_eq(pb_areas_create(&sieve, 8, 2, 2, &areas), 0);
    ck_assert_uint_eq(pb_areas_cells(areas), 4);
    pb_areas_add(areas, 2, px, 2, scratch);
    ck_assert(pb_areas_connect(areas, NULL, NULL));
    pb_areas_look(areas, 2, px, 2, scratch);
    ck_assert(pb_areas_resolve(areas, NULL, NULL));
    ck_assert(pb_areas_replace(areas, 2, px, 2, scratch));
    ck_assert(px[0] == 2 && px[3] == 2);
    pb_areas_destroy(areas);
}
END_TEST

static int left; /* number of calls before it requests a stop */

static bool stop_after(const void *asked)
{
    (void)asked;
    return left-- <= 0;
}

START_TEST(work_between_rounds_can_be_aborted_anywhere)
{
    enum { SIDE = 2, W = 40, H = 30, CELLS = W / SIDE * (H / SIDE), BORDERS = 19 + 14 };
    const struct pb_sieve sieve = {.size = 5, .connectivity = 8};
    static uint64_t scratch[1000];
    static const int connects[] = {0, BORDERS / 2, BORDERS, BORDERS + CELLS - 1},
                     resolves[] = {0, BORDERS, BORDERS + CELLS, BORDERS + 2 * CELLS,
                                   BORDERS + 3 * CELLS - 1};

    for (size_t k = 0; k < 9; k++) {
        struct pb_areas *areas = NULL;
        const bool in_connect = k < 4;
        float px[SIDE * SIDE];

        ck_assert_int_eq(pb_areas_create(&sieve, W, H, SIDE, &areas), 0);
        for (uint32_t cell = 0; cell < CELLS; cell++) {
            for (int i = 0; i < SIDE * SIDE; i++)
                px[i] = (float)(any_number() % 3);
            pb_areas_add(areas, cell, px, SIDE, scratch);
        }
        left = in_connect ? connects[k] : BORDERS + CELLS;
        ck_assert(pb_areas_connect(areas, stop_after, NULL) == !in_connect);
        left = in_connect ? 0 : resolves[k - 4];
        ck_assert(in_connect || !pb_areas_resolve(areas, stop_after, NULL));
        pb_areas_destroy(areas);
    }
}
END_TEST

START_TEST(the_table_grows_with_the_borders_of_cells)
{
    const uint64_t one = pb_areas_bytes(512, 512, 512), all = pb_areas_bytes(10980, 10980, 512);

    ck_assert_uint_lt(one, 72 * 1024);
    ck_assert_uint_le(all, 22 * 22 * one);
    ck_assert(pb_areas_bytes(1000000, 1000000, 64) == UINT64_MAX);
    ck_assert_int_eq(pb_areas_side(64), 64);
    ck_assert_int_eq(pb_areas_side(4096), 512);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("areas");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, cells_of_any_side_give_what_the_whole_image_does);
    tcase_add_test(tests, cells_that_are_not_added_are_invalid);
    tcase_add_test(tests, work_between_rounds_can_be_aborted_anywhere);
    tcase_add_test(tests, the_table_grows_with_the_borders_of_cells);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
