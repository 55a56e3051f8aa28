/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream.h"

void pb_stream_abort(struct pb_stream *stream)
{
    wic_abort(stream->in);
    wic_abort(stream->out);
    pb_in_flight_abort(stream->in_flight);
    pb_block_cache_abort(stream->cache);
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
    struct pb_rect read = pb_rect_grow(&core, plan->halo, plan->grid.image_w, plan->grid.image_h);
    struct pb_slot_layout layout = pb_plan_layout(plan, &read);
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
    const struct pb_tile_place *place = &tile->place;
    return (struct pb_tile_in){
        .window[0].data = base,
        .window[0].row_bytes = place->row_bytes,
        .window[0].plane_bytes = place->plane_bytes,
        .window[0].mask = place->mask_offset ? (const uint8_t *)base + place->mask_offset : NULL,
        .window[0].mask_row_bytes = place->mask_row_bytes,
        .window[0].rect = place->read,
        .core = place->core,
        .image_w = plan->grid.image_w,
        .image_h = plan->grid.image_h,
    };
}

size_t pb_stream_out_bytes(const struct pb_plan *plan, const struct pb_slot_tile *tile)
{
    return tile->place.out_px * sizeof(float) * plan->n_outputs;
}
