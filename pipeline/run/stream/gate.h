/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GATE_H
#define PB_GATE_H
/* The gate of a pass: which tiles are left out, decided by what was read first of each. A struct
 * pb_gate is shared by the readers, a struct pb_gate_reader is one reader's. */
#include "pipeline/run/stream/stream.h"

/* For a plan with a gate; what its readers hold beside is theirs. plan is borrowed. */
int pb_gate_create(const struct pb_plan *plan, const struct pb_raster *const *raster,
                   struct pb_err *err, struct pb_gate **out_gate);
void pb_gate_destroy(struct pb_gate *gate); /* NULL is fine */
/* When no reader is running. */
void pb_gate_count(const struct pb_gate *gate, struct pb_gate_report *out);

struct pb_gate_reader {
    struct pb_gate *gate;
    void *memory;
    struct pb_tile first; /* what is read first of the tile at hand */
    struct pb_tile_in in; /* where; of each source, planes of PB_PLAN_FIRST */
};

int pb_gate_reader_init(struct pb_gate_reader *reader, struct pb_gate *gate, struct pb_err *err);
void pb_gate_reader_fini(struct pb_gate_reader *reader); /* zeroed is fine */
/* Says what is to be read first of the tile: reader->in. */
void pb_gate_begin(struct pb_gate_reader *reader, const struct pb_tile *tile);
/* After that was read: whether the tile is to be computed. Counts it. -EINVAL: a mistake of the
 * plan. */
int pb_gate_passes(struct pb_gate_reader *reader, const struct pb_tile *tile, bool *out_passes);
/* Copies what was read first of a source to the tile's slot. */
void pb_gate_copy(const struct pb_gate_reader *reader, size_t source, const struct pb_window *slot);
#endif
