/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_AREAS_H
#define PB_RUN_AREAS_H
/* Positions in the scene of the areas that steps name by coordinates of another system than the
 * scene's. One thread an object. */
#include "pipeline/plan/plan.h"

struct pb_polygon_masks;
struct pb_polygons;

struct pb_run_areas {
    struct pb_plan_area *area;
    size_t n;
    struct pb_polygon_masks *masks; /* masks of the steps that cut; NULL if no step cuts */
    char warning[400]; /* warning about left-out parts of polygon files; "" if absent */
    uint64_t bytes;    /* bytes that these hold, without those of threads */
};

/* Path of a file that the configuration names; a relative one is relative to its directory.
 * Returns false if it is longer than PATH_MAX. */
bool pb_run_config_path(const struct pb_config *config, const char *text, char *out_path);
/* Opens the files that the steps name, for a process that is about to lose the right to open files
 * (pb_vector_hand). Thread: init. */
void pb_run_areas_hand(const struct pb_config *config, const struct pb_pipeline_config *pipeline);
/* Returns true if a step or product of a pipeline reads polygons, which a run holds before it has
 * its plan. */
bool pb_run_areas_read_polygons(const struct pb_config *config);
/* Fills a zeroed object. The raster is the one whose grid is the scene's; all arguments are
 * borrowed for the call. Errors: those of pb_vector_bounds and pb_vector_read, memory. Needs fini
 * in any case. */
int pb_run_areas_find(struct pb_run_areas *areas, const struct pb_config *config,
                      const struct pb_pipeline_config *pipeline, struct pb_raster *raster,
                      struct pb_err *err);
/* Allocates memory for the threads that read by the plan. Call it after the plan, before the first
 * read. */
int pb_run_areas_ready(struct pb_run_areas *areas, const struct pb_plan *plan, struct pb_err *err);
void pb_run_areas_fini(struct pb_run_areas *areas);
#endif
