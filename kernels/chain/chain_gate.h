/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_GATE_H
#define PB_CHAIN_GATE_H
/* The gate of a chain while it is being made: which values are invalid wherever nothing passes, so
 * that tiles of them may be left out. Internal to kernels/chain/; one thread. */
#include "kernels/chain/chain_stage.h"
#include "kernels/graph/builder_state.h"

struct pb_chain_gating {
    struct pb_chain *chain; /* makes the plane of keep; NULL: there is none */
    uint8_t *muted;         /* by node */
    int32_t grid;           /* of keep */
    double minimum;
    bool follows_reductions; /* keep does: it masks, but no tile is left out */
};

/* After the steps, before any pass is planned: adds views of keep to the graph. Without a gate
 * everything stays zero. 0, -ENOMEM, -E2BIG. */
int pb_chain_gating_init(struct pb_builder *b, const struct pb_chain_spec *spec,
                         struct pb_chain_gating *gating);
/* Keeps gating->chain, which is somebody's by then. */
void pb_chain_gating_fini(struct pb_chain_gating *gating);

/* Before pb_chain_plan of a pass with these outputs: gives it the gate when all of them are invalid
 * where nothing passes. names: of the outputs, to say which is not; NULL = nobody asks. */
void pb_chain_gating_give(const struct pb_chain_gating *gating, const pb_value *outputs, size_t n,
                          const char *const *names, struct pb_chain *pass);
/* After it: how far around a tile's core keep must be looked at. */
void pb_chain_gating_reach(const struct pb_graph *graph, struct pb_chain *pass);
#endif
