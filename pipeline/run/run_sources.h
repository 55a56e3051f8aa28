/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_SOURCES_H
#define PB_RUN_SOURCES_H
/* The open files of a run: the one that gives the grid, then those of input.sources, with where
 * their grids lie on it. A file of a scene that no output needs is not opened: a stand-in has its
 * place in the plan. One thread an object. */
#include "pipeline/plan/plan.h"
#include "pipeline/run/run.h"

struct pb_polygon_masks;

struct pb_run_sources {
    const struct pb_run_options *options;   /* borrowed */
    const char *scene;                      /* borrowed */
    struct pb_raster *raster[PB_FILES_MAX]; /* NULL: not opened */
    struct pb_plan_other others[PB_FILES_MAX - 1];
    struct pb_raster_info *stand_in; /* of those that are not opened */
    struct pb_sar_planes *tables; /* that steps which calibrate take, the source after those of the
                                     files; NULL: they take none */
    bool cuts;                    /* there is a source of polygons */
};

/* options and scene are to stay while the object is used. On failure *err names the file; fini is
 * needed in any case. input.grid: a file of the scene lies elsewhere. */
int pb_run_sources_open(struct pb_run_sources *sources, const struct pb_run_options *options,
                        const char *scene, struct pb_err *err);
/* One source more, behind all others: the planes of polygons that steps cut with, which stay while
 * it is open; NULL: there are none. Before the plan. */
int pb_run_sources_cut(struct pb_run_sources *sources, const struct pb_polygon_masks *masks,
                       struct pb_err *err);
/* How many sources beside the scene the plan has. */
size_t pb_run_sources_others(const struct pb_run_sources *sources);
/* What the plan's steps calibrate with is that of the metadata. After the plan is made, before the
 * first read; facts stay. */
void pb_run_sources_calibrate(struct pb_run_sources *sources, const struct pb_plan *plan,
                              const struct pb_metadata *facts);
/* For people: the pages of files that are not read; "": there are none. */
void pb_run_sources_pages(const struct pb_run_sources *sources, char *text, size_t bytes);
void pb_run_sources_close(struct pb_run_sources *sources);
/* The plan reads no file that is not open; system otherwise. */
int pb_run_sources_check(const struct pb_run_sources *sources, const struct pb_plan *plan,
                         struct pb_err *err);
/* None of the files that were read is another one now. */
int pb_run_sources_unchanged(const struct pb_run_sources *sources, struct pb_err *err);
/* Returns rc; of a failure, what is told of one of the files names it. */
int pb_run_sources_blame(const struct pb_run_sources *sources, int rc, struct pb_err *err);
#endif
