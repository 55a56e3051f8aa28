/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_METADATA_H
#define PB_RUN_METADATA_H
/* Metadata that a run reads with its scene. One thread an object. */
#include "pipeline/metadata/metadata.h"
#include "pipeline/run/run.h"

struct pb_run_metadata {
    struct pb_metadata facts;       /* family NULL: the pipeline names no metadata */
    char file[256];                 /* base names of the metadata files; "" = no file was read */
    const char *name[PB_FILES_MAX]; /* names of the files at delivery; borrowed */
};

/* Reads the files in options, else those next to the input. info: facts of the scene; fails if its
 * coordinate system differs from that of the metadata, because they are of another scene then.
 * options and pipeline are borrowed as long as the object is used. Errors: pb_sidecar_open,
 * pb_metadata_parse.
 */
int pb_run_metadata_read(struct pb_run_metadata *out, const struct pb_run_options *options,
                         const char *scene, const struct pb_raster_info *info, struct pb_err *err);
/* Facts of the metadata for output.path and output.name; *out_facts borrows from metadata. */
void pb_run_metadata_output(const struct pb_run_metadata *metadata,
                            struct pb_output_facts *out_facts);
#endif
