/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/stream.h"
#include "pipeline/profile/trace.h"
#include "pipeline/raster/raster.h"
#include "pipeline/run/stream/gate_answers.h"
#include "pipeline/run/stream/rests.h"
#include "pipeline/run/stream/strips.h"

#include <errno.h>
#include <string.h>

void pb_stream_abort(struct pb_stream *stream)
{
    if (stream->in != NULL) {
        wic_abort(stream->in);
        wic_abort(stream->out);
    }
    pb_in_flight_abort(stream->in_flight);
    pb_rests_abort(stream->rests);
    pb_strips_abort(stream->strips);
    pb_gate_answers_abort(stream->answers);
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        pb_raster_abort(stream->raster[i]);
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        for (int part = 0; part < PB_PLAN_PARTS; part++)
            pb_block_cache_abort(stream->cache[i][part]);
}

void pb_stream_fail(struct pb_stream *stream, const struct pb_err *err)
{
    pthread_mutex_lock(&stream->lock);
    if (!atomic_load(&stream->failed)) {
        stream->failure = *err;
        atomic_store(&stream->failed, true);
    }
    pthread_mutex_unlock(&stream->lock);
    pb_stream_abort(stream);
}

int pb_stream_arrived(struct pb_stream *stream, const struct pb_tile *tile, struct pb_err *err)
{
    return pb_stream_is_by_lines(stream) ? 0 : pb_arrivals_note(stream->arrivals, tile, err);
}

void pb_stream_trace_slots(const struct pb_stream *stream)
{
    struct wic_stats in, out;
    if (stream->in == NULL || !pb_trace_is_on())
        return;
    wic_stats_get(stream->in, &in);
    wic_stats_get(stream->out, &out);
    pb_trace_set(PB_TRACE_IN_SLOTS, in.published - in.consumed);
    pb_trace_set(PB_TRACE_OUT_SLOTS, out.published - out.consumed);
}

void pb_stream_thread_ended(struct pb_stream *stream, int rc, struct pb_err *err)
{
    bool over = rc == -EPIPE || rc == -ECANCELED;
    if (rc == 0 || (over && err->code == PB_OK))
        return;
    /* Without an abort the other threads would wait forever for a tile that never arrives. */
    (void)pb_fail(err, PB_E_SYSTEM, "the tiles cannot be handed on: %s", strerror(-rc));
    pb_stream_fail(stream, err);
}

const struct pb_exec_type *pb_exec_of(const struct pb_plan *plan)
{
    if (plan->engine.whole.used)
        return &pb_exec_whole;
#ifdef PB_HAVE_CUDA
    if (plan->engine.cuda)
        return plan->engine.resident.used ? &pb_exec_cuda : &pb_exec_stream;
#endif
    (void)plan;
    return &pb_exec_cpu;
}
