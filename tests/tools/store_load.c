/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Many nodes with one PostgreSQL store, in one process: each has the connections of a service
 * (writer, reader, listener), takes jobs as the runner does (job_queue.h), and reports and looks as
 * often as the beat of a service. A run is a sleep, then the permit and the end, whose row is as
 * long as that of a scene.
 *
 *   store_load --store CONNINFO [--nodes N] [--slots N] [--jobs N] [--run-ms N] [--lease-s N]
 *              [--ends N]
 *
 * Prints one line of JSON: jobs per second of the offers and of the runs, latencies of calls (us),
 * `ended`, the number of jobs that ended, and `wrong`, the number of those that did not end once.
 * The trial is over when that number of jobs has ended, by default all. The database must be
 * empty. */
#include "config/base/clock.h"
#include "service/jobs/nodes.h"
#include "service/runner/job_queue.h"
#include "tests/tools/latency.h"

#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OFFER_N     64 /* jobs of a transaction, as claims of the inbox */
#define SLOTS_MAX   PB_JOB_TAKE_MAX
#define LOOK_MS     1000
#define STACK_BYTES (512u << 10)

enum call { OFFER, TAKE, TAKE_NONE, PERMIT, FINISH, LOOK, REPORT, N_CALLS };
static const char *const call_names[N_CALLS] = {"offer",  "take", "take_none", "permit",
                                                "finish", "look", "report"};

static struct {
    const char *conninfo;
    int nodes, slots, jobs, run_ms, lease_s, ends;
} options = {NULL, 100, 4, 10000, 1000, 30, 0};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects latencies */
static struct latency latencies[N_CALLS];
static atomic_int n_ended, n_failed;
static atomic_uchar *ends; /* number of ends of each job */

struct node;
struct slot {
    struct node *node;
    pthread_t thread;
    struct pb_job job;
    bool is_busy; /* has the job */
};
/* The lock protects the slots. */
struct node {
    char name[16], directory[32];
    struct pb_job_store *store, *reader;
    struct pb_nodes_listener *listener;
    struct pb_job_queue queue;
    pthread_rwlock_t moves;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slots[SLOTS_MAX];
    bool is_woken; /* another node made changes, or a slot is free */
    pthread_t taker, beat;
};

static void die(const char *what, const struct pb_err *err)
{
    (void)fprintf(stderr, "store_load: %s: %s\n", what, err->msg);
    exit(EXIT_FAILURE);
}

static void note(enum call call, int64_t begun_us)
{
    const int64_t us = latency_now_us() - begun_us;
    (void)pthread_mutex_lock(&lock);
    latency_add(&latencies[call], us);
    (void)pthread_mutex_unlock(&lock);
}

static bool is_over(void)
{
    return atomic_load(&n_ended) >= options.ends;
}

static void sleep_ms(int64_t ms)
{
    (void)usleep((useconds_t)ms * 1000);
}

static void wake(struct node *node)
{
    (void)pthread_mutex_lock(&node->lock);
    node->is_woken = true;
    (void)pthread_cond_broadcast(&node->changed);
    (void)pthread_mutex_unlock(&node->lock);
}

/* --- a run ------------------------------------------------------------------------------------ */

static void end_job(struct node *node, struct pb_job *job)
{
    char report[1024];
    struct pb_err err = {0};
    int64_t begun = latency_now_us();
    int rc = pb_store_permit(node->store, job->id, job->epoch, &err);
    note(PERMIT, begun);
    (void)snprintf(report, sizeof report, "{\"text\":\"%0900d\"}", 0);
    if (rc == 0)
        rc = pb_job_set(&job->report, report) != 0 ||
             pb_job_set(&job->directory, "/products/scene") != 0 ||
             pb_job_move(job, PB_JOB_SUCCESSFUL, pb_clock_wall_ms()) != 0;
    begun = latency_now_us();
    rc = rc ? rc : pb_store_finish(node->store, job, &err);
    note(FINISH, begun);
    if (rc != 0) {
        (void)fprintf(stderr, "store_load: end of job %s: %d %s\n", job->id, rc, err.msg);
        atomic_fetch_add(&n_failed, 1);
    }
    atomic_fetch_add(&ends[strtol(job->name, NULL, 10)], 1);
    atomic_fetch_add(&n_ended, 1);
}

static void *run_slot(void *user)
{
    struct slot *slot = user;
    struct node *node = slot->node;
    unsigned seed =
        (unsigned)(slot - node->slots) * 1009u + (unsigned)strtol(node->name + 1, NULL, 10);
    for (;;) {
        (void)pthread_mutex_lock(&node->lock);
        while (!slot->is_busy && !is_over())
            (void)pthread_cond_wait(&node->changed, &node->lock);
        (void)pthread_mutex_unlock(&node->lock);
        if (!slot->is_busy)
            return NULL;
        sleep_ms(options.run_ms / 2 + (options.run_ms > 0 ? rand_r(&seed) % options.run_ms : 0));
        end_job(node, &slot->job);
        pb_job_fini(&slot->job);
        (void)pthread_mutex_lock(&node->lock);
        slot->is_busy = false;
        (void)pthread_mutex_unlock(&node->lock);
        wake(node);
    }
}

/* --- takes ------------------------------------------------------------------------------------ */

static bool may(void *user, const struct pb_job *job)
{
    (void)user;
    (void)job;
    return true;
}

static int count_free(const struct node *node)
{
    int n = 0;
    for (int i = 0; i < options.slots; i++)
        n += !node->slots[i].is_busy;
    return n;
}

/* Gives the jobs to free slots. */
static void start(struct node *node)
{
    int at = 0;
    (void)pthread_mutex_lock(&node->lock);
    for (int i = 0; i < node->queue.n; i++) {
        while (node->slots[at].is_busy)
            at++;
        node->slots[at].job = node->queue.jobs[i].job;
        node->slots[at].is_busy = true;
    }
    (void)pthread_cond_broadcast(&node->changed);
    (void)pthread_mutex_unlock(&node->lock);
}

/* Takes when a slot is free, and again after a change, or a second, if there was no job. */
static void *run_taker(void *user)
{
    struct node *node = user;
    while (!is_over()) {
        (void)pthread_mutex_lock(&node->lock);
        while (!node->is_woken && !is_over())
            (void)pthread_cond_wait(&node->changed, &node->lock);
        node->is_woken = false;
        node->queue.ask = (struct pb_job_ask){.n = count_free(node), .may = may};
        (void)pthread_mutex_unlock(&node->lock);
        if (node->queue.ask.n == 0)
            continue;
        const int64_t begun = latency_now_us();
        pb_job_queue_take_now(&node->queue);
        note(node->queue.n > 0 ? TAKE : TAKE_NONE, begun);
        if (node->queue.rc != 0)
            (void)fprintf(stderr, "store_load: take: %s\n", node->queue.err.msg);
        start(node);
    }
    wake(node);
    return NULL;
}

/* --- the beat --------------------------------------------------------------------------------- */

static void report(struct node *node)
{
    struct pb_err err = {0};
    struct pb_nodes seen = {NULL, 0};
    const struct pb_node self = {.lease_ms = options.lease_s * 1000};
    const int64_t begun = latency_now_us();
    if (pb_nodes_alive(node->store, &self, &err) != 0 ||
        pb_store_reap(node->store, pb_clock_wall_ms(), &err) < 0 ||
        pb_nodes_list(node->store, &err, &seen) != 0)
        (void)fprintf(stderr, "store_load: report: %s\n", err.msg);
    pb_nodes_fini(&seen);
    note(REPORT, begun);
}

static void look(struct node *node)
{
    struct pb_err err = {0};
    struct pb_nodes_news news;
    const int64_t begun = latency_now_us();
    const int rc = pb_nodes_look(node->store, false, &err, &news);
    note(LOOK, begun);
    if (rc < 0)
        (void)fprintf(stderr, "store_load: look: %s\n", err.msg);
    if (rc > 0)
        wake(node);
    pb_nodes_news_fini(&news);
}

static void *run_beat(void *user)
{
    struct node *node = user;
    int64_t reported_ms = 0;
    while (!is_over()) {
        if (pb_clock_mono_ms() - reported_ms >= options.lease_s * 1000 / 6) {
            reported_ms = pb_clock_mono_ms();
            report(node);
        }
        look(node);
        sleep_ms(pb_nodes_pause_ms(node->store));
        struct pollfd fd = {.fd = pb_nodes_listener_fd(node->listener), .events = POLLIN};
        for (int rc = 0; rc == 0 && poll(&fd, 1, LOOK_MS) > 0;)
            rc = pb_nodes_listener_read(node->listener);
    }
    return NULL;
}

/* --- the trial -------------------------------------------------------------------------------- */

static void open_node(struct node *node, int number)
{
    struct pb_err err = {0};
    char moved[4096];
    (void)snprintf(node->name, sizeof node->name, "n%d", number);
    (void)snprintf(node->directory, sizeof node->directory, "/nodes/%d", number);
    const struct pb_store_place place = {
        .postgresql = options.conninfo, .node = node->name, .is_shared = true};
    const struct pb_node self = {.place = node->directory,
                                 .work = node->directory,
                                 .archive = node->directory,
                                 .quarantine = node->directory,
                                 .lease_ms = options.lease_s * 1000};
    if (pb_job_store_open(&place, &err, moved, &node->store) != 0 ||
        pb_nodes_join(node->store, &self, &err) != 0 ||
        pb_job_store_open_reader(&place, &err, &node->reader) != 0 ||
        pb_nodes_listen(node->store, &err, &node->listener) != 0)
        die("open", &err);
    (void)pthread_rwlock_init(&node->moves, NULL);
    (void)pthread_mutex_init(&node->lock, NULL);
    (void)pthread_cond_init(&node->changed, NULL);
    node->queue =
        (struct pb_job_queue){.store = node->store, .reader = node->reader, .moves = &node->moves};
    node->is_woken = true;
}

static void close_node(struct node *node)
{
    pb_job_queue_fini(&node->queue);
    pb_nodes_listener_close(node->listener);
    pb_job_store_close(node->reader);
    pb_job_store_close(node->store);
}

static void offer(struct node *node, int first, int n)
{
    struct pb_job *jobs = calloc(OFFER_N, sizeof *jobs), *list[OFFER_N];
    int results[OFFER_N];
    struct pb_err err = {0};
    if (jobs == NULL)
        exit(EXIT_FAILURE);
    for (int i = 0; i < n; i++) {
        struct pb_job *job = list[i] = &jobs[i];
        pb_job_init(job);
        (void)snprintf(job->id, sizeof job->id, "20260101-%06d-%04x", (first + i) % 1000000,
                       (first + i) / 1000000);
        (void)snprintf(job->name, sizeof job->name, "%d.tif", first + i);
        (void)snprintf(job->scene, sizeof job->scene, "%d", first + i);
        (void)snprintf(job->pipeline, sizeof job->pipeline, "p");
        job->created_ms = job->updated_ms = pb_clock_wall_ms();
    }
    const int64_t begun = latency_now_us();
    if (pb_store_offer_all(node->store, list, (size_t)n, results, &err) != 0)
        die("offer", &err);
    note(OFFER, begun);
    for (int i = 0; i < n; i++)
        pb_job_fini(&jobs[i]);
    free(jobs);
}

#define OFFERERS 8 /* nodes that offer the jobs */

static atomic_int next_offer;

static void *run_offers(void *user)
{
    int at;
    while ((at = atomic_fetch_add(&next_offer, OFFER_N)) < options.jobs)
        offer(user, at, options.jobs - at < OFFER_N ? options.jobs - at : OFFER_N);
    return NULL;
}

static void begin_thread(pthread_t *thread, void *(*run)(void *), void *user)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0 ||
        pthread_create(thread, &attributes, run, user) != 0)
        die("thread", &(struct pb_err){.msg = "cannot be started"});
    (void)pthread_attr_destroy(&attributes);
}

static void offer_all(struct node *nodes)
{
    const int n = options.nodes < OFFERERS ? options.nodes : OFFERERS;
    for (int i = 0; i < n; i++)
        begin_thread(&nodes[i].taker, run_offers, &nodes[i]);
    for (int i = 0; i < n; i++)
        (void)pthread_join(nodes[i].taker, NULL);
}

static void run_all(struct node *nodes)
{
    for (int i = 0; i < options.nodes; i++) {
        for (int k = 0; k < options.slots; k++) {
            nodes[i].slots[k].node = &nodes[i];
            begin_thread(&nodes[i].slots[k].thread, run_slot, &nodes[i].slots[k]);
        }
        begin_thread(&nodes[i].taker, run_taker, &nodes[i]);
        begin_thread(&nodes[i].beat, run_beat, &nodes[i]);
    }
    while (!is_over())
        sleep_ms(10);
    for (int i = 0; i < options.nodes; i++) {
        wake(&nodes[i]);
        (void)pthread_join(nodes[i].taker, NULL);
        (void)pthread_join(nodes[i].beat, NULL);
        for (int k = 0; k < options.slots; k++)
            (void)pthread_join(nodes[i].slots[k].thread, NULL);
    }
}

static int count_wrong(struct node *nodes)
{
    int64_t counts[PB_JOB_STATUS_COUNT];
    int wrong = atomic_load(&n_failed), n = 0;
    for (int i = 0; i < options.nodes; i++)
        look(&nodes[i]); /* numbers the last events of the node, and reads the counts */
    pb_store_counts(nodes[options.nodes - 1].store, counts);
    for (int i = 0; i < options.jobs; i++) {
        const int times = atomic_load(&ends[i]);
        wrong += times > 1 || (times == 0 && options.ends == options.jobs);
        n += times;
    }
    return wrong + (int)(counts[PB_JOB_SUCCESSFUL] != n) + (int)(n < options.ends);
}

static bool read_options(int argc, char **argv)
{
    static const struct option names[] = {{"store", 1, NULL, 's'},  {"nodes", 1, NULL, 'n'},
                                          {"slots", 1, NULL, 'k'},  {"jobs", 1, NULL, 'j'},
                                          {"run-ms", 1, NULL, 'r'}, {"lease-s", 1, NULL, 'l'},
                                          {"ends", 1, NULL, 'e'},   {NULL, 0, NULL, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        int *const number = c == 'n'   ? &options.nodes
                            : c == 'k' ? &options.slots
                            : c == 'j' ? &options.jobs
                            : c == 'r' ? &options.run_ms
                            : c == 'e' ? &options.ends
                                       : &options.lease_s;
        if (c == 's')
            options.conninfo = optarg;
        else if (c == '?')
            return false;
        else
            *number = (int)strtol(optarg, NULL, 10);
    }
    options.ends = options.ends > 0 && options.ends < options.jobs ? options.ends : options.jobs;
    return options.conninfo != NULL && options.nodes > 0 && options.slots > 0 &&
           options.slots <= SLOTS_MAX && options.jobs > 0;
}

int main(int argc, char **argv)
{
    if (!read_options(argc, argv)) {
        (void)fprintf(stderr, "usage: store_load --store CONNINFO [--nodes N] [--slots N] [--jobs "
                              "N] [--run-ms N] [--lease-s N] [--ends N]\n");
        return 2;
    }
    struct node *nodes = calloc((size_t)options.nodes, sizeof *nodes);
    ends = calloc((size_t)options.jobs, sizeof *ends);
    if (nodes == NULL || ends == NULL)
        return EXIT_FAILURE;
    for (int i = 0; i < options.nodes; i++)
        open_node(&nodes[i], i);
    /* The first beat. Each node knows the number of nodes afterwards. */
    for (int i = 0; i < options.nodes; i++)
        report(&nodes[i]);
    const int64_t begun = latency_now_us();
    offer_all(nodes);
    const int64_t offered = latency_now_us();
    run_all(nodes);
    const double run_s = (double)(latency_now_us() - offered) / 1e6;
    const int wrong = count_wrong(nodes);
    printf("{\"offers_per_s\":%.0f,\"jobs_per_s\":%.1f,\"ended\":%d,\"wrong\":%d",
           options.jobs / ((double)(offered - begun) / 1e6), atomic_load(&n_ended) / run_s,
           atomic_load(&n_ended), wrong);
    for (int i = 0; i < N_CALLS; i++) {
        printf(",\"%s\":{", call_names[i]);
        latency_print(&latencies[i]);
        printf("}");
    }
    printf("}\n");
    for (int i = 0; i < options.nodes; i++)
        close_node(&nodes[i]);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
