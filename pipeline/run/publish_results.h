/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_RESULTS_H
#define PB_PUBLISH_RESULTS_H
/* Publishes the results of a run. */
#include "pipeline/publish/publish.h"
#include "pipeline/run/run.h"
#include "pipeline/run/run_products.h"

/* Opens the place for the products of a run. */
int pb_publish_begin(const struct pb_run_options *run, const struct pb_output_facts *facts,
                     const struct pb_raster_info *info, struct pb_err *err,
                     struct pb_publish **out_publish);
/* Commits the n results of the products. If another process took the scene's place since the run
 * began, the STAC items, whose ids contain the place, are written again for the next free one.
 * products: NULL = the products are of several tiles, and most are already destroyed; such a
 * conflict is output.exists then. out_directory: PATH_MAX bytes. */
int pb_publish_results(struct pb_publish *publish, const struct pb_run_products *products,
                       struct pb_product_result *results, size_t n, struct pb_err *err,
                       char *out_directory);
#endif
