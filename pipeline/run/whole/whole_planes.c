/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Managed planes of the executor: the parts of them that are on the device while groups are decoded
 * into them, and while tiles and gates read them (whole_pages.h). Nothing here does anything if
 * planes are device memory. The ranges of a hold are found again for its release. */
#include "pipeline/run/whole/whole_inside.h"
#include "pipeline/run/whole/whole_lots.h"

#include "config/base/clock.h"

#include <errno.h>
#include <stdlib.h>

static bool is_managed(const struct pb_exec_whole *e)
{
    return e->planes.pages != NULL;
}

/* --- making ---------------------------------------------------------------------------------- */

/* Notes the planes that each tile reads. */
static int note_tiles(struct pb_exec_whole *e, struct pb_err *err)
{
    struct pb_whole_range range[PB_WHOLE_RANGES];
    int rc = 0;
    for (uint32_t t = 0; t < e->map.n_tiles && rc == 0; t++) {
        const struct pb_tile tile = pb_plan_tile(e->map.plan, t, t);
        struct pb_whole_ranges ranges = {range, 0};
        pb_whole_tile_ranges(&e->map, &tile, &ranges);
        rc = pb_whole_pages_note(e->planes.pages, t, &ranges, err);
    }
    return rc;
}

static int make_pages(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan_pages *sizes = &e->map.pages;
    const struct pb_whole_pages_options options = {
        .ops = e->ops,
        .device = e->device,
        .planes = e->room[0].pixels,
        .bytes = e->map.pixel_bytes,
        .chunk_bytes = sizes->chunk_bytes,
        .most = {[PB_WHOLE_DECODING] = sizes->decoding, [PB_WHOLE_COMPUTING] = sizes->computing},
        .in = QUEUE_PLANES_IN,
        .out = QUEUE_PLANES_OUT,
        .first_event = whole_event(e, EVENT_PLANES, 0),
        .visits = e->map.n_tiles,
        .repeats = e->map.plan->layout.sums.chain.n > 0};
    return pb_whole_pages_create(&options, err, &e->planes.pages);
}

int whole_planes_open(struct pb_exec_whole *e, struct pb_err *err)
{
    uint32_t most = 0;
    if (!e->map.plan->engine.whole.managed)
        return 0;
    for (uint32_t g = 0; g < e->map.n_groups; g++) {
        const struct pb_whole_group *group = &e->map.group[g];
        most = group->end - group->first > most ? group->end - group->first : most;
    }
    e->planes.of_feeder = calloc(2 * (size_t)most + 1, sizeof *e->planes.of_feeder);
    e->planes.of_dispatcher = calloc(2 * (size_t)most + 1, sizeof *e->planes.of_dispatcher);
    if (e->planes.of_feeder == NULL || e->planes.of_dispatcher == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    void *memory = NULL;
    int rc = e->ops->managed(e->device, e->map.pixel_bytes, err, &memory);
    e->room[0].pixels = e->room[1].pixels = memory;
    rc = rc ? rc : make_pages(e, err);
    return rc ? rc : note_tiles(e, err);
}

void whole_planes_close(struct pb_exec_whole *e)
{
    pb_whole_pages_destroy(e->planes.pages);
    free(e->planes.of_feeder);
    free(e->planes.of_dispatcher);
}

void whole_planes_report(const struct pb_exec_whole *e, struct pb_device_report *out)
{
    if (!is_managed(e))
        return;
    const struct pb_whole_pages_report report = pb_whole_pages_report(e->planes.pages);
    out->managed_bytes = e->map.pixel_bytes;
    out->managed_most_bytes = report.most_bytes;
    out->managed_in_bytes = report.to_device_bytes;
    out->managed_out_bytes = report.to_host_bytes;
}

/* --- groups ---------------------------------------------------------------------------------- */

/* Lists the planes into which the group's pieces are decoded, without those that are left out. */
static struct pb_whole_ranges ranges_of_group(const struct pb_exec_whole *e, uint32_t number,
                                              struct pb_whole_range *at)
{
    const struct pb_whole_group *group = &e->map.group[number];
    struct pb_whole_ranges ranges = {at, 0};
    for (uint32_t i = group->first; i < group->end; i++)
        if (e->tables.block[i].h > 0)
            pb_whole_piece_ranges(&e->map, &e->map.piece[i], &ranges);
    return ranges;
}

int whole_planes_hold_group(struct pb_exec_whole *e, uint32_t number, uint32_t queue,
                            struct pb_err *err)
{
    if (!is_managed(e))
        return 0;
    const struct pb_whole_ranges ranges = ranges_of_group(e, number, e->planes.of_feeder);
    const uint64_t since = pb_clock_mono_ns();
    int rc = pb_whole_pages_hold(e->planes.pages, PB_WHOLE_DECODING, &ranges, queue, true, err);
    whole_waited(e, PB_DEVICE_WAIT_FEED_BAND, since);
    return rc;
}

int whole_planes_release_group(struct pb_exec_whole *e, uint32_t number)
{
    const struct pb_whole_group *group = &e->map.group[number];
    struct wic_slot slot;
    if (!is_managed(e))
        return 0;
    const struct pb_whole_ranges ranges = ranges_of_group(e, number, e->planes.of_dispatcher);
    pb_whole_pages_release(e->planes.pages, PB_WHOLE_DECODING, &ranges);
    if (number + 1 < e->map.lot[group->lot].end_group || group->lot + 2 >= e->map.n_lots)
        return 0;
    int rc = wic_acquire(e->link[WHOLE_LOTS], WIC_FOREVER, &slot);
    return rc ? rc : wic_publish(e->link[WHOLE_LOTS], &slot, 0);
}

/* --- tiles ----------------------------------------------------------------------------------- */

/* Moves the planes of the tile below to the device, if they are ready. */
static int look_ahead(struct pb_exec_whole *e, uint32_t number, struct pb_err *err)
{
    struct pb_whole_range range[PB_WHOLE_RANGES];
    struct pb_whole_ranges ranges = {range, 0};
    const uint32_t n = e->map.n_tiles;
    const uint64_t visit = (uint64_t)number + (uint32_t)e->map.plan->layout.grid.cols;
    if (visit >= n && e->dispatch.head == NULL)
        return 0;
    const struct pb_tile tile =
        pb_plan_tile(e->map.plan, (uint32_t)(visit % n), (uint32_t)(visit % n));
    pb_whole_tile_ranges(&e->map, &tile, &ranges);
    return pb_whole_pages_ahead(e->planes.pages, visit, &ranges, err);
}

int whole_planes_hold_tile(struct pb_exec_whole *e, const struct pb_tile *tile, uint32_t queue,
                           struct pb_err *err)
{
    struct pb_whole_range range[PB_WHOLE_RANGES];
    struct pb_whole_ranges ranges = {range, 0};
    if (!is_managed(e))
        return 0;
    const uint64_t since = pb_clock_mono_ns();
    pb_whole_tile_ranges(&e->map, tile, &ranges);
    int rc = pb_whole_pages_hold(e->planes.pages, PB_WHOLE_COMPUTING, &ranges, queue, true, err);
    whole_waited(e, PB_DEVICE_WAIT_DISPATCH_SLOT, since);
    if (rc < 0)
        return rc;
    pb_whole_pages_visit(e->planes.pages, tile->number);
    return look_ahead(e, tile->number, err);
}

void whole_planes_release_tile(struct pb_exec_whole *e, uint32_t number)
{
    struct pb_whole_range range[PB_WHOLE_RANGES];
    struct pb_whole_ranges ranges = {range, 0};
    if (!is_managed(e))
        return;
    const struct pb_tile tile = pb_plan_tile(e->map.plan, number, number);
    pb_whole_tile_ranges(&e->map, &tile, &ranges);
    pb_whole_pages_release(e->planes.pages, PB_WHOLE_COMPUTING, &ranges);
    pb_whole_pages_leave(e->planes.pages);
}

void whole_planes_starve(struct pb_exec_whole *e, bool is_starved)
{
    if (is_managed(e))
        pb_whole_pages_starve(e->planes.pages, is_starved);
}

int whole_planes_hold_gate(struct pb_exec_whole *e, const struct pb_tile *first, bool wait,
                           struct pb_err *err)
{
    struct pb_whole_range range[PB_WHOLE_RANGES];
    struct pb_whole_ranges ranges = {range, 0};
    if (!is_managed(e))
        return 0;
    pb_whole_gate_ranges(&e->map, first, &ranges);
    return pb_whole_pages_hold(e->planes.pages, PB_WHOLE_COMPUTING, &ranges, QUEUE_GATE, wait, err);
}

void whole_planes_release_gate(struct pb_exec_whole *e, const struct pb_tile *first)
{
    struct pb_whole_range range[PB_WHOLE_RANGES];
    struct pb_whole_ranges ranges = {range, 0};
    if (!is_managed(e))
        return;
    pb_whole_gate_ranges(&e->map, first, &ranges);
    pb_whole_pages_release(e->planes.pages, PB_WHOLE_COMPUTING, &ranges);
}
