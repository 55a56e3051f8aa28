/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_away.h"

#include "config/base/clock.h"
#include "config/base/json_path.h"
#include "config/base/json_writer.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/path.h"
#include "service/base/files.h"
#include "service/worker/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define OPEN_MS    8000   /* tries to reach home before the run has begun */
#define DELIVER_MS 300000 /* afterwards, when computed products are at stake */
#define AGAIN_MS   500
#define LOSSES_MAX 5 /* losses after new bytes that begin the time of the tries again */
#define ALIVE_MS   2000
#define LOST       2 /* result of a step: the connection was lost */

static const char *text_of(const struct pb_worker_away *away, const char *key)
{
    const char *text = pb_json_get_text(pb_json_get(away->command, "home", NULL), key);
    return text != NULL ? text : "";
}

static void join(const struct pb_worker_away *away, const char *name,
                 char out[PB_WORKER_PATH_BYTES])
{
    (void)snprintf(out, PB_WORKER_PATH_BYTES, "%.4000s/%s", away->room, name);
}

void pb_worker_away_input(const struct pb_worker_away *away, char out[PB_WORKER_PATH_BYTES])
{
    join(away, "input", out);
}

void pb_worker_away_products(const struct pb_worker_away *away, char out[PB_WORKER_PATH_BYTES])
{
    join(away, "products", out);
}

uint64_t pb_worker_away_bytes(const struct pb_worker_away *away)
{
    return away->before + away->last;
}

/* --- progress --------------------------------------------------------------------------------- */

static void on_bytes(void *user, uint64_t bytes)
{
    struct pb_worker_away *away = user;
    if (bytes < away->last)
        away->before += away->last;
    away->last = bytes;
    away->wait.alive(away->wait.user, 0);
}

static void end_file(struct pb_worker_away *away)
{
    away->before += away->last;
    away->last = 0;
}

static void pause_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&pause, NULL);
}

/* --- the connection --------------------------------------------------------------------------- */

static void hang_up(struct pb_worker_away *away)
{
    const int fd = away->lines.fd;
    if (fd < 0)
        return;
    pb_line_reader_fini(&away->lines);
    (void)close(fd);
    away->lines.fd = -1;
}

static int lose(struct pb_worker_away *away, struct pb_err *err)
{
    hang_up(away);
    *err = (struct pb_err){0};
    (void)pb_fail(err, PB_E_INPUT_FETCH, "node %s, which has the input, closed the connection",
                  away->node);
    return LOST;
}

static int dial(struct pb_worker_away *away, struct pb_err *err)
{
    const char *path = text_of(away, "socket");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    *err = (struct pb_err){0};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&name, sizeof name) == 0) {
        away->lines = (struct pb_line_reader){.fd = fd};
        return 0;
    }
    (void)pb_fail(err, PB_E_INPUT_FETCH,
                  "pushbroom-fetch of this machine does not answer at %.108s (%s)", path,
                  strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return LOST;
}

static bool greet(struct pb_worker_away *away, bool files)
{
    int64_t epoch = 0;
    struct pb_json *json = pb_json_create(false);
    (void)pb_json_get_int(away->command, "epoch", &epoch);
    pb_json_object(json, NULL);
    pb_json_string(json, "job", pb_json_get_text(away->command, "job"));
    pb_json_int(json, "epoch", epoch);
    pb_json_string(json, "node", away->node);
    pb_json_string(json, "address", text_of(away, "address"));
    pb_json_end(json);
    if (!pb_transfer_line(away->lines.fd, json))
        return false;
    json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_bool(json, "files", files);
    pb_json_end(json);
    return pb_transfer_line(away->lines.fd, json);
}

/* Reads the end of the run that home reports. A fault of that machine is no fault of this one. */
static int take_final(struct pb_worker_away *away, const struct pb_json_value *value,
                      const char *line, struct pb_err *err, char **out_line)
{
    const struct pb_json_value *error = pb_json_get(value, "error", NULL);
    const char *code = pb_json_get_text(error, "code"), *text = pb_json_get_text(error, "message");
    const bool is_fault = code != NULL && pb_code_class_of(code) == PB_CLASS_MACHINE;
    *out_line = is_fault ? NULL : strdup(line);
    hang_up(away); /* frees the line */
    if (is_fault) {
        *err = (struct pb_err){0};
        (void)pb_fail(err, PB_E_INPUT_FETCH, "node %s: %s", away->node, text != NULL ? text : code);
        return LOST;
    }
    return *out_line != NULL ? PB_AWAY_FINAL : pb_fail(err, PB_E_MEMORY, "out of memory");
}

/* Reads the next line that is no progress. Returns 0 and *out_value; LOST; PB_AWAY_FINAL; negative.
 */
static int next(struct pb_worker_away *away, struct pb_err *err, char **out_line,
                struct pb_json_value **out_value, const char **out_text)
{
    for (;;) {
        size_t bytes = 0;
        const char *line = pb_transfer_next(&away->lines, &bytes);
        if (line == NULL)
            return lose(away, err);
        const int rc = pb_json_parse(line, bytes, PB_LINE_READER_MAX, out_value);
        if (rc == -ENOMEM)
            return pb_fail(err, PB_E_MEMORY, "out of memory");
        if (rc != 0)
            return lose(away, err);
        const char *event = pb_json_get_text(*out_value, "event");
        if (event != NULL && (strcmp(event, "done") == 0 || strcmp(event, "failed") == 0)) {
            const int end = take_final(away, *out_value, line, err, out_line);
            pb_json_release(*out_value);
            return end;
        }
        if (event == NULL || strcmp(event, "progress") != 0) {
            *out_text = line;
            return 0;
        }
        pb_json_release(*out_value);
        away->wait.alive(away->wait.user, 0);
    }
}

/* --- files ------------------------------------------------------------------------------------ */

/* Returns true for an absolute path whose parts are names. */
static bool is_path(const char *path)
{
    if (path == NULL || path[0] != '/' || strlen(path) > 3000)
        return false;
    for (const char *at = path; at != NULL && *at != '\0'; at = strchr(at + 1, '/'))
        if (strncmp(at, "/../", 4) == 0 || strcmp(at, "/..") == 0 || strncmp(at, "/./", 3) == 0 ||
            strcmp(at, "/.") == 0 || strncmp(at, "//", 2) == 0)
            return false;
    return true;
}

/* Makes the directory, or that of the file, below the copies. */
static int make_place(const struct pb_worker_away *away, const char *path, bool is_file,
                      char out[PB_FILES_PATH_BYTES], struct pb_err *err)
{
    char input[PB_WORKER_PATH_BYTES], parent[PATH_MAX];
    pb_worker_away_input(away, input);
    const int n = snprintf(out, PB_FILES_PATH_BYTES, "%s%s", input, path);
    if (n < 0 || n >= PB_FILES_PATH_BYTES)
        return pb_fail(err, PB_E_INPUT_LIMIT, "the path of '%.200s' is too long below %.200s", path,
                       input);
    (void)snprintf(parent, sizeof parent, "%s", out);
    if (is_file)
        pb_path_parent(out, parent);
    const int rc = pb_path_make(parent);
    return rc == 0 ? 0 : pb_io_fail(err, -rc, "cannot make", parent);
}

static int receive(struct pb_worker_away *away, const char *path, int64_t bytes,
                   const struct timespec *mtime, struct pb_err *err)
{
    const struct pb_transfer_wait wait = {on_bytes, away};
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *mtime};
    char place[PB_FILES_PATH_BYTES], sum[PB_CHECKSUM_TEXT_BYTES];
    int rc = make_place(away, path, true, place, err);
    rc = rc ? rc : pb_files_check_space(away->room, (uint64_t)bytes + away->least_free, err);
    if (rc != 0)
        return rc;
    const int fd = open(place, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return pb_io_fail(err, errno, "cannot create", place);
    rc = pb_transfer_receive(&away->lines, fd, bytes, PB_CHECKSUM_SHA2_256, &wait, sum);
    if (rc == 0 && futimens(fd, times) != 0)
        rc = -errno;
    if (close(fd) != 0 && rc == 0)
        rc = -errno;
    end_file(away);
    if (rc == -EPIPE || rc == -EBADMSG)
        return lose(away, err);
    return rc == 0 ? 0 : pb_io_fail(err, -rc, "cannot write", place);
}

/* Handles a line before "open". */
static int take_file(struct pb_worker_away *away, const struct pb_json_value *value,
                     struct pb_err *err)
{
    char room[PB_JSON_PATH_BYTES], place[PB_FILES_PATH_BYTES];
    const char *event = pb_json_get_text(value, "event"), *text = pb_json_get_text(value, "path");
    const char *path = text != NULL ? pb_json_path_of(text, room) : NULL;
    int64_t bytes = -1, s = 0, ns = 0;
    if (event == NULL || !is_path(path))
        return lose(away, err);
    if (strcmp(event, "folder") == 0)
        return make_place(away, path, false, place, err);
    if (strcmp(event, "file") != 0 || pb_json_get_int(value, "bytes", &bytes) != 0 || bytes < 0)
        return lose(away, err);
    (void)pb_json_get_int(value, "mtime_s", &s);
    (void)pb_json_get_int(value, "mtime_ns", &ns);
    const struct timespec mtime = {s, ns >= 0 && ns < 1000000000 ? ns : 0};
    return receive(away, path, bytes, &mtime, err);
}

/* Keeps the place, which must be the same after each connect. */
static int take_place(struct pb_worker_away *away, const char *place, struct pb_err *err)
{
    if (place == NULL)
        return 0;
    if (away->place != NULL && strcmp(away->place, place) != 0)
        return pb_fail(err, PB_E_INPUT_FETCH,
                       "another input took the place of these products on node %s meanwhile; the "
                       "job has to run again",
                       away->node);
    if (away->place == NULL && (away->place = strdup(place)) == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    return 0;
}

/* Connects and copies the files. */
static int connect_once(struct pb_worker_away *away, bool files, struct pb_err *err,
                        char **out_line)
{
    struct pb_json_value *value = NULL;
    const char *line, *event = NULL;
    int rc = dial(away, err);
    if (rc == 0 && !greet(away, files))
        rc = lose(away, err);
    while (rc == 0 && (rc = next(away, err, out_line, &value, &line)) == 0) {
        event = pb_json_get_text(value, "event");
        const bool is_open = event != NULL && strcmp(event, "open") == 0;
        rc = is_open ? take_place(away, pb_json_get_text(value, "place"), err)
                     : take_file(away, value, err);
        pb_json_release(value);
        if (is_open)
            break;
    }
    if (rc != 0)
        hang_up(away);
    return rc;
}

static int exchange(struct pb_worker_away *away, const char *question, struct pb_err *err,
                    char **out_line);

/* Connects, again until the time is over. */
static int connect_home(struct pb_worker_away *away, bool files, int64_t most_ms,
                        struct pb_err *err, char **out_line)
{
    int64_t until_ms = pb_clock_mono_ms() + most_ms;
    int rc, losses = 0;
    for (;;) {
        const uint64_t before = pb_worker_away_bytes(away);
        rc = connect_once(away, files, err, out_line);
        if (rc != LOST)
            break;
        if (pb_worker_away_bytes(away) > before && ++losses <= LOSSES_MAX)
            until_ms = pb_clock_mono_ms() + most_ms; /* home was reachable until now */
        if (pb_clock_mono_ms() >= until_ms)
            return pb_code_errno(err->code);
        away->last++; /* waiting for home is no stall */
        away->wait.alive(away->wait.user, 0);
        pause_ms(AGAIN_MS);
    }
    if (rc != 0 || away->question == NULL)
        return rc;
    char *answer = NULL;
    rc = exchange(away, away->question, err, &answer);
    struct pb_json_value *value = NULL;
    if (rc == 0 && pb_json_parse(answer, strlen(answer), PB_WORKER_LINE_MAX, &value) == 0)
        rc = take_place(away, pb_json_get_text(value, "place"), err);
    pb_json_release(value);
    if (rc == PB_AWAY_FINAL)
        *out_line = answer;
    else
        free(answer);
    return rc == LOST ? pb_code_errno(err->code) : rc;
}

/* --- the run ---------------------------------------------------------------------------------- */

static int make_room(struct pb_worker_away *away, struct pb_err *err)
{
    char path[PB_WORKER_PATH_BYTES], parent[PATH_MAX];
    pb_path_parent(away->room, parent);
    if (mkdir(parent, 0700) != 0 && errno != EEXIST)
        return pb_io_fail(err, errno, "cannot make", parent);
    const int rc = pb_files_remove(away->room); /* copies of an earlier try */
    if (rc != 0 && rc != -ENOENT)
        return pb_io_fail(err, -rc, "cannot remove", away->room);
    if (mkdir(away->room, 0700) != 0)
        return pb_io_fail(err, errno, "cannot make", away->room);
    pb_worker_away_input(away, path);
    if (mkdir(path, 0700) != 0)
        return pb_io_fail(err, errno, "cannot make", path);
    pb_worker_away_products(away, path);
    return mkdir(path, 0700) == 0 ? 0 : pb_io_fail(err, errno, "cannot make", path);
}

int pb_worker_away_open(struct pb_worker_away *away, const struct pb_json_value *command,
                        uint64_t least_free, const struct pb_worker_wait *wait, struct pb_err *err,
                        char **out_line)
{
    *away = (struct pb_worker_away){.on = true,
                                    .command = command,
                                    .least_free = least_free,
                                    .lines = {.fd = -1},
                                    .wait = *wait};
    (void)snprintf(away->node, sizeof away->node, "%s", text_of(away, "node"));
    (void)snprintf(away->room, sizeof away->room, "%s", text_of(away, "room"));
    if (away->node[0] == '\0' || away->room[0] != '/')
        return pb_fail(err, PB_E_SERVICE_PROTOCOL, "a run command with a broken 'home'");
    const int rc = make_room(away, err);
    return rc ? rc : connect_home(away, true, OPEN_MS, err, out_line);
}

/* Sends the line and reads the answer of home. */
static int exchange(struct pb_worker_away *away, const char *question, struct pb_err *err,
                    char **out_line)
{
    struct pb_json_value *value = NULL;
    const char *line = NULL;
    (void)pb_line_send(away->lines.fd, question, strlen(question), NULL, 0);
    const int rc = next(away, err, out_line, &value, &line); /* also the reason of a failure */
    if (rc != 0)
        return rc;
    pb_json_release(value);
    *out_line = strdup(line);
    return *out_line != NULL ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory");
}

int pb_worker_away_ask(struct pb_worker_away *away, const char *line, bool is_place,
                       struct pb_err *err, char **out_line)
{
    const int64_t until_ms = pb_clock_mono_ms() + DELIVER_MS;
    struct pb_json_value *value = NULL;
    int rc = 0;
    while (rc == 0) {
        if (away->lines.fd < 0)
            rc = connect_home(away, false, DELIVER_MS, err, out_line);
        rc = rc ? rc : exchange(away, line, err, out_line);
        if (rc != LOST)
            break;
        rc = pb_clock_mono_ms() < until_ms ? 0 : pb_code_errno(err->code);
        pause_ms(AGAIN_MS);
    }
    if (rc != 0 || !is_place)
        return rc;
    if (pb_json_parse(*out_line, strlen(*out_line), PB_WORKER_LINE_MAX, &value) == 0)
        rc = take_place(away, pb_json_get_text(value, "place"), err);
    pb_json_release(value);
    away->question = strdup(line);
    if (rc == 0 && away->question == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    if (rc != 0)
        free(*out_line);
    return rc;
}

static const char *name_of(const struct pb_json_value *product)
{
    return strrchr(pb_json_get_text(product, "path"), '/') + 1;
}

static int send_product(struct pb_worker_away *away, const struct pb_json_value *product,
                        struct pb_err *err)
{
    const struct pb_transfer_wait wait = {on_bytes, away};
    const char *sum = pb_json_get_text(product, "checksum");
    const enum pb_checksum kind =
        sum != NULL && strncmp(sum, "blake3:", 7) == 0 ? PB_CHECKSUM_BLAKE3 : PB_CHECKSUM_SHA2_256;
    char directory[PB_WORKER_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    struct stat st;
    pb_worker_away_products(away, directory);
    if (pb_files_join(path, directory, name_of(product)) != 0)
        return pb_fail(err, PB_E_OUTPUT_NAME, "the name of a product is too long");
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        const int error = errno;
        if (fd >= 0)
            (void)close(fd);
        return pb_io_fail(err, error, "cannot read", path);
    }
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", "product");
    pb_json_string(json, "name", name_of(product));
    pb_json_int(json, "bytes", st.st_size);
    pb_json_string(json, "kind", pb_checksum_name(kind));
    pb_json_end(json);
    const int rc = pb_transfer_send(away->lines.fd, json, fd, st.st_size, kind, &wait);
    (void)close(fd);
    end_file(away);
    if (rc == -EPIPE)
        return LOST;
    return rc == 0 ? 0 : pb_io_fail(err, -rc, "cannot read", path);
}

/* Copies "done" with the paths that home knows. */
static char *make_done(const char *done)
{
    struct pb_json_value *value = NULL;
    const char *key, *inner;
    char path[PB_WORKER_PATH_BYTES];
    if (pb_json_parse(done, strlen(done), PB_WORKER_LINE_MAX, &value) != 0)
        return NULL;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    for (size_t i = 0; (key = pb_json_key(value, i)) != NULL; i++) {
        const struct pb_json_value *member = pb_json_get(value, key, NULL);
        if (strcmp(key, "directory") == 0 || strcmp(key, "products") == 0 || member == NULL)
            continue;
        pb_json_raw(json, key, pb_json_source(member));
    }
    pb_json_string(json, "directory", ".");
    pb_json_array(json, "products");
    const struct pb_json_value *products = pb_json_get(value, "products", NULL);
    for (size_t i = 0; i < pb_json_count(products); i++) {
        const struct pb_json_value *product = pb_json_at(products, i);
        pb_json_object(json, NULL);
        for (size_t k = 0; (inner = pb_json_key(product, k)) != NULL; k++) {
            const struct pb_json_value *member = pb_json_get(product, inner, NULL);
            if (strcmp(inner, "path") == 0)
                continue;
            if (member != NULL)
                pb_json_raw(json, inner, pb_json_source(member));
            else
                pb_json_null(json, inner);
        }
        (void)snprintf(path, sizeof path, "./%s", name_of(product));
        pb_json_string(json, "path", path);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *copy = text != NULL ? strdup(text) : NULL;
    pb_json_destroy(json);
    pb_json_release(value);
    return copy;
}

static int deliver_once(struct pb_worker_away *away, const char *done,
                        const struct pb_json_value *products, struct pb_err *err, char **out_line)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < pb_json_count(products); i++)
        rc = send_product(away, pb_json_at(products, i), err);
    if (rc != 0 && rc != LOST)
        return rc;
    rc = exchange(away, done, err, out_line); /* after a loss: the reason, if home sent it */
    if (rc != 0)
        return rc;
    free(*out_line);
    return lose(away, err);
}

int pb_worker_away_deliver(struct pb_worker_away *away, const char *done,
                           const struct pb_json_value *products, struct pb_err *err,
                           char **out_line)
{
    const int64_t until_ms = pb_clock_mono_ms() + DELIVER_MS;
    char *line = make_done(done);
    int rc = line != NULL ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory");
    while (rc == 0) {
        if (away->lines.fd < 0)
            rc = connect_home(away, false, DELIVER_MS, err, out_line);
        rc = rc ? rc : deliver_once(away, line, products, err, out_line);
        if (rc != LOST)
            break;
        rc = pb_clock_mono_ms() < until_ms ? 0 : pb_code_errno(err->code);
        pause_ms(AGAIN_MS);
    }
    free(line);
    return rc;
}

int pb_worker_away_pause_ms(const struct pb_worker_away *away)
{
    if (!away->on || away->lines.fd < 0)
        return -1;
    const int64_t left_ms = away->alive_ms + ALIVE_MS - pb_clock_mono_ms();
    return left_ms > 0 ? (int)left_ms : 0;
}

void pb_worker_away_show_life(struct pb_worker_away *away)
{
    static const char line[] = "{\"event\":\"alive\"}";
    if (pb_worker_away_pause_ms(away) != 0)
        return;
    away->alive_ms = pb_clock_mono_ms();
    (void)pb_line_send(away->lines.fd, line, sizeof line - 1, NULL,
                       0); /* the next step sees a loss */
}

void pb_worker_away_close(struct pb_worker_away *away)
{
    if (!away->on)
        return;
    hang_up(away);
    free(away->place);
    free(away->question);
    *away = (struct pb_worker_away){.on = false, .lines = {.fd = -1}};
}
