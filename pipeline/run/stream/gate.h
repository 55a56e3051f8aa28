/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GATE_H
#define PB_GATE_H
/* Gate of a pass: decides which tiles are left out, from the bands of each tile that are read
 * first. A struct pb_gate is shared by the readers, a struct pb_gate_reader is one reader's. */
#include "pipeline/run/stream/stream.h"

/* For a plan with a gate; the rest of a reader's state is not the gate's. plan is borrowed. */
int pb_gate_create(const struct pb_plan *plan, const struct pb_raster *const *raster,
                   struct pb_err *err, struct pb_gate **out_gate);
void pb_gate_destroy(struct pb_gate *gate); /* NULL is fine */
/* Counts the answer for a tile. Thread: any. */
void pb_gate_count_tile(struct pb_gate *gate, const struct pb_tile *tile, bool passes);
/* Call it when no reader is running. */
void pb_gate_count(const struct pb_gate *gate, struct pb_gate_report *out);

struct pb_gate_reader {
    struct pb_gate *gate;
    void *memory;
    struct pb_tile first; /* area of the current tile that is read first */
    struct pb_tile_in in; /* its memory: for each source, planes of PB_PLAN_FIRST */
};

int pb_gate_reader_init(struct pb_gate_reader *reader, struct pb_gate *gate, struct pb_err *err);
void pb_gate_reader_fini(struct pb_gate_reader *reader); /* zeroed is fine */
/* Sets reader->in to the part of the tile to be read first. */
void pb_gate_begin(struct pb_gate_reader *reader, const struct pb_tile *tile);
/* Call it after that read: *out_passes: true if the tile is to be computed. Counts the tile.
 * -EINVAL: an error in the plan. */
int pb_gate_passes(struct pb_gate_reader *reader, const struct pb_tile *tile, bool *out_passes);
/* Copies the first-read planes of a source to the tile's slot. */
void pb_gate_copy(const struct pb_gate_reader *reader, size_t source, const struct pb_window *slot);
#endif
