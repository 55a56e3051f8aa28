/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_STORE_SQL_H
#define PB_JOB_STORE_SQL_H
/* Private to the job store: job_store.c opens and closes the database, of which only store_sqlite.c
 * and schema_sqlite.c know that it is a file, job_rows.c reads and writes its rows, job_changes.c
 * has the changes that the service makes, job_commit.c groups the changes of several threads into
 * transactions; journal.c has the rows of events, subscribers.c their receivers. No other file
 * includes this. */
#include "service/jobs/job_store.h"

#include "service/base/files.h"
#include "service/jobs/service_time.h"
#include "service/jobs/sql.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

enum pb_job_statement {
    PB_JOB_INSERT,
    PB_JOB_UPDATE,
    PB_JOB_FIND_ID,
    PB_JOB_FIND_TAIL,
    PB_JOB_WAITING_LIKE,
    PB_JOB_WAITING_LESS,
    PB_JOB_FIND_SEQ,
    PB_JOB_WAITING_FREE,
    PB_JOB_RESERVE,
    PB_JOB_UNRESERVE,
    PB_JOB_COUNTS,
    PB_JOB_RUNNING_ONE,
    PB_JOB_RUNNING_OVER,
    PB_JOB_RUNNING_SCENE,
    PB_JOB_RUNNING_EPOCH,
    PB_JOB_STATE,
    PB_JOB_STATE_FREE,
    PB_JOURNAL_ADD,
    PB_JOURNAL_RANGE,
    PB_JOURNAL_LOST,
    PB_JOURNAL_GAPS,
    PB_JOURNAL_READ,
    PB_SUBSCRIBER_FIND,
    PB_SUBSCRIBER_NEXT,
    PB_SUBSCRIBER_STATES,
    PB_SUBSCRIBER_ACK,
    PB_SET_LAST,
    PB_NODES_LOOK,
    PB_JOB_STATEMENTS
};

#define PB_JOB_STALE     1                     /* result of a change that is refused */
#define PB_SET_PART_LAST "9223372036854775807" /* service time of a part before it is set */

/* Change of one call, on the stack of its thread until `done`. */
struct pb_job_change {
    STAILQ_ENTRY(pb_job_change) next;
    /* Called inside a transaction; may be repeated in another one after that failed. Negative: its
     * changes must be rolled back. */
    int (*apply)(struct pb_job_store *store, struct pb_job_change *change);
    struct pb_job *const *jobs; /* jobs to insert; for an update one job, which is not changed */
    int *results;               /* offer, take: for each job 0, -EEXIST or -ESTALE */
    size_t n;
    const char *sql; /* any other statement, with one integer */
    int64_t number;
    const struct pb_subscriber *subscribers; /* n subscribers; for an ack one, with `number` */
    bool given_up;
    bool bulk;          /* waits while other changes are to be stored */
    bool may_be_stored; /* COMMIT failed after an earlier try, which may be stored nevertheless */
    bool done;
    int result;
    struct pb_err err;
};
STAILQ_HEAD(pb_job_change_queue, pb_job_change);

struct pb_job_store {
    const struct pb_store_kind *kind;
    char place[PB_FILES_PATH_BYTES]; /* path of the file of SQLite, or conninfo */
    char node[64];                   /* name of this service in a database */
    bool is_shared;                  /* several services change the store */
    /* NULL = not connected. Owned by the thread that set in_use */
    struct pb_sql *db;
    pthread_mutex_t lock; /* protects in_use, changes, bulk_waited, done of each change */
    pthread_cond_t freed; /* signalled when in_use ended, or changes are done */
    bool in_use;
    bool bulk_waited; /* the last transaction left bulk changes out */
    struct pb_job_change_queue changes;
    atomic_uint_fast64_t commits;
    atomic_int_fast64_t counts[PB_JOB_STATUS_COUNT]; /* jobs after the last commit */
    /* Write-ahead log of SQLite: its size now and at the last checkpoint, which has a connection of
     * its own; 0 for other kinds. */
    atomic_int log_pages, moved_pages;
    struct sqlite3 *checkpointer;
    atomic_bool admits; /* readers may connect */
    /* store of a reader, which connects when that store admits it */
    const struct pb_job_store *of;
    /* Prepared at first use, reset after each use. */
    struct pb_sql_statement *statement[PB_JOB_STATEMENTS];
    struct pb_sql_statement *list[PB_JOB_MASK_ALL + 1u]; /* indexed by a mask of states */
    struct pb_service_time time; /* service time at connect; only for a writer */
    struct pb_store_needs
        *needs;          /* pipelines of this service, owned; NULL: unknown. Read in transactions */
    int64_t session;     /* number of this connect, or of its last join, in the rows of its jobs */
    int64_t lease_ms;    /* lease of the sessions of this node */
    int64_t looked;      /* number of the last event at the last look (nodes.c); -1: no look yet */
    int64_t unseen;      /* event after which the next look for all jobs begins; -1: looked */
    bool has_news;       /* there are events or requests of which other nodes were not notified */
    bool wakes;          /* nodes may start jobs, or have requests: they are notified at once */
    bool is_unsettled;   /* events of the last commit may have no numbers yet */
    int64_t notified_ms; /* monotonic: last notification */
    int reserves;        /* number of jobs that a reader reserves first; 0: none */
    bool has_reserved, has_passed; /* it may have locks; it passed over jobs */
    atomic_size_t n_alive;         /* number of nodes that report, at the last list */
    char root[64]; /* id of the directory of products of the nodes; "" before the first join */
    bool has_root; /* its token was made */
};

/* Connects a reader if it is admitted. service.state if there is no database to read. */
int pb_job_store_ready(struct pb_job_store *store, struct pb_err *err);
/* Sets service.state with the engine's message; `what`: description of the table. Returns a
 * negative value. */
int pb_job_store_fail(struct pb_job_store *store, const char *what, struct pb_err *err);
/* Prepares a statement, which must be finalized; NULL and *err. */
struct pb_sql_statement *pb_job_store_prepare(struct pb_job_store *store, const char *what,
                                              const char *text, struct pb_err *err);
/* Reads the first or next row of a statement: 1, 0 if absent, or negative and *err. s NULL (not
 * prepared): negative, and *err stays as it is. */
int pb_job_store_step(struct pb_job_store *store, const char *what, struct pb_sql_statement *s,
                      struct pb_err *err);
/* Does the same for a statement without rows, and finalizes it. Returns the number of changed
 * rows. */
int pb_job_store_run(struct pb_job_store *store, const char *what, struct pb_sql_statement *s,
                     struct pb_err *err);

/* --- service_time.c --- */
/* Loads the service time of a store that was just opened for writing. */
int pb_service_time_load(struct pb_job_store *store, struct pb_err *err);

/* Order in which finished jobs are forgotten: those of files that no pipeline takes are first,
 * because foreign files must not push the jobs of scenes out of the store. */
#define PB_JOB_PRUNE_ORDER "(error_code = 'input.no_pipeline') DESC, seq"
/* Finished jobs that are counted and chosen. A scene's job is forgotten with its archive's. */
#define PB_JOB_PRUNABLE "status > 1 AND (archive = '' OR again <> '')"

/* --- job_fields.c --- */
/* Sets the parameters from `at` on to the fields from `first` on. Strings are borrowed. Returns
 * false if out of memory. */
bool pb_job_fields_set(struct pb_sql_statement *s, int at, size_t first, const struct pb_job *job);
/* Reads PB_JOB_COLUMNS. out_job is initialised here; false = out of memory (it then needs no
 * fini). */
bool pb_job_fields_read(struct pb_sql_statement *s, struct pb_job *out_job);

/* --- job_rows.c; in a transaction of the thread that uses the database --- */
/* Inserts rows. out_results[i]: 0, or -EEXIST if the id exists. */
int pb_job_row_insert(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                      int *out_results, struct pb_err *err);
/* Looks for the row of an insert that failed but may be stored. Sets seq and returns 0 if a row has
 * the id, input and node of the job, otherwise -EEXIST (no *err). */
int pb_job_row_find_own(struct pb_job_store *store, struct pb_job *job, struct pb_err *err);
/* Stores the job in its row. PB_JOB_STALE: the row is unchanged, because it has a later epoch. */
int pb_job_row_update(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err);
/* Does the same for a start, if the row waits in the epoch before, no job of its scene runs and no
 * other transaction changes the row now. may_be_stored: also if an earlier try has stored this
 * start, or stores it now. */
int pb_job_row_take(struct pb_job_store *store, const struct pb_job *job, bool may_be_stored,
                    struct pb_err *err);
/* Stores a job that waits again, if the row has its start of this session, or a transaction that is
 * not over yet stores that. */
int pb_job_row_untake(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err);
/* Reads the counts of jobs into store->counts, which stay if that fails. */
void pb_job_row_count(struct pb_job_store *store);
/* Runs a statement with one integer; returns the number of changed rows. */
int pb_job_row_execute(struct pb_job_store *store, const char *text, int64_t number,
                       struct pb_err *err);

/* Begins a kept statement of the store, which must be reset; NULL and *err. */
struct pb_sql_statement *pb_job_row_begin(struct pb_job_store *store, enum pb_job_statement which,
                                          struct pb_err *err);
/* Returns 1 if the job is stored and has no later run than this one, 0 or a negative errno. */
int pb_job_row_is_latest(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err);
/* Returns 1 if this session runs the job in that epoch, otherwise 0 or a negative errno. */
int pb_job_row_is_running(struct pb_job_store *store, const char *id, int64_t epoch,
                          struct pb_err *err);
/* Finds the oldest job that a session runs which is over: 1 and *out_job, 0 if absent. */
int pb_job_row_running(struct pb_job_store *store, struct pb_err *err, struct pb_job *out_job);

/* --- nodes.c --- */
/* Condition on rows r of requests that node ?1 takes. A cancel concerns the job: if its node ended,
 * any node takes it when the job does not run there any more. */
#define PB_NODES_REQUESTS_MINE                                                                     \
    "(r.node = ?1 OR (r.kind = 0 AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.node = r.node AND"  \
    " n.session <> 0) AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.job AND j.status = 1"    \
    " AND j.node = r.node)))"
#define PB_NODES_LOOK_EVENTS "256" /* events of a look */
/* Columns: those of a job, or NULL; number of the last event; true if requests wait for this node;
 * number of the job's last event. There is a row without a job if there is no event. ?3 = 0: only
 * jobs of sets; the events are not read if there is no such job. */
#define PB_NODES_LOOK_SQL                                                                          \
    "SELECT " PB_JOB_COLUMNS ", x.last, x.waits, x.event FROM (SELECT l.seq AS last,"              \
    " EXISTS (SELECT 1 FROM requests r WHERE " PB_NODES_REQUESTS_MINE ") AS waits,"                \
    " c.seq AS event,"                                                                             \
    " c.job AS of_job FROM last_event l LEFT JOIN (SELECT max(e.seq) AS seq, e.job FROM"           \
    " (SELECT seq, job FROM events WHERE seq > ?2 AND (?3 <> 0 OR EXISTS (SELECT 1 FROM jobs"      \
    " WHERE set_id <> '')) ORDER BY seq LIMIT " PB_NODES_LOOK_EVENTS                               \
    ") AS e GROUP BY e.job) AS c ON true) AS x LEFT JOIN jobs ON jobs.id = x.of_job"               \
    " AND jobs.node <> ?1 AND (?3 <> 0 OR jobs.set_id <> '') ORDER BY x.event"
/* Ends the sessions whose lease is over. */
int pb_nodes_end_sessions(struct pb_job_store *store, struct pb_err *err);

/* --- job_store.c --- */
/* Makes the number of a session, which no other has. */
int64_t pb_job_store_make_session(void);

/* --- journal.c; for the same files --- */
/* Members of a job before a change of its row. */
struct pb_job_before {
    bool is_there;
    enum pb_job_status status;
    int64_t epoch, session;
    char needs[PB_JOB_NEEDS_BYTES];
    char input[PB_FILES_PATH_BYTES];
};
/* Records the differences between the old and the new row of the job. */
int pb_journal_record(struct pb_job_store *store, const struct pb_job_before *before,
                      const struct pb_job *job, struct pb_err *err);
/* Records the new rows of the jobs whose result is 0. */
int pb_journal_record_new(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                          const int *results, struct pb_err *err);
/* pb_journal_newest for a thread that uses the database. */
int pb_journal_find_newest(struct pb_job_store *store, int64_t count, int64_t *out_after,
                           struct pb_err *err);
/* Reads the event in a row of PB_EVENT_COLUMNS, borrowed from s until its next step. */
struct pb_event;
void pb_journal_take(struct pb_sql_statement *s, struct pb_event *out);
#define PB_EVENT_COLUMNS "e.seq, e.time_ms, e.kind, e.job, e.data"

/* --- job_commit.c --- */
/* Only the calling thread uses db and statements, from take to leave. */
void pb_job_store_lock(struct pb_job_store *store);
void pb_job_store_unlock(struct pb_job_store *store);
/* Returns when the change is on the disk, or has failed (its result and err). */
int pb_job_store_commit(struct pb_job_store *store, struct pb_job_change *change,
                        struct pb_err *err);

#define PB_JOB_FIXED     13 /* columns that an update of a job does not change */
#define PB_JOB_SET_COUNT 37 /* columns that may change */
#define PB_JOB_HOLD_SET  "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?"
#define PB_JOB_COLUMNS_FIXED                                                                       \
    "id, name, created_ms, uid, rank, folder, inbox, delivered_ms, again, archive, bytes, needs, " \
    "needs_gpu, "
#define PB_JOB_COLUMNS_SET                                                                         \
    "status, owned, scene, pipeline, input, attempts, started_ms, updated_ms, finished_ms,"        \
    " progress, stage, device, tiles_done, tiles_total, bytes_read, bytes_written, elapsed_ms,"    \
    " directory, products, report, error_code, error_message, error_hint, device_why, identity, "  \
    "manifest, companion, anyway, set_id, replaces, bbox, datetime, epoch, is_long, node,"         \
    " error_memory, shunned"
#define PB_JOB_COLUMNS "seq, " PB_JOB_COLUMNS_FIXED PB_JOB_COLUMNS_SET

/* The last four characters of an id, reversed: the sort key of jobs_by_tail. A shorter id is filled
 * up, because engines differ in what is before the first character. */
#define PB_JOB_TAIL                                                                                \
    "substr('0000' || id, length(id) + 4, 1) || substr('0000' || id, length(id) + 3, 1) || "       \
    "substr('0000' || id, length(id) + 2, 1) || substr('0000' || id, length(id) + 1, 1)"
#define PB_JOB_TAIL_CHARS 4
#endif
