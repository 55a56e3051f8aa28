/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INPUT_FILES_READ_H
#define PB_INPUT_FILES_READ_H
/* Files that a run has read, with their checksums (input_sum.h computes them). Plain data. */
#include "config/input_values.h"
#include "pipeline/io/checksum.h"

#include <stdint.h>

/* Purpose for which a file was read. */
enum pb_input_role {
    PB_INPUT_PIXELS,
    PB_INPUT_METADATA,
    PB_INPUT_SIDECAR, /* file next to an image that GDAL has read */
    PB_INPUT_SOURCE   /* pixels of input.sources, which are not part of the scene */
};
#define PB_INPUT_FILES_MAX                                                                         \
    (2 * PB_FILES_MAX + PB_SPARE_FILES_MAX + PB_METADATA_OPEN_MAX + 1 + PB_SIDECARS_MAX)
struct pb_input_file {
    char name[800]; /* name inside the folder; UTF-8 (pb_input_id_set) */
    uint64_t bytes;
    char checksum[PB_CHECKSUM_TEXT_BYTES];
    enum pb_input_role role;
};
struct pb_input_files {
    char folder[800]; /* name of a scene that is a folder; "" = the files are loose */
    bool is_set;      /* set of loose files; a set may have a single file */
    size_t n;
    struct pb_input_file file[PB_INPUT_FILES_MAX];
};
/* "pixels", "metadata", "sidecar", "source" */
const char *pb_input_role_name(enum pb_input_role role);
#endif
