/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/pages.h"
#include "pipeline/plan/layout.h"

/* Sizes of a chunk of managed planes: a GPU's driver moves them by blocks of 2 MiB; smaller ones
 * for small scenes. */
#define CHUNK_LEAST (UINT64_C(64) << 10)
#define CHUNK_MOST  (UINT64_C(2) << 20)
enum {
    CHUNKS = 512,
    ALIGN = 256 /* bytes; as PB_WHOLE_ALIGN (run/whole/whole_map.h) */
};

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

uint64_t pb_plan_planes_bytes(const struct pb_plan *plan)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = &plan->work.info[i];
        const struct pb_plan_source *source = &plan->work.source[i];
        const uint64_t w = (uint64_t)info->width;
        const uint64_t row = aligned(w * pb_type_bytes(source->type)) * source->n_bands +
                             aligned(w) * source->has_mask;
        if (source->n_bands > 0)
            bytes += (uint64_t)info->height * row;
    }
    return bytes;
}

static uint64_t chunk_bytes(const struct pb_plan *plan)
{
    const uint64_t all = pb_plan_planes_bytes(plan);
    uint64_t chunk = CHUNK_LEAST;
    while (chunk < CHUNK_MOST && chunk * CHUNKS < all)
        chunk *= 2;
    return chunk;
}

/* Most chunks of some rows of n planes. */
static uint64_t chunks_of(uint64_t rows, uint64_t row_bytes, uint64_t n, uint64_t chunk)
{
    return n * (rows * row_bytes / chunk + 2);
}

/* Most chunks that a chain reads of a source's window for a core of w x h pixels. */
static uint64_t window_chunks(const struct pb_plan *plan, const struct pb_chain *chain, size_t i,
                              const struct pb_plan_bands *bands, int32_t w, int32_t h)
{
    const struct pb_raster_info *info = &plan->work.info[i];
    const struct pb_plan_source *source = &plan->work.source[i];
    const uint64_t width = (uint64_t)info->width, chunk = chunk_bytes(plan);
    uint64_t rows = (uint64_t)h + 2 * (uint64_t)plan->work.halo;
    if (!pb_chain_keeps_grid(chain) || chain != plan->work.chain)
        rows = (uint64_t)pb_chain_need_most(chain, source->window, w, h).h;
    rows = rows < (uint64_t)info->height ? rows : (uint64_t)info->height;
    return chunks_of(rows, aligned(width * pb_type_bytes(source->type)), bands->n, chunk) +
           chunks_of(rows, aligned(width), bands->has_mask, chunk);
}

/* Most chunks that a tile or its gate reads. */
static uint64_t tile_chunks(const struct pb_plan *plan)
{
    const struct pb_grid *g = &plan->layout.grid;
    const struct pb_chain *gate = plan->layout.gate.chain;
    uint64_t tile = 0, first = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_plan_source *source = &plan->work.source[i];
        const struct pb_plan_bands all = {.n = source->n_bands, .has_mask = source->has_mask};
        if (source->n_bands == 0)
            continue;
        tile += window_chunks(plan, plan->work.chain, i, &all,
                              g->side_px < g->image_w ? g->side_px : g->image_w,
                              g->side_px < g->image_h ? g->side_px : g->image_h);
        const struct pb_plan_bands bands = pb_plan_bands_of(source, PB_PLAN_FIRST);
        if (gate == NULL || bands.n == 0)
            continue;
        const struct pb_rect most = pb_plan_gate_most(plan);
        first += window_chunks(plan, gate, i, &bands, most.w, most.h);
    }
    return tile > first ? tile : first;
}

/* Most chunks that a piece of each source is decoded into. */
static uint64_t piece_chunks(const struct pb_plan *plan)
{
    const uint64_t chunk = chunk_bytes(plan);
    uint64_t chunks = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = &plan->work.info[i];
        const struct pb_plan_source *source = &plan->work.source[i];
        const uint64_t width = (uint64_t)info->width;
        uint32_t w = (uint32_t)info->block_w, h = (uint32_t)pb_raster_stored_rows(info);
        if (source->n_bands == 0)
            continue;
        if (plan->engine.whole.how[i].by_host)
            pb_raw_blocks_stand_in(info, &w, &h);
        chunks +=
            chunks_of(h, aligned(width * pb_type_bytes(source->type)), source->n_bands, chunk);
        if (plan->engine.whole.how[i].mask == PB_RAW_MASK_BLOCKS &&
            (uint32_t)info->mask_blocks.block_h > h)
            h = (uint32_t)info->mask_blocks.block_h;
        chunks += chunks_of(h, aligned(width), source->has_mask, chunk);
    }
    return chunks;
}

/* Most memory of a piece, stored and decoded. */
static uint64_t piece_room(const struct pb_plan *plan)
{
    const struct pb_plan_whole *whole = &plan->engine.whole;
    const uint64_t stored =
        whole->piece_bytes > PB_RAW_PART_BYTES ? whole->piece_bytes : PB_RAW_PART_BYTES;
    return aligned(stored) + aligned(whole->block_bytes);
}

uint64_t pb_plan_pages_least(const struct pb_plan *plan)
{
    return (tile_chunks(plan) + piece_chunks(plan)) * chunk_bytes(plan) + 2 * piece_room(plan) +
           pb_plan_gate_device_bytes(plan);
}

/* Half of the memory is for blocks, of which the device decodes as many at once as there are; of
 * the chunks a third is for decoding, because tiles also read again what was evicted. */
struct pb_plan_pages pb_plan_pages(const struct pb_plan *plan)
{
    struct pb_plan_pages out = {.chunk_bytes = chunk_bytes(plan)};
    const uint64_t taken = plan->engine.out.device_bytes + pb_plan_gate_device_bytes(plan);
    const uint64_t given = plan->engine.whole.device_bytes;
    const uint64_t all = given > taken ? given - taken : 0;
    const uint64_t tile = tile_chunks(plan), piece = piece_chunks(plan);
    const uint64_t least = (tile + piece) * out.chunk_bytes;
    uint64_t lots = all / 2;
    if (all - lots < least)
        lots = all > least ? all - least : 0;
    out.lot_bytes = lots / 2 / ALIGN * ALIGN;
    const uint64_t chunks = (all - 2 * out.lot_bytes) / out.chunk_bytes;
    const uint64_t most = (pb_plan_planes_bytes(plan) + out.chunk_bytes - 1) / out.chunk_bytes;
    uint64_t decoding = chunks / 3 > piece ? chunks / 3 : piece;
    if (decoding + tile > chunks) /* least_bytes has both */
        decoding = chunks > tile ? chunks - tile : 0;
    out.decoding = (uint32_t)(chunks >= most ? most : decoding);
    out.computing = (uint32_t)(chunks >= most ? most : chunks - decoding);
    return out;
}
