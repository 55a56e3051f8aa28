/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VALUE_TAGS_H
#define PB_VALUE_TAGS_H
/* The tags (kernels/band_tags.h) of the values of a graph. An input has that of its file. A
 * view, a masked and a resampled value have that of their operand, where() that of its branches
 * when these agree. Other operations have none, unless their step says that it keeps them (struct
 * pb_op.keeps_tags): then the tags of the bands that the step read are joined. Owned by
 * the builder. One thread. */
#include "kernels/graph/graph.h"
#include "kernels/band_tags.h"

struct pb_value_tags_known {
    struct pb_band_tags tags;
    const char *name; /* of the input that it comes from first; borrowed */
};

struct pb_value_tags {
    struct pb_value_tags_known *known;
    size_t n_known, known_room;
    int32_t *of; /* n; by value: index in known; -1 = none */
    size_t n, room;
    int32_t input[64]; /* by number of the input: index in known */
    size_t n_inputs;
};

/* Two tags that do not agree, for a message. */
struct pb_value_tags_conflict {
    const struct pb_value_tags_known *one, *other; /* borrowed until the next call */
};

void pb_value_tags_fini(struct pb_value_tags *q);
/* Of the next input of the chain, in their order. 0 or -ENOMEM. */
int pb_value_tags_add_input(struct pb_value_tags *q, const struct pb_band_tags *tags,
                            const char *name);
/* Finds the tags of values that the graph got since the last call. 0 or -ENOMEM. */
int pb_value_tags_follow(struct pb_value_tags *q, const struct pb_graph *graph);
/* NULL = none. Of values that were followed; borrowed until the next call. */
const struct pb_band_tags *pb_value_tags_of(const struct pb_value_tags *q, pb_value value);
/* The value is made of values of which read[id] is not 0 (n_read of them) by a step that needs
 * equal tags. keeps: it is a weighted mean of them or a selection among them, and gets the tags
 * that they share. 0; 1 = they do not agree, as *out says; -ENOMEM. */
struct pb_value_tags_read {
    const uint8_t *read;
    size_t n_read;
    bool keeps;
};
int pb_value_tags_keep(struct pb_value_tags *q, const struct pb_graph *graph,
                       const struct pb_value_tags_read *of, pb_value value,
                       struct pb_value_tags_conflict *out);
#endif
