/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/stream.h"

#include <time.h>

uint64_t pb_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void pb_stream_abort(struct pb_stream *stream)
{
    wic_abort(stream->in);
    wic_abort(stream->out);
    pb_window_abort(stream->window);
    pb_cells_abort(stream->cells);
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

struct pb_tile_in pb_stream_tile_in(const struct pb_plan *plan, const struct pb_slot_tile *tile,
                                    const void *base)
{
    const struct pb_slot_layout *layout = &tile->layout;
    return (struct pb_tile_in){
        .data = base,
        .row_bytes = layout->row_bytes,
        .plane_bytes = layout->plane_bytes,
        .mask = layout->mask_offset ? (const uint8_t *)base + layout->mask_offset : NULL,
        .mask_row_bytes = (size_t)tile->read.w,
        .read = tile->read,
        .core = tile->core,
        .image_w = plan->grid.image_w,
        .image_h = plan->grid.image_h,
    };
}

size_t pb_stream_tile_out(const struct pb_plan *plan, const struct pb_slot_tile *in,
                          struct pb_slot_tile *out)
{
    enum { ALIGN_PX = 64 };
    *out = *in;
    size_t px = (size_t)in->core.w * (size_t)in->core.h;
    out->plane_px = (px + ALIGN_PX - 1) / ALIGN_PX * ALIGN_PX;
    return out->plane_px * sizeof(float) * plan->n_outputs;
}
