/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Start: config, directories, locks, then socket and (daemon_jobs.c) the store, the jobs that a
 * crash left, workers and watcher; a store that does not open is tried again by a timer. Stop, in
 * reverse: the watcher first, so that no input is accepted; then the runner; the socket last, so
 * that clients can follow the stop. */
#include "service/daemon/daemon_parts.h"

#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/io/sha256.h"
#include "pipeline/publish/publish.h"
#include "pipeline/raster/raster.h"
#include "pipeline/product/product_kinds.h"
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/base/loop.h"
#include "service/runner/guests.h"
#include "service/status/methods.h"
#include "service/daemon/notify.h"
#include "service/daemon/reload.h"
#include "service/status/status_methods.h"
#include "service/confine/worker_user.h"
#include "service/inbox/writers.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEAT_MS       5000
#define SUMMARY_BYTES 500
#define PUBLISH_MS    20
#define OVERDUE_MS    6000 /* part of the 10 s that the service takes to end */
#define THREADS       3    /* threads of libuv's pool, in addition to one for each inbox */

static void log_errors(const struct pb_err_list *errors)
{
    char text[1200];
    for (size_t i = 0; i < errors->n; i++) {
        pb_err_text(&errors->err[i], text, sizeof text);
        pb_log(PB_LOG_ERROR, "%s", text);
    }
    if (errors->n_more > 0)
        pb_log(PB_LOG_ERROR, "and %zu mistakes more", errors->n_more);
}

static void log_err(const struct pb_err *err)
{
    char text[1200];
    pb_err_text(err, text, sizeof text);
    pb_log(PB_LOG_ERROR, "%s", text);
}

/* Logs all mistakes; *first (may be NULL) is set to the first one. */
static struct pb_config *load(const char *path, struct pb_err *first)
{
    struct pb_config *config = NULL;
    struct pb_err_list errors; /* on the stack, so that it can also report exhausted memory */
    if (pb_config_load(path, &pb_products, &errors, &config) == 0) {
        pb_reload_digests(config);
        pb_reload_warn(config);
        return config;
    }
    log_errors(&errors);
    if (first != NULL)
        *first = errors.err[0];
    return NULL;
}

static void note_loaded(struct pb_daemon *daemon)
{
    struct pb_config_state *state = &daemon->methods.config;
    const char *text = daemon->config->text;
    *state = (struct pb_config_state){.loaded_ms = pb_clock_wall_ms()};
    struct pb_sha256 *sum = pb_sha256_create();
    pb_sha256_add(sum, text, strlen(text));
    if (pb_sha256_hex(sum, state->sha256) != 0)
        state->sha256[0] = '\0';
    pb_sha256_destroy(sum);
    pb_trouble_clear(&daemon->troubles, "config");
}

/* Raises a trouble until a reload succeeds, because the next restart would fail on this file. */
static void note_refused(struct pb_daemon *daemon, const struct pb_err *why)
{
    char place[320] = "", text[900];
    if (why->file[0] != '\0' && why->line > 0)
        (void)snprintf(place, sizeof place, "%s:%d:%d: ", why->file, why->line, why->col);
    else if (why->file[0] != '\0')
        (void)snprintf(place, sizeof place, "%s: ", why->file);
    (void)snprintf(text, sizeof text,
                   "the reload was refused, and the earlier configuration stays in use: %s%s",
                   place, why->msg);
    daemon->methods.config.refused = true;
    pb_trouble_raise(&daemon->troubles, "config", why->code, text);
}

/* Sets the number of threads of libuv's pool so that inboxes whose storage hangs leave threads to
 * other tasks. */
static void set_threads(const struct pb_config *config)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%zu", THREADS + config->service.n_inboxes);
    (void)setenv("UV_THREADPOOL_SIZE", number, 0);
}

/* Wakes the loop: on_prepare publishes. */
static void on_publish_late(uv_timer_t *timer)
{
    (void)timer;
}

/* Publishes the texts, but not at each iteration of the loop, of which there may be thousands a
 * second: before an event or an answer the texts are published anyway. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct pb_daemon *daemon = prepare->data;
    if (pb_clock_mono_ms() - daemon->published_ms < PUBLISH_MS) {
        if (!uv_is_active((uv_handle_t *)&daemon->publish_late))
            (void)uv_timer_start(&daemon->publish_late, on_publish_late, PUBLISH_MS, 0);
        return;
    }
    daemon->published_ms = pb_clock_mono_ms();
    pb_methods_publish(&daemon->methods);
    if (daemon->store_open && !daemon->methods.stopping)
        pb_chores_run(&daemon->chores, daemon->methods.counts, &daemon->config->service);
}

/* Updates systemd's status line immediately when a trouble was raised or cleared. */
static void on_trouble(void *user)
{
    struct pb_daemon *daemon = user;
    char text[SUMMARY_BYTES];
    if (!daemon->ready || daemon->methods.stopping)
        return;
    pb_methods_summary(&daemon->methods, text, sizeof text);
    pb_notify_status(text);
}

void pb_daemon_become_ready(struct pb_daemon *daemon)
{
    char text[SUMMARY_BYTES];
    struct pb_err err = {0};
    if (daemon->ready || daemon->methods.stopping)
        return;
    pb_methods_publish(&daemon->methods);
    if (pb_status_serve(daemon->methods.status, &err) != 0) {
        log_err(&err);
        daemon->failed = true;
        (void)raise(SIGTERM);
        return;
    }
    daemon->ready = true;
    pb_methods_summary(&daemon->methods, text, sizeof text);
    pb_notify_ready(text);
    pb_log(PB_LOG_NOTICE, "ready: inbox %s%s, socket %s; %s", daemon->dirs.inbox[0],
           daemon->dirs.n_inboxes > 1 ? " and others" : "", daemon->socket, text);
}

/* Becomes ready after the first scan of the inbox, so that clients see its jobs; earlier if the
 * store does not open, or if the scan takes long. */
static void on_beat(uv_timer_t *timer)
{
    struct pb_daemon *daemon = timer->data;
    char text[SUMMARY_BYTES];
    pb_notify_watchdog();
    pb_log_flush();
    pb_daemon_open_jobs(daemon);
    pb_daemon_sweep_work(daemon);
    pb_daemon_tidy(daemon);
    if (!daemon->methods.stopping)
        pb_machine_run(&daemon->machine);
    if (daemon->subscribe_again)
        pb_daemon_subscribe(daemon);
    if (daemon->ready) {
        pb_methods_summary(&daemon->methods, text, sizeof text);
        pb_notify_status(text);
    } else if (daemon->opening == NULL && (daemon->methods.feed == NULL || daemon->beats > 0)) {
        pb_daemon_become_ready(daemon);
    }
    daemon->beats++;
}

/* Number of a user; -1 if the name is empty or the user does not exist. */
static int64_t find_user(const char *name)
{
    struct pb_admins user = {.n = 0};
    return name[0] != '\0' && pb_admins_add(&user, name) ? user.uid[0] : -1;
}

/* Resolves user names now, not at a request. */
static void set_admins(struct pb_daemon *daemon)
{
    const struct pb_service_config *service = &daemon->config->service;
    struct pb_admins admins = {.n = 0};
    for (size_t i = 0; i < service->n_admins; i++) {
        if (!pb_admins_add(&admins, service->admins[i]))
            pb_log(PB_LOG_WARNING, "service.admins: there is no user '%s', or too many are listed",
                   service->admins[i]);
    }
    pb_facts_set_admins(&daemon->facts, &admins);
    pb_facts_set_notifier(&daemon->facts, find_user(service->notify_user));
    pb_facts_set_viewer(&daemon->facts, find_user(service->web_user),
                        daemon->config->web.actions != 0);
}

/* Describes the confinement of the processes that compute. */
static void say_confinement(struct pb_daemon *daemon)
{
    pb_confine_config(daemon->config, daemon->methods.confinement);
    pb_log(PB_LOG_NOTICE, "scenes are computed under: %s", daemon->methods.confinement);
}

static void reload(struct pb_daemon *daemon)
{
    char text[SUMMARY_BYTES];
    struct pb_err err = {0};
    pb_notify_reloading();
    daemon->open_at_ms = daemon->open_wait_ms = 0; /* tries to open the store again at once */
    struct pb_config *config = load(daemon->options->config, &err);
    if (config != NULL && pb_reload_dirs(daemon->config, config, &daemon->dirs, &err) != 0) {
        log_err(&err);
        pb_config_destroy(config);
        config = NULL;
    }
    if (config == NULL) {
        pb_log(PB_LOG_ERROR, "reload: refused; the config as it was stays in use");
        note_refused(daemon, &err);
    } else {
        struct pb_config *old = daemon->config;
        daemon->config = config;
        pb_intake_set_config(&daemon->intake, config);
        daemon->tidy_at_ms = 0;
        pb_daemon_tidy(daemon);
        set_admins(daemon);
        say_confinement(daemon);
        pb_daemon_subscribe(daemon);
        if (daemon->methods.runner != NULL)
            pb_runner_set_config(daemon->methods.runner, config);
        pb_guests_set_config(daemon->guests, config);
        if (daemon->methods.feed != NULL)
            pb_feed_set_config(daemon->methods.feed, config);
        pb_streams_follow(daemon->streams, config);
        pb_config_destroy(old);
        note_loaded(daemon);
        pb_log(PB_LOG_NOTICE, "reload: %s is in use", daemon->options->config);
    }
    pb_methods_summary(&daemon->methods, text, sizeof text);
    pb_notify_ready(text);
}

static void stop_signals(struct pb_daemon *daemon)
{
    for (int i = 0; i < PB_DAEMON_SIGNALS; i++)
        uv_close((uv_handle_t *)&daemon->signals[i], NULL);
}

/* Not on the loop, because the store may not answer a reading. */
static void end_methods(uv_work_t *request)
{
    struct pb_daemon *daemon = request->data;
    pb_status_methods_destroy(daemon->status_methods);
}

static void stop_status(struct pb_daemon *daemon)
{
    pb_status_stop(daemon->methods.status);
    daemon->methods.status = NULL;
    daemon->end_methods.data = daemon;
    (void)uv_queue_work(&daemon->loop, &daemon->end_methods, end_methods, NULL);
    pb_tasks_close(&daemon->tasks);
    uv_close((uv_handle_t *)&daemon->publish, NULL);
    uv_close((uv_handle_t *)&daemon->publish_late, NULL);
}

/* Ends the process. Changes that were not stored are found again at the next start, as after a
 * power failure. */
static void on_overdue(uv_timer_t *timer)
{
    (void)timer;
    pb_log(PB_LOG_ERROR,
           "stopping: a thread is still blocked in an inbox, another directory or the job store "
           "after %d s; the process ends without it",
           OVERDUE_MS / 1000);
    pb_log_flush();
    _exit(PB_DAEMON_EXIT_OK);
}

static void on_runner_stopped(void *user)
{
    struct pb_daemon *daemon = user;
    (void)uv_timer_start(&daemon->overdue, on_overdue, OVERDUE_MS, 0);
    stop_status(daemon);
    pb_guests_stop(daemon->guests);
    pb_runner_destroy(daemon->methods.runner);
    daemon->methods.runner = NULL;
    stop_signals(daemon);
    uv_close((uv_handle_t *)&daemon->beat, NULL);
    pb_daemon_stop_beat(daemon);
}

static void end_streams(uv_work_t *request)
{
    struct pb_daemon *daemon = request->data;
    pb_streams_finish(daemon->streams);
}

static void on_streams_ended(uv_work_t *request, int status)
{
    struct pb_daemon *daemon = request->data;
    (void)status;
    pb_streams_close(daemon->streams);
}

/* Closes the scenes of streams on the pool; the next start runs their jobs. */
static void stop_streams(struct pb_daemon *daemon)
{
    daemon->methods.streams = NULL;
    if (daemon->streams == NULL)
        return;
    pb_streams_stop(daemon->streams);
    daemon->end_streams.data = daemon;
    (void)uv_queue_work(&daemon->loop, &daemon->end_streams, end_streams, on_streams_ended);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct pb_daemon *daemon = handle->data;
    if (daemon->methods.stopping)
        return;
    if (number == SIGHUP) {
        reload(daemon);
        return;
    }
    pb_log(PB_LOG_NOTICE, "stopping: signal %d", number);
    pb_notify_stopping();
    daemon->methods.stopping = true;
    pb_feed_stop(daemon->methods.feed);
    daemon->methods.feed = NULL;
    stop_streams(daemon);
    if (daemon->methods.runner != NULL)
        pb_runner_stop(daemon->methods.runner, on_runner_stopped, daemon);
    else
        on_runner_stopped(daemon);
}

static int prepare(struct pb_daemon *daemon, struct pb_err *err)
{
    char parent[PB_FILES_PATH_BYTES];
    const struct pb_service_config *service = &daemon->config->service;
    int rc = pb_dirs_prepare(service, err, &daemon->dirs);
    rc = rc ? rc : pb_dirs_lock(&daemon->dirs, &daemon->locks, err);
    for (size_t i = 0; rc == 0 && i < daemon->dirs.n_inboxes; i++)
        if (pb_dirs_inbox_is_open(daemon->dirs.inbox[i]))
            pb_log(PB_LOG_WARNING,
                   "inbox: %s is writable for several users and not sticky: each can move and "
                   "delete what others put there; chmod +t, and let it belong to the service's "
                   "user",
                   daemon->dirs.inbox[i]);
    char node[PB_JOB_NODE_BYTES];
    pb_daemon_node_name(service, node);
    const struct pb_store_place place = {.directory = daemon->dirs.state,
                                         .postgresql =
                                             service->has_store ? service->store.postgresql : NULL,
                                         .node = node,
                                         .is_shared = service->has_store};
    daemon->lease_ms = service->store.lease_ms;
    (void)snprintf(daemon->address, sizeof daemon->address, "%s",
                   service->has_fetch ? service->fetch.address : "");
    rc = rc ? rc : pb_job_store_create(&place, err, &daemon->store);
    rc = rc ? rc : pb_job_store_create_reader(daemon->store, err, &daemon->reader);
    rc = rc ? rc : pb_job_store_create_reader(daemon->store, err, &daemon->chores_reader);
    if (rc == 0 && pb_job_set(&daemon->socket, service->socket) != 0)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    (void)snprintf(parent, sizeof parent, "%s", service->socket);
    char *slash = strrchr(parent, '/');
    if (rc == 0 && slash != NULL && slash != parent) {
        *slash = '\0';
        rc = pb_files_make_directory(parent, "socket's", err);
    }
    return rc;
}

/* Called first, so that an early SIGTERM also ends the service in order. */
static void start_signals(struct pb_daemon *daemon)
{
    static const int numbers[PB_DAEMON_SIGNALS] = {SIGTERM, SIGINT, SIGHUP};
    for (int i = 0; i < PB_DAEMON_SIGNALS; i++) {
        (void)uv_signal_init(&daemon->loop, &daemon->signals[i]);
        daemon->signals[i].data = daemon;
        (void)uv_signal_start(&daemon->signals[i], on_signal, numbers[i]);
    }
}

static int start_status(struct pb_daemon *daemon, struct pb_err *err)
{
    struct pb_methods *methods = &daemon->methods;
    struct pb_status_options options = {.path = daemon->socket};
    int rc =
        pb_status_methods_create(daemon->store, &daemon->facts, &daemon->tasks, &daemon->checker,
                                 methods->start_wall_ms, err, &daemon->status_methods);
    if (rc != 0)
        return rc;
    pb_methods_publish(methods);
    pb_status_methods_options(daemon->status_methods, &options);
    rc = pb_status_open(&options, err, &methods->status);
    pb_status_methods_set_status(daemon->status_methods, methods->status);
    return rc;
}

static int start(struct pb_daemon *daemon, struct pb_err *err)
{
    struct pb_methods *methods = &daemon->methods;
    start_signals(daemon);
    (void)pb_tasks_init(&daemon->tasks, &daemon->loop, pb_methods_run, methods);
    (void)uv_prepare_init(&daemon->loop, &daemon->publish);
    (void)uv_timer_init(&daemon->loop, &daemon->publish_late);
    daemon->publish.data = daemon->publish_late.data = daemon;
    *methods = (struct pb_methods){.intake = &daemon->intake,
                                   .loop = &daemon->loop,
                                   .reader = daemon->reader,
                                   .nodes = &daemon->nodes,
                                   .metrics = &daemon->metrics,
                                   .troubles = &daemon->troubles,
                                   .facts = &daemon->facts,
                                   .chores = &daemon->chores,
                                   .socket = daemon->socket,
                                   .start_wall_ms = pb_clock_wall_ms()};
    note_loaded(daemon);
    say_confinement(daemon);
    daemon->chores = (struct pb_chores){.loop = &daemon->loop,
                                        .store = daemon->store,
                                        .reader = daemon->chores_reader,
                                        .done = pb_daemon_look_at_subscribers,
                                        .user = daemon};
    daemon->machine =
        (struct pb_machine){.loop = &daemon->loop, .dirs = &daemon->dirs, .facts = &daemon->facts};
    daemon->intake.store = daemon->store;
    daemon->intake.dirs = &daemon->dirs;
    daemon->intake.writers =
        pb_writers_probe(daemon->dirs.inbox[0]); /* on the same mount as the others */
    if (daemon->intake.writers != 0)
        pb_log(PB_LOG_WARNING,
               "inbox: files that are open for writing are %s; undetected ones count as complete "
               "after service.settle without change",
               pb_writers_word(daemon->intake.writers));
    (void)pb_publish_sweep(daemon->dirs.products);
    int rc = start_status(daemon, err);
    if (rc != 0) {
        stop_status(daemon);
        stop_signals(daemon);
        return rc;
    }
    pb_daemon_open_jobs(daemon);
    int64_t beat_ms = pb_notify_watchdog_ms();
    if (beat_ms == 0 || beat_ms > BEAT_MS)
        beat_ms = BEAT_MS;
    (void)uv_timer_init(&daemon->loop, &daemon->beat);
    daemon->beat.data = daemon;
    (void)uv_prepare_start(&daemon->publish, on_prepare);
    (void)uv_timer_start(&daemon->beat, on_beat, 1, (uint64_t)beat_ms);
    return 0;
}

static void destroy(struct pb_daemon *daemon)
{
    pb_checker_stop(&daemon->checker);
    pb_streams_destroy(daemon->streams);
    pb_daemon_free_beat(daemon);
    pb_job_store_close(daemon->reader);
    pb_job_store_close(daemon->chores_reader);
    pb_job_store_close(daemon->store);
    pb_intake_fini(&daemon->intake);
    pb_dirs_unlock(&daemon->locks);
    pb_config_destroy(daemon->config);
    pb_facts_fini(&daemon->facts);
    free(daemon->socket);
    free(daemon);
}

int pb_daemon_run(const struct pb_daemon_options *options)
{
    int code = PB_DAEMON_EXIT_FAILED;
    struct pb_err err = {0};
    (void)signal(SIGPIPE, SIG_IGN);
    pb_worker_user_keep_ambient();
    pb_confine_hide();
    /* The parts of a scan run on several threads of the pool. With an arena of its own, each of
     * them would keep the memory that its scan of a huge inbox freed. */
    (void)mallopt(M_ARENA_MAX, 1);
    struct pb_daemon *daemon = calloc(1, sizeof *daemon);
    if (daemon == NULL) {
        pb_log(PB_LOG_ERROR, "out of memory at the start");
        return code;
    }
    daemon->options = options;
    pb_facts_init(&daemon->facts);
    daemon->troubles.on_change = on_trouble;
    daemon->troubles.user = daemon;
    daemon->config = load(options->config, NULL);
    if (daemon->config == NULL) {
        free(daemon);
        return PB_DAEMON_EXIT_CONFIG;
    }
    pb_log(PB_LOG_NOTICE, "pushbroomd %s starts with %s", PB_VERSION, options->config);
    set_threads(daemon->config);
    if (pb_checker_start(&daemon->checker) !=
        0) /* before there are descriptors that the forked process should not have */
        pb_log(PB_LOG_ERROR, "cannot start the process that looks at submitted files: %s",
               strerror(errno));
    set_admins(daemon);
    pb_intake_init(&daemon->intake, daemon->config);
    int status = pb_loop_init(&daemon->loop);
    if (status != 0) {
        pb_log(PB_LOG_ERROR, "cannot start the event loop: %s", uv_strerror(status));
        destroy(daemon);
        return code;
    }
    (void)uv_timer_init(&daemon->loop, &daemon->overdue);
    uv_unref((uv_handle_t *)&daemon->overdue); /* the timer does not keep the loop running */
    /* without it every job would fail, or lose its CRS */
    int rc = pb_raster_ready(&err);
    rc = rc ? rc : prepare(daemon, &err);
    rc = rc ? rc : start(daemon, &err);
    if (rc != 0) {
        log_err(&err);
        code = pb_daemon_exit_code(&err);
    }
    (void)uv_run(&daemon->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&daemon->overdue, NULL);
    (void)uv_run(&daemon->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&daemon->loop) != 0)
        pb_log(PB_LOG_ERROR, "stopping: handles are left open");
    else if (rc == 0 && !daemon->failed)
        code = PB_DAEMON_EXIT_OK;
    destroy(daemon);
    if (code == PB_DAEMON_EXIT_OK)
        pb_log(PB_LOG_NOTICE, "stopped");
    return code;
}
