/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_products.h"
#include "config/pipeline_config.h"

#include <stdlib.h>
#include <string.h>

int pb_run_products_create(const struct pb_product_env *env, uint64_t room_bytes,
                           struct pb_err *err, struct pb_run_products *p)
{
    const struct pb_pipeline_config *pipeline = env->pipeline;
    p->product = calloc(pipeline->n_products + 1, sizeof *p->product);
    p->type = calloc(pipeline->n_products + 1, sizeof *p->type);
    p->sinks = calloc(pipeline->n_products + 1, sizeof *p->sinks);
    if (p->product == NULL || p->type == NULL || p->sinks == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the products");
    int made = pb_block_room_init(&p->room, room_bytes, err);
    if (made < 0)
        return made;
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_type *type = pb_product_type(pipeline->products[i]->kind);
        int rc = type->create(env, pipeline->products[i], err, &p->product[i]);
        if (rc < 0)
            return rc;
        p->type[i] = type;
        p->n = i + 1;
        struct pb_sink sink = {.object = p->product[i], .product = (uint32_t)i};
        if (pb_product_by_device(env, pipeline->products[i]))
            sink = (struct pb_sink){.object = p->product[i],
                                    .product = (uint32_t)i,
                                    .block = type->block,
                                    .expect = type->expect,
                                    .room = type->keeps_blocks ? &p->room : NULL};
        else {
            sink.tile = type->tile;
            sink.by_lines = type->by_lines;
        }
        if (type->tile != NULL)
            p->sinks[p->n_sinks++] = sink;
    }
    return 0;
}

void pb_run_products_destroy(struct pb_run_products *p)
{
    for (size_t i = 0; i < p->n; i++)
        p->type[i]->destroy(p->product[i]);
    pb_block_room_fini(&p->room);
    free(p->product);
    free(p->type);
    free(p->sinks);
    memset(p, 0, sizeof *p);
}
