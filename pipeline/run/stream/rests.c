/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/rests.h"

#include "config/base/clock.h"
#include "kernels/nodata.h"
#include "pipeline/codec/rest.h"
#include "pipeline/device/mem.h"
#include "pipeline/plan/values.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct place {
    bool used;
    uint32_t number; /* number of its tile */
};

struct pb_rests {
    const struct pb_plan *plan;
    pthread_mutex_t lock; /* protects place, stopped */
    pthread_cond_t freed;
    bool stopped;
    uint32_t n;
    struct place *place;
    void *memory;
    size_t bytes, each_px;
    _Atomic uint64_t *counted; /* indexed by band of plan->wide */
};

int pb_rests_create(const struct pb_plan *plan, struct pb_err *err, struct pb_rests **out_rests)
{
    struct pb_rests *r = calloc(1, sizeof *r);
    if (r == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the digits of bands");
    r->plan = plan;
    r->n = pb_plan_rest_slots(plan);
    r->each_px = pb_plan_rest_px(plan);
    r->bytes = pb_plan_rest_bytes(plan);
    r->place = calloc(r->n + 1, sizeof *r->place);
    r->counted = calloc(plan->work.n_wide + 1, sizeof *r->counted);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->freed, NULL);
    int rc = r->place == NULL || r->counted == NULL
                 ? pb_fail(err, PB_E_MEMORY, "out of memory for the digits of bands")
             : r->bytes > 0 ? pb_mem_alloc(PB_MEM_HOST, r->bytes, err, &r->memory)
                            : 0;
    if (rc < 0) {
        pb_rests_destroy(r);
        return rc;
    }
    *out_rests = r;
    return 0;
}

void pb_rests_destroy(struct pb_rests *r)
{
    if (r == NULL)
        return;
    if (r->memory != NULL)
        pb_mem_free(PB_MEM_HOST, r->memory, r->bytes);
    pthread_cond_destroy(&r->freed);
    pthread_mutex_destroy(&r->lock);
    free(r->place);
    free(r->counted);
    free(r);
}

/* Call it with the lock held. */
static struct place *place_of(struct pb_rests *r, bool used, uint32_t number)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->place[i].used == used && (!used || r->place[i].number == number))
            return &r->place[i];
    return NULL;
}

int pb_rests_take(struct pb_rests *r, const struct pb_tile *tile, uint64_t *parked_ns)
{
    struct place *place = NULL;
    if (r->n == 0)
        return 0;
    uint64_t start = pb_clock_mono_ns();
    pthread_mutex_lock(&r->lock);
    while (!r->stopped && (place = place_of(r, false, 0)) == NULL)
        pthread_cond_wait(&r->freed, &r->lock);
    if (!r->stopped)
        *place = (struct place){.used = true, .number = tile->number};
    bool stopped = r->stopped;
    pthread_mutex_unlock(&r->lock);
    *parked_ns += pb_clock_mono_ns() - start;
    return stopped ? -ECANCELED : 0;
}

static float *find(struct pb_rests *r, const struct pb_tile *tile)
{
    pthread_mutex_lock(&r->lock);
    const struct place *place = place_of(r, true, tile->number);
    pthread_mutex_unlock(&r->lock);
    return place != NULL ? (float *)r->memory + (size_t)(place - r->place) * r->each_px : NULL;
}

/* --- pixels ------------------------------------------------------------------------------------
 */

/* A row of pixels of a band in a window. */
struct row {
    const void *px;
    const uint8_t *mask; /* NULL: all are valid */
};

static struct row row_of(const struct pb_plan_wide *band, const struct pb_window *from, int32_t x,
                         int32_t y)
{
    const struct pb_rect *r = &from->rect;
    struct row row = {(const char *)from->data + band->plane * from->plane_bytes +
                          (size_t)(y - r->y) * from->row_bytes +
                          (size_t)(x - r->x) * pb_type_bytes(band->type),
                      NULL};
    if (from->mask != NULL)
        row.mask = from->mask + (size_t)(y - r->y) * from->mask_row_bytes + (x - r->x);
    return row;
}

static double value_at(enum pb_type type, const void *px, size_t i)
{
    return type == PB_F64   ? ((const double *)px)[i]
           : type == PB_I32 ? (double)((const int32_t *)px)[i]
                            : (double)((const uint32_t *)px)[i];
}

static bool is_lost(enum pb_wide_count count, double v)
{
    float rest[PB_REST_MAX];
    if ((double)(float)v == v)
        return false;
    if (count == PB_WIDE_ROUNDED)
        return true;
    pb_rest_split(v, rest);
    return pb_rest_join((float)v, rest[0], rest[1]) != v;
}

/* Counts the valid pixels of a row that lose digits. */
static uint64_t count_row(const struct pb_plan_wide *band, const struct row *row, size_t n)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < n; i++) {
        double v = value_at(band->type, row->px, i);
        bool valid = isfinite(v) && (row->mask == NULL || row->mask[i] != 0) &&
                     !(band->has_nodata && pb_nodata_is(band->type, v, band->nodata));
        lost += valid && is_lost(band->count, v);
    }
    return lost;
}

/* The tile's core on the band's grid, as far as it was read; all of the read pixels if the band has
 * another grid. */
static struct pb_rect core_on(const struct pb_plan_wide *band, const struct pb_tile *tile,
                              const struct pb_rect *read)
{
    if (!band->shifts)
        return *read;
    int32_t x0 = tile->core.x + band->dx, y0 = tile->core.y + band->dy;
    int32_t x1 = x0 + tile->core.w, y1 = y0 + tile->core.h;
    x0 = x0 > read->x ? x0 : read->x;
    y0 = y0 > read->y ? y0 : read->y;
    x1 = x1 < read->x + read->w ? x1 : read->x + read->w;
    y1 = y1 < read->y + read->h ? y1 : read->y + read->h;
    return (struct pb_rect){x0, y0, x1 > x0 ? x1 - x0 : 0, y1 > y0 ? y1 - y0 : 0};
}

static void count_band(struct pb_rests *r, size_t i, const struct pb_tile *tile,
                       const struct pb_window *from)
{
    const struct pb_plan_wide *band = &r->plan->work.wide[i];
    const struct pb_rect part = core_on(band, tile, &from->rect);
    uint64_t lost = 0;
    for (int32_t y = part.y; y < part.y + part.h; y++) {
        const struct row row = row_of(band, from, part.x, y);
        lost += count_row(band, &row, (size_t)part.w);
    }
    if (lost > 0)
        atomic_fetch_add_explicit(&r->counted[i], lost, memory_order_relaxed);
}

/* Splits the residuals of one output into n planes, plane_px apart, of the tile's core. */
static void split_band(const struct pb_plan_wide *band, const struct pb_tile *tile,
                       const struct pb_window *from, uint32_t n, size_t plane_px, float *to)
{
    const struct pb_rect part = core_on(band, tile, &from->rect);
    for (int32_t y = part.y; y < part.y + part.h; y++) {
        const struct row row = row_of(band, from, part.x, y);
        float *out = to + (size_t)(y - band->dy - tile->core.y) * (size_t)tile->core.w +
                     (size_t)(part.x - band->dx - tile->core.x);
        for (size_t i = 0; i < (size_t)part.w; i++) {
            float rest[PB_REST_MAX];
            pb_rest_split(value_at(band->type, row.px, i), rest);
            for (uint32_t k = 0; k < n; k++)
                out[i + k * plane_px] = rest[k];
        }
    }
}

void pb_rests_fill(struct pb_rests *r, const struct pb_tile *tile, const struct pb_tile_in *in)
{
    const struct pb_plan *plan = r->plan;
    size_t plane_px = pb_tile_out_px(tile);
    float *to = r->n > 0 ? find(r, tile) : NULL;
    for (size_t i = 0; i < plan->work.n_wide; i++) {
        const struct pb_window *from = &in->window[plan->work.wide[i].window];
        if (plan->work.wide[i].count != PB_WIDE_NOT && from->rect.w > 0)
            count_band(r, i, tile, from);
    }
    for (size_t i = 0; to != NULL && i < plan->work.outputs.n; i++) {
        const struct pb_plane_rest *rest = &plan->work.outputs.rest[i];
        const struct pb_plan_wide *band = &plan->work.wide[plan->work.outputs.rest_of[i]];
        const struct pb_window *from = &in->window[band->window];
        if (rest->n > 0 && from->rect.w > 0)
            split_band(band, tile, from, rest->n, plane_px, to + rest->first * plane_px);
    }
}

const float *pb_rests_find(struct pb_rests *r, const struct pb_tile *tile, const float *values,
                           size_t plane_px)
{
    const struct pb_plan *plan = r->plan;
    size_t px = (size_t)tile->core.w * (size_t)tile->core.h;
    float *rests = r->n > 0 ? find(r, tile) : NULL;
    for (size_t i = 0; rests != NULL && i < plan->work.outputs.n; i++)
        for (uint32_t k = 0; k < plan->work.outputs.rest[i].n; k++) {
            const float *value = values + i * plane_px;
            float *rest = rests + (plan->work.outputs.rest[i].first + k) * plane_px;
            for (size_t p = 0; p < px; p++)
                rest[p] = value[p] == value[p] ? rest[p] : value[p];
        }
    return rests;
}

void pb_rests_give(struct pb_rests *r, const struct pb_tile *tile)
{
    if (r->n == 0)
        return;
    pthread_mutex_lock(&r->lock);
    struct place *place = place_of(r, true, tile->number);
    if (place != NULL)
        place->used = false;
    pthread_cond_signal(&r->freed);
    pthread_mutex_unlock(&r->lock);
}

void pb_rests_abort(struct pb_rests *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopped = true;
    pthread_cond_broadcast(&r->freed);
    pthread_mutex_unlock(&r->lock);
}

uint64_t pb_rests_counted(const struct pb_rests *r, size_t i)
{
    return atomic_load(&r->counted[i]);
}
