/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Puts a run together and takes it apart. Everything is made in create(), in this order: raster,
 * device, plan, directory, products, channels, executor; destroy() undoes what is there, in
 * reverse. */
#include "pipeline/run/run.h"
#include "config/base/clock.h"
#include "pipeline/device/device.h"
#include "pipeline/io/file_name.h"
#include "pipeline/run/finish.h"
#include "pipeline/device/mem.h"
#include "pipeline/plan/plan_cache.h"
#include "pipeline/plan/plan_resident.h"
#include "pipeline/raster/source_files.h"
#include "pipeline/run/publish_results.h"
#include "pipeline/run/run_threads.h"
#include "pipeline/run/stream.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATE_BYTES = 4 << 20 }; /* moved each way to measure the link: 0.1 ms */

/* Which calls have been made. */
enum state { MADE, STARTED, COMPUTED, PUBLISHED };

struct pb_run {
    struct pb_run_options options;
    char scene[NAME_MAX + 1];
    char device[64];
    struct pb_raster *raster;
    struct pb_raster *source[PB_SOURCES_MAX - 1]; /* input.sources */
    struct pb_plan_other others[PB_SOURCES_MAX - 1];
    struct pb_plan *plan;
    struct pb_publish *publish;
    struct pb_product_env env;
    struct pb_product_result *results;
    size_t n_results;

    struct pb_stream stream;
    void *in_memory, *out_memory; /* slots */
    size_t in_bytes, out_bytes;
    void *in_channel, *out_channel; /* the channels themselves */
    const struct pb_exec_type *exec_type;
    void *exec;
    double to_device_rate, from_device_rate; /* of the link, bytes/s; 0 = not known */
    struct pb_run_threads threads;

    enum state state;              /* of the calls; the caller's thread only */
    struct pb_file_progress files; /* of the products being written */
    _Atomic int stage;
    _Atomic uint64_t started_ns, ended_ns;
    bool cache_reserved;
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

static int open_sources(struct pb_run *run, struct pb_err *err)
{
    const struct pb_input_config *input = &run->options.pipeline->input;
    char path[PATH_MAX];
    int rc = 0;
    for (size_t i = 0; i < input->n_sources && rc == 0; i++) {
        struct pb_plan_other *other = &run->others[i];
        rc = pb_source_path(run->options.config, &input->sources[i], run->scene, path, err);
        if (rc == 0)
            rc = pb_raster_open(path, &run->options.config->limits, err, &run->source[i]);
        if (rc < 0)
            break;
        other->config = &input->sources[i];
        other->info = pb_raster_info(run->source[i]);
        other->placed = pb_source_place(run->raster, run->source[i], &other->map);
    }
    return rc;
}

/* None of the files that were read is another one now. */
static int check_unchanged(const struct pb_run *run, struct pb_err *err)
{
    int rc = pb_raster_unchanged(run->raster, err);
    for (size_t i = 0; i < run->options.pipeline->input.n_sources && rc == 0; i++)
        rc = pb_raster_unchanged(run->source[i], err);
    return rc;
}

static int make_plan(struct pb_run *run, struct pb_err *err)
{
    int32_t device = -1;
    char why[200];
    int rc = choose_device(&run->options.config->compute, &device, run->device, why, err);
    if (rc < 0)
        return rc;
    struct pb_device_traits traits;
    struct pb_plan_request request = {.config = run->options.config,
                                      .pipeline = run->options.pipeline,
                                      .info = pb_raster_info(run->raster),
                                      .others = run->others,
                                      .n_others = run->options.pipeline->input.n_sources,
                                      .cuda = device >= 0,
                                      .device_index = device,
                                      .jobs_beside = run->options.jobs_beside,
                                      .stream_why = run->options.stream_why};
    if (device >= 0 && pb_device_traits(device, &traits) == 0)
        request.traits = &traits;
    rc = pb_plan_create(&request, err, &run->plan);
    if (rc < 0)
        return rc;
    if (device >= 0 && !run->plan->cuda)
        (void)snprintf(run->device, sizeof run->device, "cpu");
    run->exec_type = pb_exec_of(run->plan);
    pb_plan_product_env(run->plan, &request, &run->env);
    run->env.raster = run->raster;
    run->env.scene = run->scene;
    run->env.input = run->options.input;
    run->env.device = run->device;
    run->env.progress = &run->files;
    pb_raster_cache_reserve((int64_t)run->plan->cache_bytes);
    run->cache_reserved = true;
    return 0;
}

static int make_products(struct pb_run *run, struct pb_err *err)
{
    const struct pb_pipeline_config *pipeline = run->options.pipeline;
    struct pb_stream *s = &run->stream;
    int rc = 0;
    run->env.place = run->options.place;
    run->env.directory = run->options.directory;
    if (run->env.directory == NULL) {
        rc = pb_publish_begin(&run->options, run->scene, pb_raster_info(run->raster), err,
                              &run->publish);
        if (rc < 0)
            return rc;
        run->env.place = pb_publish_place(run->publish);
        run->env.directory = pb_publish_directory(run->publish);
    }
    s->products = calloc(pipeline->n_products + 1, sizeof *s->products);
    s->types = calloc(pipeline->n_products + 1, sizeof *s->types);
    run->results = calloc(pipeline->n_products + 1, sizeof *run->results);
    if (s->products == NULL || s->types == NULL || run->results == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the products");
    for (size_t i = 0; i < pipeline->n_products; i++) {
        s->types[i] = pb_product_type(pipeline->products[i]->kind);
        rc = s->types[i]->create(&run->env, pipeline->products[i], err, &s->products[i]);
        if (rc < 0)
            return rc;
        s->n_products = i + 1;
    }
    return 0;
}

static int make_channel(const struct wic_options *options, void **out_memory,
                        struct wic_channel **out_channel, struct pb_err *err)
{
    size_t bytes = (wic_channel_bytes(options) + 63) / 64 * 64;
    if (bytes == 0 || (*out_memory = aligned_alloc(64, bytes)) == NULL ||
        wic_channel_init(*out_memory, options, out_channel) < 0)
        return pb_fail(err, PB_E_MEMORY, "cannot make a channel of %u slots of %zu bytes",
                       options->slots, options->slot_bytes);
    return 0;
}

static int make_stream(struct pb_run *run, struct pb_err *err)
{
    const struct pb_plan *plan = run->plan;
    struct pb_stream *s = &run->stream;
    run->in_bytes = plan->in_slots * wic_slot_stride(plan->in_slot_bytes);
    run->out_bytes = plan->out_slots * wic_slot_stride(plan->out_slot_bytes);
    int rc = pb_mem_alloc(plan->mem, run->in_bytes, err, &run->in_memory);
    if (rc == 0)
        rc = pb_mem_alloc(plan->mem, run->out_bytes, err, &run->out_memory);
    if (rc < 0)
        return rc;
    struct wic_options in = {
        .slots = plan->in_slots, .slot_bytes = plan->in_slot_bytes, .payload = run->in_memory};
    struct wic_options out = {
        .slots = plan->out_slots, .slot_bytes = plan->out_slot_bytes, .payload = run->out_memory};
    rc = make_channel(&in, &run->in_channel, &s->in, err);
    if (rc == 0)
        rc = make_channel(&out, &run->out_channel, &s->out, err);
    if (rc < 0)
        return rc;
    s->plan = plan;
    s->raster[0] = run->raster;
    for (size_t i = 0; i < run->options.pipeline->input.n_sources; i++)
        s->raster[i + 1] = run->source[i];
    s->limits = &run->options.config->limits;
    s->in_flight = pb_in_flight_create(&plan->grid, plan->order, plan->window_units);
    if (s->in_flight == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    for (size_t i = 0; i < plan->n_sources; i++) {
        struct pb_block_cache_options cells = pb_plan_cache_options(plan, i);
        if (cells.count > 0 && (rc = pb_block_cache_create(&cells, err, &s->cache[i])) < 0)
            return rc;
    }
    if (plan->cuda) /* before a kernel may be there */
        pb_device_link(plan->device_index, RATE_BYTES, &run->to_device_rate,
                       &run->from_device_rate);
    return run->exec_type->create(s, err, &run->exec);
}

int pb_run_create(const struct pb_run_options *options, struct pb_err *err, struct pb_run **out_run)
{
    struct pb_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the run");
    run->options = *options;
    pthread_mutex_init(&run->stream.lock, NULL);
    pb_run_threads_init(&run->threads);
    if (options->scene != NULL)
        (void)snprintf(run->scene, sizeof run->scene, "%s", options->scene);
    else
        pb_file_name_scene(options->input, run->scene, sizeof run->scene);
    int rc = pb_raster_ready(err);
    if (rc == 0)
        rc = pb_raster_open(options->input, &options->config->limits, err, &run->raster);
    if (rc == 0)
        rc = open_sources(run, err);
    if (rc == 0)
        rc = make_plan(run, err);
    if (rc == 0 && options->products != NULL)
        rc = make_products(run, err);
    if (rc == 0 && options->products != NULL)
        rc = make_stream(run, err);
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
    atomic_store(&run->stage, PB_STAGE_COMPUTE);
    int rc = run->publish != NULL ? pb_publish_identify(run->publish, &why) : 0;
    rc = rc ? rc
            : pb_run_threads_start(&run->threads, &run->stream, run->exec_type, run->exec, &why);
    if (rc == 0)
        return 0;
    pb_stream_fail(&run->stream, &why); /* what a wait would say */
    if (err != NULL && err->code == PB_OK)
        *err = why;
    return rc;
}

/* Nothing failed, but is everything there? A stage that ended early for a reason nobody thought of
 * must not publish half a scene. */
static int check_complete(struct pb_run *run, struct pb_err *err)
{
    uint64_t done = atomic_load(&run->stream.write.tiles);
    uint32_t total = pb_grid_count(&run->plan->grid);
    if (done != total)
        return pb_fail(err, PB_E_SYSTEM,
                       "only %llu of %u tiles came through; please report the input",
                       (unsigned long long)done, total);
    return check_unchanged(run, err);
}

int pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err)
{
    if (run->state != STARTED && run->state != COMPUTED)
        return out_of_order(err, "wait");
    int rc = pb_run_threads_join(&run->threads, timeout_ms);
    if (rc < 0)
        return rc;
    if (atomic_load(&run->ended_ns) == 0)
        atomic_store(&run->ended_ns, pb_clock_mono_ns());
    if (atomic_load(&run->stream.failed)) {
        if (err != NULL && err->code == PB_OK)
            *err = run->stream.failure;
        return pb_code_errno(run->stream.failure.code);
    }
    if (atomic_load(&run->files.stop))
        return pb_fail(err, PB_E_JOB_DISMISSED, "cancelled while computing");
    rc = check_complete(run, err);
    if (rc == 0)
        run->state = COMPUTED;
    return rc;
}

void pb_run_abort(struct pb_run *run)
{
    atomic_store(&run->files.stop, true);
    pb_stream_abort(&run->stream);
}

static void report(struct pb_run *run, struct pb_run_report *out)
{
    static const char *const mem[] = {"host", "pinned", "managed"};
    const struct pb_stream *s = &run->stream;
    struct wic_stats in, to;
    wic_stats_get(s->in, &in);
    wic_stats_get(s->out, &to);
    (void)snprintf(out->device, sizeof out->device, "%s", run->device);
    (void)snprintf(out->buffers, sizeof out->buffers, "%s", mem[run->plan->mem]);
    (void)snprintf(out->sync, sizeof out->sync, "%s", run->exec_type->sync);
    (void)snprintf(out->sync_why, sizeof out->sync_why, "%s",
                   pb_plan_stream_why(run->plan, run->options.config));
    if (run->exec_type->link != NULL) {
        run->exec_type->link(run->exec, &out->link);
        out->link.to_device_rate = run->to_device_rate;
        out->link.from_device_rate = run->from_device_rate;
    }
    out->memory_bytes = run->plan->total_bytes;
    out->tile_px = run->plan->grid.side_px;
    const struct pb_stage_counter *counter[3] = {&s->read, &s->compute, &s->write};
    const char *const names[3] = {"read", "compute", "write"};
    const uint32_t threads[3] = {run->plan->readers, run->exec_type->threads(run->exec),
                                 run->plan->writers};
    const uint64_t parked[3] = {in.producer_parked_ns + atomic_load(&s->read.parked_ns),
                                run->exec_type->counts_parked
                                    ? atomic_load(&s->compute.parked_ns)
                                    : in.consumer_parked_ns + to.producer_parked_ns,
                                to.consumer_parked_ns};
    for (int i = 0; i < 3; i++)
        out->stage[i] = (struct pb_stage_report){names[i],
                                                 threads[i],
                                                 atomic_load(&counter[i]->busy_ns),
                                                 parked[i],
                                                 atomic_load(&counter[i]->tiles),
                                                 atomic_load(&counter[i]->bytes)};
    out->elapsed_ms =
        (int64_t)((atomic_load(&run->ended_ns) - atomic_load(&run->started_ns)) / 1000000);
}

int pb_run_publish(struct pb_run *run, struct pb_err *err, struct pb_run_result *out_result)
{
    uint64_t start = pb_clock_mono_ns();
    if (run->state != COMPUTED)
        return out_of_order(err, "publish");
    run->state = PUBLISHED; /* once, also when it fails */
    atomic_store(&run->stage, PB_STAGE_PUBLISH);
    int rc = pb_finish_products(&run->stream, run->plan->writers, &run->files, err, run->results,
                                &run->n_results);
    if (rc == 0 && atomic_load(&run->files.stop))
        rc = pb_fail(err, PB_E_JOB_DISMISSED, "cancelled before publishing");
    if (rc == 0)
        rc = check_unchanged(run, err);
    if (rc == 0 && run->publish == NULL)
        (void)snprintf(out_result->directory, sizeof out_result->directory, "%s",
                       run->env.directory);
    else if (rc == 0)
        rc = pb_publish_results(run->publish, &run->stream, run->results, run->n_results, err,
                                out_result->directory);
    if (rc < 0)
        return rc;
    out_result->products = run->results;
    out_result->n_products = run->n_results;
    out_result->warning = run->publish != NULL ? pb_publish_warning(run->publish) : "";
    report(run, &out_result->report);
    out_result->report.publish_ms = (int64_t)((pb_clock_mono_ns() - start) / 1000000);
    atomic_store(&run->stage, PB_STAGE_DONE);
    return 0;
}

void pb_run_progress(struct pb_run *run, struct pb_run_progress *out)
{
    uint64_t started = atomic_load(&run->started_ns);
    *out = (struct pb_run_progress){
        .stage = (enum pb_stage)atomic_load(&run->stage),
        .tiles_done = (uint32_t)atomic_load(&run->stream.write.tiles),
        .tiles_total = pb_grid_count(&run->plan->grid),
        .bytes_read = atomic_load(&run->stream.read.bytes),
        .bytes_written = atomic_load(&run->files.bytes),
        .elapsed_ms = started ? (int64_t)((pb_clock_mono_ns() - started) / 1000000) : 0,
    };
}

void pb_run_destroy(struct pb_run *run)
{
    if (run == NULL)
        return;
    if (run->stream.in_flight != NULL)
        pb_run_abort(run);
    (void)pb_run_threads_join(&run->threads, -1);
    pb_run_threads_fini(&run->threads);
    if (run->exec != NULL)
        run->exec_type->destroy(run->exec);
    pb_in_flight_destroy(run->stream.in_flight);
    for (size_t i = 0; i < PB_SOURCES_MAX; i++)
        pb_block_cache_destroy(run->stream.cache[i]);
    wic_channel_fini(run->stream.in);
    wic_channel_fini(run->stream.out);
    free(run->in_channel);
    free(run->out_channel);
    if (run->plan != NULL && !pb_device_left_behind()) {
        pb_mem_free(run->plan->mem, run->in_memory, run->in_bytes);
        pb_mem_free(run->plan->mem, run->out_memory, run->out_bytes);
    }
    for (size_t i = 0; i < run->stream.n_products; i++)
        run->stream.types[i]->destroy(run->stream.products[i]);
    free(run->stream.products);
    free(run->stream.types);
    free(run->results);
    pb_publish_close(run->publish);
    if (run->cache_reserved)
        pb_raster_cache_reserve(-(int64_t)run->plan->cache_bytes);
    pb_plan_destroy(run->plan);
    for (size_t i = 0; i < PB_SOURCES_MAX - 1; i++)
        pb_raster_close(run->source[i]);
    pb_raster_close(run->raster);
    pthread_mutex_destroy(&run->stream.lock);
    free(run);
}

const char *pb_stage_name(enum pb_stage stage)
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

int pb_run_explain(const struct pb_run *run, char *text, size_t bytes)
{
    const struct pb_raster_info *info = pb_raster_info(run->raster);
    int n = snprintf(
        text, bytes, "scene      %s, %d x %d px, %d band%s, %s, blocks %d x %d, device %s\n",
        run->scene, info->width, info->height, info->n_bands, info->n_bands == 1 ? "" : "s",
        info->compression, info->block_w, info->block_h, run->device);
    if (n < 0 || (size_t)n >= bytes)
        return n;
    return n + pb_plan_describe(run->plan, text + n, bytes - (size_t)n);
}
