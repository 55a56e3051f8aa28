/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORK_TABLES_H
#define PB_WORK_TABLES_H
/* The rest of work_scene.h: tables of pieces and blocks, the view, and what a run begins with. */
#include "tests/work_scene.h"

/* Places of the pieces' bytes, their order, and the tiles that read each. */
static inline void work_pieces(struct work_scene *s, uint8_t *planes, size_t row_bytes,
                               size_t plane_bytes)
{
    const struct work_case *of = s->of;
    const size_t raw = (size_t)of->side * (size_t)of->side * of->bands * sizeof(uint16_t);
    const uint32_t n = s->n_pieces;
    uint32_t *list = work_host((size_t)n * s->n_tiles, sizeof *list), listed = 0;
    uint32_t *needs = work_host(s->n_tiles, sizeof *needs);
    uint8_t *decoded = s->memory.take((raw + 15) / 16 * 16 * n);
    s->piece = work_host(n, sizeof *s->piece);
    for (uint32_t i = 0; i < n; i++)
        s->in_bytes += (s->stored[work_kind(s, i)].n + 31) / 16 * 16;
    s->in = s->memory.take(s->in_bytes);
    uint8_t *in = s->in;
    for (uint32_t i = 0; i < n; i++) {
        struct pb_work_piece *p = &s->piece[i];
        const struct work_stored *stored = &s->stored[work_kind(s, i)];
        const struct pb_rect r = work_rect(of->side, of->w, of->h, i % s->across, i / s->across);
        p->codec = work_codec_of(of, work_kind(s, i));
        p->stream = (struct pb_decode_stream){.in = in,
                                              .out = decoded + i * ((raw + 15) / 16 * 16),
                                              .in_bytes = (uint32_t)stored->n,
                                              .least = (uint32_t)raw,
                                              .most = (uint32_t)raw};
        p->block =
            (struct pb_unpredict_block){.in = p->codec == PB_DEVICE_STORED ? in : p->stream.out,
                                        .out = planes + (size_t)r.y * row_bytes + (size_t)r.x * 2,
                                        .row_bytes = row_bytes,
                                        .plane_bytes = plane_bytes,
                                        .w = (uint32_t)r.w,
                                        .h = (uint32_t)r.h};
        p->first_tile = listed;
        for (uint32_t t = 0; t < s->n_tiles; t++)
            if (work_meet(&s->read[t], &r)) {
                list[listed++] = t;
                needs[t]++;
            }
        p->n_tiles = listed - p->first_tile;
        in += (stored->n + 31) / 16 * 16;
    }
    s->view.pieces = work_there(s, s->piece, n * sizeof *s->piece);
    s->view.piece_tiles = work_there(s, list, listed * sizeof *list);
    s->view.tile_needs = work_there(s, needs, s->n_tiles * sizeof *needs);
    s->view.tile_counts = work_zeros(s, s->n_tiles, sizeof(uint32_t));
    s->view.results = work_zeros(s, n, sizeof(struct pb_decode_result));
    free(list);
    free(needs);
}

static inline void work_form(struct work_scene *s)
{
    const uint32_t *used;
    struct pb_unpredict_form form = {.sample_bytes = 2,
                                     .predictor = (uint32_t)s->of->predictor,
                                     .n_samples = s->of->bands,
                                     .block_w = (uint32_t)s->of->side};
    form.n_planes = (uint32_t)pb_chain_used(s->chain, &used);
    for (uint32_t p = 0; p < form.n_planes; p++)
        form.sample[p] = (uint16_t)used[p];
    s->view.forms = work_there(s, &form, sizeof form);
}

/* A block of one level into its quarter of its parent. */
static inline void work_join(struct work_scene *s, uint32_t l, uint32_t x, uint32_t y)
{
    const struct work_level *own = &s->level[l], *next = own + 1;
    const int32_t side = s->of->block_px;
    const uint32_t number = own->first + y * own->across + x;
    struct pb_work_block *block = &s->block[number];
    const struct pb_encode_block *pixels = &s->encode[number];
    block->parent = PB_WORK_NONE;
    if (l + 1 == s->n_levels)
        return;
    block->parent = next->first + y / 2 * next->across + x / 2;
    s->block[block->parent].need++;
    const size_t at = y % 2 * (size_t)(side / 2) * (size_t)side + x % 2 * (size_t)(side / 2);
    block->halve =
        (struct pb_halve_part){.from = pixels->data,
                               .to = s->view.tile_out + block->parent * s->view.tile_out_px + at,
                               .from_plane_px = s->view.tile_plane_px,
                               .to_plane_px = s->view.tile_plane_px,
                               .from_row_px = pixels->row_px,
                               .to_row_px = (uint32_t)side,
                               .w = pixels->w,
                               .h = pixels->h};
}

static inline void work_blocks(struct work_scene *s)
{
    const struct work_level *last = &s->level[s->n_levels - 1];
    const uint32_t n = last->first + 1;
    const int32_t side = s->of->block_px;
    s->block = work_host(n, sizeof *s->block);
    s->encode = work_host(n, sizeof *s->encode);
    s->view.tile_plane_px = s->view.tile_out_px = (size_t)side * (size_t)side;
    s->view.tile_out = s->memory.take(n * s->view.tile_out_px * sizeof(float));
    for (uint32_t l = 0; l < s->n_levels; l++)
        for (uint32_t i = 0; i < s->level[l].across * s->level[l].down; i++) {
            const struct work_level *level = &s->level[l];
            const struct pb_rect r =
                work_rect(side, level->w, level->h, i % level->across, i / level->across);
            s->encode[level->first + i] = (struct pb_encode_block){
                .data = s->view.tile_out + (level->first + i) * s->view.tile_out_px,
                .plane_px = s->view.tile_plane_px,
                .row_px = (uint32_t)(l == 0 ? r.w : side),
                .w = r.w,
                .h = r.h};
            if (l == 0)
                s->block[i].need = work_parts(r.h, (int32_t)s->view.part_rows);
        }
    for (uint32_t l = 0; l < s->n_levels; l++)
        for (uint32_t y = 0; y < s->level[l].down; y++)
            for (uint32_t x = 0; x < s->level[l].across; x++)
                work_join(s, l, x, y);
    s->view.blocks = work_there(s, s->block, n * sizeof *s->block);
    s->view.counts = work_zeros(s, n, sizeof(struct pb_work_counts));
}

static inline void work_format(const struct work_case *of, struct pb_encode_format *format)
{
    const bool is_float = of->type == PB_F32 || of->type == PB_F64;
    *format = (struct pb_encode_format){.block_px = of->block_px,
                                        .n_bands = 1,
                                        .scale = is_float ? 0 : 0.0001,
                                        .predictor = is_float ? 3 : 2,
                                        .with = of->with};
    if (!encode_reference_quantizer(of->type, is_float ? (double)NAN : 0, false,
                                    &format->quantizer))
        abort();
}

static inline void work_encode(struct work_scene *s)
{
    const uint32_t n = s->level[s->n_levels - 1].first + 1;
    struct pb_encode_batch batch = {.n_blocks = n};
    work_format(s->of, &batch.format);
    if (pb_encode_measure(&batch.format, n, &s->needs) < 0)
        abort();
    batch.blocks = work_there(s, s->encode, n * sizeof *s->encode);
    batch.workspace = s->memory.take(s->needs.bytes);
    batch.out = s->memory.take(s->needs.out_bytes + 16);
    batch.out_bytes = s->needs.out_bytes;
    batch.encoded = s->memory.take(n * sizeof *batch.encoded);
    batch.used = s->used = s->memory.take(sizeof *batch.used);
    if (pb_encode_view_of(&batch, &s->view.encode) < 0)
        abort();
}

/* chain and the places of results (out_host, records) are the caller's. chain_shared: bytes that a
 * worker has for the chain. */
static inline void work_scene_make(const struct work_case *of, struct work_memory memory,
                                   uint32_t chain_shared, struct work_scene *s)
{
    *s = (struct work_scene){.of = of, .memory = memory, .chain = work_chain(of)};
    const size_t row = ((size_t)of->w * 2 + 255) / 256 * 256, plane = row * (size_t)of->h;
    const uint32_t *used;
    s->across = work_parts(of->w, of->side);
    s->n_pieces = s->across * work_parts(of->h, of->side);
    for (uint32_t k = 0; k < WORK_KINDS; k++) {
        s->kind[k] = work_host((size_t)of->side * (size_t)of->side * of->bands, 2);
        work_fill_kind(of, k, s->kind[k]);
        s->stored[k] = work_store(of, k, s->kind[k]);
    }
    s->view.part_rows = 64;
    s->view.n_planes = 1;
    s->view.nearest = of->nearest;
    uint8_t *planes = memory.take(plane * pb_chain_used(s->chain, &used));
    work_levels(s);
    work_tiles(s, planes, row, plane);
    work_pieces(s, planes, row, plane);
    work_form(s);
    work_blocks(s);
    work_encode(s);
    pb_work_divide(&s->view);
    if (pb_chain_block_measure(s->chain, of->block_px, (int32_t)s->view.part_rows, PB_WORK_THREADS,
                               chain_shared, &s->chain_needs) < 0)
        abort();
    s->view.scratch_px = s->chain_needs.scratch_bytes / sizeof(float);
    s->view.scratch_plane_px = s->chain_needs.plane_px;
    s->view.blocks_done = work_zeros(s, 1, sizeof(uint32_t));
    s->view.records_taken = memory.take(sizeof(uint64_t));
    s->view.n_records = s->view.encode.batch.n_blocks + s->n_pieces;
    pb_work_tasks(&s->view, s->n_pieces, s->n_tiles, s->most);
    s->image = work_host(wic_ready_bytes(s->most) / 128 + 1, 128);
}

/* Empty rings, with all pieces listed for decoding; nothing placed or reported. */
static inline void work_reset(struct work_scene *s, void *rings, uint64_t limit_ns)
{
    uint32_t *order = work_host(s->n_pieces, sizeof *order);
    void *zeros = work_host(s->view.encode.batch.n_blocks, 64);
    for (uint32_t i = 0; i < s->n_pieces; i++)
        order[i] = i;
    wic_ready_init(s->most, limit_ns, s->image, rings, &s->view.ready);
    wic_ready_list(s->image, &s->view.ready, PB_WORK_DECODE, order, s->n_pieces);
    s->memory.fill(rings, s->image, wic_ready_bytes(s->most));
    s->memory.fill(s->view.encode.batch.encoded, zeros,
                   s->view.encode.batch.n_blocks * sizeof(struct pb_encoded));
    if (s->view.encode.windows > 0)
        s->memory.fill(s->view.encode.strings, zeros,
                       s->view.encode.batch.n_blocks * sizeof(struct pb_strings_sizes));
    s->memory.fill(s->used, zeros, sizeof(uint64_t));
    s->memory.fill(s->view.records_taken, zeros, sizeof(uint64_t));
    free(order);
    free(zeros);
}

static inline void work_scene_free(struct work_scene *s)
{
    for (uint32_t k = 0; k < WORK_KINDS; k++) {
        free(s->kind[k]);
        free(s->stored[k].bytes);
    }
    pb_chain_destroy(s->chain);
    free(s->read);
    free(s->piece);
    free(s->block);
    free(s->tile_in);
    free(s->encode);
    free(s->image);
}
#endif
