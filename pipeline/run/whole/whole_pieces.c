/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Lists the blocks of all sources as pieces, each once, sorted by the first tile that needs them.
 */
#include "pipeline/run/whole/whole_pieces.h"

#include <errno.h>
#include <stdlib.h>

#define NEVER UINT32_MAX

enum {
    PART_BYTES = 1 << 20, /* size of parts of uncompressed blocks: one read */
    PIECES_MOST = 1 << 24
};

/* A source as rows and columns of pieces. */
struct cells {
    const struct pb_block_layout *layout;
    uint32_t parts, part_rows; /* parts of a block; rows of a part */
    uint32_t *first;           /* first tile that needs the piece; NEVER: no tile */
    uint64_t n;
};

static bool is_plain(const struct pb_raw_blocks *blocks)
{
    return blocks->layout->compression == 1;
}

bool pb_whole_is_compressed(const struct pb_raw_blocks *blocks, const struct pb_whole_piece *piece)
{
    return !piece->by_host && !is_plain(blocks);
}

int pb_whole_no_memory(struct pb_err *err)
{
    return pb_fail(err, PB_E_MEMORY, "out of memory for the order of a scene's blocks");
}

static int cells_init(struct cells *cells, const struct pb_raw_blocks *blocks, uint64_t slot_bytes)
{
    const struct pb_block_layout *l = blocks->layout;
    uint64_t most = slot_bytes < PART_BYTES ? slot_bytes : PART_BYTES;
    cells->layout = l;
    cells->part_rows = l->block_h;
    if (is_plain(blocks) && !blocks->how.by_host && l->block_bytes > most)
        cells->part_rows = (uint32_t)(most / l->row_bytes > 0 ? most / l->row_bytes : 1);
    cells->parts = (l->block_h + cells->part_rows - 1) / cells->part_rows;
    cells->n = (uint64_t)l->across * l->down * cells->parts;
    if (cells->n > PIECES_MOST)
        return -ENOMEM;
    cells->first = malloc(cells->n * sizeof *cells->first);
    for (uint64_t i = 0; cells->first != NULL && i < cells->n; i++)
        cells->first[i] = NEVER;
    return cells->first != NULL ? 0 : -ENOMEM;
}

/* Row of pieces that has a row of pixels. */
static uint32_t row_of(const struct cells *cells, int32_t y)
{
    uint32_t h = cells->layout->block_h;
    return (uint32_t)y / h * cells->parts + (uint32_t)y % h / cells->part_rows;
}

static void note_tile(struct cells *cells, const struct pb_rect *read, uint32_t tile)
{
    uint32_t w = cells->layout->block_w;
    if (read->w <= 0 || read->h <= 0)
        return;
    for (uint32_t row = row_of(cells, read->y); row <= row_of(cells, read->y + read->h - 1); row++)
        for (uint32_t col = (uint32_t)read->x / w; col <= (uint32_t)(read->x + read->w - 1) / w;
             col++) {
            uint32_t *first = &cells->first[(uint64_t)row * cells->layout->across + col];
            *first = *first == NEVER ? tile : *first;
        }
}

/* Pixels of the piece; h 0: it is below the image, like the last parts of some last blocks. */
static struct pb_rect rect_of(const struct cells *cells, uint32_t col, uint32_t row)
{
    const struct pb_block_layout *l = cells->layout;
    int64_t x = (int64_t)col * l->block_w, end_x = x + l->block_w;
    int64_t top = (int64_t)(row / cells->parts) * l->block_h, end_y = top + l->block_h;
    int64_t y = top + (int64_t)(row % cells->parts) * cells->part_rows;
    end_y = y + cells->part_rows < end_y ? y + cells->part_rows : end_y;
    end_x = end_x < l->width ? end_x : l->width;
    end_y = end_y < l->height ? end_y : l->height;
    return (struct pb_rect){(int32_t)x, (int32_t)y, (int32_t)(end_x - x), (int32_t)(end_y - y)};
}

/* Planes of blocks that the plan needs of a source; the mask follows them. */
static uint32_t planes_of(const struct pb_plan_source *source, const struct pb_raw_blocks *blocks)
{
    return blocks->layout->planar ? (uint32_t)source->n_bands : 1;
}

static bool has_mask_pieces(const struct pb_raw_blocks *blocks)
{
    return blocks->how.mask == PB_RAW_MASK_HOST ||
           (blocks->how.mask == PB_RAW_MASK_ALPHA && blocks->layout->planar);
}

/* Piece for needed plane p of a cell that the host decodes. */
static struct pb_whole_piece host_piece(const struct pb_whole_map *map, uint32_t source,
                                        const struct cells *cells, uint64_t cell, uint32_t p)
{
    const struct pb_plan_source *from = &map->plan->work.source[source];
    const struct pb_raw_blocks *blocks = &map->blocks[source];
    const struct pb_block_layout *l = cells->layout;
    uint32_t planes = planes_of(from, blocks);
    struct pb_whole_piece piece = {.first = cells->first[cell], .by_host = true};
    piece.is_mask = p == planes;
    piece.is_apart = piece.is_mask && !(blocks->how.by_host && l->bits == 8);
    piece.plane = piece.is_mask || !l->planar ? 0 : (uint32_t)from->bands[p] - 1;
    piece.block = cell * (planes + 1) + p;
    piece.rect = rect_of(cells, (uint32_t)(cell % l->across), (uint32_t)(cell / l->across));
    piece.bytes = (uint64_t)piece.rect.h * l->block_w * (piece.is_mask ? 1 : l->bits / 8);
    return piece;
}

static struct pb_whole_piece stored_piece(const struct pb_raw_blocks *blocks,
                                          const struct cells *cells, uint64_t cell, uint32_t plane)
{
    const struct pb_block_layout *l = cells->layout;
    uint32_t col = (uint32_t)(cell % l->across), row = (uint32_t)(cell / l->across);
    struct pb_whole_piece piece = {.plane = plane, .first = cells->first[cell]};
    piece.block = ((uint64_t)plane * l->down + row / cells->parts) * l->across + col;
    piece.rect = rect_of(cells, col, row);
    piece.bytes = blocks->place[piece.block].bytes;
    piece.least = pb_block_layout_need(l, row / cells->parts);
    if (piece.bytes > 0 && is_plain(blocks)) {
        piece.from = (uint64_t)(row % cells->parts) * cells->part_rows * l->row_bytes;
        piece.bytes = (uint64_t)piece.rect.h * l->row_bytes;
    }
    return piece;
}

static struct pb_whole_piece piece_of(const struct pb_whole_map *map, uint32_t source,
                                      const struct cells *cells, uint64_t cell, uint32_t p)
{
    const struct pb_plan_source *from = &map->plan->work.source[source];
    const struct pb_raw_blocks *blocks = &map->blocks[source];
    bool is_mask = p == planes_of(from, blocks);
    if (blocks->how.by_host || (is_mask && blocks->how.mask == PB_RAW_MASK_HOST))
        return host_piece(map, source, cells, cell, p);
    int32_t band = is_mask ? blocks->alpha_band : blocks->layout->planar ? from->bands[p] : 1;
    struct pb_whole_piece piece = stored_piece(blocks, cells, cell, (uint32_t)band - 1);
    piece.is_mask = piece.is_apart = is_mask;
    return piece;
}

/* Lists the pieces of a source; at NULL: only counts them. */
static uint64_t list_pieces(const struct pb_whole_map *map, uint32_t source,
                            const struct cells *cells, struct pb_whole_piece *at)
{
    const struct pb_raw_blocks *blocks = &map->blocks[source];
    uint64_t n = 0;
    for (uint64_t i = 0; i < cells->n; i++) {
        if (cells->first[i] == NEVER)
            continue;
        uint32_t pieces =
            planes_of(&map->plan->work.source[source], blocks) + has_mask_pieces(blocks);
        for (uint32_t p = 0; p < pieces; p++, n++)
            if (at != NULL) {
                at[n] = piece_of(map, source, cells, i, p);
                at[n].source = at[n].part = source;
            }
    }
    return n;
}

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Pieces of equal layout follow each other: masks of sources that the device decodes are
 * after their pixels. (If the host decodes, a cell's pixels and mask need one read when they are of
 * one size.) */
static int by_place(const void *a, const void *b)
{
    const struct pb_whole_piece *x = a, *y = b;
    int c = compare(x->source, y->source);
    c = c != 0 ? c : compare(x->is_apart, y->is_apart);
    c = c != 0 ? c : compare(x->block, y->block);
    return c != 0 ? c : compare(x->from, y->from);
}

int pb_whole_by_first(const void *a, const void *b)
{
    const struct pb_whole_piece *x = a, *y = b;
    return x->first != y->first ? compare(x->first, y->first) : by_place(a, b);
}

int pb_whole_in_group(const void *a, const void *b)
{
    const struct pb_whole_piece *x = a, *y = b;
    return (x->bytes == 0) != (y->bytes == 0) ? (x->bytes == 0) - (y->bytes == 0) : by_place(a, b);
}

static int make_pieces(struct pb_whole_map *map, struct cells *cells, struct pb_err *err)
{
    const struct pb_plan *plan = map->plan;
    uint64_t n = 0;
    for (uint32_t t = 0; t < map->n_tiles; t++) {
        struct pb_tile tile = pb_plan_tile(plan, t, t);
        for (uint32_t i = 0; i < plan->work.n_sources; i++)
            if (cells[i].n > 0)
                note_tile(&cells[i], &tile.read[plan->work.source[i].window], t);
    }
    for (uint32_t i = 0; i < plan->work.n_sources; i++)
        n += list_pieces(map, i, &cells[i], NULL);
    map->piece = n < NEVER ? calloc(n + 1, sizeof *map->piece) : NULL;
    if (map->piece == NULL)
        return pb_whole_no_memory(err);
    for (uint32_t i = 0; i < plan->work.n_sources; i++)
        map->n_pieces += (uint32_t)list_pieces(map, i, &cells[i], map->piece + map->n_pieces);
    qsort(map->piece, map->n_pieces, sizeof *map->piece, pb_whole_by_first);
    return 0;
}

int pb_whole_pieces_make(struct pb_whole_map *map, uint64_t slot_bytes, const bool *leave_out,
                         struct pb_err *err)
{
    const struct pb_plan *plan = map->plan;
    struct cells cells[PB_FILES_MAX] = {{.n = 0}};
    int rc = 0;
    for (uint32_t i = 0; i < plan->work.n_sources && rc == 0; i++)
        if (plan->work.source[i].n_bands > 0 && (leave_out == NULL || !leave_out[i]))
            rc = cells_init(&cells[i], &map->blocks[i], slot_bytes);
    if (rc < 0)
        rc = pb_whole_no_memory(err);
    rc = rc ? rc : make_pieces(map, cells, err);
    for (uint32_t i = 0; i < plan->work.n_sources; i++)
        free(cells[i].first);
    return rc;
}
