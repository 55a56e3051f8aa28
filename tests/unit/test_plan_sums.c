/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Passes that a GPU sums up, planned for devices that are not here. */
#include "gpu_plan_fixture.h"
#include "pipeline/plan/engine.h"
#include "run_suite.h"

/* Returns the pass with rounds before the products; the one before it has no rounds. */
static const struct pb_plan *pass_of_rounds(const char *compute, const char *steps)
{
    const struct question q = {compute, steps, &h200, false, false, 5000, 4000, PB_U16};
    (void)ask(&q);
    ck_assert_uint_ge(plan->n_earlier, 1);
    return plan->earlier[plan->n_earlier - 1];
}

static const char KMEANS[] =
    "      - classify: {bands: [B, R, N], classes: 7, rounds: 9, as: OUT}\n";

START_TEST(rounds_of_kmeans_bring_back_sums_of_parts)
{
    const struct pb_plan *p = pass_of_rounds("", KMEANS);
    const struct pb_plan *first = plan->earlier[0];
    const struct pb_tile tile = pb_plan_tile(p, 0, 0);
    ck_assert_uint_eq(p->layout.sums.chain.n, 1);
    ck_assert_uint_eq(p->layout.sums.chain.n_numbers, 21);
    ck_assert(p->engine.resident.used && !p->engine.resident.by_line);
    ck_assert_int_eq(p->engine.resident.chunks.transport, WIC_COPY);
    /* in front of the pixels is room for the numbers */
    ck_assert_uint_ge(p->layout.format.head_bytes,
                      sizeof(struct pb_slot_head) + 21 * sizeof(float));
    ck_assert_uint_eq(p->layout.format.head_bytes % PB_PLANE_ALIGN, 0);
    /* each part has 7 counts and 18 limbs of 21 centres, which is little next to its planes */
    ck_assert_uint_ge(p->layout.sums.chain.words, 7 + 18 * 21);
    ck_assert_uint_eq(pb_plan_out_bytes(p, &tile),
                      (size_t)pb_plan_parts(p, &tile.core) * p->layout.sums.chain.words * 4);
    ck_assert_uint_lt(p->layout.out_slot_bytes, pb_tile_out_px(&tile) * sizeof(float) / 8);
    /* neither the search of the first centres nor the pass of the products is such a loop */
    ck_assert(first != p && first->layout.sums.chain.n == 0 &&
              first->layout.format.head_bytes == 0);
    ck_assert(plan->layout.sums.chain.n == 0 && plan->layout.format.head_bytes == 0);
    forget();
}
END_TEST

START_TEST(slots_of_sums_are_those_of_streams_too)
{
    const struct pb_plan *p = pass_of_rounds("", KMEANS);
    const size_t in = p->layout.in_slot_bytes, out = p->layout.out_slot_bytes;
    forget();
    p = pass_of_rounds(", sync: stream", KMEANS);
    ck_assert(!p->engine.resident.used && p->layout.sums.chain.n == 1);
    ck_assert_uint_eq(p->layout.in_slot_bytes, in);
    ck_assert_uint_eq(p->layout.out_slot_bytes, out);
    forget();
}
END_TEST

START_TEST(a_loop_beside_another_reduction_brings_back_planes)
{
    const struct pb_plan *p =
        pass_of_rounds("", "      - classify: {bands: [B], classes: 2, centres: [1, 2], as: C}\n"
                           "      - classify: {method: otsu, bands: [N], as: D}\n"
                           "      - math: {bands: {OUT: \"C + D\"}}\n");
    ck_assert_uint_eq(plan->n_earlier, 1);
    ck_assert(p->layout.sums.chain.n == 0 && p->layout.format.head_bytes == 0);
    forget();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_sums");
    TCase *tests = tcase_create("sums");
    tcase_add_test(tests, rounds_of_kmeans_bring_back_sums_of_parts);
    tcase_add_test(tests, slots_of_sums_are_those_of_streams_too);
    tcase_add_test(tests, a_loop_beside_another_reduction_brings_back_planes);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
