/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FINISH_H
#define PB_FINISH_H
/* Finishes the products of a run after its last tile, several at the same time. */
#include "pipeline/run/run_products.h"

/* Finishes up to `threads` products at a time, the caller's thread included; then the STAC items,
 * which describe the other products, one by one. out_results has room for all products and gets
 * them in the order of the pipeline, STAC items last. The first failure sets files->stop, which
 * ends the others, and is returned when all have ended. */
int pb_finish_products(const struct pb_run_products *products, uint32_t threads,
                       struct pb_file_progress *files, struct pb_err *err,
                       struct pb_product_result *out_results, size_t *out_n);
/* Writes the STAC items again, because their directory has changed. results: results of all
 * products, from pb_finish_products. */
int pb_finish_items(const struct pb_run_products *products, struct pb_err *err,
                    struct pb_product_result *results);
#endif
