/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_lines.h"

#include "config/base/text_clean.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/io/file_name.h"
#include "pipeline/plan/memory.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCENES_MAX 1000
#define CREDIT     1000 /* cost of a line */
#define BYTES_LINE 4096 /* bytes that one credit pays for */
#define TILES_MAX  ((int64_t)UINT32_MAX)
#define BYTES_MAX  ((int64_t)1 << 60)
#define COUNT_MAX  ((int64_t)1 << 62)
#define EPSG_MAX   ((int64_t)99999)
#define MS_MAX     ((int64_t)1000 * 60 * 60 * 24 * 3660)

static int breach(char why[PB_WORKER_WHY_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int breach(char why[PB_WORKER_WHY_BYTES], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, PB_WORKER_WHY_BYTES, format, args);
    va_end(args);
    return -EPROTO;
}

void pb_worker_lines_reset(struct pb_worker_lines *lines)
{
    memset(lines, 0, sizeof *lines);
}

void pb_worker_lines_begin(struct pb_worker_lines *lines, const struct pb_job *job,
                           const char *products, const char *path, bool turn)
{
    const struct pb_output_facts facts = {.scene = job->scene, .pipeline = job->pipeline};
    memset(&lines->said, 0, sizeof lines->said);
    lines->alerts = 0;
    lines->turn = turn;
    lines->permit = false;
    lines->epoch = job->epoch;
    if (lines->credit_ms != 0) /* the next line trims credit above the limit */
        lines->credit += (int64_t)PB_WORKER_LINES_JOB * CREDIT;
    (void)snprintf(lines->job, sizeof lines->job, "%s", job->id);
    (void)snprintf(lines->scene, sizeof lines->scene, "%s", job->scene);
    (void)snprintf(lines->pipeline, sizeof lines->pipeline, "%s", job->pipeline);
    (void)snprintf(lines->products, sizeof lines->products, "%s", products);
    pb_output_path_pattern(path && path[0] ? path : PB_OUTPUT_PATH_DEFAULT, &facts, &lines->place);
}

void pb_worker_lines_end(struct pb_worker_lines *lines)
{
    lines->job[0] = '\0';
}

bool pb_worker_lines_admit(struct pb_worker_lines *lines, size_t bytes, int64_t mono_ms)
{
    static const int64_t most = (int64_t)PB_WORKER_LINES_BURST * CREDIT;
    int64_t cost = CREDIT + (int64_t)(bytes / BYTES_LINE) * CREDIT;
    if (lines->credit_ms == 0)
        lines->credit = most;
    else if (mono_ms - lines->credit_ms >= most / PB_WORKER_LINES_RATE)
        lines->credit = most;
    else if (mono_ms > lines->credit_ms)
        lines->credit += (mono_ms - lines->credit_ms) * PB_WORKER_LINES_RATE * CREDIT / 1000;
    lines->credit_ms = mono_ms > 0 ? mono_ms : 1;
    if (lines->credit > most)
        lines->credit = most;
    if (lines->credit < cost)
        return false;
    lines->credit -= cost;
    return true;
}

/* Reads an integer from `least` to `most`. */
static int number(const struct pb_json_value *line, const char *key, int64_t least, int64_t most,
                  int64_t *out, char why[PB_WORKER_WHY_BYTES])
{
    int64_t value = 0;
    if (pb_json_get_int(line, key, &value) != 0)
        return breach(why, "%s is no integer", key);
    if (value < least || value > most)
        return breach(why, "%s is %lld, not %lld to %lld", key, (long long)value, (long long)least,
                      (long long)most);
    *out = value;
    return 0;
}

/* Reads a text of the line, cleaned and cut to size; "" if it is missing. */
static void text(const struct pb_json_value *line, const char *key, char *out, size_t bytes)
{
    (void)pb_text_clean(pb_json_get_text(line, key), out, bytes);
}

static bool is_stage(const char *word)
{
    static const char *const stages[] = {"unpack", "plan", "compute", "publish", "done"};
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        if (strcmp(word, stages[i]) == 0)
            return true;
    }
    return false;
}

static void take_bbox(const struct pb_json_value *value, struct pb_worker_line *line)
{
    const struct pb_json_value *bbox = pb_json_get(value, "bbox", NULL);
    const char *source = pb_job_is_bbox(bbox) ? pb_json_source(bbox) : NULL;
    if (source != NULL && strlen(source) < sizeof line->bbox)
        (void)snprintf(line->bbox, sizeof line->bbox, "%s", source);
}

/* Reads the counts of latencies. Counts that decrease are a breach of the protocol. */
static int take_latency(const struct pb_json_value *line, char why[PB_WORKER_WHY_BYTES],
                        struct pb_latency_counts *counts)
{
    const struct pb_json_value *all = pb_json_get(line, "latency", NULL);
    if (all == NULL)
        return 0;
    if (pb_json_count(all) != PB_LATENCY_LIMITS + 2)
        return breach(why, "latency has not %d numbers", PB_LATENCY_LIMITS + 2);
    for (size_t i = 0; i < PB_LATENCY_LIMITS + 2; i++) {
        uint64_t *const to = i <= PB_LATENCY_LIMITS ? &counts->n[i] : &counts->sum_ns;
        const double value = pb_json_number_of(pb_json_at(all, i), -1);
        if (!(value >= (double)*to && value < (double)COUNT_MAX))
            return breach(why, "latency is no list of counts that grow");
        *to = (uint64_t)value;
    }
    return 0;
}

/* Reads a number that may be absent. Returns false if it is out of range. */
static bool real(const struct pb_json_value *value, const char *key, double most, double *out)
{
    *out = pb_json_number_of(pb_json_get(value, key, NULL), NAN);
    return *out >= -most && *out <= most;
}

static int take_alert(const struct pb_json_value *value, char why[PB_WORKER_WHY_BYTES],
                      struct pb_job_alert *out)
{
    int64_t numbers[5] = {0};
    double v = 0;
    static const char *const keys[] = {"number", "pixels", "line", "sample", "acquired_ns"};
    static const int64_t least[] = {1, 1, 0, 0, 0},
                         most[] = {PB_JOB_ALERT_NUMBER, INT32_MAX, INT32_MAX, INT32_MAX, COUNT_MAX};
    int rc = 0;
    for (int i = 0; i < 5; i++)
        rc = rc ? rc : number(value, keys[i], least[i], most[i], &numbers[i], why);
    if (rc == 0 && !real(value, "value", (double)FLT_MAX, &v))
        rc = breach(why, "the value of an alert is no number");
    if (rc != 0)
        return rc;
    *out = (struct pb_job_alert){.number = (uint32_t)numbers[0],
                                 .pixels = (uint32_t)numbers[1],
                                 .line = (int32_t)numbers[2],
                                 .sample = (int32_t)numbers[3],
                                 .acquired_ns = numbers[4],
                                 .value = (float)v};
    text(value, "name", out->name, sizeof out->name);
    text(value, "band", out->band, sizeof out->band);
    out->has_place = real(value, "lon", 360, &out->lon) && real(value, "lat", 90, &out->lat);
    return 0;
}

static int take_alerts(struct pb_worker_lines *lines, const struct pb_json_value *value,
                       char why[PB_WORKER_WHY_BYTES], struct pb_worker_line *line)
{
    const struct pb_json_value *all = pb_json_get(value, "alerts", NULL);
    const size_t n = pb_json_count(all);
    lines->alerts += (int64_t)n;
    if (n == 0 || n > PB_WORKER_ALERTS_MAX || lines->alerts > PB_JOB_ALERTS_MAX)
        return breach(why, "too many alerts, or none");
    line->alerts = calloc(n, sizeof *line->alerts);
    if (line->alerts == NULL)
        return -ENOMEM;
    int rc = 0;
    for (; line->n_alerts < n && rc == 0; line->n_alerts++)
        rc = take_alert(pb_json_at(all, line->n_alerts), why, &line->alerts[line->n_alerts]);
    return rc;
}

static int take_progress(struct pb_worker_lines *lines, const struct pb_json_value *value,
                         char why[PB_WORKER_WHY_BYTES], struct pb_worker_line *line)
{
    const struct pb_worker_numbers *said = &lines->said;
    struct pb_worker_numbers *now = &line->numbers;
    text(value, "stage", line->stage, sizeof line->stage);
    text(value, "device", line->device, sizeof line->device);
    take_bbox(value, line);
    if (!is_stage(line->stage))
        return breach(why, "'%s' is no stage", line->stage);
    int rc = number(value, "tiles_total", said->tiles_total, TILES_MAX, &now->tiles_total, why);
    if (rc == 0 && said->tiles_total > 0 && now->tiles_total != said->tiles_total)
        rc = breach(why, "tiles_total changed within a run");
    rc =
        rc ? rc
           : number(value, "tiles_done", said->tiles_done, now->tiles_total, &now->tiles_done, why);
    rc = rc ? rc : number(value, "bytes_read", said->bytes_read, BYTES_MAX, &now->bytes_read, why);
    rc = rc ? rc
            : number(value, "bytes_written", said->bytes_written, BYTES_MAX, &now->bytes_written,
                     why);
    rc = rc ? rc : number(value, "elapsed_ms", said->elapsed_ms, MS_MAX, &now->elapsed_ms, why);
    if (rc == 0 && pb_json_get(value, "io_ms", NULL) != NULL)
        rc = number(value, "io_ms", 0, MS_MAX, &now->io_ms, why);
    now->waits = false;
    (void)pb_json_get_bool(value, "waits", &now->waits);
    now->latency = said->latency;
    rc = rc ? rc : take_latency(value, why, &now->latency);
    now->bytes_checked = said->bytes_checked;
    if (rc == 0 && pb_json_get(value, "bytes_checked", NULL) != NULL)
        rc = number(value, "bytes_checked", said->bytes_checked, BYTES_MAX, &now->bytes_checked,
                    why);
    if (rc == 0)
        lines->said = *now;
    if (rc == 0 && strcmp(line->stage, "publish") == 0)
        lines->turn = false;
    return rc;
}

static int take_turn(struct pb_worker_lines *lines, const struct pb_json_value *value,
                     char why[PB_WORKER_WHY_BYTES], struct pb_worker_line *line)
{
    if (!lines->turn)
        return breach(why, "a turn that was not expected");
    lines->turn = false;
    int rc = number(value, "tiles", 0, TILES_MAX, &line->tiles, why);
    return rc ? rc : number(value, "memory_bytes", 0, BYTES_MAX, &line->memory_bytes, why);
}

static int take_permit(struct pb_worker_lines *lines, const struct pb_json_value *value,
                       char why[PB_WORKER_WHY_BYTES])
{
    int64_t epoch;
    if (!lines->permit)
        return breach(why, "a permit that was not expected");
    lines->turn = lines->permit = false;
    return number(value, "epoch", lines->epoch, lines->epoch, &epoch, why);
}

static int take_done(struct pb_worker_lines *lines, const struct pb_json_value *value,
                     char why[PB_WORKER_WHY_BYTES], struct pb_worker_line *line)
{
    const struct pb_json_value *report = pb_json_get(value, "report", NULL);
    const char *directory = pb_json_get_text(value, "directory");
    int64_t epsg = 0;
    if (directory == NULL || !pb_worker_is_place(lines, directory))
        return breach(why, "the products are not where this job's belong");
    (void)snprintf(line->directory, sizeof line->directory, "%s", directory);
    text(report, "device", line->device, sizeof line->device);
    int rc = number(report, "elapsed_ms", 0, MS_MAX, &line->numbers.elapsed_ms, why);
    rc = rc ? rc : number(report, "memory_bytes", 0, BYTES_MAX, &line->memory_bytes, why);
    if (rc == 0 && pb_json_get(value, "epsg", NULL) != NULL)
        rc = number(value, "epsg", 1, EPSG_MAX, &epsg, why);
    if (rc != 0)
        return rc;
    line->epsg = (int)epsg;
    line->products = pb_worker_products(pb_json_get(value, "products", NULL), directory, why);
    if (line->products != NULL)
        line->report = pb_worker_report(report, why);
    if (line->report != NULL)
        return 0;
    return why[0] != '\0' ? -EPROTO : -ENOMEM;
}

/* Writes the manifest of an archive with its checksum; nothing if it is absent. Returns 0,
 * -EINVAL: it is not such a manifest; -ENOMEM. */
static int print_archive(struct pb_json *json, const struct pb_json_value *manifest)
{
    struct pb_scene_manifest archive;
    int rc = manifest != NULL ? pb_scene_manifest_read(manifest, &archive) : 0;
    if (rc != 0 || manifest == NULL)
        return rc;
    const bool good = archive.input == NULL && archive.n_entries == 1 && archive.n_members == 0 &&
                      !archive.entry[0].is_folder && archive.entry[0].checksum != NULL;
    if (good)
        pb_scene_manifest_print(&archive, json, "manifest");
    pb_scene_manifest_fini(&archive);
    return good ? 0 : -EINVAL;
}

/* Reads the names of the scenes in an archive, which become names of folders, and the archive. */
static int take_scenes(const struct pb_json_value *value, char why[PB_WORKER_WHY_BYTES],
                       struct pb_worker_line *line)
{
    const struct pb_json_value *scenes = pb_json_get(value, "scenes", NULL);
    const size_t n = pb_json_count(scenes);
    struct pb_json *json = pb_json_create(false);
    bool good = n > 0 && n <= SCENES_MAX;
    pb_json_object(json, NULL);
    pb_json_array(json, "scenes");
    for (size_t i = 0; good && i < n; i++) {
        const char *name = pb_json_text_of(pb_json_at(scenes, i));
        good = name != NULL && strlen(name) < PB_JOB_NAME_BYTES && pb_file_name_is_clean(name);
        pb_json_string(json, NULL, good ? name : "");
    }
    pb_json_end(json);
    const int archive = print_archive(json, pb_json_get(value, "manifest", NULL));
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    line->report = good && archive == 0 && text != NULL ? strdup(text) : NULL;
    pb_json_destroy(json);
    if (!good)
        return breach(why, "its scenes are no list of names");
    if (archive != 0 && archive != -ENOMEM)
        return breach(why, "its manifest is not that of an archive");
    return line->report != NULL ? 0 : -ENOMEM;
}

/* Reads the bytes that the message of plan.memory names; 0 if absent. */
static int64_t read_need(const char *message)
{
    unsigned long long mib = 0;
    const char *at = strstr(message, "needs at least ");
    return at != NULL && sscanf(at, PB_PLAN_NEEDS, &mib) == 1 && mib < 1ull << 40
               ? (int64_t)(mib << 20)
               : 0;
}

/* The code must be a known one; the message and the hint are for readers and may be any readable
 * text. */
static int take_failed(const struct pb_json_value *value, char why[PB_WORKER_WHY_BYTES],
                       struct pb_worker_line *line)
{
    const struct pb_json_value *error = pb_json_get(value, "error", NULL);
    struct pb_job_error *out = &line->error;
    text(error, "code", out->code, sizeof out->code);
    text(error, "message", out->message, sizeof out->message);
    take_bbox(value, line);
    enum pb_code code = pb_code_find(out->code);
    if (code == PB_E_COUNT || code == PB_OK)
        return breach(why, "'%s' is no error code", out->code);
    if (code == PB_E_PLAN_MEMORY)
        out->memory_bytes = read_need(out->message);
    if (out->message[0] == '\0')
        (void)snprintf(out->message, sizeof out->message, "the worker gave no reason");
    (void)snprintf(out->hint, sizeof out->hint, "%s", pb_code_hint(code));
    return code == PB_E_INPUT_SCENES ? take_scenes(value, why, line) : 0;
}

static int take(struct pb_worker_lines *lines, const struct pb_json_value *value,
                char why[PB_WORKER_WHY_BYTES], struct pb_worker_line *line)
{
    const char *event = pb_json_get_text(value, "event");
    const char *job = pb_json_get_text(value, "job");
    bool is_progress = event != NULL && strcmp(event, "progress") == 0;
    if (event == NULL)
        return breach(why, "no event");
    if (strcmp(event, "device") == 0) {
        line->event = PB_WORKER_SAYS_DEVICE;
        text(value, "device", line->device, sizeof line->device);
        text(value, "why", line->why, sizeof line->why);
        return 0;
    }
    if (lines->job[0] == '\0' && is_progress)
        return 1; /* the line was still in the pipe when the job ended */
    if (lines->job[0] == '\0')
        return breach(why, "an event, but no job runs here");
    if (job == NULL || strcmp(job, lines->job) != 0)
        return breach(why, "an event of another job than %s", lines->job);
    if (is_progress) {
        line->event = PB_WORKER_SAYS_PROGRESS;
        return take_progress(lines, value, why, line);
    }
    if (strcmp(event, "alerts") == 0) {
        line->event = PB_WORKER_SAYS_ALERTS;
        return take_alerts(lines, value, why, line);
    }
    if (strcmp(event, "turn") == 0) {
        line->event = PB_WORKER_SAYS_TURN;
        return take_turn(lines, value, why, line);
    }
    if (strcmp(event, "permit") == 0) {
        line->event = PB_WORKER_SAYS_PERMIT;
        return take_permit(lines, value, why);
    }
    if (strcmp(event, "place") == 0 && lines->directory[0] != '\0') {
        line->event = PB_WORKER_SAYS_PLACE;
        text(value, "sensor", line->sensor, sizeof line->sensor);
        line->has_time = pb_json_get_int(value, "time_s", &line->time_s) == 0;
        return 0;
    }
    if (strcmp(event, "inputs") == 0 && lines->directory[0] != '\0') {
        line->event = PB_WORKER_SAYS_INPUTS;
        return 0;
    }
    if (strcmp(event, "done") == 0) {
        line->event = PB_WORKER_SAYS_DONE;
        return take_done(lines, value, why, line);
    }
    line->event = PB_WORKER_SAYS_FAILED;
    return strcmp(event, "failed") == 0 ? take_failed(value, why, line)
                                        : breach(why, "an unknown event");
}

int pb_worker_lines_take(struct pb_worker_lines *lines, const char *line_text, size_t bytes,
                         char why[PB_WORKER_WHY_BYTES], struct pb_worker_line *out_line)
{
    struct pb_json_value *value = NULL;
    memset(out_line, 0, sizeof *out_line);
    why[0] = '\0';
    int rc = pb_json_parse(line_text, bytes, PB_WORKER_LINE_MAX, &value);
    if (rc == -ENOMEM)
        return rc;
    if (rc != 0 || !pb_json_is_object(value))
        rc = breach(why, "no JSON object");
    else
        rc = take(lines, value, why, out_line);
    if (rc != 0)
        pb_worker_line_fini(out_line);
    pb_json_release(value);
    return rc;
}

void pb_worker_line_fini(struct pb_worker_line *line)
{
    free(line->alerts);
    free(line->products);
    free(line->report);
    memset(line, 0, sizeof *line);
}

bool pb_worker_is_spent(const char *code)
{
    static const enum pb_code all[] = {PB_E_DEVICE_LOST, PB_E_DEVICE_FAILED, PB_E_DEVICE_BUSY};
    bool found = false;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        found = found || (code != NULL && strcmp(code, pb_code_id(all[i])) == 0);
    return found;
}
