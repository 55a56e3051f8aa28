/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tables of the job store, as the steps from each version to the next. */
#include "service/jobs/store_sqlite.h"

#include "config/base/base_name.h"
#include "pipeline/io/path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* 2: device_why; 3: uid, identity, counts; 4: the journal; 5: kept; 6: priority;
 * 7: folder; 8: delivered; 9: companion; 10: contents;
 * 11: their checksums have a kind; 12: set_parts; 13: inbox, set_windows;
 * 14: kept has quarantined inputs as well, and their files; service time; 15: delivered_ms;
 * 16: again, bbox, datetime; 17: manifest instead of delivered and has_checksum;
 * 18: order in which finished jobs are forgotten; 19: archive; contents of scenes in archives;
 * 20: epoch; 21: session; 22: bytes, is_long; 23: last_event; jobs_by_tail without negative
 * places; 24: node; 25: needs; 26: needs_gpu, error_memory, gaps, which only a
 * database has; 27: shunned */
/* Directory of the first delivered path, without `folder`: the inbox. */
#define FIRST_PATH "json_extract(delivered, '$[0]')"
#define INBOX                                                                                      \
    "substr(" FIRST_PATH ", 1, length(rtrim(" FIRST_PATH ", replace(" FIRST_PATH                   \
    ", '/', ''))) - 1 - CASE WHEN folder <> '' THEN length(folder) + 1 ELSE 0 END)"
#define NOW_MS   "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
#define ARCHIVED "(NEW.status = 2 OR (NEW.status = 4 AND NEW.error_code = 'input.duplicate'))"

/* Version 1, and the additions of each later version: a new file takes all the steps of an old
 * one. */
const char *const pb_job_schema[PB_JOB_SCHEMA_VERSION] = {
    "CREATE TABLE jobs (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
    " name TEXT NOT NULL, created_ms INTEGER NOT NULL, status INTEGER NOT NULL,"
    " owned INTEGER NOT NULL, scene TEXT NOT NULL, pipeline TEXT NOT NULL, input TEXT,"
    " attempts INTEGER NOT NULL, started_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
    " finished_ms INTEGER NOT NULL, progress INTEGER NOT NULL, stage TEXT NOT NULL,"
    " device TEXT NOT NULL, tiles_done INTEGER NOT NULL, tiles_total INTEGER NOT NULL,"
    " bytes_read INTEGER NOT NULL, bytes_written INTEGER NOT NULL, elapsed_ms INTEGER NOT NULL,"
    " directory TEXT, products TEXT, report TEXT, error_code TEXT NOT NULL,"
    " error_message TEXT NOT NULL, error_hint TEXT NOT NULL);"
    "CREATE INDEX jobs_by_status ON jobs (status, seq);"
    "PRAGMA user_version = 1;",

    "ALTER TABLE jobs ADD COLUMN device_why TEXT NOT NULL DEFAULT '';"
    "PRAGMA user_version = 2;",

    "ALTER TABLE jobs ADD COLUMN uid INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE jobs ADD COLUMN identity TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX jobs_by_tail ON jobs (seq);" /* see version 23 */
    "CREATE INDEX jobs_finished ON jobs (seq) WHERE status > 1;"
    "CREATE TABLE job_counts (status INTEGER PRIMARY KEY, n INTEGER NOT NULL);"
    "INSERT INTO job_counts VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0);"
    "UPDATE job_counts SET n = (SELECT count(*) FROM jobs WHERE jobs.status = job_counts.status);"
    "CREATE TRIGGER jobs_inserted AFTER INSERT ON jobs BEGIN"
    " UPDATE job_counts SET n = n + 1 WHERE status = NEW.status; END;"
    "CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs BEGIN"
    " UPDATE job_counts SET n = n - 1 WHERE status = OLD.status; END;"
    "CREATE TRIGGER jobs_moved AFTER UPDATE OF status ON jobs WHEN OLD.status <> NEW.status BEGIN"
    " UPDATE job_counts SET n = n - 1 WHERE status = OLD.status;"
    " UPDATE job_counts SET n = n + 1 WHERE status = NEW.status; END;"
    "PRAGMA user_version = 3;",

    /* Numbers of events begin at the milliseconds since 1970: above those of an older store,
       because no store has more than a thousand events a second for long. */
    "CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER NOT NULL,"
    " kind TEXT NOT NULL, job TEXT NOT NULL, pipeline TEXT NOT NULL, data TEXT NOT NULL);"
    "INSERT INTO sqlite_sequence (name, seq) VALUES"
    " ('events', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));"
    "CREATE TABLE subscribers (name TEXT PRIMARY KEY, seq INTEGER NOT NULL, events TEXT NOT NULL,"
    " pipelines TEXT NOT NULL, expire_ms INTEGER NOT NULL, delivered INTEGER NOT NULL DEFAULT 0,"
    " given_up INTEGER NOT NULL DEFAULT 0, expired INTEGER NOT NULL DEFAULT 0);"
    "PRAGMA user_version = 4;",

    /* For older jobs the time of the move of their inputs is unknown: some time after the end. */
    "CREATE TABLE kept (path TEXT PRIMARY KEY, since_ms INTEGER NOT NULL);"
    "CREATE INDEX kept_by_age ON kept (since_ms);"
    "INSERT OR IGNORE INTO kept SELECT input, finished_ms FROM jobs"
    " WHERE owned = 1 AND status = 2 AND input IS NOT NULL;"
    "CREATE TRIGGER jobs_kept AFTER UPDATE OF input ON jobs"
    " WHEN NEW.owned = 1 AND NEW.status = 2 AND NEW.input IS NOT NULL"
    " AND (NEW.input IS NOT OLD.input OR OLD.status <> 2) BEGIN"
    " INSERT OR REPLACE INTO kept VALUES (NEW.input,"
    " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
    "PRAGMA user_version = 5;",

    /* rank: -priority, so that the index has the order of the queue. */
    "ALTER TABLE jobs ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX jobs_waiting ON jobs (rank, seq) WHERE status = 0;"
    "PRAGMA user_version = 6;",

    "ALTER TABLE jobs ADD COLUMN folder TEXT;"
    "PRAGMA user_version = 7;",

    "ALTER TABLE jobs ADD COLUMN delivered TEXT;"
    "PRAGMA user_version = 8;",

    "ALTER TABLE jobs ADD COLUMN companion TEXT;"
    "ALTER TABLE jobs ADD COLUMN has_checksum INTEGER NOT NULL DEFAULT 0;"
    "CREATE TRIGGER companions_kept AFTER UPDATE OF companion ON jobs"
    " WHEN NEW.owned = 1 AND NEW.status = 2 AND NEW.companion IS NOT NULL"
    " AND (NEW.companion IS NOT OLD.companion OR OLD.status <> 2) BEGIN"
    " INSERT OR REPLACE INTO kept VALUES (NEW.companion,"
    " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
    "PRAGMA user_version = 9;",

    /* Inputs of skipped duplicates are archived like those of successful jobs. */
    "CREATE TABLE contents (pipeline TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " sha256 TEXT NOT NULL, job TEXT NOT NULL, directory TEXT NOT NULL, time_ms INTEGER NOT NULL,"
    " PRIMARY KEY (pipeline, bytes, sha256));"
    "CREATE INDEX contents_by_age ON contents (time_ms);"
    "ALTER TABLE jobs ADD COLUMN anyway INTEGER NOT NULL DEFAULT 0;"
    "DROP TRIGGER jobs_kept;"
    "DROP TRIGGER companions_kept;"
    "CREATE TRIGGER jobs_kept AFTER UPDATE OF input ON jobs"
    " WHEN NEW.owned = 1 AND " ARCHIVED " AND NEW.input IS NOT NULL"
    " AND (NEW.input IS NOT OLD.input OR OLD.status <> NEW.status) BEGIN"
    " INSERT OR REPLACE INTO kept VALUES (NEW.input,"
    " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
    "CREATE TRIGGER companions_kept AFTER UPDATE OF companion ON jobs"
    " WHEN NEW.owned = 1 AND " ARCHIVED " AND NEW.companion IS NOT NULL"
    " AND (NEW.companion IS NOT OLD.companion OR OLD.status <> NEW.status) BEGIN"
    " INSERT OR REPLACE INTO kept VALUES (NEW.companion,"
    " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
    "PRAGMA user_version = 10;",

    "ALTER TABLE contents RENAME COLUMN sha256 TO checksum;"
    "UPDATE contents SET checksum = 'sha256:' || checksum;"
    "PRAGMA user_version = 11;",

    /* Present places of the inputs of successful jobs of loose files (set_parts.h). */
    "ALTER TABLE jobs ADD COLUMN set_id TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN replaces TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX jobs_of_sets ON jobs (scene) WHERE set_id <> '' AND status < 2;"
    "CREATE TABLE set_parts (job TEXT PRIMARY KEY, set_id TEXT NOT NULL, pipeline TEXT NOT NULL,"
    " folder TEXT NOT NULL, scene TEXT NOT NULL, path TEXT NOT NULL, delivered TEXT,"
    " directory TEXT, time_ms INTEGER NOT NULL);"
    "CREATE INDEX set_parts_by_scene ON set_parts (scene, pipeline, folder, time_ms);"
    "CREATE INDEX set_parts_by_set ON set_parts (set_id, time_ms);"
    "CREATE INDEX set_parts_by_path ON set_parts (path);"
    "CREATE TRIGGER jobs_part AFTER UPDATE OF status, input ON jobs"
    " WHEN NEW.set_id <> '' AND NEW.owned = 1 AND NEW.status = 2 AND NEW.input IS NOT NULL"
    " AND (NEW.input IS NOT OLD.input OR OLD.status <> 2) BEGIN"
    " INSERT OR REPLACE INTO set_parts VALUES (NEW.id, NEW.set_id, NEW.pipeline,"
    " ifnull(NEW.folder, ''), NEW.scene, NEW.input, NEW.delivered, NEW.directory,"
    " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
    "PRAGMA user_version = 12;",

    /* set_windows: input.complete.reopen as it was last configured (set_parts.h). */
    "ALTER TABLE jobs ADD COLUMN inbox TEXT;"
    "UPDATE jobs SET inbox = " INBOX " WHERE owned = 1 AND json_valid(delivered);"
    "ALTER TABLE set_parts ADD COLUMN inbox TEXT NOT NULL DEFAULT '';"
    "UPDATE set_parts SET inbox = ifnull(" INBOX ", '') WHERE json_valid(delivered);"
    "DROP INDEX set_parts_by_scene;"
    "CREATE INDEX set_parts_by_scene ON set_parts (scene, pipeline, "
    "inbox, folder, time_ms);"
    "DROP TRIGGER jobs_part;"
    "CREATE TRIGGER jobs_part AFTER UPDATE OF status, input ON jobs"
    " WHEN NEW.set_id <> '' AND NEW.owned = 1 AND NEW.status = 2 AND "
    "NEW.input IS NOT NULL"
    " AND (NEW.input IS NOT OLD.input OR OLD.status <> 2) BEGIN"
    " INSERT OR REPLACE INTO set_parts (job, set_id, pipeline, inbox, "
    "folder, scene, path,"
    " delivered, directory, time_ms) VALUES (NEW.id, NEW.set_id, "
    "NEW.pipeline,"
    " ifnull(NEW.inbox, ''), ifnull(NEW.folder, ''), NEW.scene, "
    "NEW.input, NEW.delivered,"
    " NEW.directory, CAST((julianday('now') - 2440587.5) * 86400000 AS "
    "INTEGER)); END;"
    "CREATE TABLE set_windows (pipeline TEXT PRIMARY KEY, reopen_ms "
    "INTEGER NOT NULL);"
    "PRAGMA user_version = 13;",

    /* kept: inputs and companions of finished jobs (kept.h). A row follows its file: it is made
     * with the end of the job, when the file is still in work/. up_ms: service time since the file
     * is there; NULL: not counted yet. */
    "DROP TRIGGER jobs_kept;"
    "DROP TRIGGER companions_kept;"
    "DROP TRIGGER IF EXISTS jobs_unkept;"
    "ALTER TABLE kept RENAME TO kept_before;"
    "CREATE TABLE kept (path TEXT PRIMARY KEY, since_ms INTEGER NOT NULL,"
    " job TEXT NOT NULL DEFAULT '', kind INTEGER NOT NULL DEFAULT 0, up_ms INTEGER, files BLOB,"
    " said INTEGER NOT NULL DEFAULT 0);"
    "INSERT INTO kept (path, since_ms) SELECT path, since_ms FROM kept_before;"
    "DROP TABLE kept_before;"
    "CREATE INDEX kept_by_time ON kept (kind, up_ms);"
    "CREATE INDEX kept_by_job ON kept (job);"
    "CREATE TRIGGER jobs_kept AFTER UPDATE OF input ON jobs"
    " WHEN NEW.owned = 1 AND NEW.status > 1 AND NEW.input IS NOT NULL"
    " AND (NEW.input IS NOT OLD.input OR OLD.status <> NEW.status) BEGIN"
    " UPDATE OR REPLACE kept SET path = NEW.input, since_ms = " NOW_MS
    " WHERE job = NEW.id AND path = OLD.input AND path <> NEW.input;"
    " INSERT OR REPLACE INTO kept (path, since_ms, job, kind)"
    " SELECT NEW.input, " NOW_MS ", NEW.id, NOT " ARCHIVED
    " WHERE NOT EXISTS (SELECT 1 FROM kept WHERE path = NEW.input AND job = NEW.id); END;"
    "CREATE TRIGGER companions_kept AFTER UPDATE OF companion ON jobs"
    " WHEN NEW.owned = 1 AND NEW.status > 1 AND NEW.companion IS NOT NULL"
    " AND (NEW.companion IS NOT OLD.companion OR OLD.status <> NEW.status) BEGIN"
    " UPDATE OR REPLACE kept SET path = NEW.companion, since_ms = " NOW_MS
    " WHERE job = NEW.id AND path = OLD.companion AND path <> NEW.companion;"
    " INSERT OR REPLACE INTO kept (path, since_ms, job, kind)"
    " SELECT NEW.companion, " NOW_MS ", NEW.id, CASE WHEN " ARCHIVED " THEN 0 ELSE 2 END"
    " WHERE NOT EXISTS (SELECT 1 FROM kept WHERE path = NEW.companion AND job = NEW.id); END;"
    "CREATE TRIGGER jobs_unkept AFTER UPDATE OF status, input ON jobs"
    " WHEN OLD.status > 1 AND (NEW.status < 2 OR NEW.input IS NULL) BEGIN"
    " DELETE FROM kept WHERE job = NEW.id; END;"
    "ALTER TABLE set_parts ADD COLUMN up_ms INTEGER;"
    "UPDATE set_parts SET up_ms = 0;"
    "CREATE TABLE IF NOT EXISTS service_time (id INTEGER PRIMARY KEY, boot TEXT NOT NULL,"
    " boot_ms INTEGER NOT NULL, total_ms INTEGER NOT NULL);"
    "PRAGMA user_version = 14;",

    "ALTER TABLE jobs ADD COLUMN delivered_ms INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 15;",

    "ALTER TABLE jobs ADD COLUMN again TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN bbox TEXT;"
    "ALTER TABLE jobs ADD COLUMN datetime TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX jobs_again ON jobs (again) WHERE again <> '';"
    "CREATE INDEX jobs_by_set ON jobs (set_id) WHERE set_id <> '';"
    "PRAGMA user_version = 16;",

    /* companion remains, as a copy of a part of the manifest: the triggers use it. */
    "DROP TRIGGER jobs_part;"
    "ALTER TABLE jobs ADD COLUMN manifest TEXT;"
    "UPDATE jobs SET manifest = pb_manifest(inbox, delivered, companion, has_checksum);"
    "ALTER TABLE jobs DROP COLUMN delivered;"
    "ALTER TABLE jobs DROP COLUMN has_checksum;"
    "ALTER TABLE set_parts ADD COLUMN manifest TEXT;"
    "UPDATE set_parts SET manifest = pb_manifest(inbox, delivered, NULL, 0);"
    "ALTER TABLE set_parts DROP COLUMN delivered;"
    "CREATE TRIGGER jobs_part AFTER UPDATE OF status, input ON jobs"
    " WHEN NEW.set_id <> '' AND NEW.owned = 1 AND NEW.status = 2 AND NEW.input IS NOT NULL"
    " AND (NEW.input IS NOT OLD.input OR OLD.status <> 2) BEGIN"
    " INSERT OR REPLACE INTO set_parts (job, set_id, pipeline, inbox, folder, scene, path,"
    " manifest, directory, time_ms) VALUES (NEW.id, NEW.set_id, NEW.pipeline,"
    " ifnull(NEW.inbox, ''), ifnull(NEW.folder, ''), NEW.scene, NEW.input, NEW.manifest,"
    " NEW.directory, " NOW_MS "); END;"
    "PRAGMA user_version = 17;",

    "DROP INDEX jobs_finished;"
    "CREATE INDEX jobs_finished ON jobs (" PB_JOB_PRUNE_ORDER ") WHERE status > 1;"
    "PRAGMA user_version = 18;",

    /* archive: see archive_rows.h. The path of an archive is that of its job. */
    "ALTER TABLE jobs ADD COLUMN archive TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX jobs_by_archive ON jobs (archive, scene) WHERE archive <> '';"
    "CREATE INDEX jobs_open_scenes ON jobs (archive) WHERE archive <> '' AND status < 2;"
    "DROP INDEX jobs_finished;"
    "CREATE INDEX jobs_finished ON jobs (" PB_JOB_PRUNE_ORDER ") WHERE " PB_JOB_PRUNABLE ";"
    "CREATE TRIGGER jobs_of_archive AFTER UPDATE OF input ON jobs"
    " WHEN NEW.input IS NOT OLD.input BEGIN"
    " UPDATE jobs SET input = NEW.input WHERE archive = NEW.id AND archive <> ''; END;"
    "ALTER TABLE contents RENAME TO contents_before;"
    "DROP INDEX contents_by_age;"
    "CREATE TABLE contents (pipeline TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " checksum TEXT NOT NULL, job TEXT NOT NULL, directory TEXT NOT NULL, time_ms INTEGER NOT NULL,"
    " scene TEXT NOT NULL DEFAULT '', PRIMARY KEY (pipeline, scene, bytes, checksum));"
    "INSERT INTO contents (pipeline, bytes, checksum, job, directory, time_ms)"
    " SELECT pipeline, bytes, checksum, job, directory, time_ms FROM contents_before;"
    "DROP TABLE contents_before;"
    "CREATE INDEX contents_by_age ON contents (time_ms);"
    "PRAGMA user_version = 19;",

    "ALTER TABLE jobs ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 20;",

    /* session: number of the connect that took the job; jobs_running: a scene runs once. */
    "ALTER TABLE jobs ADD COLUMN session INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX jobs_running ON jobs (scene) WHERE status = 1;"
    "PRAGMA user_version = 21;",

    "ALTER TABLE jobs ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN is_long INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 22;",

    /* last_event: the greatest number that an event had. */
    "DROP INDEX jobs_by_tail;"
    "CREATE INDEX jobs_by_tail ON jobs (" PB_JOB_TAIL ");"
    "CREATE VIEW last_event (seq) AS SELECT seq FROM sqlite_sequence WHERE name = 'events';"
    "PRAGMA user_version = 23;",

    "ALTER TABLE jobs ADD COLUMN node TEXT NOT NULL DEFAULT '';"
    "PRAGMA user_version = 24;",

    "ALTER TABLE jobs ADD COLUMN needs TEXT NOT NULL DEFAULT '';"
    "PRAGMA user_version = 25;",

    "ALTER TABLE jobs ADD COLUMN needs_gpu INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN error_memory INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE gaps (last_seq INTEGER NOT NULL, next_seq INTEGER NOT NULL);"
    "PRAGMA user_version = 26;",

    "ALTER TABLE jobs ADD COLUMN shunned TEXT NOT NULL DEFAULT '';"
    "PRAGMA user_version = 27;",
};

/* --- version 17: manifests of older rows ----------------------------------------------------- */

#define DELIVERED_MAX (1 << 20)

static const char *text_of(sqlite3_value *value)
{
    return (const char *)sqlite3_value_text(value);
}

/* Adds the paths of the JSON array, and the companion; invalid paths are left out. -ENOMEM. */
static int read_older(struct pb_job *job, const char *delivered, const char *companion,
                      bool verifies)
{
    struct pb_json_value *list = NULL;
    char directory[PATH_MAX];
    int rc =
        delivered != NULL ? pb_json_parse(delivered, strlen(delivered), DELIVERED_MAX, &list) : 0;
    for (size_t i = 0; rc != -ENOMEM && i < pb_json_count(list); i++) {
        const char *path = pb_json_text_of(pb_json_at(list, i));
        if (path == NULL || strlen(path) >= sizeof directory)
            continue;
        const struct pb_manifest_entry file = {.path = (char *)pb_base_name(path), .bytes = -1};
        pb_path_parent(path, directory);
        rc = pb_job_add_delivered(job, directory, &file, NULL);
    }
    pb_json_release(list);
    if (rc == -ENOMEM || (companion == NULL && !verifies))
        return rc;
    rc = pb_job_expect_companion(job, "/", companion ? pb_base_name(companion) : "checksum",
                                 verifies);
    return rc || companion == NULL ? rc : pb_job_set_companion(job, companion);
}

/* pb_manifest(inbox, delivered, companion, has_checksum): JSON form of the manifest; NULL for a job
 * without files. */
static void manifest_of(sqlite3_context *context, int n, sqlite3_value **value)
{
    struct pb_job job;
    (void)n;
    pb_job_init(&job);
    const char *inbox = text_of(value[0]);
    int rc = pb_job_set(&job.inbox, inbox != NULL && inbox[0] != '\0' ? inbox : NULL);
    if (rc == 0)
        rc = read_older(&job, text_of(value[1]), text_of(value[2]),
                        sqlite3_value_int(value[3]) != 0);
    struct pb_json *json = pb_json_create(false);
    pb_scene_manifest_print(&job.manifest, json, NULL);
    const char *text = pb_json_text(json, NULL);
    if (rc == -ENOMEM || text == NULL)
        sqlite3_result_error_nomem(context);
    else if (job.manifest.n_entries > 0)
        sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
    pb_json_destroy(json);
    pb_job_fini(&job);
}

bool pb_job_schema_prepare(sqlite3 *db)
{
    return sqlite3_create_function(db, "pb_manifest", 4, SQLITE_UTF8, NULL, manifest_of, NULL,
                                   NULL) == SQLITE_OK;
}
