/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/line_times/line_times.h"

#include "pipeline/product/product.h"
#include "pipeline/product/product_lines.h"
#include "pipeline/product/product_text.h"
#include "pipeline/raster/raster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_BYTES = 56 };

static const char HEAD[] = "line,datetime,gap\n";

struct table {
    const struct pb_product_env *env;
    const struct pb_product_config *config;
};

static uint64_t table_bytes(const struct pb_product_env *env,
                            const struct pb_product_config *config)
{
    (void)config;
    return sizeof(struct table) + sizeof HEAD + (uint64_t)env->info->height * ROW_BYTES;
}

static int table_ready(const struct pb_product_env *env, const struct pb_product_config *config,
                       struct pb_err *err)
{
    (void)config;
    return pb_raster_has_lines(env->raster)
               ? 0
               : pb_fail(err, PB_E_INPUT_DATETIME,
                         "line_times is a table of lines that arrived as a stream, and %.200s is a "
                         "file without times of lines",
                         env->scene);
}

static int table_create(const struct pb_product_env *env, const struct pb_product_config *config,
                        struct pb_err *err, void **out_product)
{
    struct table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the table of lines");
    *table = (struct table){env, config};
    *out_product = table;
    return 0;
}

/* Writes the table. Returns its length. */
static size_t print(const struct pb_product_env *env, char *out)
{
    char time[PB_LINE_TIME_BYTES];
    size_t n = sizeof HEAD - 1;
    (void)memcpy(out, HEAD, sizeof HEAD);
    for (int32_t y = 0; y < env->info->height; y++) {
        pb_product_line_time(pb_raster_acquired_ns(env->raster, y), time);
        n += (size_t)snprintf(out + n, ROW_BYTES, "%d,%s,%d\n", (int)y, time,
                              pb_raster_is_gap(env->raster, y) ? 1 : 0);
    }
    return n;
}

static int table_finish(void *product, const struct pb_product_result *earlier, size_t n_earlier,
                        struct pb_err *err, struct pb_product_result *out_result)
{
    const struct table *table = product;
    struct pb_product_result result = {.kind = &pb_kind_line_times,
                                       .name = table->config->name,
                                       .media_type = "text/csv",
                                       .config = table->config};
    (void)earlier;
    (void)n_earlier;
    pb_product_file(table->env, result.config, result.file, sizeof result.file);
    char *text = malloc(table_bytes(table->env, table->config));
    const size_t bytes = text != NULL ? print(table->env, text) : 0;
    const char *const parts[] = {text};
    const int rc = pb_product_write(table->env, parts, &bytes, 1, err, &result);
    free(text);
    if (rc == 0)
        *out_result = result;
    return rc;
}

const struct pb_product_type pb_product_line_times = {
    .kind = &pb_kind_line_times,
    .suffix = ".lines.csv",
    .asset = "lines",
    .title = "Times of lines",
    .role = "metadata",
    .bytes = table_bytes,
    .ready = table_ready,
    .create = table_create,
    .finish = table_finish,
    .destroy = free,
};
