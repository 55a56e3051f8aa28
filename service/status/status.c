/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The thread: one epoll set with the listener, the clients and an eventfd that other threads write
 * to. The thread never waits for a disk or for another thread, so that every client is answered at
 * any time. */
#include "service/status/status.h"

#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/status/status_loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SOCKET_MODE    0660
#define EVENTS_A_ROUND 64
#define BEAT_MS        1000
#define NEWS_US        1000
#define LAST_MS        1000 /* limit for calls that wait for the job store at the stop */

int pb_status_listen(struct pb_status *status, bool on)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &status->bound}};
    int rc = epoll_ctl(status->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, status->bound.fd, &event);
    return rc == 0 ? 0 : -errno;
}

static void take_item(struct pb_status *status, struct pb_news *item)
{
    if (item->held)
        status->options.on_event(status->options.user, &item->outcome.job, true);
    else if (item->ticket == 0)
        pb_status_spread(status, &item->outcome.job);
    else
        pb_status_finish(status, item->ticket, &item->outcome);
    pb_job_fini(&item->outcome.job);
    free(item);
}

/* Sends events. An event costs one system call per watcher, and there may be thousands of events:
 * those that do not fit into the time of a round wait for the next round, after the clients'
 * requests. */
static void take_news(struct pb_status *status, int64_t limit_us)
{
    uint64_t count;
    struct pb_news *item;
    (void)!read(status->wake, &count, sizeof count);
    (void)pthread_mutex_lock(&status->lock);
    STAILQ_CONCAT(&status->taken, &status->news);
    (void)pthread_mutex_unlock(&status->lock);
    int64_t start_us = pb_status_cpu_us();
    while ((item = STAILQ_FIRST(&status->taken)) != NULL) {
        STAILQ_REMOVE_HEAD(&status->taken, next);
        take_item(status, item);
        if (pb_status_cpu_us() - start_us >= limit_us)
            break;
    }
}

/* Makes a deleted socket file again; clients of the old one stay connected. */
static void look_for_socket(struct pb_status *status)
{
    struct pb_err err = {0};
    struct pb_socket_bind again;
    if (pb_socket_bind_is_there(status->path, &status->bound)) {
        status->told_gone = false;
        return;
    }
    int rc = pb_socket_bind_again(status->path, SOCKET_MODE, &err, &again);
    if (rc == 0) {
        pb_status_accept(status); /* accepts clients that connected before */
        if (status->accept_at_ms == 0)
            (void)pb_status_listen(status, false);
        (void)close(status->bound.fd);
        status->bound = again;
        status->accept_at_ms = 0;
        (void)pb_status_listen(status, true);
        pb_log(PB_LOG_WARNING, "status: the socket %s was deleted and is made again", status->path);
    } else if (!status->told_gone) {
        pb_log(PB_LOG_ERROR, "status: the socket %s was taken away: %s", status->path,
               rc == -EEXIST ? "something else is there now; move it away" : err.msg);
        status->told_gone = true;
    }
}

static void beat(struct pb_status *status)
{
    if (status->now_ms - status->beat_ms < BEAT_MS)
        return;
    status->beat_ms = status->now_ms;
    status->rows_failed = false;
    pb_status_sweep(status);
    pb_fair_sweep(&status->fair, status->now_ms);
    look_for_socket(status);
    if (status->options.on_beat != NULL)
        status->options.on_beat(status->options.user);
}

static int patience_ms(struct pb_status *status)
{
    int due = pb_fair_due_ms(&status->fair, status->now_ms);
    int64_t left = BEAT_MS - (status->now_ms - status->beat_ms);
    if (status->accept_at_ms != 0 && status->accept_at_ms - status->now_ms < left)
        left = status->accept_at_ms - status->now_ms;
    left = left < 0 || !STAILQ_EMPTY(&status->taken) ? 0 : left;
    return due >= 0 && due < left ? due : (int)left;
}

static void round_of(struct pb_status *status)
{
    struct epoll_event events[EVENTS_A_ROUND];
    int n = epoll_wait(status->epoll, events, EVENTS_A_ROUND, patience_ms(status));
    status->now_ms = pb_clock_mono_ms();
    bool connects = false;
    take_news(status, NEWS_US);
    for (int i = 0; i < n; i++) {
        void *what = events[i].data.ptr;
        if (what == &status->bound)
            connects = true;
        else if (what == &status->options)
            status->options.on_extra(status->options.user);
        else if (what != &status->wake)
            pb_status_client_event(status, what, events[i].events);
    }
    if (status->accept_at_ms != 0 && status->now_ms >= status->accept_at_ms) {
        status->accept_at_ms = 0;
        (void)pb_status_listen(status, true);
    }
    pb_status_bury(status); /* frees connections that ended before new ones are accepted */
    if (connects)
        pb_status_accept(status);
    pb_status_serve_round(status);
    pb_status_replay(status);
    beat(status);
    pb_status_bury(status);
}

static bool is_stopping(struct pb_status *status)
{
    (void)pthread_mutex_lock(&status->lock);
    bool stop = status->stop;
    (void)pthread_mutex_unlock(&status->lock);
    return stop;
}

static void *run(void *user)
{
    struct pb_status *status = user;
    (void)pthread_setname_np(pthread_self(), "pb-status");
    while (!is_stopping(status))
        round_of(status);
    take_news(status, INT64_MAX);
    pb_status_serve_round(status);
    const int64_t end_ms = pb_clock_mono_ms() + LAST_MS;
    while (pb_status_reads(status) && status->now_ms < end_ms)
        round_of(status);
    return NULL;
}

static int watch_also(struct pb_status *status, int fd, void *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = what}};
    return fd < 0 || epoll_ctl(status->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

int pb_status_poll(struct pb_status *status, int fd)
{
    return watch_also(status, fd, &status->options);
}

/* Starts the thread with all signals blocked, because the main thread handles them. */
static int start_thread(struct pb_status *status)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&status->thread, NULL, run, status);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

static void destroy(struct pb_status *status)
{
    struct pb_status_client *client;
    struct pb_news *item;
    TAILQ_FOREACH(client, &status->clients, all)
    {
        client->dead = true;
    }
    pb_status_bury(status);
    pb_message_put(status->full);
    pb_fair_fini(&status->fair);
    STAILQ_CONCAT(&status->taken, &status->news);
    while ((item = STAILQ_FIRST(&status->taken)) != NULL) {
        STAILQ_REMOVE_HEAD(&status->taken, next);
        pb_job_fini(&item->outcome.job);
        free(item);
    }
    if (status->path != NULL)
        pb_socket_bind_close(status->path, &status->bound);
    if (status->epoll >= 0)
        (void)close(status->epoll);
    if (status->wake >= 0)
        (void)close(status->wake);
    (void)pthread_mutex_destroy(&status->lock);
    free(status->path);
    free(status);
}

int pb_status_open(const struct pb_status_options *options, struct pb_err *err,
                   struct pb_status **out_status)
{
    struct pb_status *status = calloc(1, sizeof *status);
    if (status == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    status->options = *options;
    status->bound.fd = -1;
    status->now_ms = status->beat_ms = pb_clock_mono_ms();
    TAILQ_INIT(&status->clients);
    STAILQ_INIT(&status->news);
    STAILQ_INIT(&status->taken);
    pb_fair_init(&status->fair);
    (void)pthread_mutex_init(&status->lock, NULL);
    status->epoll = epoll_create1(EPOLL_CLOEXEC);
    status->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    status->path = strdup(options->path);
    int rc = 0;
    if (status->path == NULL || status->epoll < 0 || status->wake < 0)
        rc = pb_fail(err, PB_E_SYSTEM, "cannot start the status socket: %s", strerror(errno));
    rc = rc ? rc : pb_socket_bind_open(status->path, SOCKET_MODE, err, &status->bound);
    if (rc == 0 && (watch_also(status, status->wake, &status->wake) != 0 ||
                    watch_also(status, options->extra_fd, &status->options) != 0 ||
                    pb_status_listen(status, true) != 0))
        rc = pb_fail(err, PB_E_SYSTEM, "cannot watch the status socket");
    if (rc != 0) {
        destroy(status);
        return rc;
    }
    *out_status = status;
    return 0;
}

static void post(struct pb_status *status, struct pb_news *item)
{
    uint64_t one = 1;
    (void)pthread_mutex_lock(&status->lock);
    STAILQ_INSERT_TAIL(&status->news, item, next);
    (void)pthread_mutex_unlock(&status->lock);
    (void)!write(status->wake, &one, sizeof one);
}

int pb_status_serve(struct pb_status *status, struct pb_err *err)
{
    int rc = start_thread(status);
    status->serves = rc == 0;
    return rc == 0 ? 0
                   : pb_fail(err, PB_E_SYSTEM, "cannot start the thread of the status socket: %s",
                             strerror(-rc));
}

static void tell(struct pb_status *status, const struct pb_job *job, bool held)
{
    struct pb_news *item = calloc(1, sizeof *item);
    if (item == NULL || pb_job_copy(&item->outcome.job, job) != 0) {
        free(item);
        pb_log(PB_LOG_ERROR, "status: out of memory; an event of job %s is lost", job->id);
        return;
    }
    item->held = held;
    post(status, item);
}

void pb_status_tell(struct pb_status *status, const struct pb_job *job)
{
    tell(status, job, false);
}

void pb_status_hold(struct pb_status *status, const struct pb_job *job)
{
    tell(status, job, true);
}

void pb_status_answer(struct pb_status *status, uint64_t ticket, struct pb_outcome *outcome)
{
    struct pb_news *item = calloc(1, sizeof *item);
    if (item == NULL) {
        pb_job_fini(&outcome->job);
        pb_log(PB_LOG_ERROR, "status: out of memory; a reply is lost");
        return;
    }
    item->ticket = ticket;
    item->outcome = *outcome;
    memset(&outcome->job, 0, sizeof outcome->job);
    post(status, item);
}

int64_t pb_status_clients(const struct pb_status *status)
{
    return atomic_load(&status->n_clients);
}

void pb_status_stop(struct pb_status *status)
{
    uint64_t one = 1;
    if (status == NULL)
        return;
    (void)pthread_mutex_lock(&status->lock);
    status->stop = true;
    (void)pthread_mutex_unlock(&status->lock);
    (void)!write(status->wake, &one, sizeof one);
    if (status->serves)
        (void)pthread_join(status->thread, NULL);
    destroy(status);
}
