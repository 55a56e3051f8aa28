/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FIND_JOB_H
#define FIND_JOB_H
#include "pipeline/publish/manifest.h"

/* Calls pb_manifest_find for products in <scene>/<pipeline>. */
static inline int find_job(const char *products, const char *scene, const char *pipeline,
                           const char *id, char *out_directory, struct pb_manifest *out)
{
    const struct pb_manifest_job job = {id, scene, pipeline, PB_OUTPUT_PATH_DEFAULT};
    return pb_manifest_find(products, &job, out_directory, out);
}
#endif
