/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INFINITIES_H
#define PB_INFINITIES_H
/* Counts valid pixels of floating-point bands that are infinite: steps and products treat them as
 * invalid. Counts only tiles that the host reads, not those whose blocks a GPU decodes.
 * Thread: any, unless a function states otherwise. */
#include "pipeline/plan/plan.h"
#include "pipeline/product/notes.h"

struct pb_infinities;

/* plan: plan of the last pass, with n_floats > 0; borrowed. */
int pb_infinities_create(const struct pb_plan *plan, struct pb_err *err,
                         struct pb_infinities **out);
void pb_infinities_destroy(struct pb_infinities *infinities); /* NULL is fine. Thread: one */
/* Counts the pixels of a tile after the reader has read it. */
void pb_infinities_count(struct pb_infinities *infinities, const struct pb_tile *tile,
                         const struct pb_tile_in *in);
/* Adds a sentence for each band with infinite pixels. */
void pb_infinities_note(const struct pb_infinities *infinities, struct pb_notes *notes);
#endif
