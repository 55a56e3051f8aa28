/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream.h"

void pb_stream_abort(struct pb_stream *stream)
{
    wic_abort(stream->in);
    wic_abort(stream->out);
    pb_in_flight_abort(stream->in_flight);
    for (size_t i = 0; i < PB_SOURCES_MAX; i++)
        pb_block_cache_abort(stream->cache[i]);
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

const struct pb_exec_type *pb_exec_of(const struct pb_plan *plan)
{
#ifdef PB_HAVE_CUDA
    if (plan->cuda)
        return plan->resident.used ? &pb_exec_cuda : &pb_exec_stream;
#endif
    (void)plan;
    return &pb_exec_cpu;
}

struct pb_slot_tile pb_stream_tile(const struct pb_plan *plan, uint32_t tile, uint32_t unit)
{
    enum { ALIGN_PX = 64 };
    struct pb_rect core = pb_grid_core(&plan->grid, tile);
    struct pb_rect read = pb_plan_read(plan, 0, &core);
    struct pb_slot_layout layout = pb_plan_layout(plan, 0, &read);
    size_t px = (size_t)core.w * (size_t)core.h;
    return (struct pb_slot_tile){
        .place = {.read = read,
                  .core = core,
                  .row_bytes = layout.row_bytes,
                  .plane_bytes = layout.plane_bytes,
                  .mask_offset = layout.mask_offset,
                  .mask_row_bytes = layout.mask_row_bytes,
                  .out_px = (px + ALIGN_PX - 1) / ALIGN_PX * ALIGN_PX},
        .tile = tile,
        .unit = unit,
    };
}

struct pb_tile_in pb_stream_tile_in(const struct pb_plan *plan, const struct pb_slot_tile *tile,
                                    const void *base)
{
    struct pb_tile_in in = {
        .core = tile->place.core, .image_w = plan->grid.image_w, .image_h = plan->grid.image_h};
    const uint8_t *at = base;
    for (size_t i = 0; i < plan->n_sources; i++) {
        if (plan->source[i].n_bands == 0)
            continue;
        struct pb_rect read = pb_plan_read(plan, i, &in.core);
        struct pb_slot_layout layout = pb_plan_layout(plan, i, &read);
        in.window[i] =
            (struct pb_window){.data = at,
                               .row_bytes = layout.row_bytes,
                               .plane_bytes = layout.plane_bytes,
                               .mask = layout.mask_offset ? at + layout.mask_offset : NULL,
                               .mask_row_bytes = layout.mask_row_bytes,
                               .rect = read};
        at += layout.bytes;
    }
    return in;
}

size_t pb_stream_in_bytes(const struct pb_plan *plan, const struct pb_slot_tile *tile)
{
    size_t bytes = 0;
    for (size_t i = 0; i < plan->n_sources; i++) {
        struct pb_rect read = pb_plan_read(plan, i, &tile->place.core);
        bytes += plan->source[i].n_bands > 0 ? pb_plan_layout(plan, i, &read).bytes : 0;
    }
    return bytes;
}

size_t pb_stream_out_bytes(const struct pb_plan *plan, const struct pb_slot_tile *tile)
{
    return tile->place.out_px * sizeof(float) * plan->n_outputs;
}
