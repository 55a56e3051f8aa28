/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A kernel is resident from the entry of its first job until the last one leaves. If it is
 * unwanted (its share has changed, memory has to be freed, or a job needs more blocks or larger
 * ones than it was launched with) its jobs leave one by one, and none enters before the last one
 * has left. */
#include "pipeline/device/lanes.h"
#include "config/base/clock.h"

#include "pipeline/device/device.h"
#include "pipeline/device/residency.h"

#include "wic/device/pause.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { KIB = 1024, PIECE = 16 * KIB, LINE = 128, WORK_STEP = 32 * KIB, LOOK_MS = 20 };

/* Size of a kernel: its blocks, and the shared memory that a block has for the work. The
 * rest of a multiprocessor is free for other kernels. */
struct size {
    _Atomic uint32_t blocks, work_bytes;
};

struct group {
    struct wic_launch *launch; /* NULL: not yet made */
    uint32_t blocks;           /* most blocks of a launch */
    uint32_t spread;           /* most blocks if other kernels run */
    struct pb_resident resident;
    struct pb_lane *jobs;
    uint32_t n_jobs;
    uint32_t inside;         /* jobs between enter and left */
    uint32_t share;          /* share of the running kernel */
    struct size wanted, has; /* wanted by the jobs, and of the running kernel */
    int64_t launches;        /* count of destroyed launches */
};

struct pb_lane {
    struct pb_lane *next;
    struct group *group;
    int64_t priority;
    uint32_t blocks, work_bytes; /* needs of its plan */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all groups */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct group groups[PB_CHAIN_LANE_COUNT];

static uint32_t lines(uint32_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Largest shared memory of a block if blocks_each of them are on a multiprocessor. */
static uint32_t most_of(const struct wic_gpu *gpu, uint32_t blocks_each)
{
    uint32_t part = gpu->shared_bytes / blocks_each - KIB;
    return part < gpu->shared_block_bytes ? part : gpu->shared_block_bytes;
}

static uint32_t stage_of(const struct wic_transfer_plan *plan)
{
    return lines(plan->in_piece + (plan->results == WIC_PUSH_BULK ? plan->out_piece : 0));
}

/* Sets stages for pieces of a usual size if the plan leaves room for them; the rest is the most
 * that a launch may have for the work (enter_first). */
static bool shape_blocks(const struct wic_gpu *gpu, const struct wic_transfer_plan *plan,
                         const struct pb_lane_kernel *kernel, struct wic_launch_options *o)
{
    uint32_t most = most_of(gpu, kernel->blocks_each), stage = stage_of(plan);
    uint32_t taken = WIC_STAGES_OFFSET + WIC_LANES_BYTES, usual = stage;
    if (plan->in_piece > 0 && stage < PIECE)
        usual = PIECE;
    if (taken + plan->depth * usual + plan->work_bytes > most)
        usual = stage;
    taken += plan->depth * usual;
    if (taken + plan->work_bytes > most)
        return false;
    *o = (struct wic_launch_options){
        .kernel = kernel->kernel,
        .argument_bytes = lines((uint32_t)pb_chain_resident_argument_bytes()),
        .warps = kernel->warps,
        .depth = plan->depth,
        .stage_bytes = usual,
        .work_bytes = (most - taken) / LINE * LINE,
        .blocks = gpu->multiprocessors * kernel->blocks_each,
        .share = pb_device_wic_share(),
    };
    return o->blocks > WIC_LANES_MAX;
}

static void end_launch(void *launch)
{
    (void)wic_launch_destroy(launch);
}

/* Makes the launch if this plan has no launch and no job uses another one. Returns 0, also if
 * the job cannot be one of its lanes (*out_fits). *out_old: a launch to free. */
static int have_launch(struct group *g, const struct wic_transfer_plan *plan,
                       const struct wic_gpu *gpu, const struct pb_lane_kernel *kernel,
                       bool *out_fits, struct wic_launch **out_old)
{
    struct wic_launch_options options;
    size_t argument = pb_chain_resident_argument_bytes();
    *out_fits = g->launch != NULL && wic_launch_takes(g->launch, plan, argument);
    if (*out_fits || g->n_jobs > 0 || !shape_blocks(gpu, plan, kernel, &options))
        return 0;
    struct wic_launch *made = NULL;
    int rc = wic_launch_create(&options, &made);
    if (rc < 0)
        return rc == -EOPNOTSUPP || rc == -E2BIG || rc == -ENOSPC ? 0 : rc;
    if (g->launch != NULL) {
        uint64_t launches;
        uint32_t open;
        wic_launch_count(g->launch, &launches, &open);
        g->launches += (int64_t)launches;
        *out_old = g->launch;
    }
    g->launch = made;
    g->blocks = options.blocks;
    g->spread = gpu->multiprocessors;
    *out_fits = true;
    return 0;
}

/* Combines the priorities and counts of the jobs. */
static void weigh(struct group *g)
{
    int64_t priority = INT64_MIN;
    uint32_t blocks = 0, work = 0;
    for (const struct pb_lane *l = g->jobs; l != NULL; l = l->next) {
        priority = l->priority > priority ? l->priority : priority;
        blocks = l->blocks > blocks ? l->blocks : blocks;
        work = l->work_bytes > work ? l->work_bytes : work;
    }
    atomic_store(&g->wanted.blocks, blocks < g->blocks ? blocks : g->blocks);
    atomic_store(&g->wanted.work_bytes, (work + WORK_STEP - 1) / WORK_STEP * WORK_STEP);
    if (g->n_jobs > 0)
        pb_residency_weigh(&g->resident, priority, g->n_jobs);
}

int pb_lane_join(const struct pb_chain_resident_shape *shape, const struct wic_transfer_plan *plan,
                 const struct wic_gpu *gpu, int64_t priority, struct pb_lane **out_lane)
{
    enum pb_chain_lane which = pb_chain_lanes_of(shape, plan->warps);
    *out_lane = NULL;
    if (which == PB_CHAIN_LANE_COUNT)
        return 0;
    struct pb_lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return -ENOMEM;
    struct group *g = &groups[which];
    struct wic_launch *old = NULL;
    bool fits = false;
    (void)pthread_mutex_lock(&lock);
    int rc = have_launch(g, plan, gpu, pb_chain_lanes_kernel(which), &fits, &old);
    if (rc == 0 && fits) {
        *lane = (struct pb_lane){g->jobs, g, priority, plan->blocks, plan->work_bytes};
        g->jobs = lane;
        if (g->n_jobs++ == 0)
            pb_residency_join(&g->resident, priority);
        weigh(g);
        *out_lane = lane;
    }
    (void)pthread_mutex_unlock(&lock);
    if (old != NULL)
        wic_gpu_free_later(end_launch, old, 0); /* after the links that were its lanes */
    if (*out_lane == NULL)
        free(lane);
    return rc;
}

struct wic_launch *pb_lane_launch(const struct pb_lane *lane)
{
    return lane->group->launch;
}

uint32_t pb_lane_blocks(const struct pb_lane *lane)
{
    return lane->group->blocks;
}

/* True if a job needs more than the running kernel has. */
static bool is_small(const struct group *g)
{
    return atomic_load(&g->wanted.blocks) > atomic_load(&g->has.blocks) ||
           atomic_load(&g->wanted.work_bytes) > atomic_load(&g->has.work_bytes);
}

bool pb_lane_is_unwanted(void *context)
{
    struct group *g = ((struct pb_lane *)context)->group;
    return is_small(g) || pb_residency_is_unwanted(&g->resident);
}

/* Enters for the first job, which gets the kernel's share, and may have to wait for it. The
 * device distributes a kernel's blocks over as many multiprocessors as it can, which may leave
 * no room for another kernel: next to others it gets at most one block for each multiprocessor
 * of its share. */
static void enter_first(struct group *g)
{
    uint32_t share = pb_residency_enter(&g->resident);
    (void)pthread_mutex_lock(&lock);
    const uint32_t wanted = atomic_load(&g->wanted.blocks);
    const uint32_t work = atomic_load(&g->wanted.work_bytes);
    bool alone = share == PB_RESIDENCY_WHOLE;
    wic_launch_limit(g->launch, alone || wanted < g->spread ? wanted : g->spread, work);
    atomic_store(&g->has.blocks, wanted);
    atomic_store(&g->has.work_bytes, work);
    g->share = share;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

uint32_t pb_lane_enter(void *context)
{
    struct group *g = ((struct pb_lane *)context)->group;
    (void)pthread_mutex_lock(&lock);
    while (g->inside > 0 && (g->share == 0 || pb_lane_is_unwanted(context))) {
        /* no signal reports that the kernel is wanted again */
        const struct timespec until = pb_clock_mono_after(LOOK_MS);
        (void)pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until);
    }
    bool first = g->inside++ == 0;
    (void)pthread_mutex_unlock(&lock);
    if (first)
        enter_first(g);
    (void)pthread_mutex_lock(&lock);
    uint32_t share = g->share;
    (void)pthread_mutex_unlock(&lock);
    return share;
}

void pb_lane_left(void *context)
{
    struct group *g = ((struct pb_lane *)context)->group;
    (void)pthread_mutex_lock(&lock);
    bool last = g->inside == 1;
    if (last)
        g->share = 0; /* no job enters before pb_residency_left has returned */
    else
        g->inside--;
    (void)pthread_mutex_unlock(&lock);
    if (!last)
        return;
    pb_residency_left(&g->resident);
    (void)pthread_mutex_lock(&lock);
    g->inside = 0;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

void pb_lane_part(struct pb_lane *lane)
{
    if (lane == NULL)
        return;
    struct group *g = lane->group;
    (void)pthread_mutex_lock(&lock);
    struct pb_lane **at = &g->jobs;
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    if (--g->n_jobs == 0)
        pb_residency_part(&g->resident);
    weigh(g);
    (void)pthread_mutex_unlock(&lock);
    free(lane);
}

struct pb_lanes_count pb_lanes_count(void)
{
    struct pb_lanes_count sum = {0, 0};
    (void)pthread_mutex_lock(&lock);
    for (int i = 0; i < PB_CHAIN_LANE_COUNT; i++) {
        uint64_t launches = 0;
        uint32_t open = 0;
        if (groups[i].launch != NULL)
            wic_launch_count(groups[i].launch, &launches, &open);
        sum.launches += groups[i].launches + (int64_t)launches;
        sum.open += open;
    }
    (void)pthread_mutex_unlock(&lock);
    return sum;
}
