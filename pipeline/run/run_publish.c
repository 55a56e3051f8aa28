/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Finishes and publishes the products of a run, and fills its report. */
#include "config/base/clock.h"
#include "config/pipeline_config.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/engine.h"
#include "pipeline/run/finish.h"
#include "pipeline/run/publish_results.h"
#include "pipeline/raster/ground.h"
#include "pipeline/run/run_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds the digits report of the bands to the products' environment, after the last pixel. */
static void note_digits(struct pb_run *run)
{
    struct pb_run_report through = {.n_digits = 0};
    pb_run_passes_report(run->passes, &through);
    memcpy(run->digits, through.digits, sizeof run->digits);
    run->env.digits = run->digits;
    run->env.n_digits = through.n_digits;
    for (size_t i = 0; i < through.notes.n; i++)
        pb_notes_add(&run->notes, "%s", through.notes.text[i]);
    run->has_nothing = through.link.device.looked && !through.link.device.has_valid;
}

/* Returns true if a step brings pixels into another system and none of them is valid: in tiles of
 * pixels that are sent to the host (make_products in run_make.c), or as the device reports. */
static bool is_warped_away(const struct pb_run *run)
{
    return run->tiles.n == 0 &&
           (pb_run_looks_for_valid(run) ? !atomic_load(&run->tiles.valid) : run->has_nothing);
}

/* Adds a note about lines that never arrived, with as many gaps as fit: "12 of 128 lines are
 * missing, and invalid: 40 to 49, 60 to 61". */
static void note_gaps(struct pb_run *run)
{
    const struct pb_raster *raster = run->sources.raster[0];
    char list[PB_NOTE_BYTES - 80];
    int32_t missing = 0, gaps = 0, first, n;
    size_t at = 0;
    for (int32_t y = 0; (n = pb_raster_next_gap(raster, y, &first)) > 0; y = first + n) {
        char one[32];
        const int bytes = snprintf(one, sizeof one, n > 1 ? "%s%d to %d" : "%s%d",
                                   gaps > 0 ? ", " : "", (int)first, (int)(first + n - 1));
        missing += n;
        if (gaps++ > 0 && at + (size_t)bytes >= sizeof list)
            continue;
        (void)memcpy(list + at, one, (size_t)bytes + 1);
        at += (size_t)bytes;
    }
    if (missing > 0)
        pb_notes_add(&run->notes, "%d of %d lines are missing, and invalid: %s%s", (int)missing,
                     (int)pb_raster_info(raster)->height, list,
                     at + 32 >= sizeof list ? ", ..." : "");
}

/* Adds the notes of the run for the products, after the last pixel. */
static void add_notes(struct pb_run *run)
{
    const struct pb_chain *chain = run->plan->work.chain;
    const struct pb_scene_files *files = pb_scene_several(run->options.input);
    for (size_t i = 0; i < pb_chain_note_count(chain); i++)
        pb_notes_add(&run->notes, "%s", pb_chain_note(chain, i));
    if (files != NULL && files->n_left_out > 0)
        pb_notes_add(&run->notes, "left out, as input.files counts fewer files (nth): %s",
                     files->left_out);
    if (is_warped_away(run))
        pb_notes_add(&run->notes, "no pixel of the products is valid: the warp step found none of "
                                  "the scene's valid pixels on the new grid; compare its crs, "
                                  "bounds and from with the scene");
    note_gaps(run);
    run->env.notes = &run->notes;
}

int pb_run_finish_products(struct pb_run *run, struct pb_err *err)
{
    size_t n = 0;
    int rc = 0;
    note_digits(run);
    add_notes(run);
    const bool made = run->tiles.n == 0 || atomic_load(&run->tiles.valid);
    if (made)
        rc = pb_finish_products(&run->products, run->plan->layout.writers, &run->files, err,
                                run->results + run->n_results, &n);
    run->n_results += n;
    if (run->tiles.n > 0)
        run->tiles.tile[run->tiles.at].state = made ? PB_TILE_MADE : PB_TILE_EMPTY;
    return rc;
}

const char *pb_run_buffers(const struct pb_run *run)
{
    return pb_plan_buffers(run->plan);
}

const char *pb_run_buffers_why(const struct pb_run *run)
{
    return pb_plan_buffers_why(run->plan);
}

static void add_warning(struct pb_run *run, const char *text)
{
    const size_t used = strlen(run->warning);
    if (text[0] != '\0')
        (void)snprintf(run->warning + used, sizeof run->warning - used, "%s%s", used ? "; " : "",
                       text);
}

/* Warning of a successful run: the first one from computing and publishing, and the pages that were
 * not read. */
static const char *warning_of(struct pb_run *run)
{
    const char *text = run->publish != NULL ? pb_publish_warning(run->publish) : "";
    char pages[600];
    if (text[0] == '\0')
        text = run->areas.warning;
    for (size_t i = 0; text[0] == '\0' && i < run->options.pipeline->n_products; i++)
        text = run->results[i].warning;
    run->warning[0] = '\0';
    add_warning(run, text);
    pb_run_sources_pages(&run->sources, pages, sizeof pages);
    add_warning(run, pages);
    return run->warning;
}

static void report(struct pb_run *run, struct pb_run_report *out)
{
    pb_run_passes_report(run->passes, out);
    if (run->tiles.n > 0) {
        pb_run_tiles_report(&run->tiles, out);
        *out = run->tiles.report;
    }
    (void)snprintf(out->device, sizeof out->device, "%s", run->device);
    (void)snprintf(out->buffers, sizeof out->buffers, "%s", pb_run_buffers(run));
    out->buffers_why = pb_run_buffers_why(run);
    (void)snprintf(out->sync_why, sizeof out->sync_why, "%s",
                   pb_plan_stream_why(run->plan, run->options.config));
    if (run->plan->engine.cuda) {
        const struct pb_plan_whole *whole = &run->plan->engine.whole;
        out->codecs = whole->used && !whole->all_by_host ? "device" : "host";
        out->codecs_why = whole->used ? whole->host_why : whole->why_not;
        out->out = &run->plan->engine.out;
    }
    out->gate.why = pb_chain_gate_why(run->plan->work.chain);
    out->valid = run->plan->work.valid.by;
    out->valid_notes = run->plan->work.valid.notes;
    if (pb_plan_total_bytes(run->plan) > out->memory_bytes)
        out->memory_bytes = pb_plan_total_bytes(run->plan);
    out->wanted_bytes = pb_plan_wanted_bytes(run->plan);
    out->tile_px = run->plan->layout.grid.side_px;
    memcpy(out->part, run->work.part, sizeof out->part);
    out->process_ns = pb_run_work_process_ns();
    out->cores = pb_device_cores();
    out->elapsed_ms =
        (int64_t)((atomic_load(&run->ended_ns) - atomic_load(&run->started_ns)) / 1000000);
}

static int finish(struct pb_run *run, struct pb_err *err, char out_directory[4096])
{
    int rc = pb_run_finish_products(run, err);
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

/* Sets the position of the products on the Earth, and the acquisition time of the scene. */
static void say_place(const struct pb_run *run, struct pb_run_result *out)
{
    const struct pb_product_env *env = &run->env;
    struct pb_raster *place = env->placed != NULL ? env->placed : env->raster;
    const bool tiles = run->tiles.n > 0;
    struct pb_footprint *footprint = malloc(sizeof *footprint);
    out->has_bbox =
        footprint != NULL && pb_raster_footprint(tiles ? env->raster : place,
                                                 tiles ? NULL : &env->geometry, footprint) == 0;
    if (out->has_bbox && !tiles)
        pb_raster_footprint_defined(place, footprint);
    if (out->has_bbox)
        (void)memcpy(out->bbox, footprint->bbox, sizeof out->bbox);
    out->has_corners = out->has_bbox && !tiles && footprint->has_corners;
    if (out->has_corners)
        (void)memcpy(out->corner, footprint->corner, sizeof out->corner);
    free(footprint);
    pb_product_datetime(env, out->datetime);
}

int pb_run_publish(struct pb_run *run, struct pb_err *err, struct pb_run_result *out_result)
{
    uint64_t start = pb_clock_mono_ns();
    if (run->state != COMPUTED)
        return pb_run_out_of_order(err, "publish");
    run->state = PUBLISHED; /* only once, also on failure */
    pb_run_work_begin(&run->work);
    int rc = finish(run, err, out_result->directory);
    pb_run_work_end(&run->work, PB_RUN_FINISH);
    if (rc < 0)
        return rc;
    out_result->products = run->results;
    out_result->n_products = run->n_results;
    out_result->chain =
        run->tiles.n > 1 ? NULL : run->plan->work.chain; /* each tile has its own chain */
    out_result->tiles = run->tiles.n > 0 ? &run->tiles : NULL;
    out_result->pipeline = run->options.pipeline;
    out_result->files = pb_scene_several(run->options.input);
    out_result->sidecars = pb_scene_sidecars(run->options.input);
    out_result->metadata = &run->metadata.facts;
    out_result->observations = &run->order.observations;
    out_result->calibrated = run->plan->work.calibrated;
    out_result->n_calibrated = run->plan->work.n_calibrated;
    out_result->warning = warning_of(run);
    out_result->notes = &run->notes;
    out_result->env = &run->env;
    say_place(run, out_result);
    report(run, &out_result->report);
    out_result->report.publish_ms = (int64_t)((pb_clock_mono_ns() - start) / 1000000);
    atomic_store(&run->stage, PB_PHASE_DONE);
    return 0;
}
