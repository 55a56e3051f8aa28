/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BUILDER_STATE_H
#define PB_BUILDER_STATE_H
/* What is behind struct pb_builder: for chain.c, which owns it, and builder.c. */
#include "kernels/graph/graph.h"
#include "kernels/graph/value_tags.h"

struct pb_band {
    char *name;
    pb_value value;
    float scale, offset; /* of a band of the scene; scale 0: it is none, or is not scaled */
};

#define PB_BUILDER_INPUTS_MAX 64
#define PB_BUILDER_NOTES_MAX  16
#define PB_BUILDER_NOTE_BYTES 240

struct pb_builder {
    struct pb_graph graph;
    pb_value input[PB_BUILDER_INPUTS_MAX]; /* of the chain, by number */
    int32_t n_inputs;
    struct pb_band *bands; /* in order of definition, names unique */
    size_t n_bands, bands_room;
    int error;           /* the first that ends the building; sticks */
    size_t step, output; /* what is being built, for mistakes */
    size_t n_mistakes;
    const struct pb_scene_facts *scene;
    int32_t source_grid[PB_SOURCES_MAX];
    bool has_gate;
    pb_value gate_keep;
    double gate_minimum;
    bool has_tiles;  /* a step cuts products into tiles */
    bool told_grids; /* of this step: that two grids do not go together */
    struct pb_value_tags tags;
    const char **class_names; /* n_class_names: bands whose values steps or products take for
                                 classes; borrowed */
    size_t n_class_names;
    char notes[PB_BUILDER_NOTES_MAX][PB_BUILDER_NOTE_BYTES];
    size_t n_notes;
    pb_diag_report *report; /* NULL: mistakes are counted only */
    void *report_to;
};

void pb_builder_init(struct pb_builder *b, pb_diag_report *report, void *to);
void pb_builder_fini(struct pb_builder *b);
/* Whether the limits of the scene allow a grid of w x h; else reports that. */
bool pb_builder_grid_fits(struct pb_builder *b, double w, double h);
/* Of a mistake about a grid whose map from the scene's is not known. */
#define PB_UNPLACED_SOURCE                                                                         \
    "a source that cannot be placed on the scene: both need a geotransform in the same "           \
    "coordinate system, with parallel axes"
/* " (10 x 20 pixels, 5 x 10 pixels)", or "" when no scene is there yet. */
void pb_builder_say_grids(const struct pb_builder *b, int32_t one, int32_t other, char *text,
                          size_t bytes);
/* The known band nearest to a name, or NULL. */
const char *pb_builder_nearest(const struct pb_builder *b, const char *name);
#endif
