/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli/cli_tune.h"
#include "config/config.h"
#include "service/cli/cli.h"

#include "config/base/json_writer.h"
#include "pipeline/device/others.h"
#include "pipeline/device/tuning.h"
#include "pipeline/tune/tune.h"
#include "service/base/files.h"
#include "service/device/owner_client.h"
#include "service/processes/device_owners.h"
#include "service/status/client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GB 1e9

enum { PLAN_BYTES = 120 };

struct table {
    struct pb_json *json; /* NULL = text */
    uint32_t rows;
};

/* --- results of measurements ------------------------------------------------------------------ */

/* Formats "16K", "4M". */
static char *size_text(uint64_t bytes, char *out, size_t n)
{
    bool large = bytes >= 1 << 20 && bytes % (1 << 20) == 0;
    (void)snprintf(out, n, "%llu%c", (unsigned long long)(large ? bytes >> 20 : bytes >> 10),
                   large ? 'M' : 'K');
    return out;
}

static void plan_text(const struct pb_tune_result *r, char *out, size_t n)
{
    char piece[24], link[24], backlog[24];
    if (r->plan.engine_backlog > 0)
        (void)snprintf(out, n, "engines from %s, %u blocks",
                       size_text(r->plan.engine_backlog, backlog, sizeof backlog), r->plan.blocks);
    else
        (void)snprintf(out, n, "pull %s x %u, %u blocks, %s",
                       size_text(r->plan.in_piece, piece, sizeof piece), r->plan.depth,
                       r->plan.blocks,
                       size_text((uint64_t)r->plan.pulls * r->plan.in_piece, link, sizeof link));
}

static void print_row(const struct pb_tune_result *r)
{
    char plan[PLAN_BYTES];
    plan_text(r, plan, sizeof plan);
    printf("%4d px x %d %2.3g:1  %-29s %5.1f %5.1f %6.1f %s\n", r->shape.side_px, r->shape.bands,
           (double)r->row.in_bytes / (double)r->row.out_bytes, plan, (double)r->row.rate / GB,
           (double)r->table_rate / GB, (double)r->row.copies / GB, r->limit);
}

static void json_row(struct pb_json *json, const struct pb_tune_result *r)
{
    char plan[PLAN_BYTES];
    plan_text(r, plan, sizeof plan);
    pb_json_object(json, NULL);
    pb_json_int(json, "side_px", r->shape.side_px);
    pb_json_int(json, "bands", r->shape.bands);
    pb_json_int(json, "tile_bytes", (int64_t)r->row.in_bytes);
    pb_json_int(json, "result_bytes", (int64_t)r->row.out_bytes);
    pb_json_string(json, "plan", plan);
    pb_json_int(json, "bytes_per_s", (int64_t)r->row.rate);
    pb_json_int(json, "table_bytes_per_s", (int64_t)r->table_rate);
    pb_json_int(json, "copies_bytes_per_s", (int64_t)r->row.copies);
    pb_json_int(json, "plans_measured", (int64_t)r->trials);
    pb_json_string(json, "limited_by", r->limit);
    pb_json_end(json);
}

static void on_result(void *user, const struct pb_tune_result *result)
{
    struct table *table = user;
    if (table->json != NULL) {
        json_row(table->json, result);
        return;
    }
    if (table->rows++ == 0)
        printf("\n%-12s %4s  %-29s %5s %5s %6s %s\n", "tile, bands", "in", "fastest plan", "GB/s",
               "table", "copies", "limited by");
    print_row(result);
    (void)fflush(stdout);
}

/* --- the tuning file -------------------------------------------------------------------------- */

static int make_parent(const char *path, struct pb_err *err)
{
    char parent[PB_TUNING_PATH_BYTES];
    (void)snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL || slash == parent)
        return 0;
    *slash = '\0';
    return pb_files_make_directory(parent, "directory of the measurements", err);
}

static int keep(const char *gpu, const char *driver, const struct pb_tuning *tuning,
                char path[PB_TUNING_PATH_BYTES], struct pb_err *err)
{
    pb_tuning_path(path);
    if (path[0] == '\0')
        return pb_fail(err, PB_E_SYSTEM,
                       "there is no place for the measurements: neither HOME nor XDG_CACHE_HOME "
                       "nor PUSHBROOM_TUNING is set");
    char *text = pb_tuning_text(path, gpu, driver, tuning, err);
    int rc = text != NULL ? make_parent(path, err) : -1;
    if (rc == 0)
        rc = pb_files_write(path, text, strlen(text), err);
    free(text);
    return rc;
}

/* Returns true if an owner process uses the device: jobs and measurements would slow each other
 * down, and the owner uses the plans that it loaded at its start. */
static bool is_owned(const struct pb_device *device, char path[PB_DEVICE_OWNER_PATH_BYTES])
{
    char number[16], socket[PB_DEVICE_OWNER_PATH_BYTES];
    const struct pb_config config = {.service = {.socket = socket}};
    struct pb_owner_load load;
    (void)snprintf(socket, sizeof socket, "%s", pb_client_default_path());
    (void)snprintf(number, sizeof number, "%d", device->index);
    return pb_device_owners_path(&config, number, 0, path) && pb_owner_load_at(path, &load);
}

static int refuse_beside_others(const struct pb_device *device, struct pb_err *err)
{
    int32_t pid = 0;
    int others = pb_device_others(device->index, &pid);
    char one_of_them[32] = "";
    if (others == 0)
        return 0;
    if (pid > 0)
        (void)snprintf(one_of_them, sizeof one_of_them, " (one is %d)", pid);
    return pb_fail(
        err, PB_E_DEVICE_BUSY,
        "%d other process%s on cuda:%d%s, which would falsify the measurement; tune when "
        "nothing else uses the GPU",
        others, others == 1 ? " computes" : "es compute", device->index, one_of_them);
}

static int refuse_if_used(const struct pb_device *device, struct pb_err *err)
{
    char owner[PB_DEVICE_OWNER_PATH_BYTES];
    if (is_owned(device, owner))
        return pb_fail(err, PB_E_DEVICE_BUSY,
                       "the service computes on cuda:%d (%s): jobs would falsify the measurement, "
                       "and a running service keeps its plans; stop it, tune, and start it again",
                       device->index, owner);
    return refuse_beside_others(device, err);
}

static int measure(const struct pb_device *device, struct table *table, struct pb_err *err,
                   char path[PB_TUNING_PATH_BYTES])
{
    char driver[PB_DEVICE_DRIVER_BYTES];
    struct pb_device_traits traits;
    struct pb_tuning tuning;
    if (refuse_if_used(device, err) != 0)
        return -1;
    if (pb_device_traits(device->index, &traits) != 0)
        return pb_fail(err, PB_E_DEVICE_FAILED, "the properties of CUDA device %d cannot be read",
                       device->index);
    pb_device_driver(driver);
    int rc = pb_tune(device->index, PB_TUNE_SECONDS, on_result, table, err, &tuning);
    return rc == 0 ? keep(traits.gpu.name, driver, &tuning, path, err) : rc;
}

/* Returns the exit code. */
static int finish(int rc, const struct pb_err *err)
{
    if (rc != 0)
        cli_print_err(err);
    if (pb_device_left_behind()) { /* freeing memory at exit would wait for the device */
        (void)cli_flush();
        _exit(CLI_JOB_FAILED);
    }
    return rc == 0 ? CLI_DONE : CLI_JOB_FAILED;
}

int cli_tune(const struct pb_device *device, struct pb_json *json)
{
    struct table table = {.json = json};
    struct pb_err err = {0};
    char path[PB_TUNING_PATH_BYTES] = "";
    if (json != NULL)
        pb_json_array(json, "tuned");
    int rc = measure(device, &table, &err, path);
    if (json != NULL) {
        pb_json_end(json);
        pb_json_string(json, "tuning_file", rc == 0 ? path : NULL);
    } else if (rc == 0)
        printf(
            "\nThroughput of input with all slots full; table: by the built-in table; copies: of "
            "\ncopies alone. Kept in %s:\nruns and services that start from now on use it.\n\n",
            path);
    return finish(rc, &err);
}

int cli_tune_peer(const struct pb_device *from, const struct pb_device *to,
                  struct pb_tune_peer *out_peer)
{
    struct pb_err err = {0};
    int rc = refuse_if_used(from, &err);
    if (rc == 0)
        rc = refuse_if_used(to, &err);
    if (rc == 0)
        rc = pb_tune_peer(from->index, to->index, &err, out_peer);
    return finish(rc, &err);
}

/* --- source of plans -------------------------------------------------------------------------- */

void cli_tune_origin(const struct pb_device *device, struct pb_json *json)
{
    struct pb_device_traits traits;
    if (!device->usable || pb_device_traits(device->index, &traits) != 0)
        return;
    const struct pb_tuning *tuning = &traits.tuning;
    if (json != NULL) {
        pb_json_string(json, "tuned_on", tuning->n_rows > 0 ? tuning->date : NULL);
        pb_json_string(json, "tuning_ignored", tuning->why[0] != '\0' ? tuning->why : NULL);
        return;
    }
    if (tuning->n_rows > 0)
        printf("        tuned   measured on %s\n", tuning->date);
    else
        printf("        tuned   no: plans of the built-in table; 'devices --tune' measures\n");
    if (tuning->why[0] != '\0') {
        printf("                ");
        char line[sizeof tuning->why + 16];
        (void)snprintf(line, sizeof line, "ignored: %s", tuning->why);
        cli_wrap(stdout, 16, 80, line);
    }
}
