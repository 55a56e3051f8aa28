/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The beat of a node. Every second, and after a notification of another node, a step of the pool
 * looks what other nodes changed, and takes their requests; every sixth of the lease it reports,
 * and ends the sessions of nodes that did not report. A session that was ended while this process
 * slept is lost: its runs are killed, because other nodes have their jobs, and a new session
 * begins. */
#include "service/daemon/daemon_parts.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "pipeline/publish/holder.h"
#include "pipeline/publish/publish_root.h"
#include "service/base/log.h"
#include "service/inbox/adopt.h"
#include "service/jobs/journal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define LOOK_MS          1000
#define BEATS_OF_A_LEASE 6
#define LISTEN_MS        4000 /* time between tries to connect the listener */

/* A node whose claims were looked for after the end of a session. */
struct swept {
    char node[PB_JOB_NODE_BYTES];
    int64_t started_ms; /* begin of that session */
};

struct pb_beat {
    struct pb_daemon *daemon;
    uv_timer_t timer;
    uv_timer_t soon; /* a look before the next beat */
    uv_work_t work;
    struct pb_nodes_listener *listener; /* polled by the loop; NULL: not connected */
    /* Connects the listener: a server that does not answer must not delay reports. */
    uv_work_t listen;
    bool listens;                    /* the work runs */
    struct pb_nodes_listener *fresh; /* its result */
    uv_poll_t poll;
    bool polls;                     /* poll is open */
    bool is_hinted;                 /* a look is due, after the present step */
    int64_t looked_ms, listened_ms; /* monotonic: last look, and last try to connect */
    bool works;
    bool is_lost;        /* the session is over; a new one must begin */
    int64_t period_ms;   /* time between reports */
    int64_t reported_ms; /* monotonic: begin of the last report that the store accepted */
    bool reports;        /* this step reports */
    struct pb_node self; /* drains, has_gpu and memory of this node at the begin of the last step */
    bool has_clients;    /* clients were connected then, and want the jobs of other nodes */
    bool stops;          /* the service stopped then: requests are left for its next start */
    /* ---- results of a step ---- */
    int rc; /* 0; -ESTALE: the session is over; negative and err */
    struct pb_err err;
    int reaped;
    bool changed;
    struct pb_nodes_news news;
    struct pb_node_request requests[PB_NODE_REQUESTS_MAX];
    int n_requests;
    struct pb_nodes seen;
    /* Files are moved by a call of their own, because it may wait for a disk. */
    uv_work_t move;
    bool moves;
    struct pb_adopted put_away;
    /* Claims of nodes whose sessions are over, of inboxes that this node watches. */
    struct swept *swept; /* nodes that are done */
    size_t n_swept;
    bool watches[PB_INBOXES_MAX];          /* the inboxes that this node watched then */
    size_t next_orphan;                    /* place in the list of nodes, for the next choice */
    struct swept orphan;                   /* the node whose claims this call takes; "" = none */
    size_t orphan_inbox;                   /* its own inbox; n_inboxes: not watched here */
    char orphan_work[PB_FILES_PATH_BYTES]; /* work/ of that node */
    bool sees_orphan;                      /* true if that directory can be read */
    struct pb_adopted adopted;
    char troubled[PB_JOB_NODE_BYTES]; /* node of the trouble "orphans"; "" = none */
    char products[PB_FILES_PATH_BYTES];
    struct pb_err unrooted; /* why products cannot be published */
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
                                 .products = daemon->dirs.products,
                                 .address = daemon->address,
                                 .lease_ms = daemon->lease_ms};
    return pb_nodes_join(daemon->store, &node, err);
}

int pb_daemon_check_products(struct pb_daemon *daemon, const char *products, struct pb_err *err)
{
    const char *root = pb_nodes_root(daemon->store);
    if (daemon->address[0] != '\0') /* each node has a directory of its own */
        return 0;
    const int rc = pb_nodes_make_root(daemon->store, products, err);
    return rc != 0 || root[0] == '\0' ? rc : pb_publish_root_look(products, root, err);
}

int pb_daemon_hold_inboxes(struct pb_daemon *daemon, int64_t since_ms, bool at_start,
                           struct pb_err *err)
{
    struct pb_intake *intake = &daemon->intake;
    const struct pb_dirs *dirs = &daemon->dirs;
    int rc = 0;
    for (size_t i = 0; i < dirs->n_inboxes && rc == 0 && pb_store_is_shared(daemon->store); i++) {
        const char *owner = dirs->inbox_node[i];
        struct pb_node_inbox inbox = {.path = dirs->inbox[i],
                                      .owner = owner[0] != '\0' ? owner : NULL,
                                      .is_busy = pb_intake_is_taking(intake, i)};
        rc = pb_nodes_hold(daemon->store, &inbox, err);
        if (rc == 0)
            pb_intake_allow(intake, i,
                            inbox.is_held && !inbox.is_wanted ? since_ms + daemon->lease_ms : 0);
        if (rc == 0 && at_start && !inbox.is_held)
            pb_log(PB_LOG_NOTICE, "inbox: node %s watches %.300s",
                   inbox.holder[0] != '\0' ? inbox.holder : dirs->inbox_node[i], dirs->inbox[i]);
    }
    return rc;
}

/* --- a step, on the pool ---------------------------------------------------------------------- */

static int report(struct pb_beat *beat)
{
    struct pb_daemon *daemon = beat->daemon;
    const int64_t since_ms = pb_clock_boot_ms();
    int rc = pb_nodes_alive(daemon->store, &beat->self, &beat->err);
    if (rc != 0)
        return rc;
    rc = pb_store_reap(daemon->store, pb_clock_wall_ms(), &beat->err);
    if (rc < 0)
        return rc;
    beat->reaped = rc;
    rc = pb_daemon_hold_inboxes(daemon, since_ms, false, &beat->err);
    return rc != 0 ? rc : pb_nodes_list(daemon->store, &beat->err, &beat->seen);
}

/* Takes requests, if there are any. */
static int take_requests(struct pb_beat *beat)
{
    if (!beat->news.has_requests || beat->stops)
        return 0;
    int rc = pb_nodes_requests(beat->daemon->store, &beat->err, beat->requests);
    beat->n_requests = rc > 0 ? rc : 0;
    return rc;
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
    int rc = beat->rc == 0
                 ? pb_nodes_look(daemon->store, beat->has_clients, &beat->err, &beat->news)
                 : 0;
    beat->changed = rc > 0;
    rc = rc < 0 || beat->rc != 0 ? rc : take_requests(beat);
    beat->rc = rc < 0 ? rc : beat->rc;
}

/* --- the listener ----------------------------------------------------------------------------- */

static void hint(struct pb_beat *beat);

static void on_poll_closed(uv_handle_t *handle)
{
    struct pb_beat *beat = handle->data;
    beat->polls = false;
}

/* Closes the listener; a later step connects one. Its descriptor is closed after the handle. */
static void stop_listening(struct pb_beat *beat)
{
    if (beat->polls && !uv_is_closing((uv_handle_t *)&beat->poll)) {
        (void)uv_poll_stop(&beat->poll);
        uv_close((uv_handle_t *)&beat->poll, on_poll_closed);
    }
    pb_nodes_listener_close(beat->listener);
    beat->listener = NULL;
}

static void on_notified(uv_poll_t *poll, int status, int events)
{
    struct pb_beat *beat = poll->data;
    (void)events;
    const int rc = status < 0 ? -EPIPE : pb_nodes_listener_read(beat->listener);
    if (rc < 0)
        stop_listening(beat);
    else if (rc > 0)
        hint(beat);
}

/* Without a listener the node looks every second; a failure has no other effect. */
static void connect_listener(uv_work_t *request)
{
    struct pb_beat *beat = request->data;
    struct pb_err err = {0};
    if (pb_nodes_listen(beat->daemon->store, &err, &beat->fresh) != 0)
        pb_log(PB_LOG_WARNING, "no notifications of other nodes: %s; it looks every second",
               err.msg);
}

static void on_connected(uv_work_t *request, int status)
{
    struct pb_beat *beat = request->data;
    struct pb_nodes_listener *fresh = beat->fresh;
    (void)status;
    beat->listens = false;
    beat->fresh = NULL;
    if (fresh == NULL)
        return;
    if (beat->daemon->methods.stopping ||
        uv_poll_init(&beat->daemon->loop, &beat->poll, pb_nodes_listener_fd(fresh)) != 0) {
        pb_nodes_listener_close(fresh);
        return;
    }
    beat->listener = fresh;
    beat->poll.data = beat;
    beat->polls = true;
    (void)uv_poll_start(&beat->poll, UV_READABLE, on_notified);
    hint(beat); /* changes since the last look, before it was connected */
}

/* Connects the listener if it is lost and the last try was a while ago. */
static void keep_listening(struct pb_beat *beat)
{
    const int64_t now = pb_clock_mono_ms();
    if (beat->listener != NULL || beat->polls || beat->listens ||
        (beat->listened_ms != 0 && now - beat->listened_ms < LISTEN_MS))
        return;
    beat->listened_ms = now;
    beat->listens = true;
    beat->listen.data = beat;
    (void)uv_queue_work(&beat->daemon->loop, &beat->listen, connect_listener, on_connected);
}

/* --- the result of a step --------------------------------------------------------------------- */

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
    beat->unrooted = (struct pb_err){0};
    (void)pb_daemon_check_products(beat->daemon, beat->products, &beat->unrooted);
    pb_adopt_finished(&beat->daemon->intake, &beat->put_away);
    beat->adopted = (struct pb_adopted){0};
    /* Other directories may belong to machines that are gone for ever. */
    beat->sees_orphan =
        beat->orphan.node[0] != '\0' && (beat->orphan_inbox < beat->daemon->dirs.n_inboxes ||
                                         access(beat->orphan_work, R_OK | X_OK) == 0);
    if (beat->sees_orphan)
        pb_adopt_claims(&beat->daemon->intake, beat->orphan_work, beat->orphan_inbox,
                        &beat->adopted);
}

/* Finds the place of the node in the list of those that are done; NULL if absent. */
static struct swept *find_swept(const struct pb_beat *beat, const char *node)
{
    for (size_t i = 0; i < beat->n_swept; i++)
        if (strcmp(beat->swept[i].node, node) == 0)
            return &beat->swept[i];
    return NULL;
}

/* Notes that the orphan is done. Out of memory: its claims are looked for again. */
static void note_swept(struct pb_beat *beat)
{
    struct swept *swept = find_swept(beat, beat->orphan.node);
    if (swept == NULL) {
        struct swept *more = realloc(beat->swept, (beat->n_swept + 1) * sizeof *more);
        if (more == NULL)
            return;
        beat->swept = more;
        swept = &more[beat->n_swept++];
    }
    *swept = beat->orphan;
}

/* Returns true if the session of the node is over, and its claims were not looked for since. */
static bool is_orphan(const struct pb_beat *beat, const struct pb_node *node)
{
    const struct swept *swept = find_swept(beat, node->name);
    return !node->is_alive && strcmp(node->work, beat->daemon->dirs.work) != 0 &&
           (swept == NULL || swept->started_ms != node->started_ms);
}

/* Forgets what is done if this node watches another inbox now, of which there may be claims.
 * Returns false if it watches none. */
static bool see_inboxes(struct pb_beat *beat)
{
    bool watches = false;
    for (size_t i = 0; i < beat->daemon->dirs.n_inboxes; i++) {
        const bool now = pb_intake_may_take(&beat->daemon->intake, i);
        if (now && !beat->watches[i])
            beat->n_swept = 0;
        beat->watches[i] = now;
        watches = watches || now;
    }
    return watches;
}

/* Finds the inbox of the node that this one watches now; n_inboxes if absent. Claims without an
 * origin are from it. */
static size_t find_inbox(const struct pb_beat *beat, const char *node)
{
    const struct pb_dirs *dirs = &beat->daemon->dirs;
    size_t i = 0;
    while (i < dirs->n_inboxes && !(beat->watches[i] && strcmp(dirs->inbox_node[i], node) == 0))
        i++;
    return i;
}

static void set_orphan(struct pb_beat *beat, const struct pb_node *node)
{
    (void)snprintf(beat->orphan.node, sizeof beat->orphan.node, "%s", node->name);
    (void)snprintf(beat->orphan_work, sizeof beat->orphan_work, "%s", node->work);
    beat->orphan.started_ms = node->started_ms;
    beat->orphan_inbox = find_inbox(beat, node->name);
}

/* Chooses the next node whose claims this one takes. A trouble of a node that is not chosen any
 * more ends. */
static void choose_orphan(struct pb_beat *beat)
{
    const struct pb_nodes *nodes = &beat->daemon->nodes;
    const bool watches = see_inboxes(beat);
    bool is_troubled = false;
    size_t chosen = nodes->n;
    beat->orphan.node[0] = '\0';
    for (size_t i = 0; i < nodes->n && watches; i++) {
        const size_t at = (beat->next_orphan + i) % nodes->n;
        const struct pb_node *node = &nodes->at[at];
        if (!is_orphan(beat, node))
            continue;
        is_troubled = is_troubled || strcmp(node->name, beat->troubled) == 0;
        chosen = chosen < nodes->n ? chosen : at;
    }
    if (chosen < nodes->n) {
        set_orphan(beat, &nodes->at[chosen]);
        beat->next_orphan = chosen + 1;
    }
    if (!is_troubled) {
        beat->troubled[0] = '\0';
        pb_trouble_clear(&beat->daemon->troubles, "orphans");
    }
}

/* Takes the result of pb_adopt_claims. */
static void take_adopted(struct pb_beat *beat)
{
    struct pb_daemon *daemon = beat->daemon;
    const struct pb_adopted *adopted = &beat->adopted;
    char text[sizeof adopted->first.msg + PB_JOB_NODE_BYTES + 96];
    if (!beat->sees_orphan)
        return;
    if (adopted->adopted > 0)
        pb_runner_kick(daemon->methods.runner);
    if (adopted->left == 0) {
        note_swept(beat);
        return;
    }
    (void)snprintf(beat->troubled, sizeof beat->troubled, "%s", beat->orphan.node);
    (void)snprintf(text, sizeof text,
                   "files that node %s has claimed cannot be taken over, and wait for its return: "
                   "%s",
                   beat->orphan.node, adopted->first.msg);
    pb_trouble_raise(&daemon->troubles, "orphans", adopted->first.code, text);
}

static void on_moved(uv_work_t *request, int status)
{
    struct pb_beat *beat = request->data;
    (void)status;
    beat->moves = false;
    if (beat->daemon->methods.stopping)
        return;
    if (beat->put_away.left > 0)
        pb_adopt_report(&beat->put_away, &beat->daemon->troubles);
    pb_runner_see_products(beat->daemon->methods.runner, &beat->unrooted);
    take_adopted(beat);
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
    if (beat->reports)
        pb_feed_follow(daemon->methods.feed);
    if (beat->reports && !beat->moves) {
        beat->moves = true;
        (void)memcpy(beat->products, daemon->dirs.products, sizeof beat->products);
        choose_orphan(beat);
        beat->move.data = beat;
        (void)uv_queue_work(&daemon->loop, &beat->move, move_finished, on_moved);
    }
    if (beat->reaped > 0)
        daemon->runs_at_ms = 0; /* their runs may have left something */
    if (beat->reaped > 0)
        pb_log(PB_LOG_WARNING, "%d job%s of nodes that do not report will run again", beat->reaped,
               beat->reaped == 1 ? "" : "s");
    keep_listening(beat);
    pb_runner_take_requests(daemon->methods.runner, beat->requests, beat->n_requests);
    if (beat->changed || beat->reports) /* a directory of another node may be there now */
        pb_runner_kick(daemon->methods.runner);
}

/* Stores the requests again that a step took while the service began to stop. */
static void return_requests(uv_work_t *request)
{
    struct pb_beat *beat = request->data;
    struct pb_job_store *store = beat->daemon->store;
    struct pb_err err = {0};
    for (int i = 0; i < beat->n_requests; i++)
        if (pb_nodes_ask(store, pb_store_node(store), &beat->requests[i], &err) != 0)
            pb_log(PB_LOG_WARNING, "job %s: the request of another node is lost: %s",
                   beat->requests[i].job, err.msg);
}

static void on_returned(uv_work_t *request, int status)
{
    struct pb_beat *beat = request->data;
    (void)status;
    beat->works = false;
}

static void on_step(uv_work_t *request, int status)
{
    struct pb_beat *beat = request->data;
    struct pb_daemon *daemon = beat->daemon;
    (void)status;
    beat->works = false;
    if (daemon->methods.stopping || daemon->methods.runner == NULL) {
        pb_nodes_fini(&beat->seen);
        pb_nodes_news_fini(&beat->news);
        beat->works = beat->n_requests > 0;
        if (beat->works)
            (void)uv_queue_work(&daemon->loop, &beat->work, return_requests, on_returned);
        return;
    }
    if (beat->news.n > 0)
        pb_daemon_tell(daemon, beat->news.jobs, beat->news.n);
    else if (beat->changed && daemon->methods.status != NULL)
        pb_methods_publish(&daemon->methods);
    if (beat->rc == -ESTALE && beat->err.code == PB_OK)
        lose(beat);
    else if (beat->rc < 0)
        fail(beat);
    else
        take_results(beat);
    pb_nodes_fini(&beat->seen);
    beat->is_hinted = beat->is_hinted || beat->news.has_more;
    pb_nodes_news_fini(&beat->news);
    if (beat->is_hinted)
        hint(beat);
}

/* Describes this node for the others. A device is unknown until a worker has reported it. */
static struct pb_node describe_self(const struct pb_daemon *daemon)
{
    const char *why = "", *device = "";
    if (daemon->methods.runner != NULL)
        device = pb_runner_device(daemon->methods.runner, &why);
    const bool is_known = device[0] != '\0' || why[0] != '\0';
    return (struct pb_node){.drains = daemon->methods.draining,
                            .has_gpu = is_known ? strncmp(device, "cuda", 4) == 0 : -1,
                            .memory = (int64_t)daemon->config->compute.memory_bytes};
}

static void begin_step(struct pb_beat *beat)
{
    const int64_t now = pb_clock_mono_ms();
    if (beat->works)
        return;
    beat->is_hinted = false;
    beat->looked_ms = now;
    const struct pb_node before = beat->self;
    beat->self = describe_self(beat->daemon);
    beat->reports = beat->is_lost || before.drains != beat->self.drains ||
                    before.has_gpu != beat->self.has_gpu || before.memory != beat->self.memory ||
                    now - beat->reported_ms >= beat->period_ms;
    beat->has_clients = pb_nodes_reporting(beat->daemon->store) <= PB_NODES_FEW ||
                        pb_status_clients(beat->daemon->methods.status) > 0;
    beat->stops = beat->daemon->methods.stopping;
    if (beat->reports)
        beat->reported_ms = now;
    beat->works = true;
    beat->work.data = beat;
    (void)uv_queue_work(&beat->daemon->loop, &beat->work, step, on_step);
}

static void on_beat(uv_timer_t *timer)
{
    begin_step(timer->data);
}

/* Looks soon: at once if the last look was a while ago, so that a stream of changes costs a bounded
 * number of looks. */
static void hint(struct pb_beat *beat)
{
    const int64_t pause_ms = pb_nodes_pause_ms(beat->daemon->store),
                  wait_ms = beat->looked_ms + pause_ms - pb_clock_mono_ms();
    if (beat->works)
        beat->is_hinted = true;
    else if (wait_ms <= 0)
        begin_step(beat);
    else if (!uv_is_active((uv_handle_t *)&beat->soon))
        (void)uv_timer_start(&beat->soon, on_beat, (uint64_t)wait_ms, 0);
}

int pb_daemon_start_beat(struct pb_daemon *daemon, struct pb_err *err)
{
    if (!pb_store_is_shared(daemon->store) || daemon->beat_of_node != NULL)
        return 0;
    struct pb_beat *beat = calloc(1, sizeof *beat);
    if (beat == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    beat->daemon = daemon;
    beat->period_ms = daemon->lease_ms / BEATS_OF_A_LEASE;
    const int64_t tick_ms = beat->period_ms < LOOK_MS ? beat->period_ms : LOOK_MS;
    daemon->beat_of_node = beat;
    (void)uv_timer_init(&daemon->loop, &beat->timer);
    (void)uv_timer_init(&daemon->loop, &beat->soon);
    beat->timer.data = beat->soon.data = beat;
    (void)uv_timer_start(&beat->timer, on_beat, 0, (uint64_t)tick_ms);
    return 0;
}

void pb_daemon_stop_beat(struct pb_daemon *daemon)
{
    struct pb_beat *beat = daemon->beat_of_node;
    if (beat == NULL)
        return;
    uv_close((uv_handle_t *)&beat->timer, NULL);
    uv_close((uv_handle_t *)&beat->soon, NULL);
    stop_listening(beat);
}

void pb_daemon_free_beat(struct pb_daemon *daemon)
{
    if (daemon->beat_of_node != NULL && !atomic_load(&daemon->intake.paused))
        pb_nodes_leave(daemon->store); /* others need not wait for the end of the lease */
    pb_nodes_fini(&daemon->nodes);
    if (daemon->beat_of_node != NULL)
        free(daemon->beat_of_node->swept);
    free(daemon->beat_of_node);
}
