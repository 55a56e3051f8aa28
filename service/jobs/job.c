/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/job.h"

#include "config/base/clock.h"
#include "config/base/json_path.h"
#include "config/base/json_reader.h"
#include "pipeline/io/path.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPORT_MAX (1 << 20)

static const char *const status_names[PB_JOB_STATUS_COUNT] = {
    [PB_JOB_ACCEPTED] = "accepted",     [PB_JOB_RUNNING] = "running",
    [PB_JOB_SUCCESSFUL] = "successful", [PB_JOB_FAILED] = "failed",
    [PB_JOB_DISMISSED] = "dismissed",
};

/* may[from] = set of states that may follow. running -> accepted: a job is put back (shutdown, or
 * a worker that died); failed and dismissed -> accepted: a retry; failed -> dismissed: its input
 * was dropped from quarantine. */
static const unsigned may[PB_JOB_STATUS_COUNT] = {
    [PB_JOB_ACCEPTED] = PB_JOB_MASK(PB_JOB_RUNNING) | PB_JOB_MASK(PB_JOB_DISMISSED),
    [PB_JOB_RUNNING] = PB_JOB_MASK(PB_JOB_ACCEPTED) | PB_JOB_MASK_FINISHED,
    [PB_JOB_SUCCESSFUL] = 0,
    [PB_JOB_FAILED] = PB_JOB_MASK(PB_JOB_ACCEPTED) | PB_JOB_MASK(PB_JOB_DISMISSED),
    [PB_JOB_DISMISSED] = PB_JOB_MASK(PB_JOB_ACCEPTED),
};

void pb_job_init(struct pb_job *job)
{
    memset(job, 0, sizeof *job);
    job->uid = -1;
}

void pb_job_fini(struct pb_job *job)
{
    free(job->inbox);
    free(job->folder);
    pb_scene_manifest_fini(&job->manifest);
    pb_scene_manifest_fini(&job->joined);
    free(job->earlier);
    free(job->home);
    free(job->home_products);
    free(job->published);
    free(job->directory);
    free(job->products);
    free(job->report);
    free(job->bbox);
    memset(job, 0, sizeof *job);
}

int pb_job_set(char **field, const char *value)
{
    char *copy = NULL;
    if (value != NULL && (copy = strdup(value)) == NULL)
        return -ENOMEM;
    free(*field);
    *field = copy;
    return 0;
}

int pb_job_copy(struct pb_job *out, const struct pb_job *job)
{
    *out = *job;
    out->inbox = out->folder = out->earlier = out->home = out->home_products = NULL;
    out->published = out->directory = out->products = out->report = out->bbox = NULL;
    out->joined = (struct pb_scene_manifest){.n_roots = 0};
    if (pb_scene_manifest_copy(&out->manifest, &job->manifest) == 0 &&
        pb_job_set(&out->inbox, job->inbox) == 0 && pb_job_set(&out->folder, job->folder) == 0 &&
        pb_job_set(&out->directory, job->directory) == 0 &&
        pb_job_set(&out->products, job->products) == 0 &&
        pb_job_set(&out->report, job->report) == 0 && pb_job_set(&out->bbox, job->bbox) == 0)
        return 0;
    pb_job_fini(out);
    return -ENOMEM;
}

/* --- files ----------------------------------------------------------------------------------- */

/* Returns the index of the new entry, or a negative errno. */
static int add_file(struct pb_job *job, const char *directory, const struct pb_manifest_entry *file)
{
    char path[PB_SCENE_MANIFEST_PATH_BYTES];
    const char *below = job->inbox != NULL ? pb_path_below(directory, job->inbox) : NULL;
    const int n = snprintf(path, sizeof path, "%s%s%s", below != NULL ? below : "",
                           below != NULL ? "/" : "", file->path);
    int root = pb_scene_manifest_root(&job->manifest, below != NULL ? job->inbox : directory);
    if (root < 0 || n < 0 || n >= (int)sizeof path)
        return root < 0 ? root : -EINVAL;
    struct pb_manifest_entry entry = *file;
    entry.path = path;
    entry.root = (uint16_t)root;
    return pb_scene_manifest_add(&job->manifest, &entry);
}

int pb_job_add_delivered(struct pb_job *job, const char *directory,
                         const struct pb_manifest_entry *file, const struct pb_member *member)
{
    const int entry = add_file(job, directory, file);
    if (entry < 0 || member == NULL)
        return entry < 0 && entry != -E2BIG ? entry : 0;
    struct pb_member own = *member;
    own.entry = (uint32_t)entry;
    return pb_scene_manifest_assign(&job->manifest, &own);
}

int pb_job_expect_companion(struct pb_job *job, const char *directory, const char *name,
                            bool verifies)
{
    const struct pb_manifest_entry file = {
        .path = (char *)name, .bytes = -1, .is_gone = true, .verifies = verifies};
    pb_scene_manifest_remove(&job->manifest, PB_ROLE_COMPANION);
    int entry = add_file(job, directory, &file);
    const struct pb_member member = {.entry = (uint32_t)entry, .role = PB_ROLE_COMPANION};
    return entry < 0 ? entry : pb_scene_manifest_assign(&job->manifest, &member);
}

int pb_job_set_companion(struct pb_job *job, const char *path)
{
    struct pb_manifest_entry *companion = pb_scene_manifest_find(&job->manifest, PB_ROLE_COMPANION);
    if (companion == NULL)
        return path != NULL ? -EINVAL : 0;
    companion->is_gone = path == NULL;
    return path != NULL ? pb_scene_manifest_move(&job->manifest, companion, path) : 0;
}

const char *pb_job_companion(const struct pb_job *job, char out[PB_SCENE_MANIFEST_PATH_BYTES])
{
    const struct pb_manifest_entry *companion =
        pb_scene_manifest_find(&job->manifest, PB_ROLE_COMPANION);
    return companion != NULL && !companion->is_gone &&
                   pb_scene_manifest_path(&job->manifest, companion, out) == 0
               ? out
               : NULL;
}

void pb_job_print_delivered(struct pb_json *json, const char *key, const struct pb_job *job)
{
    char path[PB_SCENE_MANIFEST_PATH_BYTES];
    const bool has_folder = job->manifest.first_folder < job->manifest.n_entries;
    int n = 0;
    pb_json_array(json, key);
    for (size_t i = 0; i < job->manifest.n_entries && n < PB_JOB_DELIVERED_MAX; i++) {
        const struct pb_manifest_entry *entry = &job->manifest.entry[i];
        if (pb_scene_manifest_is(&job->manifest, i, PB_ROLE_COMPANION) ||
            (has_folder && !entry->is_folder) ||
            pb_scene_manifest_path(&job->manifest, entry, path) != 0)
            continue;
        pb_json_string(json, NULL, path);
        n++;
    }
    pb_json_end(json);
}

/* Digits of ids, without i, l, o and u, which are easily confused by readers. */
static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

void pb_job_make_id(int64_t wall_ms, uint32_t random, char out[PB_JOB_ID_BYTES])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc = {0};
    (void)gmtime_r(&seconds, &utc);
    size_t n = strftime(out, PB_JOB_ID_BYTES, "%Y%m%d-%H%M%S-", &utc);
    for (int i = 0; i < 4 && n + 1 < PB_JOB_ID_BYTES; i++, random >>= 5)
        out[n++] = digits[random & 31u];
    out[n] = '\0';
}

bool pb_job_is_suffix(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n < PB_JOB_ID_BYTES && strspn(text, "0123456789abcdefghjkmnpqrstvwxyz-") == n;
}

bool pb_job_is_id(const char *text)
{
    if (strlen(text) != 20 || !pb_job_is_suffix(text))
        return false;
    for (int i = 0; i < 16; i++) {
        bool dash = i == 8 || i == 15;
        if (dash ? text[i] != '-' : text[i] < '0' || text[i] > '9')
            return false;
    }
    return strchr(text + 16, '-') == NULL;
}

bool pb_job_may(enum pb_job_status from, enum pb_job_status to)
{
    return (unsigned)from < PB_JOB_STATUS_COUNT && (unsigned)to < PB_JOB_STATUS_COUNT &&
           (may[from] & PB_JOB_MASK(to)) != 0;
}

bool pb_job_is_skipped(const struct pb_job *job)
{
    return job->status == PB_JOB_DISMISSED &&
           strcmp(job->error.code, pb_code_id(PB_E_INPUT_DUPLICATE)) == 0;
}

void pb_job_leave_out(struct pb_job *job, const char *message)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "skipped", message);
    pb_json_end(json);
    (void)pb_job_set(&job->products, "[]"); /* if out of memory: without its details */
    (void)pb_job_set(&job->report, pb_json_text(json, NULL));
    (void)pb_job_set(&job->directory, NULL);
    pb_json_destroy(json);
    memset(&job->error, 0, sizeof job->error);
    (void)snprintf(job->stage, sizeof job->stage, "skipped");
}

bool pb_job_is_left_out(const struct pb_job *job)
{
    return strcmp(job->stage, "skipped") == 0;
}

bool pb_job_is_scene(const struct pb_job *job)
{
    return job->archive[0] != '\0' && job->again[0] == '\0';
}

bool pb_job_is_delivered(const struct pb_job *job)
{
    return job->owned || (pb_job_is_scene(job) && job->inbox != NULL);
}

bool pb_job_has_scenes(const struct pb_job *job)
{
    return strcmp(job->stage, "scenes") == 0;
}

bool pb_job_began(const struct pb_job *job)
{
    return job->epoch > 0 || job->attempts > 0 || job->error.code[0] != '\0';
}

bool pb_job_publishes(const struct pb_job *job)
{
    return strcmp(job->stage, "done") == 0 ||
           (strcmp(job->stage, "publish") == 0 && job->tiles_done == job->tiles_total);
}

static void clear_run(struct pb_job *job)
{
    job->progress = 0;
    job->stage[0] = job->device[0] = job->device_why[0] = '\0';
    job->tiles_done = job->tiles_total = 0;
    job->bytes_read = job->bytes_written = job->elapsed_ms = 0;
    job->started_ms = job->finished_ms = 0;
    memset(&job->error, 0, sizeof job->error);
    (void)pb_job_set(&job->directory, NULL);
    (void)pb_job_set(&job->products, NULL);
    (void)pb_job_set(&job->report, NULL);
}

int pb_job_move(struct pb_job *job, enum pb_job_status to, int64_t wall_ms)
{
    const bool reopens =
        to == PB_JOB_ACCEPTED && job->status == PB_JOB_SUCCESSFUL && pb_job_has_scenes(job);
    if (!reopens && !pb_job_may(job->status, to))
        return -EPERM;
    if (to == PB_JOB_ACCEPTED) {
        clear_run(job);
        if (job->status != PB_JOB_RUNNING) { /* requested by a client: attempts start again */
            job->attempts = 0;
            job->shunned[0] = '\0';
        }
    } else if (to == PB_JOB_RUNNING) {
        clear_run(job);
        (void)pb_job_set(&job->bbox, NULL); /* a job that waits again has its place of before */
        job->datetime[0] = '\0';
        job->attempts++;
        job->epoch++;
        job->started_ms = wall_ms;
    } else {
        job->finished_ms = wall_ms;
        if (to == PB_JOB_SUCCESSFUL) {
            job->progress = 100;
            if (!pb_job_is_left_out(job) && !pb_job_has_scenes(job))
                (void)snprintf(job->stage, sizeof job->stage, "done");
        }
    }
    job->status = to;
    job->updated_ms = wall_ms;
    return 0;
}

int pb_job_shunned_at(const struct pb_job *job, const char *node)
{
    const size_t n = strlen(node);
    for (const char *at = job->shunned, *end; (end = strchr(at, ' ')) != NULL; at = end + 1)
        if ((size_t)(end - at) == n && strncmp(at, node, n) == 0)
            return (int)(at - job->shunned);
    return -1;
}

/* Removes the name at that position. */
static void remove_shunned(struct pb_job *job, size_t at)
{
    const char *next = strchr(job->shunned + at, ' ') + 1;
    (void)memmove(job->shunned + at, next, strlen(next) + 1);
}

void pb_job_shun(struct pb_job *job, const char *node)
{
    const int at = pb_job_shunned_at(job, node);
    const size_t n = strlen(node);
    if (n == 0 || n + 2 > sizeof job->shunned)
        return;
    if (at >= 0)
        remove_shunned(job, (size_t)at);
    while (strlen(job->shunned) + n + 2 > sizeof job->shunned)
        remove_shunned(job, 0);
    (void)strcat(strcat(job->shunned, node), " ");
}

void pb_job_drop(struct pb_job *job, int64_t wall_ms)
{
    const int64_t finished_ms = job->finished_ms;
    if (job->status != PB_JOB_FAILED)
        return;
    (void)pb_job_move(job, PB_JOB_DISMISSED, wall_ms);
    job->finished_ms = finished_ms;
    (void)snprintf(job->error.hint, sizeof job->error.hint,
                   "its input was dropped from quarantine; deliver it again if it is needed");
}

void pb_job_restart(struct pb_job *job, int64_t wall_ms)
{
    char why[sizeof job->device_why];
    int64_t started_ms = job->started_ms;
    (void)memcpy(why, job->device_why, sizeof why);
    clear_run(job);
    (void)memcpy(job->device_why, why, sizeof why);
    job->started_ms = started_ms;
    job->updated_ms = wall_ms;
}

const char *pb_job_status_name(enum pb_job_status status)
{
    return (unsigned)status < PB_JOB_STATUS_COUNT ? status_names[status] : "?";
}

bool pb_job_status_find(const char *name, enum pb_job_status *out_status)
{
    for (int i = 0; i < PB_JOB_STATUS_COUNT; i++) {
        if (strcmp(name, status_names[i]) == 0) {
            *out_status = (enum pb_job_status)i;
            return true;
        }
    }
    return false;
}

void pb_job_fail(struct pb_job *job, enum pb_code code, const char *format, ...)
{
    struct pb_job_error *error = &job->error;
    error->memory_bytes = 0;
    (void)snprintf(error->code, sizeof error->code, "%s", pb_code_id(code));
    (void)snprintf(error->hint, sizeof error->hint, "%s", pb_code_hint(code));
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
}

void pb_job_fail_words(struct pb_job *job, const char *code, const char *message, const char *hint)
{
    struct pb_job_error *error = &job->error;
    error->memory_bytes = 0;
    (void)snprintf(error->code, sizeof error->code, "%s", code && *code ? code : "system");
    (void)snprintf(error->message, sizeof error->message, "%s",
                   message && *message ? message : "the worker gave no reason");
    (void)snprintf(error->hint, sizeof error->hint, "%s", hint ? hint : pb_code_hint(PB_E_SYSTEM));
}

bool pb_job_is_bbox(const struct pb_json_value *bbox)
{
    bool good = pb_json_count(bbox) == 4;
    for (size_t i = 0; good && i < 4; i++) {
        const double most = i % 2 ? 90 : 180;
        const double degrees = pb_json_number_of(pb_json_at(bbox, i), 999);
        good = degrees >= -most && degrees <= most;
    }
    return good;
}

void pb_job_take_place(struct pb_job *job)
{
    struct pb_json_value *report = NULL;
    if (job->report == NULL ||
        pb_json_parse(job->report, strlen(job->report), REPORT_MAX, &report) != 0)
        return;
    const struct pb_json_value *bbox = pb_json_get(report, "bbox", NULL);
    const char *datetime = pb_json_get_text(report, "datetime");
    (void)pb_job_set(&job->bbox, pb_job_is_bbox(bbox) ? pb_json_source(bbox) : NULL);
    (void)snprintf(job->datetime, sizeof job->datetime, "%s", datetime ? datetime : "");
    pb_json_release(report);
}

/* Prints the path of the first picture for viewers among the products, or null. */
static void print_preview(struct pb_json *json, const struct pb_job *job)
{
    struct pb_json_value *products = NULL;
    const char *path = NULL;
    if (job->products != NULL)
        (void)pb_json_parse(job->products, strlen(job->products), REPORT_MAX, &products);
    for (size_t i = 0; path == NULL && i < pb_json_count(products); i++) {
        const struct pb_json_value *product = pb_json_at(products, i);
        const char *type = pb_json_get_text(product, "media_type");
        const bool is_picture =
            type != NULL && strncmp(type, "image/", 6) == 0 && strncmp(type, "image/tiff", 10) != 0;
        path = is_picture ? pb_json_get_text(product, "path") : NULL;
    }
    pb_json_string(json, "preview", path);
    pb_json_release(products);
}

static void print_time(struct pb_json *json, const char *key, int64_t wall_ms)
{
    char text[PB_CLOCK_TEXT_BYTES];
    pb_clock_text(wall_ms, text);
    pb_json_string(json, key, text[0] ? text : NULL);
}

void pb_job_print_error(struct pb_json *json, const char *key, const struct pb_job_error *error)
{
    if (error->code[0] == '\0') {
        pb_json_null(json, key);
        return;
    }
    pb_json_object(json, key);
    pb_json_string(json, "code", error->code);
    pb_json_string(json, "message", error->message);
    pb_json_string(json, "hint", error->hint);
    if (error->memory_bytes > 0)
        pb_json_int(json, "memory", error->memory_bytes);
    pb_json_end(json);
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static void print_members(struct pb_json *json, const struct pb_job *job)
{
    char path[PB_SCENE_MANIFEST_PATH_BYTES];
    pb_json_string(json, "id", job->id);
    pb_json_string(json, "name", job->name);
    pb_json_string(json, "scene", job->scene);
    pb_json_string(json, "folder", job->folder);
    pb_job_print_delivered(json, "delivered", job);
    pb_json_path(json, "input", job->manifest.input);
    pb_json_string(json, "companion", pb_job_companion(job, path));
    pb_json_string(json, "pipeline", or_null(job->pipeline));
    if (job->uid >= 0)
        pb_json_int(json, "uid", job->uid);
    else
        pb_json_null(json, "uid");
    pb_json_int(json, "priority", job->priority);
    pb_json_string(json, "status", pb_job_status_name(job->status));
    pb_json_int(json, "progress", job->progress);
    pb_json_string(json, "stage", or_null(job->stage));
    pb_json_int(json, "tiles_done", job->tiles_done);
    pb_json_int(json, "tiles_total", job->tiles_total);
    pb_json_int(json, "bytes_read", job->bytes_read);
    pb_json_int(json, "bytes_written", job->bytes_written);
    pb_json_int(json, "elapsed_ms", job->elapsed_ms);
    pb_json_int(json, "attempts", job->attempts);
    pb_json_string(json, "node", or_null(job->node));
    pb_json_bool(json, "needs_gpu", job->needs_gpu);
    pb_json_string(json, "replaces", or_null(job->replaces));
    pb_json_string(json, "again_of", or_null(job->again));
    pb_json_string(json, "archive", or_null(job->archive));
    pb_json_string(json, "device", or_null(job->device));
    pb_json_string(json, "device_why", or_null(job->device_why));
    print_time(json, "created", job->created_ms);
    print_time(json, "started", job->started_ms);
    print_time(json, "updated", job->updated_ms);
    print_time(json, "finished", job->finished_ms);
    pb_json_string(json, "directory", job->directory);
    pb_json_raw(json, "products", job->products ? job->products : "[]");
    print_preview(json, job);
    pb_json_raw(json, "bbox", job->bbox ? job->bbox : "null");
    pb_json_string(json, "datetime", or_null(job->datetime));
    pb_job_print_error(json, "error", &job->error);
}

void pb_job_print(struct pb_json *json, const char *key, const struct pb_job *job)
{
    pb_json_object(json, key);
    print_members(json, job);
    pb_json_raw(json, "report", job->report ? job->report : "null");
    pb_json_end(json);
}

void pb_job_print_brief(struct pb_json *json, const char *key, const struct pb_job *job)
{
    pb_json_object(json, key);
    print_members(json, job);
    pb_json_end(json);
}
