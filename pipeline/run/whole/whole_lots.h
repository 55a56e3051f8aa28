/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_LOTS_H
#define PB_WHOLE_LOTS_H
/* Planes and blocks of a map whose planes are managed memory (whole_pages.h): bytes of the planes
 * that a piece, a tile or a gate takes, and groups that are small enough for the chunks and the
 * memory of blocks that decoding may have. Arithmetic; any thread. */
#include "pipeline/run/whole/whole_map.h"
#include "pipeline/run/whole/whole_pages.h"

enum { PB_WHOLE_RANGES = 2 * PB_SOURCES_MAX }; /* most of a tile */

/* Appends the bytes of the planes that a piece is decoded into: at most two ranges. A piece next to
 * the last one in its rows adds none. */
void pb_whole_piece_ranges(const struct pb_whole_map *map, const struct pb_whole_piece *piece,
                           struct pb_whole_ranges *out);
/* Appends the bytes of the windows that a tile reads: at most PB_WHOLE_RANGES. */
void pb_whole_tile_ranges(const struct pb_whole_map *map, const struct pb_tile *tile,
                          struct pb_whole_ranges *out);
/* The same for the gate of a tile; first: the part of the tile that the gate reads. */
void pb_whole_gate_ranges(const struct pb_whole_map *map, const struct pb_tile *first,
                          struct pb_whole_ranges *out);

/* Chunks that groups take, while they are made. */
struct pb_whole_counted {
    uint32_t *stamp; /* for each chunk: number of the last group that has counted it */
    uint32_t number;
};
int pb_whole_counted_init(struct pb_whole_counted *counted, const struct pb_whole_map *map,
                          struct pb_err *err);
void pb_whole_counted_fini(struct pb_whole_counted *counted);
/* End of the longest group of the pieces first .. end: all of them if planes are device memory. */
uint32_t pb_whole_group_end(const struct pb_whole_map *map, struct pb_whole_counted *counted,
                            uint32_t first, uint32_t end);
/* Bytes of the pieces of a group in the memory of blocks. */
uint64_t pb_whole_group_bytes(const struct pb_whole_map *map, uint32_t first, uint32_t end);
#endif
