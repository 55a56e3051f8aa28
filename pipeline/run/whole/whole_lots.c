/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Rows of planes are as wide as the image, therefore the rows of a tile are one range of bytes in
 * each plane. A group takes at most half of what decoding may have: the next one is queued while it
 * is decoded. */
#include "pipeline/run/whole/whole_lots.h"
#include "pipeline/plan/layout.h"

#include <stdlib.h>
#include <string.h>

/* --- ranges ---------------------------------------------------------------------------------- */

/* Appends rows of n planes; not if they are those of the last range. */
static void append(struct pb_whole_ranges *out, const struct pb_whole_range *more)
{
    for (uint32_t back = 1; back <= 2 && back <= out->n; back++)
        if (memcmp(&out->range[out->n - back], more, sizeof *more) == 0)
            return;
    if (more->bytes > 0 && more->n > 0)
        out->range[out->n++] = *more;
}

/* Appends the rows of a rectangle in planes of a window. range: address of the first plane, bytes
 * of a row, distance and count of the planes. */
static void append_rows(const struct pb_whole_map *map, uint32_t w, const struct pb_rect *rect,
                        struct pb_whole_range *range, struct pb_whole_ranges *out)
{
    const int32_t y = rect->y - map->band[0].y[w], above = y < 0 ? -y : 0;
    if (rect->w <= 0 || rect->h <= above)
        return;
    range->at += (uint64_t)(y + above) * range->bytes;
    range->bytes *= (uint64_t)(rect->h - above);
    append(out, range);
}

/* Appends the rows of a rectangle in the planes first .. first + n of a window. */
static void append_planes(const struct pb_whole_map *map, uint32_t w, const struct pb_rect *rect,
                          size_t first, size_t n, struct pb_whole_ranges *out)
{
    const struct pb_whole_window *window = &map->window[w];
    struct pb_whole_range range;
    memset(&range, 0, sizeof range);
    range.at = window->at + first * window->plane_bytes;
    range.bytes = window->row_bytes;
    range.step = window->plane_bytes;
    range.n = (uint32_t)n;
    append_rows(map, w, rect, &range, out);
}

/* Appends the rows of a rectangle in the mask of a window; nothing without a mask. */
static void append_mask(const struct pb_whole_map *map, uint32_t w, const struct pb_rect *rect,
                        struct pb_whole_ranges *out)
{
    const struct pb_whole_window *window = &map->window[w];
    struct pb_whole_range range;
    memset(&range, 0, sizeof range);
    range.at = window->mask_at;
    range.bytes = window->mask_row_bytes;
    range.n = 1;
    append_rows(map, w, rect, &range, out);
}

void pb_whole_piece_ranges(const struct pb_whole_map *map, const struct pb_whole_piece *piece,
                           struct pb_whole_ranges *out)
{
    const struct pb_plan_source *source = &map->plan->work.source[piece->source];
    size_t plane = source->plane, n = source->n_bands;
    for (size_t k = 0; k < source->n_bands && map->is_planar[piece->source]; k++)
        if ((uint32_t)source->bands[k] == piece->plane + 1) {
            plane = source->plane + k;
            n = 1;
        }
    if (!piece->is_mask)
        append_planes(map, source->window, &piece->rect, plane, n, out);
    if (source->has_mask)
        append_mask(map, source->window, &piece->rect, out);
}

void pb_whole_tile_ranges(const struct pb_whole_map *map, const struct pb_tile *tile,
                          struct pb_whole_ranges *out)
{
    const struct pb_slot_format *format = &map->plan->layout.format;
    for (uint32_t w = 0; w < PB_SOURCES_MAX; w++) {
        if (!pb_slot_is_read(&format->source[w], &tile->read[w]))
            continue;
        append_planes(map, w, &tile->read[w], 0, format->source[w].n_planes, out);
        append_mask(map, w, &tile->read[w], out);
    }
}

void pb_whole_gate_ranges(const struct pb_whole_map *map, const struct pb_tile *first,
                          struct pb_whole_ranges *out)
{
    const struct pb_plan *plan = map->plan;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_plan_source *source = &plan->work.source[i];
        const struct pb_plan_bands bands = pb_plan_bands_of(source, PB_PLAN_FIRST);
        if (bands.n == 0)
            continue;
        append_planes(map, source->window, &first->read[source->window],
                      source->plane + bands.first, bands.n, out);
        if (bands.has_mask)
            append_mask(map, source->window, &first->read[source->window], out);
    }
}

/* --- groups ---------------------------------------------------------------------------------- */

static uint64_t aligned(uint64_t n)
{
    return (n + PB_WHOLE_ALIGN - 1) / PB_WHOLE_ALIGN * PB_WHOLE_ALIGN;
}

int pb_whole_counted_init(struct pb_whole_counted *counted, const struct pb_whole_map *map,
                          struct pb_err *err)
{
    *counted = (struct pb_whole_counted){.stamp = NULL};
    if (!map->plan->engine.whole.managed)
        return 0;
    counted->stamp = calloc(map->pixel_bytes / map->pages.chunk_bytes + 2, sizeof *counted->stamp);
    return counted->stamp != NULL
               ? 0
               : pb_fail(err, PB_E_MEMORY, "out of memory for the order of a scene's blocks");
}

void pb_whole_counted_fini(struct pb_whole_counted *counted)
{
    free(counted->stamp);
}

/* Counts the chunks of a piece that the group has not had before. */
static uint32_t count(const struct pb_whole_map *map, struct pb_whole_counted *counted,
                      const struct pb_whole_piece *piece)
{
    struct pb_whole_range range[2];
    struct pb_whole_ranges ranges = {range, 0};
    uint32_t n = 0;
    pb_whole_piece_ranges(map, piece, &ranges);
    for (uint32_t i = 0; i < ranges.n; i++)
        for (uint32_t k = 0; k < range[i].n; k++) {
            const uint64_t at = range[i].at + k * range[i].step;
            for (uint64_t c = at / map->pages.chunk_bytes;
                 c <= (at + range[i].bytes - 1) / map->pages.chunk_bytes; c++) {
                n += counted->stamp[c] != counted->number;
                counted->stamp[c] = counted->number;
            }
        }
    return n;
}

static uint64_t bytes_of(const struct pb_whole_map *map, const struct pb_whole_piece *piece)
{
    const struct pb_raw_blocks *blocks = &map->blocks[piece->source];
    if (piece->bytes == 0)
        return 0;
    return aligned(piece->bytes) + (pb_whole_is_compressed(blocks, piece)
                                        ? aligned(pb_whole_layout(blocks, piece)->block_bytes)
                                        : 0);
}

uint64_t pb_whole_group_bytes(const struct pb_whole_map *map, uint32_t first, uint32_t end)
{
    uint64_t bytes = 0;
    for (uint32_t i = first; i < end; i++)
        bytes += bytes_of(map, &map->piece[i]);
    return bytes;
}

uint32_t pb_whole_group_end(const struct pb_whole_map *map, struct pb_whole_counted *counted,
                            uint32_t first, uint32_t end)
{
    uint64_t bytes = 0;
    uint32_t chunks = 0, i = first;
    if (!map->plan->engine.whole.managed)
        return end;
    for (counted->number++; i < end; i++) {
        bytes += bytes_of(map, &map->piece[i]);
        chunks += count(map, counted, &map->piece[i]);
        if (i > first && (bytes > map->pages.lot_bytes / 2 || chunks > map->pages.decoding / 2))
            break;
    }
    return i;
}
