/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Four kinds of threads: the listener reads requests and starts receivers; each receiver serves a
 * writer; the opener stores the jobs of scenes that have begun; the closer ends scenes, which waits
 * for the disk. All of them reach the loop by one uv_async. */
#include "service/stream/streams.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "kernels/nodata.h"
#include "pipeline/gdal/vector.h"
#include "service/base/log.h"
#include "service/stream/receiver.h"
#include "service/stream/requests.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#define LOOK_MS   1000 /* period in which the listener checks its socket */
#define STEPS_MAX 32   /* most steps that wait for their thread; then receivers wait */
#define MEMORY_MS 100  /* time until the next try to allocate a step */

/* A stream since the start of the service. */
struct stream {
    char name[PB_STREAM_NAME_BYTES];
    struct pb_stream_counts counts;
    struct pb_receiver *receiver; /* NULL = no writer is connected */
    struct pb_peer peer;          /* the writer */
    char token[PB_HANDSHAKE_TOKEN_BYTES];
    struct pb_latency_counts latency;
    TAILQ_ENTRY(stream) next;
};

/* Begin or end of a scene. The opener or the closer handles it, then the loop. */
struct step {
    struct pb_stream_scene *scene;
    struct pb_job job; /* result: the stored job; seq 0 = none was stored */
    int grows;         /* result: change of the count of growing scenes with a job */
    STAILQ_ENTRY(step) next;
};
STAILQ_HEAD(step_list, step);

/* Results of threads for the loop: a trouble, or its end. */
struct word {
    bool is_new, is_raised;
    enum pb_code code; /* PB_OK: it is over */
    char text[512];
};

struct pb_streams {
    struct pb_streams_options options;
    uv_async_t async;
    pthread_t listener, opener, closer;
    bool has_threads;
    int wake;
    /* --- the listener's --- */
    struct pb_requests *requests;
    int64_t looked_ms;
    /* --- */
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t moved; /* a list below has changed */
    TAILQ_HEAD(, stream) streams;
    struct step_list opening, closing, done;
    const struct pb_stream_scene *opens;         /* scene that the opener works on; NULL = none */
    size_t n_steps;                              /* count in opening and closing */
    struct pb_receiver *ended[PB_RECEIVERS_MAX]; /* to be joined by the listener */
    size_t n_ended, n_receivers;
    struct word socket, scenes;
    bool stops, is_reloaded;
    bool is_drained; /* no receiver adds scenes any more */
};

static void wake_loop(struct pb_streams *streams)
{
    (void)uv_async_send(&streams->async);
}

static void wake_listener(const struct pb_streams *streams)
{
    const uint64_t one = 1;
    (void)!write(streams->wake, &one, sizeof one);
}

static bool stops(struct pb_streams *streams)
{
    (void)pthread_mutex_lock(&streams->lock);
    const bool is = streams->stops;
    (void)pthread_mutex_unlock(&streams->lock);
    return is;
}

/* PB_OK without a trouble is no news. */
static void say(struct pb_streams *streams, struct word *word, enum pb_code code, const char *text)
{
    (void)pthread_mutex_lock(&streams->lock);
    const bool is_news = code != PB_OK || word->is_raised;
    if (is_news) {
        word->is_new = true;
        word->is_raised = code != PB_OK;
        word->code = code;
        (void)snprintf(word->text, sizeof word->text, "%s", text);
    }
    (void)pthread_mutex_unlock(&streams->lock);
    if (is_news)
        wake_loop(streams);
}

/* --- the opener and the closer ---------------------------------------------------------------- */

/* Queues a step. Waits while STEPS_MAX steps are queued. Thread: a receiver's. */
static void add_step(struct pb_streams *streams, struct step_list *list,
                     struct pb_stream_scene *scene)
{
    struct step *step;
    while ((step = calloc(1, sizeof *step)) == NULL)
        (void)poll(NULL, 0, MEMORY_MS);
    step->scene = scene;
    (void)pthread_mutex_lock(&streams->lock);
    while (streams->n_steps >= STEPS_MAX)
        (void)pthread_cond_wait(&streams->moved, &streams->lock);
    STAILQ_INSERT_TAIL(list, step, next);
    streams->n_steps++;
    (void)pthread_cond_broadcast(&streams->moved);
    (void)pthread_mutex_unlock(&streams->lock);
}

static void on_begun(void *user, struct pb_stream_scene *scene)
{
    struct pb_streams *streams = user;
    add_step(streams, &streams->opening, scene);
}

static void on_complete(void *user, struct pb_stream_scene *scene)
{
    struct pb_streams *streams = user;
    add_step(streams, &streams->closing, scene);
}

/* Returns true if the opener handles the scene or has it in its queue. Call with the lock held. */
static bool is_opening(const struct pb_streams *streams, const struct pb_stream_scene *scene)
{
    const struct step *step;
    STAILQ_FOREACH(step, &streams->opening, next)
    {
        if (step->scene == scene)
            return true;
    }
    return streams->opens == scene;
}

/* Waits for the next step; NULL: no step will follow. A scene is closed after the opener has
 * handled it. */
static struct step *next_step(struct pb_streams *streams, struct step_list *list)
{
    struct step *step;
    (void)pthread_mutex_lock(&streams->lock);
    while ((step = STAILQ_FIRST(list)) == NULL
               ? !streams->is_drained
               : list == &streams->closing && is_opening(streams, step->scene))
        (void)pthread_cond_wait(&streams->moved, &streams->lock);
    if (step != NULL)
        STAILQ_REMOVE_HEAD(list, next);
    if (step != NULL && list == &streams->opening)
        streams->opens = step->scene;
    (void)pthread_mutex_unlock(&streams->lock);
    return step;
}

/* Passes a finished step with a result to the loop. The closer has freed its scene: the opener may
 * have a new scene at the same address, therefore the list decides. */
static void end_step(struct pb_streams *streams, const struct step_list *list, struct step *step)
{
    const bool is_news = step->job.seq != 0 || step->grows != 0;
    (void)pthread_mutex_lock(&streams->lock);
    streams->n_steps--;
    if (list == &streams->opening)
        streams->opens = NULL;
    if (is_news)
        STAILQ_INSERT_TAIL(&streams->done, step, next);
    (void)pthread_cond_broadcast(&streams->moved);
    (void)pthread_mutex_unlock(&streams->lock);
    if (is_news)
        wake_loop(streams);
    else
        free(step);
}

/* Stores jobs of scenes that have begun. If that fails, pb_scene_end tries again. */
static void *run_opener(void *user)
{
    struct pb_streams *streams = user;
    struct step *step;
    (void)pthread_setname_np(pthread_self(), "pb-opener");
    while ((step = next_step(streams, &streams->opening)) != NULL) {
        step->grows = pb_scene_offer(step->scene, NULL, &step->job) == 0;
        end_step(streams, &streams->opening, step);
    }
    return NULL;
}

static void *run_closer(void *user)
{
    struct pb_streams *streams = user;
    struct step *step;
    (void)pthread_setname_np(pthread_self(), "pb-scenes");
    while ((step = next_step(streams, &streams->closing)) != NULL) {
        struct pb_err err = {0};
        step->grows = -(int)pb_scene_is_offered(step->scene);
        pb_log(PB_LOG_NOTICE, "streams: %s is complete and has %d lines",
               pb_scene_name(step->scene), (int)pb_scene_lines(step->scene));
        if (pb_scene_end(step->scene, &err, &step->job) <= 0)
            say(streams, &streams->scenes, err.code, err.msg);
        end_step(streams, &streams->closing, step);
    }
    return NULL;
}

/* --- receivers -------------------------------------------------------------------------------- */

static void on_trouble(void *user, const struct pb_err *err)
{
    struct pb_streams *streams = user;
    say(streams, &streams->scenes, err->code, err->msg);
}

static void on_ended(void *user, struct pb_receiver *receiver)
{
    struct pb_streams *streams = user;
    (void)pthread_mutex_lock(&streams->lock);
    streams->ended[streams->n_ended++] = receiver;
    (void)pthread_mutex_unlock(&streams->lock);
    wake_listener(streams);
}

/* Joins the receivers that have ended. Returns the number of the others. */
static size_t join_ended(struct pb_streams *streams)
{
    struct stream *stream;
    (void)pthread_mutex_lock(&streams->lock);
    while (streams->n_ended > 0) {
        struct pb_receiver *receiver = streams->ended[--streams->n_ended];
        TAILQ_FOREACH(stream, &streams->streams, next)
        {
            if (stream->receiver == receiver)
                stream->receiver = NULL;
        }
        streams->n_receivers--;
        (void)pthread_mutex_unlock(&streams->lock);
        pb_receiver_join(receiver);
        (void)pthread_mutex_lock(&streams->lock);
    }
    const size_t n = streams->n_receivers;
    (void)pthread_mutex_unlock(&streams->lock);
    return n;
}

static struct stream *find_stream(struct pb_streams *streams, const char *name)
{
    struct stream *stream;
    TAILQ_FOREACH(stream, &streams->streams, next)
    {
        if (strcmp(stream->name, name) == 0)
            return stream;
    }
    return NULL;
}

/* Finds or adds the stream. NULL = out of memory. */
static struct stream *know_stream(struct pb_streams *streams, const char *name)
{
    (void)pthread_mutex_lock(&streams->lock);
    struct stream *stream = find_stream(streams, name);
    if (stream == NULL && (stream = calloc(1, sizeof *stream)) != NULL) {
        (void)snprintf(stream->name, sizeof stream->name, "%s", name);
        TAILQ_INSERT_TAIL(&streams->streams, stream, next);
    }
    (void)pthread_mutex_unlock(&streams->lock);
    return stream;
}

/* --- requests --------------------------------------------------------------------------------- */

static bool may_write(const struct pb_streams *streams, const struct pb_pipeline_config *pipeline,
                      const struct pb_peer *peer, const char *token)
{
    return streams->options.is_privileged(streams->options.user, peer) ||
           pb_requests_may_write(&pipeline->input.lines, peer, token);
}

/* Checks the request against the configuration. Returns NULL, or the word of a refusal. */
static const char *check_request(struct pb_streams *streams, const struct pb_peer *peer,
                                 const struct pb_stream_request *asked, char *why)
{
    struct pb_config *config = pb_intake_hold_config(streams->options.intake, NULL);
    const struct pb_pipeline_config *pipeline = pb_config_stream(config, asked->stream);
    const char *code = NULL;
    if (pipeline == NULL) {
        (void)snprintf(why, PB_HANDSHAKE_WHY_BYTES, "no pipeline has input.stream: %s",
                       asked->stream);
        code = "unknown";
    } else if (!may_write(streams, pipeline, peer, asked->token)) {
        (void)snprintf(why, PB_HANDSHAKE_WHY_BYTES,
                       "user %lld may not write stream %s; see input.lines.writers and token",
                       (long long)peer->uid, asked->stream);
        code = "denied";
    }
    pb_config_destroy(config);
    return code;
}

static const char *check_shape(const struct pb_stream_rules *rules,
                               const struct pb_stream_request *asked, char *why)
{
    if (asked->format.bands < rules->least_bands || asked->format.bands > PB_BANDS_MAX)
        (void)snprintf(
            why, PB_HANDSHAKE_WHY_BYTES,
            "the writer has %u bands; pipeline %.64s needs %u at least, and %d are the most",
            asked->format.bands, rules->pipeline, rules->least_bands, PB_BANDS_MAX);
    else if (rules->has_nodata && !pb_nodata_fits(asked->type, rules->nodata))
        (void)snprintf(why, PB_HANDSHAKE_WHY_BYTES,
                       "input.nodata of pipeline %.64s, %g, is no value of the writer's type",
                       rules->pipeline, rules->nodata);
    else
        return NULL;
    return "invalid";
}

static const char *start_receiver(struct pb_streams *streams, const struct pb_peer *peer,
                                  const struct pb_receiver_options *options, char *why)
{
    struct stream *stream = know_stream(streams, options->source.rules.stream);
    struct pb_receiver_options all = *options;
    struct pb_err err = {0};
    const char *code = "unavailable";
    (void)snprintf(why, PB_HANDSHAKE_WHY_BYTES, "out of memory, or too many writers");
    (void)join_ended(streams);
    if (stream == NULL || streams->n_receivers == PB_RECEIVERS_MAX)
        return code;
    if (stream->receiver != NULL) {
        (void)snprintf(why, PB_HANDSHAKE_WHY_BYTES, "stream %s has a writer already, of user %lld",
                       stream->name, (long long)stream->peer.uid);
        return "busy";
    }
    all.counts = &stream->counts;
    struct pb_receiver *receiver = NULL;
    if (pb_receiver_start(&all, &err, &receiver) != 0) {
        (void)snprintf(why, PB_HANDSHAKE_WHY_BYTES, "%.190s", err.msg);
        return code;
    }
    pb_log(PB_LOG_NOTICE, "stream %s: user %lld is its writer now", stream->name,
           (long long)options->source.uid);
    (void)pthread_mutex_lock(&streams->lock);
    stream->receiver = receiver;
    stream->peer = *peer;
    (void)snprintf(stream->token, sizeof stream->token, "%s", options->source.request.token);
    streams->n_receivers++;
    (void)pthread_mutex_unlock(&streams->lock);
    (void)atomic_fetch_add(&stream->counts.writers, 1);
    return NULL;
}

static const char *admit(void *user, int connection, const char *text, size_t n, char *why)
{
    struct pb_streams *streams = user;
    struct pb_peer peer;
    struct pb_receiver_options options = {.connection = connection,
                                          .begun = on_begun,
                                          .complete = on_complete,
                                          .trouble = on_trouble,
                                          .ended = on_ended,
                                          .user = streams};
    struct pb_scene_source *source = &options.source;
    (void)pb_peer_of(connection, &peer);
    if (pb_handshake_parse(text, n, &source->request, why) != 0)
        return "invalid";
    const char *code = check_request(streams, &peer, &source->request, why);
    if (code != NULL)
        return code;
    source->intake = streams->options.intake;
    source->uid = peer.uid;
    if (!pb_stream_rules_find(source->intake, source->request.stream, &source->rules))
        return "unknown";
    if (atomic_load(&source->intake->drains) || atomic_load(&source->intake->paused)) {
        (void)snprintf(why, PB_HANDSHAKE_WHY_BYTES, "the service drains, or has no job store");
        return "unavailable";
    }
    code = check_shape(&source->rules, &source->request, why);
    if (code == NULL && source->request.epsg != 0 &&
        !pb_vector_is_epsg(source->request.epsg, &source->is_geographic)) {
        (void)snprintf(why, PB_HANDSHAKE_WHY_BYTES, "there is no coordinate system EPSG:%u",
                       source->request.epsg);
        code = "invalid";
    }
    return code ? code : start_receiver(streams, &peer, &options, why);
}

/* --- the listener ----------------------------------------------------------------------------- */

static bool has_streams(const struct pb_config *config)
{
    for (size_t i = 0; i < config->n_pipelines; i++)
        if (config->pipelines[i].input.stream != NULL)
            return true;
    return false;
}

/* Disconnects writers if the new configuration lacks their stream or their right. */
static void look_for_rights(struct pb_streams *streams)
{
    struct stream *stream;
    (void)pthread_mutex_lock(&streams->lock);
    const bool is_reloaded = streams->is_reloaded;
    streams->is_reloaded = false;
    (void)pthread_mutex_unlock(&streams->lock);
    if (!is_reloaded)
        return;
    struct pb_config *config = pb_intake_hold_config(streams->options.intake, NULL);
    TAILQ_FOREACH(stream, &streams->streams, next) /* changed by this thread only */
    {
        const struct pb_pipeline_config *pipeline = pb_config_stream(config, stream->name);
        if (stream->receiver == NULL ||
            (pipeline != NULL && may_write(streams, pipeline, &stream->peer, stream->token)))
            continue;
        pb_log(PB_LOG_WARNING,
               "stream %s: the new configuration %s; its writer of user %lld is disconnected, and "
               "its scene is closed",
               stream->name,
               pipeline != NULL ? "lets this user not write" : "does not have this stream",
               (long long)stream->peer.uid);
        pb_receiver_stop(stream->receiver);
    }
    pb_config_destroy(config);
}

static void look(struct pb_streams *streams)
{
    const int64_t now_ms = pb_clock_mono_ms();
    (void)join_ended(streams);
    look_for_rights(streams);
    if (now_ms - streams->looked_ms < LOOK_MS)
        return;
    struct pb_err err = {0};
    streams->looked_ms = now_ms;
    const int rc = pb_requests_open(streams->requests, &err);
    say(streams, &streams->socket, rc != 0 ? err.code : PB_OK, err.msg);
}

static void round_of(struct pb_streams *streams)
{
    struct pollfd fd[PB_REQUESTS_FDS + 1];
    struct pollfd *wake = &fd[PB_REQUESTS_FDS];
    const int most_ms = pb_requests_poll(streams->requests, fd, LOOK_MS);
    *wake = (struct pollfd){.fd = streams->wake, .events = POLLIN};
    (void)poll(fd, PB_REQUESTS_FDS + 1, most_ms);
    uint64_t count;
    if (wake->revents != 0)
        (void)!read(streams->wake, &count, sizeof count);
    look(streams);
    pb_requests_serve(streams->requests, fd);
}

static void end_receivers(struct pb_streams *streams)
{
    struct stream *stream;
    (void)pthread_mutex_lock(&streams->lock);
    TAILQ_FOREACH(stream, &streams->streams, next)
    {
        if (stream->receiver != NULL)
            pb_receiver_stop(stream->receiver);
    }
    (void)pthread_mutex_unlock(&streams->lock);
    while (join_ended(streams) > 0) {
        struct pollfd fd = {.fd = streams->wake, .events = POLLIN};
        uint64_t count;
        if (poll(&fd, 1, LOOK_MS) > 0)
            (void)!read(streams->wake, &count, sizeof count);
    }
}

/* Lets the opener and the closer end after their last steps. */
static void drain(struct pb_streams *streams)
{
    (void)pthread_mutex_lock(&streams->lock);
    streams->is_drained = true;
    (void)pthread_cond_broadcast(&streams->moved);
    (void)pthread_mutex_unlock(&streams->lock);
}

static void *run_listener(void *user)
{
    struct pb_streams *streams = user;
    (void)pthread_setname_np(pthread_self(), "pb-streams");
    while (!stops(streams))
        round_of(streams);
    pb_requests_close(streams->requests);
    end_receivers(streams);
    drain(streams);
    return NULL;
}

/* --- the loop --------------------------------------------------------------------------------- */

static void show(struct pb_streams *streams, const char *key, struct word *word)
{
    if (word->is_new && word->code != PB_OK)
        pb_trouble_raise(streams->options.troubles, key, word->code, word->text);
    else if (word->is_new)
        pb_trouble_clear(streams->options.troubles, key);
}

static void on_async(uv_async_t *async)
{
    struct pb_streams *streams = async->data;
    struct step_list done = STAILQ_HEAD_INITIALIZER(done);
    struct step *step;
    (void)pthread_mutex_lock(&streams->lock);
    STAILQ_CONCAT(&done, &streams->done);
    struct word socket = streams->socket, scenes = streams->scenes;
    streams->socket.is_new = streams->scenes.is_new = false;
    (void)pthread_mutex_unlock(&streams->lock);
    show(streams, "streams", &socket);
    show(streams, "lines", &scenes);
    while ((step = STAILQ_FIRST(&done)) != NULL) {
        STAILQ_REMOVE_HEAD(&done, next);
        streams->options.taken(streams->options.user, step->job.seq != 0 ? &step->job : NULL,
                               step->grows);
        pb_job_fini(&step->job);
        free(step);
    }
}

/* Makes the socket of requests, next to the status socket. */
static struct pb_requests *make_requests(struct pb_streams *streams, const char *status_socket)
{
    const char *slash = strrchr(status_socket, '/');
    const int n = slash != NULL ? (int)(slash - status_socket) + 1 : 0;
    char *path = malloc((size_t)n + sizeof PB_STREAMS_SOCKET);
    struct pb_requests *requests = NULL;
    if (path != NULL) {
        (void)sprintf(path, "%.*s%s", n, status_socket, PB_STREAMS_SOCKET);
        requests = pb_requests_create(
            &(struct pb_requests_options){.path = path, .admit = admit, .user = streams});
    }
    free(path);
    return requests;
}

int pb_streams_create(const struct pb_streams_options *options, struct pb_err *err,
                      struct pb_streams **out_streams)
{
    struct pb_streams *streams = calloc(1, sizeof *streams);
    if (streams == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    streams->options = *options;
    TAILQ_INIT(&streams->streams);
    STAILQ_INIT(&streams->opening);
    STAILQ_INIT(&streams->closing);
    STAILQ_INIT(&streams->done);
    (void)pthread_mutex_init(&streams->lock, NULL);
    (void)pthread_cond_init(&streams->moved, NULL);
    streams->requests = make_requests(streams, options->status_socket);
    streams->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (streams->requests == NULL || streams->wake < 0 ||
        uv_async_init(options->loop, &streams->async, on_async) != 0) {
        if (streams->wake >= 0)
            (void)close(streams->wake);
        pb_requests_destroy(streams->requests);
        free(streams);
        return pb_fail(err, PB_E_SYSTEM, "cannot prepare streams: %s", strerror(errno));
    }
    streams->async.data = streams;
    *out_streams = streams;
    return 0;
}

static int start_threads(struct pb_streams *streams)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the main thread handles them */
    int n = 0, rc = pthread_create(&streams->opener, NULL, run_opener, streams);
    n += rc == 0;
    rc = rc ? rc : pthread_create(&streams->closer, NULL, run_closer, streams);
    n += rc == 0;
    rc = rc ? rc : pthread_create(&streams->listener, NULL, run_listener, streams);
    if (rc != 0) {
        drain(streams);
        if (n > 0)
            (void)pthread_join(streams->opener, NULL);
        if (n > 1)
            (void)pthread_join(streams->closer, NULL);
        streams->is_drained = false;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

void pb_streams_follow(struct pb_streams *streams, const struct pb_config *config)
{
    if (streams == NULL)
        return;
    if (streams->has_threads) {
        (void)pthread_mutex_lock(&streams->lock);
        streams->is_reloaded = true;
        (void)pthread_mutex_unlock(&streams->lock);
        wake_listener(streams);
        return;
    }
    if (!has_streams(config))
        return;
    streams->looked_ms = pb_clock_mono_ms() - LOOK_MS;
    const int rc = start_threads(streams);
    streams->has_threads = rc == 0;
    if (rc != 0)
        pb_trouble_raise(streams->options.troubles, "streams", PB_E_SYSTEM,
                         "cannot start the threads of streams; reload the configuration to try "
                         "again");
    else
        wake_listener(streams);
}

void pb_streams_stop(struct pb_streams *streams)
{
    if (streams == NULL)
        return;
    (void)pthread_mutex_lock(&streams->lock);
    streams->stops = true;
    (void)pthread_mutex_unlock(&streams->lock);
    wake_listener(streams);
}

void pb_streams_finish(struct pb_streams *streams)
{
    if (streams == NULL || !streams->has_threads)
        return;
    (void)pthread_join(streams->listener, NULL);
    (void)pthread_join(streams->opener, NULL);
    (void)pthread_join(streams->closer, NULL);
    streams->has_threads = false;
}

void pb_streams_close(struct pb_streams *streams)
{
    if (streams != NULL)
        uv_close((uv_handle_t *)&streams->async, NULL);
}

void pb_streams_destroy(struct pb_streams *streams)
{
    struct stream *stream;
    struct step *step;
    if (streams == NULL)
        return;
    while ((stream = TAILQ_FIRST(&streams->streams)) != NULL) {
        TAILQ_REMOVE(&streams->streams, stream, next);
        free(stream);
    }
    while ((step = STAILQ_FIRST(&streams->done)) != NULL) {
        STAILQ_REMOVE_HEAD(&streams->done, next);
        pb_job_fini(&step->job);
        free(step);
    }
    (void)pthread_cond_destroy(&streams->moved);
    (void)pthread_mutex_destroy(&streams->lock);
    (void)close(streams->wake);
    pb_requests_destroy(streams->requests);
    free(streams);
}

/* --- reports ---------------------------------------------------------------------------------- */

void pb_streams_add_latency(struct pb_streams *streams, const char *stream,
                            const struct pb_latency_counts *more)
{
    (void)pthread_mutex_lock(&streams->lock);
    struct stream *to = find_stream(streams, stream); /* only the listener adds streams */
    for (size_t i = 0; to != NULL && i <= PB_LATENCY_LIMITS; i++)
        to->latency.n[i] += more->n[i];
    if (to != NULL)
        to->latency.sum_ns += more->sum_ns;
    (void)pthread_mutex_unlock(&streams->lock);
}

static uint64_t count_latencies(const struct pb_latency_counts *latency)
{
    uint64_t n = 0;
    for (size_t i = 0; i <= PB_LATENCY_LIMITS; i++)
        n += latency->n[i];
    return n;
}

/* Prints the lowest limit that `percent` of the latencies do not exceed; null: above all limits. */
static void print_share(struct pb_json *json, const char *key,
                        const struct pb_latency_counts *latency, uint64_t percent)
{
    const uint64_t n = count_latencies(latency);
    uint64_t within = 0;
    for (size_t i = 0; i < PB_LATENCY_LIMITS; i++) {
        within += latency->n[i];
        if (within * 100 >= n * percent) {
            pb_json_int(json, key, (int64_t)(pb_latency_limit_ns[i] / 1000));
            return;
        }
    }
    pb_json_null(json, key);
}

static void print_stream(struct pb_json *json, const struct pb_pipeline_config *pipeline,
                         const struct stream *stream)
{
    static const struct stream none;
    const struct stream *s = stream != NULL ? stream : &none;
    const struct pb_stream_counts *counts = &s->counts;
    const int64_t last_ms = atomic_load(&counts->last_ms);
    pb_json_object(json, NULL);
    pb_json_string(json, "name", pipeline->input.stream);
    pb_json_string(json, "pipeline", pipeline->name);
    if (s->receiver != NULL)
        pb_json_int(json, "writer", s->peer.uid);
    else
        pb_json_null(json, "writer");
    pb_json_int(json, "lines", (int64_t)atomic_load(&counts->lines));
    pb_json_int(json, "lines_per_second", (int64_t)atomic_load(&counts->rate));
    pb_json_int(json, "gaps", (int64_t)atomic_load(&counts->gaps));
    pb_json_int(json, "gap_lines", (int64_t)atomic_load(&counts->gap_lines));
    pb_json_int(json, "dropped", (int64_t)atomic_load(&counts->dropped));
    pb_json_int(json, "scenes", (int64_t)atomic_load(&counts->scenes));
    pb_json_int(json, "waiting_groups", (int64_t)atomic_load(&counts->waiting));
    if (last_ms != 0) {
        pb_json_int(json, "next_line", (int64_t)atomic_load(&counts->next_line));
        pb_json_int(json, "silent_ms", pb_clock_mono_ms() - last_ms);
        pb_json_int(json, "lag_us", atomic_load(&counts->latency_us));
    }
    if (count_latencies(&s->latency) > 0) {
        pb_json_object(json, "latency");
        pb_json_int(json, "lines", (int64_t)count_latencies(&s->latency));
        print_share(json, "p50_us", &s->latency, 50);
        print_share(json, "p99_us", &s->latency, 99);
        pb_json_end(json);
    }
    pb_json_end(json);
}

void pb_streams_print(struct pb_streams *streams, struct pb_json *json, const char *key)
{
    pb_json_array(json, key);
    struct pb_config *config =
        streams != NULL ? pb_intake_hold_config(streams->options.intake, NULL) : NULL;
    for (size_t i = 0; config != NULL && i < config->n_pipelines; i++) {
        const struct pb_pipeline_config *pipeline = &config->pipelines[i];
        if (pipeline->input.stream == NULL)
            continue;
        (void)pthread_mutex_lock(&streams->lock);
        print_stream(json, pipeline, find_stream(streams, pipeline->input.stream));
        (void)pthread_mutex_unlock(&streams->lock);
    }
    pb_config_destroy(config);
    pb_json_end(json);
}

/* Prints a metric of all streams; `value` uses the stream s. */
#define METRIC(out, all, metric, kind, text, value)                                                \
    do {                                                                                           \
        const struct stream *s;                                                                    \
        (void)fprintf(out, "# HELP pushbroom_stream_" metric " " text "\n");                       \
        (void)fprintf(out, "# TYPE pushbroom_stream_" metric " " kind "\n");                       \
        TAILQ_FOREACH(s, &(all)->streams, next)                                                    \
        {                                                                                          \
            (void)fprintf(out, "pushbroom_stream_" metric "{stream=\"%s\"} %lld\n", s->name,       \
                          (long long)(value));                                                     \
        }                                                                                          \
    } while (0)

static void print_latencies(FILE *out, const struct pb_streams *streams)
{
    const struct stream *s;
    (void)fputs(
        "# HELP pushbroom_stream_latency_seconds Time from the publication of a line to its "
        "values and alerts, of lines that arrived while their job ran.\n"
        "# TYPE pushbroom_stream_latency_seconds histogram\n",
        out);
    TAILQ_FOREACH(s, &streams->streams, next)
    {
        uint64_t within = 0;
        for (size_t i = 0; i < PB_LATENCY_LIMITS; i++) {
            within += s->latency.n[i];
            (void)fprintf(
                out, "pushbroom_stream_latency_seconds_bucket{stream=\"%s\",le=\"%g\"} %llu\n",
                s->name, (double)pb_latency_limit_ns[i] / 1e9, (unsigned long long)within);
        }
        const unsigned long long n = count_latencies(&s->latency);
        (void)fprintf(out,
                      "pushbroom_stream_latency_seconds_bucket{stream=\"%s\",le=\"+Inf\"} %llu\n"
                      "pushbroom_stream_latency_seconds_sum{stream=\"%s\"} %.6f\n"
                      "pushbroom_stream_latency_seconds_count{stream=\"%s\"} %llu\n",
                      s->name, n, s->name, (double)s->latency.sum_ns / 1e9, s->name, n);
    }
}

void pb_streams_metrics(struct pb_streams *streams, FILE *out)
{
    if (streams == NULL)
        return;
    (void)pthread_mutex_lock(&streams->lock);
    if (TAILQ_EMPTY(&streams->streams)) {
        (void)pthread_mutex_unlock(&streams->lock);
        return;
    }
    METRIC(out, streams, "writers", "gauge", "1 if a writer is connected.", s->receiver != NULL);
    METRIC(out, streams, "lines_total", "counter", "Lines that arrived.",
           atomic_load(&s->counts.lines));
    METRIC(out, streams, "gaps_total", "counter", "Jumps of the line number.",
           atomic_load(&s->counts.gaps));
    METRIC(out, streams, "gap_lines_total", "counter", "Lines that never arrived.",
           atomic_load(&s->counts.gap_lines));
    METRIC(out, streams, "dropped_lines_total", "counter",
           "Lines that arrived and were not stored, because the service was too slow or had no "
           "space.",
           atomic_load(&s->counts.dropped));
    METRIC(out, streams, "scenes_total", "counter", "Scenes that were closed.",
           atomic_load(&s->counts.scenes));
    print_latencies(out, streams);
    (void)pthread_mutex_unlock(&streams->lock);
}
