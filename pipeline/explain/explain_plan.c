/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/explain/explain_plan.h"

#include "config/base/json_writer.h"
#include "config/product_words.h"
#include "pipeline/plan/pages.h"
#include "pipeline/plan/plan.h"
#include "pipeline/plan/values.h"

static void put(struct pb_json *json, const char *key, uint64_t value)
{
    pb_json_int(json, key, (int64_t)value);
}

static void explain_tiles(const struct pb_plan *pass, struct pb_json *json)
{
    const struct pb_grid *g = &pass->layout.grid;
    pb_json_object(json, "tiles");
    pb_json_int(json, "side", g->side_px);
    pb_json_int(json, "columns", g->cols);
    pb_json_int(json, "rows", g->rows);
    pb_json_string(json, "order", pass->layout.order == PB_ORDER_Z ? "z" : "rows");
    pb_json_bool(json, "whole_rows", pass->layout.whole_rows);
    pb_json_int(json, "stripe_columns", g->stripe_cols);
    pb_json_int(json, "unit_columns", g->unit_cols);
    put(json, "window_units", pass->layout.window_units);
    pb_json_int(json, "halo", pass->work.halo);
    pb_json_end(json);
}

/* Largest rectangle of a window that a tile reads. */
static struct pb_rect largest_window(const struct pb_plan *pass, uint32_t window)
{
    const struct pb_grid *g = &pass->layout.grid;
    const int32_t w = g->side_px < g->image_w ? g->side_px : g->image_w;
    const int32_t h = g->side_px < g->image_h ? g->side_px : g->image_h;
    const struct pb_rect core = {0, 0, w, h};
    if (!pb_chain_keeps_grid(pass->work.chain))
        return pb_chain_need_most(pass->work.chain, window, w, h);
    const struct pb_rect middle = {pass->work.halo, pass->work.halo, core.w, core.h};
    return pb_rect_grow(&middle, pass->work.halo, g->image_w, g->image_h);
}

static void explain_source(const struct pb_plan *pass, size_t i, struct pb_json *json)
{
    static const char *const masks[] = {NULL, "alpha", "blocks", "host"};
    const struct pb_plan_source *source = &pass->work.source[i];
    const struct pb_plan_cells *cells = &pass->layout.decoding.cells[i];
    const struct pb_raw_how *how = &pass->engine.whole.how[i];
    const struct pb_rect window = largest_window(pass, source->window);
    pb_json_object(json, NULL);
    put(json, "file", i);
    put(json, "window", source->window);
    put(json, "plane", source->plane);
    pb_json_array(json, "bands");
    for (size_t b = 0; b < source->n_bands; b++)
        pb_json_int(json, NULL, source->bands[b]);
    pb_json_end(json);
    put(json, "later", source->n_later);
    pb_json_string(json, "type", pb_type_name(source->type));
    pb_json_bool(json, "mask", source->has_mask);
    pb_json_int(json, "width", window.w);
    pb_json_int(json, "height", window.h);
    if (cells->count > 0) {
        put(json, "cells", cells->count);
        pb_json_int(json, "cell_width", cells->shape.w);
        pb_json_int(json, "cell_height", cells->shape.h);
        pb_json_int(json, "cell_overlap", cells->shape.overlap);
    }
    if (pass->engine.whole.used) {
        pb_json_bool(json, "decoded_by_host", how->by_host);
        pb_json_string(json, "device_mask", masks[how->mask]);
    }
    pb_json_end(json);
}

static void explain_sources(const struct pb_plan *pass, struct pb_json *json)
{
    pb_json_array(json, "sources");
    for (size_t i = 0; i < pass->work.n_sources; i++)
        if (pass->work.source[i].n_bands > 0)
            explain_source(pass, i, json);
    pb_json_end(json);
}

static void explain_digits(const struct pb_plan *pass, struct pb_json *json)
{
    static const char *const counts[] = {NULL, "rounded", "lost"};
    pb_json_array(json, "digits");
    for (size_t i = 0; i < pass->work.n_wide; i++) {
        const struct pb_plan_wide *band = &pass->work.wide[i];
        uint32_t planes = 0;
        for (size_t k = 0; pass->work.outputs.rest != NULL && k < pass->work.outputs.n; k++)
            planes += pass->work.outputs.rest_of[k] == i ? pass->work.outputs.rest[k].n : 0;
        pb_json_object(json, NULL);
        pb_json_string(json, "band", band->name);
        pb_json_string(json, "type", pb_type_name(band->type));
        put(json, "planes", planes);
        pb_json_string(json, "counted", counts[band->count]);
        pb_json_end(json);
    }
    pb_json_end(json);
}

static void explain_chain(const struct pb_plan *pass, struct pb_json *json)
{
    const struct pb_chain_reduction *reductions;
    const struct pb_chain_image *images;
    pb_json_object(json, "chain");
    put(json, "rounds", pass->is_earlier ? (uint64_t)pb_chain_rounds(pass->work.chain) : 1);
    put(json, "outputs", pb_chain_output_count(pass->work.chain));
    put(json, "instructions", pb_chain_instruction_count(pass->work.chain));
    put(json, "reductions",
        pass->is_earlier ? pb_chain_reductions(pass->work.chain, &reductions) : 0);
    put(json, "images", pass->is_earlier ? pb_chain_images(pass->work.chain, &images) : 0);
    pb_json_end(json);
    if (pass->layout.gate.chain == NULL)
        return;
    pb_json_object(json, "gate");
    pb_json_number(json, "minimum", pb_chain_gate_minimum(pass->work.chain));
    put(json, "read_bytes", pass->layout.gate.read_bytes);
    put(json, "scratch_bytes", pass->layout.gate.scratch_bytes);
    put(json, "plane_px", pass->layout.gate.plane_px);
    pb_json_end(json);
}

static void explain_slots(const struct pb_plan *pass, struct pb_json *json)
{
    static const char *const memory[] = {"host", "pinned"};
    pb_json_object(json, "slots");
    put(json, "in", pass->layout.in_slots);
    put(json, "in_bytes", pass->layout.in_slot_bytes);
    put(json, "out", pass->layout.out_slots);
    put(json, "out_bytes", pass->layout.out_slot_bytes);
    pb_json_string(json, "memory", memory[pass->engine.mem]);
    pb_json_int(json, "line_px", pass->layout.format.line_px);
    put(json, "head_bytes", pass->layout.format.head_bytes);
    put(json, "scratch_bytes", pass->layout.scratch_bytes);
    pb_json_end(json);
}

static void explain_threads(const struct pb_plan *pass, struct pb_json *json)
{
    pb_json_object(json, "threads");
    pb_json_bool(json, "whole_tiles", pass->layout.by_workers);
    put(json, "reading", pass->layout.readers);
    put(json, "computing", pass->layout.workers);
    put(json, "writing", pass->layout.writers);
    put(json, "wanted", pass->layout.threads_wanted);
    pb_json_end(json);
}

static void explain_resident(const struct pb_plan *pass, struct pb_json *json)
{
    static const char *const transports[] = {"bulk", "async", "loads", "copy", "in_place"};
    const struct pb_plan_resident *r = &pass->engine.resident;
    const struct wic_transfer_plan *c = &r->chunks;
    pb_json_object(json, "resident");
    pb_json_bool(json, "used", r->used);
    pb_json_string(json, "why_not", r->used ? NULL : r->why_not);
    if (r->used) {
        pb_json_bool(json, "shared", r->shared);
        pb_json_bool(json, "by_line", r->by_line);
        pb_json_int(json, "px", r->px);
        pb_json_int(json, "part_width", r->part_w);
        pb_json_int(json, "part_height", r->part_h);
        put(json, "scratch_bytes", r->scratch_bytes);
        put(json, "plane_px", r->plane_px);
        pb_json_string(json, "transport", transports[c->transport]);
        pb_json_string(json, "results", c->results == WIC_PUSH_BULK ? "bulk" : "stores");
        put(json, "piece_bytes", c->in_piece);
        put(json, "piece_result_bytes", c->out_piece);
        put(json, "pieces", c->pieces);
        put(json, "depth", c->depth);
        put(json, "blocks", c->blocks);
        put(json, "pulls", c->pulls);
        put(json, "backlog_bytes", c->engine_backlog);
        put(json, "warps", c->warps);
        put(json, "work_bytes", c->work_bytes);
        put(json, "user_bytes", c->user_bytes);
    }
    pb_json_end(json);
    if (pass->layout.sums.chain.n == 0)
        return;
    pb_json_object(json, "sums");
    put(json, "reductions", pass->layout.sums.chain.n);
    put(json, "numbers", pass->layout.sums.chain.n_numbers);
    put(json, "words", pass->layout.sums.chain.words);
    pb_json_int(json, "part_width", pass->layout.sums.part_w);
    pb_json_int(json, "part_height", pass->layout.sums.part_h);
    pb_json_end(json);
}

/* Planes of the scene in managed memory. */
static void explain_managed(const struct pb_plan *pass, struct pb_json *json)
{
    const struct pb_plan_pages pages = pb_plan_pages(pass);
    pb_json_object(json, "managed");
    put(json, "bytes", pass->engine.whole.planes_bytes);
    put(json, "chunk_bytes", pages.chunk_bytes);
    put(json, "decoding_chunks", pages.decoding);
    put(json, "computing_chunks", pages.computing);
    put(json, "lot_bytes", pages.lot_bytes);
    pb_json_end(json);
}

static void explain_blocks(const struct pb_plan *pass, struct pb_json *json)
{
    const struct pb_plan_whole *w = &pass->engine.whole;
    pb_json_object(json, "blocks");
    pb_json_bool(json, "on_device", w->used);
    pb_json_string(json, "why_not", w->used ? NULL : w->why_not);
    put(json, "why_bytes", w->used ? 0 : w->why_bytes);
    if (w->used) {
        pb_json_string(json, "host_why", w->host_why);
        pb_json_bool(json, "all_by_host", w->all_by_host);
        pb_json_bool(json, "in_place", w->in_place);
        pb_json_bool(json, "kept", w->keeps);
        pb_json_bool(json, "shared_with_cores", w->shares);
        put(json, "device_bytes", w->device_bytes);
        put(json, "least_bytes", w->least_bytes);
        put(json, "piece_bytes", w->piece_bytes);
        put(json, "streams", w->streams);
    }
    if (w->managed)
        explain_managed(pass, json);
    pb_json_end(json);
}

/* Products, or reductions of an earlier pass, that the device makes of the decoded blocks. */
static void explain_made(const struct pb_plan *pass, struct pb_json *json)
{
    const struct pb_plan_out *out = &pass->engine.out;
    if (out->n == 0)
        return;
    pb_json_object(json, "made");
    put(json, "products", out->by_device);
    put(json, "reductions", out->reduced);
    put(json, "host_planes", out->host_planes);
    put(json, "size", out->size);
    put(json, "strips", out->strips);
    put(json, "tile_bytes", out->tile_bytes);
    put(json, "workspace_bytes", out->workspace_bytes);
    put(json, "encoded_bytes", out->encoded_bytes);
    put(json, "batch", out->batch_most);
    put(json, "device_bytes", out->device_bytes);
    put(json, "most_bytes", out->most_bytes);
    pb_json_array(json, "of");
    for (uint32_t i = 0; i < out->n; i++) {
        const struct pb_plan_made *made = &out->made[i];
        pb_json_object(json, NULL);
        put(json, "product", made->product);
        put(json, "first_plane", made->first_plane);
        put(json, "planes", made->n_planes);
        pb_json_int(json, "block", made->blocks.format.block_px);
        put(json, "levels", made->blocks.levels);
        pb_json_bool(json, "parts", made->blocks.parts);
        pb_json_bool(json, "mask", made->blocks.has_mask);
        put(json, "row_blocks", made->row_blocks);
        put(json, "batch", made->batch[0]);
        put(json, "mask_batch", made->batch[1]);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
}

static void explain_exchange(const struct pb_plan *pass, struct pb_json *json)
{
    char text[400];
    if (pass->layout.exchange.pattern == NULL)
        return;
    (void)pb_exchange_print(&pass->layout.exchange, text, sizeof text);
    pb_json_object(json, "exchange");
    pb_json_string(json, "of", pb_exchange_of_name(pass->layout.exchange.of));
    pb_json_string(json, "pattern", text);
    pb_json_end(json);
}

static void explain_memory(const struct pb_plan *pass, struct pb_json *json)
{
    pb_json_object(json, "memory");
    put(json, "total", pass->memory.total_bytes);
    put(json, "cells", pass->layout.decoding.cells_bytes);
    put(json, "caches", pass->layout.decoding.cache_bytes);
    put(json, "files", pass->layout.decoding.reader_bytes);
    put(json, "products", pass->memory.product_bytes);
    put(json, "held", pass->memory.held_bytes);
    put(json, "reductions", pass->memory.reduce_bytes);
    put(json, "images", pass->memory.image_bytes);
    put(json, "kept_tiles", pass->memory.kept_bytes);
    if (pass->engine.whole.managed)
        put(json, "planes", pass->engine.whole.planes_bytes);
    put(json, "digits", pb_plan_rest_bytes(pass));
    put(json, "finished_blocks", pass->engine.out.room_bytes);
    put(json, "reserve", pass->memory.reserve_bytes);
    put(json, "wanted", pass->memory.wanted_bytes);
    pb_json_end(json);
}

void pb_explain_pass(const struct pb_plan *pass, struct pb_json *json)
{
    pb_json_string(json, "engine", pass->engine.cuda ? "gpu" : "cpu");
    pb_json_string(json, "engine_why", pass->engine.cpu_why);
    explain_tiles(pass, json);
    explain_sources(pass, json);
    pb_json_number(json, "decodes", pass->layout.decoding.decodes);
    explain_chain(pass, json);
    explain_digits(pass, json);
    explain_slots(pass, json);
    explain_threads(pass, json);
    if (pass->engine.cuda) {
        explain_resident(pass, json);
        explain_blocks(pass, json);
        explain_made(pass, json);
    }
    explain_exchange(pass, json);
    explain_memory(pass, json);
}

void pb_explain_passes(const struct pb_plan *plan, struct pb_json *json)
{
    pb_json_array(json, "passes");
    for (size_t i = 0; i <= plan->n_earlier; i++) {
        pb_json_object(json, NULL);
        pb_explain_pass(i < plan->n_earlier ? plan->earlier[i] : plan, json);
        pb_json_end(json);
    }
    pb_json_end(json);
}
