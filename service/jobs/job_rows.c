/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the job store. Every statement is prepared once and finds its rows through an index, so
 * that its cost does not grow with the number of jobs: ids by the unique index, ends of ids by
 * their last characters backwards, states by (status, seq), waiting jobs by (rank, seq), counts
 * from a table that triggers update. */
#include "service/jobs/job_store_sql.h"
#include "service/jobs/journal_sql.h"
#include "service/jobs/nodes.h"
#include "service/jobs/schema_postgres.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FIRST_ROWS    4    /* rows that a choice of a job reads at first */
#define RESERVE_MORE  2    /* rows that it reserves then beyond those it wants */
#define RESERVE_AMONG 1024 /* first rows among which it reserves these */
#define RESERVES_MAX  8    /* further rows that it tries to reserve */

/* The job of an archive waits until the jobs of its scenes are over, another one while a job of its
 * scene runs. */
#define WAITING                                                                                    \
    "SELECT seq, id, scene, owned, input, pipeline, name, rank, bytes, is_long, node, needs,"      \
    " error_code, updated_ms, needs_gpu, error_memory, shunned"                                    \
    " FROM jobs INDEXED BY jobs_waiting WHERE status = 0 AND (stage <> 'scenes' OR NOT EXISTS"     \
    " (SELECT 1 FROM jobs s WHERE s.archive = jobs.id AND s.archive <> '' AND s.status < 2)) AND"  \
    " NOT EXISTS (SELECT 1 FROM jobs r INDEXED BY jobs_running WHERE r.status = 1 AND"             \
    " r.scene = jobs.scene)"

static const char *const sql[PB_JOB_STATEMENTS] = {
    [PB_JOB_INSERT] = "INSERT INTO jobs (" PB_JOB_COLUMNS_FIXED PB_JOB_COLUMNS_SET
                      ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?," PB_JOB_HOLD_SET
                      ") ON CONFLICT (id) DO NOTHING RETURNING seq",
    [PB_JOB_UPDATE] =
        "UPDATE jobs SET (" PB_JOB_COLUMNS_SET ", session) = (" PB_JOB_HOLD_SET ",?) WHERE id = ?",
    [PB_JOB_FIND_ID] = "SELECT " PB_JOB_COLUMNS " FROM jobs WHERE id = ?1",
    /* ?2: the end of the id reversed, as far as the index covers it; '{' follows 'z'. */
    [PB_JOB_FIND_TAIL] =
        "SELECT " PB_JOB_COLUMNS " FROM jobs WHERE (" PB_JOB_TAIL ") >= ?2 AND (" PB_JOB_TAIL
        ") < ?2 || '{' AND substr(id, length(id) - length(?1) + 1) = ?1 LIMIT 2",
    /* Rows after (rank, seq), in two statements, because SQLite uses the index only for the first
       part of a row value. */
    [PB_JOB_WAITING_LIKE] = WAITING " AND rank = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    [PB_JOB_WAITING_LESS] = WAITING " AND rank > ?1 ORDER BY rank, seq LIMIT ?3",
    [PB_JOB_FIND_SEQ] = "SELECT " PB_JOB_COLUMNS " FROM jobs WHERE seq = ?1",
    /* The first rows that no other reader has the lock of. A node that sleeps loses its connection,
       and with it the locks. */
    [PB_JOB_WAITING_FREE] =
        "SELECT w.*, set_config('idle_session_timeout', '10000', false) FROM (" WAITING
        " AND rank > ?1 ORDER BY rank, seq LIMIT ?2) AS w"
        " WHERE pg_try_advisory_lock(hashint8extended(seq, " PB_POSTGRES_LOCKS ")) LIMIT ?3",
    /* No row if it does not wait any more, or another reader has the lock. */
    [PB_JOB_RESERVE] =
        "SELECT " PB_JOB_COLUMNS ", set_config('idle_session_timeout', '10000', false) FROM jobs"
        " WHERE seq = ?1 AND CASE WHEN status = 0 THEN pg_try_advisory_lock(hashint8extended(seq,"
        " " PB_POSTGRES_LOCKS ")) ELSE false END",
    [PB_JOB_UNRESERVE] =
        "SELECT pg_advisory_unlock_all(), set_config('idle_session_timeout', '0', false)",
    [PB_JOB_COUNTS] = "SELECT status, n FROM job_counts",
    [PB_JOB_RUNNING_ONE] = "SELECT " PB_JOB_COLUMNS
                           " FROM jobs WHERE status = 1 AND session <> ?1 ORDER BY seq LIMIT 1",
    [PB_JOB_RUNNING_OVER] =
        "SELECT " PB_JOB_COLUMNS " FROM jobs WHERE status = 1 AND session <> ?1 AND session NOT IN"
        " (SELECT session FROM nodes WHERE session <> 0) ORDER BY seq LIMIT 1 FOR UPDATE",
    [PB_JOB_RUNNING_SCENE] =
        "SELECT 1 FROM jobs INDEXED BY jobs_running WHERE status = 1 AND scene = ?1 LIMIT 1",
    [PB_JOB_RUNNING_EPOCH] =
        "SELECT 1 FROM jobs WHERE id = ?1 AND status = 1 AND epoch = ?2 AND session = ?3",
    [PB_JOB_STATE] =
        "SELECT status, input, epoch, session, needs FROM jobs WHERE id = ?1 FOR UPDATE",
    [PB_JOB_STATE_FREE] = "SELECT status, input, epoch, session, needs FROM jobs WHERE id = ?1"
                          " FOR UPDATE SKIP LOCKED",
    [PB_JOURNAL_ADD] = PB_JOURNAL_ADD_SQL,
    [PB_JOURNAL_RANGE] = PB_JOURNAL_RANGE_SQL,
    [PB_JOURNAL_LOST] = PB_JOURNAL_LOST_SQL,
    [PB_JOURNAL_GAPS] = PB_JOURNAL_GAPS_SQL,
    [PB_JOURNAL_READ] = PB_JOURNAL_READ_SQL,
    [PB_SUBSCRIBER_FIND] = "SELECT 1 FROM subscribers WHERE name = ?1",
    [PB_SUBSCRIBER_NEXT] = PB_SUBSCRIBER_NEXT_SQL,
    [PB_SUBSCRIBER_STATES] = PB_SUBSCRIBER_STATES_SQL,
    [PB_SUBSCRIBER_ACK] = PB_SUBSCRIBER_ACK_SQL,
    [PB_SET_LAST] =
        "SELECT (SELECT id FROM jobs WHERE set_id <> '' AND status < 2 AND scene = ?1 AND"
        " pipeline = ?2 AND coalesce(inbox, '') = ?3 AND coalesce(folder, '') = ?4 LIMIT 1),"
        " set_id, job FROM (SELECT 1 AS one) AS o LEFT JOIN (SELECT set_id, job FROM set_parts"
        " WHERE scene = ?1 AND pipeline = ?2 AND inbox = ?3 AND folder = ?4 AND"
        " coalesce(up_ms, " PB_SET_PART_LAST ") >= ?5"
        " ORDER BY coalesce(up_ms, " PB_SET_PART_LAST ") DESC, time_ms DESC LIMIT 1) AS p"
        " ON o.one = 1",
    [PB_NODES_LOOK] = PB_NODES_LOOK_SQL,
};

static struct pb_sql_statement *prepare(struct pb_job_store *store, struct pb_sql_statement **slot,
                                        const char *text, struct pb_err *err)
{
    if (pb_job_store_ready(store, err) != 0)
        return NULL;
    if (*slot == NULL && (*slot = pb_sql_prepare(store->db, text, true)) == NULL)
        (void)pb_job_store_fail(store, "prepare", err);
    return *slot;
}

struct pb_sql_statement *pb_job_row_begin(struct pb_job_store *store, enum pb_job_statement which,
                                          struct pb_err *err)
{
    return prepare(store, &store->statement[which], sql[which], err);
}

/* Sum of the known sizes of the files of a delivery. */
static int64_t bytes_of(const struct pb_job *job)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < job->manifest.n_entries; i++)
        if (job->manifest.entry[i].bytes > 0)
            bytes += job->manifest.entry[i].bytes;
    return bytes;
}

/* Digest of the pipeline in the configuration of this service; "" = unknown. */
static const char *find_need(const struct pb_job_store *store, const char *pipeline)
{
    const struct pb_store_needs *needs = store->needs;
    for (size_t i = 0; needs != NULL && i < needs->n; i++)
        if (strcmp(needs->at[i].pipeline, pipeline) == 0)
            return needs->at[i].digest;
    return "";
}

/* Gives a job that waits again, on request, to this node, with the present text of its pipeline. */
static int stamp(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, "update", "UPDATE jobs SET needs = ?1, node = ?2, needs_gpu = ?4 WHERE id = ?3",
        err);
    pb_sql_set_text(s, 1, find_need(store, job->pipeline));
    pb_sql_set_text(s, 2, pb_store_node(store));
    pb_sql_set_text(s, 3, job->id);
    pb_sql_set_int(s, 4, store->needs != NULL && store->needs->gpu);
    const int rc = pb_job_store_run(store, "update", s, err);
    return rc < 0 ? rc : 0;
}

struct insert {
    struct pb_job *const *jobs;
    int *results;
    bool is_out_of_memory;
};

static bool set_insert(void *user, size_t i, struct pb_sql_statement *s)
{
    struct insert *insert = user;
    insert->is_out_of_memory = !pb_job_fields_set(s, 1, 0, insert->jobs[i]);
    return !insert->is_out_of_memory;
}

static void read_insert(void *user, size_t i, struct pb_sql_statement *s, bool has_row)
{
    const struct insert *insert = user;
    insert->results[i] = has_row ? 0 : -EEXIST;
    if (has_row)
        insert->jobs[i]->seq = pb_sql_int(s, 0);
}

int pb_job_row_insert(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                      int *out_results, struct pb_err *err)
{
    struct insert insert = {.jobs = jobs, .results = out_results};
    const struct pb_sql_runs runs = {
        .n = n, .set = set_insert, .read = read_insert, .user = &insert};
    for (size_t i = 0; i < n; i++) {
        jobs[i]->bytes = bytes_of(jobs[i]);
        (void)snprintf(jobs[i]->node, sizeof jobs[i]->node, "%s", pb_store_node(store));
        (void)snprintf(jobs[i]->needs, sizeof jobs[i]->needs, "%s",
                       find_need(store, jobs[i]->pipeline));
        jobs[i]->needs_gpu = store->needs != NULL && store->needs->gpu;
    }
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOB_INSERT, err);
    if (s == NULL)
        return -EIO;
    if (!pb_sql_run_all(s, &runs))
        return insert.is_out_of_memory ? pb_fail(err, PB_E_MEMORY, "out of memory for a job")
                                       : pb_job_store_fail(store, "insert", err);
    return pb_journal_record_new(store, jobs, n, out_results, err);
}

/* Reads a row before a change, for the journal. which: PB_JOB_STATE waits for a transaction that
 * changes the row; for PB_JOB_STATE_FREE such a row is absent. */
static int look_before(struct pb_job_store *store, enum pb_job_statement which, const char *id,
                       struct pb_err *err, struct pb_job_before *out)
{
    struct pb_sql_statement *s = pb_job_row_begin(store, which, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_text(s, 1, id);
    int rc = pb_job_store_step(store, "find", s, err);
    out->is_there = rc > 0;
    out->input[0] = '\0';
    if (rc > 0) {
        out->status = (enum pb_job_status)(int)pb_sql_int(s, 0);
        pb_sql_read_text(s, 1, out->input, sizeof out->input);
        out->epoch = pb_sql_int(s, 2);
        out->session = pb_sql_int(s, 3);
        pb_sql_read_text(s, 4, out->needs, sizeof out->needs);
    }
    pb_sql_reset(s);
    return rc < 0 ? rc : 0;
}

static int update(struct pb_job_store *store, const struct pb_job_before *before,
                  const struct pb_job *job, struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOB_UPDATE, err);
    if (s == NULL)
        return -EIO;
    const bool set = pb_job_fields_set(s, 1, PB_JOB_FIXED, job);
    pb_sql_set_int(s, PB_JOB_SET_COUNT + 1, store->session);
    pb_sql_set_text(s, PB_JOB_SET_COUNT + 2, job->id);
    int rc = set ? pb_job_store_step(store, "update", s, err)
                 : pb_fail(err, PB_E_MEMORY, "out of memory for a job");
    pb_sql_reset(s);
    if (rc == 0 && before->is_there && before->status > PB_JOB_RUNNING &&
        job->status == PB_JOB_ACCEPTED)
        rc = stamp(store, job, err);
    return rc || !before->is_there ? rc : pb_journal_record(store, before, job, err);
}

int pb_job_row_update(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err)
{
    struct pb_job_before before;
    int rc = look_before(store, PB_JOB_STATE, job->id, err, &before);
    if (rc == 0 && before.is_there && before.epoch > job->epoch)
        return PB_JOB_STALE;
    return rc ? rc : update(store, &before, job, err);
}

int pb_job_row_is_latest(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err)
{
    struct pb_job_before before;
    const int rc = look_before(store, PB_JOB_STATE, job->id, err, &before);
    return rc < 0 ? rc : before.is_there && before.epoch <= job->epoch;
}

/* Returns 1 if a job of the scene runs, in any session. */
static int is_scene_running(struct pb_job_store *store, const char *scene, struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOB_RUNNING_SCENE, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_text(s, 1, scene);
    int rc = pb_job_store_step(store, "find", s, err);
    pb_sql_reset(s);
    return rc;
}

int pb_job_row_take(struct pb_job_store *store, const struct pb_job *job, bool may_be_stored,
                    struct pb_err *err)
{
    struct pb_job_before before;
    int rc =
        look_before(store, may_be_stored ? PB_JOB_STATE : PB_JOB_STATE_FREE, job->id, err, &before);
    if (rc == 0 && may_be_stored && before.is_there && before.status == PB_JOB_RUNNING &&
        before.epoch == job->epoch && before.session == store->session)
        return 0;
    if (rc == 0 &&
        (!before.is_there || before.status != PB_JOB_ACCEPTED || job->status != PB_JOB_RUNNING ||
         before.epoch + 1 != job->epoch || strcmp(before.needs, job->needs) != 0))
        return PB_JOB_STALE;
    rc = rc ? rc : is_scene_running(store, job->scene, err);
    if (rc > 0)
        return PB_JOB_STALE;
    return rc ? rc : update(store, &before, job, err);
}

int pb_job_row_untake(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err)
{
    struct pb_job_before before;
    const int rc = look_before(store, PB_JOB_STATE, job->id, err, &before);
    if (rc != 0 || !before.is_there || before.status != PB_JOB_RUNNING ||
        before.epoch != job->epoch || before.session != store->session)
        return rc;
    return update(store, &before, job, err);
}

int pb_job_row_is_running(struct pb_job_store *store, const char *id, int64_t epoch,
                          struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOB_RUNNING_EPOCH, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_text(s, 1, id);
    pb_sql_set_int(s, 2, epoch);
    pb_sql_set_int(s, 3, store->session);
    const int rc = pb_job_store_step(store, "find", s, err);
    pb_sql_reset(s);
    return rc;
}

int pb_job_row_execute(struct pb_job_store *store, const char *text, int64_t number,
                       struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_store_prepare(store, "change", text, err);
    pb_sql_set_int(s, 1, number);
    return pb_job_store_run(store, "change", s, err);
}

/* Reads the first row of s: 1 and *out_job, 0 if there is no row, negative errno. */
static int read_first(struct pb_job_store *store, struct pb_sql_statement *s, struct pb_err *err,
                      struct pb_job *out_job)
{
    int rc = pb_job_store_step(store, "find", s, err);
    if (rc <= 0)
        return rc;
    return pb_job_fields_read(s, out_job) ? 1 : pb_fail(err, PB_E_MEMORY, "out of memory");
}

int pb_job_row_running(struct pb_job_store *store, struct pb_err *err, struct pb_job *out_job)
{
    const bool has_nodes = pb_store_is_shared(store);
    struct pb_sql_statement *s =
        pb_job_row_begin(store, has_nodes ? PB_JOB_RUNNING_OVER : PB_JOB_RUNNING_ONE, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_int(s, 1, store->session);
    int rc = read_first(store, s, err, out_job);
    pb_sql_reset(s);
    return rc;
}

static int find_id(struct pb_job_store *store, const char *id, struct pb_err *err,
                   struct pb_job *out_job)
{
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOB_FIND_ID, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_text(s, 1, id);
    int rc = read_first(store, s, err, out_job);
    pb_sql_reset(s);
    return rc;
}

int pb_job_row_find_own(struct pb_job_store *store, struct pb_job *job, struct pb_err *err)
{
    struct pb_job row;
    int rc = find_id(store, job->id, err, &row);
    if (rc <= 0)
        return rc < 0 ? rc : -EEXIST;
    const bool is_own = row.manifest.input != NULL && job->manifest.input != NULL &&
                        strcmp(row.manifest.input, job->manifest.input) == 0 &&
                        strcmp(row.node, job->node) == 0;
    job->seq = is_own ? row.seq : job->seq;
    pb_job_fini(&row);
    return is_own ? 0 : -EEXIST;
}

static int find_tail(struct pb_job_store *store, const char *id, struct pb_err *err,
                     struct pb_job *out_job)
{
    char tail[PB_JOB_TAIL_CHARS + 1];
    size_t n = strlen(id), m = 0;
    for (; m < PB_JOB_TAIL_CHARS && m < n; m++)
        tail[m] = id[n - 1 - m];
    tail[m] = '\0';
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOB_FIND_TAIL, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_text(s, 1, id);
    pb_sql_set_text(s, 2, tail);
    struct pb_job job;
    int rc = read_first(store, s, err, &job);
    if (rc > 0 && pb_sql_step(s) == PB_SQL_ROW) {
        rc = pb_fail(err, PB_E_JOB_UNKNOWN,
                     "several jobs end in '%s'; give more characters of the id", id);
        pb_job_fini(&job);
    } else if (rc > 0) {
        *out_job = job;
    }
    pb_sql_reset(s);
    return rc;
}

int pb_job_store_find(struct pb_job_store *store, const char *id, struct pb_err *err,
                      struct pb_job *out_job)
{
    if (!pb_job_is_suffix(id))
        return pb_fail(err, PB_E_JOB_UNKNOWN, "'%.60s' is not the name of a job", id);
    pb_job_store_lock(store);
    int rc = find_id(store, id, err, out_job);
    if (rc == 0)
        rc = find_tail(store, id, err, out_job);
    pb_job_store_unlock(store);
    if (rc == 0)
        return pb_fail(err, PB_E_JOB_UNKNOWN, "there is no job '%s'", id);
    return rc > 0 ? 0 : rc;
}

static int visit_rows(struct pb_job_store *store, struct pb_sql_statement *s,
                      int (*visit)(void *user, struct pb_job *job), void *user, struct pb_err *err)
{
    int result = 0, rc;
    while (result == 0 && (rc = pb_job_store_step(store, "list", s, err)) != 0) {
        struct pb_job job;
        if (rc < 0) {
            result = rc;
        } else if (!pb_job_fields_read(s, &job)) {
            result = pb_fail(err, PB_E_MEMORY, "out of memory");
        } else {
            result = visit(user, &job);
            pb_job_fini(&job);
        }
    }
    pb_sql_reset(s);
    return result;
}

/* Makes a statement that merges the rows of each state, because the index yields these in order. */
static void list_sql(unsigned mask, char *out, size_t bytes)
{
    static const char filter[] =
        "seq < ?1 AND updated_ms >= ?3 AND pipeline = coalesce(?4, pipeline)"
        " ORDER BY seq DESC LIMIT ?2";
    int n = 0;
    if (mask == PB_JOB_MASK_ALL) {
        (void)snprintf(out, bytes, "SELECT " PB_JOB_COLUMNS " FROM jobs WHERE %s", filter);
        return;
    }
    for (int i = 0; i < PB_JOB_STATUS_COUNT; i++) {
        if ((mask & PB_JOB_MASK(i)) != 0)
            n += snprintf(out + n, bytes - (size_t)n,
                          "%sSELECT * FROM (SELECT " PB_JOB_COLUMNS " FROM jobs WHERE status = %d"
                          " AND %s) AS s%d",
                          n > 0 ? " UNION ALL " : "", i, filter, i);
    }
    (void)snprintf(out + n, bytes - (size_t)n, " ORDER BY 1 DESC LIMIT ?2");
}

int pb_job_store_list(struct pb_job_store *store, const struct pb_job_query *query,
                      int (*visit)(void *user, struct pb_job *job), void *user, struct pb_err *err)
{
    char text[8192];
    const unsigned mask = query->status_mask & PB_JOB_MASK_ALL;
    if (mask == 0)
        return 0;
    list_sql(mask, text, sizeof text);
    pb_job_store_lock(store);
    struct pb_sql_statement *s = prepare(store, &store->list[mask], text, err);
    int rc = -EIO;
    if (s != NULL) {
        pb_sql_set_int(s, 1, query->before_seq);
        pb_sql_set_int(s, 2, query->limit);
        pb_sql_set_int(s, 3, query->since_ms);
        pb_sql_set_text(s, 4, query->pipeline);
        rc = visit_rows(store, s, visit, user, err);
    }
    pb_job_store_unlock(store);
    return rc;
}

/* Search for the first job that may run. */
struct search {
    bool (*may)(void *user, const struct pb_job *job);
    void *user;
    int64_t limit;
    struct pb_job *out;
    int found; /* 1: *out has the job; negative errno */
    struct pb_job_place last;
    int reserves_left; /* a job that another reader has is passed over so often */
    bool gives_up;
};

/* Reads the whole job, and reserves it if the reader does that: 1 and *out; 0: it is gone, or
 * another reader has it; negative errno. */
static int read_found(struct pb_job_store *store, struct search *search, int64_t seq,
                      struct pb_err *err)
{
    if (store->reserves && search->reserves_left-- <= 0) {
        search->gives_up = true;
        return 0;
    }
    struct pb_sql_statement *s =
        pb_job_row_begin(store, store->reserves ? PB_JOB_RESERVE : PB_JOB_FIND_SEQ, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_int(s, 1, seq);
    const int rc = read_first(store, s, err, search->out);
    pb_sql_reset(s);
    store->has_passed = store->has_passed || rc == 0;
    return rc;
}

/* Continues after search->last in at most n rows of one statement. Returns the number of rows, or
 * < 0 on failure. */
static int look_at(struct pb_job_store *store, enum pb_job_statement which, struct search *search,
                   int64_t n, struct pb_err *err)
{
    struct pb_job job;
    int rc = 0, rows = 0;
    struct pb_sql_statement *s = pb_job_row_begin(store, which, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_int(s, 1, search->last.seq != 0 ? -search->last.priority : INT64_MIN);
    pb_sql_set_int(s, 2, which == PB_JOB_WAITING_FREE ? RESERVE_AMONG : search->last.seq);
    pb_sql_set_int(s, 3, n);
    pb_job_init(&job);
    while (search->found == 0 && !search->gives_up &&
           (rc = pb_job_store_step(store, "find", s, err)) > 0) {
        job.seq = pb_sql_int(s, 0);
        pb_sql_read_text(s, 1, job.id, sizeof job.id);
        pb_sql_read_text(s, 2, job.scene, sizeof job.scene);
        job.owned = pb_sql_int(s, 3) != 0;
        job.manifest.input = (char *)pb_sql_text(s, 4); /* borrowed */
        pb_sql_read_text(s, 5, job.pipeline, sizeof job.pipeline);
        pb_sql_read_text(s, 6, job.name, sizeof job.name);
        job.priority = -(int)pb_sql_int(s, 7);
        job.bytes = pb_sql_int(s, 8);
        job.is_long = pb_sql_int(s, 9) != 0;
        pb_sql_read_text(s, 10, job.node, sizeof job.node);
        pb_sql_read_text(s, 11, job.needs, sizeof job.needs);
        pb_sql_read_text(s, 12, job.error.code, sizeof job.error.code);
        job.updated_ms = pb_sql_int(s, 13);
        job.needs_gpu = pb_sql_int(s, 14) != 0;
        job.error.memory_bytes = pb_sql_int(s, 15);
        pb_sql_read_text(s, 16, job.shunned, sizeof job.shunned);
        if (search->may(search->user, &job))
            search->found = read_found(store, search, job.seq, err);
        search->last = (struct pb_job_place){job.priority, job.seq};
        search->limit--;
        rows++;
    }
    pb_sql_reset(s);
    return rc < 0 ? rc : search->found < 0 ? search->found : rows;
}

/* Looks for a job among the first ones that no other reader has. */
static int choose_free(struct pb_job_store *store, struct search *search, struct pb_err *err)
{
    const struct pb_job_place begin = search->last;
    const int64_t n = store->reserves + RESERVE_MORE;
    search->reserves_left = (int)n;
    store->has_reserved = true;
    const int rows = look_at(store, PB_JOB_WAITING_FREE, search, n, err);
    store->has_passed = store->has_passed || rows == 0;
    search->reserves_left = RESERVES_MAX;
    search->last = begin;
    search->gives_up = false;
    return rows < 0 ? rows : search->found;
}

/* Finds the first job that may run: 1, 0 if absent, or a negative errno. Reads a few rows first,
 * because a database sends all that a statement has. */
static int choose(struct pb_job_store *store, struct search *search, struct pb_job_place *after,
                  struct pb_err *err)
{
    enum pb_job_statement which = after->seq != 0 ? PB_JOB_WAITING_LIKE : PB_JOB_WAITING_LESS;
    int64_t n = FIRST_ROWS;
    const int rc = store->reserves && after->seq == 0 ? choose_free(store, search, err) : 0;
    if (rc < 0)
        return rc;
    while (search->found == 0 && search->limit > 0 && !search->gives_up) {
        n = n < search->limit ? n : search->limit;
        const int rows = look_at(store, which, search, n, err);
        if (rows < 0)
            return rows;
        if (rows < n && which == PB_JOB_WAITING_LESS)
            break; /* no more rows */
        which = rows < n ? PB_JOB_WAITING_LESS : PB_JOB_WAITING_LIKE;
        n *= 8;
    }
    bool more = search->found == 0 && search->limit == 0 && !search->gives_up;
    *after = more ? search->last : (struct pb_job_place){0};
    return search->found;
}

int pb_job_store_next(struct pb_job_store *store, struct pb_job_place *after, int64_t limit,
                      bool (*may)(void *user, const struct pb_job *job), void *user,
                      struct pb_err *err, struct pb_job *out_job)
{
    struct search search = {
        .may = may, .user = user, .limit = limit, .out = out_job, .last = *after};
    pb_job_store_lock(store);
    const int rc = choose(store, &search, after, err);
    pb_job_store_unlock(store);
    return rc;
}

void pb_job_store_reserve(struct pb_job_store *store, int n)
{
    pb_job_store_lock(store);
    store->reserves = pb_store_is_shared(store) ? n : 0;
    store->has_passed = store->has_reserved = false;
    pb_job_store_unlock(store);
}

bool pb_job_store_unreserve(struct pb_job_store *store)
{
    struct pb_sql_statement *s = NULL;
    pb_job_store_lock(store);
    if (store->has_reserved && (s = pb_job_row_begin(store, PB_JOB_UNRESERVE, NULL)) != NULL) {
        (void)pb_job_store_step(store, "find", s, NULL);
        pb_sql_reset(s);
    }
    const bool has_passed = store->reserves > 0 && store->has_passed;
    store->reserves = 0;
    pb_job_store_unlock(store);
    return has_passed;
}

void pb_job_row_count(struct pb_job_store *store)
{
    int64_t n[PB_JOB_STATUS_COUNT] = {0};
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOB_COUNTS, NULL);
    int rc;
    if (s == NULL)
        return;
    while ((rc = pb_job_store_step(store, "count", s, NULL)) > 0) {
        int status = (int)pb_sql_int(s, 0);
        if (status >= 0 && status < PB_JOB_STATUS_COUNT)
            n[status] = pb_sql_int(s, 1);
    }
    for (int i = 0; rc == 0 && i < PB_JOB_STATUS_COUNT; i++)
        atomic_store(&store->counts[i], n[i]);
    pb_sql_reset(s);
}

void pb_store_counts(const struct pb_job_store *store, int64_t out_counts[PB_JOB_STATUS_COUNT])
{
    for (int i = 0; i < PB_JOB_STATUS_COUNT; i++)
        out_counts[i] = atomic_load(&store->counts[i]);
}

uint64_t pb_job_store_steps(const struct pb_job_store *store)
{
    return store->db != NULL ? pb_sql_steps(store->db) : 0;
}
