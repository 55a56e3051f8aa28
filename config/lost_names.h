/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LOST_NAMES_H
#define PB_LOST_NAMES_H
/* The bands of steps and inputs that were dropped because of a mistake. A step of the operator
 * pb_lost_names defines them as poison, unless they are there already, so that later steps are
 * checked and their use of these bands is not reported. Every word that may be a band's name is
 * taken: more than would have been made, which hides a mistake at worst. Internal to config/; one
 * thread. */
#include "config/config_parts.h"

struct pb_arena;

/* Its struct is a struct pb_items, the names. Not in the registry. */
extern const struct pb_op pb_lost_names;

/* Of an input with mistakes, and of unknown keys. body: the pipeline's node, a map. False: out of
 * memory; so below. The strings are the nodes' own. */
bool pb_lost_of_body(struct pb_arena *arena, const struct pb_yaml *body,
                     const struct pb_pipeline_notes *notes, struct pb_items *out_names);
/* Of an entry of the list of steps with mistakes. op: its operator, NULL = not known. What is good
 * in the operator's own parameters is left out: the step itself makes that. */
bool pb_lost_of_entry(struct pb_arena *arena, const struct pb_load *load,
                      const struct pb_yaml *entry, const struct pb_op *op,
                      struct pb_items *out_names);
#endif
