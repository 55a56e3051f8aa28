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
#include "pipeline/run/run_areas.h"
#include "pipeline/run/run_metadata.h"
#include "pipeline/run/run_passes.h"
#include "pipeline/run/run_products.h"
#include "pipeline/run/run_sources.h"
#include "pipeline/run/run_view.h"
#include "pipeline/run/run_work.h"
#include "pipeline/scene/scene_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which calls have been made. */
enum state { MADE, STARTED, COMPUTED, PUBLISHED };

struct pb_run {
    struct pb_run_options options;
    char scene[NAME_MAX + 1];
    char device[64];
    const char *file_names[PB_INPUT_NAMES_MAX]; /* of a scene of many files */
    struct pb_run_sources sources;
    struct pb_run_metadata metadata;
    struct pb_run_areas areas;
    struct pb_plan_request facts; /* what the plan was made from */
    struct pb_device_traits traits;
    struct pb_plan *plan;
    struct pb_publish *publish;
    struct pb_product_env env;
    struct pb_digits_report digits[PB_BANDS_MAX]; /* env.digits */
    struct pb_product_result *results;
    size_t n_results;

    struct pb_run_products products;
    struct pb_run_passes *passes;
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
                                        .device_index = -1,
                                        .jobs_beside = run->options.jobs_beside,
                                        .stream_why = run->options.stream_why};
    int rc = find_device(run, request, err);
    rc = rc ? rc : pb_plan_create(request, err, &run->plan);
    rc = rc ? rc : pb_run_sources_check(&run->sources, run->plan, err);
    if (rc < 0)
        return rc;
    pb_run_sources_calibrate(&run->sources, run->plan, &run->metadata.facts);
    if (request->cuda && !run->plan->cuda) {
        (void)snprintf(run->device, sizeof run->device, "cpu");
        run->options.remote = NULL; /* this process computes */
    }
    pb_plan_product_env(run->plan, request, &run->env);
    run->env.raster = run->sources.raster[0];
    run->env.scene = run->scene;
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
    rc = pb_product_names_check(&run->env, err);
    return rc ? rc : pb_products_ready(&run->env, err);
}

/* What output.path needs is known before the first pixel is read, or the run fails. */
static int find_place(struct pb_run *run, struct pb_err *err)
{
    const char *path = run->options.pipeline->output.path;
    struct pb_output_place place;
    int rc = pb_output_path_expand(path, &run->env.facts, err, &place);
    run->env.place = run->options.place;
    if (rc != 0 || run->options.place != NULL || run->options.locate == NULL ||
        !pb_output_path_needs_metadata(path))
        return rc;
    run->env.place = run->options.locate(run->options.user, &run->env.facts);
    return run->env.place ? 0 : pb_fail(err, PB_E_JOB_DISMISSED, "the run was cancelled");
}

static int inputs_of_publish(void *user, struct pb_err *err, const struct pb_input_files **out)
{
    return pb_publish_inputs(user, err, out);
}

static int make_products(struct pb_run *run, struct pb_err *err)
{
    int rc = find_place(run, err);
    if (rc != 0)
        return rc;
    run->env.directory = run->options.directory;
    run->env.inputs = run->options.inputs;
    run->env.inputs_user = run->options.user;
    if (run->env.directory == NULL) {
        rc = pb_publish_begin(&run->options, &run->env.facts,
                              pb_raster_info(run->sources.raster[0]), err, &run->publish);
        if (rc < 0)
            return rc;
        run->env.place = pb_publish_place(run->publish);
        run->env.directory = pb_publish_directory(run->publish);
        run->env.inputs = inputs_of_publish;
        run->env.inputs_user = run->publish;
    }
    run->results = calloc(run->options.pipeline->n_products + 1, sizeof *run->results);
    if (run->results == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the products");
    return pb_run_products_create(&run->env, run->plan->out.room_bytes, err, &run->products);
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
        .remote = run->options.remote,
        .facts = &run->facts};
    return pb_run_passes_create(&request, err, &run->passes);
}

int pb_run_create(const struct pb_run_options *options, struct pb_err *err, struct pb_run **out_run)
{
    struct pb_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the run");
    run->options = *options;
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
        rc = make_plan(run, err);
    if (rc == 0 && options->products != NULL)
        rc = make_products(run, err);
    if (rc == 0 && options->products != NULL)
        rc = make_passes(run, err);
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

int pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err)
{
    if (run->state != STARTED && run->state != COMPUTED)
        return out_of_order(err, "wait");
    pb_run_work_begin(&run->work);
    pb_work_begin(PB_WORK_WAIT, 0);
    int rc = pb_run_passes_wait(run->passes, timeout_ms, err);
    pb_work_end();
    pb_run_work_end(&run->work, PB_RUN_TILES);
    rc = pb_run_sources_blame(&run->sources, rc, err);
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
    if (run->passes != NULL)
        pb_run_passes_abort(run->passes, NULL);
}

const char *pb_run_buffers_why(const struct pb_run *run)
{
    return pb_plan_buffers_why(run->plan, &run->facts);
}

static void report(struct pb_run *run, struct pb_run_report *out)
{
    static const char *const mem[] = {"host", "pinned", "managed"};
    pb_run_passes_report(run->passes, out);
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
    out->memory_bytes = pb_plan_total_bytes(run->plan);
    out->wanted_bytes = pb_plan_wanted_bytes(run->plan);
    out->tile_px = run->plan->grid.side_px;
    memcpy(out->part, run->work.part, sizeof out->part);
    out->process_ns = pb_run_work_process_ns();
    out->cores = pb_device_cores();
    out->elapsed_ms =
        (int64_t)((atomic_load(&run->ended_ns) - atomic_load(&run->started_ns)) / 1000000);
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

static int finish(struct pb_run *run, struct pb_err *err, char out_directory[4096])
{
    int rc = pb_finish_products(&run->products, run->plan->writers, &run->files, err, run->results,
                                &run->n_results);
    if (rc == 0 && atomic_load(&run->files.stop))
        rc = pb_fail(err, PB_E_JOB_DISMISSED, "cancelled before publishing");
    if (rc == 0)
        rc = pb_run_sources_unchanged(&run->sources, err);
    if (rc == 0 && run->publish == NULL)
        (void)snprintf(out_directory, 4096, "%s", run->env.directory);
    pb_work_begin(PB_WORK_PUBLISH, 0);
    if (rc == 0 && run->publish != NULL)
        rc = pb_publish_results(run->publish, &run->products, run->results, run->n_results, err,
                                out_directory);
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
    note_digits(run);
    pb_run_work_begin(&run->work);
    int rc = finish(run, err, out_result->directory);
    pb_run_work_end(&run->work, PB_RUN_FINISH);
    if (rc < 0)
        return rc;
    out_result->products = run->results;
    out_result->n_products = run->n_results;
    out_result->chain = run->plan->chain;
    out_result->pipeline = run->options.pipeline;
    out_result->files = run->options.files;
    out_result->sidecars = run->options.sidecars;
    out_result->metadata = &run->metadata.facts;
    out_result->calibrated = run->plan->calibrated;
    out_result->n_calibrated = run->plan->n_calibrated;
    out_result->warning = run->publish != NULL ? pb_publish_warning(run->publish) : "";
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
    if (run->passes != NULL)
        pb_run_passes_progress(run->passes, out);
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
                                .env = &run->env};
}
