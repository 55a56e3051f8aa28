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

/* The datasets of one reader; NULL where nothing is read. */
struct rasters {
    struct pb_raster *source[PB_SOURCES_MAX];
};

static int read_window(struct pb_stream *s, struct rasters *rasters, size_t source,
                       const struct pb_window *window, uint64_t *parked, struct pb_err *err)
{
    const struct pb_plan_source *plan = &s->plan->source[source];
    if (window->rect.w == 0)
        return 0;
    if (s->cache[source] != NULL)
        return pb_block_cache_read(s->cache[source], rasters->source[source], window, parked, err);
    return pb_raster_read(rasters->source[source], plan->bands, plan->n_bands, window, err);
}

static int read_tile(struct pb_stream *s, struct rasters *rasters, uint32_t unit, uint32_t tile,
                     struct pb_err *err)
{
    const struct pb_plan *plan = s->plan;
    struct wic_slot slot;
    int rc = wic_acquire(s->in, WIC_FOREVER, &slot);
    if (rc < 0)
        return rc;
    uint64_t start = pb_clock_mono_ns(), parked = 0;
    struct pb_tile *t = slot.user;
    struct pb_tile_in in;
    *t = pb_plan_tile(plan, tile, unit);
    pb_slot_tile(&plan->format, t, slot.data, &in);
    size_t bytes = pb_slot_tile_bytes(&plan->format, t);
    for (size_t i = 0; i < plan->n_sources && rc == 0; i++)
        rc = read_window(s, rasters, i, &in.window[i], &parked, err);
    atomic_fetch_add(&s->read.busy_ns, pb_clock_mono_ns() - start - parked);
    atomic_fetch_add(&s->read.parked_ns, parked);
    if (rc < 0)
        return rc;
    atomic_fetch_add(&s->read.tiles, 1);
    atomic_fetch_add(&s->read.bytes, bytes);
    return wic_publish(s->in, &slot, bytes);
}

static int read_units(struct pb_stream *s, struct rasters *rasters, struct pb_err *err)
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
            rc = read_tile(s, rasters, unit, tiles[i], err);
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
    struct rasters rasters = {0};
    int rc = 0;
    for (size_t i = 0; i < stream->plan->n_sources && rc == 0; i++)
        if (stream->raster[i] != NULL && stream->plan->source[i].n_bands > 0)
            rc = pb_raster_open_again(stream->raster[i], stream->limits, &err, &rasters.source[i]);
    if (rc == 0)
        rc = read_units(stream, &rasters, &err);
    for (size_t i = 0; i < PB_SOURCES_MAX; i++)
        pb_raster_close(rasters.source[i]);
    bool over = rc == -EPIPE || rc == -ECANCELED; /* all units are taken, or the run was aborted */
    if (rc == 0 || (over && err.code == PB_OK))
        return;
    /* A tile that is never published would leave its unit unfinished for ever. */
    (void)pb_fail(&err, PB_E_SYSTEM, "the channels between the stages failed: %s", strerror(-rc));
    pb_stream_fail(stream, &err);
}
