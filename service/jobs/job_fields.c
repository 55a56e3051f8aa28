/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Maps the members of a job to the columns of its row. */
#include "service/base/log.h"
#include "service/jobs/job_store_sql.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum field_kind {
    FIELD_INT64,
    FIELD_INT,
    FIELD_BOOL,
    FIELD_STATUS,
    FIELD_RANK,
    FIELD_TEXT,
    FIELD_STRING,
    FIELD_MANIFEST,
    FIELD_INPUT,
    FIELD_COMPANION
};

/* Columns and the members that they hold, in one order for reading and writing. FIELD_RANK is an
 * int that is stored with the opposite sign, so that the order of the index is that of the queue;
 * FIELD_TEXT is a char array, FIELD_STRING a malloc'd string or NULL. A manifest has
 * three columns, because triggers and indexes use its paths: FIELD_INPUT is the present path of the
 * input; FIELD_MANIFEST the JSON form of the rest; FIELD_COMPANION, the present path of its
 * companion, is only written, because the JSON form has it as well. The first PB_JOB_FIXED columns
 * never change. */
struct field {
    enum field_kind kind;
    size_t offset, bytes;
};
#define FIELD(kind, member)                                                                        \
    {                                                                                              \
        FIELD_##kind, offsetof(struct pb_job, member), sizeof(((struct pb_job *)0)->member)        \
    }
static const struct field fields[] = {
    FIELD(TEXT, id),           FIELD(TEXT, name),          FIELD(INT64, created_ms),
    FIELD(INT64, uid),         FIELD(RANK, priority),      FIELD(STRING, folder),
    FIELD(STRING, inbox),      FIELD(INT64, delivered_ms), FIELD(TEXT, again),
    FIELD(TEXT, archive),      FIELD(INT64, bytes),        FIELD(STATUS, status),
    FIELD(BOOL, owned),        FIELD(TEXT, scene),         FIELD(TEXT, pipeline),
    FIELD(INPUT, manifest),    FIELD(INT, attempts),       FIELD(INT64, started_ms),
    FIELD(INT64, updated_ms),  FIELD(INT64, finished_ms),  FIELD(INT, progress),
    FIELD(TEXT, stage),        FIELD(TEXT, device),        FIELD(INT64, tiles_done),
    FIELD(INT64, tiles_total), FIELD(INT64, bytes_read),   FIELD(INT64, bytes_written),
    FIELD(INT64, elapsed_ms),  FIELD(STRING, directory),   FIELD(STRING, products),
    FIELD(STRING, report),     FIELD(TEXT, error.code),    FIELD(TEXT, error.message),
    FIELD(TEXT, error.hint),   FIELD(TEXT, device_why),    FIELD(TEXT, identity),
    FIELD(MANIFEST, manifest), FIELD(COMPANION, manifest), FIELD(BOOL, anyway),
    FIELD(TEXT, set_id),       FIELD(TEXT, replaces),      FIELD(STRING, bbox),
    FIELD(TEXT, datetime),     FIELD(INT64, epoch),        FIELD(BOOL, is_long),
};
static_assert((int)(sizeof fields / sizeof fields[0]) == PB_JOB_FIXED + PB_JOB_SET_COUNT &&
                  (int)(sizeof PB_JOB_HOLD_SET / 2) == PB_JOB_SET_COUNT,
              "a parameter for each field that changes");

/* Binds a copy of all but its input; NULL for a job without files. */
static bool bind_manifest(sqlite3_stmt *s, int at, const struct pb_scene_manifest *manifest)
{
    size_t bytes = 0;
    struct pb_scene_manifest files = *manifest;
    files.input = NULL;
    if (files.n_entries == 0)
        return sqlite3_bind_null(s, at) == SQLITE_OK;
    struct pb_json *json = pb_json_create(false);
    pb_scene_manifest_print(&files, json, NULL);
    const char *text = pb_json_text(json, &bytes);
    const bool bound = text != NULL && sqlite3_bind_text64(s, at, text, bytes, SQLITE_TRANSIENT,
                                                           SQLITE_UTF8) == SQLITE_OK;
    pb_json_destroy(json);
    return bound;
}

/* Binds fields first .. last to the parameters from `at` on. Strings are borrowed. */
bool pb_job_fields_bind(sqlite3_stmt *s, int at, size_t first, const struct pb_job *job)
{
    char path[PB_FILES_PATH_BYTES];
    bool bound = true;
    for (size_t i = first; i < sizeof fields / sizeof fields[0]; i++, at++) {
        const char *member = (const char *)job + fields[i].offset;
        switch (fields[i].kind) {
        case FIELD_INT64:
            (void)sqlite3_bind_int64(s, at, *(const int64_t *)(const void *)member);
            break;
        case FIELD_INT:
            (void)sqlite3_bind_int(s, at, *(const int *)(const void *)member);
            break;
        case FIELD_BOOL:
            (void)sqlite3_bind_int(s, at, *(const bool *)member);
            break;
        case FIELD_STATUS:
            (void)sqlite3_bind_int(s, at, (int)*(const enum pb_job_status *)(const void *)member);
            break;
        case FIELD_RANK:
            (void)sqlite3_bind_int(s, at, -*(const int *)(const void *)member);
            break;
        case FIELD_TEXT:
            (void)sqlite3_bind_text(s, at, member, -1, SQLITE_STATIC);
            break;
        case FIELD_STRING:
            (void)sqlite3_bind_text(s, at, *(char *const *)(const void *)member, -1, SQLITE_STATIC);
            break;
        case FIELD_MANIFEST:
            bound = bind_manifest(s, at, &job->manifest) && bound;
            break;
        case FIELD_INPUT:
            (void)sqlite3_bind_text(s, at, job->manifest.input, -1, SQLITE_STATIC);
            break;
        case FIELD_COMPANION:
            bound = sqlite3_bind_text(s, at, pb_job_companion(job, path), -1, SQLITE_TRANSIENT) ==
                        SQLITE_OK &&
                    bound;
            break;
        }
    }
    return bound;
}

/* Reads a text, cut to fit; "" for NULL. */
void pb_job_read_text(sqlite3_stmt *s, int at, char *member, size_t bytes)
{
    const unsigned char *text = sqlite3_column_text(s, at);
    size_t n = text ? strnlen((const char *)text, bytes - 1) : 0;
    if (n > 0)
        (void)memcpy(member, text, n);
    member[n] = '\0';
}

static enum pb_job_status read_status(sqlite3_stmt *s, int at)
{
    int number = sqlite3_column_int(s, at);
    return number >= 0 && number < PB_JOB_STATUS_COUNT ? (enum pb_job_status)number : PB_JOB_FAILED;
}

/* A text that is no manifest (a damaged row) leaves the manifest empty. The first one is logged,
 * because jobs are read often. */
static bool read_manifest(const unsigned char *text, struct pb_job *job)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const int rc = text != NULL ? pb_scene_manifest_parse((const char *)text, &job->manifest) : 0;
    if (rc != 0 && rc != -ENOMEM && !atomic_flag_test_and_set(&said))
        pb_log(PB_LOG_ERROR,
               "job store: the list of the files of job %s cannot be read (%s); its row is damaged "
               "or of another version; the job is used without that list",
               job->id, strerror(-rc));
    return rc != -ENOMEM;
}

/* Reads PB_JOB_COLUMNS into a job that is initialised here; false = out of memory (the job then
 * needs no fini). */
bool pb_job_fields_read(sqlite3_stmt *s, struct pb_job *job)
{
    const char *input = NULL;
    bool ok = true;
    pb_job_init(job);
    job->seq = sqlite3_column_int64(s, 0);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        void *member = (char *)job + fields[i].offset;
        int at = (int)i + 1;
        switch (fields[i].kind) {
        case FIELD_INT64:
            *(int64_t *)member = sqlite3_column_int64(s, at);
            break;
        case FIELD_INT:
            *(int *)member = sqlite3_column_int(s, at);
            break;
        case FIELD_BOOL:
            *(bool *)member = sqlite3_column_int(s, at) != 0;
            break;
        case FIELD_STATUS:
            *(enum pb_job_status *)member = read_status(s, at);
            break;
        case FIELD_RANK:
            *(int *)member = -sqlite3_column_int(s, at);
            break;
        case FIELD_TEXT:
            pb_job_read_text(s, at, member, fields[i].bytes);
            break;
        case FIELD_STRING:
            ok = pb_job_set(member, (const char *)sqlite3_column_text(s, at)) == 0 && ok;
            break;
        case FIELD_MANIFEST:
            ok = read_manifest(sqlite3_column_text(s, at), job) && ok;
            break;
        case FIELD_INPUT:
            input = (const char *)sqlite3_column_text(s, at);
            break;
        case FIELD_COMPANION:
            break;
        }
    }
    ok = pb_scene_manifest_set_input(&job->manifest, input) == 0 && ok;
    if (!ok)
        pb_job_fini(job);
    return ok;
}
