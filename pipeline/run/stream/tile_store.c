/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/tile_store.h"
#include "pipeline/device/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct pb_tile_store {
    const struct pb_plan *plan;
    uint8_t *memory;
    size_t *at;         /* offset of each tile */
    atomic_bool closed; /* atomic, because a reader may begin as late as that */
};

int pb_tile_store_create(const struct pb_plan *plan, struct pb_err *err,
                         struct pb_tile_store **out_store)
{
    struct pb_tile_store *store = calloc(1, sizeof *store);
    const uint32_t n = pb_grid_count(&plan->layout.grid);
    void *memory = NULL;
    size_t at = 0;
    if (store == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the tiles of rounds");
    store->plan = plan;
    store->at = calloc(n, sizeof *store->at);
    int rc = store->at == NULL ? pb_fail(err, PB_E_MEMORY, "out of memory for the tiles of rounds")
                               : pb_mem_alloc(PB_MEM_HOST, plan->memory.kept_bytes, err, &memory);
    store->memory = memory;
    if (rc < 0 || store->at == NULL) {
        pb_tile_store_destroy(store);
        return rc;
    }
    for (uint32_t i = 0; i < n; i++) {
        store->at[i] = at;
        at += pb_plan_kept_bytes_of(plan, i);
    }
    *out_store = store;
    return 0;
}

void pb_tile_store_put(struct pb_tile_store *store, const struct pb_tile *tile, const void *slot)
{
    memcpy(store->memory + store->at[tile->number], slot,
           pb_slot_tile_bytes(&store->plan->layout.format, tile));
}

void pb_tile_store_get(const struct pb_tile_store *store, const struct pb_tile *tile, void *slot)
{
    memcpy(slot, store->memory + store->at[tile->number],
           pb_slot_tile_bytes(&store->plan->layout.format, tile));
}

void pb_tile_store_close(struct pb_tile_store *store)
{
    atomic_store(&store->closed, true);
}

bool pb_tile_store_is_closed(const struct pb_tile_store *store)
{
    return atomic_load(&store->closed);
}

void pb_tile_store_destroy(struct pb_tile_store *store)
{
    if (store == NULL)
        return;
    if (store->memory != NULL)
        pb_mem_free(PB_MEM_HOST, store->memory, store->plan->memory.kept_bytes);
    free(store->at);
    free(store);
}
