/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OPS_ON_CORES_H
#define PB_OPS_ON_CORES_H
/* The speed of a chain on all cores: a thread a core, each with a tile of its own that it makes
 * again and again. */
#include "tests/op_tile.h"

#include <pthread.h>
#include <sched.h>

#define OPS_CORES_MAX 256
#define OPS_CORE_PX   512

struct ops_core {
    const struct pb_chain *chain;
    struct op_tile tile;
    pthread_barrier_t *start;
    double seconds;
    double px_per_s; /* negative: the chain failed */
};

/* Cores that this process may use. */
static inline uint32_t ops_cores(void)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < OPS_CORES_MAX ? (uint32_t)n : OPS_CORES_MAX;
}

static inline void *ops_core_run(void *of)
{
    struct ops_core *const core = of;
    int rc = op_tile_run(core->chain, &core->tile); /* warms caches and pages */
    double runs = 0.0, took = 0.0;

    (void)pthread_barrier_wait(core->start);
    const double start = op_now_s();
    while (rc == 0 && took < core->seconds) {
        rc = op_tile_run(core->chain, &core->tile);
        runs += 1.0;
        took = op_now_s() - start;
    }
    core->px_per_s = rc == 0 ? runs * (double)core->tile.made_px / took : -1.0;
    return NULL;
}

/* ns a pixel of all n cores together; negative: it did not run. side: of the chain's scene. */
static inline double ops_on_cores(const struct pb_chain *chain, int32_t side, uint32_t n,
                                  double seconds)
{
    static struct ops_core cores[OPS_CORES_MAX];
    static pthread_t threads[OPS_CORES_MAX];
    pthread_barrier_t start;
    bool good = pthread_barrier_init(&start, NULL, n) == 0;
    double px_per_s = 0.0;

    for (uint32_t i = 0; i < n; i++) {
        cores[i] = (struct ops_core){.chain = chain, .start = &start, .seconds = seconds};
        good = op_tile_make(chain, side, OPS_CORE_PX, &cores[i].tile) && good;
    }
    for (uint32_t i = 0; i < n && good; i++)
        if (pthread_create(&threads[i], NULL, ops_core_run, &cores[i]) != 0) {
            (void)fprintf(stderr, "no thread for core %u\n", i);
            exit(EXIT_FAILURE); /* those before it wait at the barrier */
        }
    for (uint32_t i = 0; i < n && good; i++) {
        (void)pthread_join(threads[i], NULL);
        px_per_s += cores[i].px_per_s;
    }
    for (uint32_t i = 0; i < n; i++) {
        good = good && cores[i].px_per_s > 0.0;
        op_tile_free(&cores[i].tile);
    }
    (void)pthread_barrier_destroy(&start);
    return good ? 1e9 / px_per_s : -1.0;
}
#endif
