/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TRIAL_H
#define PB_TRIAL_H
/* A pipeline's steps made ready to be built although some are wrong, so that one build after the
 * other finds the next mistake and not the consequences of the last. What a wrong step or entry
 * would have made is made by a stand-in; what was wrong in an entry is replaced by something that
 * builds. Works on copies; the pipeline stays as it is. Internal to config/; one thread. */
#include "config/config_parts.h"
#include "kernels/chain/chain.h"

struct pb_trial_step {
    const struct pb_step_config *config; /* NULL: a stand-in */
    struct pb_op_args args;              /* items and texts that are replaced live in the arena */
    bool doubtful; /* reading it brought mistakes: what follows from them is not told */
};

struct pb_trial {
    struct pb_arena *arena;
    const struct pb_pipeline_config *pipeline;
    struct pb_chain_input inputs[PB_BANDS_MAX];
    char names[PB_BANDS_MAX][24];
    struct pb_trial_step *steps; /* each of the pipeline's between two stand-ins */
    struct pb_chain_step *chain; /* the same for the builder */
    struct pb_chain_spec spec;   /* but for the outputs */
};

/* body: the pipeline's node. False: out of memory. */
bool pb_trial_init(struct pb_trial *trial, struct pb_arena *arena, const struct pb_load *load,
                   const struct pb_yaml *body, const struct pb_pipeline_config *pipeline,
                   const struct pb_pipeline_notes *notes);
/* Whether the failure of a step may come from mistakes already told. */
bool pb_trial_is_consequence(const struct pb_trial *trial, size_t step, const struct pb_diag *diag);
/* Makes the step build in spite of diag. False: out of memory. */
bool pb_trial_repair(struct pb_trial *trial, size_t step, const struct pb_diag *diag);
/* Gives an expression a text that builds. */
void pb_trial_blank(struct pb_arg_item *item);
/* The copy's items may be changed. */
struct pb_arg_item *pb_trial_items(struct pb_trial *trial, size_t step, size_t param);
#endif
