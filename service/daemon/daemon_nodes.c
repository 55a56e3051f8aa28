/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The beat of a node. Every second, or sooner with a short lease, a step of the pool looks what
 * other nodes changed; every sixth of the lease it reports, ends the sessions of nodes that did not
 * report, and takes requests. A session that was ended while this process slept is lost: its runs
 * are killed, because other nodes have their jobs, and a new session begins. */
#include "service/daemon/daemon_parts.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "pipeline/publish/holder.h"
#include "service/base/log.h"
#include "service/inbox/adopt.h"
#include "service/jobs/journal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define LOOK_MS          1000
#define BEATS_OF_A_LEASE 6
#define EVENTS_AT_ONCE   256

struct pb_beat {
    struct pb_daemon *daemon;
    uv_timer_t timer;
    uv_work_t work;
    bool works;
    bool is_lost;        /* the session is over; a new one must begin */
    int64_t period_ms;   /* time between reports */
    int64_t reported_ms; /* monotonic: begin of the last report that the store accepted */
    bool reports;        /* this step reports */
    /* ---- results of a step ---- */
    int rc; /* 0; -ESTALE: the session is over; negative and err */
    struct pb_err err;
    int reaped;
    bool changed;
    int64_t sent;        /* number of the last event whose job was sent; -1 = none yet */
    struct pb_job *jobs; /* changed jobs that other nodes have */
    size_t n_jobs;
    struct pb_node_request requests[PB_NODE_REQUESTS_MAX];
    int n_requests;
    struct pb_nodes seen;
    /* Files are moved by a call of their own, because it may wait for a disk. */
    uv_work_t move;
    bool moves;
    struct pb_adopted put_away;
};

/* --- the session ------------------------------------------------------------------------------ */

void pb_daemon_node_name(const struct pb_service_config *service, char out[PB_JOB_NODE_BYTES])
{
    struct utsname machine;
    out[0] = '\0';
    if (!service->has_store)
        return;
    const char *name = service->node;
    if (name == NULL && uname(&machine) == 0)
        name = machine.nodename;
    (void)snprintf(out, PB_JOB_NODE_BYTES, "%.63s",
                   name != NULL && name[0] != '\0' ? name : "node");
    for (char *c = out; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("_-.", *c) == NULL)
            *c = '_';
}

/* Describes machine and state directory, which only one service has at a time (its lock). */
static void describe_place(const struct pb_daemon *daemon, char *out, size_t bytes)
{
    char machine[PB_HOLDER_NODE_BYTES];
    struct utsname name;
    pb_holder_node(machine);
    (void)snprintf(out, bytes, "%s on %s, machine %s", daemon->dirs.state,
                   uname(&name) == 0 ? name.nodename : "?", machine);
}

int pb_daemon_join(struct pb_daemon *daemon, struct pb_err *err)
{
    char place[PB_FILES_PATH_BYTES + 128];
    describe_place(daemon, place, sizeof place);
    const struct pb_node node = {.place = place,
                                 .work = daemon->dirs.work,
                                 .archive = daemon->dirs.archive,
                                 .quarantine = daemon->dirs.quarantine,
                                 .lease_ms = daemon->lease_ms};
    return pb_nodes_join(daemon->store, &node, err);
}

/* --- a step, on the pool ---------------------------------------------------------------------- */

static int report(struct pb_beat *beat)
{
    struct pb_daemon *daemon = beat->daemon;
    int rc = pb_nodes_alive(daemon->store, &beat->err);
    if (rc != 0)
        return rc;
    rc = pb_store_reap(daemon->store, pb_clock_wall_ms(), &beat->err);
    if (rc < 0)
        return rc;
    beat->reaped = rc;
    rc = pb_nodes_requests(daemon->store, &beat->err, beat->requests);
    if (rc < 0)
        return rc;
    beat->n_requests = rc;
    return pb_nodes_list(daemon->store, &beat->err, &beat->seen);
}

/* Ids of the jobs in rows of the journal, each once. */
struct noted {
    char id[EVENTS_AT_ONCE][PB_JOB_ID_BYTES];
    size_t n;
    int64_t last;
};

static void note(void *user, const struct pb_event *event)
{
    struct noted *noted = user;
    noted->last = event->seq;
    for (size_t i = 0; i < noted->n; i++)
        if (strcmp(noted->id[i], event->job) == 0)
            return;
    if (noted->n < EVENTS_AT_ONCE)
        (void)snprintf(noted->id[noted->n++], PB_JOB_ID_BYTES, "%s", event->job);
}

/* Reads the present rows of the noted jobs that other nodes have. */
static void read_jobs(struct pb_beat *beat, const struct noted *noted)
{
    struct pb_job_store *store = beat->daemon->store;
    for (size_t i = 0; i < noted->n; i++) {
        struct pb_job *job = &beat->jobs[beat->n_jobs];
        if (pb_job_store_find(store, noted->id[i], NULL, job) != 0)
            continue; /* it was pruned */
        if (strcmp(job->node, pb_store_node(store)) != 0)
            beat->n_jobs++;
        else
            pb_job_fini(job);
    }
}

/* Finds the jobs of other nodes that changed since the last call, for clients that watch. The next
 * step reads the rest of a long list. */
static int find_changed(struct pb_beat *beat)
{
    struct pb_job_store *store = beat->daemon->store;
    int64_t first;
    if (beat->sent < 0)
        return pb_journal_range(store, &first, &beat->sent, &beat->err);
    struct noted *noted = calloc(1, sizeof *noted);
    beat->jobs = calloc(EVENTS_AT_ONCE, sizeof *beat->jobs);
    int rc = noted != NULL && beat->jobs != NULL
                 ? pb_journal_read(store, beat->sent, "", EVENTS_AT_ONCE, note, noted, &beat->err)
                 : pb_fail(&beat->err, PB_E_MEMORY, "out of memory");
    if (rc > 0) {
        beat->sent = noted->last;
        read_jobs(beat, noted);
    }
    free(noted);
    return rc;
}

static void free_changed(struct pb_beat *beat)
{
    for (size_t i = 0; i < beat->n_jobs; i++)
        pb_job_fini(&beat->jobs[i]);
    free(beat->jobs);
    beat->jobs = NULL;
    beat->n_jobs = 0;
}

static void step(uv_work_t *request)
{
    struct pb_beat *beat = request->data;
    struct pb_daemon *daemon = beat->daemon;
    beat->err = (struct pb_err){0};
    beat->reaped = beat->n_requests = 0;
    beat->rc = beat->is_lost ? pb_daemon_join(daemon, &beat->err) : 0;
    if (beat->rc == 0 && beat->reports)
        beat->rc = report(beat);
    const int rc = beat->rc == 0 ? pb_nodes_look(daemon->store, &beat->err) : 0;
    beat->rc = rc < 0 ? rc : beat->rc;
    beat->changed = rc > 0;
    if (beat->rc == 0) {
        const int found = find_changed(beat);
        beat->rc = found < 0 ? found : 0;
    }
}

/* --- its result, on the loop ------------------------------------------------------------------ */

static void wait_for_store(struct pb_daemon *daemon, bool waits)
{
    const bool before = atomic_exchange(&daemon->intake.paused, waits);
    pb_runner_wait_for_store(daemon->methods.runner, waits);
    if (before && !waits)
        pb_feed_resume(daemon->methods.feed);
}

static void lose(struct pb_beat *beat)
{
    struct pb_daemon *daemon = beat->daemon;
    pb_log(PB_LOG_ERROR,
           "the job store ended the session of this node, because it did not report for longer "
           "than its lease; its runs are ended, other nodes have their jobs, and a new session "
           "begins");
    beat->is_lost = true;
    wait_for_store(daemon, true);
    pb_runner_forsake(daemon->methods.runner);
}

static void fail(struct pb_beat *beat)
{
    struct pb_daemon *daemon = beat->daemon;
    char text[sizeof beat->err.msg + 128];
    (void)snprintf(text, sizeof text,
                   "%s; runs continue, nothing new begins, and files stay in the "
                   "inbox until the store can be reached",
                   beat->err.msg);
    pb_trouble_raise(&daemon->troubles, "store", beat->err.code, text);
    wait_for_store(daemon, true);
}

static void move_finished(uv_work_t *request)
{
    struct pb_beat *beat = request->data;
    pb_adopt_finished(&beat->daemon->intake, &beat->put_away);
}

static void on_moved(uv_work_t *request, int status)
{
    struct pb_beat *beat = request->data;
    (void)status;
    beat->moves = false;
    if (beat->put_away.left > 0 && !beat->daemon->methods.stopping)
        pb_adopt_report(&beat->put_away, &beat->daemon->troubles);
}

static void take_results(struct pb_beat *beat)
{
    struct pb_daemon *daemon = beat->daemon;
    beat->is_lost = false;
    pb_trouble_clear(&daemon->troubles, "store");
    wait_for_store(daemon, false);
    if (beat->reports) {
        pb_nodes_fini(&daemon->nodes);
        daemon->nodes = beat->seen;
        beat->seen = (struct pb_nodes){NULL, 0};
    }
    if (beat->reports && !beat->moves) {
        beat->moves = true;
        beat->move.data = beat;
        (void)uv_queue_work(&daemon->loop, &beat->move, move_finished, on_moved);
    }
    if (beat->reaped > 0)
        pb_log(PB_LOG_WARNING, "%d job%s of nodes that do not report will run again", beat->reaped,
               beat->reaped == 1 ? "" : "s");
    pb_runner_take_requests(daemon->methods.runner, beat->requests, beat->n_requests);
    if (beat->n_jobs > 0)
        pb_daemon_tell(daemon, beat->jobs, beat->n_jobs);
    if (beat->changed || beat->reports) /* a directory of another node may be there now */
        pb_runner_kick(daemon->methods.runner);
}

static void on_step(uv_work_t *request, int status)
{
    struct pb_beat *beat = request->data;
    struct pb_daemon *daemon = beat->daemon;
    (void)status;
    beat->works = false;
    if (daemon->methods.stopping || daemon->methods.runner == NULL) {
        pb_nodes_fini(&beat->seen);
        free_changed(beat);
        return;
    }
    if (beat->rc == -ESTALE && beat->err.code == PB_OK)
        lose(beat);
    else if (beat->rc < 0)
        fail(beat);
    else
        take_results(beat);
    pb_nodes_fini(&beat->seen);
    free_changed(beat);
}

static void on_beat(uv_timer_t *timer)
{
    struct pb_beat *beat = timer->data;
    const int64_t now = pb_clock_mono_ms();
    if (beat->works)
        return;
    beat->reports = beat->is_lost || now - beat->reported_ms >= beat->period_ms;
    if (beat->reports)
        beat->reported_ms = now;
    beat->works = true;
    beat->work.data = beat;
    (void)uv_queue_work(timer->loop, &beat->work, step, on_step);
}

int pb_daemon_start_beat(struct pb_daemon *daemon, struct pb_err *err)
{
    if (!pb_store_is_shared(daemon->store) || daemon->beat_of_node != NULL)
        return 0;
    struct pb_beat *beat = calloc(1, sizeof *beat);
    if (beat == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    beat->daemon = daemon;
    beat->sent = -1;
    beat->period_ms = daemon->lease_ms / BEATS_OF_A_LEASE;
    const int64_t tick_ms = beat->period_ms < LOOK_MS ? beat->period_ms : LOOK_MS;
    daemon->beat_of_node = beat;
    (void)uv_timer_init(&daemon->loop, &beat->timer);
    beat->timer.data = beat;
    (void)uv_timer_start(&beat->timer, on_beat, 0, (uint64_t)tick_ms);
    return 0;
}

void pb_daemon_stop_beat(struct pb_daemon *daemon)
{
    if (daemon->beat_of_node != NULL)
        uv_close((uv_handle_t *)&daemon->beat_of_node->timer, NULL);
}

void pb_daemon_free_beat(struct pb_daemon *daemon)
{
    if (daemon->beat_of_node != NULL && !atomic_load(&daemon->intake.paused))
        pb_nodes_leave(daemon->store); /* others need not wait for the end of the lease */
    pb_nodes_fini(&daemon->nodes);
    free(daemon->beat_of_node);
}
