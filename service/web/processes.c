/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The class core of OGC API Processes demands the execution of processes by POST, and the other
 * classes demand core. Therefore the conformance declaration has classes of OGC API Common only,
 * although lists, descriptions, states, results and exceptions have the forms of the standard. */
#include "service/web/processes.h"

#include "config/base/clock.h"
#include "config/base/err.h"
#include "config/base/href.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "service/web/document.h"
#include "service/web/request.h"
#include "service/web/upstream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REL        "http://www.opengis.net/def/rel/ogc/1.0/"
#define REPLY_MAX  ((size_t)64 << 20)
#define BLOCK      200  /* jobs of a query of the service */
#define BLOCKS     10   /* queries for a page */
#define PAGE_MS    5000 /* a page that takes longer ends, with a link to the next one */
#define PATH_BYTES (3 * PB_WEB_PATH_BYTES)

struct view {
    struct pb_web_upstream *upstream;
    bool knows_people; /* this program knows those who may change jobs */
    const struct pb_web_query *query;
    struct pb_web_document *out;
    struct pb_json *json;
};

static void fail(struct view *view, unsigned status, const char *type, const char *title,
                 const char *detail)
{
    pb_web_document_fail(view->out, status, type, title, detail);
}

static void begin(struct view *view)
{
    view->json = pb_json_create(false);
    pb_json_object(view->json, NULL);
}

static void end(struct view *view)
{
    pb_json_end(view->json);
    pb_web_document_take(view->out, view->json, PB_WEB_JSON);
}

static void link_to(struct view *view, const char *rel, const char *path)
{
    pb_web_link(view->json, view->query, rel, PB_WEB_JSON, NULL, path);
}

/* Writes "/HEAD/NAME" with the name escaped, and the tail. */
static void path_of(const char *head, const char *name, const char *tail, char out[PATH_BYTES])
{
    size_t n = (size_t)snprintf(out, PATH_BYTES, "/%s/", head);
    n += pb_href_part(name, out + n, PATH_BYTES - n);
    (void)snprintf(out + n, PATH_BYTES - n, "%s", tail);
}

/* Reads an answer of the service (taken). Without one the document is the failure. */
static struct pb_json_value *read_reply(struct view *view, char *text, const struct pb_err *err)
{
    struct pb_json_value *value = NULL;
    if (text != NULL && pb_json_parse(text, strlen(text), REPLY_MAX, &value) != 0)
        fail(view, 502, NULL, "the service sent no JSON", "");
    else if (text == NULL && err->code == PB_E_JOB_UNKNOWN)
        fail(view, 404, "no-such-job", "no such job", err->msg);
    else if (text == NULL)
        fail(view, 503, NULL, "the service cannot be read", err->msg);
    free(text);
    return value;
}

/* --- processes --- */

static void put_process(struct view *view, const char *name, const char *version, bool is_whole)
{
    char own[PATH_BYTES], text[400];
    struct pb_web_settings settings;
    path_of("processes", name, "", own);
    pb_web_upstream_settings(view->upstream, &settings);
    (void)snprintf(text, sizeof text, "Pipeline %.255s of pushbroom.", name);
    pb_json_string(view->json, "id", name);
    pb_json_string(view->json, "title", name);
    pb_json_string(view->json, "description", text);
    pb_json_string(view->json, "version", version);
    pb_json_array(view->json, "jobControlOptions");
    if (settings.actions && view->knows_people)
        pb_json_string(view->json, NULL, "dismiss");
    pb_json_end(view->json);
    pb_json_array(view->json, "outputTransmission");
    pb_json_string(view->json, NULL, "reference");
    pb_json_end(view->json);
    if (is_whole) {
        pb_json_raw(view->json, "inputs",
                    "{\"scene\":{\"title\":\"Scene\",\"description\":\"A file or a folder that "
                    "arrives in an inbox, or is submitted at the socket.\",\"schema\":{\"type\":"
                    "\"string\"}}}");
        pb_json_raw(view->json, "outputs",
                    "{\"products\":{\"title\":\"Products\",\"description\":\"A file for each "
                    "product of the pipeline, as links.\",\"schema\":{\"type\":\"object\"}}}");
    }
    pb_json_array(view->json, "links");
    link_to(view, is_whole ? "self" : "process", own);
    pb_json_end(view->json);
}

static void put_summaries(struct view *view, const struct pb_json_value *names, const char *version)
{
    begin(view);
    pb_json_array(view->json, "processes");
    for (size_t i = 0; i < pb_json_count(names); i++) {
        const char *name = pb_json_text_of(pb_json_at(names, i));
        if (name == NULL)
            continue;
        pb_json_object(view->json, NULL);
        put_process(view, name, version, false);
        pb_json_end(view->json);
    }
    pb_json_end(view->json);
    pb_json_array(view->json, "links");
    link_to(view, "self", "/processes");
    pb_json_end(view->json);
    end(view);
}

/* Answers the list of processes (id NULL), or one of them. */
static void answer_processes(struct view *view, const char *id)
{
    struct pb_err err = {0};
    bool found = id == NULL;
    if (!pb_web_query_allows(view->query, NULL, 0, view->out))
        return;
    struct pb_json_value *info =
        read_reply(view, pb_web_upstream_info(view->upstream, NULL, &err), &err);
    if (info == NULL)
        return;
    const struct pb_json_value *names = pb_json_get(info, "pipelines", NULL);
    const char *version = pb_json_get_text(info, "version");
    version = version ? version : "0";
    for (size_t i = 0; i < pb_json_count(names) && !found; i++) {
        const char *name = pb_json_text_of(pb_json_at(names, i));
        found = name != NULL && strcmp(name, id) == 0;
    }
    if (!found) {
        fail(view, 404, "no-such-process", "no such process", id);
    } else if (id == NULL) {
        put_summaries(view, names, version);
    } else {
        begin(view);
        put_process(view, id, version, true);
        end(view);
    }
    pb_json_release(info);
}

/* --- jobs --- */

static void copy_text(struct view *view, const char *key, const char *text)
{
    if (text != NULL)
        pb_json_string(view->json, key, text);
}

static bool is_state(const struct pb_json_value *job, const char *state)
{
    const char *own = pb_json_get_text(job, "status");
    return own != NULL && strcmp(own, state) == 0;
}

/* Writes the members of a job's state. */
static void put_job(struct view *view, const struct pb_json_value *job)
{
    static const char *const times[] = {"created", "started", "finished", "updated"};
    const char *id = pb_json_get_text(job, "id");
    char own[PATH_BYTES], results[PATH_BYTES], process[PATH_BYTES];
    const char *pipeline = pb_json_get_text(job, "pipeline");
    int64_t progress = 0;
    path_of("jobs", id ? id : "", "", own);
    path_of("jobs", id ? id : "", "/results", results);
    path_of("processes", pipeline ? pipeline : "", "", process);
    pb_json_string(view->json, "processID", pipeline ? pipeline : "");
    pb_json_string(view->json, "type", "process");
    copy_text(view, "jobID", id);
    copy_text(view, "status", pb_json_get_text(job, "status"));
    copy_text(view, "message", pb_json_get_text(pb_json_get(job, "error", NULL), "message"));
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        copy_text(view, times[i], pb_json_get_text(job, times[i]));
    if (pb_json_get_int(job, "progress", &progress) == 0)
        pb_json_int(view->json, "progress", progress < 0 ? 0 : progress > 100 ? 100 : progress);
    pb_json_array(view->json, "links");
    link_to(view, "self", own);
    link_to(view, "process", process);
    if (is_state(job, "successful"))
        link_to(view, REL "results", results);
    else if (is_state(job, "failed"))
        link_to(view, REL "exceptions", results);
    pb_json_end(view->json);
}

static struct pb_json_value *read_job(struct view *view, const char *id)
{
    struct pb_err err = {0};
    if (!pb_web_query_allows(view->query, NULL, 0, view->out))
        return NULL;
    if (!pb_web_is_word(id)) {
        fail(view, 404, "no-such-job", "no such job", id);
        return NULL;
    }
    struct pb_json_value *job =
        read_reply(view, pb_web_upstream_job(view->upstream, id, &err), &err);
    const char *own = pb_json_get_text(job, "id");
    if (job == NULL || (own != NULL && strcmp(own, id) == 0))
        return job;
    pb_json_release(job); /* an end of an id is no id here */
    fail(view, 404, "no-such-job", "no such job", id);
    return NULL;
}

static void answer_job(struct view *view, const char *id)
{
    struct pb_json_value *job = read_job(view, id);
    if (job == NULL)
        return;
    begin(view);
    put_job(view, job);
    end(view);
    pb_json_release(job);
}

/* Writes the products as links; the second product of a type is "cog-2". */
static void put_results(struct view *view, const struct pb_json_value *products)
{
    for (size_t i = 0; i < pb_json_count(products); i++) {
        const struct pb_json_value *product = pb_json_at(products, i);
        const char *type = pb_json_get_text(product, "type");
        const char *href = pb_json_get_text(product, "href");
        char key[64], *whole = NULL;
        size_t same = 1;
        if (type == NULL || href == NULL || asprintf(&whole, "%s%s", view->query->base, href) < 0)
            continue;
        for (size_t k = 0; k < i; k++) {
            const char *other = pb_json_get_text(pb_json_at(products, k), "type");
            same += other != NULL && strcmp(other, type) == 0;
        }
        (void)snprintf(key, sizeof key, same > 1 ? "%.40s-%zu" : "%.40s", type, same);
        pb_json_object(view->json, key);
        pb_json_string(view->json, "href", whole);
        copy_text(view, "type", pb_json_get_text(product, "media_type"));
        pb_json_string(view->json, "title", strrchr(whole, '/') + 1);
        pb_json_end(view->json);
        free(whole);
    }
}

static void answer_results(struct view *view, const char *id)
{
    struct pb_json_value *job = read_job(view, id);
    const struct pb_json_value *error = pb_json_get(job, "error", NULL);
    const char *code = pb_json_get_text(error, "code"),
               *message = pb_json_get_text(error, "message");
    if (job == NULL)
        return;
    if (is_state(job, "successful")) {
        begin(view);
        put_results(view, pb_json_get(job, "products", NULL));
        end(view);
    } else if (is_state(job, "failed") && code != NULL) {
        fail(view, strncmp(code, "input.", 6) == 0 ? 400 : 500, NULL, code, message ? message : "");
    } else if (is_state(job, "dismissed")) {
        fail(view, 410, NULL, "the job was dismissed", id);
    } else {
        fail(view, 404, "result-not-ready", "the job has no results yet", id);
    }
    pb_json_release(job);
}

/* --- the list --- */

struct filter {
    const char *process, *status; /* lists with commas; NULL = all, without waiting jobs */
    struct pb_web_interval created;
    int64_t min_s, max_s;
    size_t limit;
};

static bool is_number(const char *text)
{
    const size_t n = strspn(text, "0123456789");
    return n > 0 && n < 10 && text[n] == '\0';
}

/* Reads the arguments. Returns false with a document if one is malformed. */
static bool read_filter(struct view *view, struct filter *out)
{
    static const char *const names[] = {"limit",    "type",        "processID",   "status",
                                        "datetime", "minDuration", "maxDuration", PB_WEB_CURSOR};
    const char *min = pb_web_query_get(view->query, "minDuration");
    const char *max = pb_web_query_get(view->query, "maxDuration");
    const char *datetime = pb_web_query_get(view->query, "datetime");
    const char *after = pb_web_query_get(view->query, PB_WEB_CURSOR);
    if (!pb_web_query_allows(view->query, names, sizeof names / sizeof names[0], view->out) ||
        !pb_web_query_limit(view->query, &out->limit, view->out))
        return false;
    if ((min != NULL && !is_number(min)) || (max != NULL && !is_number(max)) ||
        (after != NULL && !pb_web_is_word(after)) ||
        (datetime != NULL && !pb_web_interval(datetime, &out->created))) {
        fail(view, 400, NULL, "malformed parameter",
             "minDuration, maxDuration: seconds; datetime: a time or an interval of RFC 3339");
        return false;
    }
    out->min_s = min ? strtoll(min, NULL, 10) : 0;
    out->max_s = max ? strtoll(max, NULL, 10) : INT64_MAX;
    out->process = pb_web_query_get(view->query, "processID");
    out->status = pb_web_query_get(view->query, "status");
    return true;
}

static bool is_duration(const struct pb_json_value *job, const struct filter *filter)
{
    const char *started = pb_json_get_text(job, "started");
    const char *finished = pb_json_get_text(job, "finished");
    int64_t from = 0, to = pb_clock_wall_ms() / 1000;
    if (filter->min_s == 0 && filter->max_s == INT64_MAX)
        return true;
    if (started == NULL || !pb_clock_read(started, &from))
        return false;
    if (finished != NULL)
        (void)pb_clock_read(finished, &to);
    return to - from >= filter->min_s && to - from <= filter->max_s;
}

static bool is_match(const struct pb_json_value *job, const struct filter *filter)
{
    const char *status = pb_json_get_text(job, "status"), *id = pb_json_get_text(job, "id");
    const char *pipeline = pb_json_get_text(job, "pipeline");
    const char *created = pb_json_get_text(job, "created");
    return id != NULL && status != NULL && pipeline != NULL &&
           (filter->status != NULL ? pb_web_list_has(filter->status, status)
                                   : strcmp(status, "accepted") != 0) &&
           (filter->process == NULL || pb_web_list_has(filter->process, pipeline)) &&
           (created == NULL || pb_web_interval_has(&filter->created, created)) &&
           is_duration(job, filter);
}

/* Writes the jobs of a block. Returns the number of jobs that were used. */
static size_t put_block(struct view *view, const struct pb_json_value *jobs,
                        const struct filter *filter, size_t *written)
{
    size_t i = 0;
    for (; i < pb_json_count(jobs) && *written < filter->limit; i++) {
        if (!is_match(pb_json_at(jobs, i), filter))
            continue;
        pb_json_object(view->json, NULL);
        put_job(view, pb_json_at(jobs, i));
        pb_json_end(view->json);
        ++*written;
    }
    return i;
}

/* Writes the jobs of a page. Returns false with a document if the service does not answer.
 * cursor: id of the job before the page, then of its last one; "" = none, or no further ones. */
static bool put_jobs(struct view *view, const struct filter *filter, char cursor[PB_WEB_ID_BYTES])
{
    const int64_t until_ms = pb_clock_mono_ms() + PAGE_MS;
    size_t written = 0;
    for (int block = 0;
         block < BLOCKS && written < filter->limit && (block == 0 || pb_clock_mono_ms() < until_ms);
         block++) {
        struct pb_err err = {0};
        char *params = pb_web_list_params(cursor[0] ? cursor : NULL, "200", NULL);
        char *text = params ? pb_web_upstream_jobs(view->upstream, params, &err) : NULL;
        free(params);
        struct pb_json_value *reply = read_reply(view, text, &err);
        if (reply == NULL)
            return false;
        const struct pb_json_value *jobs = pb_json_get(reply, "jobs", NULL);
        const size_t n = pb_json_count(jobs), used = put_block(view, jobs, filter, &written);
        const char *last = used > 0 ? pb_json_get_text(pb_json_at(jobs, used - 1), "id") : NULL;
        const bool is_end = used == n && n < BLOCK;
        (void)snprintf(cursor, PB_WEB_ID_BYTES, "%s", is_end || last == NULL ? "" : last);
        pb_json_release(reply);
        if (cursor[0] == '\0')
            break;
    }
    return true;
}

static void answer_jobs(struct view *view)
{
    struct filter filter = {0};
    char cursor[PB_WEB_ID_BYTES] = "";
    if (!read_filter(view, &filter))
        return;
    const char *after = pb_web_query_get(view->query, PB_WEB_CURSOR);
    const char *type = pb_web_query_get(view->query, "type");
    (void)snprintf(cursor, sizeof cursor, "%s", after ? after : "");
    begin(view);
    pb_json_array(view->json, "jobs");
    if (type != NULL && !pb_web_list_has(type, "process"))
        cursor[0] = '\0';
    else if (!put_jobs(view, &filter, cursor)) {
        pb_json_destroy(view->json);
        return;
    }
    pb_json_end(view->json);
    pb_json_array(view->json, "links");
    pb_web_link_self(view->json, view->query, PB_WEB_JSON, "/jobs");
    if (cursor[0] != '\0')
        pb_web_link_next(view->json, view->query, PB_WEB_JSON, "/jobs", cursor);
    pb_json_end(view->json);
    end(view);
}

/* --- the root --- */

static void answer_conformance(struct view *view)
{
    static const char *const classes[] = {
        "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/core",
        "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/landing-page",
        "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/json",
        "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/oas30"};
    if (!pb_web_query_allows(view->query, NULL, 0, view->out))
        return;
    begin(view);
    pb_json_array(view->json, "conformsTo");
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        pb_json_string(view->json, NULL, classes[i]);
    pb_json_end(view->json);
    end(view);
}

static void answer_root(struct view *view)
{
    begin(view);
    pb_json_string(view->json, "title", "pushbroom");
    pb_json_string(view->json, "description", "Pipelines, jobs and products of pushbroom.");
    pb_json_array(view->json, "links");
    link_to(view, "self", "/");
    pb_web_link(view->json, view->query, "alternate", "text/html", NULL, "/");
    pb_web_link(view->json, view->query, "service-desc", PB_WEB_OPENAPI, NULL, PB_WEB_SERVICE_DESC);
    link_to(view, "conformance", "/conformance");
    link_to(view, REL "conformance", "/conformance");
    link_to(view, REL "processes", "/processes");
    link_to(view, REL "job-list", "/jobs");
    pb_web_link(view->json, view->query, "child", PB_WEB_JSON, "STAC API", "/stac");
    pb_json_end(view->json);
    end(view);
}

void pb_web_processes(struct pb_web_upstream *upstream, const struct pb_web_query *query,
                      bool knows_people, struct pb_web_document *out)
{
    struct view view = {
        .upstream = upstream, .query = query, .knows_people = knows_people, .out = out};
    char path[PB_WEB_PATH_BYTES];
    *out = (struct pb_web_document){0};
    (void)snprintf(path, sizeof path, "%s", query->path);
    char *id = strchr(path, '/');
    if (id != NULL)
        *id++ = '\0';
    char *tail = id ? strchr(id, '/') : NULL;
    if (tail != NULL)
        *tail++ = '\0';
    if (path[0] == '\0')
        answer_root(&view);
    else if (strcmp(path, "conformance") == 0 && id == NULL)
        answer_conformance(&view);
    else if (strcmp(path, "processes") == 0 && tail == NULL)
        answer_processes(&view, id);
    else if (strcmp(path, "jobs") == 0 && id == NULL)
        answer_jobs(&view);
    else if (strcmp(path, "jobs") == 0 && tail == NULL)
        answer_job(&view, id);
    else if (strcmp(path, "jobs") == 0 && strcmp(tail, "results") == 0)
        answer_results(&view, id);
    else
        fail(&view, 404, NULL, "nothing is at this address", query->path);
}

void pb_web_processes_refuse(const char *path, struct pb_web_document *out)
{
    const char *tail = strrchr(path, '/');
    const bool is_execution =
        strncmp(path, "processes/", 10) == 0 && tail != NULL && strcmp(tail, "/execution") == 0;
    if (is_execution)
        pb_web_document_fail(out, 501, NULL, "processes are not executed here",
                             "Put the scene into the inbox, or use pushbroom submit.");
    else
        pb_web_document_fail(out, 405, NULL, "this method is not possible here",
                             "The header Allow has those that are.");
}
