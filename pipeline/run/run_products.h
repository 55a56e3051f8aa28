/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_PRODUCTS_H
#define PB_RUN_PRODUCTS_H
/* Products of a run, in the order of the pipeline. One thread, except for the sinks. */
#include "pipeline/product/product.h"
#include "pipeline/run/stream/block_room.h"
#include "pipeline/run/base/sink.h"

struct pb_run_products {
    void **product; /* results of type[i]->create */
    const struct pb_product_type **type;
    size_t n;
    struct pb_sink *sinks; /* sinks of the products that take tiles */
    size_t n_sinks;
    struct pb_block_room room; /* memory for blocks that a device makes */
};

/* Makes the products of env->pipeline; room_bytes: for blocks that a device makes. After a failure
 * pb_run_products_destroy destroys the products made so far. */
int pb_run_products_create(const struct pb_product_env *env, uint64_t room_bytes,
                           struct pb_err *err, struct pb_run_products *out_products);
/* Zeroed products are fine. Removes no file. */
void pb_run_products_destroy(struct pb_run_products *products);
#endif
