/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_METADATA_H
#define PB_RUN_METADATA_H
/* The metadata that a run reads with its scene. One thread an object. */
#include "pipeline/metadata/metadata.h"
#include "pipeline/run/run.h"

struct pb_run_metadata {
    struct pb_metadata facts;       /* family NULL: the pipeline names none */
    char file[256];                 /* base names of the metadata files; "" = none was read */
    const char *name[PB_FILES_MAX]; /* of the files as they were delivered; borrowed */
};

/* Reads the files that options hand over, else those beside the input. info: of the scene; its
 * coordinate system is the one that the metadata tell, or they are of another scene. options and
 * pipeline are borrowed as long as the object is used. Errors: pb_sidecar_open, pb_metadata_parse.
 */
int pb_run_metadata_read(struct pb_run_metadata *out, const struct pb_run_options *options,
                         const char *scene, const struct pb_raster_info *info, struct pb_err *err);
/* What output.path and output.name take of it; *out_facts borrows from metadata. */
void pb_run_metadata_output(const struct pb_run_metadata *metadata,
                            struct pb_output_facts *out_facts);
#endif
