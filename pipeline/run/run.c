/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Calls of a run. create() makes everything: the raster, then the parts in run_make.c; destroy()
 * releases them in reverse. */
#include "pipeline/run/run.h"
#include "pipeline/plan/choose.h"
#include "config/base/clock.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_name.h"
#include "pipeline/run/publish_results.h"
#include "pipeline/run/run_heights.h"
#include "pipeline/run/run_inside.h"
#include "pipeline/run/run_view.h"
#include "pipeline/scene/scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_bounds(const struct pb_run *run)
{
    struct pb_footprint *footprint = malloc(sizeof *footprint);
    if (footprint != NULL && pb_raster_footprint(run->sources.raster[0], NULL, footprint) == 0)
        run->options.bounds(run->options.user, footprint->bbox);
    free(footprint);
}

int pb_run_create(const struct pb_run_options *options, struct pb_err *err, struct pb_run **out_run)
{
    struct pb_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the run");
    run->options = *options;
    run->prepared = calloc(options->pipeline->n_products + 1, sizeof *run->prepared);
    run->files.most = options->config->limits.output_bytes;
    pthread_mutex_init(&run->lock, NULL);
    if (options->scene != NULL)
        (void)snprintf(run->scene, sizeof run->scene, "%s", options->scene);
    else
        pb_file_name_scene(options->input->path, run->scene, sizeof run->scene);
    pb_run_work_begin(&run->work);
    pb_work_begin(PB_WORK_OPEN, 0);
    int rc = run->prepared != NULL ? pb_raster_ready(err)
                                   : pb_fail(err, PB_E_MEMORY, "out of memory for the run");
    rc = rc ? rc : pb_run_order_make(&run->order, &run->options, err);
    if (rc == 0)
        rc = pb_run_sources_open(&run->sources, &run->options, run->scene, err);
    if (rc == 0 && options->bounds != NULL)
        say_bounds(run);
    if (rc == 0)
        rc = pb_run_metadata_read(&run->metadata, &run->options, run->scene,
                                  pb_raster_info(run->sources.raster[0]), err);
    if (rc == 0)
        rc = pb_run_areas_find(&run->areas, options->config, options->pipeline,
                               run->sources.raster[0], err);
    if (rc == 0)
        rc = pb_run_sources_cut(&run->sources, run->areas.masks, err);
    rc = rc ? rc : pb_run_make_first(run, err);
    pb_work_end();
    pb_run_work_end(&run->work, PB_RUN_OPEN);
    if (rc < 0) {
        pb_run_destroy(run);
        return rc;
    }
    *out_run = run;
    return 0;
}

int pb_run_out_of_order(struct pb_err *err, const char *call)
{
    return pb_fail(err, PB_E_SYSTEM, "pb_run_%s was called out of order; please report it", call);
}

/* --- running --------------------------------------------------------------------------------*/

int pb_run_start(struct pb_run *run, struct pb_err *err)
{
    struct pb_err why = {0};
    if (run->state != MADE)
        return pb_run_out_of_order(err, "start");
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

/* Ends a tile: only its files and their descriptions remain. */
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
    for (size_t i = 0; i < run->n_results; i++) { /* owned by the products */
        run->results[i].statistics = NULL;
        run->results[i].n_statistics = 0;
        run->results[i].shown = NULL;
    }
    pb_run_forget_plan(run);
}

/* Finishes a computed tile and starts the next one. */
static int go_on(struct pb_run *run, struct pb_err *err)
{
    int rc = pb_run_finish_products(run, err);
    if (rc < 0)
        return rc;
    end_tile(run);
    rc = pb_run_make_plan(run, err);
    rc = rc ? rc : pb_run_make_tile(run, err);
    return rc ? rc : pb_run_passes_start(run->passes, err);
}

/* Waits for the passes of the current tile and of the later ones. */
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
        return pb_run_out_of_order(err, "wait");
    pb_run_work_begin(&run->work);
    int rc = wait_tiles(run, timeout_ms, err);
    pb_run_work_end(&run->work, PB_RUN_TILES);
    if (rc != -ETIMEDOUT && atomic_load(&run->ended_ns) == 0)
        atomic_store(&run->ended_ns, pb_clock_mono_ns());
    rc = rc ? rc : pb_run_sources_unchanged(&run->sources, err);
    if (rc == 0) {
        run->state = COMPUTED;
        pb_run_passes_end(run->passes);
        atomic_store(&run->stage, PB_PHASE_PUBLISH);
    }
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

void pb_run_progress(struct pb_run *run, struct pb_run_progress *out)
{
    uint64_t started = atomic_load(&run->started_ns);
    *out = (struct pb_run_progress){
        .stage = (enum pb_phase)atomic_load(&run->stage),
        .bytes_written = atomic_load(&run->files.bytes),
        .elapsed_ms = started ? (int64_t)((pb_clock_mono_ns() - started) / 1000000) : 0,
    };
    uint64_t done = 0, total = 0;
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        out->waits |=
            run->sources.raster[i] != NULL && pb_raster_is_growing(run->sources.raster[i]);
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
    pb_run_forget_plan(run);
    free(run->prepared);
    pb_run_areas_fini(&run->areas);
    pb_run_heights_fini(&run->heights);
    pb_run_tiles_fini(&run->tiles);
    pthread_mutex_destroy(&run->lock);
    pb_run_sources_close(&run->sources);
    pb_metadata_fini(&run->metadata.facts);
    pb_run_order_fini(&run->order);
    free(run);
}

const char *pb_phase_name(enum pb_phase stage)
{
    static const char *const names[] = {"plan", "compute", "publish", "done"};
    return names[stage];
}

void pb_run_view(const struct pb_run *run, struct pb_run_view *out)
{
    *out = (struct pb_run_view){.options = &run->options,
                                .scene = run->scene,
                                .device = run->device,
                                .sources = &run->sources,
                                .metadata = &run->metadata,
                                .observations = &run->order.observations,
                                .plan = run->plan,
                                .tiles = &run->tiles,
                                .env = &run->env};
}
