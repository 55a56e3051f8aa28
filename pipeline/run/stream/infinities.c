/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/infinities.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

struct pb_infinities {
    const struct pb_plan *plan;
    _Atomic uint64_t *counted; /* indexed by band of plan->floats */
};

int pb_infinities_create(const struct pb_plan *plan, struct pb_err *err, struct pb_infinities **out)
{
    struct pb_infinities *f = calloc(1, sizeof *f);
    if (f != NULL)
        f->counted = calloc(plan->work.n_floats + 1, sizeof *f->counted);
    if (f == NULL || f->counted == NULL) {
        free(f);
        return pb_fail(err, PB_E_MEMORY, "out of memory for counts of pixels");
    }
    f->plan = plan;
    *out = f;
    return 0;
}

void pb_infinities_destroy(struct pb_infinities *f)
{
    if (f == NULL)
        return;
    free(f->counted);
    free(f);
}

/* True if one of n pixels is infinite. Tests the bits, in a loop that compilers vectorise, because
 * nearly no row has one. */
static bool any_f32(const void *px, size_t n)
{
    const uint32_t *bits = px;
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++)
        found |= (bits[i] & 0x7fffffffu) == 0x7f800000u;
    return found != 0;
}

static bool any_f64(const void *px, size_t n)
{
    const uint64_t *bits = px;
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++)
        found |= (bits[i] & 0x7fffffffffffffffu) == 0x7ff0000000000000u;
    return found != 0;
}

static uint64_t count_row(const struct pb_plan_wide *band, const void *px, const uint8_t *mask,
                          size_t n)
{
    uint64_t found = 0;
    if (band->type == PB_F32 ? !any_f32(px, n) : !any_f64(px, n))
        return 0;
    for (size_t i = 0; i < n; i++) {
        double v = band->type == PB_F32 ? (double)((const float *)px)[i] : ((const double *)px)[i];
        bool valid = (mask == NULL || mask[i] != 0) && !(band->has_nodata && v == band->nodata);
        found += valid && isinf(v);
    }
    return found;
}

/* The tile's core on the band's grid, as far as it was read; all of the read pixels if the band has
 * another grid. */
static struct pb_rect part_of(const struct pb_plan_wide *band, const struct pb_tile *tile,
                              const struct pb_rect *read)
{
    struct pb_rect core = {tile->core.x + band->dx, tile->core.y + band->dy, tile->core.w,
                           tile->core.h};
    int32_t right = core.x + core.w, bottom = core.y + core.h;
    if (!band->shifts)
        return *read;
    core.x = core.x > read->x ? core.x : read->x;
    core.y = core.y > read->y ? core.y : read->y;
    right = right < read->x + read->w ? right : read->x + read->w;
    bottom = bottom < read->y + read->h ? bottom : read->y + read->h;
    core.w = right > core.x ? right - core.x : 0;
    core.h = bottom > core.y ? bottom - core.y : 0;
    return core;
}

static uint64_t count_band(const struct pb_plan_wide *band, const struct pb_tile *tile,
                           const struct pb_window *from)
{
    const struct pb_rect part = part_of(band, tile, &from->rect);
    uint64_t found = 0;
    for (int32_t y = part.y; part.w > 0 && y < part.y + part.h; y++) {
        size_t row = (size_t)(y - from->rect.y), column = (size_t)(part.x - from->rect.x);
        const char *px = (const char *)from->data + band->plane * from->plane_bytes +
                         row * from->row_bytes + column * pb_type_bytes(band->type);
        const uint8_t *mask =
            from->mask != NULL ? from->mask + row * from->mask_row_bytes + column : NULL;
        found += count_row(band, px, mask, (size_t)part.w);
    }
    return found;
}

void pb_infinities_count(struct pb_infinities *f, const struct pb_tile *tile,
                         const struct pb_tile_in *in)
{
    for (size_t i = 0; i < f->plan->work.n_floats; i++) {
        const struct pb_plan_wide *band = &f->plan->work.floats[i];
        const struct pb_window *from = &in->window[band->window];
        uint64_t found = from->rect.w > 0 ? count_band(band, tile, from) : 0;
        if (found > 0)
            atomic_fetch_add_explicit(&f->counted[i], found, memory_order_relaxed);
    }
}

void pb_infinities_note(const struct pb_infinities *f, struct pb_notes *notes)
{
    for (size_t i = 0; i < f->plan->work.n_floats; i++) {
        const struct pb_plan_wide *band = &f->plan->work.floats[i];
        unsigned long long n = atomic_load(&f->counted[i]);
        if (n > 0 && band->shifts)
            pb_notes_add(notes, "band %s: %llu pixel%s of the input %s infinite, which is invalid",
                         band->name, n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
        else if (n > 0) /* another grid: neighbouring tiles read the same pixels */
            pb_notes_add(notes, "band %s: pixels of the input are infinite, which is invalid",
                         band->name);
    }
}
