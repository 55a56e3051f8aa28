/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Puts a run together and takes it apart. Everything is made in create(), in this order: raster,
 * device, plan, directory, products, first pass; destroy() undoes what is there, in
 * reverse. */
#include "pipeline/run/run.h"
#include "config/base/clock.h"
#include "pipeline/device/device.h"
#include "pipeline/io/file_name.h"
#include "pipeline/run/finish.h"
#include "pipeline/plan/plan_resident.h"
#include "pipeline/run/remote.h"
#include "pipeline/run/publish_results.h"
#include "pipeline/raster/polygon_mask.h"
#include "pipeline/run/run_areas.h"
#include "pipeline/run/run_metadata.h"
#include "pipeline/run/run_passes.h"
#include "pipeline/run/run_products.h"
#include "pipeline/run/run_sources.h"
#include "pipeline/run/run_tiles.h"
#include "pipeline/run/run_view.h"
#include "pipeline/run/run_work.h"
#include "pipeline/scene/scene_files.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which calls have been made. */
enum state { MADE, STARTED, COMPUTED, PUBLISHED };

struct pb_run {
    struct pb_run_options options;
    const struct pb_remote *remote; /* computes by the plan; NULL: this process does */
    char scene[NAME_MAX + 1];
    char device[64];
    const char *file_names[PB_INPUT_NAMES_MAX]; /* of a scene of many files */
    struct pb_run_sources sources;
    struct pb_run_metadata metadata;
    struct pb_run_areas areas;
    struct pb_run_tiles tiles;
    /* Plan, products and passes are those of the tile under way, where there are tiles. */
    struct pb_plan_request facts; /* what the plan was made from */
    struct pb_device_traits traits;
    struct pb_plan *plan;
    struct pb_publish *publish;
    const char *place; /* scene directory below products; the publisher's, or the caller's */
    struct pb_product_env env;
    struct pb_digits_report digits[PB_BANDS_MAX]; /* env.digits */
    struct pb_product_result *results;
    size_t n_results;

    struct pb_run_products products;
    pthread_mutex_t lock;         /* which passes there are, for progress and abort */
    struct pb_run_passes *passes; /* NULL: not made, or between two tiles */
    uint64_t bytes_before;        /* read for the tiles before; under the lock */
    struct pb_run_work work;

    enum state state;              /* of the calls; the caller's thread only */
    struct pb_file_progress files; /* of the products being written */
    _Atomic int stage;
    _Atomic uint64_t started_ns, ended_ns;
};

/* --- making ---------------------------------------------------------------------------------*/

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

/* The device and what the plan has to know of it. */
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
        request->jobs_beside = 0; /* one process has them all */
        if (remote->stream_why != NULL)
            request->stream_why = remote->stream_why;
        return 0;
    }
    int rc =
        choose_device(&run->options.config->compute, &request->device_index, run->device, why, err);
    request->cuda = rc == 0 && request->device_index >= 0;
    if (request->cuda && pb_device_traits(request->device_index, &run->traits) == 0)
        request->traits = &run->traits;
    return rc;
}

/* The environment of the products, before they have a place. */
static int make_env(struct pb_run *run, struct pb_err *err)
{
    const struct pb_plan_request *request = &run->facts;
    pb_plan_product_env(run->plan, request, &run->env);
    run->env.raster = run->sources.raster[0];
    run->env.scene = run->scene;
    run->env.tile = request->tile;
    if (request->tile != NULL) {
        (void)snprintf(run->tiles.name, sizeof run->tiles.name, "%s_%s", run->scene,
                       request->tile->id);
        run->env.name = run->tiles.name;
    }
    run->env.input = run->options.input;
    if (run->options.files != NULL && run->options.files->n_members > 0)
        run->env.n_files = pb_scene_files_names(run->options.files, run->file_names);
    run->env.files = run->file_names;
    run->env.sidecars = run->options.sidecars;
    run->env.device = run->device;
    run->env.progress = &run->files;
    run->env.checksum = pb_products_checksum(request->pipeline);
    run->env.metadata = &run->metadata.facts;
    run->env.file_names = run->metadata.name;
    run->env.calibrated = run->plan->calibrated;
    run->env.n_calibrated = run->plan->n_calibrated;
    pb_run_metadata_output(&run->metadata, &run->env.facts);
    run->env.facts.scene = run->scene;
    run->env.facts.pipeline = run->options.pipeline->name;
    int rc = pb_product_names_check(&run->env, err);
    return rc ? rc : pb_products_ready(&run->env, err);
}

static int make_plan(struct pb_run *run, struct pb_err *err)
{
    struct pb_plan_request *request = &run->facts;
    *request = (struct pb_plan_request){.config = run->options.config,
                                        .pipeline = run->options.pipeline,
                                        .info = pb_raster_info(run->sources.raster[0]),
                                        .raster = run->sources.raster[0],
                                        .others = run->sources.others,
                                        .n_others = pb_run_sources_others(&run->sources),
                                        .metadata = &run->metadata.facts,
                                        .file_names = run->metadata.name,
                                        .areas = run->areas.area,
                                        .n_areas = run->areas.n,
                                        .cutline_bytes = run->areas.bytes,
                                        .tile = pb_run_tiles_place(&run->tiles),
                                        .device_index = -1,
                                        .jobs_beside = run->options.jobs_beside,
                                        .stream_why = run->options.stream_why};
    if (run->areas.masks != NULL)
        request->cutline_thread_bytes = pb_polygon_masks_thread_bytes(run->areas.masks);
    int rc = find_device(run, request, err);
    rc = rc ? rc : pb_plan_create(request, err, &run->plan);
    rc = rc ? rc : pb_run_sources_check(&run->sources, run->plan, err);
    if (rc < 0)
        return rc;
    pb_run_sources_calibrate(&run->sources, run->plan, &run->metadata.facts);
    run->remote = run->options.remote;
    if (request->cuda && !run->plan->cuda) {
        (void)snprintf(run->device, sizeof run->device, "cpu");
        run->remote = NULL;
    }
    return make_env(run, err);
}

/* What output.path needs is known before the first pixel is read, or the run fails. */
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

static int inputs_of_publish(void *user, struct pb_err *err, const struct pb_input_files **out)
{
    return pb_publish_inputs(user, err, out);
}

/* Where the products go, of all tiles. */
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
    int rc = pb_run_products_create(&run->env, run->plan->out.room_bytes, err, &run->products);
    if (rc == 0 && run->tiles.n > 0)
        run->products.sinks[run->products.n_sinks++] = pb_run_tiles_sink(&run->tiles, &run->env);
    return rc;
}

static int make_passes(struct pb_run *run, struct pb_err *err)
{
    const struct pb_pass_request request = {
        .plan = run->plan,
        .raster = (const struct pb_raster *const *)run->sources.raster,
        .limits = &run->options.config->limits,
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

/* --- tiles of a grid ------------------------------------------------------------------------ */

static void forget_plan(struct pb_run *run)
{
    pb_plan_destroy(run->plan);
    run->plan = NULL;
}

/* Plans each tile, so that what cannot be is refused before a pixel is read. */
static int plan_tiles(struct pb_run *run, struct pb_err *err)
{
    struct pb_run_tiles *tiles = &run->tiles;
    int rc = 0;
    for (tiles->at = 0; tiles->at < tiles->n && rc == 0; tiles->at++) {
        struct pb_err why = {0};
        rc = make_plan(run, &why);
        rc = pb_run_tiles_planned(tiles, rc, run->plan, &why);
        forget_plan(run);
        if (rc < 0 && err != NULL && err->code == PB_OK)
            *err = why;
    }
    return rc ? rc : pb_run_tiles_settle(tiles, run->options.pipeline, err);
}

/* The products and passes of the plan. */
static int make_tile(struct pb_run *run, struct pb_err *err)
{
    int rc = make_products(run, err);
    return rc ? rc : make_passes(run, err);
}

/* All that is known once the scene is open. */
static int make_first(struct pb_run *run, struct pb_err *err)
{
    const bool makes = run->options.products != NULL;
    int rc = pb_run_tiles_find(&run->tiles, run->options.pipeline, run->sources.raster[0], err);
    if (rc == 0 && run->tiles.n > 0)
        rc = plan_tiles(run, err);
    rc = rc ? rc : make_plan(run, err);
    rc = rc ? rc : pb_run_areas_ready(&run->areas, run->plan, err); /* also for later tiles */
    if (rc == 0 && makes)
        rc = make_place(run, err);
    if (rc == 0 && makes)
        rc = make_tile(run, err);
    return rc;
}

int pb_run_create(const struct pb_run_options *options, struct pb_err *err, struct pb_run **out_run)
{
    struct pb_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the run");
    run->options = *options;
    pthread_mutex_init(&run->lock, NULL);
    if (options->scene != NULL)
        (void)snprintf(run->scene, sizeof run->scene, "%s", options->scene);
    else
        pb_file_name_scene(options->input, run->scene, sizeof run->scene);
    pb_run_work_begin(&run->work);
    pb_work_begin(PB_WORK_OPEN, 0);
    int rc = pb_raster_ready(err);
    if (rc == 0)
        rc = pb_run_sources_open(&run->sources, &run->options, run->scene, err);
    if (rc == 0)
        rc = pb_run_metadata_read(&run->metadata, &run->options, run->scene,
                                  pb_raster_info(run->sources.raster[0]), err);
    if (rc == 0)
        rc = pb_run_areas_find(&run->areas, options->config, options->pipeline,
                               run->sources.raster[0], err);
    if (rc == 0)
        rc = pb_run_sources_cut(&run->sources, run->areas.masks, err);
    rc = rc ? rc : make_first(run, err);
    pb_work_end();
    pb_run_work_end(&run->work, PB_RUN_OPEN);
    if (rc < 0) {
        pb_run_destroy(run);
        return rc;
    }
    *out_run = run;
    return 0;
}

/* --- running --------------------------------------------------------------------------------*/

static int out_of_order(struct pb_err *err, const char *call)
{
    return pb_fail(err, PB_E_SYSTEM, "pb_run_%s was called out of order; please report it", call);
}

int pb_run_start(struct pb_run *run, struct pb_err *err)
{
    struct pb_err why = {0};
    if (run->state != MADE)
        return out_of_order(err, "start");
    run->state = STARTED;
    atomic_store(&run->started_ns, pb_clock_mono_ns());
    atomic_store(&run->stage, PB_PHASE_COMPUTE);
    pb_run_work_begin(&run->work);
    int rc = run->publish != NULL ? pb_publish_identify(run->publish, &why) : 0;
    rc = rc ? rc : pb_run_passes_start(run->passes, &why);
    pb_run_work_end(&run->work, PB_RUN_TILES);
    if (rc == 0)
        return 0;
    pb_run_passes_abort(run->passes, &why); /* the error that wait returns */
    if (err != NULL && err->code == PB_OK)
        *err = why;
    return rc;
}

/* What products say of the digits of bands, now that all pixels are through. */
static void note_digits(struct pb_run *run)
{
    struct pb_run_report through = {.n_digits = 0};
    pb_run_passes_report(run->passes, &through);
    memcpy(run->digits, through.digits, sizeof run->digits);
    run->env.digits = run->digits;
    run->env.n_digits = through.n_digits;
}

/* Finishes the products of what was computed, unless it is a tile without a valid pixel. */
static int finish_products(struct pb_run *run, struct pb_err *err)
{
    size_t n = 0;
    int rc = 0;
    note_digits(run);
    const bool made = run->tiles.n == 0 || atomic_load(&run->tiles.valid);
    if (made)
        rc = pb_finish_products(&run->products, run->plan->writers, &run->files, err,
                                run->results + run->n_results, &n);
    run->n_results += n;
    if (run->tiles.n > 0)
        run->tiles.tile[run->tiles.at].state = made ? PB_TILE_MADE : PB_TILE_EMPTY;
    return rc;
}

/* What is left of a tile is its files and their descriptions. */
static void end_tile(struct pb_run *run)
{
    struct pb_run_passes *passes = run->passes;
    struct pb_run_report own = {.n_digits = 0};
    struct pb_run_progress through = {.bytes_read = 0};
    pb_run_passes_report(passes, &own);
    own.memory_bytes = pb_plan_total_bytes(run->plan);
    pb_run_tiles_report(&run->tiles, &own);
    pb_run_passes_progress(passes, &through);
    pthread_mutex_lock(&run->lock);
    run->bytes_before += through.bytes_read;
    run->passes = NULL;
    (void)pb_run_tiles_next(&run->tiles);
    pthread_mutex_unlock(&run->lock);
    pb_run_passes_destroy(passes);
    pb_run_products_destroy(&run->products);
    for (size_t i = 0; i < run->n_results; i++) { /* the products' own */
        run->results[i].statistics = NULL;
        run->results[i].n_statistics = 0;
        run->results[i].shown = NULL;
    }
    forget_plan(run);
}

/* From a tile that is computed to the next one, under way. */
static int go_on(struct pb_run *run, struct pb_err *err)
{
    int rc = finish_products(run, err);
    if (rc < 0)
        return rc;
    end_tile(run);
    rc = make_plan(run, err);
    rc = rc ? rc : make_tile(run, err);
    return rc ? rc : pb_run_passes_start(run->passes, err);
}

/* The passes of the tile under way, and of those after it. */
static int wait_tiles(struct pb_run *run, int64_t timeout_ms, struct pb_err *err)
{
    int rc = 0;
    do {
        if (run->passes == NULL)
            return pb_fail(err, PB_E_SYSTEM, "the run has failed before");
        pb_work_begin(PB_WORK_WAIT, 0);
        rc = pb_run_passes_wait(run->passes, timeout_ms, err);
        pb_work_end();
        rc = pb_run_sources_blame(&run->sources, rc, err);
        if (rc != 0 || !pb_run_tiles_more(&run->tiles))
            return rc;
        rc = go_on(run, err);
    } while (rc == 0);
    return rc;
}

int pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err)
{
    if (run->state != STARTED && run->state != COMPUTED)
        return out_of_order(err, "wait");
    pb_run_work_begin(&run->work);
    int rc = wait_tiles(run, timeout_ms, err);
    pb_run_work_end(&run->work, PB_RUN_TILES);
    if (rc != -ETIMEDOUT && atomic_load(&run->ended_ns) == 0)
        atomic_store(&run->ended_ns, pb_clock_mono_ns());
    rc = rc ? rc : pb_run_sources_unchanged(&run->sources, err);
    if (rc == 0)
        run->state = COMPUTED;
    return rc;
}

void pb_run_abort(struct pb_run *run)
{
    atomic_store(&run->files.stop, true);
    pthread_mutex_lock(&run->lock);
    if (run->passes != NULL)
        pb_run_passes_abort(run->passes, NULL);
    pthread_mutex_unlock(&run->lock);
}

const char *pb_run_buffers_why(const struct pb_run *run)
{
    return pb_plan_buffers_why(run->plan, &run->facts);
}

/* The first thing of a success that people should know. */
static const char *warning_of(const struct pb_run *run)
{
    const char *text = run->publish != NULL ? pb_publish_warning(run->publish) : "";
    if (text[0] == '\0')
        text = run->areas.warning;
    for (size_t i = 0; text[0] == '\0' && i < run->options.pipeline->n_products; i++)
        text = run->results[i].warning;
    return text;
}

static void report(struct pb_run *run, struct pb_run_report *out)
{
    static const char *const mem[] = {"host", "pinned", "managed"};
    pb_run_passes_report(run->passes, out);
    if (run->tiles.n > 0) {
        pb_run_tiles_report(&run->tiles, out);
        *out = run->tiles.report;
    }
    (void)snprintf(out->device, sizeof out->device, "%s", run->device);
    (void)snprintf(out->buffers, sizeof out->buffers, "%s", mem[run->plan->mem]);
    out->buffers_why = pb_run_buffers_why(run);
    (void)snprintf(out->sync_why, sizeof out->sync_why, "%s",
                   pb_plan_stream_why(run->plan, run->options.config));
    if (run->plan->cuda) {
        const struct pb_plan_whole *whole = &run->plan->whole;
        out->codecs = whole->used && !whole->all_by_host ? "device" : "host";
        out->codecs_why = whole->used ? whole->host_why : whole->why_not;
        out->out = &run->plan->out;
    }
    out->gate.why = pb_chain_gate_why(run->plan->chain);
    if (pb_plan_total_bytes(run->plan) > out->memory_bytes)
        out->memory_bytes = pb_plan_total_bytes(run->plan);
    out->wanted_bytes = pb_plan_wanted_bytes(run->plan);
    out->tile_px = run->plan->grid.side_px;
    memcpy(out->part, run->work.part, sizeof out->part);
    out->process_ns = pb_run_work_process_ns();
    out->cores = pb_device_cores();
    out->elapsed_ms =
        (int64_t)((atomic_load(&run->ended_ns) - atomic_load(&run->started_ns)) / 1000000);
}

static int finish(struct pb_run *run, struct pb_err *err, char out_directory[4096])
{
    int rc = finish_products(run, err);
    if (rc == 0 && run->n_results == 0 && run->tiles.n > 0)
        rc = pb_fail(err, PB_E_INPUT_OUTSIDE, "no tile has a valid pixel of the scene");
    if (rc == 0 && atomic_load(&run->files.stop))
        rc = pb_fail(err, PB_E_JOB_DISMISSED, "cancelled before publishing");
    if (rc == 0)
        rc = pb_run_sources_unchanged(&run->sources, err);
    if (rc == 0 && run->publish == NULL)
        (void)snprintf(out_directory, 4096, "%s", run->env.directory);
    pb_work_begin(PB_WORK_PUBLISH, 0);
    if (rc == 0 && run->publish != NULL)
        rc = pb_publish_results(run->publish, run->tiles.n < 2 ? &run->products : NULL,
                                run->results, run->n_results, err, out_directory);
    pb_work_end();
    return rc;
}

int pb_run_publish(struct pb_run *run, struct pb_err *err, struct pb_run_result *out_result)
{
    uint64_t start = pb_clock_mono_ns();
    if (run->state != COMPUTED)
        return out_of_order(err, "publish");
    run->state = PUBLISHED; /* once, also when it fails */
    atomic_store(&run->stage, PB_PHASE_PUBLISH);
    pb_run_work_begin(&run->work);
    int rc = finish(run, err, out_result->directory);
    pb_run_work_end(&run->work, PB_RUN_FINISH);
    if (rc < 0)
        return rc;
    out_result->products = run->results;
    out_result->n_products = run->n_results;
    out_result->chain = run->tiles.n > 1 ? NULL : run->plan->chain; /* each tile has its own */
    out_result->tiles = run->tiles.n > 0 ? &run->tiles : NULL;
    out_result->pipeline = run->options.pipeline;
    out_result->files = run->options.files;
    out_result->sidecars = run->options.sidecars;
    out_result->metadata = &run->metadata.facts;
    out_result->calibrated = run->plan->calibrated;
    out_result->n_calibrated = run->plan->n_calibrated;
    out_result->warning = warning_of(run);
    report(run, &out_result->report);
    out_result->report.publish_ms = (int64_t)((pb_clock_mono_ns() - start) / 1000000);
    atomic_store(&run->stage, PB_PHASE_DONE);
    return 0;
}

void pb_run_progress(struct pb_run *run, struct pb_run_progress *out)
{
    uint64_t started = atomic_load(&run->started_ns);
    *out = (struct pb_run_progress){
        .stage = (enum pb_phase)atomic_load(&run->stage),
        .bytes_written = atomic_load(&run->files.bytes),
        .elapsed_ms = started ? (int64_t)((pb_clock_mono_ns() - started) / 1000000) : 0,
    };
    uint64_t done = 0, total = 0;
    pthread_mutex_lock(&run->lock);
    if (run->passes != NULL)
        pb_run_passes_progress(run->passes, out);
    pb_run_tiles_progress(&run->tiles, &done, &total);
    if (run->passes == NULL && run->tiles.n > 0) /* between two tiles */
        total += run->tiles.tile[run->tiles.at].passes;
    out->tiles_done += (uint32_t)done;
    out->tiles_total += (uint32_t)total;
    out->bytes_read += run->bytes_before;
    pthread_mutex_unlock(&run->lock);
}

void pb_run_destroy(struct pb_run *run)
{
    if (run == NULL)
        return;
    pb_run_passes_destroy(run->passes);
    pb_run_products_destroy(&run->products);
    free(run->results);
    pb_publish_close(run->publish);
    pb_plan_destroy(run->plan);
    pb_run_areas_fini(&run->areas);
    pb_run_tiles_fini(&run->tiles);
    pthread_mutex_destroy(&run->lock);
    pb_run_sources_close(&run->sources);
    pb_metadata_fini(&run->metadata.facts);
    free(run);
}

const char *pb_phase_name(enum pb_phase stage)
{
    static const char *const names[] = {"plan", "compute", "publish", "done"};
    return names[stage];
}

int pb_run_device(const struct pb_compute_config *compute, char device[64], char why[200],
                  struct pb_err *err)
{
    int32_t index = -1;
    return choose_device(compute, &index, device, why, err);
}

void pb_run_view(const struct pb_run *run, struct pb_run_view *out)
{
    *out = (struct pb_run_view){.options = &run->options,
                                .scene = run->scene,
                                .device = run->device,
                                .sources = &run->sources,
                                .metadata = &run->metadata,
                                .plan = run->plan,
                                .tiles = &run->tiles,
                                .env = &run->env};
}
