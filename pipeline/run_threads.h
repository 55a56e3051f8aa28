/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_THREADS_H
#define PB_RUN_THREADS_H
/* The threads of a run: readers, executor, writers. Each stage's last thread closes the channel
 * behind it, so the end of the input runs through the stream by itself. Joined in one place. */
#include "pipeline/stream.h"

#include <stdint.h>

enum { PB_RUN_THREADS_MAX = 512 };

struct pb_run_threads {
    struct pb_stream *stream;
    const struct pb_exec_type *exec_type;
    void *exec;
    _Atomic uint32_t readers_left, workers_left;
    pthread_t thread[PB_RUN_THREADS_MAX];
    uint32_t n, joined;
};

int pb_run_threads_start(struct pb_run_threads *threads, struct pb_stream *stream,
                         const struct pb_exec_type *type, void *exec, struct pb_err *err);
/* Waits for all; 0 or -ETIMEDOUT (call again). timeout_ms < 0: no limit. Fine when nothing was
 * started. */
int pb_run_threads_join(struct pb_run_threads *threads, int64_t timeout_ms);
#endif
