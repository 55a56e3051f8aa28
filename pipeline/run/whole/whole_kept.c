/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/whole/whole_kept.h"
#include "pipeline/run/whole/whole_inside.h"

#include "pipeline/plan/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- content of the store -------------------------------------------------------------------- */

static bool is_within(const struct pb_rect *inner, const struct pb_rect *outer)
{
    return inner->x >= outer->x && inner->y >= outer->y &&
           inner->x + inner->w <= outer->x + outer->w && inner->y + inner->h <= outer->y + outer->h;
}

static struct pb_rect around(const struct pb_rect *a, const struct pb_rect *b)
{
    if (a->w <= 0 || a->h <= 0)
        return *b;
    const int32_t x = a->x < b->x ? a->x : b->x, y = a->y < b->y ? a->y : b->y;
    const int32_t right = a->x + a->w > b->x + b->w ? a->x + a->w : b->x + b->w;
    const int32_t end = a->y + a->h > b->y + b->h ? a->y + a->h : b->y + b->h;
    return (struct pb_rect){x, y, right - x, end - y};
}

/* Pixels of a window that tiles of the plan read. */
static struct pb_rect read_of(const struct pb_plan *plan, uint32_t window)
{
    struct pb_rect all = {.x = 0};
    const uint32_t n = pb_grid_count(&plan->layout.grid);
    for (uint32_t t = 0; t < n; t++) {
        const struct pb_tile tile = pb_plan_tile(plan, t, t);
        const struct pb_rect *read = &tile.read[window];
        if (read->w > 0 && read->h > 0)
            all = around(&all, read);
        if (plan->layout.gate.chain == NULL)
            continue;
        const struct pb_tile gate = pb_plan_gate_tile(plan, &tile);
        if (gate.read[window].w > 0 && gate.read[window].h > 0)
            all = around(&all, &gate.read[window]);
    }
    return all;
}

/* Pixels that a source's pieces of a kind cover; empty if they have gaps. */
static struct pb_rect covered(const struct pb_whole_map *map, uint32_t source, bool masks,
                              uint32_t planes)
{
    struct pb_rect all = {.x = 0};
    uint64_t px = 0;
    for (uint32_t i = 0; i < map->n_pieces; i++) {
        const struct pb_whole_piece *piece = &map->piece[i];
        if (piece->source != source || piece->is_mask != masks || piece->rect.h <= 0)
            continue;
        all = around(&all, &piece->rect);
        px += (uint64_t)piece->rect.w * (uint64_t)piece->rect.h;
    }
    return px == planes * (uint64_t)all.w * (uint64_t)all.h ? all : (struct pb_rect){.x = 0};
}

/* --- planes that a pass can use --------------------------------------------------------------- */

/* Plane of a band; -1: not in the store. */
static int32_t plane_of(const struct pb_whole_kept_source *kept, int32_t band)
{
    for (size_t k = 0; k < kept->n_bands; k++)
        if (kept->bands[k] == band)
            return (int32_t)(kept->plane + k);
    return -1;
}

static bool has_source(const struct pb_whole_kept *kept, const struct pb_plan *plan, size_t i)
{
    const struct pb_plan_source *want = &plan->work.source[i];
    const struct pb_whole_kept_source *have = &kept->source[i];
    const struct pb_rect read = read_of(plan, want->window);
    bool all = want->window == have->window && want->type == have->type &&
               is_within(&read, &have->rect) &&
               (!want->has_mask || (have->has_mask && is_within(&read, &have->mask_rect)));
    for (size_t k = 0; k < want->n_bands && all; k++)
        all = plane_of(have, want->bands[k]) >= 0;
    return all;
}

/* Plane of the store that is plane 0 of the source's window, if the source's bands follow
 * each other in the pass's order; else -1. */
static int32_t base_of(const struct pb_whole_kept *kept, const struct pb_plan *plan, size_t i)
{
    const struct pb_plan_source *want = &plan->work.source[i];
    const int32_t first = plane_of(&kept->source[i], want->bands[0]);
    for (size_t k = 1; k < want->n_bands; k++)
        if (plane_of(&kept->source[i], want->bands[k]) != first + (int32_t)k)
            return -1;
    return first - (int32_t)want->plane;
}

/* Sources that share a window need one base. */
static bool is_in_place(const struct pb_whole_kept *kept, const struct pb_plan *plan)
{
    int32_t base[PB_SOURCES_MAX];
    bool known[PB_SOURCES_MAX] = {false}, good = true;
    for (size_t i = 0; i < plan->work.n_sources && good; i++) {
        const uint32_t w = plan->work.source[i].window;
        if (plan->work.source[i].n_bands == 0)
            continue;
        const int32_t own = base_of(kept, plan, i);
        good = own >= 0 && (!known[w] || base[w] == own) &&
               (plan->work.source[i].has_mask == (kept->window[w].mask_row_bytes > 0));
        known[w] = true;
        base[w] = own;
    }
    return good;
}

static uint64_t plane_bytes(const struct pb_whole_window *window, const struct pb_plan_source *of)
{
    const uint64_t rows = window->row_bytes > 0 ? window->plane_bytes / window->row_bytes : 0;
    return of->n_bands * window->plane_bytes + (of->has_mask ? rows * window->mask_row_bytes : 0);
}

static struct pb_whole_held find(const struct pb_whole_kept *kept, const struct pb_plan *plan)
{
    struct pb_whole_held held = {.in_place = false};
    bool all = true;
    if (kept == NULL || kept->bytes == 0)
        return held;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_plan_source *source = &plan->work.source[i];
        if (source->n_bands == 0)
            continue;
        held.source[i] = has_source(kept, plan, i);
        all = all && held.source[i];
        if (held.source[i])
            held.bytes += plane_bytes(&kept->window[source->window], source);
    }
    held.in_place = all && held.bytes > 0 && is_in_place(kept, plan);
    return held;
}

/* Returns true if the planes that the pass takes have the shape of its own. */
static bool is_alike(const struct pb_whole_kept *kept, const struct pb_whole_map *map,
                     const struct pb_whole_held *held)
{
    for (size_t i = 0; i < map->plan->work.n_sources; i++) {
        const struct pb_plan_source *source = &map->plan->work.source[i];
        const struct pb_whole_window *own = &map->window[source->window],
                                     *its = &kept->window[source->window];
        if (held->source[i] && (own->image_w != its->image_w || own->image_h != its->image_h ||
                                own->row_bytes != its->row_bytes ||
                                (source->has_mask && own->mask_row_bytes != its->mask_row_bytes)))
            return false;
    }
    return true;
}

/* Makes all of the pass's windows those of the store. */
static void use(const struct pb_whole_kept *kept, struct pb_whole_map *map)
{
    const struct pb_plan *plan = map->plan;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const uint32_t w = plan->work.source[i].window;
        if (plan->work.source[i].n_bands == 0)
            continue;
        map->window[w] = kept->window[w];
        map->window[w].at += (uint64_t)base_of(kept, plan, i) * kept->window[w].plane_bytes;
        map->band[0].y[w] = kept->y[w];
    }
    map->pixel_bytes = 0;
}

int pb_whole_kept_map(struct pb_exec_whole *e, const struct pb_raw_blocks *blocks, uint64_t budget,
                      struct pb_err *err)
{
    const struct pb_plan *plan = e->stream->plan;
    struct pb_whole_kept *kept = e->stream->kept;
    const uint64_t kept_bytes = kept != NULL ? kept->bytes : 0;
    struct pb_err own = {0};
    int rc = -ENOENT;
    e->taken = plan->engine.whole.managed ? (struct pb_whole_held){.bytes = 0} : find(kept, plan);
    if (e->taken.bytes > 0 && kept_bytes <= budget)
        rc = pb_whole_map_init(&e->map, plan, blocks, plan->layout.in_slot_bytes,
                               e->taken.in_place ? budget : budget - kept_bytes, e->taken.source,
                               &own);
    if (rc == 0 && e->map.n_bands == 1 && is_alike(kept, &e->map, &e->taken)) {
        if (e->taken.in_place)
            use(kept, &e->map);
        return 0;
    }
    e->taken = (struct pb_whole_held){.bytes = 0};
    pb_whole_map_fini(&e->map);
    pb_whole_kept_drop(kept);
    return pb_whole_map_init(&e->map, plan, blocks, plan->layout.in_slot_bytes, budget, NULL, err);
}

/* --- copies ----------------------------------------------------------------------------------- */

/* Copies the rows that both have, of a plane or mask. from, to: address of the first row of each.
 */
static int copy_rows(struct pb_exec_whole *e, uint32_t w, unsigned char *to,
                     const unsigned char *from, uint64_t row_bytes, const struct pb_rect *rect,
                     struct pb_err *err)
{
    const struct pb_whole_band *band = &e->map.band[0];
    const int32_t own = band->y[w], kept = e->stream->kept->y[w];
    const int32_t first = rect->y > own ? rect->y : own;
    const int32_t end = rect->y + rect->h < own + band->h[w] ? rect->y + rect->h : own + band->h[w];
    if (end <= first)
        return 0;
    return e->ops->copy(e->device, QUEUE_SHARE, to + (uint64_t)(first - own) * row_bytes,
                        from + (uint64_t)(first - kept) * row_bytes,
                        (size_t)((uint64_t)(end - first) * row_bytes), err);
}

static int copy_source(struct pb_exec_whole *e, size_t i, struct pb_err *err)
{
    const struct pb_whole_kept *kept = e->stream->kept;
    const struct pb_plan_source *source = &e->map.plan->work.source[i];
    const uint32_t w = source->window;
    const struct pb_whole_window *to = &e->map.window[w], *from = &kept->window[w];
    int rc = 0;
    for (size_t k = 0; k < source->n_bands && rc == 0; k++) {
        const uint64_t plane = (uint64_t)plane_of(&kept->source[i], source->bands[k]);
        rc = copy_rows(e, w, e->room[0].pixels + to->at + (source->plane + k) * to->plane_bytes,
                       kept->pixels + from->at + plane * from->plane_bytes, to->row_bytes,
                       &kept->source[i].rect, err);
    }
    if (rc == 0 && source->has_mask)
        rc = copy_rows(e, w, e->room[0].pixels + to->mask_at, kept->pixels + from->mask_at,
                       to->mask_row_bytes, &kept->source[i].mask_rect, err);
    return rc;
}

int pb_whole_kept_copy(struct pb_exec_whole *e, struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < e->map.plan->work.n_sources && rc == 0; i++)
        if (e->taken.source[i] && !e->taken.in_place)
            rc = copy_source(e, i, err);
    return rc;
}

/* --- keeping ---------------------------------------------------------------------------------- */

/* Rows of a rectangle of the store that were copied. */
static struct pb_rect rows_of_band(const struct pb_exec_whole *e, uint32_t w, struct pb_rect rect)
{
    const struct pb_whole_band *band = &e->map.band[0];
    const int32_t first = rect.y > band->y[w] ? rect.y : band->y[w];
    const int32_t end =
        rect.y + rect.h < band->y[w] + band->h[w] ? rect.y + rect.h : band->y[w] + band->h[w];
    rect.y = first;
    rect.h = end > first ? end - first : 0;
    return rect;
}

/* Records a source that the pass has read, or used from the store. */
static void note_source(struct pb_whole_kept_source *to, const struct pb_exec_whole *e, uint32_t i,
                        const struct pb_whole_kept *before)
{
    const struct pb_plan_source *source = &e->map.plan->work.source[i];
    const bool planar = e->source[i].blocks.layout->planar;
    bool apart = false;
    memcpy(to->bands, source->bands, sizeof to->bands);
    to->n_bands = source->n_bands;
    to->plane = source->plane;
    to->type = source->type;
    to->window = source->window;
    to->has_mask = source->has_mask;
    for (uint32_t k = 0; k < e->map.n_pieces; k++)
        apart = apart || (e->map.piece[k].source == i && e->map.piece[k].is_mask);
    if (e->taken.source[i]) {
        to->rect = rows_of_band(e, source->window, before->source[i].rect);
        to->mask_rect = rows_of_band(e, source->window, before->source[i].mask_rect);
        return;
    }
    to->rect = covered(&e->map, i, false, planar ? (uint32_t)source->n_bands : 1);
    to->mask_rect = apart ? covered(&e->map, i, true, 1) : to->rect;
}

void pb_whole_kept_put(struct pb_whole_kept *kept, struct pb_exec_whole *e)
{
    struct pb_whole_kept now = {.ops = e->ops,
                                .device_index = e->map.plan->engine.device_index,
                                .pixels = e->room[0].pixels,
                                .bytes = e->map.pixel_bytes};
    if (e->taken.in_place || e->map.n_bands != 1 || now.bytes == 0)
        return;
    /* Another process can end its channel early: then pixels are not decoded or copied. */
    if (e->ops != NULL &&
        (e->dispatch.decoded_groups < e->map.n_groups || e->dispatch.shared_bands < e->map.n_bands))
        return;
    memcpy(now.window, e->map.window, sizeof now.window);
    memcpy(now.y, e->map.band[0].y, sizeof now.y);
    for (uint32_t i = 0; i < e->map.plan->work.n_sources; i++)
        if (e->map.plan->work.source[i].n_bands > 0)
            note_source(&now.source[i], e, i, kept);
    if (e->ops != NULL)
        e->ops->keep(e->device, now.pixels);
    pb_whole_kept_drop(kept);
    *kept = now;
}

struct pb_whole_kept *pb_whole_kept_create(void)
{
    return calloc(1, sizeof(struct pb_whole_kept));
}

void pb_whole_kept_destroy(struct pb_whole_kept *kept)
{
    pb_whole_kept_drop(kept);
    free(kept);
}

void pb_whole_kept_drop(struct pb_whole_kept *kept)
{
    if (kept == NULL)
        return;
    if (kept->pixels != NULL)
        kept->ops->drop(kept->device_index, kept->pixels, kept->bytes);
    *kept = (struct pb_whole_kept){.bytes = 0};
}

bool pb_whole_kept_is_empty(const struct pb_whole_kept *kept)
{
    return kept == NULL || kept->bytes == 0;
}
