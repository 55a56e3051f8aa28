/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OUTPUT_CONFIG_H
#define PB_OUTPUT_CONFIG_H
/* The section `output` of a pipeline. Its owner is struct pb_config. Read-only; any thread. */
#include "config/base/checksum_kind.h"

/* What to do when the place of the products is another input's. */
/* OWN is no word of the configuration: only products of this input are replaced, in whatever
 * version of the place they are. */
enum pb_existing { PB_EXISTING_REFUSE, PB_EXISTING_REPLACE, PB_EXISTING_VERSION, PB_EXISTING_OWN };

struct pb_output_config {
    char *path; /* of the directory of a scene's products; config/output/output_path.h */
    char *name; /* of a product's file without its suffix; NULL = <scene>, <scene>.<product> */
    enum pb_existing exists;
    enum pb_checksum checksum; /* of inputs, and of files unless stac.checksum says another */
};

/* The number of a word of output.exists, or -1. */
int pb_existing_find(const char *word);
#endif
