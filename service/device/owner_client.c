/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/device/owner_client.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/plan/layout.h"
#include "pipeline/run/served/tile_room.h"
#include "service/device/blob.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS 5000
#define AGAIN_MS   50
#define LOAD_S     1

/* --- the worker ----------------------------------------------------------------------------- */

static int dial(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path)
        return -ENAMETOOLONG;
    (void)strcpy(name.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&name, sizeof name) == 0)
        return fd;
    int rc = -errno;
    (void)close(fd);
    return rc;
}

static bool ask_load(struct pb_line_reader *lines, struct pb_owner_load *out_load)
{
    static const char ask[] = "{\"cmd\":\"load\"}";
    struct pb_json_value *line = NULL;
    size_t bytes;
    char *text = NULL;
    if (!pb_line_send(lines->fd, ask, sizeof ask - 1, NULL, 0))
        return false;
    while ((text = pb_line_reader_next(lines, &bytes)) == NULL)
        if (!pb_line_reader_fill(lines))
            return false;
    bool taken = pb_json_parse(text, bytes, PB_LINE_READER_MAX, &line) == 0 &&
                 pb_owner_load_take(line, out_load);
    pb_json_release(line);
    return taken;
}

bool pb_owner_load_at(const char *path, struct pb_owner_load *out_load)
{
    const struct timeval limit = {.tv_sec = LOAD_S};
    struct pb_line_reader lines = {.fd = dial(path)};
    if (lines.fd < 0)
        return false;
    (void)setsockopt(lines.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    bool asked = ask_load(&lines, out_load);
    pb_line_reader_fini(&lines);
    (void)close(lines.fd);
    return asked;
}

static bool say_hello(int fd, const struct pb_owner_hello *hello)
{
    size_t bytes = 0;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", "hello");
    pb_json_string(json, "version", PB_VERSION);
    pb_json_string(json, "job", hello->job);
    pb_json_string(json, "config", hello->config);
    pb_json_string(json, "config_name", hello->config_name);
    pb_json_string(json, "pipeline", hello->pipeline);
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    bool said = text != NULL && pb_line_send(fd, text, bytes, NULL, 0);
    pb_json_destroy(json);
    return said;
}

/* False if the connection was closed without an answer. An owner that is killed keeps its socket
 * until the driver has freed the memory of the device. */
static bool is_answered(int fd, int64_t until)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    char first;
    int rc;
    do {
        const int64_t left = until - pb_clock_mono_ms();
        rc = poll(&one, 1, left > 0 ? (int)left : 0);
    } while (rc < 0 && errno == EINTR);
    if (rc <= 0)
        return true; /* the reader of the answer waits on */
    const ssize_t n = recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Connects and sends the hello. -ECONNREFUSED: the owner is at its end. */
static int try_connect(const char *path, const struct pb_owner_hello *hello, int64_t until)
{
    const int fd = dial(path);
    if (fd < 0 || (say_hello(fd, hello) && is_answered(fd, until)))
        return fd;
    (void)close(fd);
    return -ECONNREFUSED;
}

int pb_owner_connect(const char *path, const struct pb_owner_hello *hello, struct pb_err *err)
{
    const struct timespec nap = {.tv_nsec = AGAIN_MS * 1000000L};
    const int64_t until = pb_clock_mono_ms() + CONNECT_MS;
    int fd;
    while (((fd = try_connect(path, hello, until)) == -ENOENT || fd == -ECONNREFUSED) &&
           pb_clock_mono_ms() < until)
        (void)nanosleep(&nap, NULL);
    if (fd == -EMFILE || fd == -ENFILE)
        return pb_fail(err, PB_E_SYSTEM_FILES, "cannot make a socket: %s", strerror(-fd));
    if (fd < 0)
        return pb_fail(err, PB_E_DEVICE_LOST,
                       "the process that owns the device does not answer at %s: %s", path,
                       strerror(-fd));
    return fd;
}

/* --- its child ------------------------------------------------------------------------------ */

static int gone(struct pb_err *err)
{
    return pb_fail(err, PB_E_DEVICE_LOST, "the process that owns the device has ended");
}

/* Reads the owner's next line; a failure that it reports is the error. The caller owns the value.
 */
static int next_line(struct pb_owner_client *client, const char *wanted, struct pb_err *err,
                     struct pb_json_value **out_line)
{
    size_t bytes;
    char *text;
    struct pb_json_value *line = NULL;
    while ((text = pb_line_reader_next(&client->lines, &bytes)) == NULL)
        if (!pb_line_reader_fill(&client->lines))
            return gone(err);
    if (pb_json_parse(text, bytes, PB_LINE_READER_MAX, &line) != 0)
        return pb_fail(err, PB_E_DEVICE_FAILED, "a line of the device's owner that is no JSON");
    const char *event = pb_json_get_text(line, "event");
    if (event != NULL && strcmp(event, wanted) == 0) {
        *out_line = line;
        return 0;
    }
    const char *code = pb_json_get_text(line, "code"), *why = pb_json_get_text(line, "message");
    enum pb_code found = code != NULL ? pb_code_find(code) : PB_E_COUNT;
    int rc = pb_fail(err, found < PB_E_COUNT && found != PB_OK ? found : PB_E_DEVICE_FAILED, "%s",
                     why != NULL ? why : "the device's owner does not keep to its protocol");
    pb_json_release(line);
    return rc;
}

/* Memory of a session in this process. */
struct session {
    struct pb_tile_room room;
    struct pb_tile_pool pool;
};

static bool is_as_planned(const struct pb_plan *pass, const struct pb_json_value *ready)
{
    int64_t in = 0, out = 0, line = 0;
    return pb_json_get_int(ready, "in_slot_bytes", &in) == 0 &&
           pb_json_get_int(ready, "out_slot_bytes", &out) == 0 &&
           pb_json_get_int(ready, "line_px", &line) == 0 &&
           (size_t)in == pass->layout.in_slot_bytes && (size_t)out == pass->layout.out_slot_bytes &&
           line == pass->layout.format.line_px;
}

static int take_pool(struct pb_owner_client *client, const struct pb_plan *pass,
                     const struct pb_json_value *ready, struct pb_err *err, struct session *own)
{
    const struct pb_tile_pool_shape shape = {pass->layout.in_slots, pass->layout.out_slots,
                                             pass->layout.in_slot_bytes,
                                             pass->layout.out_slot_bytes, pb_plan_spin_limit(pass)};
    if (client->lines.n_passed != 2 || !is_as_planned(pass, ready))
        return pb_fail(err, PB_E_DEVICE_FAILED,
                       "the device's owner planned the tiles in another way than the run");
    int words = client->lines.passed[0], slots = client->lines.passed[1];
    client->lines.n_passed = 0;
    int rc = pb_tile_room_open(slots, pb_tile_pool_room_bytes(&shape), err, &own->room);
    rc = rc ? rc : pb_tile_pool_open(&shape, &own->room, words, err, &own->pool);
    (void)close(words);
    (void)close(slots);
    return rc;
}

/* Sends the request and its tail after the line that announces them. */
static bool send_request(int fd, const struct pb_served_request *request,
                         const struct pb_served_tail *tail)
{
    char line[64];
    int n = snprintf(line, sizeof line, "{\"cmd\":\"open\",\"bytes\":%zu}",
                     sizeof *request + tail->bytes);
    return pb_line_send(fd, line, (size_t)n, NULL, 0) &&
           pb_line_send_bytes(fd, request, sizeof *request) &&
           pb_line_send_bytes(fd, tail->data, tail->bytes);
}

/* The owner may refuse the request before it has read all of it; its answer has the reason. */
static int ask(struct pb_owner_client *client, const struct pb_served_request *request,
               const struct pb_served_tail *tail, struct pb_err *err,
               struct pb_json_value **out_ready)
{
    (void)send_request(client->lines.fd, request, tail);
    return next_line(client, "ready", err, out_ready);
}

static void free_session(struct session *own)
{
    if (own == NULL)
        return;
    pb_tile_pool_close(&own->pool);
    pb_tile_room_close(&own->room);
    free(own);
}

static void close_session(void *user, struct pb_remote_session *session)
{
    struct session *own = session->own;
    (void)user;
    free_session(own);
    session->own = NULL;
}

static int open_session(void *user, const struct pb_plan *pass,
                        const struct pb_served_request *request, const struct pb_served_tail *tail,
                        struct pb_err *err, struct pb_remote_session *out)
{
    struct pb_owner_client *client = user;
    struct pb_json_value *ready = NULL;
    struct session *own = calloc(1, sizeof *own);
    int64_t threads = 1, n_stored = 0;
    bool finds = false;
    int rc = own == NULL ? pb_fail(err, PB_E_MEMORY, "out of memory for the stream")
                         : ask(client, request, tail, err, &ready);
    rc = rc ? rc : take_pool(client, pass, ready, err, own);
    if (rc == 0) {
        const char *sync = pb_json_get_text(ready, "sync");
        (void)pb_json_get_int(ready, "threads", &threads);
        (void)pb_json_get_int(ready, "stored", &n_stored);
        (void)pb_json_get_bool(ready, "finds", &finds);
        *out = (struct pb_remote_session){.in = own->pool.in,
                                          .out = own->pool.out,
                                          .threads = (uint32_t)threads,
                                          .n_stored = (uint32_t)n_stored,
                                          .finds = finds,
                                          .own = own};
        (void)snprintf(out->sync, sizeof out->sync, "%s", sync != NULL ? sync : "");
    } else {
        free_session(own);
    }
    pb_json_release(ready);
    return rc;
}

static int wait_session(void *user, struct pb_remote_session *session, struct pb_err *err,
                        struct pb_remote_end *out_end)
{
    struct pb_owner_client *client = user;
    struct pb_json_value *end = NULL;
    (void)session;
    int rc = next_line(client, "end", err, &end);
    if (rc == 0 && !pb_blob_take(end, "end", out_end, sizeof *out_end))
        rc = pb_fail(err, PB_E_DEVICE_FAILED, "the device's owner does not keep to its protocol");
    pb_json_release(end);
    return rc;
}

void pb_owner_client_end(struct pb_owner_client *client)
{
    (void)shutdown(client->lines.fd, SHUT_RDWR);
    pb_line_reader_fini(&client->lines);
}

int pb_owner_client_begin(struct pb_owner_client *client, int fd, struct pb_err *err)
{
    struct pb_json_value *line = NULL;
    int64_t index = -1;
    client->lines = (struct pb_line_reader){.fd = fd, .passes = true};
    int rc = next_line(client, "hello", err, &line);
    if (rc < 0)
        return rc;
    const char *device = pb_json_get_text(line, "device");
    const char *stream_why = pb_json_get_text(line, "stream_why");
    (void)pb_json_get_int(line, "index", &index);
    (void)snprintf(client->device, sizeof client->device, "%s", device != NULL ? device : "");
    (void)snprintf(client->stream_why, sizeof client->stream_why, "%s",
                   stream_why != NULL ? stream_why : "");
    bool gpu = pb_blob_take(line, "traits", &client->traits, sizeof client->traits);
    client->remote =
        (struct pb_remote){.device = client->device,
                           .traits = gpu ? &client->traits : NULL,
                           .device_index = (int32_t)index,
                           .stream_why = client->stream_why[0] != '\0' ? client->stream_why : NULL,
                           .user = client,
                           .open = open_session,
                           .wait = wait_session,
                           .close = close_session};
    pb_json_release(line);
    return 0;
}
