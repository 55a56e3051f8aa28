/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXPLAIN_H
#define PB_EXPLAIN_H
/* Description of a run, before it is executed, as JSON: assignment of files to bands, omitted
 * files, calibration, validity, steps, grid, products and their place, memory, and schedule.
 * Reads headers and metadata, which the run has already open, names in the scene's folder and
 * manifests at the products' place; reads no pixels, and writes nothing. One thread. */
#include "pipeline/run/run.h"

struct pb_json;

struct pb_explain_options {
    const char *products; /* directory at which output.path begins */
    /* files of a scene that run_options.input represents, which are loose in a folder; NULL: the
     * input is a file, a folder or an archive */
    const struct pb_scene_manifest *loose;
};

/* Writes members into the open object of `json`; service/doc/report.md lists them. run was
 * created without `products`. Returns 0; or the error that the run would report after planning
 * if the place of its products cannot be used: output.exists, output.path. The members are
 * written anyway. */
int pb_explain(const struct pb_run *run, const struct pb_explain_options *options,
               struct pb_json *json, struct pb_err *err);
#endif
