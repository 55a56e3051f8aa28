/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The class core of OGC API Processes demands the execution of processes, and the other classes
 * demand core. Without people who may change jobs, the conformance declaration therefore has
 * classes of OGC API Common only.
 *
 * A process has one output: an object with a link to each product. A request to execute it decides
 * the form of the results: the object itself ("raw"), or a document with the output in it. The id
 * of a job has that form, "ID-document", because nothing else would survive a restart. */
#include "service/web/processes.h"

#include "config/base/clock.h"
#include "config/base/err.h"
#include "config/base/href.h"
#include "config/base/json_path.h"
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
#define FORM       "-document"
#define INPUT      "scene"
#define OUTPUT     "products"

struct view {
    struct pb_web_upstream *upstream;
    bool may_execute; /* people may change jobs here */
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
    char own[PATH_BYTES], execution[PATH_BYTES], text[400];
    path_of("processes", name, "", own);
    path_of("processes", name, "/execution", execution);
    (void)snprintf(text, sizeof text, "Pipeline %.255s of pushbroom.", name);
    pb_json_string(view->json, "id", name);
    pb_json_string(view->json, "title", name);
    pb_json_string(view->json, "description", text);
    pb_json_string(view->json, "version", version);
    pb_json_array(view->json, "jobControlOptions");
    if (view->may_execute) {
        pb_json_string(view->json, NULL, "async-execute");
        pb_json_string(view->json, NULL, "dismiss");
    }
    pb_json_end(view->json);
    pb_json_array(view->json, "outputTransmission");
    pb_json_string(view->json, NULL, "value");
    pb_json_end(view->json);
    if (is_whole) {
        pb_json_raw(view->json, "inputs",
                    "{\"" INPUT
                    "\":{\"title\":\"Scene\",\"description\":\"Absolute path of a file or "
                    "folder that the service can read, or its file: URI.\",\"schema\":{\"type\":"
                    "\"string\"}}}");
        pb_json_raw(view->json, "outputs",
                    "{\"" OUTPUT
                    "\":{\"title\":\"Products\",\"description\":\"A link to the file of "
                    "each product.\",\"schema\":{\"type\":\"object\",\"contentMediaType\":"
                    "\"" PB_WEB_JSON "\",\"additionalProperties\":{\"type\":\"object\","
                    "\"required\":[\"href\"]}}}}");
    }
    pb_json_array(view->json, "links");
    link_to(view, is_whole ? "self" : "process", own);
    if (view->may_execute)
        link_to(view, REL "execute", execution);
    pb_json_end(view->json);
}

/* Name i of the pipelines, or NULL. */
static const char *name_at(const struct pb_json_value *names, size_t i)
{
    return pb_json_text_of(pb_json_at(names, i));
}

/* Finds a pipeline by its name. Returns its place, or the number of pipelines. */
static size_t find_name(const struct pb_json_value *names, const char *name)
{
    size_t i = 0;
    while (i < pb_json_count(names) &&
           (name_at(names, i) == NULL || strcmp(name_at(names, i), name) != 0))
        i++;
    return i;
}

/* Answers a page of the list; its cursor is the name of the pipeline before it. */
static void answer_list(struct view *view, const struct pb_json_value *names, const char *version)
{
    const char *after = pb_web_query_get(view->query, PB_WEB_CURSOR);
    const size_t n = pb_json_count(names);
    size_t limit, i = after ? find_name(names, after) + 1 : 0;
    if (!pb_web_query_limit(view->query, &limit, view->out))
        return;
    const size_t last = i < n && n - i > limit ? i + limit : n;
    begin(view);
    pb_json_array(view->json, "processes");
    for (; i < last; i++) {
        pb_json_object(view->json, NULL);
        put_process(view, name_at(names, i) ? name_at(names, i) : "", version, false);
        pb_json_end(view->json);
    }
    pb_json_end(view->json);
    pb_json_array(view->json, "links");
    pb_web_link_self(view->json, view->query, PB_WEB_JSON, "/processes");
    if (last < n && name_at(names, last - 1) != NULL)
        pb_web_link_next(view->json, view->query, PB_WEB_JSON, "/processes",
                         name_at(names, last - 1));
    pb_json_end(view->json);
    end(view);
}

/* Reads the state of the service, which has its pipelines. NULL with the failure. */
static struct pb_json_value *read_info(struct view *view)
{
    struct pb_err err = {0};
    return read_reply(view, pb_web_upstream_info(view->upstream, NULL, &err), &err);
}

/* Answers the list of processes (id NULL), or one of them. */
static void answer_processes(struct view *view, const char *id)
{
    static const char *const arguments[] = {"limit", PB_WEB_CURSOR};
    if (!pb_web_query_allows(view->query, arguments, id == NULL ? 2 : 0, view->out))
        return;
    struct pb_json_value *info = read_info(view);
    if (info == NULL)
        return;
    const struct pb_json_value *names = pb_json_get(info, "pipelines", NULL);
    const char *version = pb_json_get_text(info, "version");
    version = version ? version : "0";
    if (id == NULL) {
        answer_list(view, names, version);
    } else if (find_name(names, id) == pb_json_count(names)) {
        fail(view, 404, "no-such-process", "no such process", id);
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

/* Writes the members of a job's state. id: its id here, with the form of its results. */
static void put_job(struct view *view, const struct pb_json_value *job, const char *id)
{
    static const char *const times[] = {"created", "started", "finished", "updated"};
    char own[PATH_BYTES], results[PATH_BYTES], process[PATH_BYTES];
    const char *pipeline = pb_json_get_text(job, "pipeline");
    int64_t progress = 0;
    path_of("jobs", id, "", own);
    path_of("jobs", id, "/results", results);
    path_of("processes", pipeline ? pipeline : "", "", process);
    pb_json_string(view->json, "processID", pipeline ? pipeline : "");
    pb_json_string(view->json, "type", "process");
    pb_json_string(view->json, "jobID", id);
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

bool pb_web_job_id(const char *text, char out[PB_WEB_ID_BYTES])
{
    const size_t n = strlen(text), n_form = sizeof FORM - 1;
    const bool has_form = n > n_form && strcmp(text + n - n_form, FORM) == 0;
    (void)snprintf(out, PB_WEB_ID_BYTES, "%.*s", (int)(has_form ? n - n_form : n), text);
    return has_form;
}

static struct pb_json_value *read_job(struct view *view, const char *text)
{
    struct pb_err err = {0};
    char id[PB_WEB_ID_BYTES];
    (void)pb_web_job_id(text, id);
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
    put_job(view, job, id);
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
    char own[PB_WEB_ID_BYTES];
    struct pb_json_value *job = read_job(view, id);
    const struct pb_json_value *error = pb_json_get(job, "error", NULL);
    const char *code = pb_json_get_text(error, "code"),
               *message = pb_json_get_text(error, "message");
    if (job == NULL)
        return;
    if (is_state(job, "successful")) {
        begin(view);
        const bool is_document = pb_web_job_id(id, own);
        if (is_document)
            pb_json_object(view->json, OUTPUT);
        put_results(view, pb_json_get(job, "products", NULL));
        if (is_document)
            pb_json_end(view->json);
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
        put_job(view, pb_json_at(jobs, i), pb_json_get_text(pb_json_at(jobs, i), "id"));
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

/* Writes the classes whose names end so. */
static void put_classes(struct view *view, const char *standard, const char *const *names)
{
    char uri[128];
    for (; *names != NULL; names++) {
        (void)snprintf(uri, sizeof uri, "http://www.opengis.net/spec/%s/1.0/conf/%s", standard,
                       *names);
        pb_json_string(view->json, NULL, uri);
    }
}

static void answer_conformance(struct view *view)
{
    static const char *const common[] = {"core", "landing-page", "json", "oas30", NULL};
    static const char *const processes[] = {
        "core", "ogc-process-description", "json", "oas30", "job-list", "dismiss", NULL};
    if (!pb_web_query_allows(view->query, NULL, 0, view->out))
        return;
    begin(view);
    pb_json_array(view->json, "conformsTo");
    put_classes(view, "ogcapi-common-1", common);
    if (view->may_execute)
        put_classes(view, "ogcapi-processes-1", processes);
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
                      bool may_execute, struct pb_web_document *out)
{
    struct view view = {
        .upstream = upstream, .query = query, .may_execute = may_execute, .out = out};
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

/* --- execution --- */

/* Reads a path, or a file: URI, percent-encoded. Returns false if it is neither. */
static bool read_path(const char *text, bool is_uri, char out[PB_JSON_PATH_BYTES])
{
    static const char scheme[] = "file://", host[] = "localhost/";
    if (!is_uri) {
        char room[PB_JSON_PATH_BYTES];
        const char *path = pb_json_path_of(text, room);
        const bool fits = path != NULL && path[0] == '/' && strlen(path) < PB_JSON_PATH_BYTES;
        (void)snprintf(out, PB_JSON_PATH_BYTES, "%s", fits ? path : "");
        return fits;
    }
    if (strncmp(text, scheme, sizeof scheme - 1) != 0)
        return false;
    text += sizeof scheme - 1;
    text += strncmp(text, host, sizeof host - 1) == 0 ? sizeof host - 2 : 0;
    return pb_web_path(text, out, PB_JSON_PATH_BYTES) > 0 && out[0] == '/';
}

/* Reads the input: a path, an object with it as its value, or a link to a file. */
static bool read_input(const struct pb_json_value *inputs, char out[PB_JSON_PATH_BYTES])
{
    const struct pb_json_value *scene = pb_json_get(inputs, INPUT, NULL);
    const char *href = pb_json_get_text(scene, "href"), *text = pb_json_text_of(scene);
    if (text == NULL)
        text = pb_json_get_text(scene, "value");
    return pb_json_key(inputs, 0) != NULL && pb_json_key(inputs, 1) == NULL &&
           (href != NULL || text != NULL) && read_path(href ? href : text, href != NULL, out);
}

/* Reads the wanted outputs and the form of the results. */
static bool read_outputs(const struct pb_json_value *body, bool *out_is_document)
{
    const struct pb_json_value *outputs = pb_json_get(body, "outputs", NULL);
    const char *key = pb_json_key(outputs, 0), *form = pb_json_get_text(body, "response");
    const char *by = pb_json_get_text(pb_json_get(outputs, OUTPUT, NULL), "transmissionMode");
    bool has_form;
    (void)pb_json_get(body, "response", &has_form);
    *out_is_document = form != NULL && strcmp(form, "document") == 0;
    return (outputs == NULL || pb_json_is_object(outputs)) &&
           (key == NULL || (strcmp(key, OUTPUT) == 0 && pb_json_key(outputs, 1) == NULL)) &&
           (by == NULL || strcmp(by, "value") == 0) &&
           (!has_form || *out_is_document || (form != NULL && strcmp(form, "raw") == 0));
}

bool pb_web_execution_read(struct pb_web_upstream *upstream, const struct pb_web_query *query,
                           struct pb_web_execution *out, struct pb_web_document *out_failure)
{
    struct view view = {.upstream = upstream, .query = query, .out = out_failure};
    const char *name = strchr(query->path, '/') + 1;
    (void)snprintf(out->pipeline, sizeof out->pipeline, "%.*s", (int)(strrchr(name, '/') - name),
                   name);
    struct pb_json_value *info = read_info(&view);
    if (info == NULL)
        return false;
    const struct pb_json_value *names = pb_json_get(info, "pipelines", NULL);
    const bool found = find_name(names, out->pipeline) < pb_json_count(names);
    pb_json_release(info);
    if (!found)
        fail(&view, 404, "no-such-process", "no such process", out->pipeline);
    else if (!read_input(pb_json_get(query->body, "inputs", NULL), out->path))
        fail(&view, 400, NULL, "malformed inputs",
             "inputs: {\"" INPUT "\": an absolute path, or {\"href\": a file: URI}}");
    else if (!read_outputs(query->body, &out->is_document))
        fail(&view, 400, NULL, "malformed outputs",
             "outputs: " OUTPUT " with transmissionMode value; response: raw or document");
    else
        return true;
    return false;
}

void pb_web_execution_answer(const struct pb_web_query *query,
                             const struct pb_web_execution *execution, char *job,
                             char out_location[PB_WEB_LOCATION_BYTES], struct pb_web_document *out)
{
    struct view view = {.query = query, .out = out, .may_execute = true};
    struct pb_err err = {0};
    char id[PB_WEB_ID_BYTES + sizeof FORM];
    struct pb_json_value *state = read_reply(&view, job, &err);
    const char *own = pb_json_get_text(state, "id");
    if (own != NULL) {
        (void)snprintf(id, sizeof id, "%s%s", own, execution->is_document ? FORM : "");
        (void)snprintf(out_location, PB_WEB_LOCATION_BYTES, "%s/jobs/%s", query->base, id);
        begin(&view);
        put_job(&view, state, id);
        end(&view);
        out->status = 201;
    } else if (state != NULL) {
        fail(&view, 502, NULL, "the service sent no job", "");
    }
    pb_json_release(state);
}
