/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/web/upstream.h"

#include "config/base/clock.h"
#include "config/base/json_path.h"
#include "config/base/json_writer.h"
#include "service/status/client.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define CALL_MS 10000 /* limit of a query, and of its wait for earlier ones */

struct pb_web_upstream {
    const char *socket;
    pthread_mutex_t lock;     /* all below */
    pthread_cond_t turn;      /* is_busy or ending changed */
    bool is_busy;             /* a query uses the client; only its thread replaces it */
    bool ending;              /* no further queries */
    struct pb_client *client; /* NULL = not connected */
    char products[PATH_MAX];  /* "" = unknown */
    char real[PATH_MAX];      /* the same without links */
    struct pb_web_settings settings;
};

struct pb_web_upstream *pb_web_upstream_create(const char *socket)
{
    struct pb_web_upstream *upstream = calloc(1, sizeof *upstream);
    pthread_condattr_t monotonic;
    if (upstream == NULL)
        return NULL;
    upstream->socket = socket;
    (void)pthread_mutex_init(&upstream->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&upstream->turn, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    return upstream;
}

void pb_web_upstream_end(struct pb_web_upstream *upstream)
{
    (void)pthread_mutex_lock(&upstream->lock);
    upstream->ending = true;
    if (upstream->client != NULL)
        pb_client_hang_up(upstream->client);
    (void)pthread_cond_broadcast(&upstream->turn);
    (void)pthread_mutex_unlock(&upstream->lock);
}

void pb_web_upstream_destroy(struct pb_web_upstream *upstream)
{
    if (upstream == NULL)
        return;
    pb_client_close(upstream->client);
    (void)pthread_cond_destroy(&upstream->turn);
    (void)pthread_mutex_destroy(&upstream->lock);
    free(upstream);
}

/* --- queries --- */

/* Waits until no other query uses the client. */
static int begin_query(struct pb_web_upstream *upstream, struct pb_err *err)
{
    const struct timespec until = pb_clock_mono_after(CALL_MS);
    int rc = 0;
    (void)pthread_mutex_lock(&upstream->lock);
    while (upstream->is_busy && !upstream->ending && rc == 0)
        rc = pthread_cond_timedwait(&upstream->turn, &upstream->lock, &until);
    const bool ending = upstream->ending, may = !upstream->is_busy && !ending;
    upstream->is_busy = upstream->is_busy || may;
    (void)pthread_mutex_unlock(&upstream->lock);
    if (may)
        return 0;
    return pb_fail(err, PB_E_SERVICE_UNREACHABLE,
                   ending ? "pushbroom-web is stopping"
                          : "the service does not answer: earlier queries still wait for it");
}

static void end_query(struct pb_web_upstream *upstream)
{
    (void)pthread_mutex_lock(&upstream->lock);
    upstream->is_busy = false;
    (void)pthread_cond_signal(&upstream->turn);
    (void)pthread_mutex_unlock(&upstream->lock);
}

/* Replaces the client; the other one is closed. */
static void set_client(struct pb_web_upstream *upstream, struct pb_client *client)
{
    (void)pthread_mutex_lock(&upstream->lock);
    pb_client_close(upstream->client);
    upstream->client = client;
    if (client != NULL && upstream->ending)
        pb_client_hang_up(client);
    (void)pthread_mutex_unlock(&upstream->lock);
}

/* One try, with a new connection if necessary. */
static int try_call(struct pb_web_upstream *upstream, const char *method, const char *params,
                    struct pb_err *err, struct pb_json_value **out_reply,
                    const struct pb_json_value **out_result)
{
    struct pb_client *client = upstream->client;
    int rc = 0;
    if (client == NULL) {
        rc = pb_client_open(upstream->socket, CALL_MS, err, &client);
        if (rc == 0)
            set_client(upstream, client);
    }
    rc = rc ? rc : pb_client_call(client, method, params, err, out_reply, out_result);
    if (rc != 0 && (err->code == PB_E_SERVICE_UNREACHABLE || err->code == PB_E_SERVICE_BUSY))
        set_client(upstream, NULL);
    return rc;
}

/* Calls by the shared connection. */
static int call(struct pb_web_upstream *upstream, const char *method, const char *params,
                struct pb_err *err, struct pb_json_value **out_reply,
                const struct pb_json_value **out_result)
{
    struct pb_err first = {0};
    if (begin_query(upstream, err) != 0)
        return -1;
    const bool had_client = upstream->client != NULL;
    const int64_t until_ms = pb_clock_mono_ms() + CALL_MS;
    int rc = try_call(upstream, method, params, &first, out_reply, out_result);
    if (rc != 0 && had_client && upstream->client == NULL && pb_clock_mono_ms() < until_ms) {
        /* the service was started again, or closed an idle connection; it did not time out */
        first = (struct pb_err){0};
        rc = try_call(upstream, method, params, &first, out_reply, out_result);
    }
    end_query(upstream);
    if (rc != 0)
        *err = first;
    return rc;
}

/* --- JSON for the page --- */

static void learn_products(struct pb_web_upstream *upstream, const struct pb_json_value *info)
{
    char room[PB_JSON_PATH_BYTES], real[PATH_MAX] = "";
    const char *path = pb_json_get_path(info, "products", room);
    if (path == NULL || strlen(path) >= PATH_MAX)
        return;
    if (realpath(path, real) == NULL)
        real[0] = '\0';
    (void)pthread_mutex_lock(&upstream->lock);
    (void)snprintf(upstream->products, PATH_MAX, "%s", path);
    (void)snprintf(upstream->real, PATH_MAX, "%s", real);
    (void)pthread_mutex_unlock(&upstream->lock);
}

static void learn_settings(struct pb_web_upstream *upstream, const struct pb_json_value *info)
{
    struct pb_web_settings settings = {.actions = false};
    const struct pb_json_value *web = pb_json_get(info, "web", NULL);
    const char *basemap = pb_json_get_text(web, "basemap");
    const char *host = basemap ? strstr(basemap, "://") : NULL;
    (void)pb_json_get_bool(web, "actions", &settings.actions);
    if (host != NULL)
        (void)snprintf(settings.tiles, sizeof settings.tiles, "%.*s",
                       (int)(host + 3 - basemap + (ptrdiff_t)strcspn(host + 3, "/")), basemap);
    (void)pthread_mutex_lock(&upstream->lock);
    upstream->settings = settings;
    (void)pthread_mutex_unlock(&upstream->lock);
}

void pb_web_upstream_settings(struct pb_web_upstream *upstream, struct pb_web_settings *out)
{
    (void)pthread_mutex_lock(&upstream->lock);
    *out = upstream->settings;
    (void)pthread_mutex_unlock(&upstream->lock);
}

/* Writes the address of a product by its path in JSON; or null. */
static void put_href(struct pb_web_upstream *upstream, struct pb_json *json, const char *key,
                     const char *text)
{
    char room[PB_JSON_PATH_BYTES];
    const char *path = pb_json_path_of(text, room);
    (void)pthread_mutex_lock(&upstream->lock);
    char *href = path ? pb_web_href(path, upstream->products) : NULL;
    if (href == NULL && path != NULL)
        href = pb_web_href(path, upstream->real);
    (void)pthread_mutex_unlock(&upstream->lock);
    pb_json_string(json, key, href);
    free(href);
}

static void put_source(struct pb_json *json, const char *key, const struct pb_json_value *value)
{
    const char *source = value ? pb_json_source(value) : NULL;
    if (source != NULL)
        pb_json_raw(json, key, source);
    else
        pb_json_null(json, key);
}

static char *take_text(struct pb_json *json)
{
    const char *text = pb_json_text(json, NULL);
    char *copy = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy;
}

/* Writes the places of the preview's corners, or null. */
static void put_corners(struct pb_json *json, const struct pb_json_value *job)
{
    const struct pb_json_value *products = pb_json_get(job, "products", NULL), *corners = NULL;
    const char *preview = pb_json_get_text(job, "preview");
    for (size_t i = 0; preview != NULL && corners == NULL && i < pb_json_count(products); i++) {
        const struct pb_json_value *product = pb_json_at(products, i);
        const char *path = pb_json_get_text(product, "path");
        if (path != NULL && strcmp(path, preview) == 0)
            corners = pb_json_get(product, "corners", NULL);
    }
    put_source(json, "corners", corners);
}

static void put_row(struct pb_web_upstream *upstream, struct pb_json *json,
                    const struct pb_json_value *job)
{
    static const char *const members[] = {
        "id",         "name",     "scene",   "folder",     "pipeline",    "priority",
        "status",     "progress", "stage",   "tiles_done", "tiles_total", "bytes_read",
        "elapsed_ms", "attempts", "archive", "device",     "created",     "started",
        "updated",    "finished", "bbox",    "datetime",   "error",       "node"};
    pb_json_object(json, NULL);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        put_source(json, members[i], pb_json_get(job, members[i], NULL));
    put_href(upstream, json, "preview", pb_json_get_text(job, "preview"));
    put_corners(json, job);
    pb_json_end(json);
}

char *pb_web_upstream_row(struct pb_web_upstream *upstream, const struct pb_json_value *job)
{
    struct pb_json *json = pb_json_create(false);
    put_row(upstream, json, job);
    return take_text(json);
}

/* Writes all members of a job, and for each product its address. */
static void put_job(struct pb_web_upstream *upstream, struct pb_json *json,
                    const struct pb_json_value *job)
{
    pb_json_object(json, NULL);
    const char *key;
    for (size_t i = 0; (key = pb_json_key(job, i)) != NULL; i++)
        if (strcmp(key, "products") != 0 && strcmp(key, "preview") != 0)
            put_source(json, key, pb_json_get(job, key, NULL));
    put_href(upstream, json, "preview", pb_json_get_text(job, "preview"));
    pb_json_array(json, "products");
    const struct pb_json_value *products = pb_json_get(job, "products", NULL);
    for (size_t i = 0; i < pb_json_count(products); i++) {
        const struct pb_json_value *product = pb_json_at(products, i);
        pb_json_object(json, NULL);
        for (size_t k = 0; (key = pb_json_key(product, k)) != NULL; k++)
            put_source(json, key, pb_json_get(product, key, NULL));
        put_href(upstream, json, "href", pb_json_get_text(product, "path"));
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
}

/* Writes the space of the file system that has the products. */
static void put_space(struct pb_json *json, const char *products)
{
    struct statvfs space;
    if (statvfs(products, &space) != 0)
        return;
    pb_json_object(json, "space");
    pb_json_int(json, "free_bytes", (int64_t)(space.f_bavail * space.f_frsize));
    pb_json_int(json, "bytes", (int64_t)(space.f_blocks * space.f_frsize));
    pb_json_end(json);
}

/* --- answers --- */

static char *checked(char *text, struct pb_err *err)
{
    if (text == NULL)
        (void)pb_fail(err, PB_E_MEMORY, "out of memory");
    return text;
}

/* Queries without parameters, by the client if it is not NULL. */
static int query(struct pb_web_upstream *upstream, struct pb_client *client, const char *method,
                 struct pb_err *err, struct pb_json_value **out_reply,
                 const struct pb_json_value **out_result)
{
    return client ? pb_client_call(client, method, NULL, err, out_reply, out_result)
                  : call(upstream, method, NULL, err, out_reply, out_result);
}

char *pb_web_upstream_info(struct pb_web_upstream *upstream, struct pb_client *client,
                           struct pb_err *err)
{
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *info = NULL;
    char room[PB_JSON_PATH_BYTES];
    const char *key;
    if (query(upstream, client, "service.info", err, &reply, &info) != 0)
        return NULL;
    learn_products(upstream, info);
    learn_settings(upstream, info);
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    for (size_t i = 0; (key = pb_json_key(info, i)) != NULL; i++)
        put_source(json, key, pb_json_get(info, key, NULL));
    const char *products = pb_json_get_path(info, "products", room);
    put_space(json, products ? products : "");
    pb_json_end(json);
    pb_json_release(reply);
    return checked(take_text(json), err);
}

char *pb_web_upstream_metrics(struct pb_web_upstream *upstream, struct pb_client *client,
                              struct pb_err *err)
{
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    if (query(upstream, client, "service.metrics", err, &reply, &result) != 0)
        return NULL;
    const char *text = pb_json_get_text(result, "text");
    char *copy = strdup(text ? text : "");
    pb_json_release(reply);
    return checked(copy, err);
}

char *pb_web_upstream_jobs(struct pb_web_upstream *upstream, const char *params, struct pb_err *err)
{
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    char products[PATH_MAX];
    if (pb_web_upstream_products(upstream, products, err) != 0 ||
        call(upstream, "job.list", params, err, &reply, &result) != 0)
        return NULL;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_array(json, "jobs");
    const struct pb_json_value *jobs = pb_json_get(result, "jobs", NULL);
    for (size_t i = 0; i < pb_json_count(jobs); i++)
        put_row(upstream, json, pb_json_at(jobs, i));
    pb_json_end(json);
    pb_json_end(json);
    pb_json_release(reply);
    return checked(take_text(json), err);
}

char *pb_web_upstream_job(struct pb_web_upstream *upstream, const char *id, struct pb_err *err)
{
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *job = NULL;
    char params[PB_WEB_ID_BYTES + 16], products[PATH_MAX];
    (void)snprintf(params, sizeof params, "{\"id\":\"%s\"}", id); /* letters, digits, hyphens */
    if (pb_web_upstream_products(upstream, products, err) != 0 ||
        call(upstream, "job.get", params, err, &reply, &job) != 0)
        return NULL;
    struct pb_json *json = pb_json_create(false);
    put_job(upstream, json, job);
    pb_json_release(reply);
    return checked(take_text(json), err);
}

char *pb_web_upstream_steps(struct pb_web_upstream *upstream, const char *id, struct pb_err *err)
{
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    char params[PB_WEB_ID_BYTES + 32];
    (void)snprintf(params, sizeof params, "{\"id\":\"%s\",\"limit\":1000}", id);
    if (call(upstream, "job.events", params, err, &reply, &result) != 0)
        return NULL;
    const char *text = pb_json_source(result);
    char *copy = text ? strdup(text) : NULL;
    pb_json_release(reply);
    return checked(copy, err);
}

/* Calls a method that changes something, by a connection of its own. Returns the job, malloc'd. */
static char *change(struct pb_web_upstream *upstream, const char *method, const char *params,
                    struct pb_err *err)
{
    struct pb_client *client = NULL;
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *job = NULL;
    char *text = NULL;
    if (pb_client_open(upstream->socket, CALL_MS, err, &client) == 0 &&
        pb_client_call(client, method, params, err, &reply, &job) == 0) {
        struct pb_json *json = pb_json_create(false);
        put_job(upstream, json, job);
        pb_json_release(reply);
        text = checked(take_text(json), err);
    }
    pb_client_close(client);
    return text;
}

char *pb_web_upstream_change(struct pb_web_upstream *upstream, enum pb_web_action action,
                             const char *id, int64_t priority, struct pb_err *err)
{
    char method[32], params[PB_WEB_ID_BYTES + 48];
    (void)snprintf(method, sizeof method, "job.%s", pb_web_action_name(action));
    if (action == PB_WEB_AGAIN)
        (void)snprintf(params, sizeof params, "{\"id\":\"%s\",\"priority\":%" PRId64 "}", id,
                       priority);
    else
        (void)snprintf(params, sizeof params, "{\"id\":\"%s\"}", id);
    return change(upstream, method, params, err);
}

char *pb_web_upstream_submit(struct pb_web_upstream *upstream, const char *pipeline,
                             const char *path, struct pb_err *err)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_path(json, "input", path);
    pb_json_string(json, "pipeline", pipeline);
    pb_json_end(json);
    char *params = checked(take_text(json), err);
    char *text = params ? change(upstream, "job.submit", params, err) : NULL;
    free(params);
    return text;
}

bool pb_web_upstream_known_products(struct pb_web_upstream *upstream, char out[PATH_MAX])
{
    (void)pthread_mutex_lock(&upstream->lock);
    (void)memcpy(out, upstream->products, PATH_MAX);
    (void)pthread_mutex_unlock(&upstream->lock);
    return out[0] != '\0';
}

int pb_web_upstream_products(struct pb_web_upstream *upstream, char out[PATH_MAX],
                             struct pb_err *err)
{
    for (int i = 0; i < 2; i++) {
        if (pb_web_upstream_known_products(upstream, out))
            return 0;
        char *info = i == 0 ? pb_web_upstream_info(upstream, NULL, err) : NULL;
        if (info == NULL)
            break;
        free(info);
    }
    return err->code != PB_OK ? -1
                              : pb_fail(err, PB_E_SERVICE_PROTOCOL,
                                        "the service reports no directory of products");
}
