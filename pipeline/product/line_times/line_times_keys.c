/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/pipeline_config.h"
#include "pipeline/product/line_times/line_times.h"
#include "pipeline/product/product_kinds.h"

static const struct pb_key keys[] = {
    PB_PRODUCT_KEY_NAME(struct pb_line_times_config, "times"),
};

static const char *never(const struct pb_product_config *product,
                         const struct pb_pipeline_config *pipeline)
{
    (void)product;
    return pipeline->input.stream == NULL
               ? "line_times is a table of lines that arrived as a stream (input.stream), and "
                 "files have no times of lines"
               : NULL;
}

const struct pb_product_kind pb_kind_line_times = {
    .section =
        {"line_times",
         "Table of the lines of a stream, as CSV: the time of each, and which never arrived.", keys,
         sizeof keys / sizeof keys[0]},
    .bytes = sizeof(struct pb_line_times_config),
    .is_optional = true,
    .never = never,
};
