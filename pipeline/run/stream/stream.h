/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STREAM_H
#define PB_STREAM_H
/* What the three stages of a pass share. Before a device or another process they are threads of
 * their own, joined by channels: readers == in ==> executor == out ==> writers. Where this process
 * computes on the CPU there are no channels: tile workers take each tile through all three
 * (tile_worker.h). The pass owns everything; stages borrow it from start to join. A slot's user
 * bytes are a struct pb_tile. A failure anywhere is recorded once and wakes every stage, wherever
 * it waits. */
#include "pipeline/raster/block_cache.h"
#include "pipeline/plan/plan.h"
#include "pipeline/product/product.h"
#include "pipeline/run/stream/arrivals.h"
#include "pipeline/run/base/run_report.h"
#include "pipeline/run/stream/in_flight.h"
#include "pipeline/run/base/sink.h"

#include "wic/wic.h"

#include <pthread.h>
#include <stdatomic.h>

_Static_assert(sizeof(struct pb_tile) <= WIC_USER_BYTES, "a slot's user bytes hold its tile");

struct pb_gate;
struct pb_reducing;
struct pb_infinities;
struct pb_rests;

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
    const struct pb_raster *raster[PB_FILES_MAX]; /* opened again by each reader; NULL = nothing
                                                       is read of it */
    const struct pb_limits *limits;
    struct wic_channel *in, *out; /* NULL: tile workers compute, which have */
    void *own_in, *own_out;       /* a slot each, wic_slot_stride() apart */
    const struct pb_remote
        *remote; /* computes the tiles, in that session; NULL: this process does */
    struct pb_remote_session *session;
    const struct pb_whole_device *whole_device; /* where blocks are decoded (run/whole);
                                                    NULL = a CUDA device */
    const struct pb_raw_blocks *whole_blocks;   /* of each source, as the process with the files has
                                                   told; NULL = they are this one's */
    struct pb_whole_kept *kept;     /* pixels of earlier passes that the executor may take, and may
                                        leave there; NULL: it does not */
    struct pb_reducing *reducing;   /* of an earlier pass: states for a device; else NULL */
    struct pb_in_flight *in_flight; /* the readers' and writers' end of the exchange */
    struct pb_arrivals *arrivals;   /* the executor's, to be told of every tile that it takes;
                                       NULL: it is in another process, or nothing is checked */
    /* Of the parts of sources; NULL = readers share nothing. */
    struct pb_block_cache *cache[PB_FILES_MAX][PB_PLAN_PARTS];
    struct pb_gate *gate;   /* NULL: no tile is left out */
    struct pb_rests *rests; /* what float32 does not hold of tiles; NULL: nothing is kept */
    struct pb_infinities *infinities; /* counts them in bands of floats; NULL: there are none */
    struct pb_tile_store *store;      /* of tiles for rounds; NULL: there is none */
    _Atomic uint32_t round;           /* from 1; set before its first tile goes down */
    struct pb_slot_head *head;        /* of slots in this round; NULL: they have none */
    uint32_t n_stored; /* tiles of a lower number stay on the device after the first round */
    struct pb_stage_counter read, compute, write;
    const struct pb_sink *sinks; /* get every finished tile */
    size_t n_sinks;

    pthread_mutex_t lock; /* failure */
    struct pb_err failure;
    atomic_bool failed;
};

/* Records *err unless another failure came first, and aborts channels and the limiter. Thread:
 * any. */
void pb_stream_fail(struct pb_stream *stream, const struct pb_err *err);
/* Wakes every stage, wherever it waits, without an error: their channels return -ECANCELED from
 * then on, which is no failure of its own. Thread: any. */
void pb_stream_abort(struct pb_stream *stream);

/* Hands a finished tile to every sink and counts it. worker < pb_plan_sink_workers. Thread: a
 * writer, or a reader for tiles that are left out. */
int pb_stream_deliver(struct pb_stream *stream, const struct pb_tile *tile,
                      const struct pb_tile_planes *pixels, uint32_t worker, struct pb_err *err);

/* pb_stream_deliver of a tile's result, `bytes` bytes of planes in an output slot, with the
 * residual planes kept for the tile (rests.h). Counts the bytes. Thread: a writer or tile worker.
 */
int pb_stream_write(struct pb_stream *stream, const struct pb_tile *tile, const void *planes,
                    size_t bytes, uint32_t worker, struct pb_err *err);

/* Notes how many slots of the channels are filled, for the trace. Thread: any of the run. */
void pb_stream_trace_slots(const struct pb_stream *stream);
/* A thread of a stage ends with rc: -EPIPE and -ECANCELED without an error are the stream's end and
 * an abort; all else fails the stream. */
void pb_stream_thread_ended(struct pb_stream *stream, int rc, struct pb_err *err);

/* Thread bodies, with the thread's number among its kind. Each returns when its part of the stream
 * has ended. */
void pb_reader_run(struct pb_stream *stream, uint32_t reader);
void pb_writer_run(struct pb_stream *stream, uint32_t worker);

/* An executor turns input slots into output slots. Every kind has this interface. */
struct pb_exec_type {
    const char *sync; /* how its work waits for tiles: "wic" or "stream" */
    /* Makes contexts and buffers; before the first tile. */
    int (*create)(struct pb_stream *stream, struct pb_err *err, void **out_exec);
    /* Body of a reader's thread. NULL = pb_reader_run. */
    void (*read)(void *exec, uint32_t reader);
    /* Body of executor thread `thread` < threads(); returns when the input is drained or the stream
     * aborted. */
    void (*run)(void *exec, uint32_t thread);
    uint32_t (*threads)(const void *exec);
    void (*destroy)(void *exec);
    /* After the run: what went over the link to a device; rates are left alone. NULL = no link. */
    void (*link)(const void *exec, struct pb_link_report *out);
    /* It counts compute.parked_ns itself; else that is how long its threads waited at the
     * channels. */
    bool counts_parked;
    /* pb_stream.n_stored, once it is made. NULL = 0. */
    uint32_t (*stored)(const void *exec);
    /* Device memory that it holds beside copies of slots. NULL = little. */
    uint64_t (*held)(const void *exec);
    /* The pass is complete, and another one follows: what that can use goes to stream.kept. NULL =
     * nothing. */
    void (*keep)(void *exec);
};
extern const struct pb_exec_type pb_exec_cpu;
/* Blocks are decoded on a device (run/whole): that of stream.whole_device. */
extern const struct pb_exec_type pb_exec_whole;
/* The same by another process: its readers. */
extern const struct pb_exec_type pb_exec_whole_remote;
/* Where passes of a run on one leave decoded pixels for each other (run/whole/whole_kept.h). NULL =
 * no memory. drop: frees what is there, on which no work is queued; NULL is fine, as for destroy.
 */
struct pb_whole_kept *pb_whole_kept_create(void);
void pb_whole_kept_drop(struct pb_whole_kept *kept);
void pb_whole_kept_destroy(struct pb_whole_kept *kept);
/* CUDA builds only: a resident kernel, whose warps are parked until tiles arrive; and its fallback,
 * one kernel per tile in streams joined by events. Both give the same bits. */
extern const struct pb_exec_type pb_exec_cuda, pb_exec_stream;
/* The one that a plan is for. */
const struct pb_exec_type *pb_exec_of(const struct pb_plan *plan);

#endif
