/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/gate.h"
#include "pipeline/plan/layout.h"

#include "kernels/reduce/passing_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Blocks of a source's file that tiles needed, separate for passed and for left-out tiles. */
struct blocks {
    int32_t w, h;  /* size of a block */
    uint32_t cols; /* columns of blocks in the file */
    size_t words;
    _Atomic uint64_t *passed, *left_out; /* one bit per block; NULL: no band is read later */
};

struct pb_gate {
    const struct pb_plan *plan;
    struct blocks blocks[PB_FILES_MAX];
    _Atomic uint64_t tiles, left_out;
};

static int make_blocks(struct blocks *b, const struct pb_plan_source *source,
                       const struct pb_raster_info *info)
{
    uint64_t n = pb_plan_gate_blocks(source, info);
    *b = (struct blocks){.w = info->block_w,
                         .h = info->block_h,
                         .cols = (uint32_t)((info->width + info->block_w - 1) / info->block_w),
                         .words = (size_t)(n / 64 + 1)};
    if (n == 0)
        return 0;
    b->passed = calloc(b->words, sizeof *b->passed);
    b->left_out = calloc(b->words, sizeof *b->left_out);
    return b->passed != NULL && b->left_out != NULL ? 0 : -ENOMEM;
}

int pb_gate_create(const struct pb_plan *plan, const struct pb_raster *const *raster,
                   struct pb_err *err, struct pb_gate **out_gate)
{
    struct pb_gate *gate = calloc(1, sizeof *gate);
    int rc = gate != NULL ? 0 : -ENOMEM;
    if (rc == 0)
        gate->plan = plan;
    for (size_t i = 0; i < plan->work.n_sources && rc == 0; i++)
        if (raster[i] != NULL)
            rc = make_blocks(&gate->blocks[i], &plan->work.source[i], pb_raster_info(raster[i]));
    if (rc < 0) {
        pb_gate_destroy(gate);
        return pb_fail(err, PB_E_MEMORY, "out of memory for the gate");
    }
    *out_gate = gate;
    return 0;
}

void pb_gate_destroy(struct pb_gate *gate)
{
    if (gate == NULL)
        return;
    for (size_t i = 0; i < PB_FILES_MAX; i++) {
        free(gate->blocks[i].passed);
        free(gate->blocks[i].left_out);
    }
    free(gate);
}

/* --- counting -------------------------------------------------------------------------------- */

static void mark(const struct blocks *b, _Atomic uint64_t *bits, const struct pb_rect *rect)
{
    for (int32_t y = rect->y / b->h; rect->w > 0 && y <= (rect->y + rect->h - 1) / b->h; y++)
        for (int32_t x = rect->x / b->w; x <= (rect->x + rect->w - 1) / b->w; x++) {
            uint64_t i = (uint64_t)y * b->cols + (uint64_t)x;
            atomic_fetch_or_explicit(&bits[i / 64], UINT64_C(1) << i % 64, memory_order_relaxed);
        }
}

void pb_gate_count_tile(struct pb_gate *gate, const struct pb_tile *tile, bool passes)
{
    atomic_fetch_add(&gate->tiles, 1);
    atomic_fetch_add(&gate->left_out, !passes);
    for (size_t i = 0; i < gate->plan->work.n_sources; i++) {
        const struct blocks *b = &gate->blocks[i];
        if (b->passed != NULL)
            mark(b, passes ? b->passed : b->left_out, &tile->read[i]);
    }
}

void pb_gate_count(const struct pb_gate *gate, struct pb_gate_report *out)
{
    *out = (struct pb_gate_report){.tiles = atomic_load(&gate->tiles),
                                   .left_out = atomic_load(&gate->left_out)};
    for (size_t i = 0; i < gate->plan->work.n_sources; i++) {
        const struct blocks *b = &gate->blocks[i];
        uint64_t n = 0;
        for (size_t k = 0; b->passed != NULL && k < b->words; k++)
            n += (uint64_t)__builtin_popcountll(atomic_load(&b->left_out[k]) &
                                                ~atomic_load(&b->passed[k]));
        out->blocks += n * gate->plan->work.source[i].n_later;
    }
}

/* --- a reader -------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes)
{
    return pb_slot_align(bytes, PB_PLANE_ALIGN);
}

int pb_gate_reader_init(struct pb_gate_reader *reader, struct pb_gate *gate, struct pb_err *err)
{
    const struct pb_plan_gate *g = &gate->plan->layout.gate;
    *reader = (struct pb_gate_reader){.gate = gate};
    reader->memory = aligned_alloc(PB_PLANE_ALIGN, aligned(g->read_bytes) +
                                                       aligned(g->plane_px * sizeof(float)) +
                                                       aligned(g->scratch_bytes));
    return reader->memory != NULL ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory for the gate");
}

void pb_gate_reader_fini(struct pb_gate_reader *reader)
{
    free(reader->memory);
}

void pb_gate_begin(struct pb_gate_reader *reader, const struct pb_tile *tile)
{
    const struct pb_plan *plan = reader->gate->plan;
    reader->first = pb_plan_gate_tile(plan, tile);
    pb_slot_tile(&plan->layout.gate.format, &reader->first, reader->memory, &reader->in);
}

/* Counts the pixels of the part of a plane that pass; stops at `enough`. */
static uint64_t passing(const float *plane, const struct pb_rect *all, const struct pb_rect *part,
                        uint64_t enough)
{
    uint64_t n = 0;
    for (int32_t y = 0; y < part->h && n < enough; y++) {
        const float *row =
            plane + (size_t)(part->y - all->y + y) * (size_t)all->w + (size_t)(part->x - all->x);
        for (int32_t x = 0; x < part->w; x++)
            n += pb_pixel_passes(row[x]);
    }
    return n;
}

int pb_gate_passes(struct pb_gate_reader *reader, const struct pb_tile *tile, bool *out_passes)
{
    const struct pb_plan *plan = reader->gate->plan;
    const struct pb_plan_gate *g = &plan->layout.gate;
    float *plane = (float *)((char *)reader->memory + aligned(g->read_bytes));
    void *scratch = (char *)plane + aligned(g->plane_px * sizeof(float));
    const struct pb_plan_gate_look look = pb_plan_gate_look(plan, tile);
    const struct pb_rect *all = &look.first.core;
    *out_passes = false;
    if (look.part.w > 0) {
        const struct pb_tile_in in = pb_plan_gate_view(plan, &reader->in, &g->format);
        const struct pb_tile_out out = {plane, (size_t)all->w * (size_t)all->h};
        int rc = pb_chain_run_cpu(g->chain, &in, &out, scratch);
        if (rc < 0)
            return rc;
        *out_passes = passing(plane, all, &look.part, look.enough) >= look.enough;
    }
    pb_gate_count_tile(reader->gate, tile, *out_passes);
    return 0;
}

void pb_gate_copy(const struct pb_gate_reader *reader, size_t source, const struct pb_window *slot)
{
    const struct pb_plan_source *s = &reader->gate->plan->work.source[source];
    const struct pb_plan_bands bands = pb_plan_bands_of(s, PB_PLAN_FIRST);
    const struct pb_window *from = &reader->in.window[source];
    size_t px = pb_type_bytes(s->type), n = (size_t)slot->rect.w;
    size_t x = (size_t)(slot->rect.x - from->rect.x), y0 = (size_t)(slot->rect.y - from->rect.y);
    if (bands.n == 0 || slot->rect.w == 0)
        return;
    for (size_t b = 0; b < bands.n; b++)
        for (size_t y = 0; y < (size_t)slot->rect.h; y++)
            memcpy((char *)slot->data + (bands.first + b) * slot->plane_bytes + y * slot->row_bytes,
                   (const char *)from->data + b * from->plane_bytes + (y0 + y) * from->row_bytes +
                       x * px,
                   n * px);
    for (size_t y = 0; bands.has_mask && y < (size_t)slot->rect.h; y++)
        memcpy(slot->mask + y * slot->mask_row_bytes,
               from->mask + (y0 + y) * from->mask_row_bytes + x, n);
}
