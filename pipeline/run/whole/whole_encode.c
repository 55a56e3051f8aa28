/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Blocks of products. Overviews are made level by level: the rows of a level that are on the device
 * are processed when they fill the device memory for them, or at the last row. The blocks that
 * a row of tiles completes, of all levels, are encoded in batches, which the collector receives. */
#include "pipeline/run/whole/whole_inside.h"
#include "pipeline/plan/staged.h"

#include "config/base/clock.h"

#include <stdlib.h>
#include <string.h>

static const struct pb_grid *grid_of(const struct pb_exec_whole *e)
{
    return &e->map.plan->layout.grid;
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static uint32_t count(int32_t px, int32_t side)
{
    return (uint32_t)((px + side - 1) / side);
}

/* --- memory ---------------------------------------------------------------------------------- */

/* Copies the colours of a painted product to the device. */
static int open_steps(struct pb_exec_whole *e, struct whole_made *made, struct pb_err *err)
{
    const struct pb_device_blocks *blocks = &made->plan->blocks;
    const size_t bytes = blocks->format.paint.n_steps * sizeof *blocks->steps;
    void *memory = NULL;
    if (blocks->format.paint.n_planes == 0)
        return 0;
    int rc = e->ops->memory(e->device, bytes, err, &memory);
    made->steps = memory;
    return rc ? rc : e->ops->copy(e->device, QUEUE_OUT, memory, blocks->steps, bytes, err);
}

static int open_made(struct pb_exec_whole *e, uint32_t i, struct pb_err *err)
{
    const struct pb_plan_made *plan = &e->map.plan->engine.out.made[i];
    struct whole_made *made = &e->dispatch.out.made[i];
    int rc = 0;
    made->plan = plan;
    for (uint32_t k = 1; k <= plan->blocks.levels && rc == 0; k++) {
        struct whole_level *l = &made->level[k];
        void *memory = NULL;
        l->size = pb_plan_out_level(e->map.plan, plan, k);
        rc = e->ops->memory(e->device, l->size.plane_px * plan->n_planes * sizeof(float), err,
                            &memory);
        l->pixels = memory;
    }
    rc = rc ? rc : open_steps(e, made, err);
    return rc ? rc : whole_values_open(e, i, err);
}

static int open_batch(struct pb_exec_whole *e, struct whole_batch *batch, struct pb_err *err)
{
    const struct pb_plan_out *plan = &e->map.plan->engine.out;
    const size_t found = whole_found_bytes(plan->batch_most);
    void *memory[5] = {NULL};
    int rc = e->ops->memory(e->device, plan->workspace_bytes, err, &memory[0]);
    rc = rc ? rc : e->ops->memory(e->device, plan->encoded_bytes, err, &memory[1]);
    rc = rc ? rc : e->ops->memory(e->device, found, err, &memory[2]);
    rc = rc ? rc : e->ops->table(e->device, found, err, &memory[3]);
    rc = rc ? rc
            : e->ops->table(e->device, plan->batch_most * sizeof(struct pb_encode_block), err,
                            &memory[4]);
    batch->workspace = memory[0];
    batch->encoded = memory[1];
    batch->found = memory[2];
    batch->told = memory[3];
    batch->input = memory[4];
    batch->block = calloc(plan->batch_most, sizeof *batch->block);
    if (rc == 0 && batch->block == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    return rc;
}

/* Counts the parts of all halvings of a row of tiles, for all products; and the most blocks of one.
 */
static void count_lists(const struct pb_exec_whole *e, uint32_t *out_parts, uint32_t *out_blocks)
{
    const struct pb_plan_out *plan = &e->map.plan->engine.out;
    *out_parts = *out_blocks = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        const struct pb_plan_made *made = &plan->made[i];
        const uint32_t values = pb_value_table_parts(made->blocks.values);
        *out_blocks = values > *out_blocks ? values : *out_blocks;
        *out_parts += (uint32_t)grid_of(e)->cols;
        for (uint32_t k = 1; k < made->blocks.levels; k++)
            *out_parts +=
                count(e->dispatch.out.made[i].level[k].size.w, made->blocks.format.block_px);
        *out_blocks = made->row_blocks > *out_blocks ? made->row_blocks : *out_blocks;
    }
}

int whole_encode_open(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan_out *plan = &e->map.plan->engine.out;
    struct whole_out *out = &e->dispatch.out;
    uint32_t n_blocks = 0;
    void *memory = NULL;
    int rc = 0;
    for (uint32_t i = 0; i < plan->n && rc == 0; i++)
        rc = open_made(e, i, err);
    for (uint32_t i = 0; i < PB_OUT_BATCHES && rc == 0; i++)
        rc = open_batch(e, &e->batch[i], err);
    count_lists(e, &out->parts_each, &n_blocks);
    rc = rc ? rc
            : e->ops->table(e->device, plan->strips * out->parts_each * sizeof *out->parts, err,
                            &memory);
    out->parts = memory;
    out->ready = calloc(n_blocks + 1, sizeof *out->ready);
    out->ready_block = calloc(n_blocks + 1, sizeof *out->ready_block);
    if (rc == 0 && (out->ready == NULL || out->ready_block == NULL))
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    return rc;
}

void whole_encode_close(struct pb_exec_whole *e)
{
    for (uint32_t i = 0; i < PB_OUT_BATCHES; i++)
        free(e->batch[i].block);
    free(e->dispatch.out.ready);
    free(e->dispatch.out.ready_block);
}

/* --- a row's blocks -------------------------------------------------------------------------- */

static void add_block(struct whole_out *out, struct whole_block block, struct pb_encode_block input)
{
    out->ready[out->n_ready] = input;
    out->ready_block[out->n_ready++] = block;
}

/* Planes of a tile that the product uses. */
static const float *tile_planes(const struct pb_exec_whole *e, const struct whole_made *made,
                                uint32_t number, struct pb_tile *out_tile)
{
    *out_tile = (struct pb_tile){.number = number, .core = pb_grid_core(grid_of(e), number)};
    return whole_out_place(e, number) + made->plan->first_plane * pb_tile_out_px(out_tile);
}

_Static_assert(sizeof(struct pb_statistics_plane) <= sizeof(struct pb_encode_block),
               "a list of blocks has room for as many planes");

/* Adds a plane for each band, if parts are made. */
static void tile_parts(struct pb_exec_whole *e, const struct whole_made *made, uint32_t number)
{
    const struct pb_encode_format *format = &made->plan->blocks.format;
    struct pb_tile tile;
    const float *planes = tile_planes(e, made, number, &tile);
    for (uint32_t b = 0; b < format->n_bands; b++)
        add_block(&e->dispatch.out, (struct whole_block){b, number, 0},
                  (struct pb_encode_block){
                      .data = planes + format->plane[b] * pb_tile_out_px(&tile),
                      .row_px = (uint32_t)tile.core.w,
                      .w = tile.core.w,
                      .h = tile.core.h,
                  });
}

static void tile_blocks(struct pb_exec_whole *e, const struct whole_made *made, uint32_t number)
{
    const int32_t side = made->plan->blocks.format.block_px;
    struct pb_tile tile;
    const float *planes = tile_planes(e, made, number, &tile);
    for (int32_t y = 0; y < tile.core.h; y += side)
        for (int32_t x = 0; x < tile.core.w; x += side)
            add_block(&e->dispatch.out,
                      (struct whole_block){0, (uint32_t)((tile.core.x + x) / side),
                                           (uint32_t)((tile.core.y + y) / side)},
                      (struct pb_encode_block){
                          .data = planes + (size_t)y * (size_t)tile.core.w + (size_t)x,
                          .plane_px = pb_tile_out_px(&tile),
                          .row_px = (uint32_t)tile.core.w,
                          .w = least(side, tile.core.w - x),
                          .h = least(side, tile.core.h - y),
                      });
}

/* Adds the blocks of the rows of a level that are on the device. */
static void level_blocks(struct pb_exec_whole *e, const struct whole_made *made, uint32_t k)
{
    const struct whole_level *l = &made->level[k];
    const int32_t side = made->plan->blocks.format.block_px;
    for (int32_t y = l->base; y < l->end; y += side)
        for (int32_t x = 0; x < l->size.w; x += side)
            add_block(&e->dispatch.out,
                      (struct whole_block){k, (uint32_t)(x / side), (uint32_t)(y / side)},
                      (struct pb_encode_block){
                          .data = l->pixels + (size_t)(y - l->base) * l->size.row_px + (size_t)x,
                          .plane_px = l->size.plane_px,
                          .row_px = l->size.row_px,
                          .w = least(side, l->size.w - x),
                          .h = least(side, l->end - y),
                      });
}

/* --- overviews ------------------------------------------------------------------------------- */

/* Address of pixel (x, y) of a level; y is one of the next rows. */
static float *place_in(const struct whole_level *l, int32_t x, int32_t y)
{
    return l->pixels + (size_t)(y - l->base) * l->size.row_px + (size_t)x;
}

static void add_part(struct whole_out *out, const struct whole_level *to, struct pb_halve_part part)
{
    part.to_plane_px = to->size.plane_px;
    part.to_row_px = to->size.row_px;
    out->row_parts[out->n_parts++] = part;
}

/* Queues the parts from `first` on, of `rows` rows at most. */
static int halve(struct pb_exec_whole *e, const struct whole_made *made, uint32_t first,
                 int32_t rows, struct pb_err *err)
{
    return e->ops->halve(e->device, QUEUE_OUT, e->dispatch.out.row_parts + first,
                         e->dispatch.out.n_parts - first, made->plan->n_planes, rows,
                         made->plan->blocks.nearest, err);
}

static int halve_tiles(struct pb_exec_whole *e, struct whole_made *made, struct pb_err *err)
{
    const uint32_t cols = (uint32_t)grid_of(e)->cols, first = e->dispatch.out.n_parts;
    const struct pb_pixel_join join = pb_device_blocks_join(&made->plan->blocks);
    struct whole_level *to = &made->level[1];
    struct pb_tile tile = {.number = 0};
    for (uint32_t i = 0; i < cols; i++) {
        const float *planes = tile_planes(e, made, e->dispatch.out.row * cols + i, &tile);
        add_part(&e->dispatch.out, to,
                 (struct pb_halve_part){.from = planes,
                                        .to = place_in(to, tile.core.x / 2, tile.core.y / 2),
                                        .from_plane_px = pb_tile_out_px(&tile),
                                        .from_row_px = (uint32_t)tile.core.w,
                                        .w = tile.core.w,
                                        .h = tile.core.h,
                                        .join = join});
    }
    to->end += (tile.core.h + 1) / 2;
    return halve(e, made, first, tile.core.h, err);
}

/* Halves the rows of level k that are on the device into the next level. */
static int halve_level(struct pb_exec_whole *e, struct whole_made *made, uint32_t k,
                       struct pb_err *err)
{
    const struct whole_level *l = &made->level[k];
    struct whole_level *to = &made->level[k + 1];
    const int32_t side = made->plan->blocks.format.block_px, rows = l->end - l->base;
    const uint32_t first = e->dispatch.out.n_parts;
    for (int32_t x = 0; x < l->size.w; x += side)
        add_part(&e->dispatch.out, to,
                 (struct pb_halve_part){.from = l->pixels + x,
                                        .to = place_in(to, x / 2, to->end),
                                        .from_plane_px = l->size.plane_px,
                                        .from_row_px = l->size.row_px,
                                        .w = least(side, l->size.w - x),
                                        .h = rows});
    to->end += (rows + 1) / 2;
    return halve(e, made, first, rows, err);
}

/* Makes levels as far as the row of tiles completes their rows. Their blocks are not yet encoded
 * when the rows are processed; work that overwrites them is queued after the encoding. */
static int make_overviews(struct pb_exec_whole *e, struct whole_made *made, struct pb_err *err)
{
    const uint32_t levels = made->plan->blocks.levels;
    int rc = levels > 0 ? halve_tiles(e, made, err) : 0;
    for (uint32_t k = 1; k <= levels && rc == 0; k++) {
        struct whole_level *l = &made->level[k];
        if (l->end - l->base < l->size.rows && l->end < l->size.h)
            break;
        if (pb_plan_out_makes(made->plan, k))
            level_blocks(e, made, k);
        rc = k < levels ? halve_level(e, made, k, err) : 0;
        l->base = l->end;
    }
    return rc;
}

/* --- parts of statistics --------------------------------------------------------------------- */

/* Writes the encoder's result for the blocks: all are present, one after the other. */
static void list_parts(const struct whole_batch *b, const struct pb_encode_block *ready,
                       const struct whole_batch_note *note)
{
    const size_t bytes =
        note->values ? sizeof(struct pb_value_part) : sizeof(struct pb_statistics_part);
    struct pb_statistics_plane *plane = (struct pb_statistics_plane *)(void *)b->input;
    struct pb_encoded *found = (struct pb_encoded *)(void *)(b->told + WHOLE_FOUND_AT);
    for (uint32_t i = 0; i < note->n; i++) {
        plane[i] = (struct pb_statistics_plane){
            .data = ready[i].data, .row_px = ready[i].row_px, .w = ready[i].w, .h = ready[i].h};
        found[i] =
            (struct pb_encoded){.at = i * bytes, .bytes = (uint32_t)bytes, .state = PB_ENCODED};
    }
}

static int find_parts(struct pb_exec_whole *e, const struct whole_batch_note *note,
                      const struct whole_batch *b, struct pb_err *err)
{
    const uint64_t side = (uint64_t)grid_of(e)->side_px;
    if (note->values)
        return whole_values_list(e, note, b, err);
    int rc = e->ops->statistics(e->device, QUEUE_OUT,
                                (const struct pb_statistics_plane *)(const void *)b->input, note->n,
                                side * side, (struct pb_statistics_part *)(void *)b->encoded, err);
    return rc ? rc : whole_values_add(e, note, b, err);
}

/* --- batches --------------------------------------------------------------------------------- */

static int queue_batch(struct pb_exec_whole *e, const struct wic_slot *slot, struct pb_err *err)
{
    const struct pb_plan_out *plan = &e->map.plan->engine.out;
    const struct whole_batch_note *note = slot->user;
    const struct whole_batch *b = &e->batch[slot->index];
    const struct pb_encode_batch batch = {
        .format = pb_plan_out_format(e->dispatch.out.made[note->made].plan, note->layer),
        .n_blocks = note->n,
        .blocks = b->input,
        .steps = note->layer == 0 ? e->dispatch.out.made[note->made].steps : NULL,
        .workspace = b->workspace,
        .out = b->encoded,
        .out_bytes = plan->encoded_bytes,
        .encoded = (struct pb_encoded *)(void *)(b->found + WHOLE_FOUND_AT),
        .used = (uint64_t *)(void *)b->found,
    };
    int rc = e->ops->mark(e->device, QUEUE_OUT, whole_event(e, EVENT_ENCODING, slot->index), err);
    if (rc == 0 && note->n > 0 && e->dispatch.out.made[note->made].plan->blocks.parts) {
        rc = find_parts(e, note, b, err);
    } else if (note->n > 0) {
        rc = rc ? rc : e->ops->encode(e->device, QUEUE_OUT, &batch, err);
        rc = rc ? rc
                : e->ops->copy(e->device, QUEUE_OUT, b->told, b->found, whole_found_bytes(note->n),
                               err);
    }
    return rc ? rc
              : e->ops->mark(e->device, QUEUE_OUT, whole_event(e, EVENT_BATCH, slot->index), err);
}

/* Sends the ready blocks of a layer, from `first` on; is_last: the row has no more blocks. */
static int send_batch(struct pb_exec_whole *e, struct whole_batch_note note, uint32_t first,
                      bool is_last, struct pb_err *err)
{
    const uint32_t cols = (uint32_t)grid_of(e)->cols;
    struct wic_slot slot = {.user = NULL};
    const uint64_t since = pb_clock_mono_ns();
    int rc = wic_acquire(e->link[WHOLE_BATCHES], WIC_FOREVER, &slot);
    whole_waited(e, PB_DEVICE_WAIT_DISPATCH_ROW, since);
    if (rc != 0)
        return rc;
    const struct whole_batch *b = &e->batch[slot.index];
    if (e->dispatch.out.made[note.made].plan->blocks.parts)
        list_parts(b, e->dispatch.out.ready + first, &note);
    else
        memcpy(b->input, e->dispatch.out.ready + first, note.n * sizeof *b->input);
    memcpy(b->block, e->dispatch.out.ready_block + first, note.n * sizeof *b->block);
    if (is_last && !pb_plan_out_has_planes(e->map.plan)) {
        note.first_tile = e->dispatch.out.row * cols;
        note.n_tiles = cols;
    }
    *(struct whole_batch_note *)slot.user = note;
    rc = queue_batch(e, &slot, err);
    return rc ? rc : wic_publish(e->link[WHOLE_BATCHES], &slot, 0);
}

/* Sends the values of each band of product i, which the last row of tiles completes. */
static int send_values(struct pb_exec_whole *e, uint32_t i, struct pb_err *err)
{
    const struct pb_device_blocks *blocks = &e->dispatch.out.made[i].plan->blocks;
    const uint32_t parts = pb_value_table_parts(blocks->values);
    int rc = 0;
    for (uint32_t b = 0; b < blocks->format.n_bands && rc == 0; b++) {
        e->dispatch.out.n_ready = 0;
        for (uint32_t k = 0; k < parts; k++)
            add_block(&e->dispatch.out, (struct whole_block){b, k, 0},
                      (struct pb_encode_block){.data = NULL});
        rc = send_batch(e, (struct whole_batch_note){.made = i, .n = parts, .values = true}, 0,
                        b + 1 == blocks->format.n_bands && i + 1 == e->map.plan->engine.out.n, err);
    }
    return rc;
}

/* Sends the ready blocks of product i, in batches. The last batch of a row of tiles reports the end
 * of the row; it is empty if the last product has no blocks in this row. */
static int encode_ready(struct pb_exec_whole *e, uint32_t i, struct pb_err *err)
{
    const struct pb_plan_made *made = e->dispatch.out.made[i].plan;
    const uint32_t layers = made->blocks.has_mask ? 2 : 1, n = e->dispatch.out.n_ready;
    const bool has_values =
        made->blocks.values > 0 && e->dispatch.out.row + 1 == (uint32_t)grid_of(e)->rows;
    int rc = 0;
    for (uint32_t layer = 0; layer < layers; layer++)
        for (uint32_t at = 0; at < n && rc == 0; at += made->batch[layer]) {
            const uint32_t left = n - at, most = made->batch[layer];
            const struct whole_batch_note note = {
                .made = i, .layer = layer, .n = left < most ? left : most};
            const bool is_last = left <= most && layer + 1 == layers &&
                                 i + 1 == e->map.plan->engine.out.n && !has_values;
            rc = send_batch(e, note, at, is_last, err);
        }
    if (n == 0 && i + 1 == e->map.plan->engine.out.n && !pb_plan_out_has_planes(e->map.plan))
        rc = send_batch(e, (struct whole_batch_note){.made = i}, 0, true, err);
    return rc == 0 && has_values ? send_values(e, i, err) : rc;
}

/* Adds the blocks of the row's tiles for the product. */
static void row_blocks(struct pb_exec_whole *e, const struct whole_made *made)
{
    const uint32_t cols = (uint32_t)grid_of(e)->cols;
    e->dispatch.out.n_ready = 0;
    for (uint32_t c = 0; c < cols && pb_plan_out_makes(made->plan, 0); c++)
        (made->plan->blocks.parts ? tile_parts : tile_blocks)(e, made,
                                                              e->dispatch.out.row * cols + c);
}

int whole_encode_row(struct pb_exec_whole *e, struct pb_err *err)
{
    struct whole_out *out = &e->dispatch.out;
    int rc = 0;
    out->row_parts = out->parts + out->row % e->map.plan->engine.out.strips * out->parts_each;
    out->n_parts = 0;
    for (uint32_t i = 0; i < e->map.plan->engine.out.n && rc == 0; i++) {
        row_blocks(e, &out->made[i]);
        rc = make_overviews(e, &out->made[i], err);
        rc = rc ? rc : encode_ready(e, i, err);
    }
    return rc;
}
