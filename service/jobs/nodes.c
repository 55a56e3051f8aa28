/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Statements about nodes, for PostgreSQL only. All times are the server's: the clock of a node
 * decides nothing. A session is a number that no later session has, and is never renewed after its
 * end, so that a node that slept for longer than its lease finds that it lost its jobs.
 *
 * The row of `pulse` shows whether the store itself was away: then no node could report, and none
 * is at fault. Nodes move it with their reaps, one at a time and not more often than necessary; if
 * the last move is older than half of the lease, every session gets one lease more. */
#include "service/jobs/nodes.h"

#include "config/base/clock.h"
#include "pipeline/publish/publish_root.h"
#include "service/jobs/sql_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define WHAT              "nodes"
#define PULSES_OF_A_LEASE 30 /* most moves of the pulse by all nodes */

bool pb_store_is_shared(const struct pb_job_store *store)
{
    return store->is_shared;
}

const char *pb_store_node(const struct pb_job_store *store)
{
    return store->is_shared ? store->node : "";
}

/* --- sessions --------------------------------------------------------------------------------- */

/* Fails if a service with another name and place has one of the directories. */
static int check_directories(struct pb_job_store *store, const struct pb_node *node,
                             struct pb_err *err)
{
    char other[PB_JOB_NODE_BYTES];
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        "SELECT node FROM nodes WHERE node <> ?1 AND place <> ?2 AND"
        " (work = ?3 OR archive = ?4 OR quarantine = ?5) ORDER BY node LIMIT 1",
        err);
    pb_sql_set_text(s, 1, store->node);
    pb_sql_set_text(s, 2, node->place);
    pb_sql_set_text(s, 3, node->work);
    pb_sql_set_text(s, 4, node->archive);
    pb_sql_set_text(s, 5, node->quarantine);
    int rc = pb_job_store_step(store, WHAT, s, err);
    if (rc == 1) {
        pb_sql_read_text(s, 0, other, sizeof other);
        rc = pb_fail(err, PB_E_SERVICE_STATE,
                     "node %s of the job store has the same work, archive or quarantine directory "
                     "as this node, %s; give each node directories of its own, which the others "
                     "see at the same paths. If that node is gone for ever: 'pushbroom store "
                     "forget %s'",
                     other, store->node, other);
    }
    pb_sql_finalize(s);
    return rc;
}

struct join {
    struct pb_job_change change;
    const struct pb_node *node;
    int64_t session;
    char root[PB_PUBLISH_ROOT_BYTES];
};

/* Fails if another service has the name and reports. */
static int check_place(struct pb_job_store *store, const struct pb_node *node, struct pb_err *err)
{
    char place[PB_FILES_PATH_BYTES];
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        "SELECT place FROM nodes WHERE node = ?1 AND place <> ?2 AND session <> 0 AND"
        " seen_ms + lease_ms > pb_now_ms() FOR UPDATE",
        err);
    pb_sql_set_text(s, 1, store->node);
    pb_sql_set_text(s, 2, node->place);
    int rc = pb_job_store_step(store, WHAT, s, err);
    if (rc == 1) {
        pb_sql_read_text(s, 0, place, sizeof place);
        rc = pb_fail(err, PB_E_SERVICE_STATE,
                     "another pushbroomd is node %s of the job store (%.200s); give each a "
                     "service.node of its own. If that one has ended, this one begins when its "
                     "lease is over",
                     store->node, place);
    }
    pb_sql_finalize(s);
    return rc;
}

/* Reads the id of the directory of products. Returns 1 if its token was made, 0, or negative. */
static int read_root(struct pb_job_store *store, char out[PB_PUBLISH_ROOT_BYTES],
                     struct pb_err *err)
{
    struct pb_sql_statement *s =
        pb_job_store_prepare(store, WHAT, "SELECT root, has_root FROM store", err);
    int rc = pb_job_store_step(store, WHAT, s, err);
    if (rc > 0) {
        pb_sql_read_text(s, 0, out, PB_PUBLISH_ROOT_BYTES);
        rc = pb_sql_int(s, 1) > 0;
    }
    pb_sql_finalize(s);
    return rc;
}

static int apply_join(struct pb_job_store *store, struct pb_job_change *change)
{
    struct join *join = (struct join *)change;
    const struct pb_node *node = join->node;
    int rc = check_place(store, node, &change->err);
    rc = rc ? rc : check_directories(store, node, &change->err);
    rc = rc ? rc : read_root(store, join->root, &change->err);
    if (rc < 0)
        return rc;
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        "INSERT INTO nodes (node, session, place, work, archive, quarantine, lease_ms, products,"
        " address, started_ms, seen_ms)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, pb_now_ms(), pb_now_ms())"
        " ON CONFLICT (node) DO UPDATE SET session = excluded.session, place = excluded.place,"
        " work = excluded.work, archive = excluded.archive, quarantine = excluded.quarantine,"
        " lease_ms = excluded.lease_ms, started_ms = excluded.started_ms,"
        " products = excluded.products, address = excluded.address,"
        " seen_ms = excluded.seen_ms, drains = 0",
        &change->err);
    pb_sql_set_text(s, 1, store->node);
    pb_sql_set_int(s, 2, join->session);
    pb_sql_set_text(s, 3, node->place);
    pb_sql_set_text(s, 4, node->work);
    pb_sql_set_text(s, 5, node->archive);
    pb_sql_set_text(s, 6, node->quarantine);
    pb_sql_set_int(s, 7, node->lease_ms);
    pb_sql_set_text(s, 8, node->products != NULL ? node->products : "");
    pb_sql_set_text(s, 9, node->address != NULL ? node->address : "");
    rc = pb_job_store_run(store, WHAT, s, &change->err);
    return rc < 0 ? rc : 0;
}

int pb_nodes_join(struct pb_job_store *store, const struct pb_node *node, struct pb_err *err)
{
    struct join join = {.change = {.apply = apply_join}, .node = node};
    if (!pb_store_is_shared(store))
        return 0;
    join.session = pb_job_store_make_session();
    int rc = pb_job_store_commit(store, &join.change, err);
    if (rc != 0)
        return rc;
    pb_job_store_lock(store);
    store->session = join.session;
    store->lease_ms = node->lease_ms;
    pb_job_store_unlock(store);
    if (store->root[0] == '\0') /* other threads read it later, without a lock */
        (void)snprintf(store->root, sizeof store->root, "%s", join.root);
    return 0;
}

#define ROOT_CLAIM_MS 60000 /* a node that has not made the token by then is gone */
#define ROOT_JOBS     16    /* newest jobs whose products are looked for */

struct rooting {
    struct pb_job_change change;
    bool is_end, is_made; /* is_end: the claim ends */
    bool is_claimed;
    char id[PB_PUBLISH_ROOT_BYTES];
};

/* has_root is negative while a node makes the token: the time of its claim. Files are not touched
 * in a transaction, because their file system may not answer. */
static int apply_root(struct pb_job_store *store, struct pb_job_change *change)
{
    struct rooting *rooting = (struct rooting *)change;
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        rooting->is_end ? "UPDATE store SET has_root = ?1 WHERE has_root <= 0"
                        : "UPDATE store SET has_root = -pb_now_ms() WHERE has_root <= 0 AND"
                          " pb_now_ms() + has_root > ?1",
        &change->err);
    pb_sql_set_int(s, 1, rooting->is_end ? rooting->is_made : ROOT_CLAIM_MS);
    const int n = pb_job_store_run(store, WHAT, s, &change->err);
    if (n < 0 || rooting->is_end)
        return n < 0 ? n : 0;
    rooting->is_claimed = n > 0;
    const int rc = read_root(store, rooting->id, &change->err);
    rooting->is_made = rc > 0;
    return rc < 0 ? rc : 0;
}

/* Returns the number of jobs that were successful last, and their directories. */
static int read_directories(struct pb_job_store *store, char *out[ROOT_JOBS], struct pb_err *err)
{
    int n = 0, rc;
    pb_job_store_lock(store);
    struct pb_sql_statement *s =
        pb_job_store_prepare(store, WHAT,
                             "SELECT directory FROM jobs WHERE status = 2 AND directory <> ''"
                             " ORDER BY seq DESC LIMIT ?1",
                             err);
    pb_sql_set_int(s, 1, ROOT_JOBS);
    while (n < ROOT_JOBS && (rc = pb_job_store_step(store, WHAT, s, err)) > 0) {
        char directory[PB_FILES_PATH_BYTES];
        pb_sql_read_text(s, 0, directory, sizeof directory);
        if ((out[n] = strdup(directory)) == NULL) {
            rc = pb_fail(err, PB_E_MEMORY, "out of memory");
            break;
        }
        n++;
    }
    pb_sql_finalize(s);
    pb_job_store_unlock(store);
    return rc < 0 ? rc : n;
}

/* Makes the token, unless jobs have published and their products are not in the directory. */
static int make_root(struct pb_job_store *store, const char *products, const char *id,
                     struct pb_err *err)
{
    char *directories[ROOT_JOBS] = {NULL};
    bool is_there = false;
    if (pb_publish_root_look(products, id, NULL) == 0)
        return 0;
    const int n = read_directories(store, directories, err);
    for (int i = 0; i < ROOT_JOBS; i++) {
        is_there = is_there || (directories[i] != NULL && access(directories[i], F_OK) == 0);
        free(directories[i]);
    }
    if (n > 0 && !is_there)
        return pb_fail(err, PB_E_OUTPUT_ROOT,
                       "products %.200s has no products of the last jobs: mount the file system of "
                       "products; no job runs here until then. If the directory is the right one, "
                       "write this line into the file " PB_PUBLISH_ROOT_FILE " in it: %s",
                       products, id);
    return n < 0 ? n : pb_publish_root_make(products, id, err);
}

int pb_nodes_make_root(struct pb_job_store *store, const char *products, struct pb_err *err)
{
    struct rooting rooting = {.change = {.apply = apply_root}};
    if (!pb_store_is_shared(store) || store->has_root)
        return 0;
    int rc = pb_job_store_commit(store, &rooting.change, err);
    if (rc != 0 || !rooting.is_claimed) {
        store->has_root = rc == 0 && rooting.is_made;
        return rc;
    }
    rc = make_root(store, products, rooting.id, err);
    struct rooting end = {.change = {.apply = apply_root}, .is_end = true, .is_made = rc == 0};
    const int ended = pb_job_store_commit(store, &end.change, rc == 0 ? err : NULL);
    store->has_root = rc == 0 && ended == 0;
    return rc != 0 ? rc : ended;
}

const char *pb_nodes_root(const struct pb_job_store *store)
{
    return store->root;
}

static int apply_leave(struct pb_job_store *store, struct pb_job_change *change)
{
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT, "UPDATE nodes SET session = 0, seen_ms = pb_now_ms() WHERE session = ?1",
        &change->err);
    pb_sql_set_int(s, 1, store->session);
    int rc = pb_job_store_run(store, WHAT, s, &change->err);
    return rc < 0 ? rc : 0;
}

void pb_nodes_leave(struct pb_job_store *store)
{
    struct pb_job_change change = {.apply = apply_leave};
    if (pb_store_is_shared(store))
        (void)pb_job_store_commit(store, &change, NULL);
}

struct reporting {
    struct pb_job_change change;
    const struct pb_node *node;
};

static int apply_alive(struct pb_job_store *store, struct pb_job_change *change)
{
    const struct pb_node *node = ((const struct reporting *)change)->node;
    struct pb_sql_statement *s =
        pb_job_store_prepare(store, WHAT,
                             "UPDATE nodes SET seen_ms = pb_now_ms(), drains = ?3, has_gpu = ?4,"
                             " memory = ?5 WHERE node = ?1 AND session = ?2",
                             &change->err);
    pb_sql_set_text(s, 1, store->node);
    pb_sql_set_int(s, 2, store->session);
    pb_sql_set_int(s, 3, node->drains);
    pb_sql_set_int(s, 4, node->has_gpu);
    pb_sql_set_int(s, 5, node->memory);
    int rc = pb_job_store_run(store, WHAT, s, &change->err);
    return rc < 0 ? rc : rc > 0 ? 0 : PB_JOB_STALE;
}

int pb_nodes_alive(struct pb_job_store *store, const struct pb_node *node, struct pb_err *err)
{
    struct reporting reporting = {.change = {.apply = apply_alive}, .node = node};
    if (!pb_store_is_shared(store))
        return 0;
    int rc = pb_job_store_commit(store, &reporting.change, err);
    return rc == PB_JOB_STALE ? -ESTALE : rc;
}

/* Runs a statement with n integers; returns the number of changed rows. */
static int run(struct pb_job_store *store, const char *text, const int64_t *numbers, int n,
               struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_store_prepare(store, WHAT, text, err);
    for (int i = 0; i < n; i++)
        pb_sql_set_int(s, i + 1, numbers[i]);
    return pb_job_store_run(store, WHAT, s, err);
}

/* Reads the age of the pulse, and keeps its row. Returns 1; 0: another node moves it now. */
static int read_pulse(struct pb_job_store *store, int64_t *out_ms, struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT, "SELECT pb_now_ms() - at_ms FROM pulse FOR UPDATE SKIP LOCKED", err);
    const int rc = pb_job_store_step(store, WHAT, s, err);
    *out_ms = rc > 0 ? pb_sql_int(s, 0) : 0;
    pb_sql_finalize(s);
    return rc;
}

int pb_nodes_end_sessions(struct pb_job_store *store, struct pb_err *err)
{
    const int64_t own = store->session;
    int64_t age_ms = 0;
    if (!pb_store_is_shared(store))
        return 0;
    int rc = read_pulse(store, &age_ms, err);
    if (rc <= 0 || (age_ms >= 0 && age_ms < store->lease_ms / PULSES_OF_A_LEASE))
        return rc < 0 ? rc : 0;
    rc = run(store, "UPDATE pulse SET at_ms = pb_now_ms()", NULL, 0, err);
    /* The store was away, or its clock was set back (a pulse from the future): new leases. */
    if (rc >= 0 && (age_ms < 0 || age_ms > store->lease_ms / 2))
        rc = run(store, "UPDATE nodes SET seen_ms = pb_now_ms() WHERE session <> 0", NULL, 0, err);
    else if (rc > 0)
        rc = run(store,
                 "UPDATE nodes SET session = 0 WHERE session <> 0 AND session <> ?1 AND"
                 " seen_ms + lease_ms < pb_now_ms()",
                 &own, 1, err);
    return rc < 0 ? rc : 0;
}

/* --- inboxes ---------------------------------------------------------------------------------- */

struct holding {
    struct pb_job_change change;
    struct pb_node_inbox *inbox;
};

enum hold { HOLD_STAYS, HOLD_TAKE, HOLD_GIVE };

/* Returns an enum hold by the present rows, or a negative errno. */
static int decide(struct pb_job_store *store, struct pb_node_inbox *inbox, struct pb_err *err)
{
    const bool is_own = inbox->owner == NULL || strcmp(inbox->owner, store->node) == 0;
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        "SELECT w.session, (SELECT count(*) FROM nodes WHERE node = ?2 AND session <> 0 AND"
        " drains = 0), (SELECT count(*) FROM nodes WHERE session = ?3 AND drains = 0), w.node"
        " FROM (SELECT 1) AS one LEFT JOIN (SELECT n.session, n.node FROM inboxes i JOIN nodes n"
        " ON n.session = i.session WHERE i.path = ?1 AND i.session <> 0) AS w ON true",
        err);
    pb_sql_set_text(s, 1, inbox->path);
    pb_sql_set_text(s, 2, is_own ? store->node : inbox->owner);
    pb_sql_set_int(s, 3, store->session);
    int rc = pb_job_store_step(store, WHAT, s, err);
    if (rc > 0) {
        const bool is_free = pb_sql_is_null(s, 0);
        const bool is_held = !is_free && pb_sql_int(s, 0) == store->session;
        const bool may = pb_sql_int(s, 2) > 0 && (is_own || pb_sql_int(s, 1) == 0);
        inbox->is_held = is_held;
        inbox->is_wanted = is_held && !may;
        pb_sql_read_text(s, 3, inbox->holder, sizeof inbox->holder);
        rc = is_free && may                        ? HOLD_TAKE
             : inbox->is_wanted && !inbox->is_busy ? HOLD_GIVE
                                                   : HOLD_STAYS;
    }
    pb_sql_finalize(s);
    return rc;
}

/* Locks the row of the inbox, so that the next statement sees what others have committed. */
static int lock_inbox(struct pb_job_store *store, const char *path, struct pb_err *err)
{
    struct pb_sql_statement *s =
        pb_job_store_prepare(store, WHAT,
                             "INSERT INTO inboxes (path) VALUES (?1)"
                             " ON CONFLICT (path) DO UPDATE SET path = excluded.path",
                             err);
    pb_sql_set_text(s, 1, path);
    return pb_job_store_run(store, WHAT, s, err);
}

static int apply_hold(struct pb_job_store *store, struct pb_job_change *change)
{
    struct pb_node_inbox *inbox = ((struct holding *)change)->inbox;
    int rc = lock_inbox(store, inbox->path, &change->err);
    rc = rc < 0 ? rc : decide(store, inbox, &change->err);
    if (rc != HOLD_TAKE && rc != HOLD_GIVE)
        return rc < 0 ? rc : 0;
    const bool takes = rc == HOLD_TAKE;
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT, "UPDATE inboxes SET session = ?2 WHERE path = ?1", &change->err);
    pb_sql_set_text(s, 1, inbox->path);
    pb_sql_set_int(s, 2, takes ? store->session : 0);
    rc = pb_job_store_run(store, WHAT, s, &change->err);
    inbox->is_held = takes;
    inbox->is_wanted = false;
    return rc < 0 ? rc : 0;
}

int pb_nodes_hold(struct pb_job_store *store, struct pb_node_inbox *inbox, struct pb_err *err)
{
    struct holding holding = {{.apply = apply_hold}, inbox};
    inbox->is_held = !pb_store_is_shared(store);
    inbox->is_wanted = false;
    inbox->holder[0] = '\0';
    if (inbox->is_held)
        return 0;
    pb_job_store_lock(store);
    int rc = decide(store, inbox, err);
    pb_job_store_unlock(store);
    if (rc == HOLD_TAKE || rc == HOLD_GIVE)
        rc = pb_job_store_commit(store, &holding.change, err);
    return rc < 0 ? rc : 0;
}

/* --- what other nodes do ---------------------------------------------------------------------- */

void pb_nodes_news_fini(struct pb_nodes_news *news)
{
    for (size_t i = 0; i < news->n; i++)
        pb_job_fini(&news->jobs[i]);
    free(news->jobs);
    *news = (struct pb_nodes_news){.n = 0};
}

/* Adds the job in the row of s. */
static int add_job(struct pb_nodes_news *news, struct pb_sql_statement *s, struct pb_err *err)
{
    struct pb_job *more = realloc(news->jobs, (news->n + 1) * sizeof *more);
    news->jobs = more != NULL ? more : news->jobs;
    if (more == NULL || !pb_job_fields_read(s, &more[news->n]))
        return pb_fail(err, PB_E_MEMORY, "out of memory for the jobs of other nodes");
    news->n++;
    return 0;
}

/* Reads the rows of the look. *io_last: the last event that was seen, before and after. */
static int read_news(struct pb_job_store *store, bool all, struct pb_nodes_news *news,
                     int64_t *io_last, struct pb_err *err)
{
    enum { LAST = 1 + PB_JOB_FIXED + PB_JOB_SET_COUNT, WAITS, EVENT };
    int64_t last = 0, event = 0;
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_NODES_LOOK, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_text(s, 1, store->node);
    pb_sql_set_int(s, 2, *io_last >= 0 ? *io_last : INT64_MAX);
    pb_sql_set_int(s, 3, all);
    int rc;
    while ((rc = pb_job_store_step(store, WHAT, s, err)) > 0) {
        last = pb_sql_int(s, LAST);
        news->has_requests = pb_sql_int(s, WAITS) != 0;
        event = pb_sql_is_null(s, EVENT) ? event : pb_sql_int(s, EVENT);
        if (!pb_sql_is_null(s, 0) && (rc = add_job(news, s, err)) < 0)
            break;
    }
    pb_sql_reset(s);
    if (rc < 0)
        return rc;
    *io_last = event > 0 ? event : last;
    news->has_more = *io_last < last;
    return 0;
}

/* A client may connect during a look that leaves jobs out. The next look for all jobs has those of
 * that one again. */
int pb_nodes_look(struct pb_job_store *store, bool all, struct pb_err *err,
                  struct pb_nodes_news *out)
{
    *out = (struct pb_nodes_news){.n = 0};
    if (!pb_store_is_shared(store))
        return 0;
    pb_job_store_lock(store);
    if (store->is_unsettled)
        store->kind->settle(store);
    const int64_t before = store->looked;
    int64_t last = all && store->unseen >= 0 ? store->unseen : before;
    int rc = read_news(store, all, out, &last, err);
    if (rc == 0)
        store->unseen = all ? -1 : before;
    if (rc == 0 && (last != before || out->n > 0)) {
        store->looked = last;
        pb_job_row_count(store);
        atomic_fetch_add(&store->commits, 1);
        rc = 1;
    }
    pb_job_store_unlock(store);
    if (rc < 0)
        pb_nodes_news_fini(out);
    return rc;
}

size_t pb_nodes_reporting(const struct pb_job_store *store)
{
    return atomic_load(&store->n_alive);
}

int64_t pb_nodes_pause_ms(const struct pb_job_store *store)
{
    const size_t n = pb_nodes_reporting(store);
    return n <= PB_NODES_FEW ? 20 : 5 * (int64_t)n;
}

void pb_nodes_fini(struct pb_nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++) {
        free(nodes->at[i].name);
        free(nodes->at[i].place);
        free(nodes->at[i].work);
        free(nodes->at[i].archive);
        free(nodes->at[i].quarantine);
        free(nodes->at[i].products);
        free(nodes->at[i].address);
    }
    free(nodes->at);
    *nodes = (struct pb_nodes){NULL, 0};
}

/* Adds the node in the row of s. Returns false if out of memory. */
static bool add(struct pb_nodes *nodes, struct pb_sql_statement *s)
{
    struct pb_node *more = realloc(nodes->at, (nodes->n + 1) * sizeof *more);
    if (more == NULL)
        return false;
    nodes->at = more;
    struct pb_node *node = &nodes->at[nodes->n++];
    *node = (struct pb_node){.is_alive = pb_sql_int(s, 5) != 0,
                             .drains = pb_sql_int(s, 10) != 0,
                             .has_gpu = (int)pb_sql_int(s, 11),
                             .memory = pb_sql_int(s, 12),
                             .lease_ms = pb_sql_int(s, 6),
                             .started_ms = pb_sql_int(s, 7),
                             .silent_ms = pb_sql_int(s, 8),
                             .running = pb_sql_int(s, 9)};
    const struct {
        int column;
        char **text;
    } texts[] = {{0, &node->name},    {1, &node->place},      {2, &node->work},
                 {3, &node->archive}, {4, &node->quarantine}, {13, &node->products},
                 {14, &node->address}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = pb_sql_text(s, texts[i].column);
        *texts[i].text = strdup(text != NULL ? text : "");
        if (*texts[i].text == NULL)
            return false;
    }
    return true;
}

static size_t count_alive(const struct pb_nodes *nodes)
{
    size_t n = 0;
    for (size_t i = 0; i < nodes->n; i++)
        n += nodes->at[i].is_alive;
    return n;
}

int pb_nodes_list(struct pb_job_store *store, struct pb_err *err, struct pb_nodes *out)
{
    struct pb_nodes nodes = {NULL, 0};
    *out = nodes;
    if (!pb_store_is_shared(store))
        return 0;
    pb_job_store_lock(store);
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        "SELECT node, place, work, archive, quarantine, CASE WHEN session <> 0 THEN 1 ELSE 0 END,"
        " lease_ms, started_ms, pb_now_ms() - seen_ms, coalesce(n, 0), drains, has_gpu, memory,"
        " products, address"
        " FROM nodes LEFT JOIN"
        " (SELECT node, count(*) AS n FROM jobs WHERE status = 1 GROUP BY node) AS r USING (node)"
        " ORDER BY node",
        err);
    int rc;
    while ((rc = pb_job_store_step(store, WHAT, s, err)) > 0)
        if (!add(&nodes, s)) {
            rc = pb_fail(err, PB_E_MEMORY, "out of memory for the nodes");
            break;
        }
    pb_sql_finalize(s);
    pb_job_store_unlock(store);
    if (rc == 0) {
        atomic_store(&store->n_alive, count_alive(&nodes));
        *out = nodes;
    } else {
        pb_nodes_fini(&nodes);
    }
    return rc;
}

static bool is_in(const char *path, const char *directory)
{
    const size_t n = strlen(directory);
    return n > 0 && strncmp(path, directory, n) == 0 && path[n] == '/';
}

const struct pb_node *pb_nodes_home(const struct pb_nodes *nodes, const char *path)
{
    for (size_t i = 0; path != NULL && i < nodes->n; i++) {
        const struct pb_node *node = &nodes->at[i];
        if (is_in(path, node->work) || is_in(path, node->archive) || is_in(path, node->quarantine))
            return node;
    }
    return NULL;
}

int pb_nodes_permit(struct pb_job_store *store, const char *id, int64_t epoch, const char *node,
                    struct pb_err *err)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        "SELECT 1 FROM jobs j JOIN nodes n ON n.session = j.session WHERE j.id = ?1 AND"
        " j.status = 1 AND j.epoch = ?2 AND n.node = ?3 AND n.session <> 0",
        err);
    pb_sql_set_text(s, 1, id);
    pb_sql_set_int(s, 2, epoch);
    pb_sql_set_text(s, 3, node);
    const int rc = pb_job_store_step(store, WHAT, s, err);
    pb_sql_finalize(s);
    pb_job_store_unlock(store);
    return rc < 0 ? rc : rc > 0 ? 0 : -ESTALE;
}

/* --- requests --------------------------------------------------------------------------------- */

struct asking {
    struct pb_job_change change;
    const char *node;
    const struct pb_node_request *request;
};

static int apply_ask(struct pb_job_store *store, struct pb_job_change *change)
{
    const struct asking *asking = (const struct asking *)change;
    struct pb_sql_statement *s =
        pb_job_store_prepare(store, WHAT,
                             "INSERT INTO requests (node, job, kind, identity)"
                             " SELECT node, ?2, ?3, ?4 FROM nodes WHERE node = ?1 AND session <> 0",
                             &change->err);
    pb_sql_set_text(s, 1, asking->node);
    pb_sql_set_text(s, 2, asking->request->job);
    pb_sql_set_int(s, 3, (int64_t)asking->request->kind);
    pb_sql_set_text(s, 4, asking->request->identity);
    int rc = pb_job_store_run(store, WHAT, s, &change->err);
    store->has_news = store->wakes = true;
    if (rc == 0)
        return pb_fail(&change->err, PB_E_JOB_STATE,
                       "job %s belongs to node %s, which does not report; try again when it does",
                       asking->request->job, asking->node);
    return rc < 0 ? rc : 0;
}

int pb_nodes_ask(struct pb_job_store *store, const char *node,
                 const struct pb_node_request *request, struct pb_err *err)
{
    struct asking asking = {{.apply = apply_ask}, node, request};
    return pb_job_store_commit(store, &asking.change, err);
}

struct taking {
    struct pb_job_change change;
    struct pb_node_request *out;
    int n; /* number of the last requests that were read */
};

static int apply_requests(struct pb_job_store *store, struct pb_job_change *change)
{
    struct taking *taking = (struct taking *)change;
    struct pb_node_request *out = taking->out;
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        "DELETE FROM requests WHERE seq IN (SELECT r.seq FROM requests r "
        "WHERE " PB_NODES_REQUESTS_MINE " ORDER BY r.seq LIMIT ?2) RETURNING job, kind, identity",
        &change->err);
    int n = 0, rc = 0;
    pb_sql_set_text(s, 1, store->node);
    pb_sql_set_int(s, 2, PB_NODE_REQUESTS_MAX);
    for (; n < PB_NODE_REQUESTS_MAX && (rc = pb_job_store_step(store, WHAT, s, &change->err)) > 0;
         n++) {
        pb_sql_read_text(s, 0, out[n].job, sizeof out[n].job);
        out[n].kind = (enum pb_request_kind)pb_sql_int(s, 1);
        pb_sql_read_text(s, 2, out[n].identity, sizeof out[n].identity);
    }
    pb_sql_finalize(s);
    if (n > 0)
        taking->n = n;
    return rc < 0 ? rc : n;
}

int pb_nodes_requests(struct pb_job_store *store, struct pb_err *err,
                      struct pb_node_request out[PB_NODE_REQUESTS_MAX])
{
    struct taking taking = {{.apply = apply_requests}, out, 0};
    int rc = pb_store_is_shared(store) ? pb_job_store_commit(store, &taking.change, err) : 0;
    /* They may be deleted although the answer was lost. A request that is handled twice does
     * nothing the second time, because the job has another state. */
    return rc <= 0 && taking.change.may_be_stored ? taking.n : rc;
}
