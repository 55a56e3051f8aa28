/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A reader thread: takes units of the visiting order, reads their tiles with halo into input slots,
 * through the cells that all readers share or, when tiles have nothing in common, straight from the
 * file. Each reader has a dataset of its own; GDAL's datasets are not to be shared. */
#include "pipeline/run/stream.h"

#include "config/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int read_tile(struct pb_stream *s, struct pb_raster *raster, uint32_t unit, uint32_t tile,
                     struct pb_err *err)
{
    const struct pb_plan *plan = s->plan;
    struct wic_slot slot;
    int rc = wic_acquire(s->in, WIC_FOREVER, &slot);
    if (rc < 0)
        return rc;
    uint64_t start = pb_clock_mono_ns();
    struct pb_slot_tile *t = slot.user;
    *t = pb_stream_tile(plan, tile, unit);
    const struct pb_tile_place *place = &t->place;
    const struct pb_pixels to = {
        .data = slot.data,
        .row_bytes = place->row_bytes,
        .plane_bytes = place->plane_bytes,
        .mask = place->mask_offset ? (uint8_t *)slot.data + place->mask_offset : NULL,
        .mask_row_bytes = place->mask_row_bytes};
    size_t bytes = pb_plan_layout(plan, &place->read).bytes;
    uint64_t parked = 0;
    if (s->cache != NULL)
        rc = pb_block_cache_read(s->cache, raster, &place->read, &to, &parked, err);
    else
        rc = pb_raster_read(raster, &place->read, plan->bands, plan->n_bands, &to, err);
    atomic_fetch_add(&s->read.busy_ns, pb_clock_mono_ns() - start - parked);
    atomic_fetch_add(&s->read.parked_ns, parked);
    if (rc < 0)
        return rc;
    atomic_fetch_add(&s->read.tiles, 1);
    atomic_fetch_add(&s->read.bytes, bytes);
    return wic_publish(s->in, &slot, bytes);
}

static int read_units(struct pb_stream *s, struct pb_raster *raster, struct pb_err *err)
{
    uint32_t *tiles = calloc(pb_order_unit_max(&s->plan->grid, s->plan->order), sizeof *tiles);
    if (tiles == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for a reader");
    uint32_t unit = 0;
    uint64_t parked = 0;
    int rc;
    while ((rc = pb_in_flight_take(s->in_flight, &unit, &parked)) == 0) {
        uint32_t n = pb_order_unit(&s->plan->grid, s->plan->order, unit, tiles);
        for (uint32_t i = 0; i < n && rc == 0; i++)
            rc = read_tile(s, raster, unit, tiles[i], err);
        if (rc < 0)
            break;
    }
    free(tiles);
    atomic_fetch_add(&s->read.parked_ns, parked);
    return rc;
}

void pb_reader_run(struct pb_stream *stream)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    int rc = pb_raster_open_again(stream->raster, stream->limits, &err, &raster);
    if (rc == 0)
        rc = read_units(stream, raster, &err);
    pb_raster_close(raster);
    bool over = rc == -EPIPE || rc == -ECANCELED; /* all units are taken, or somebody gave up */
    if (rc == 0 || (over && err.code == PB_OK))
        return;
    /* A tile that is never published would leave its unit unfinished for ever. */
    (void)pb_fail(&err, PB_E_SYSTEM, "the channels between the stages failed: %s", strerror(-rc));
    pb_stream_fail(stream, &err);
}
