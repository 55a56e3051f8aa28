/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Makes the parts of a run once its scene is open, in this order: device, plan, place, products,
 * first pass. */
#include "config/config.h"
#include "pipeline/io/file_room.h"
#include "pipeline/plan/layout.h"
#include "pipeline/plan/choose.h"
#include "config/pipeline_config.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/work.h"
#include "pipeline/raster/polygon_mask.h"
#include "pipeline/run/publish_results.h"
#include "pipeline/run/run_heights.h"
#include "pipeline/run/run_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int choose_device(const struct pb_compute_config *compute, int32_t *out_index, char name[64],
                         char why[200], struct pb_err *err)
{
    int rc = pb_device_choose(compute, out_index, why, err);
    if (rc == 0 && *out_index >= 0)
        (void)snprintf(name, 64, "cuda:%d", *out_index);
    else if (rc == 0)
        (void)snprintf(name, 64, "cpu");
    return rc;
}

/* Selects the device, and sets its facts in the plan request. */
static int find_device(struct pb_run *run, struct pb_plan_request *request, struct pb_err *err)
{
    const struct pb_remote *remote = run->options.remote;
    char why[200];
    if (remote != NULL) {
        (void)snprintf(run->device, sizeof run->device, "%s", remote->device);
        request->device_index = remote->device_index;
        request->traits = remote->traits;
        request->cuda = remote->traits != NULL;
        request->remote = true;
        if (remote->stream_why != NULL)
            request->stream_why = remote->stream_why;
        return 0;
    }
    int rc =
        choose_device(&run->options.config->compute, &request->device_index, run->device, why, err);
    request->cuda = rc == 0 && request->device_index >= 0;
    if (request->cuda && pb_device_traits(request->device_index, &run->traits) == 0) {
        pb_device_share(run->options.config->compute.share_percent, &run->traits);
        request->traits = &run->traits;
    }
    return rc;
}

/* Makes the environment of the products, before they have a place. */
static int make_env(struct pb_run *run, struct pb_err *err)
{
    const struct pb_plan_request *request = &run->facts;
    const struct pb_scene_files *files = pb_scene_several(run->options.input);
    pb_plan_product_env(run->plan, request, &run->env);
    run->env.raster = run->sources.raster[0];
    run->env.scene = run->scene;
    run->env.alert = run->options.alert;
    run->env.alert_user = run->options.user;
    run->env.tile = request->tile;
    if (request->tile != NULL) {
        (void)snprintf(run->tiles.name, sizeof run->tiles.name, "%s_%s", run->scene,
                       request->tile->id);
        run->env.name = run->tiles.name;
    }
    run->env.input = run->options.input->path;
    if (files != NULL && files->n_members > 0)
        run->env.n_files = pb_scene_files_names(files, run->file_names);
    run->env.files = run->file_names;
    run->env.sidecars = pb_scene_sidecars(run->options.input);
    run->env.device = run->device;
    run->env.progress = &run->files;
    run->env.checksum = pb_products_checksum(request->pipeline);
    run->env.metadata = &run->metadata.facts;
    run->env.observations = &run->order.observations;
    run->env.file_names = run->metadata.name;
    run->env.calibrated = run->plan->work.calibrated;
    run->env.n_calibrated = run->plan->work.n_calibrated;
    pb_run_metadata_output(&run->metadata, &run->env.facts);
    run->env.facts.scene = run->scene;
    run->env.facts.pipeline = run->options.pipeline->name;
    int rc = pb_product_names_check(&run->env, err);
    return rc ? rc : pb_products_ready(&run->env, err);
}

static int prepare(void *user, const struct pb_product_env *env, struct pb_err *err,
                   void *const **out_prepared)
{
    struct pb_run *run = user;
    struct pb_product_env own = *env;
    own.raster = run->sources.raster[0];
    pb_products_discard(env->pipeline, run->prepared);
    *out_prepared = run->prepared;
    return pb_products_prepare(&own, run->prepared, err);
}

int pb_run_make_plan(struct pb_run *run, struct pb_err *err)
{
    struct pb_plan_request *request = &run->facts;
    *request = (struct pb_plan_request){.config = run->options.config,
                                        .pipeline = run->options.pipeline,
                                        .info = pb_raster_info(run->sources.raster[0]),
                                        .raster = run->sources.raster[0],
                                        .others = run->sources.others,
                                        .n_others = pb_run_sources_others(&run->sources),
                                        .prepare = prepare,
                                        .user = run,
                                        .heights = &run->heights,
                                        .metadata = &run->metadata.facts,
                                        .file_names = run->metadata.name,
                                        .areas = run->areas.area,
                                        .n_areas = run->areas.n,
                                        .cutline_bytes = run->areas.bytes,
                                        .tile = pb_run_tiles_place(&run->tiles),
                                        .device_index = -1,
                                        .stream_why = run->options.stream_why};
    if (run->areas.masks != NULL)
        request->cutline_thread_bytes = pb_polygon_masks_thread_bytes(run->areas.masks);
    int rc = find_device(run, request, err);
    rc = rc ? rc : pb_run_heights_plan(request, err, &run->plan);
    rc = rc ? rc : pb_run_sources_check(&run->sources, run->plan, err);
    if (rc < 0)
        return rc;
    pb_run_sources_calibrate(&run->sources, run->plan, &run->metadata.facts);
    run->remote = run->options.remote;
    if (request->cuda && !run->plan->engine.cuda) {
        (void)snprintf(run->device, sizeof run->device, "cpu");
        run->remote = NULL;
    }
    return make_env(run, err);
}

/* Expands output.path before the first pixel is read; fails if a fact for it is missing. */
static int find_place(struct pb_run *run, struct pb_err *err)
{
    const char *path = run->options.pipeline->output.path;
    struct pb_output_place place;
    int rc = pb_output_path_expand(path, &run->env.facts, err, &place);
    run->place = run->options.place;
    if (rc != 0 || run->options.place != NULL || run->options.locate == NULL ||
        !pb_output_path_needs_metadata(path))
        return rc;
    run->place = run->options.locate(run->options.user, &run->env.facts);
    return run->place ? 0 : pb_fail(err, PB_E_JOB_DISMISSED, "the run was cancelled");
}

static int inputs_of_publish(void *user, struct pb_err *err, const struct pb_scene_manifest **out)
{
    return pb_publish_inputs(user, err, out);
}

/* Makes the place of the products, for all tiles. */
static int make_place(struct pb_run *run, struct pb_err *err)
{
    const size_t n_tiles = run->tiles.n > 0 ? run->tiles.n : 1;
    int rc = find_place(run, err);
    if (rc == 0 && run->options.directory == NULL)
        rc = pb_publish_begin(&run->options, &run->env.facts,
                              pb_raster_info(run->sources.raster[0]), err, &run->publish);
    if (rc < 0)
        return rc;
    if (run->publish != NULL)
        run->place = pb_publish_place(run->publish);
    run->results = calloc(n_tiles * run->options.pipeline->n_products + 1, sizeof *run->results);
    return run->results != NULL ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory for the products");
}

bool pb_run_looks_for_valid(const struct pb_run *run)
{
    return run->tiles.n > 0 ||
           (run->plan->work.warp != PB_CHAIN_NO_WARP && run->plan->engine.out.by_device == 0);
}

static int make_products(struct pb_run *run, struct pb_err *err)
{
    run->env.place = run->place;
    run->env.directory = run->options.directory;
    run->env.inputs = run->options.inputs;
    run->env.inputs_user = run->options.user;
    if (run->publish != NULL) {
        run->env.directory = pb_publish_directory(run->publish);
        run->env.inputs = inputs_of_publish;
        run->env.inputs_user = run->publish;
    }
    int rc =
        pb_run_products_create(&run->env, run->plan->engine.out.room_bytes, err, &run->products);
    if (rc == 0 && pb_run_looks_for_valid(run))
        run->products.sinks[run->products.n_sinks++] = pb_run_tiles_sink(&run->tiles, &run->env);
    return rc;
}

static int make_passes(struct pb_run *run, struct pb_err *err)
{
    const struct pb_pass_request request = {
        .plan = run->plan,
        .raster = (const struct pb_raster *const *)run->sources.raster,
        .limits = &run->options.config->limits,
        .directory = run->env.directory,
        .steps = run->options.pipeline->steps,
        .sinks = run->products.sinks,
        .n_sinks = run->products.n_sinks,
        .remote = run->remote,
        .facts = &run->facts};
    struct pb_run_passes *passes = NULL;
    int rc = pb_run_passes_create(&request, err, &passes);
    pthread_mutex_lock(&run->lock);
    run->passes = passes;
    if (rc == 0 && atomic_load(&run->files.stop))
        pb_run_passes_abort(passes, NULL);
    pthread_mutex_unlock(&run->lock);
    return rc;
}

/* --- space for the products ------------------------------------------------------------------ */

/* Disk space for the products of a run, checked before the first pixel is read. Without compression
 * it is exact. Compressed products may be of any size: deflate shrinks data to a thousandth at
 * most, therefore a run is refused if even that does not fit; any other lack of space is found
 * while writing. */
#define PACKED_MOST 1000

struct room {
    /* Bytes of uncompressed files; bytes of the others before compression. */
    uint64_t exact, packed;
};

/* Adds the products of a scene or of one tile; call it after pb_run_make_plan(). */
static void add_room(struct room *room, const struct pb_product_env *env)
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

/* output.limit: the products need more than limits.output, or than the size of their file system;
 * output.full: they need more than its free space. */
static int check_room(const struct room *room, const struct pb_run_options *options,
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

/* --- tiles of a grid ------------------------------------------------------------------------ */

void pb_run_forget_plan(struct pb_run *run)
{
    pb_plan_destroy(run->plan);
    run->plan = NULL;
    if (run->prepared != NULL)
        pb_products_discard(run->options.pipeline, run->prepared);
}

/* Plans each tile, in order to refuse impossible ones before a pixel is read. */
static int plan_tiles(struct pb_run *run, struct room *room, struct pb_err *err)
{
    struct pb_run_tiles *tiles = &run->tiles;
    int rc = 0;
    for (tiles->at = 0; tiles->at < tiles->n && rc == 0; tiles->at++) {
        struct pb_err why = {0};
        rc = pb_run_make_plan(run, &why);
        if (rc == 0)
            add_room(room, &run->env);
        rc = pb_run_tiles_planned(tiles, rc, run->plan, &why);
        pb_run_forget_plan(run);
        if (rc < 0 && err != NULL && err->code == PB_OK)
            *err = why;
    }
    if (rc == 0) {
        size_t n;
        const uint64_t pixels = pb_run_tiles_pixels(tiles, &n);
        rc = pb_plan_tiles_fit(&run->facts, n, pixels, err);
    }
    return rc ? rc : pb_run_tiles_settle(tiles, run->options.pipeline, err);
}

int pb_run_make_tile(struct pb_run *run, struct pb_err *err)
{
    int rc = make_products(run, err);
    return rc ? rc : make_passes(run, err);
}

/* --- turn ------------------------------------------------------------------------------------- */

static uint64_t tiles_of(const struct pb_plan *plan)
{
    uint64_t n = pb_grid_count(&plan->layout.grid);
    for (size_t i = 0; i < plan->n_earlier; i++)
        n += pb_grid_count(&plan->earlier[i]->layout.grid);
    return n;
}

/* Waits until the run may use the memory of its plan. Plans of further tiles of a grid may need all
 * memory. */
static int wait_for_turn(struct pb_run *run, struct pb_err *err)
{
    struct pb_run_needs needs = {.tiles = tiles_of(run->plan),
                                 .memory_bytes = pb_plan_total_bytes(run->plan)};
    if (run->options.turn == NULL)
        return 0;
    if (run->tiles.n > 1) {
        needs.tiles *= run->tiles.n;
        if (needs.tiles > UINT32_MAX)
            needs.tiles = UINT32_MAX;
        needs.memory_bytes = run->options.config->compute.memory_bytes;
    }
    pb_work_end(); /* the wait is no work of this run */
    pb_run_work_end(&run->work, PB_RUN_OPEN);
    int rc = run->options.turn(run->options.user, &needs, err);
    pb_run_work_begin(&run->work);
    pb_work_begin(PB_WORK_OPEN, 0);
    return rc;
}

int pb_run_make_first(struct pb_run *run, struct pb_err *err)
{
    const bool makes = run->options.products != NULL;
    struct room room = {.exact = 0};
    int rc = pb_run_tiles_find(&run->tiles, run->options.pipeline, run->sources.raster[0], err);
    if (rc == 0 && run->tiles.n > 0)
        rc = plan_tiles(run, &room, err);
    rc = rc ? rc : pb_run_make_plan(run, err);
    if (rc == 0 && run->tiles.n == 0)
        add_room(&room, &run->env);
    rc = rc ? rc : check_room(&room, &run->options, err);
    if (rc == 0 && makes)
        rc = wait_for_turn(run, err);
    rc = rc ? rc : pb_run_areas_ready(&run->areas, run->plan, err); /* for later tiles, too */
    if (rc == 0 && makes)
        rc = make_place(run, err);
    if (rc == 0 && makes)
        rc = pb_run_make_tile(run, err);
    return rc;
}

int pb_run_device(const struct pb_compute_config *compute, char device[64], char why[200],
                  struct pb_err *err)
{
    int32_t index = -1;
    return choose_device(compute, &index, device, why, err);
}
