/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/result_json.h"
#include "config/pipeline_config.h"
#include "kernels/chain/chain.h"
#include "pipeline/metadata/calibration.h"
#include "pipeline/metadata/observation.h"
#include "pipeline/plan/staged.h"
#include "pipeline/raster/raster.h"
#include "pipeline/run/run_tiles.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/sidecars.h"
#include "service/worker/core_use.h"
#include "wic/pattern/pattern.h"

#include <stdio.h>
#include <string.h>

#define GAPS_MAX 64 /* in a report */

/* Prints degrees, rounded to 1e-7 (a centimetre) as in STAC items. */
static void print_degrees(struct pb_json *json, double degrees)
{
    pb_json_number(json, NULL, round(degrees * 1e7) / 1e7 + 0.0);
}

void pb_result_print_bbox(struct pb_json *json, const double bbox[4])
{
    pb_json_array(json, "bbox");
    for (size_t i = 0; i < 4; i++)
        print_degrees(json, bbox[i]);
    pb_json_end(json);
}

/* Prints the places of a picture's corners. */
static void print_corners(struct pb_json *json, const struct pb_run_result *result,
                          const struct pb_product_result *product)
{
    if (!result->has_corners || !product->is_map)
        return;
    pb_json_array(json, "corners");
    for (int i = 0; i < 4; i++) {
        pb_json_array(json, NULL);
        print_degrees(json, result->corner[product->corner[i]][0]);
        print_degrees(json, result->corner[product->corner[i]][1]);
        pb_json_end(json);
    }
    pb_json_end(json);
}

static void print_product(struct pb_json *json, const struct pb_run_result *result,
                          const struct pb_product_result *product)
{
    char path[4500];
    (void)snprintf(path, sizeof path, "%s/%s", result->directory, product->file);
    pb_json_object(json, NULL);
    pb_json_string(json, "type", product->kind->section.name);
    if (product->name != NULL)
        pb_json_string(json, "name", product->name);
    pb_json_string(json, "path", path);
    pb_json_int(json, "bytes", (int64_t)product->bytes);
    if (product->checksum[0] != '\0')
        pb_json_string(json, "checksum", product->checksum);
    else
        pb_json_null(json, "checksum");
    pb_json_string(json, "media_type", product->media_type);
    if (product->moved_off_nodata > 0)
        pb_json_int(json, "moved_off_nodata", (int64_t)product->moved_off_nodata);
    print_corners(json, result, product);
    pb_json_end(json);
}

/* Prints part / whole, or null if whole is 0. */
static void print_share(struct pb_json *json, const char *key, double part, double whole)
{
    if (whole > 0)
        pb_json_number(json, key, part / whole);
    else
        pb_json_null(json, key);
}

static void print_stage(struct pb_json *json, const struct pb_stage_report *stage,
                        int64_t elapsed_ms)
{
    double thread_ns = (double)elapsed_ms * 1e6 * stage->threads;
    pb_json_object(json, NULL);
    pb_json_string(json, "name", stage->name);
    pb_json_int(json, "threads", stage->threads);
    pb_json_int(json, "busy_ms", (int64_t)(stage->busy_ns / 1000000));
    pb_json_int(json, "parked_ms", (int64_t)(stage->parked_ns / 1000000));
    print_share(json, "parked_share", (double)stage->parked_ns, thread_ns);
    pb_json_int(json, "tiles", (int64_t)stage->tiles);
    pb_json_int(json, "bytes", (int64_t)stage->bytes);
    pb_json_end(json);
}

static void print_link(struct pb_json *json, const struct pb_link_report *link, int64_t elapsed_ms)
{
    double seconds = (double)elapsed_ms / 1e3;
    pb_json_object(json, "link");
    pb_json_int(json, "to_device_bytes", (int64_t)link->to_device_bytes);
    pb_json_int(json, "from_device_bytes", (int64_t)link->from_device_bytes);
    print_share(json, "to_device_share", (double)link->to_device_bytes,
                seconds * link->to_device_rate);
    print_share(json, "from_device_share", (double)link->from_device_bytes,
                seconds * link->from_device_rate);
    pb_json_number(json, "starved_ms", (double)link->starved_ns / 1e6);
    pb_json_number(json, "leave_ms", (double)link->leave_ns / 1e6);
    pb_json_int(json, "blocks", link->blocks);
    pb_json_int(json, "launches", link->launches);
    pb_json_string(json, "plan", link->plan[0] ? link->plan : NULL);
    pb_json_end(json);
}

/* Prints the report of a GPU that decodes blocks. */
static void print_gpu(struct pb_json *json, const struct pb_device_report *gpu, int64_t elapsed_ms)
{
    double ns = (double)elapsed_ms * 1e6;
    pb_json_object(json, "gpu");
    pb_json_number(json, "occupied_ms", (double)gpu->occupied_ns / 1e6);
    print_share(json, "occupied_share", (double)gpu->occupied_ns, ns);
    pb_json_number(json, "set_up_ms", (double)gpu->set_up_ns / 1e6);
    pb_json_number(json, "pin_ms", (double)gpu->pin_ns / 1e6);
    pb_json_array(json, "work");
    for (int i = 0; i < PB_DEVICE_WORKS; i++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "name", pb_device_work_name((enum pb_device_work)i));
        pb_json_number(json, "ms", (double)gpu->work_ns[i] / 1e6);
        print_share(json, "share", (double)gpu->work_ns[i], ns);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_int(json, "blocks", (int64_t)gpu->blocks);
    pb_json_int(json, "core_blocks", (int64_t)gpu->core_blocks);
    pb_json_int(json, "kept_bytes", (int64_t)gpu->kept_bytes);
    if (gpu->managed_bytes > 0) {
        pb_json_object(json, "managed");
        pb_json_int(json, "bytes", (int64_t)gpu->managed_bytes);
        pb_json_int(json, "most_bytes", (int64_t)gpu->managed_most_bytes);
        pb_json_int(json, "in_bytes", (int64_t)gpu->managed_in_bytes);
        pb_json_int(json, "out_bytes", (int64_t)gpu->managed_out_bytes);
        pb_json_end(json);
    }
    pb_json_array(json, "waits");
    for (int i = 0; i < PB_DEVICE_WAITS; i++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "thread", pb_device_wait_thread((enum pb_device_wait)i));
        pb_json_string(json, "for", pb_device_wait_name((enum pb_device_wait)i));
        pb_json_number(json, "ms", (double)gpu->wait_ns[i] / 1e6);
        print_share(json, "share", (double)gpu->wait_ns[i], ns);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
}

static void print_work(struct pb_json *json, const struct pb_run_report *report)
{
    struct pb_core_facts facts = {.cores = report->cores, .process_ns = report->process_ns};
    memcpy(facts.part, report->part, sizeof facts.part);
    pb_core_facts_print(&facts, json);
}

/* Prints the times from the publication of lines to their values. */
static void print_latency(struct pb_json *json, const struct pb_latency_report *latency)
{
    if (latency->n == 0)
        return;
    pb_json_object(json, "latency");
    pb_json_int(json, "n", (int64_t)latency->n);
    pb_json_number(json, "p50_us", (double)latency->p50_ns / 1e3);
    pb_json_number(json, "p99_us", (double)latency->p99_ns / 1e3);
    pb_json_number(json, "max_us", (double)latency->most_ns / 1e3);
    pb_json_end(json);
}

/* Prints the counts of lines and of missing lines of a scene of a stream, and its first GAPS_MAX
 * gaps. */
static void print_lines(struct pb_json *json, const struct pb_raster *raster)
{
    int32_t missing = 0, first, n;
    int64_t left_out = 0, gaps = 0;
    if (!pb_raster_has_lines(raster))
        return;
    pb_json_object(json, "lines");
    pb_json_array(json, "gaps");
    for (int32_t y = 0; (n = pb_raster_next_gap(raster, y, &first)) > 0; y = first + n) {
        missing += n;
        if (gaps++ >= GAPS_MAX) {
            left_out++;
            continue;
        }
        pb_json_object(json, NULL);
        pb_json_int(json, "first", first);
        pb_json_int(json, "n", n);
        pb_json_end(json);
    }
    pb_json_end(json);
    if (left_out > 0)
        pb_json_int(json, "gaps_left_out", left_out);
    pb_json_int(json, "n", pb_raster_info(raster)->height);
    pb_json_int(json, "missing", missing);
    pb_json_end(json);
}

/* Prints the report of a pipeline with a gate. */
static void print_gate(struct pb_json *json, const struct pb_gate_report *gate)
{
    const char *why = gate->why != NULL && gate->why[0] != '\0' ? gate->why : NULL;
    if (why == NULL && gate->tiles == 0)
        return;
    pb_json_object(json, "gate");
    pb_json_int(json, "tiles", (int64_t)gate->tiles);
    pb_json_int(json, "left_out", (int64_t)gate->left_out);
    pb_json_int(json, "blocks_not_decoded", (int64_t)gate->blocks);
    pb_json_string(json, "why", why);
    pb_json_end(json);
}

/* Prints the bands whose pixels have more digits than float32. */
static void print_digits(struct pb_json *json, const struct pb_run_report *report)
{
    if (report->n_digits == 0)
        return;
    pb_json_array(json, "digits");
    for (size_t i = 0; i < report->n_digits; i++) {
        const struct pb_digits_report *one = &report->digits[i];
        pb_json_object(json, NULL);
        pb_json_string(json, "band", one->band);
        pb_json_string(json, "type", one->type);
        pb_json_int(json, "pixels", (int64_t)one->pixels);
        pb_json_string(json, "are", one->kept ? "out of range" : "rounded");
        pb_json_end(json);
    }
    pb_json_end(json);
}

static bool is_tagged(const struct pb_band_tags *tags)
{
    const bool scaled = tags != NULL && tags->scale != 0 && (tags->scale != 1 || tags->offset != 0);
    return scaled || (tags != NULL && tags->unit != NULL && tags->unit[0] != '\0');
}

/* Prints scale, offset and unit that bands of the products have from files; only the first ones,
 * because a report is bounded. */
static void print_tags(struct pb_json *json, const struct pb_product_env *env)
{
    enum { PRINTED_MAX = 64 };
    size_t n = 0;
    for (size_t i = 0; env != NULL && env->tags != NULL && i < env->n_bands; i++) {
        const struct pb_band_tags *tags = env->tags[i];
        if (!is_tagged(tags) || n == PRINTED_MAX)
            continue;
        if (n++ == 0)
            pb_json_array(json, "tags");
        pb_json_object(json, NULL);
        pb_json_string(json, "band", env->band_names[i]);
        pb_json_number(json, "scale", tags->scale == 0 ? 1 : tags->scale);
        pb_json_number(json, "offset", tags->scale == 0 ? 0 : tags->offset);
        pb_json_string(json, "unit", tags->unit != NULL && tags->unit[0] ? tags->unit : NULL);
        pb_json_end(json);
    }
    if (n > 0)
        pb_json_end(json);
}

static void print_notes(struct pb_json *json, const struct pb_notes *notes)
{
    if (notes == NULL || notes->n == 0)
        return;
    pb_json_array(json, "notes");
    for (size_t i = 0; i < notes->n; i++)
        pb_json_string(json, NULL, notes->text[i]);
    pb_json_end(json);
}

/* Prints the place of products in a coordinate system that a step chose. */
static void print_place(struct pb_json *json, const struct pb_chain *chain)
{
    const struct pb_ground *ground = chain != NULL ? pb_chain_ground(chain) : NULL;
    if (ground != NULL && ground->by[0] != '\0')
        pb_json_string(json, "placed_by", ground->by);
}

static void print_reduction(struct pb_json *json, const struct pb_chain_use *use)
{
    const struct pb_chain_reduction *r = use->reduction;
    pb_json_object(json, NULL);
    pb_json_int(json, "step", (int64_t)use->step + 1);
    pb_json_string(json, "band", use->band);
    pb_json_array(json, "results");
    for (uint32_t k = use->first; k < use->first + use->n; k++) {
        char name[40];
        pb_reduce_name(&r->reduce, k, name, sizeof name);
        pb_json_object(json, NULL);
        pb_json_string(json, "name", name);
        pb_json_number(json, "value", r->results[k]);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
}

/* Prints the results of the steps' reductions in the order of the steps; only the first ones if
 * there are many, because a report is bounded. */
static void print_reductions(struct pb_json *json, const struct pb_chain *chain)
{
    enum { PRINTED_MAX = 64 };
    struct pb_chain_use use;
    size_t n = 0;
    if (chain == NULL || !pb_chain_use_at(chain, 0, &use))
        return;
    pb_json_array(json, "reductions");
    for (; pb_chain_use_at(chain, n, &use); n++)
        if (n < PRINTED_MAX)
            print_reduction(json, &use);
    pb_json_end(json);
    if (n > PRINTED_MAX)
        pb_json_int(json, "reductions_left_out", (int64_t)(n - PRINTED_MAX));
}

/* step: number of the step of these rounds, from 1; 0: the rounds of the pipeline. */
static void print_exchange(struct pb_json *json, const struct pb_exchange_config *exchange,
                           size_t step)
{
    const struct wic_pattern *pattern = exchange->pattern;
    if (pattern == NULL)
        return;
    pb_json_object(json, NULL);
    pb_json_string(json, "of", pb_exchange_of_name(exchange->of));
    if (step > 0)
        pb_json_int(json, "step", (int64_t)step);
    pb_json_string(json, "pattern", pattern->name);
    pb_json_object(json, "arguments");
    for (size_t i = 0; i < pattern->arg_count; i++)
        pb_json_int(json, pattern->args[i].name, (int64_t)exchange->args[i]);
    pb_json_end(json);
    pb_json_end(json);
}

static void print_exchanges(struct pb_json *json, const struct pb_pipeline_config *pipeline)
{
    if (pipeline == NULL)
        return;
    pb_json_array(json, "exchanges");
    print_exchange(json, &pipeline->exchange, 0);
    for (size_t i = 0; i < pipeline->n_steps; i++)
        print_exchange(json, &pipeline->steps[i].exchange, i + 1);
    pb_json_end(json);
}

static void print_metadata(struct pb_json *json, const struct pb_metadata *facts)
{
    if (facts == NULL || facts->family == NULL)
        return;
    pb_json_object(json, "metadata");
    pb_json_string(json, "family", facts->family->name);
    pb_json_string(json, "product", facts->product[0] ? facts->product : NULL);
    pb_json_string(json, "platform", facts->platform[0] ? facts->platform : NULL);
    pb_json_string(json, "datetime", facts->datetime[0] ? facts->datetime : NULL);
    if (facts->baseline[0] != '\0')
        pb_json_string(json, "baseline", facts->baseline);
    pb_json_end(json);
}

/* Prints the metadata and the calibration rule of each band. */
static void print_calibration(struct pb_json *json, const struct pb_run_result *result)
{
    const struct pb_metadata *facts = result->metadata;
    char rule[256], source[256];
    print_metadata(json, facts);
    if (result->n_calibrated == 0)
        return;
    pb_json_array(json, "calibration");
    for (size_t i = 0; i < result->n_calibrated; i++) {
        const struct pb_calibrated *c = &result->calibrated[i];
        pb_json_object(json, NULL);
        pb_json_string(json, "band", c->band);
        pb_json_string(json, "of", c->of);
        pb_json_string(json, "to", pb_calibrated_quantity(c));
        pb_json_string(json, "formula", pb_calibration_text(c, rule, sizeof rule));
        pb_json_string(json, "rule", pb_calibrated_source(c, facts, source, sizeof source));
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* Prints the input files of a scene with many files, and the access to an archive. */
static void print_files(struct pb_json *json, const struct pb_scene_files *files)
{
    const char *name[PB_INPUT_NAMES_MAX];
    size_t n = files != NULL ? pb_scene_files_names(files, name) : 0;
    if (n == 0)
        return;
    pb_json_array(json, "files");
    for (size_t i = 0; i < n; i++)
        pb_json_string(json, NULL, name[i]);
    pb_json_end(json);
    if (files->n_members == 0)
        return;
    pb_json_object(json, "archive");
    pb_json_int(json, "members", (int64_t)files->n_members);
    pb_json_int(json, "needed_bytes", (int64_t)files->bytes);
    pb_json_int(json, "unpacked_bytes", (int64_t)files->unpacked_bytes);
    pb_json_end(json);
}

/* Prints the device that made the blocks of the products. */
static void print_encoded(struct pb_json *json, const struct pb_run_result *result)
{
    const struct pb_plan_out *out = result->report.out;
    const struct pb_pipeline_config *pipeline = result->pipeline;
    if (out == NULL)
        return;
    pb_json_array(json, "encoded");
    for (size_t i = 0; i < pipeline->n_products && i < PB_OUT_PRODUCTS; i++) {
        const bool on_device = (out->by_device >> i & 1) != 0;
        if (!on_device && out->why[i] == NULL)
            continue;
        pb_json_object(json, NULL);
        pb_json_string(json, "type", pipeline->products[i]->kind->section.name);
        pb_json_string(json, "name", pipeline->products[i]->name);
        pb_json_string(json, "on", on_device ? "device" : "host");
        pb_json_string(json, "why", out->why[i]);
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* Prints the tiles of a grid with their results. */
static void print_tiles(struct pb_json *json, const struct pb_run_tiles *tiles)
{
    if (tiles == NULL)
        return;
    pb_json_array(json, "tiles");
    for (size_t i = 0; i < tiles->n; i++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "id", tiles->tile[i].place.id);
        pb_json_string(json, "state", pb_run_tile_state(tiles->tile[i].state));
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* Prints the bounds and the time. */
static void print_where(struct pb_json *json, const struct pb_run_result *result)
{
    if (result->has_bbox)
        pb_result_print_bbox(json, result->bbox);
    if (result->datetime[0] != '\0')
        pb_json_string(json, "datetime", result->datetime);
}

void pb_result_print(struct pb_json *json, const struct pb_run_result *result)
{
    const struct pb_run_report *report = &result->report;
    pb_json_string(json, "directory", result->directory);
    pb_json_array(json, "products");
    for (size_t i = 0; i < result->n_products; i++)
        print_product(json, result, &result->products[i]);
    pb_json_end(json);
    pb_json_object(json, "report");
    print_where(json, result);
    pb_json_string(json, "device", report->device);
    pb_json_string(json, "buffers", report->buffers);
    bool other = report->buffers_why != NULL && report->buffers_why[0] != '\0';
    pb_json_string(json, "buffers_why", other ? report->buffers_why : NULL);
    pb_json_string(json, "sync", report->sync);
    pb_json_string(json, "sync_why", report->sync_why[0] ? report->sync_why : NULL);
    if (report->codecs != NULL) {
        pb_json_string(json, "codecs", report->codecs);
        pb_json_string(json, "codecs_why", report->codecs_why);
    }
    print_encoded(json, result);
    pb_json_int(json, "memory_bytes", (int64_t)report->memory_bytes);
    if (report->wanted_bytes > 0)
        pb_json_int(json, "memory_wanted_bytes", (int64_t)report->wanted_bytes);
    pb_json_int(json, "tile_px", report->tile_px);
    pb_json_int(json, "elapsed_ms", report->elapsed_ms);
    pb_json_int(json, "publish_ms", report->publish_ms);
    print_work(json, report);
    print_files(json, result->files);
    print_tiles(json, result->tiles);
    pb_observations_print(result->observations, json);
    pb_sidecars_print(result->sidecars, json);
    pb_json_string(json, "valid", report->valid);
    if (report->valid_notes != NULL && report->valid_notes[0] != '\0')
        pb_json_string(json, "valid_notes", report->valid_notes);
    print_calibration(json, result);
    print_place(json, result->chain);
    print_exchanges(json, result->pipeline);
    print_reductions(json, result->chain);
    print_gate(json, &report->gate);
    if (result->env != NULL)
        print_lines(json, result->env->raster);
    print_latency(json, &report->latency);
    print_digits(json, report);
    print_tags(json, result->env);
    print_notes(json, result->notes);
    pb_json_array(json, "stages");
    for (size_t i = 0; i < sizeof report->stage / sizeof report->stage[0]; i++) {
        if (report->stage[i].name != NULL)
            print_stage(json, &report->stage[i], report->elapsed_ms);
    }
    pb_json_end(json);
    if (result->warning != NULL && result->warning[0] != '\0')
        pb_json_string(json, "warning", result->warning);
    if (report->link.used)
        print_link(json, &report->link, report->elapsed_ms);
    if (report->link.used && report->link.device.used)
        print_gpu(json, &report->link.device, report->elapsed_ms);
    pb_json_end(json);
}
