/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One connection, one thread: hello, then sessions one after the other. The executor's threads are
 * joined by waits of WATCH_MS, between which the socket is checked: when its other end is closed,
 * the job has ended and the session is aborted. */
#include "service/device/owner_parts.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/run/served/served.h"
#include "pipeline/run/served/tile_room.h"
#include "service/base/line_reader.h"
#include "service/base/peer.h"
#include "service/device/blob.h"
#include "service/device/owner.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define WATCH_MS 100
#define HELLO_S  10  /* limit for the hello of the worker */
#define OPEN_S   600 /* limit between two lines of the child, which may read files in between */
#define SEND_S   10

struct session {
    struct owner *owner;
    struct pb_line_reader lines;
    struct pb_config *config;
    const struct pb_pipeline_config *pipeline;
    struct pb_served_job left; /* memory for its next pass */
    char job[64];
    bool waits; /* true if it has reported that it waits */
};

/* Sends json (taken), which is complete. */
static bool send_line(struct session *s, struct pb_json *json, const int *passed, size_t n_passed)
{
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    bool sent = text != NULL && pb_line_send(s->lines.fd, text, bytes, passed, n_passed);
    pb_json_destroy(json);
    return sent;
}

static struct pb_json *event(const char *name)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", name);
    return json;
}

static bool say_failed(struct session *s, const struct pb_err *err)
{
    struct pb_json *json = event("failed");
    pb_json_string(json, "code", pb_code_id(err->code));
    pb_json_string(json, "message", err->msg);
    pb_json_end(json);
    return send_line(s, json, NULL, 0);
}

static bool is_gone(void *user)
{
    const struct session *s = user;
    struct pollfd end = {.fd = s->lines.fd, .events = POLLRDHUP};
    return poll(&end, 1, 0) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* Reads the next line; returns false if the connection has ended, or no line arrived in time. The
 * caller owns the value; NULL in it: not JSON. */
static bool next_line(struct session *s, int seconds, struct pb_json_value **out_line)
{
    size_t bytes;
    char *text;
    const struct timeval limit = {.tv_sec = seconds};
    (void)setsockopt(s->lines.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    while ((text = pb_line_reader_next(&s->lines, &bytes)) == NULL)
        if (!pb_line_reader_fill(&s->lines))
            return false;
    *out_line = NULL;
    (void)pb_json_parse(text, bytes, PB_LINE_READER_MAX, out_line);
    return true;
}

static bool is_command(const struct pb_json_value *line, const char *name)
{
    const char *said = pb_json_get_text(line, "cmd");
    return said != NULL && strcmp(said, name) == 0;
}

/* --- hello ---------------------------------------------------------------------------------- */

static int parse_config(struct session *s, const struct pb_json_value *hello, struct pb_err *err)
{
    const char *text = pb_json_get_text(hello, "config");
    const char *name = pb_json_get_text(hello, "config_name");
    struct pb_err_list *errors = calloc(1, sizeof *errors);
    int rc = errors == NULL ? pb_fail(err, PB_E_MEMORY, "out of memory")
                            : pb_config_parse(text, strlen(text), name ? name : "config",
                                              &pb_products, errors, &s->config);
    if (rc != 0 && errors != NULL)
        *err = errors->err[0];
    free(errors);
    return rc;
}

static int take_hello(struct session *s, const struct pb_json_value *hello, struct pb_err *err)
{
    const char *version = pb_json_get_text(hello, "version"), *job = pb_json_get_text(hello, "job");
    const char *pipeline = pb_json_get_text(hello, "pipeline");
    if (!is_command(hello, "hello") || version == NULL || job == NULL || pipeline == NULL ||
        pb_json_get_text(hello, "config") == NULL)
        return pb_fail(err, PB_E_SERVICE_PROTOCOL, "a connection without a hello");
    if (strcmp(version, PB_VERSION) != 0)
        return pb_fail(err, PB_E_SERVICE_PROTOCOL,
                       "the device's owner is pushbroom %s, the run is of %.20s", PB_VERSION,
                       version);
    (void)snprintf(s->job, sizeof s->job, "%.60s", job);
    int rc = parse_config(s, hello, err);
    if (rc != 0)
        return rc;
    s->pipeline = pb_config_pipeline(s->config, pipeline);
    return s->pipeline != NULL
               ? 0
               : pb_fail(err, PB_E_INPUT_NO_PIPELINE, "there is no pipeline '%s'", pipeline);
}

static bool answer_hello(struct session *s)
{
    struct owner *owner = s->owner;
    char why[PB_OWNER_WHY_BYTES];
    owner_stream_why(owner, why);
    struct pb_json *json = event("hello");
    pb_json_string(json, "device", owner->device);
    pb_json_int(json, "index", owner->index);
    if (why[0] != '\0')
        pb_json_string(json, "stream_why", why);
    if (owner->index >= 0)
        pb_blob_print(json, "traits", &owner->traits, sizeof owner->traits);
    pb_json_end(json);
    return send_line(s, json, NULL, 0);
}

static void answer_load(struct session *s)
{
    struct pb_owner_load load = pb_owner_out_load(&s->owner->out);
    struct pb_lanes_count lanes = pb_lanes_count();
    (void)send_line(s, pb_owner_load_print_all(&load, &lanes), NULL, 0);
}

static bool greet(struct session *s)
{
    struct pb_err err = {0};
    struct pb_json_value *hello = NULL;
    if (!next_line(s, HELLO_S, &hello))
        return false;
    if (is_command(hello, "load")) {
        pb_json_release(hello);
        answer_load(s);
        return false;
    }
    int rc = take_hello(s, hello, &err);
    pb_json_release(hello);
    if (rc != 0)
        (void)say_failed(s, &err);
    return rc == 0 && answer_hello(s);
}

/* --- one session ---------------------------------------------------------------------------- */

/* Computes until the session ends, possibly with the job. */
static int compute(struct session *s, struct pb_served *served, struct pb_err *err)
{
    int rc = pb_served_start(served, err);
    if (rc < 0)
        return rc;
    while ((rc = pb_served_wait(served, WATCH_MS, err)) == -ETIMEDOUT && err->code == PB_OK)
        if (is_gone(s))
            pb_served_abort(served);
    return rc;
}

static bool say_ready(struct session *s, const struct pb_served *served, int words)
{
    const int passed[] = {words, s->left.room.fd};
    const struct pb_plan *pass = pb_served_plan(served);
    struct pb_json *json = event("ready");
    pb_json_int(json, "in_slot_bytes", (int64_t)pass->layout.in_slot_bytes);
    pb_json_int(json, "out_slot_bytes", (int64_t)pass->layout.out_slot_bytes);
    pb_json_int(json, "line_px", pass->layout.format.line_px);
    pb_json_int(json, "threads", pb_served_threads(served));
    pb_json_int(json, "stored", pb_served_stored(served));
    pb_json_bool(json, "finds", pb_served_finds(served));
    pb_json_string(json, "sync", pb_served_sync(served));
    pb_json_end(json);
    return send_line(s, json, passed, 2);
}

static bool say_end(struct session *s, const struct pb_served *served)
{
    struct pb_remote_end end;
    struct pb_json *json = event("end");
    memset(&end, 0, sizeof end);
    pb_served_end(served, &end);
    pb_blob_print(json, "end", &end, sizeof end);
    pb_json_end(json);
    return send_line(s, json, NULL, 0);
}

/* Returns true if this process should end. It cannot use a device any more that was lost or still
 * holds memory; after another failure of the device a new process is better, if no other job is
 * here. */
static bool is_lost(struct owner *owner, const struct pb_err *err)
{
    return err->code == PB_E_DEVICE_LOST || pb_device_left_behind() ||
           (err->code == PB_E_DEVICE_FAILED && pb_admission_is_alone(&owner->admission));
}

static _Noreturn void give_way(const struct owner *owner, const struct pb_err *err)
{
    (void)fprintf(stderr, "%s failed, and this process gives way to a fresh one: %s\n",
                  owner->device, err->msg);
    _exit(PB_OWNER_LOST);
}

/* A client that gets the error of a lost device connects again, and must then reach the new
 * process. */
static bool fail_session(struct session *s, const struct pb_err *err)
{
    bool lost = is_lost(s->owner, err);
    if (lost)
        owner_retire(s->owner);
    if (err->code == PB_E_DEVICE_BUSY)
        owner_is_full(s->owner);
    struct pb_err told = *err;
    pb_device_left_err(&told); /* the job runs again, because only this process cannot continue */
    bool said = say_failed(s, &told);
    if (lost)
        give_way(s->owner, err);
    return said;
}

/* Request of a job, and what follows it. */
struct wish {
    struct pb_served_request request;
    struct pb_served_tail tail;
};

static bool serve(struct session *s, struct wish *said, struct pb_err *err)
{
    const struct pb_plan_request base = {.config = s->config,
                                         .pipeline = s->pipeline,
                                         .cuda = s->owner->index >= 0,
                                         .device_index = s->owner->index,
                                         .traits = s->owner->index >= 0 ? &s->owner->traits : NULL};
    struct pb_served *served = NULL;
    int fd = -1;
    int64_t before = (int64_t)s->left.room.bytes;
    int rc = pb_served_create(&base, &said->request, &said->tail, &s->left, err, &served, &fd);
    owner_loaded(s->owner, 0, (int64_t)s->left.room.bytes - before);
    if (rc != 0)
        return fail_session(s, err);
    bool said_ready = say_ready(s, served, fd);
    (void)close(fd);
    rc = said_ready ? compute(s, served, err) : 0;
    bool more = said_ready && (rc == 0 ? say_end(s, served) : fail_session(s, err));
    pb_served_destroy(served);
    if (pb_device_left_behind()) {
        owner_retire(s->owner);
        give_way(s->owner, err);
    }
    return more;
}

/* Returns true if the client has closed the connection; called during the wait. */
static bool is_gone_waiting(void *user)
{
    struct session *s = user;
    if (!s->waits)
        (void)fprintf(stderr, "job %s: waits for other jobs on %s\n", s->job, s->owner->device);
    s->waits = true;
    pb_served_job_waits(&s->left);
    return is_gone(s);
}

/* Waits for admission, then serves the session. */
static bool serve_in_turn(struct session *s, struct wish *said)
{
    struct pb_err err = {0};
    s->waits = false;
    owner_loaded(s->owner, 1, 0);
    int rc = pb_admission_enter(&s->owner->admission, s->pipeline->priority, is_gone_waiting, s);
    bool more = false;
    if (rc == -EAGAIN) {
        (void)pb_fail(&err, PB_E_DEVICE_BUSY, "too many jobs wait for %s", s->owner->device);
        more = say_failed(s, &err);
    } else if (rc == 0) {
        more = serve(s, said, &err);
        pb_admission_leave(&s->owner->admission);
    }
    owner_loaded(s->owner, -1, 0);
    return more;
}

/* Reads the request that follows its line. Its tail has at most the memory that a job may use. */
static bool take_wish(struct session *s, const struct pb_json_value *line, struct wish *out)
{
    int64_t bytes = 0;
    const int64_t least = sizeof out->request;
    if (pb_json_get_int(line, "bytes", &bytes) != 0 || bytes < least ||
        (uint64_t)(bytes - least) > s->config->compute.memory_bytes)
        return false;
    out->tail.bytes = (size_t)(bytes - least);
    out->tail.data = malloc(out->tail.bytes + 1);
    return out->tail.data != NULL &&
           pb_line_reader_bytes(&s->lines, &out->request, sizeof out->request) &&
           pb_line_reader_bytes(&s->lines, out->tail.data, out->tail.bytes);
}

static bool take_command(struct session *s, const struct pb_json_value *line)
{
    struct pb_err err = {0};
    struct wish *said = calloc(1, sizeof *said);
    bool more = false;
    if (said != NULL && is_command(line, "open") && take_wish(s, line, said)) {
        more = serve_in_turn(s, said);
    } else {
        (void)pb_fail(&err, PB_E_SERVICE_PROTOCOL, "a line that the device's owner does not know");
        (void)say_failed(s, &err);
    }
    if (said != NULL)
        pb_served_tail_free(&said->tail);
    free(said);
    return more;
}

static bool may_connect(int fd)
{
    struct pb_peer peer;
    return pb_peer_of(fd, &peer) == 0 && (peer.uid == 0 || peer.uid == (int64_t)geteuid());
}

void owner_session_run(struct owner *owner, int fd)
{
    struct session s = {.owner = owner, .lines = {.fd = fd, .passes = true}};
    struct pb_json_value *line = NULL;
    const struct timeval limit = {.tv_sec = SEND_S};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (may_connect(fd) && greet(&s)) {
        while (next_line(&s, OPEN_S, &line)) {
            bool more = take_command(&s, line);
            pb_json_release(line);
            if (!more)
                break;
        }
    }
    int64_t bytes = (int64_t)s.left.room.bytes;
    bool was_pinned = s.left.room.pinned;
    pb_served_job_end(&s.left);
    owner_loaded(owner, 0, -bytes);
    if (was_pinned && !pb_device_left_behind())
        pb_spare_room_make((size_t)bytes, owner->index);
    pb_config_destroy(s.config);
    pb_line_reader_fini(&s.lines);
    (void)close(fd);
    if (pb_device_left_behind()) {
        struct pb_err err = {0};
        (void)pb_fail(&err, PB_E_DEVICE_LOST, "memory of a job cannot be freed");
        owner_retire(owner);
        give_way(owner, &err);
    }
}
