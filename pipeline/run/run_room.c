/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_room.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_room.h"

#define PACKED_MOST 1000

void pb_run_room_add(struct pb_run_room *room, const struct pb_product_env *env)
{
    for (size_t i = 0; i < env->pipeline->n_products; i++) {
        const struct pb_product_config *config = env->pipeline->products[i];
        const struct pb_product_type *type = pb_product_type(config->kind);
        bool packed = false;
        if (type->file_bytes == NULL)
            continue;
        const uint64_t bytes = type->file_bytes(env, config, &packed);
        room->exact += packed ? 0 : bytes;
        room->packed += packed ? bytes : 0;
    }
}

int pb_run_room_check(const struct pb_run_room *room, const struct pb_run_options *options,
                      struct pb_err *err)
{
    const uint64_t least = room->exact + room->packed / PACKED_MOST;
    const uint64_t most = options->config->limits.output_bytes;
    const char *where = options->directory != NULL  ? options->directory
                        : options->products != NULL ? options->products
                                                    : options->room;
    if (most > 0 && least > most)
        return pb_fail(err, PB_E_OUTPUT_LIMIT,
                       "the products would have at least %llu bytes; %llu are allowed "
                       "(limits.output)",
                       (unsigned long long)least, (unsigned long long)most);
    return where != NULL && least > 0 ? pb_file_room_below(where, least, err) : 0;
}
