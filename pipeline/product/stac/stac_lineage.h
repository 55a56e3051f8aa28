/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_LINEAGE_H
#define PB_STAC_LINEAGE_H
/* The processing of the pixels as a text for people, for "processing:lineage": which files were
 * read, how they were scaled, which pixels were invalid, and every step with its parameters. Read
 * from the pipeline's config and the operators' descriptors, so that a new operator is recorded
 * without a line here. */
#include "pipeline/product/product.h"

/* "Made from s.tif by pipeline vegetation ..." malloc'd, the caller's; NULL = out of memory.
 * inputs: the files that were read; NULL = not known. */
char *pb_stac_lineage(const struct pb_product_env *env, const struct pb_input_files *inputs);
#endif
