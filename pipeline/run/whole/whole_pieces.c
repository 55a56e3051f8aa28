/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Lists the blocks of all sources as pieces, each once, sorted by the first tile that needs them.
 */
#include "pipeline/run/whole/whole_pieces.h"
#include "pipeline/plan/layout.h"

#include <errno.h>
#include <stdlib.h>

#define NEVER UINT32_MAX

enum {
    PIECES_MOST = 1 << 24,
    CHUNK_FIRST = 16, /* least pieces of the gate in its first turn, and in a later one */
    CHUNK_MOST = 128
};

/* First and last tile that need a piece; first NEVER: no tile. */
struct span {
    uint32_t first, last;
};

/* A source, or a mask that has blocks of its own, as rows and columns of pieces. */
struct cells {
    const struct pb_block_layout *layout; /* NULL: no pieces */
    bool is_mask;
    uint32_t parts, part_rows;         /* parts of a block; rows of a part */
    struct span *tiles[PB_PLAN_PARTS]; /* for each part of its bands; NULL: no bands */
    uint64_t n;
};

static bool is_plain(const struct pb_block_layout *layout)
{
    return layout->compression == 1;
}

const struct pb_block_layout *pb_whole_layout(const struct pb_raw_blocks *blocks,
                                              const struct pb_whole_piece *piece)
{
    return piece->is_mask && blocks->mask != NULL ? blocks->mask : blocks->layout;
}

bool pb_whole_is_compressed(const struct pb_raw_blocks *blocks, const struct pb_whole_piece *piece)
{
    return !piece->by_host && !is_plain(pb_whole_layout(blocks, piece));
}

int pb_whole_no_memory(struct pb_err *err)
{
    return pb_fail(err, PB_E_MEMORY, "out of memory for the order of a scene's blocks");
}

static struct span *make_spans(uint64_t n)
{
    struct span *spans = malloc(n * sizeof *spans);
    for (uint64_t i = 0; spans != NULL && i < n; i++)
        spans[i] = (struct span){NEVER, 0};
    return spans;
}

/* is_mask: for the mask. */
static int cells_init(struct cells *cells, const struct pb_plan_source *source,
                      const struct pb_raw_blocks *blocks, bool is_mask, uint64_t slot_bytes)
{
    const struct pb_block_layout *l = is_mask ? blocks->mask : blocks->layout;
    bool good = true;
    uint64_t most = slot_bytes < PB_RAW_PART_BYTES ? slot_bytes : PB_RAW_PART_BYTES;
    cells->layout = l;
    cells->is_mask = is_mask;
    cells->part_rows = l->block_h;
    if (is_plain(l) && !blocks->how.by_host && l->block_bytes > most)
        cells->part_rows = (uint32_t)(most / l->row_bytes > 0 ? most / l->row_bytes : 1);
    cells->parts = (l->block_h + cells->part_rows - 1) / cells->part_rows;
    cells->n = (uint64_t)l->across * l->down * cells->parts;
    if (cells->n > PIECES_MOST)
        return -ENOMEM;
    for (int part = 0; part < PB_PLAN_PARTS; part++) {
        const struct pb_plan_bands bands = pb_plan_bands_of(source, (enum pb_plan_part)part);
        if (bands.n == 0 || (is_mask && !bands.has_mask))
            continue;
        cells->tiles[part] = make_spans(cells->n);
        good = good && cells->tiles[part] != NULL;
    }
    return good ? 0 : -ENOMEM;
}

/* Row of pieces that has a row of pixels. */
static uint32_t row_of(const struct cells *cells, int32_t y)
{
    uint32_t h = cells->layout->block_h;
    return (uint32_t)y / h * cells->parts + (uint32_t)y % h / cells->part_rows;
}

static void note_tile(struct cells *cells, enum pb_plan_part part, const struct pb_rect *read,
                      uint32_t tile)
{
    struct span *tiles = cells->tiles[part];
    uint32_t w = cells->layout != NULL ? cells->layout->block_w : 0;
    if (tiles == NULL || read->w <= 0 || read->h <= 0)
        return;
    for (uint32_t row = row_of(cells, read->y); row <= row_of(cells, read->y + read->h - 1); row++)
        for (uint32_t col = (uint32_t)read->x / w; col <= (uint32_t)(read->x + read->w - 1) / w;
             col++) {
            struct span *span = &tiles[(uint64_t)row * cells->layout->across + col];
            span->first = span->first == NEVER ? tile : span->first;
            span->last = tile;
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

/* Planes of blocks that the plan needs of a source; a mask of such blocks follows them. */
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
    struct pb_whole_piece piece = {.by_host = true};
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
    struct pb_whole_piece piece = {.plane = plane};
    piece.block = ((uint64_t)plane * l->down + row / cells->parts) * l->across + col;
    piece.block += cells->is_mask ? blocks->n_image : 0;
    piece.rect = rect_of(cells, col, row);
    piece.bytes = blocks->place[piece.block].bytes;
    piece.least = pb_block_layout_need(l, row / cells->parts);
    if (piece.bytes > 0 && is_plain(l)) {
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
    bool is_mask = cells->is_mask || p == planes_of(from, blocks);
    if (blocks->how.by_host || (is_mask && blocks->how.mask == PB_RAW_MASK_HOST))
        return host_piece(map, source, cells, cell, p);
    int32_t band = cells->is_mask           ? 1
                   : is_mask                ? blocks->alpha_band
                   : blocks->layout->planar ? from->bands[p]
                                            : 1;
    struct pb_whole_piece piece = stored_piece(blocks, cells, cell, (uint32_t)band - 1);
    piece.is_mask = piece.is_apart = is_mask;
    return piece;
}

/* Part of the source's bands to which needed plane p of a cell belongs. */
static enum pb_plan_part part_of(const struct pb_plan_source *from,
                                 const struct pb_raw_blocks *blocks, const struct cells *cells,
                                 uint32_t p)
{
    const struct pb_plan_bands later = pb_plan_bands_of(from, PB_PLAN_LATER);
    const bool is_later = cells->is_mask || p == planes_of(from, blocks) ? later.has_mask
                          : blocks->layout->planar                       ? p < later.n
                                                                         : later.n > 0;
    return is_later ? PB_PLAN_LATER : PB_PLAN_FIRST;
}

/* Count of pieces of a cell. */
static uint32_t pieces_of(const struct pb_plan_source *from, const struct pb_raw_blocks *blocks,
                          const struct cells *cells)
{
    if (cells->n == 0)
        return 0;
    return cells->is_mask ? 1 : planes_of(from, blocks) + has_mask_pieces(blocks);
}

/* Lists the pieces of a source; at NULL: only counts them. */
static uint64_t list_pieces(const struct pb_whole_map *map, uint32_t source,
                            const struct cells *cells, struct pb_whole_piece *at)
{
    const struct pb_raw_blocks *blocks = &map->blocks[source];
    const struct pb_plan_source *from = &map->plan->work.source[source];
    const bool gated = map->plan->layout.gate.chain != NULL;
    const uint32_t pieces = pieces_of(from, blocks, cells);
    uint64_t n = 0;
    for (uint64_t i = 0; i < cells->n; i++)
        for (uint32_t p = 0; p < pieces; p++) {
            const enum pb_plan_part part = part_of(from, blocks, cells, p);
            const struct span tiles = cells->tiles[part][i];
            if (tiles.first == NEVER)
                continue;
            if (at != NULL) {
                at[n] = piece_of(map, source, cells, i, p);
                at[n].source = source;
                at[n].part = part == PB_PLAN_FIRST ? 0 : source + gated;
                at[n].first = tiles.first;
                at[n].last = tiles.last;
            }
            n++;
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
    int c = compare(x->turn, y->turn);
    c = c != 0 ? c : compare(x->first, y->first);
    return c != 0 ? c : by_place(a, b);
}

int pb_whole_in_group(const void *a, const void *b)
{
    const struct pb_whole_piece *x = a, *y = b;
    return (x->bytes == 0) != (y->bytes == 0) ? (x->bytes == 0) - (y->bytes == 0) : by_place(a, b);
}

/* Lets the pieces of the gate and the others take turns: those of the gate for chunks of rows of
 * tiles, which grow like the first groups; then the others of the rows before the last chunk. */
static int set_turns(struct pb_whole_map *map)
{
    const uint32_t cols = (uint32_t)map->plan->layout.grid.cols;
    const uint32_t rows = (uint32_t)map->plan->layout.grid.rows;
    uint32_t *chunk = calloc(rows, sizeof *chunk), number = 0, most = CHUNK_FIRST, n = 0;
    if (chunk == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < map->n_pieces; i++)
        chunk[map->piece[i].first / cols] += map->piece[i].part == 0;
    for (uint32_t r = 0; r < rows; r++) {
        n += chunk[r];
        chunk[r] = number;
        if (n < most)
            continue;
        most = most < CHUNK_MOST ? 2 * most : most;
        number++;
        n = 0;
    }
    for (uint32_t i = 0; i < map->n_pieces; i++) {
        struct pb_whole_piece *piece = &map->piece[i];
        piece->turn =
            piece->part == 0 ? 2 * chunk[piece->first / cols] : 2 * chunk[piece->last / cols] + 3;
    }
    free(chunk);
    return 0;
}

/* Records the tiles that need each piece. cells: for each source, then for each mask. */
static void note_tiles(const struct pb_whole_map *map, struct cells *cells)
{
    const struct pb_plan *plan = map->plan;
    for (uint32_t t = 0; t < map->n_tiles; t++) {
        const struct pb_tile tile = pb_plan_tile(plan, t, t);
        struct pb_tile first = {.number = t};
        if (plan->layout.gate.chain != NULL)
            first = pb_plan_gate_tile(plan, &tile);
        for (uint32_t i = 0; i < 2 * plan->work.n_sources; i++) {
            const uint32_t window = plan->work.source[i % plan->work.n_sources].window;
            note_tile(&cells[i], PB_PLAN_LATER, &tile.read[window], t);
            note_tile(&cells[i], PB_PLAN_FIRST, &first.read[window], t);
        }
    }
}

/* Lets a row of cells be needed as early as the first of its cells and the first of the rows below
 * it. Bands decode whole rows then, from the top down, also before a step that changes the grid. */
static void settle_rows(const struct cells *cells, struct span *tiles)
{
    uint32_t first = NEVER;
    for (uint64_t end = cells->n; end > 0; end -= cells->layout->across) {
        struct span *row = tiles + end - cells->layout->across;
        for (uint32_t col = 0; col < cells->layout->across; col++)
            first = row[col].first < first ? row[col].first : first;
        for (uint32_t col = 0; col < cells->layout->across; col++)
            row[col].first = row[col].first == NEVER ? NEVER : first;
    }
}

static void settle_all(const struct pb_whole_map *map, struct cells *cells)
{
    const struct pb_plan *plan = map->plan;
    if (pb_chain_keeps_grid(plan->work.chain) || plan->engine.whole.one_band ||
        plan->engine.whole.managed)
        return;
    for (uint32_t i = 0; i < 2 * plan->work.n_sources; i++)
        for (int part = 0; part < PB_PLAN_PARTS; part++)
            if (cells[i].tiles[part] != NULL)
                settle_rows(&cells[i], cells[i].tiles[part]);
}

static int make_pieces(struct pb_whole_map *map, struct cells *cells, struct pb_err *err)
{
    const struct pb_plan *plan = map->plan;
    uint64_t n = 0;
    const uint32_t sources = (uint32_t)plan->work.n_sources;
    note_tiles(map, cells);
    settle_all(map, cells);
    for (uint32_t i = 0; i < 2 * sources; i++)
        n += list_pieces(map, i % sources, &cells[i], NULL);
    map->piece = n < NEVER ? calloc(n + 1, sizeof *map->piece) : NULL;
    if (map->piece == NULL)
        return pb_whole_no_memory(err);
    for (uint32_t i = 0; i < 2 * sources; i++)
        map->n_pieces +=
            (uint32_t)list_pieces(map, i % sources, &cells[i], map->piece + map->n_pieces);
    if (plan->layout.gate.chain != NULL && set_turns(map) < 0)
        return pb_whole_no_memory(err);
    qsort(map->piece, map->n_pieces, sizeof *map->piece, pb_whole_by_first);
    return 0;
}

int pb_whole_pieces_make(struct pb_whole_map *map, uint64_t slot_bytes, const bool *leave_out,
                         struct pb_err *err)
{
    const struct pb_plan *plan = map->plan;
    const uint32_t sources = (uint32_t)plan->work.n_sources;
    struct cells cells[2 * PB_FILES_MAX] = {{.n = 0}};
    int rc = 0;
    for (uint32_t k = 0; k < 2 * sources && rc == 0; k++) {
        const uint32_t i = k % sources;
        const bool is_mask = k >= sources;
        if (plan->work.source[i].n_bands > 0 && (leave_out == NULL || !leave_out[i]) &&
            (!is_mask || map->blocks[i].mask != NULL))
            rc = cells_init(&cells[k], &plan->work.source[i], &map->blocks[i], is_mask, slot_bytes);
    }
    if (rc < 0)
        rc = pb_whole_no_memory(err);
    rc = rc ? rc : make_pieces(map, cells, err);
    for (uint32_t i = 0; i < 2 * sources; i++)
        for (int part = 0; part < PB_PLAN_PARTS; part++)
            free(cells[i].tiles[part]);
    return rc;
}
