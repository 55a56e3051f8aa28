/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Plans for a device that is not present, by the same functions that plan for a present one.
 * Figures of speed are estimates and are printed as estimates (pipeline/device/known_devices.c). */
#include "service/cli/cli_as.h"
#include "config/compute_config.h"
#include "service/cli/cli.h"

#include "config/base/json_writer.h"
#include "kernels/nearest.h"
#include "pipeline/tune/device_plan.h"
#include "pipeline/plan/plan.h"
#include "pipeline/plan/staged.h"

#include <stdio.h>
#include <string.h>

enum { KNOWN_MAX = 32, TEXT = 400 };

/* Shares of a typical scene: 582 MB of blocks become 1,015 MB of pixels and 678 MB of results. */
#define STORED_SHARE (582.0 / 1015)
#define RESULT_SHARE (678.0 / 1015)

static uint32_t cores_of(const struct cli_as *as)
{
    return as->device->cores > 0 ? (uint32_t)as->device->cores : pb_device_cores();
}

static double cores_inflate(const struct cli_as *as, const struct pb_device_estimate *estimate)
{
    return cores_of(as) * estimate->core_inflate;
}

static bool shares(const struct cli_as *as, const struct pb_device_estimate *estimate)
{
    return pb_plan_whole_shares(estimate->streams, cores_of(as));
}

/* Words for the cores that the plan uses: those of a board are known. */
static const char *cores_text(const struct cli_as *as)
{
    return as->device->cores > 0 ? "cores" : "cores of this machine";
}

/* Writes "N" or "LEAST to MOST" with `digits` digits after the point. */
static void say_range(double least, double most, int digits, char *out, size_t n)
{
    char other[20];
    (void)snprintf(out, n, "%.*f", digits, least);
    (void)snprintf(other, sizeof other, "%.*f", digits, most);
    if (strcmp(out, other) != 0)
        (void)snprintf(out, n, "%.*f to %s", digits, least, other);
}

/* Returns the step that limits a scene, and the rate of pixels, in bytes/s, that it allows. */
static const char *limit_of(const struct cli_as *as, const struct pb_device_estimate *estimate,
                            double *out_rate)
{
    bool both = shares(as, estimate);
    const char *name = both ? "decoding, by GPU and cores" : "decoding by the GPU";
    double link = as->device->link_gb_s * 1e9 / STORED_SHARE;
    *out_rate = estimate->inflate_least + (both ? cores_inflate(as, estimate) : 0);
    if (estimate->encode_least / RESULT_SHARE < *out_rate) {
        *out_rate = estimate->encode_least / RESULT_SHARE;
        name = "encoding";
    }
    if (link > 0 && link < *out_rate) {
        *out_rate = link;
        name = "the link";
    }
    return name;
}

int cli_as_find(const char *command, const char *name, struct cli_as *as)
{
    const char *names[KNOWN_MAX];
    size_t n = 0;
    *as = (struct cli_as){.device = pb_known_device_find(name)};
    if (as->device != NULL) {
        pb_known_device_traits(as->device, &as->traits);
        as->remote = (struct pb_remote){.device = as->device->name, .traits = &as->traits};
        return CLI_DONE;
    }
    for (const struct pb_known_device *d; n < KNOWN_MAX && (d = pb_known_device_at(n)) != NULL;)
        names[n++] = d->name;
    (void)cli_unknown_name(command, "device", name, pb_nearest(name, names, n));
    fputs("  known:", stderr);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "%s %s", i > 0 ? "," : "", names[i]);
    fputs("\n", stderr);
    return CLI_USAGE;
}

void cli_as_apply(struct cli_as *as, struct pb_compute_config *compute)
{
    pb_device_limit(&as->traits, compute->share_percent);
    if (compute->device == PB_DEVICE_CPU)
        compute->device = PB_DEVICE_CUDA;
    if (compute->threads == 0)
        compute->threads = (int32_t)cores_of(as);
}

static void say_decoding(const struct cli_as *as, const struct pb_device_estimate *e, char *out,
                         size_t n)
{
    double cores = cores_inflate(as, e);
    char speed[40], share[40], with[200];
    if (e->streams == 0) {
        (void)snprintf(out, n,
                       "none on the GPU, whose shared memory is too small; estimated %.1f GB/s of "
                       "pixels on %u %s",
                       cores / 1e9, cores_of(as), cores_text(as));
        return;
    }
    say_range(e->inflate_least / 1e9, e->inflate_most / 1e9, 1, speed, sizeof speed);
    say_range(100 * e->inflate_least / (e->inflate_least + cores),
              100 * e->inflate_most / (e->inflate_most + cores), 0, share, sizeof share);
    if (shares(as, e))
        (void)snprintf(with, sizeof with,
                       ", and %.1f on %u %s: of a queue that both take from, the GPU would take %s "
                       "%%",
                       cores / 1e9, cores_of(as), cores_text(as), share);
    else
        (void)snprintf(with, sizeof with, ": %u %s would add too little, so the GPU decodes alone",
                       cores_of(as), cores_text(as));
    (void)snprintf(out, n,
                   "%u blocks of files at a time, %u on a multiprocessor; estimated %s GB/s of "
                   "pixels%s",
                   e->streams, e->blocks_each, speed, with);
}

void cli_as_json(const struct cli_as *as, struct pb_json *json)
{
    const struct pb_known_device *d = as->device;
    struct pb_device_estimate e;
    pb_known_device_estimate(d, &e);
    pb_json_string(json, "device", d->name);
    pb_json_string(json, "name", d->model);
    pb_json_string(json, "source", d->source);
    pb_json_int(json, "multiprocessors", d->multiprocessors);
    pb_json_int(json, "clock_mhz", d->clock_mhz);
    pb_json_int(json, "shared_bytes", as->traits.gpu.shared_bytes);
    pb_json_int(json, "memory_bytes", (int64_t)as->traits.memory_bytes);
    pb_json_number(json, "memory_bytes_per_s", d->memory_gb_s * 1e9);
    pb_json_number(json, "link_bytes_per_s", d->link_gb_s * 1e9);
    pb_json_bool(json, "integrated", d->integrated);
    pb_json_int(json, "cores", cores_of(as));
    pb_json_int(json, "decoded_at_a_time", e.streams);
    pb_json_object(json, "estimated_bytes_per_s");
    pb_json_number(json, "decode_least", e.inflate_least);
    pb_json_number(json, "decode_most", e.inflate_most);
    pb_json_number(json, "decode_cores", cores_inflate(as, &e));
    pb_json_number(json, "encode_least", e.encode_least);
    pb_json_number(json, "encode_most", e.encode_most);
    pb_json_end(json);
}

void cli_as_json_plan(const struct cli_as *as, const struct pb_plan *plan, struct pb_json *json)
{
    bool on_device = plan->engine.whole.used && !plan->engine.whole.all_by_host;
    char text[TEXT], cores[120] = "", speed[40];
    struct pb_device_estimate e;
    pb_known_device_estimate(as->device, &e);
    say_range(e.inflate_least / 1e9, e.inflate_most / 1e9, 1, speed, sizeof speed);
    cli_as_json(as, json);
    if (plan->engine.whole.shares)
        (void)snprintf(cores, sizeof cores,
                       ", and %.1f on %u cores, which take blocks from the same queue",
                       plan->layout.readers * e.core_inflate / 1e9, plan->layout.readers);
    if (on_device)
        (void)snprintf(text, sizeof text,
                       "on the GPU, at most %u blocks at a time: of deflated ones estimated %s "
                       "GB/s of pixels%s",
                       e.streams, speed, cores);
    else
        (void)snprintf(text, sizeof text,
                       "on %d cores: of deflated blocks estimated %.1f GB/s of pixels",
                       (int)plan->layout.readers, plan->layout.readers * e.core_inflate / 1e9);
    pb_json_string(json, "decoding", text);
}

static void line(const char *key, const char *text)
{
    printf("        %-7s ", key);
    cli_wrap(stdout, 16, 80, text);
}

static void print_figures(const struct cli_as *as)
{
    const struct pb_known_device *d = as->device;
    char text[TEXT], of_cpu[60] = "";
    printf("%s  %s (sm_%d), not here: by its figures\n", d->name, d->model, d->compute);
    (void)snprintf(text, sizeof text,
                   "%u multiprocessors at %u MHz with %u KiB of shared memory, %u of a block",
                   d->multiprocessors, d->clock_mhz, d->shared_kib, d->shared_block_kib);
    line("gpu", text);
    (void)snprintf(of_cpu, sizeof of_cpu, ", shared with the %u cores of its CPU", cores_of(as));
    (void)snprintf(text, sizeof text, "%u GB, %.1f GB/s%s", d->memory_gb, d->memory_gb_s,
                   d->integrated ? of_cpu : "");
    line("memory", text);
    (void)snprintf(text, sizeof text, "%.1f GB/s one way", d->link_gb_s);
    line("link", d->integrated ? "none: GPU and CPU share memory, and nothing is copied" : text);
    line("source", d->source);
}

static void print_estimate(const struct cli_as *as)
{
    struct pb_device_estimate e;
    char text[TEXT], speed[40];
    double rate;
    pb_known_device_estimate(as->device, &e);
    say_range(e.encode_least / 1e9, e.encode_most / 1e9, 1, speed, sizeof speed);
    const char *limit = limit_of(as, &e, &rate);
    say_decoding(as, &e, text, sizeof text);
    line("decode", text);
    (void)snprintf(text, sizeof text, "estimated %s GB/s of results", speed);
    line("encode", text);
    (void)snprintf(text, sizeof text,
                   "%s: estimated %.1f GB/s of pixels of a deflated scene, before storage and "
                   "checksums",
                   limit, rate / 1e9);
    line("limit", text);
    line("", "Estimates scale what an H200 did by multiprocessors x clock; a core is taken to be "
             "as fast as one there.");
}

static void json_plans(const struct pb_device_plan plans[PB_DEVICE_PLANS], struct pb_json *json)
{
    pb_json_array(json, "plans");
    for (int i = 0; i < PB_DEVICE_PLANS; i++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "tile", plans[i].tile);
        pb_json_string(json, "plan", plans[i].plan);
        pb_json_end(json);
    }
    pb_json_end(json);
}

int cli_as_show(const char *name, bool as_json)
{
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    struct cli_as as;
    int rc = cli_as_find("devices", name, &as);
    if (rc != CLI_DONE)
        return rc;
    pb_device_plan_list(&as.traits, plans);
    if (as_json) {
        struct pb_json *json = pb_json_create(false);
        pb_json_object(json, NULL);
        cli_as_json(&as, json);
        json_plans(plans, json);
        pb_json_end(json);
        return cli_finish_json(json);
    }
    print_figures(&as);
    print_estimate(&as);
    for (int i = 0; i < PB_DEVICE_PLANS; i++) {
        printf("        %-7s %s:\n                ", i == 0 ? "plans" : "", plans[i].tile);
        cli_wrap(stdout, 16, 80, plans[i].plan);
    }
    return CLI_DONE;
}
