/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ids of messages begin at the time of the start and rise, therefore an id of an earlier process is
 * recognised as unknown. The service sends each change twice: as job.event at once, and as
 * job.change from its journal. Both are passed on, because only the journal has the changes during
 * a lost connection; the page keeps the job with the newest `updated`. */
#include "service/web/events.h"

#include "config/base/clock.h"
#include "config/base/json_writer.h"
#include "service/base/log.h"
#include "service/status/client.h"
#include "service/web/catalog.h"
#include "service/web/ring.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS       10000
#define AGAIN_MS      500
#define INFO_MS       2000
#define WAIT_MS       1000
#define COMMENT_MS    10000
#define MESSAGES      1024
#define MESSAGE_BYTES (4 << 20) /* size of all messages that are kept */

struct message {
    atomic_uint refs;
    size_t bytes;
    char text[];
};

struct pb_web_events {
    struct pb_web_upstream *upstream;
    struct pb_web_ring *ring;
    struct pb_web_catalog *catalog;
    const char *socket;
    pthread_t thread;
    int64_t seq;          /* number of the last row of the journal; the thread's */
    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    struct message *kept[MESSAGES]; /* message i is at i % MESSAGES */
    uint64_t first, next;           /* ids of the kept messages: first <= id < next */
    size_t bytes;
    size_t n_streams;
    bool end, reachable;
    bool tried;               /* reachable is known */
    char why[300];            /* reason if it is not reachable */
    struct pb_client *client; /* the thread's, to hang up */
};

struct pb_web_stream {
    struct pb_web_events *events;
    uint64_t next; /* id of the message to read */
    bool greeted, lost;
    struct message *message; /* being read */
    size_t used;
};

/* --- messages --- */

static struct message *make(const char *event, const char *data, uint64_t id)
{
    char head[96];
    const int n = snprintf(head, sizeof head, "event: %s\nid: %" PRIu64 "\ndata: ", event, id);
    const size_t n_data = strlen(data), bytes = (size_t)n + n_data + 2;
    struct message *message = malloc(sizeof *message + bytes);
    if (message == NULL)
        return NULL;
    atomic_init(&message->refs, 1);
    message->bytes = bytes;
    memcpy(message->text, head, (size_t)n);
    memcpy(message->text + n, data, n_data);
    memcpy(message->text + n + n_data, "\n\n", 2);
    return message;
}

static void release(struct message *message)
{
    if (message != NULL && atomic_fetch_sub(&message->refs, 1) == 1)
        free(message);
}

static void drop_first(struct pb_web_events *events)
{
    struct message **slot = &events->kept[events->first++ % MESSAGES];
    events->bytes -= *slot ? (*slot)->bytes : 0;
    release(*slot);
    *slot = NULL;
}

/* Keeps a message for all streams. Without memory it is left out, and streams learn that. */
static void spread(struct pb_web_events *events, const char *event, const char *data)
{
    (void)pthread_mutex_lock(&events->lock);
    struct message *message = data ? make(event, data, events->next) : NULL;
    if (events->next - events->first == MESSAGES)
        drop_first(events);
    events->kept[events->next++ % MESSAGES] = message;
    events->bytes += message ? message->bytes : 0;
    while (events->bytes > MESSAGE_BYTES || (message == NULL && events->first < events->next))
        drop_first(events);
    (void)pthread_cond_broadcast(&events->changed);
    (void)pthread_mutex_unlock(&events->lock);
}

/* Call with the lock. */
static struct message *make_hello(struct pb_web_events *events, const char *event, uint64_t id)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_bool(json, "reachable", events->reachable);
    pb_json_string(json, "message", events->reachable ? NULL : events->why);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    struct message *message = text ? make(event, text, id) : NULL;
    pb_json_destroy(json);
    return message;
}

/* Reports to all streams whether the service is reachable. */
static void set_reachable(struct pb_web_events *events, bool reachable, const char *why)
{
    (void)pthread_mutex_lock(&events->lock);
    const bool changed = events->reachable != reachable || !events->tried;
    events->reachable = reachable;
    events->tried = true;
    (void)snprintf(events->why, sizeof events->why, "%s", why);
    struct message *hello = changed ? make_hello(events, "hello", events->next) : NULL;
    if (hello != NULL) {
        if (events->next - events->first == MESSAGES)
            drop_first(events);
        events->kept[events->next++ % MESSAGES] = hello;
        events->bytes += hello->bytes;
        (void)pthread_cond_broadcast(&events->changed);
    }
    (void)pthread_mutex_unlock(&events->lock);
    if (changed)
        pb_log(reachable ? PB_LOG_NOTICE : PB_LOG_WARNING, "%s",
               reachable ? "connected to pushbroomd" : why);
}

/* --- the thread --- */

static bool is_ending(struct pb_web_events *events)
{
    (void)pthread_mutex_lock(&events->lock);
    const bool end = events->end;
    (void)pthread_mutex_unlock(&events->lock);
    return end;
}

static void set_client(struct pb_web_events *events, struct pb_client *client)
{
    (void)pthread_mutex_lock(&events->lock);
    pb_client_close(events->client);
    events->client = client;
    if (client != NULL && events->end)
        pb_client_hang_up(client);
    (void)pthread_mutex_unlock(&events->lock);
}

static void pass_event(struct pb_web_events *events, const struct pb_json_value *params)
{
    int64_t seq = 0;
    const char *kind = pb_json_get_text(params, "event");
    const struct pb_json_value *job = params;
    if (pb_json_get_int(params, "seq", &seq) == 0) {
        events->seq = seq;
        job = pb_json_get(pb_json_get(params, "data", NULL), "job", NULL);
        if (kind == NULL || strncmp(kind, "job.", 4) != 0)
            return;
    }
    if (pb_json_get_text(job, "id") == NULL)
        return;
    const char *status = pb_json_get_text(job, "status");
    if (status != NULL && strcmp(status, "successful") == 0)
        pb_web_catalog_changed(events->catalog);
    char *row = pb_web_upstream_row(events->upstream, job);
    spread(events, "job", row);
    free(row);
}

/* Reports that events are missing. */
static void reset(struct pb_web_events *events)
{
    pb_web_catalog_changed(events->catalog);
    spread(events, "reset", "{}");
}

/* Returns 0, or -1 and *err if the connection can only be closed. */
static int check_answer(const char *text, const struct pb_err *failure, struct pb_err *err)
{
    if (text != NULL || failure->code == PB_E_SERVICE_STATE || failure->code == PB_E_MEMORY)
        return 0;
    *err = *failure;
    return -1;
}

static int pass_info(struct pb_web_events *events, struct pb_client *client, struct pb_err *err)
{
    struct pb_err failure = {0};
    char *info = pb_web_upstream_info(events->upstream, client, &failure);
    if (info != NULL)
        spread(events, "info", info);
    const int rc = check_answer(info, &failure, err);
    free(info);
    return rc;
}

/* Adds the metrics to the ring. */
static int take_sample(struct pb_web_events *events, struct pb_client *client, struct pb_err *err)
{
    struct pb_err failure = {0};
    struct pb_web_sample sample;
    char *text = pb_web_upstream_metrics(events->upstream, client, &failure);
    if (text != NULL) {
        pb_web_sample_read(text, &sample);
        pb_web_ring_add(events->ring, pb_clock_wall_ms(), pb_clock_mono_ms(), &sample);
    }
    const int rc = check_answer(text, &failure, err);
    free(text);
    return rc;
}

/* Watches until the connection ends. */
static void watch_once(struct pb_web_events *events)
{
    struct pb_err err = {0};
    struct pb_client *client = NULL;
    struct pb_json_value *reply = NULL, *event = NULL;
    const struct pb_json_value *result = NULL;
    char params[48];
    bool gone = true;
    int64_t info_at_ms = 0, sample_at_ms = 0;
    int rc = pb_client_open(events->socket, CALL_MS, &err, &client);
    if (rc == 0)
        set_client(events, client);
    rc = rc ? rc : pass_info(events, client, &err); /* the rows need the directory of products */
    (void)snprintf(params, sizeof params, "{\"since\":%" PRId64 "}", events->seq);
    rc = rc ? rc : pb_client_call(client, "job.watch", params, &err, &reply, &result);
    if (rc == 0) {
        (void)pb_json_get_int(result, "seq", &events->seq);
        (void)pb_json_get_bool(result, "gone", &gone);
        pb_json_release(reply);
        set_reachable(events, true, "");
        if (gone)
            reset(events);
    }
    while (rc >= 0) {
        rc = pb_client_event(client, WAIT_MS, &err, &event, &result);
        if (rc > 0) {
            pass_event(events, result);
            pb_json_release(event);
        }
        if (rc >= 0 && pb_clock_mono_ms() >= info_at_ms && pb_web_events_streams(events) > 0) {
            rc = pass_info(events, client, &err);
            info_at_ms = pb_clock_mono_ms() + INFO_MS;
        }
        if (rc >= 0 && pb_clock_mono_ms() >= sample_at_ms) {
            rc = take_sample(events, client, &err);
            sample_at_ms = pb_clock_mono_ms() + PB_WEB_SAMPLE_MS;
        }
        if (pb_client_lost_events(client))
            reset(events);
    }
    set_client(events, NULL);
    if (!is_ending(events))
        set_reachable(events, false, err.msg);
}

static void *watch(void *user)
{
    struct pb_web_events *events = user;
    (void)pthread_setname_np(pthread_self(), "pb-watch");
    while (!is_ending(events)) {
        watch_once(events);
        (void)pthread_mutex_lock(&events->lock);
        struct timespec until = pb_clock_mono_after(AGAIN_MS);
        while (!events->end &&
               pthread_cond_timedwait(&events->changed, &events->lock, &until) != ETIMEDOUT) {
        }
        (void)pthread_mutex_unlock(&events->lock);
    }
    return NULL;
}

int pb_web_events_start(struct pb_web_upstream *upstream, struct pb_web_ring *ring,
                        struct pb_web_catalog *catalog, const char *socket,
                        struct pb_web_events **out_events)
{
    struct pb_web_events *events = calloc(1, sizeof *events);
    pthread_condattr_t monotonic;
    if (events == NULL)
        return -ENOMEM;
    events->upstream = upstream;
    events->ring = ring;
    events->catalog = catalog;
    events->socket = socket;
    events->first = events->next = (uint64_t)pb_clock_wall_ms();
    (void)snprintf(events->why, sizeof events->why, "connecting to pushbroomd");
    (void)pthread_mutex_init(&events->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&events->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    const int rc = pthread_create(&events->thread, NULL, watch, events);
    if (rc != 0) {
        (void)pthread_cond_destroy(&events->changed);
        (void)pthread_mutex_destroy(&events->lock);
        free(events);
        return -rc;
    }
    *out_events = events;
    return 0;
}

void pb_web_events_end(struct pb_web_events *events)
{
    (void)pthread_mutex_lock(&events->lock);
    events->end = true;
    if (events->client != NULL)
        pb_client_hang_up(events->client);
    (void)pthread_cond_broadcast(&events->changed);
    (void)pthread_mutex_unlock(&events->lock);
}

void pb_web_events_stop(struct pb_web_events *events)
{
    if (events == NULL)
        return;
    pb_web_events_end(events);
    (void)pthread_join(events->thread, NULL);
    while (events->first < events->next)
        drop_first(events);
    (void)pthread_cond_destroy(&events->changed);
    (void)pthread_mutex_destroy(&events->lock);
    free(events);
}

/* --- streams --- */

struct pb_web_stream *pb_web_stream_open(struct pb_web_events *events, const char *last_id)
{
    struct pb_web_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->events = events;
    (void)pthread_mutex_lock(&events->lock);
    const bool may = events->n_streams < PB_WEB_STREAMS_MAX && !events->end;
    events->n_streams += may;
    stream->next = events->next;
    if (last_id != NULL) {
        const uint64_t last = strtoull(last_id, NULL, 10);
        stream->lost = last + 1 < events->first || last >= events->next;
        stream->next = stream->lost ? events->next : last + 1;
    }
    (void)pthread_mutex_unlock(&events->lock);
    if (may)
        return stream;
    free(stream);
    return NULL;
}

void pb_web_stream_close(struct pb_web_stream *stream)
{
    struct pb_web_events *events = stream->events;
    (void)pthread_mutex_lock(&events->lock);
    events->n_streams--;
    (void)pthread_mutex_unlock(&events->lock);
    release(stream->message);
    free(stream);
}

size_t pb_web_events_streams(struct pb_web_events *events)
{
    (void)pthread_mutex_lock(&events->lock);
    const size_t n = events->n_streams;
    (void)pthread_mutex_unlock(&events->lock);
    return n;
}

/* The next message of the stream; NULL = wait for it. Call with the lock. */
static struct message *next_message(struct pb_web_stream *stream)
{
    struct pb_web_events *events = stream->events;
    if (stream->next < events->first) { /* the browser reads too slowly */
        stream->lost = true;
        stream->next = events->next;
    }
    if (!stream->greeted) {
        stream->greeted = true;
        return make_hello(events, "hello", stream->next - 1);
    }
    if (stream->lost) {
        stream->lost = false;
        return make("reset", "{}", stream->next - 1);
    }
    if (stream->next == events->next)
        return NULL;
    struct message *message = events->kept[stream->next++ % MESSAGES];
    atomic_fetch_add(&message->refs, 1);
    return message;
}

ssize_t pb_web_stream_read(struct pb_web_stream *stream, char *out, size_t bytes)
{
    static const char comment[] = ":\n\n";
    struct pb_web_events *events = stream->events;
    if (stream->message == NULL) {
        struct timespec until = pb_clock_mono_after(COMMENT_MS);
        int rc = 0;
        (void)pthread_mutex_lock(&events->lock);
        while (!events->end && (stream->message = next_message(stream)) == NULL && rc == 0)
            rc = pthread_cond_timedwait(&events->changed, &events->lock, &until);
        const bool end = events->end;
        (void)pthread_mutex_unlock(&events->lock);
        if (end)
            return -1;
        stream->used = 0;
    }
    if (stream->message == NULL) {
        const size_t n = bytes < sizeof comment - 1 ? 1 : sizeof comment - 1;
        memcpy(out, n == 1 ? "\n" : comment, n);
        return (ssize_t)n;
    }
    const size_t left = stream->message->bytes - stream->used, n = left < bytes ? left : bytes;
    memcpy(out, stream->message->text + stream->used, n);
    stream->used += n;
    if (stream->used == stream->message->bytes) {
        release(stream->message);
        stream->message = NULL;
    }
    return (ssize_t)n;
}
