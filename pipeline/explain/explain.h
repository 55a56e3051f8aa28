/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXPLAIN_H
#define PB_EXPLAIN_H
/* What a run would do, as JSON: which file each band is, what is left out, calibration, validity,
 * steps, grid, products and where they go, memory, and how it is scheduled. Reads headers and
 * metadata, which the run has open already, names in the scene's folder and manifests where the
 * products would go; no pixels, and nothing is written. One thread. */
#include "pipeline/run/run.h"

struct pb_json;

struct pb_explain_options {
    const char *products;     /* the directory that output.path begins in */
    bool is_group;            /* run_options.input stands for loose files of a folder */
    const char *const *names; /* of the n_names files whose metadata told that; NULL: names told */
    size_t n_names;
};

/* Writes members into the open object of `json`; service/doc/report.md lists them. run was created
 * without `products`. 0; what the run would fail with although its plan is made, when the place of
 * its products is not to be had: output.exists, output.path. The members are written all the same.
 */
int pb_explain(const struct pb_run *run, const struct pb_explain_options *options,
               struct pb_json *json, struct pb_err *err);
#endif
