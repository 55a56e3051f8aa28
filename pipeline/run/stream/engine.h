/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ENGINE_H
#define PB_ENGINE_H
/* The engine of a pass: stream, executor and threads. There are two links to it: the pass of a run
 * (passes/pass.h), whose slots are this process's or the owner's of a GPU, and the pass that an
 * owner computes for another process (served/served.h). A link makes the slots and channels, and
 * adds its own parts to the stream.
 *
 * Threads are tile workers, or readers, executor and writers with channels between them. The last
 * thread of such a stage closes its output channel; the end of the input therefore reaches every
 * stage without further signals. They are joined in one place. */
#include "pipeline/run/stream/stream.h"
#include "pipeline/run/stream/tile_worker.h"

#include <stdint.h>

enum { PB_ENGINE_THREADS_MAX = 512 };

enum pb_engine_role { PB_ENGINE_READ, PB_ENGINE_COMPUTE, PB_ENGINE_WRITE, PB_ENGINE_TILES };

struct pb_engine;
struct pb_engine_thread {
    struct pb_engine *engine;
    enum pb_engine_role role;
    uint32_t number; /* within its role */
    pthread_t id;
};

struct pb_engine {
    struct pb_stream stream;
    const struct pb_exec_type *type;
    void *exec;
    double to_device_rate, from_device_rate; /* rates of the link, bytes/s; 0 = unknown */
    uint64_t set_up_ns, pin_ns; /* as in pb_device_report, for this process; set by the link */

    struct pb_tile_workers *workers; /* NULL: the stages have threads of their own */
    _Atomic uint32_t readers_left, workers_left;
    struct pb_engine_thread thread[PB_ENGINE_THREADS_MAX];
    uint32_t n, joined;
    pthread_mutex_t lock; /* protects running */
    pthread_cond_t ended;
    uint32_t running;
};

/* engine: zeroed. type: NULL = the executor that the plan requires. */
void pb_engine_init(struct pb_engine *engine, const struct pb_plan *plan,
                    const struct pb_exec_type *type);
/* Makes the executor's end of the pass's exchanges. parts: false if the readers are in another
 * process, which does not report parts. repeats: all tiles may be sent again. */
int pb_engine_arrivals(struct pb_engine *engine, bool parts, bool repeats, struct pb_err *err);
/* Makes the executor, after the channels and before the first tile. */
int pb_engine_make(struct pb_engine *engine, struct pb_err *err);
/* On failure the stream is aborted; join the threads that were started. */
int pb_engine_start(struct pb_engine *engine, struct pb_err *err);
/* Waits for all threads; 0 or -ETIMEDOUT (call again). timeout_ms < 0: no limit. Fine without
 * started threads. */
int pb_engine_join(struct pb_engine *engine, int64_t timeout_ms);
/* Same, and the first failure of the stream, with *err filled. */
int pb_engine_wait(struct pb_engine *engine, int64_t timeout_ms, struct pb_err *err);
/* Time that the executor's threads waited for tiles and slots. */
uint64_t pb_engine_parked_ns(const struct pb_engine *engine);
/* Adds the link's report to *out, of which rates and set-up are those of this engine. */
void pb_engine_link(const struct pb_engine *engine, struct pb_link_report *out);
/* Frees executor, arrivals and answers. Call it after join. */
void pb_engine_fini(struct pb_engine *engine);
#endif
