/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_tiles.h"
#include "config/pipeline_config.h"
#include "pipeline/plan/work.h"

#include "kernels/ops/geometry/warp.h"
#include "kernels/chain/chain.h"
#include "pipeline/product/product.h"
#include "pipeline/tiles/tiles.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest count of products that a worker may announce (PB_WORKER_PRODUCTS_MAX). */
enum { PRODUCTS_MAX = 256 };

int pb_run_tiles_find(struct pb_run_tiles *tiles, const struct pb_pipeline_config *pipeline,
                      struct pb_raster *raster, struct pb_err *err)
{
    const struct pb_warp_op *warp = pb_pipeline_tile_step(pipeline);
    const struct pb_raster_info *info = pb_raster_info(raster);
    struct pb_tile_list list;
    if (warp == NULL ||
        !((info->has_transform && info->has_crs) || info->n_gcps > 0 || info->has_rpc))
        return 0; /* without georeferencing the step reports the missing facts */
    int rc = pb_tiles_find(warp, raster, err, &list);
    if (rc == 0 && list.n == 0)
        rc = pb_fail(err, PB_E_INPUT_OUTSIDE, "no tile of the grid overlaps the scene");
    if (rc == 0)
        tiles->tile = calloc(list.n, sizeof *tiles->tile);
    if (rc == 0 && tiles->tile == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    for (size_t i = 0; rc == 0 && i < list.n; i++)
        tiles->tile[tiles->n++].place = list.tile[i];
    free(list.tile);
    return rc;
}

/* Tiles of a plan, counted like pb_run_passes_progress does. */
static uint64_t tiles_of(const struct pb_plan *plan)
{
    uint64_t n = pb_grid_count(&plan->layout.grid) + pb_plan_image_steps(plan);
    for (size_t i = 0; i < plan->n_earlier; i++)
        n += (uint64_t)pb_chain_rounds(plan->earlier[i]->work.chain) *
             pb_grid_count(&plan->earlier[i]->layout.grid);
    return n;
}

int pb_run_tiles_planned(struct pb_run_tiles *tiles, int rc, const struct pb_plan *plan,
                         struct pb_err *err)
{
    struct pb_run_tile *tile = &tiles->tile[tiles->at];
    if (rc < 0 && err->code == PB_E_INPUT_OUTSIDE) {
        tile->state = PB_TILE_OUTSIDE;
        if (tiles->outside.code == PB_OK)
            tiles->outside = *err;
        memset(err, 0, sizeof *err);
        return 0;
    }
    if (rc < 0)
        return rc;
    tile->w = plan->work.geometry.w;
    tile->h = plan->work.geometry.h;
    tile->passes = tiles_of(plan);
    return 0;
}

/* Error if the scene reaches no tile: the error of the first one, or, if that names only this tile,
 * the names of all tiles as far as they fit. */
static int none_reached(const struct pb_run_tiles *tiles, struct pb_err *err)
{
    const size_t n_all = tiles->n;
    char names[160] = "";
    size_t used = 0, named = 0;
    if (n_all == 1 || strstr(tiles->outside.msg, tiles->tile[0].place.id) == NULL)
        return pb_fail(err, PB_E_INPUT_OUTSIDE, "%s", tiles->outside.msg);
    while (named < n_all && used + PB_TILE_ID_BYTES + 24 < sizeof names) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", named > 0 ? ", " : "",
                                 tiles->tile[named].place.id);
        named++;
    }
    if (named < n_all)
        (void)snprintf(names + used, sizeof names - used, " and %zu more", n_all - named);
    return pb_fail(err, PB_E_INPUT_OUTSIDE, "the scene is outside of all %zu tiles: %s", n_all,
                   names);
}

int pb_run_tiles_settle(struct pb_run_tiles *tiles, const struct pb_pipeline_config *pipeline,
                        struct pb_err *err)
{
    const bool named = pb_pipeline_tile_step(pipeline)->tiles.n > 0;
    size_t n = 0, to_do = 0;
    for (size_t i = 0; i < tiles->n; i++)
        to_do += tiles->tile[i].state == PB_TILE_TO_DO;
    for (size_t i = 0; i < pipeline->n_products; i++)
        if (pipeline->products[i]->kind->series != NULL &&
            pipeline->products[i]->kind->series(pipeline->products[i]) != NULL)
            return pb_fail(err, PB_E_PIPELINE_TILES,
                           "a series has one set of rows a scene, so tiles cannot append to it: "
                           "leave 'append' out of product %zu",
                           i + 1);
    if (to_do == 0)
        return none_reached(tiles, err);
    for (size_t i = 0; i < tiles->n; i++) {
        if (tiles->tile[i].state == PB_TILE_TO_DO || named)
            tiles->tile[n++] = tiles->tile[i];
    }
    tiles->n = n;
    if (to_do > PB_TILES_MAX)
        return pb_fail(err, PB_E_PIPELINE_TILES,
                       "the scene touches %zu tiles; %d may be made of one scene", to_do,
                       PB_TILES_MAX);
    if (to_do * pipeline->n_products > PRODUCTS_MAX)
        return pb_fail(err, PB_E_PIPELINE_TILES,
                       "%zu tiles of %zu products each are more than the %d products that a job "
                       "may have",
                       to_do, pipeline->n_products, PRODUCTS_MAX);
    for (tiles->at = 0; tiles->tile[tiles->at].state != PB_TILE_TO_DO;)
        tiles->at++;
    return 0;
}

uint64_t pb_run_tiles_pixels(const struct pb_run_tiles *tiles, size_t *out_n)
{
    uint64_t pixels = 0;
    *out_n = 0;
    for (size_t i = 0; i < tiles->n; i++)
        if (tiles->tile[i].state == PB_TILE_TO_DO) {
            pixels += (uint64_t)tiles->tile[i].w * (uint64_t)tiles->tile[i].h;
            ++*out_n;
        }
    return pixels;
}

static size_t next_of(const struct pb_run_tiles *tiles)
{
    size_t i = tiles->at + 1;
    while (i < tiles->n && tiles->tile[i].state != PB_TILE_TO_DO)
        i++;
    return i;
}

bool pb_run_tiles_more(const struct pb_run_tiles *tiles)
{
    return next_of(tiles) < tiles->n;
}

bool pb_run_tiles_next(struct pb_run_tiles *tiles)
{
    if (!pb_run_tiles_more(tiles))
        return false;
    tiles->at = next_of(tiles);
    return true;
}

const struct pb_ground_tile *pb_run_tiles_place(const struct pb_run_tiles *tiles)
{
    return tiles->n > 0 ? &tiles->tile[tiles->at].place : NULL;
}

/* --- search for a valid pixel ----------------------------------------------------------------- */

static int look(void *object, const struct pb_tile *tile, const struct pb_tile_planes *pixels,
                uint32_t worker, struct pb_err *err)
{
    struct pb_run_tiles *tiles = object;
    const size_t n = (size_t)tile->core.w * (size_t)tile->core.h; /* the rest is padding */
    bool found = pixels->plane_px == 0 || atomic_load_explicit(&tiles->valid, memory_order_relaxed);
    (void)worker;
    (void)err;
    for (size_t b = 0; b < tiles->n_bands && !found; b++)
        for (size_t i = 0; i < n && !found; i++)
            found = !isnan(pixels->data[b * pixels->plane_px + i]);
    if (found && pixels->plane_px > 0)
        atomic_store(&tiles->valid, true);
    return 0;
}

struct pb_sink pb_run_tiles_sink(struct pb_run_tiles *tiles, const struct pb_product_env *env)
{
    atomic_store(&tiles->valid, false);
    tiles->n_bands = env->n_bands;
    return (struct pb_sink){
        .tile = look, .object = tiles, .product = (uint32_t)env->pipeline->n_products};
}

/* --- sums ------------------------------------------------------------------------------------- */

static void add_digits(struct pb_run_report *sum, const struct pb_run_report *of)
{
    for (size_t i = 0; i < of->n_digits; i++) {
        const struct pb_digits_report *one = &of->digits[i];
        size_t k = 0;
        while (k < sum->n_digits &&
               (strcmp(sum->digits[k].band, one->band) != 0 || sum->digits[k].kept != one->kept))
            k++;
        if (k == sum->n_digits && k == PB_BANDS_MAX)
            return;
        const uint64_t before = k < sum->n_digits ? sum->digits[k].pixels : 0;
        sum->n_digits += k == sum->n_digits;
        sum->digits[k] = *one;
        sum->digits[k].pixels += before;
    }
}

void pb_run_tiles_report(struct pb_run_tiles *tiles, const struct pb_run_report *of)
{
    struct pb_run_report *sum = &tiles->report;
    for (size_t i = 0; i < sizeof sum->stage / sizeof sum->stage[0]; i++) {
        const struct pb_stage_report before = sum->stage[i];
        sum->stage[i] = of->stage[i];
        sum->stage[i].busy_ns += before.busy_ns;
        sum->stage[i].parked_ns += before.parked_ns;
        sum->stage[i].tiles += before.tiles;
        sum->stage[i].bytes += before.bytes;
    }
    memcpy(sum->sync, of->sync, sizeof sum->sync);
    sum->gate.tiles += of->gate.tiles;
    sum->gate.left_out += of->gate.left_out;
    sum->gate.blocks += of->gate.blocks;
    add_digits(sum, of);
    if (of->memory_bytes > sum->memory_bytes)
        sum->memory_bytes = of->memory_bytes;
}

void pb_run_tiles_progress(const struct pb_run_tiles *tiles, uint64_t *out_done,
                           uint64_t *out_total)
{
    *out_done = *out_total = 0;
    for (size_t i = 0; i < tiles->n; i++) {
        *out_done += i < tiles->at ? tiles->tile[i].passes : 0;
        *out_total += i != tiles->at ? tiles->tile[i].passes : 0;
    }
}

void pb_run_tiles_fini(struct pb_run_tiles *tiles)
{
    free(tiles->tile);
    tiles->tile = NULL;
    tiles->n = 0;
}

const char *pb_run_tile_state(enum pb_tile_state state)
{
    static const char *const names[] = {"planned", "made", "empty", "outside"};
    return names[state];
}
