/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_SOURCES_H
#define PB_RUN_SOURCES_H
/* Open files of a run: the one that gives the grid, then those of input.sources, with the positions
 * of their grids on it. A file of a scene that no output needs is not opened: placeholder facts
 * replace it in the plan. One thread an object. */
#include "pipeline/plan/plan.h"
#include "pipeline/run/run.h"

struct pb_polygon_masks;
struct pb_run_columns;

struct pb_run_sources {
    const struct pb_run_options *options;   /* borrowed */
    const char *scene;                      /* borrowed */
    struct pb_raster *raster[PB_FILES_MAX]; /* NULL: not opened */
    struct pb_plan_other others[PB_FILES_MAX - 1];
    struct pb_raster_info *stand_in; /* facts in place of the files that are not opened */
    /* Tables for the steps that calibrate: the source after those of the files; NULL if unused. */
    struct pb_sar_planes *tables;
    struct pb_run_columns *columns; /* numbers of the tables for columns; NULL if unused */
    bool cuts;                      /* a source of polygons exists */
};

/* options and scene must stay valid while the object is used. On failure *err names the file; fini
 * is needed in any case. input.grid: a file of the scene covers another area, or a page has another
 * size or place. */
int pb_run_sources_open(struct pb_run_sources *sources, const struct pb_run_options *options,
                        const char *scene, struct pb_err *err);
/* Adds one source after all others: the planes of polygons that steps cut with, which must stay
 * while it is open; NULL: no step cuts. Call it before the plan is made. */
int pb_run_sources_cut(struct pb_run_sources *sources, const struct pb_polygon_masks *masks,
                       struct pb_err *err);
/* Number of sources of the plan in addition to the scene. */
size_t pb_run_sources_others(const struct pb_run_sources *sources);
/* Sets the calibration of the plan's steps from the metadata. Call it after the plan is made,
 * before the first read; facts must stay valid. */
void pb_run_sources_calibrate(struct pb_run_sources *sources, const struct pb_plan *plan,
                              const struct pb_metadata *facts);
/* Message for the user: pages of files that are not read; "" if absent. */
void pb_run_sources_pages(const struct pb_run_sources *sources, char *text, size_t bytes);
void pb_run_sources_close(struct pb_run_sources *sources);
/* Checks that the plan reads only open files; else fails with system. */
int pb_run_sources_check(const struct pb_run_sources *sources, const struct pb_plan *plan,
                         struct pb_err *err);
/* Checks that no file that was read has been replaced or changed. */
int pb_run_sources_unchanged(const struct pb_run_sources *sources, struct pb_err *err);
/* Returns rc; if *err reports a failure of one of the files, adds its name. */
int pb_run_sources_blame(const struct pb_run_sources *sources, int rc, struct pb_err *err);
#endif
