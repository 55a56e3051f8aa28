/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Who is a lane of the kernel that jobs share, and when that kernel is there: with launches that
 * only count. */
#ifndef PB_HAVE_CUDA
#define PB_HAVE_CUDA 1
#endif
#include "pipeline/device/lanes_cuda.c"

#include <check.h>
#include <unistd.h>

/* --- launches and kernels in place of real ones ---------------------------------------------- */

struct wic_launch {
    struct wic_launch_options options;
    uint32_t limit, work_bytes;
};

static atomic_int made, destroyed;

int wic_launch_create_as(uint64_t layout, const struct wic_launch_options *options,
                         struct wic_launch **out_launch)
{
    (void)layout;
    *out_launch = calloc(1, sizeof **out_launch);
    (*out_launch)->options = *options;
    (void)atomic_fetch_add(&made, 1);
    return 0;
}

int wic_launch_destroy(struct wic_launch *launch)
{
    (void)atomic_fetch_add(&destroyed, 1);
    free(launch);
    return 0;
}

bool wic_launch_takes(const struct wic_launch *launch, const struct wic_transfer_plan *plan,
                      size_t argument_bytes)
{
    const struct wic_launch_options *o = &launch->options;
    return plan->warps == o->warps && plan->in_piece <= o->stage_bytes &&
           plan->work_bytes <= o->work_bytes && argument_bytes <= o->argument_bytes;
}

void wic_launch_limit(struct wic_launch *launch, uint32_t blocks, uint32_t work_bytes)
{
    launch->limit = blocks;
    launch->work_bytes = work_bytes;
}

void wic_launch_count(struct wic_launch *launch, uint64_t *out_launches, uint32_t *out_open)
{
    *out_launches = launch->limit > 0;
    *out_open = 0;
}

struct wic_share pb_device_wic_share(void)
{
    return (struct wic_share){.way = WIC_SHARE_GREEN};
}

size_t pb_chain_resident_argument_bytes(void)
{
    return 1000;
}

enum pb_chain_lane pb_chain_lanes_of(const struct pb_chain_resident_shape *shape, uint32_t warps)
{
    return shape->sums.n > 0 || warps != 16 ? PB_CHAIN_LANE_COUNT : PB_CHAIN_LANE_LINES;
}

const struct pb_lane_kernel *pb_chain_lanes_kernel(enum pb_chain_lane which)
{
    static const struct pb_lane_kernel kernels[PB_CHAIN_LANE_COUNT] = {{&made, 16, 2}};
    return &kernels[which];
}

/* --- jobs ----------------------------------------------------------------------------------- */

static const struct wic_gpu gpu = {
    .multiprocessors = 100, .shared_bytes = 233472, .shared_block_bytes = 232448};

static struct wic_transfer_plan plan_of(uint32_t piece, uint32_t work, uint32_t blocks)
{
    return (struct wic_transfer_plan){.in_piece = piece,
                                      .depth = 2,
                                      .warps = 16,
                                      .work_bytes = work,
                                      .blocks = blocks,
                                      .results = WIC_PUSH_STORES};
}

static struct pb_lane *join(uint32_t piece, uint32_t work, uint32_t blocks, int64_t priority)
{
    const struct pb_chain_resident_shape shape = {.by_line = true};
    const struct wic_transfer_plan plan = plan_of(piece, work, blocks);
    struct pb_lane *lane = NULL;
    ck_assert_int_eq(pb_lane_join(&shape, &plan, &gpu, priority, &lane), 0);
    return lane;
}

START_TEST(jobs_share_a_launch_that_has_room_for_their_plans)
{
    struct pb_lane *a = join(10000, 50000, 40, 0), *b = join(16384, 60000, 60, 2);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_eq(pb_lane_launch(a), pb_lane_launch(b));
    ck_assert_int_eq(pb_lane_launch(a)->options.share.way, WIC_SHARE_GREEN);
    ck_assert_uint_eq(pb_lane_blocks(a), 200);
    ck_assert_uint_ge(pb_lane_launch(a)->options.stage_bytes, 16384);
    ck_assert_ptr_null(join(30000, 40000, 40, 0)); /* its pieces are too long */
    ck_assert_int_eq(atomic_load(&made), 1);
    pb_lane_part(a);
    pb_lane_part(b);
    struct pb_lane *c = join(30000, 40000, 40, 0); /* the other one is unused */
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(atomic_load(&made), 2);
    ck_assert_int_eq(atomic_load(&destroyed), 1);
    pb_lane_part(c);
}
END_TEST

START_TEST(some_chains_have_kernels_of_their_own)
{
    const struct pb_chain_resident_shape sums = {.sums = {.n = 1}}, lines = {.by_line = true};
    struct wic_transfer_plan plan = plan_of(16384, 1000, 40);
    struct pb_lane *lane = NULL;
    ck_assert_int_eq(pb_lane_join(&sums, &plan, &gpu, 0, &lane), 0);
    ck_assert_ptr_null(lane);
    plan.warps = 8;
    ck_assert_int_eq(pb_lane_join(&lines, &plan, &gpu, 0, &lane), 0);
    ck_assert_ptr_null(lane);
    plan = plan_of(16384, 115000, 40); /* more than a block has */
    ck_assert_int_eq(pb_lane_join(&lines, &plan, &gpu, 0, &lane), 0);
    ck_assert_ptr_null(lane);
    pb_lane_part(NULL);
}
END_TEST

struct entering {
    struct pb_lane *lane;
    atomic_uint share;
    pthread_t thread;
};

static void *enter(void *user)
{
    struct entering *e = user;
    atomic_store(&e->share, pb_lane_enter(e->lane));
    return NULL;
}

static void begin_enter(struct entering *e, struct pb_lane *lane)
{
    *e = (struct entering){.lane = lane};
    ck_assert_int_eq(pthread_create(&e->thread, NULL, enter, e), 0);
}

START_TEST(larger_job_enters_after_the_others_have_left)
{
    struct pb_lane *small = join(16384, 1000, 40, 0), *beside = join(16384, 1000, 40, 0);
    struct entering e;
    ck_assert_uint_eq(pb_lane_enter(small), PB_RESIDENCY_WHOLE);
    ck_assert_uint_eq(pb_lane_launch(small)->limit, 40);
    ck_assert_uint_eq(pb_lane_enter(beside), PB_RESIDENCY_WHOLE);
    ck_assert(!pb_lane_is_unwanted(small));
    struct pb_lane *large = join(16384, 1000, 90, 0);
    ck_assert(pb_lane_is_unwanted(small));
    begin_enter(&e, large);
    pb_lane_left(small);
    usleep(50000);
    ck_assert_uint_eq(atomic_load(&e.share), 0); /* one is still there */
    pb_lane_left(beside);
    pthread_join(e.thread, NULL);
    ck_assert_uint_eq(atomic_load(&e.share), PB_RESIDENCY_WHOLE);
    ck_assert_uint_eq(pb_lane_launch(large)->limit, 90);
    ck_assert(!pb_lane_is_unwanted(large));
    ck_assert_uint_eq(pb_lane_enter(small), PB_RESIDENCY_WHOLE); /* the kernel stays */
    ck_assert_uint_eq(pb_lane_launch(large)->limit, 90);
    pb_lane_left(small);
    pb_lane_left(large);
    pb_lane_part(small);
    pb_lane_part(beside);
    pb_lane_part(large);
}
END_TEST

START_TEST(shared_kernel_takes_the_memory_that_its_jobs_need)
{
    struct pb_lane *small = join(16384, 20000, 40, 0);
    struct entering e;
    const struct wic_launch *launch = pb_lane_launch(small);
    ck_assert_uint_eq(pb_lane_enter(small), PB_RESIDENCY_WHOLE);
    ck_assert_uint_eq(launch->work_bytes, 32768); /* and not all of the multiprocessor */
    struct pb_lane *large = join(16384, 60000, 40, 0);
    ck_assert_ptr_eq(pb_lane_launch(large), launch);
    ck_assert(pb_lane_is_unwanted(small)); /* it has to return with larger blocks */
    begin_enter(&e, large);
    pb_lane_left(small);
    pthread_join(e.thread, NULL);
    ck_assert_uint_eq(launch->work_bytes, 65536);
    ck_assert(!pb_lane_is_unwanted(large));
    pb_lane_left(large);
    pb_lane_part(large);
    ck_assert_uint_eq(pb_lane_enter(small), PB_RESIDENCY_WHOLE);
    ck_assert_uint_eq(launch->work_bytes, 32768); /* the large job is gone */
    pb_lane_left(small);
    pb_lane_part(small);
}
END_TEST

START_TEST(a_shared_kernel_leaves_room_to_another_one)
{
    struct pb_lane *a = join(16384, 1000, 200, 0), *b = join(16384, 1000, 40, 0),
                   *c = join(16384, 1000, 40, 0);
    struct pb_resident other = {0};
    struct entering e;
    ck_assert_uint_eq(pb_lane_enter(a), PB_RESIDENCY_WHOLE);
    ck_assert_uint_eq(pb_lane_launch(a)->limit, 200);
    pb_residency_join(&other, 0);
    other.waits = true; /* it wants to have a kernel */
    pb_residency_weigh(&other, 0, 1);
    ck_assert(pb_lane_is_unwanted(a));
    begin_enter(&e, b);
    pb_lane_left(a);
    pthread_join(e.thread, NULL);
    ck_assert_uint_eq(atomic_load(&e.share), 750); /* three jobs next to one */
    ck_assert_uint_eq(pb_lane_launch(b)->limit, 100);
    pb_lane_left(b);
    pb_residency_part(&other);
    pb_lane_part(a);
    pb_lane_part(b);
    pb_lane_part(c);
}
END_TEST

enum { JOBS = 4, ROUNDS = 50 };
static atomic_int inside;
static atomic_bool wrong;

static void *flow(void *user)
{
    for (int i = 0; i < ROUNDS; i++) {
        (void)pb_lane_enter(user);
        wic_gpu_enter();
        (void)atomic_fetch_add(&inside, 1);
        for (int k = 0; k < 500 && !wic_gpu_is_paused() && !pb_lane_is_unwanted(user); k++)
            (void)k; /* a moment, less if a thread frees memory */
        (void)atomic_fetch_sub(&inside, 1);
        pb_lane_left(user);
        wic_gpu_left();
    }
    return NULL;
}

static void *free_memory(void *user)
{
    for (int i = 0; i < ROUNDS / 10; i++) {
        if (wic_gpu_pause(WIC_GPU_PAUSE_NS) != 0 || atomic_load(&inside) != 0)
            atomic_store(&wrong, true);
        wic_gpu_resume();
    }
    return user;
}

START_TEST(no_job_is_inside_while_memory_is_freed)
{
    pthread_t jobs[JOBS], frees;
    struct pb_lane *lanes[JOBS];
    atomic_store(&wrong, false);
    for (int i = 0; i < JOBS; i++)
        lanes[i] = join(16384, 1000, 40, i % 2);
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_eq(pthread_create(&jobs[i], NULL, flow, lanes[i]), 0);
    ck_assert_int_eq(pthread_create(&frees, NULL, free_memory, NULL), 0);
    pthread_join(frees, NULL);
    for (int i = 0; i < JOBS; i++)
        pthread_join(jobs[i], NULL);
    for (int i = 0; i < JOBS; i++)
        pb_lane_part(lanes[i]);
    ck_assert(!atomic_load(&wrong));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lanes");
    TCase *tc = tcase_create("lanes");
    tcase_add_test(tc, jobs_share_a_launch_that_has_room_for_their_plans);
    tcase_add_test(tc, some_chains_have_kernels_of_their_own);
    tcase_add_test(tc, larger_job_enters_after_the_others_have_left);
    tcase_add_test(tc, shared_kernel_takes_the_memory_that_its_jobs_need);
    tcase_add_test(tc, a_shared_kernel_leaves_room_to_another_one);
    tcase_add_test(tc, no_job_is_inside_while_memory_is_freed);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
