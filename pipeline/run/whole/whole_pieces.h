/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_PIECES_H
#define PB_WHOLE_PIECES_H
/* The list of pieces of a map. Private to run/whole. */
#include "pipeline/run/whole/whole_map.h"

/* Fills map->piece and map->n_pieces; plan, blocks and n_tiles are set before. leave_out: as
 * for pb_whole_map_init. Errors: memory. */
int pb_whole_pieces_make(struct pb_whole_map *map, uint64_t slot_bytes, const bool *leave_out,
                         struct pb_err *err);
/* Orders of pieces, for qsort: by the first tile that needs them; within a group by source and
 * place, those that are not stored last. */
int pb_whole_by_first(const void *a, const void *b);
int pb_whole_in_group(const void *a, const void *b);
/* Sets the error; returns its code. */
int pb_whole_no_memory(struct pb_err *err);
#endif
