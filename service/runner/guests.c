/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/guests.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "service/base/line_reader.h"
#include "service/base/log.h"
#include "service/base/socket_bind.h"
#include "service/jobs/nodes.h"
#include "service/processes/worker_slot.h"
#include "service/worker/duplicates.h"
#include "service/worker/joined.h"
#include "service/worker/outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    GUESTS_MAX = 64,
    NODE_GUESTS_MAX = 32, /* runs of one node, so that other nodes find a place */
    HELLO_BYTES = 4096,
    HELLO_MS = 10000, /* time until the first line is complete */
    TICK_MS = 500,
    ASK_AGAIN_MS = 500
};

/* A connection, and its run. */
struct guest {
    struct guest *next;
    struct pb_guests *guests;
    int fd; /* -1: its worker has it */
    uv_poll_t poll;
    uv_timer_t timer;       /* the next request for a permit */
    int open_handles;       /* number of those of poll and timer whose close has not ended */
    int64_t hello_until_ms; /* 0: the first line is here */
    uv_work_t work;
    bool works, ended;
    char job_id[PB_JOB_ID_BYTES], node[PB_JOB_NODE_BYTES];
    int64_t epoch;
    /* Results of a step on the pool. */
    int rc;
    struct pb_err err;
    bool published;
    struct pb_job job;
    char *known;              /* checksums that the input is compared with */
    struct pb_config *config; /* held */
    const char *path;         /* output.path of the job's pipeline */
    struct pb_worker_slot_owner owner;
    struct pb_worker_slot *slot; /* NULL: no worker yet */
};

struct pb_guests {
    struct pb_guests_options options;
    struct pb_socket_bind bound;
    char socket[108];
    uv_poll_t poll;
    uv_timer_t tick; /* checks time limits; runs while there are guests or while accepting pauses */
    int node_guests_max;
    int64_t accept_at_ms; /* earliest time of the next accept; 0 = any time */
    bool stops;
    int open_handles; /* number of those of poll and tick that are not closed */
    struct guest *first;
    size_t n;
};

/* --- the end of a guest ----------------------------------------------------------------------- */

static void free_if_stopped(struct pb_guests *guests)
{
    if (guests->stops && guests->open_handles == 0 && guests->first == NULL)
        free(guests);
}

static void on_closed(uv_handle_t *handle)
{
    struct guest *guest = handle->data;
    struct pb_guests *guests = guest->guests;
    struct guest **at = &guests->first;
    if (--guest->open_handles > 0)
        return;
    while (*at != guest)
        at = &(*at)->next;
    *at = guest->next;
    guests->n--;
    if (guest->fd >= 0)
        (void)close(guest->fd);
    pb_worker_slot_destroy(guest->slot);
    pb_job_fini(&guest->job);
    free(guest->known);
    pb_config_destroy(guest->config);
    free(guest);
    free_if_stopped(guests);
}

/* Closes the poll, once: it removes its descriptor from the loop, which by then must not be closed,
 * nor be the number of another connection. */
static void close_poll(struct guest *guest)
{
    if (!uv_is_closing((uv_handle_t *)&guest->poll))
        uv_close((uv_handle_t *)&guest->poll, on_closed);
}

static void close_handles(struct guest *guest)
{
    close_poll(guest);
    uv_close((uv_handle_t *)&guest->timer, on_closed);
}

/* Ends the connection; a step on the pool ends first. */
static void end(struct guest *guest)
{
    if (guest->ended)
        return;
    guest->ended = true;
    if (!guest->works)
        close_handles(guest);
}

/* Sends a last line to the other node, which reads it before the connection ends. */
static void say_end(struct guest *guest, struct pb_json *json)
{
    size_t bytes = 0;
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    if (text != NULL && guest->fd >= 0)
        (void)pb_line_send(guest->fd, text, bytes, NULL, 0); /* a few lines fit */
    pb_json_destroy(json);
    end(guest);
}

static struct pb_json *begin_line(const struct guest *guest, const char *event)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", event);
    pb_json_string(json, "job", guest->job_id);
    return json;
}

static void refuse(struct guest *guest, const struct pb_err *err)
{
    struct pb_job_error error = {.code = ""};
    struct pb_json *json = begin_line(guest, "failed");
    (void)snprintf(error.code, sizeof error.code, "%s", pb_code_id(err->code));
    (void)snprintf(error.message, sizeof error.message, "%s", err->msg);
    pb_job_print_error(json, "error", &error);
    pb_log(PB_LOG_WARNING, "job %s: node %s does not get its input: %s", guest->job_id, guest->node,
           err->msg);
    say_end(guest, json);
}

/* --- steps on the pool ------------------------------------------------------------------------ */

static bool is_in(const char *path, const char *directory)
{
    const size_t n = strlen(directory);
    return path != NULL && strncmp(path, directory, n) == 0 && path[n] == '/';
}

static bool is_here(const struct guest *guest, const char *input)
{
    const struct pb_dirs *dirs = guest->guests->options.dirs;
    return is_in(input, dirs->work) || is_in(input, dirs->archive) ||
           is_in(input, dirs->quarantine);
}

/* Finds the job, and what its run must know of others. */
static int find(struct guest *guest)
{
    const struct pb_guests_options *options = &guest->guests->options;
    struct pb_job *job = &guest->job;
    struct pb_err *err = &guest->err;
    int rc = pb_nodes_permit(options->store, guest->job_id, guest->epoch, guest->node, err);
    if (rc == -ESTALE)
        return pb_fail(err, PB_E_JOB_STATE, "node %s does not run job %s in epoch %lld",
                       guest->node, guest->job_id, (long long)guest->epoch);
    struct pb_job found;
    rc = rc ? rc : pb_job_store_find(options->store, guest->job_id, err, &found);
    if (rc != 0)
        return rc;
    *job = found;
    if (!is_here(guest, job->manifest.input))
        return pb_fail(err, PB_E_JOB_STATE, "the input of job %s is not on this node", job->id);
    const struct pb_service_config *service = &guest->config->service;
    const struct pb_pipeline_config *pipeline = pb_config_pipeline(guest->config, job->pipeline);
    guest->path = pipeline != NULL ? pipeline->output.path : PB_OUTPUT_PATH_DEFAULT;
    guest->published = pb_outcome_is_published(job, options->dirs->products, guest->path);
    if (guest->published)
        return 0;
    if (job->set_id[0] != '\0')
        rc = pb_joined_describe(options->store, job, err);
    if (rc == 0 && service->has_duplicates)
        guest->known = pb_duplicates_known(options->store, job,
                                           pb_clock_wall_ms() - service->duplicates.keep_ms);
    return rc;
}

static void find_on_pool(uv_work_t *request)
{
    struct guest *guest = request->data;
    guest->err = (struct pb_err){0};
    guest->rc = find(guest);
}

static void permit_on_pool(uv_work_t *request)
{
    struct guest *guest = request->data;
    guest->err = (struct pb_err){0};
    guest->rc = pb_nodes_permit(guest->guests->options.store, guest->job_id, guest->epoch,
                                guest->node, &guest->err);
}

static void work(struct guest *guest, uv_work_cb step, uv_after_work_cb then)
{
    guest->works = true;
    guest->work.data = guest;
    (void)uv_queue_work(guest->guests->options.loop, &guest->work, step, then);
}

/* Returns true if the guest has ended meanwhile. */
static bool is_over(struct guest *guest)
{
    guest->works = false;
    if (guest->ended)
        close_handles(guest);
    return guest->ended;
}

/* --- the worker ------------------------------------------------------------------------------- */

static void on_permitted(uv_work_t *request, int status);

static void ask_permit(struct guest *guest)
{
    if (!guest->works && pb_worker_slot_wants_permit(guest->slot))
        work(guest, permit_on_pool, on_permitted);
}

static void on_again(uv_timer_t *timer)
{
    ask_permit(timer->data);
}

/* While the store does not answer, the products wait. */
static void on_permitted(uv_work_t *request, int status)
{
    struct guest *guest = request->data;
    (void)status;
    if (is_over(guest))
        return;
    if (guest->rc == 0 || guest->rc == -ESTALE)
        pb_worker_slot_permit(guest->slot, guest->rc == 0);
    else
        (void)uv_timer_start(&guest->timer, on_again, ASK_AGAIN_MS, 0);
}

static void on_news(void *user, int number, const struct pb_job *job, bool at_once)
{
    (void)user, (void)number, (void)job, (void)at_once;
}

static void on_device(void *user, const char *device, const char *why)
{
    (void)user, (void)device, (void)why;
}

static void on_turn(void *user, int number, int64_t tiles, int64_t memory_bytes)
{
    (void)user, (void)number, (void)tiles, (void)memory_bytes;
}

static void on_permit(void *user, int number)
{
    (void)number;
    ask_permit(user);
}

static void on_start(void *user, int number)
{
    (void)user, (void)number;
}

static void on_retry(void *user, int number, const struct pb_job *job, enum pb_device_try which)
{
    (void)user, (void)number, (void)job, (void)which;
}

static void on_clear(void *user, int number, const char *products)
{
    const struct guest *guest = user;
    (void)number, (void)products;
    pb_worker_slot_cleared(guest->slot);
}

/* Returns true if a time limit ended the run and the storage of this node is not the reason. */
static bool is_late(const struct guest *guest, const struct pb_run_over *over)
{
    const enum pb_code code = pb_code_find(over->job.error.code);
    const int64_t time_ms = guest->config->limits.job_time_ms;
    const bool is_over = time_ms > 0 && pb_clock_mono_ms() - over->began_ms >= time_ms;
    return over->end == PB_RUN_FAILED &&
           (code == PB_E_JOB_STALLED || (code == PB_E_INPUT_LIMIT && is_over));
}

static void on_over(void *user, int number, struct pb_run_over *over)
{
    struct guest *guest = user;
    (void)number;
    if (over->end == PB_RUN_SUCCESSFUL) {
        pb_log(PB_LOG_NOTICE, "job %s: products of node %s are published", guest->job_id,
               guest->node);
    } else if (is_late(guest, over)) {
        guest->guests->options.metrics->guests_late++;
        pb_log(PB_LOG_WARNING,
               "job %s: the run of node %s is ended here: %s. Look at pushbroomd, pushbroom-fetch "
               "and the network of that node; a slow one needs a longer service.stall here",
               guest->job_id, guest->node, over->job.error.message);
    } else {
        pb_log(PB_LOG_NOTICE, "job %s: the run of node %s ended here without products: %s",
               guest->job_id, guest->node, over->job.error.message);
    }
    pb_job_fini(&over->job);
    end(guest);
}

static void on_gone(void *user, int number, int pid, bool hung)
{
    (void)number, (void)pid, (void)hung;
    end(user);
}

static void on_say(void *user, int pid, enum pb_log_level level, const char *text)
{
    (void)user;
    pb_log(level, "worker %d: %s", pid, text);
}

/* Gives the connection and the job to a worker. */
static int start_worker(struct guest *guest, struct pb_err *err)
{
    const struct pb_guests_options *options = &guest->guests->options;
    struct pb_run_how how = {.products = options->dirs->products,
                             .path = guest->path,
                             .known = guest->known,
                             .permit = true,
                             .unpack = options->dirs->work,
                             .guest = guest->fd};
    guest->owner =
        (struct pb_worker_slot_owner){.loop = options->loop,
                                      .program = {.path = options->worker, .passed = guest->fd},
                                      .config = guest->config,
                                      .on_news = on_news,
                                      .on_device = on_device,
                                      .on_turn = on_turn,
                                      .on_permit = on_permit,
                                      .on_start = on_start,
                                      .on_retry = on_retry,
                                      .on_clear = on_clear,
                                      .on_over = on_over,
                                      .on_gone = on_gone,
                                      .on_say = on_say,
                                      .user = guest};
    guest->slot = pb_worker_slot_create(&guest->owner, 0);
    if (guest->slot == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    (void)fcntl(guest->fd, F_SETFL, fcntl(guest->fd, F_GETFL) & ~O_NONBLOCK);
    const int rc = pb_worker_slot_start(guest->slot, err);
    if (rc != 0)
        return rc;
    pb_log(PB_LOG_NOTICE, "job %s: node %s fetches %s, worker %d", guest->job_id, guest->node,
           guest->job.name, pb_worker_slot_pid(guest->slot));
    pb_worker_slot_run(guest->slot, &guest->job, &how);
    pb_job_init(&guest->job);
    (void)close(guest->fd);
    guest->fd = -1;
    return 0;
}

/* --- a connection ----------------------------------------------------------------------------- */

/* Sends the products that are in place, as a worker does. */
static void say_published(struct guest *guest)
{
    struct pb_json *json = begin_line(guest, "done");
    pb_json_string(json, "directory", guest->job.directory != NULL ? guest->job.directory : "");
    pb_json_raw(json, "products", guest->job.products != NULL ? guest->job.products : "[]");
    pb_json_object(json, "report");
    pb_json_end(json);
    say_end(guest, json);
}

/* Kills an earlier run of the job: its connection was lost, or its node lost the job. */
static void end_earlier(struct guest *guest)
{
    for (struct guest *other = guest->guests->first; other != NULL; other = other->next)
        if (other != guest && !other->ended && strcmp(other->job_id, guest->job_id) == 0) {
            if (other->slot != NULL)
                pb_worker_slot_end(other->slot, PB_ENDING_PUT_BACK, 0);
            else
                end(other);
        }
}

/* Counts the runs of its node, except earlier ones of the same job. */
static int count_of_node(const struct guest *guest)
{
    int n = 0;
    for (const struct guest *other = guest->guests->first; other != NULL; other = other->next)
        n += !other->ended && other->slot != NULL && strcmp(other->node, guest->node) == 0 &&
             strcmp(other->job_id, guest->job_id) != 0;
    return n;
}

/* Refuses a run beyond the limit of its node. A job has one run here at most, therefore only a node
 * with many running jobs can reach the limit. */
static int check_room(const struct guest *guest, struct pb_err *err)
{
    const int most = guest->guests->node_guests_max;
    if (count_of_node(guest) < most)
        return 0;
    guest->guests->options.metrics->guests_refused++;
    return pb_fail(err, PB_E_INPUT_FETCH,
                   "it has %d runs here already, the most of a node; set service.parallel_jobs of "
                   "node %s to less",
                   most, guest->node);
}

static void on_found(uv_work_t *request, int status)
{
    struct guest *guest = request->data;
    struct pb_err err = {0};
    (void)status;
    if (is_over(guest))
        return;
    if (guest->rc == 0 && !guest->published)
        guest->rc = check_room(guest, &guest->err);
    if (guest->rc != 0)
        refuse(guest, &guest->err);
    if (guest->rc != 0)
        return;
    end_earlier(guest); /* only now: the store has confirmed this one */
    if (guest->published)
        say_published(guest);
    else if (start_worker(guest, &err) != 0)
        refuse(guest, &err);
}

/* Reads the first line; later bytes are left to the worker. Returns 1; 0: it is not complete;
 * negative: the connection must end. */
static int read_hello(struct guest *guest, char out[HELLO_BYTES])
{
    ssize_t n = recv(guest->fd, out, HELLO_BYTES, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    const char *newline = n > 0 ? memchr(out, '\n', (size_t)n) : NULL;
    if (newline == NULL)
        return n <= 0 || n == HELLO_BYTES ? -EPROTO : 0;
    const size_t bytes = (size_t)(newline - out);
    n = recv(guest->fd, out, bytes + 1, MSG_DONTWAIT);
    if (n != (ssize_t)bytes + 1)
        return -EPROTO;
    out[bytes] = '\0';
    return 1;
}

static bool take_hello(struct guest *guest, const char *line)
{
    struct pb_json_value *value = NULL;
    if (pb_json_parse(line, strlen(line), HELLO_BYTES, &value) != 0)
        return false;
    const char *job = pb_json_get_text(value, "job"), *node = pb_json_get_text(value, "node");
    const bool good = job != NULL && pb_job_is_id(job) && node != NULL &&
                      strlen(node) < sizeof guest->node && node[0] != '\0' &&
                      pb_json_get_int(value, "epoch", &guest->epoch) == 0 && guest->epoch > 0;
    (void)snprintf(guest->job_id, sizeof guest->job_id, "%s", good ? job : "");
    (void)snprintf(guest->node, sizeof guest->node, "%s", good ? node : "");
    pb_json_release(value);
    return good;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct guest *guest = poll->data;
    char line[HELLO_BYTES];
    (void)events;
    const int rc = status < 0 ? -EPIPE : read_hello(guest, line);
    if (rc == 0)
        return;
    close_poll(guest);
    guest->hello_until_ms = 0;
    if (rc < 0 || !take_hello(guest, line)) {
        end(guest);
        return;
    }
    guest->config = pb_config_hold(guest->guests->options.config);
    work(guest, find_on_pool, on_found);
}

static bool is_allowed(const struct pb_guests *guests, int fd)
{
    const char *user = guests->options.config->service.fetch.user;
    struct pb_admins admins = {.n = 0};
    struct pb_peer peer;
    if (user != NULL && user[0] != '\0')
        (void)pb_admins_add(&admins, user);
    return pb_peer_of(fd, &peer) == 0 && pb_peer_is_privileged(&peer, &admins);
}

/* --- limits of time --------------------------------------------------------------------------- */

static void drop_silent(struct guest *guest)
{
    guest->guests->options.metrics->guests_refused++;
    pb_log(PB_LOG_WARNING,
           "a connection to %s without a first line for %d s is closed; restart pushbroom-fetch of "
           "this node if this continues",
           guest->guests->socket, HELLO_MS / 1000);
    end(guest);
}

static void watch(struct pb_guests *guests, bool on);

static void on_tick(uv_timer_t *timer)
{
    struct pb_guests *guests = timer->data;
    const int64_t now = pb_clock_mono_ms();
    for (struct guest *guest = guests->first; guest != NULL; guest = guest->next) {
        if (guest->ended)
            continue;
        if (guest->hello_until_ms > 0 && now >= guest->hello_until_ms)
            drop_silent(guest);
        else if (guest->slot != NULL && pb_worker_slot_wants_tick(guest->slot))
            pb_worker_slot_tick(guest->slot, now); /* service.stall and limits.job_time */
    }
    if (guests->accept_at_ms > 0 && now >= guests->accept_at_ms)
        watch(guests, true);
    if (guests->first == NULL && guests->accept_at_ms == 0)
        (void)uv_timer_stop(timer);
}

static void start_tick(struct pb_guests *guests)
{
    if (!uv_is_active((uv_handle_t *)&guests->tick))
        (void)uv_timer_start(&guests->tick, on_tick, TICK_MS, TICK_MS);
}

/* --- accepting -------------------------------------------------------------------------------- */

static void refuse_connection(struct pb_guests *guests, int fd)
{
    guests->options.metrics->guests_refused++;
    pb_log(PB_LOG_WARNING,
           "a connection of another node is refused: %zu are open, the most; see which nodes fetch "
           "in the lines above",
           guests->n);
    (void)close(fd);
}

static void add_guest(struct pb_guests *guests, int fd)
{
    struct guest *guest = guests->n < GUESTS_MAX ? calloc(1, sizeof *guest) : NULL;
    if (guest == NULL || uv_poll_init(guests->options.loop, &guest->poll, fd) != 0) {
        free(guest);
        refuse_connection(guests, fd);
        return;
    }
    guest->hello_until_ms = pb_clock_mono_ms() + HELLO_MS;
    start_tick(guests);
    (void)uv_timer_init(guests->options.loop, &guest->timer);
    guest->guests = guests;
    guest->fd = fd;
    guest->open_handles = 2;
    guest->poll.data = guest->timer.data = guest;
    guest->next = guests->first;
    guests->first = guest;
    guests->n++;
    pb_job_init(&guest->job);
    (void)uv_poll_start(&guest->poll, UV_READABLE, on_readable);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct pb_guests *guests = poll->data;
    (void)events;
    if (status < 0)
        return;
    const int fd = pb_socket_bind_accept(guests->bound.fd, SOCK_NONBLOCK, &guests->accept_at_ms);
    if (guests->accept_at_ms > 0) {
        pb_log(PB_LOG_WARNING, "cannot accept connections of other nodes: %s", strerror(-fd));
        watch(guests, false);
    }
    if (fd < 0)
        return;
    if (is_allowed(guests, fd)) {
        add_guest(guests, fd);
        return;
    }
    pb_log(PB_LOG_WARNING, "a user other than service.fetch.user connected to %s", guests->socket);
    (void)close(fd);
}

/* Accepts connections, or pauses until accept_at_ms. */
static void watch(struct pb_guests *guests, bool on)
{
    if (on) {
        guests->accept_at_ms = 0;
        (void)uv_poll_start(&guests->poll, UV_READABLE, on_connection);
    } else {
        (void)uv_poll_stop(&guests->poll);
        start_tick(guests);
    }
}

/* --- for the daemon --------------------------------------------------------------------------- */

/* Tests set a lower limit, because they have few jobs. */
static int read_node_max(void)
{
    const char *text = getenv("PUSHBROOM_TEST_NODE_GUESTS");
    return text != NULL ? (int)strtol(text, NULL, 10) : NODE_GUESTS_MAX;
}

int pb_guests_start(const struct pb_guests_options *options, struct pb_err *err,
                    struct pb_guests **out_guests)
{
    struct pb_guests *guests = calloc(1, sizeof *guests);
    if (guests == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    guests->options = *options;
    pb_fetch_guests_socket(options->socket, guests->socket);
    int rc = pb_socket_bind_open(guests->socket, 0666, err, &guests->bound);
    if (rc == 0 && uv_poll_init(options->loop, &guests->poll, guests->bound.fd) != 0) {
        pb_socket_bind_close(guests->socket, &guests->bound);
        rc = pb_fail(err, PB_E_SYSTEM, "cannot wait for connections to %s", guests->socket);
    }
    if (rc != 0) {
        free(guests);
        return rc;
    }
    (void)uv_timer_init(options->loop, &guests->tick);
    guests->open_handles = 2;
    guests->node_guests_max = read_node_max();
    guests->poll.data = guests->tick.data = guests;
    watch(guests, true);
    *out_guests = guests;
    return 0;
}

void pb_guests_set_config(struct pb_guests *guests, const struct pb_config *config)
{
    if (guests != NULL)
        guests->options.config = config;
}

static void on_stopped(uv_handle_t *handle)
{
    struct pb_guests *guests = handle->data;
    if (--guests->open_handles == 0)
        pb_socket_bind_close(guests->socket, &guests->bound);
    free_if_stopped(guests);
}

void pb_guests_stop(struct pb_guests *guests)
{
    if (guests == NULL || guests->stops)
        return;
    guests->stops = true;
    for (struct guest *guest = guests->first; guest != NULL; guest = guest->next)
        end(guest);
    uv_close((uv_handle_t *)&guests->poll, on_stopped);
    uv_close((uv_handle_t *)&guests->tick, on_stopped);
}
