/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_PAIRS_H
#define PB_SCENE_PAIRS_H
/* Bands of one scene, each with a band of another scene: lists of equal length, the second one's
 * bands on the grid of the first one's. During an operator's build() only. */
#include "kernels/expr/grid_args.h"

/* The lists as the configuration has them, and what they are called there. */
struct pb_scene_pairs {
    const struct pb_items *bands, *others; /* members of the struct that build() got */
    const char *bands_name, *others_name;
    struct pb_grid_method method; /* for the others */
};

/* Reports lists that are not equally long: -EINVAL. */
int pb_scene_pairs_check(const struct pb_scene_pairs *pairs, struct pb_builder *b);
/* op of pair i. */
pb_value pb_scene_pairs_emit(const struct pb_scene_pairs *pairs, struct pb_builder *b,
                             enum pb_vm_op op, size_t i);
/* Defines what op makes of each pair as the band that the entry of `bands` says, all of them before
 * one is replaced that a later pair has. 0, -EINVAL or -ENOMEM. */
int pb_scene_pairs_define(const struct pb_scene_pairs *pairs, struct pb_builder *b,
                          enum pb_vm_op op);
#endif
