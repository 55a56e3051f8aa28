/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_THREADS_H
#define PB_RUN_THREADS_H
/* The threads of a run: tile workers, or readers, executor and writers with channels between them.
 * The last thread of such a stage closes its output channel; the end of the input therefore reaches
 * every stage without further signals. Joined in one place. */
#include "pipeline/run/stream/stream.h"
#include "pipeline/run/stream/tile_worker.h"

#include <stdint.h>

enum { PB_RUN_THREADS_MAX = 512 };

enum pb_role { PB_ROLE_READ, PB_ROLE_COMPUTE, PB_ROLE_WRITE, PB_ROLE_TILES };

struct pb_run_thread {
    struct pb_run_threads *all;
    enum pb_role role;
    uint32_t number; /* within its role */
    pthread_t id;
};

struct pb_run_threads {
    struct pb_stream *stream;
    const struct pb_exec_type *exec_type;
    void *exec;
    struct pb_tile_workers *workers; /* NULL: the stages have threads of their own */
    _Atomic uint32_t readers_left, workers_left;
    struct pb_run_thread thread[PB_RUN_THREADS_MAX];
    uint32_t n, joined;

    pthread_mutex_t lock; /* protects running */
    pthread_cond_t ended;
    uint32_t running;
};

void pb_run_threads_init(struct pb_run_threads *threads);
/* On failure the stream is aborted; join the threads that were started. */
int pb_run_threads_start(struct pb_run_threads *threads, struct pb_stream *stream,
                         const struct pb_exec_type *type, void *exec, struct pb_err *err);
/* Waits for all; 0 or -ETIMEDOUT (call again). timeout_ms < 0: no limit. Fine without started
 * threads. */
int pb_run_threads_join(struct pb_run_threads *threads, int64_t timeout_ms);
/* Call it after join. */
void pb_run_threads_fini(struct pb_run_threads *threads);
#endif
