/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PIPELINE_CONFIG_H
#define PB_PIPELINE_CONFIG_H
/* A pipeline of a configuration: input, steps and products. Its owner is struct pb_config.
 * Read-only; any thread. */
#include "config/exchange.h"
#include "config/input_config.h"
#include "config/output_config.h"

#include <stddef.h>
#include <stdint.h>

struct pb_product_config;
struct pb_op;
struct pb_warp_op; /* kernels/ops/geometry/warp.h */

struct pb_step_config {
    const struct pb_op *op;
    void *params;                       /* the operator's struct */
    struct pb_exchange_config exchange; /* that the operator chose for its rounds; pattern NULL =
                                           none */
    const struct pb_product_config *product; /* that made the step for itself; NULL = of the file */
    int line, col;
};

struct pb_pipeline_config {
    char *name;
    int32_t priority; /* priority of its jobs; the highest is first */
    struct pb_input_config input;
    struct pb_output_config output;
    struct pb_exchange_config exchange; /* exchange of tiles; default: unidirectional */
    struct pb_step_config *steps;
    size_t n_steps;
    struct pb_product_config **products;
    size_t n_products;
    int line, col;
    char digest[33]; /* digest of its text, set by the service; "" = unknown */
};

/* The step whose grid cuts products into tiles; NULL: there is none. */
const struct pb_warp_op *pb_pipeline_tile_step(const struct pb_pipeline_config *pipeline);
#endif
