/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_LINEAGE_H
#define PB_STAC_LINEAGE_H
/* Description of the processing for users, for "processing:lineage": the files that were read,
 * their scaling, the invalid pixels, and every step with its parameters. Read from the
 * pipeline's configuration and the operators' descriptors, so that a new operator is recorded
 * without a line here. */
#include "pipeline/product/product.h"

/* "Made from s.tif by pipeline vegetation ..." malloc'd, the caller's; NULL = out of memory.
 * inputs: the files that were read; NULL = unknown. */
char *pb_stac_lineage(const struct pb_product_env *env, const struct pb_scene_manifest *inputs);
#endif
