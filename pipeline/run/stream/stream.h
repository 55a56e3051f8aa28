/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STREAM_H
#define PB_STREAM_H
/* State that the three stages of a pass share. With a device or another process the stages are
 * threads of their own, joined by channels: readers == in ==> executor == out ==> writers. If this
 * process computes on the CPU there are no channels: tile workers process each tile through all
 * three (tile_worker.h). The pass owns everything; stages borrow it from start to join. A slot's
 * user bytes are a struct pb_tile. A failure in any stage is recorded once and wakes every stage,
 * wherever it waits. */
#include "pipeline/raster/block_cache.h"
#include "pipeline/plan/plan.h"
#include "pipeline/product/product.h"
#include "pipeline/run/base/latency.h"
#include "pipeline/run/base/run_report.h"
#include "pipeline/run/stream/in_flight.h"
#include "pipeline/run/base/sink.h"

#include "wic/wic.h"

#include <pthread.h>
#include <stdatomic.h>

_Static_assert(sizeof(struct pb_tile) <= WIC_USER_BYTES, "a slot's user bytes hold its tile");

struct pb_gate;
struct pb_gate_answers;
struct pb_reducing;
struct pb_infinities;
struct pb_rests;
struct pb_strips;

struct pb_stage_counter {
    _Atomic uint64_t busy_ns, parked_ns, tiles, bytes;
};

struct pb_remote;
struct pb_remote_session;
struct pb_whole_device;
struct pb_whole_kept;
struct pb_raw_blocks;

struct pb_stream {
    const struct pb_plan *plan;
    /* Opened again by each reader; NULL for unread sources. */
    const struct pb_raster *raster[PB_FILES_MAX];
    const struct pb_limits *limits;
    /* NULL: tile workers compute, which have their own slots */
    struct wic_channel *in, *out;
    void *own_in, *own_out; /* one slot for each worker, wic_slot_stride() apart */
    /* Strips and the tiles made of them; NULL: tiles are computed as a whole, or another process
     * writes the products. */
    struct pb_strips *strips;
    /* Computes the tiles in `session`; NULL: this process does. */
    const struct pb_remote *remote;
    struct pb_remote_session *session;
    /* The device that decodes blocks (run/whole); NULL = a CUDA device. */
    const struct pb_whole_device *whole_device;
    /* Blocks of each source, as received from the process with the files; NULL = they are this
     * process's. */
    const struct pb_raw_blocks *whole_blocks;
    /* Pixels of earlier passes that the executor may use, and where it may leave its own; NULL:
     * unused. */
    struct pb_whole_kept *kept;
    struct pb_reducing *reducing;   /* states of an earlier pass for a device; else NULL */
    struct pb_in_flight *in_flight; /* the readers' and writers' end of the exchange */
    /* The executor's end, which records every tile that it takes; NULL: it is in another process,
     * or nothing is checked. */
    struct pb_arrivals *arrivals;
    /* Caches for the parts of sources; NULL = readers share no blocks. */
    struct pb_block_cache *cache[PB_FILES_MAX][PB_PLAN_PARTS];
    struct pb_gate *gate; /* NULL: no tile is left out, or another process counts them */
    /* Answers of a gate that a device computes (run/whole); else NULL. */
    struct pb_gate_answers *answers;
    struct pb_rests *rests; /* digits of the tiles that float32 loses; NULL: not kept */
    /* Count of infinite pixels; NULL: no bands of floats. */
    struct pb_infinities *infinities;
    struct pb_tile_store *store; /* keeps tiles for later rounds; NULL: unused */
    _Atomic uint32_t round;      /* from 1; set before its first tile is sent down */
    /* Head of the slots in this round; NULL: slots have no head. */
    struct pb_slot_head *head;
    /* Tiles of a lower number stay on the device after the first round. */
    uint32_t n_stored;
    struct pb_stage_counter read, compute, write;
    struct pb_latency latency;   /* latency of lines that arrived in the pass */
    const struct pb_sink *sinks; /* get every finished tile */
    size_t n_sinks;

    pthread_mutex_t lock; /* protects failure */
    struct pb_err failure;
    atomic_bool failed;
};

/* Records *err unless it is a later failure, and aborts channels and the limiter. Thread:
 * any. */
void pb_stream_fail(struct pb_stream *stream, const struct pb_err *err);
/* Wakes every stage, wherever it waits, without an error: their channels return -ECANCELED from
 * then on, which is not recorded as a failure. Thread: any. */
void pb_stream_abort(struct pb_stream *stream);

/* Delivers a finished tile to every sink and counts it. worker < pb_plan_sink_workers. Thread: a
 * writer, or a reader for tiles that are left out. */
int pb_stream_deliver(struct pb_stream *stream, const struct pb_tile *tile,
                      const struct pb_tile_planes *pixels, uint32_t worker, struct pb_err *err);

/* pb_stream_deliver of a tile's result, `bytes` bytes of planes in an output slot, with the
 * residual planes kept for the tile (rests.h). Counts the bytes. Thread: a writer or tile worker.
 */
int pb_stream_write(struct pb_stream *stream, const struct pb_tile *tile, const void *planes,
                    size_t bytes, uint32_t worker, struct pb_err *err);

/* Records that an executor took a slot (pb_arrivals_note). Strips are not recorded here: the
 * threads that write tiles record those. */
int pb_stream_arrived(struct pb_stream *stream, const struct pb_tile *tile, struct pb_err *err);
/* Delivers a strip to the sinks that take lines (by_lines); these sinks get no tiles then.
 * Thread: the caller of pb_strips_compute or pb_strips_take. */
int pb_stream_deliver_lines(struct pb_stream *stream, const struct pb_tile *strip,
                            const struct pb_tile_planes *pixels, uint32_t worker,
                            struct pb_err *err);
/* Returns true if this process makes tiles of strips. */
bool pb_stream_is_by_lines(const struct pb_stream *stream);

/* Records the count of filled slots of the channels in the trace. Thread: any of the run. */
void pb_stream_trace_slots(const struct pb_stream *stream);
/* Handles the end of a stage's thread with rc: -EPIPE and -ECANCELED without an error are the
 * stream's end and an abort; any other code fails the stream. */
void pb_stream_thread_ended(struct pb_stream *stream, int rc, struct pb_err *err);

/* Thread bodies, with the thread's number among its kind. Each returns when its part of the stream
 * has ended. */
void pb_reader_run(struct pb_stream *stream, uint32_t reader);
void pb_writer_run(struct pb_stream *stream, uint32_t worker);

/* An executor turns input slots into output slots. Every kind has this interface. */
struct pb_exec_type {
    /* How its work waits for tiles: "wic" or "stream"; NULL: as in the session. */
    const char *sync;
    /* Makes contexts and buffers; called before the first tile. */
    int (*create)(struct pb_stream *stream, struct pb_err *err, void **out_exec);
    /* Body of a reader's thread. NULL = pb_reader_run. */
    void (*read)(void *exec, uint32_t reader);
    /* Body of executor thread `thread` < threads(); returns when the input is drained or the stream
     * aborted. */
    void (*run)(void *exec, uint32_t thread);
    uint32_t (*threads)(const void *exec);
    void (*destroy)(void *exec);
    /* After the run: reports the transfers to a device; does not set the rates. NULL = no link. */
    void (*link)(const void *exec, struct pb_link_report *out);
    /* True: it counts compute.parked_ns itself; false: that is the time that its threads waited at
     * the channels. */
    bool counts_parked;
    /* Value for pb_stream.n_stored, after create. NULL = 0. */
    uint32_t (*stored)(const void *exec);
    /* Device memory that it holds in addition to copies of slots. NULL = little. */
    uint64_t (*held)(const void *exec);
    /* Called when the pass is complete and another one follows: moves reusable pixels to
     * stream.kept. NULL = no pixels. */
    void (*keep)(void *exec);
};
extern const struct pb_exec_type pb_exec_cpu;
/* Computes a tile. exec: made by pb_exec_cpu.create; in: an input slot with the tile's pixels, out:
 * an output slot for its results, pb_plan_out_bytes. *err is filled on failure. Thread:
 * any, each with its own number < pb_exec_cpu.threads(). */
int pb_exec_cpu_tile(void *exec, uint32_t thread, const struct pb_tile *tile, void *in, void *out,
                     struct pb_err *err);
/* Decodes blocks on a device (run/whole): stream.whole_device. */
extern const struct pb_exec_type pb_exec_whole;
/* Waits while another process computes in stream.session; its readers send pixels, or blocks that
 * the other process decodes (run/whole/exec_remote.c). */
extern const struct pb_exec_type pb_exec_remote;
/* Store in which passes on one device keep decoded pixels for each other (run/whole/whole_kept.h).
 * NULL = out of memory. drop: frees the content, on which no work is queued; NULL is fine, also for
 * destroy. */
struct pb_whole_kept *pb_whole_kept_create(void);
void pb_whole_kept_drop(struct pb_whole_kept *kept);
bool pb_whole_kept_is_empty(const struct pb_whole_kept *kept); /* also true for NULL */
void pb_whole_kept_destroy(struct pb_whole_kept *kept);
/* CUDA builds only: a resident kernel, whose warps are parked until tiles arrive; and its fallback,
 * one kernel per tile in streams joined by events. Both give the same bits. */
extern const struct pb_exec_type pb_exec_cuda, pb_exec_stream;
/* The executor that a plan requires. */
const struct pb_exec_type *pb_exec_of(const struct pb_plan *plan);

#endif
