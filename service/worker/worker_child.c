/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two threads: one handles the socket (poll on the socket and on a wake-up descriptor, all
 * writing), the main one runs the pipeline, because the thread-local data of GDAL and PROJ was
 * loaded there before the fork. Output of libraries on stdout is redirected to stderr. */
#include "config/config.h"
#include "service/worker/worker_child_parts.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/base/text_clean.h"
#include "pipeline/device/device.h"
#include "pipeline/raster/raster.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/io/thread.h"
#include "pipeline/profile/trace.h"
#include "config/base/clock.h"
#include "service/worker/result_json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EXIT_WAIT_MS 3000

static void set_run(struct pb_child *worker, struct pb_run *run)
{
    (void)pthread_mutex_lock(&worker->lock);
    if (run == NULL && worker->run != NULL) {
        pb_run_progress(worker->run, &worker->last);
        worker->is_over = true;
    }
    worker->run = run;
    if (run != NULL && worker->cancelled)
        pb_run_abort(run);
    (void)pthread_mutex_unlock(&worker->lock);
}

static void say_buffers(const struct pb_child *worker, const struct pb_run *run)
{
    const char *why = pb_run_buffers_why(run);
    if (why[0] != '\0')
        (void)fprintf(stderr, "job %s: buffers are %s: %s\n",
                      pb_json_get_text(worker->command, "job"), pb_run_buffers(run), why);
}

/* Queues an alert for the thread of the socket. Returns false if the run has too many alerts. */
static bool add_alert(struct pb_child *worker, const struct pb_job_alert *alert)
{
    (void)pthread_mutex_lock(&worker->lock);
    const bool fits = worker->n_alerts < PB_JOB_ALERTS_MAX;
    const bool is_first = !fits && worker->n_more++ == 0;
    if (fits)
        worker->alert[worker->n_alerts++] = *alert;
    (void)pthread_mutex_unlock(&worker->lock);
    if (is_first)
        (void)fprintf(stderr, "job %s: has more than %d alerts; the others are in its product\n",
                      pb_json_get_text(worker->command, "job"), PB_JOB_ALERTS_MAX);
    return fits;
}

/* Reports an alert at once, to the service or to the terminal. */
static void report_alert(void *user, const struct pb_alert *from)
{
    struct pb_child *worker = user;
    char words[400];
    struct pb_job_alert alert = {.number = from->number,
                                 .pixels = from->pixels,
                                 .line = from->line,
                                 .sample = from->sample,
                                 .value = from->value,
                                 .has_place = from->has_place,
                                 .lon = from->lon,
                                 .lat = from->lat,
                                 .acquired_ns = from->acquired_ns > 0 ? from->acquired_ns : 0};
    if (from->name != NULL)
        (void)pb_text_clean(from->name, alert.name, sizeof alert.name);
    (void)pb_text_clean(from->band, alert.band, sizeof alert.band);
    if (pb_json_get_text(worker->command, "foreground") == NULL) {
        if (add_alert(worker, &alert))
            pb_worker_wake(worker->woken);
        return;
    }
    pb_job_alert_words(&alert, words);
    (void)fprintf(stderr, "job %s: %s\n", pb_json_get_text(worker->command, "job"), words);
}

static const char *locate(void *user, const struct pb_output_facts *facts)
{
    struct pb_child *worker = user;
    return pb_worker_ask_place(&worker->ask, facts);
}

static int turn(void *user, const struct pb_run_needs *needs, struct pb_err *err)
{
    struct pb_child *worker = user;
    return pb_worker_ask_turn(&worker->ask, needs, err);
}

static int inputs(void *user, struct pb_err *err, const struct pb_scene_manifest **out)
{
    struct pb_child *worker = user;
    return pb_worker_ask_inputs(&worker->ask, err, out);
}

static void take_bounds(void *user, const double bbox[4])
{
    struct pb_child *worker = user;
    (void)pthread_mutex_lock(&worker->lock);
    (void)memcpy(worker->bounds, bbox, sizeof worker->bounds);
    worker->has_bounds = true;
    (void)pthread_mutex_unlock(&worker->lock);
}

/* Prints the CRS of the scene, for the parent to load it before later scenes. */
static void print_crs(const struct pb_run_result *result, struct pb_json *json)
{
    int epsg = 0;
    if (sscanf(pb_raster_info(result->env->raster)->crs_code, "EPSG:%5d", &epsg) == 1 && epsg > 0)
        pb_json_int(json, "epsg", epsg);
}

/* All tiles are computed: the job leaves the device, and the service may start the next job. */
static void end_computing(struct pb_child *worker)
{
    if (worker->child->owner_fd >= 0)
        pb_owner_client_end(&worker->owner);
    pb_worker_wake(worker->woken);
}

static int run_options(struct pb_child *worker, struct pb_run_options *options, struct pb_err *err)
{
    struct pb_run *run = NULL;
    struct pb_run_result result;
    int rc = pb_run_create(options, err, &run);
    if (rc != 0)
        return rc;
    set_run(worker, run);
    say_buffers(worker, run);
    memset(&result, 0, sizeof result);
    rc = pb_run_start(run, err);
    rc = rc ? rc : pb_run_wait(run, -1, err);
    if (rc == 0)
        end_computing(worker);
    rc = rc ? rc : pb_run_publish(run, err, &result);
    set_run(worker, NULL);
    if (rc == 0) {
        worker->done = pb_child_event(worker, "done");
        pb_result_print(worker->done, &result);
        print_crs(&result, worker->done);
        pb_json_end(worker->done);
    }
    pb_run_destroy(run);
    return rc;
}

static int run_job(struct pb_child *worker, struct pb_err *err)
{
    const struct pb_json_value *command = worker->command;
    const char *pipeline = pb_json_get_text(command, "pipeline");
    if (worker->unfit.code != PB_OK) {
        *err = worker->unfit;
        return pb_code_errno(err->code);
    }
    struct pb_run_options options = {
        .config = worker->config,
        .pipeline = pb_config_pipeline(worker->config, pipeline),
        .input = worker->child->scene,
        .products = pb_json_get_text(command, "products"),
        .scene = pb_json_get_text(command, "scene"),
        .directory = pb_json_get_text(command, "directory"),
        .place = pb_json_get_text(command, "place"),
        .bounds = take_bounds,
        .locate = locate,
        .inputs = inputs,
        .turn = pb_json_get_text(command, "turn") != NULL ? turn : NULL,
        .alert = report_alert,
        .user = worker,
        .stream_why = pb_json_get_text(command, "stream_why"),
        .remote = worker->child->owner_fd >= 0 ? &worker->owner.remote : NULL,
    };
    struct pb_scene unpacked = pb_scene_at(worker->child->scene->path);
    int rc = 0;
    if (options.pipeline == NULL)
        return pb_fail(err, PB_E_INPUT_NO_PIPELINE, "there is no pipeline '%s'", pipeline);
    if (worker->child->room >= 0) {
        const struct pb_worker_archive_how how = {
            .scene = options.scene,
            .is_part = pb_json_get_text(command, "part") != NULL,
            .foreground = pb_json_get_text(command, "foreground") != NULL};
        rc = pb_worker_archive_open(&worker->archive, worker->child, options.pipeline, &how, err,
                                    &unpacked.files);
        options.input = &unpacked;
    }
    rc = rc ? rc : run_options(worker, &options, err);
    pb_scene_files_close(&unpacked.files);
    return rc;
}

static void do_job(struct pb_child *worker)
{
    int rc = run_job(worker, &worker->err);
    if (rc != 0 && worker->err.code == PB_OK)
        (void)pb_fail(&worker->err, rc == -ECANCELED ? PB_E_JOB_DISMISSED : PB_E_SYSTEM,
                      "the run ended: %s", strerror(-rc));
    atomic_store(&worker->ended, true);
    pb_worker_wake(worker->woken);
}

static int find_device(struct pb_child *worker, char why[200], struct pb_err *err)
{
    if (worker->child->owner_fd < 0)
        return pb_run_device(&worker->config->compute, worker->device, why, err);
    why[0] = '\0';
    int rc = pb_owner_client_begin(&worker->owner, worker->child->owner_fd, err);
    (void)snprintf(worker->device, sizeof worker->device, "%s", worker->owner.device);
    return rc;
}

static bool is_run_complete(const struct pb_json_value *command)
{
    static const char *const needed[] = {"job", "config", "pipeline", "products", "directory"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (pb_json_get_text(command, needed[i]) == NULL)
            return false;
    }
    return true;
}

static void start_run(struct pb_child *worker, struct pb_json_value *command)
{
    struct pb_err err = {0};
    char why[200];
    worker->command = command;
    int rc = is_run_complete(command)
                 ? find_device(worker, why, &err)
                 : pb_fail(&err, PB_E_SERVICE_PROTOCOL, "a run command with members missing");
    if (rc == 0 && worker->alone)
        rc = pb_fail(&err, PB_E_SYSTEM, "cannot start a thread");
    if (rc == 0 && worker->child->owner_fd >= 0 && pb_json_get_text(command, "foreground") != NULL)
        pb_child_say_device(worker, worker->device, why);
    worker->busy = rc == 0;
    if (rc == 0) {
        (void)sem_post(&worker->given);
        return;
    }
    pb_child_say_failed(worker, &err);
    _exit(0);
}

static void cancel(struct pb_child *worker)
{
    (void)pthread_mutex_lock(&worker->lock);
    worker->cancelled = true;
    pb_worker_ask_cancel(&worker->ask);
    atomic_store(&worker->archive.cancelled, true);
    if (worker->run != NULL)
        pb_run_abort(worker->run);
    (void)pthread_mutex_unlock(&worker->lock);
}

static void obey(struct pb_child *worker, const char *text, size_t bytes)
{
    struct pb_json_value *command = NULL;
    const char *name = NULL;
    int rc = pb_json_parse(text, bytes, PB_LINE_READER_MAX, &command);
    /* a lost command would never be answered; after an exit the job is tried again */
    if (rc == -ENOMEM) {
        (void)fputs("out of memory for a command\n", stderr);
        _exit(EXIT_FAILURE);
    }
    if (rc == 0)
        name = pb_json_get_text(command, "cmd");
    if (name != NULL && strcmp(name, "run") == 0 && !worker->busy) {
        start_run(worker, command);
        return;
    }
    if (name != NULL && strcmp(name, "cancel") == 0)
        cancel(worker);
    else if (!pb_worker_ask_answer(&worker->ask, command))
        (void)fprintf(stderr, "an unknown command: %.100s\n", text);
    pb_json_release(command);
}

/* Returns false at the end of the socket. */
static bool read_commands(struct pb_child *worker)
{
    size_t bytes;
    char *line;
    if (!pb_line_reader_fill(&worker->in))
        return false;
    while ((line = pb_line_reader_next(&worker->in, &bytes)) != NULL)
        obey(worker, line, bytes);
    return true;
}

/* Ends the process immediately, because the parent waits for the end before it publishes. */
static _Noreturn void end_run(struct pb_child *worker)
{
    for (int wait_ms; (wait_ms = pb_child_say_alerts(worker)) >= 0;)
        (void)poll(NULL, 0, wait_ms);
    pb_child_say_last(worker);
    if (worker->done != NULL)
        pb_child_say(worker, worker->done);
    else
        pb_child_say_failed(worker, &worker->err);
    _exit(0);
}

/* The parent has ended or closed the socket: aborts the run, with a time limit. */
static _Noreturn void leave(struct pb_child *worker)
{
    struct pollfd ended = {.fd = worker->woken, .events = POLLIN};
    cancel(worker);
    if (worker->busy)
        (void)poll(&ended, 1, EXIT_WAIT_MS);
    _exit(worker->busy ? 1 : 0);
}

static void become_child(struct pb_child *worker, const struct pb_worker_child *child)
{
    char text[PB_CONFINE_TEXT_BYTES];
    pb_work_forget(); /* drop profiling state inherited over fork */
    pb_trace_become(PB_TRACE_CHILD);
    worker->child = child;
    worker->in = (struct pb_line_reader){.fd = child->socket};
    worker->config = child->config;
    worker->woken = eventfd(0, EFD_CLOEXEC);
    (void)pthread_mutex_init(&worker->lock, NULL);
    (void)sem_init(&worker->given, 0, 0);
    pb_worker_ask_init(&worker->ask, worker->woken);
    pb_scene_hand(child->scene);
    (void)pb_confine_apply(child->confine, &worker->unfit, text);
}

static _Noreturn void serve_socket(struct pb_child *worker)
{
    for (;;) {
        struct pollfd watched[2] = {{.fd = worker->in.fd, .events = POLLIN},
                                    {.fd = worker->woken, .events = POLLIN}};
        uint64_t count;
        const int alerts_ms = pb_child_say_alerts(worker);
        int rc = poll(watched, 2,
                      alerts_ms >= 0 ? alerts_ms
                      : worker->busy ? PB_CHILD_PROGRESS_MS
                                     : -1);
        if (rc < 0 && errno != EINTR)
            _exit(1);
        if (worker->busy)
            pb_child_say_progress(worker);
        if (rc > 0 && watched[1].revents != 0 &&
            read(worker->woken, &count, sizeof count) == (ssize_t)sizeof count) {
            if (atomic_load(&worker->ended))
                end_run(worker);
            pb_child_say_question(worker);
        }
        if (rc > 0 && watched[0].revents != 0 && !read_commands(worker))
            leave(worker);
    }
}

static void *socket_thread(void *user)
{
    serve_socket(user);
}

_Noreturn void pb_worker_child_main(const struct pb_worker_child *child)
{
    static struct pb_child worker;
    pthread_t server;
    become_child(&worker, child);
    if (worker.woken < 0)
        _exit(1);
    if (pb_thread_start(&server, socket_thread, &worker) < 0) {
        worker.alone = true;
        serve_socket(&worker);
    }
    while (sem_wait(&worker.given) != 0)
        ;
    do_job(&worker);
    for (;;) /* the main thread reports the failure and ends the process */
        (void)pause();
}
