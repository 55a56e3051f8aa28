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
    FIELD(TEXT, id),
    FIELD(TEXT, name),
    FIELD(INT64, created_ms),
    FIELD(INT64, uid),
    FIELD(RANK, priority),
    FIELD(STRING, folder),
    FIELD(STRING, inbox),
    FIELD(INT64, delivered_ms),
    FIELD(TEXT, again),
    FIELD(TEXT, archive),
    FIELD(INT64, bytes),
    FIELD(TEXT, needs),
    FIELD(BOOL, needs_gpu),
    FIELD(STATUS, status),
    FIELD(BOOL, owned),
    FIELD(TEXT, scene),
    FIELD(TEXT, pipeline),
    FIELD(INPUT, manifest),
    FIELD(INT, attempts),
    FIELD(INT64, started_ms),
    FIELD(INT64, updated_ms),
    FIELD(INT64, finished_ms),
    FIELD(INT, progress),
    FIELD(TEXT, stage),
    FIELD(TEXT, device),
    FIELD(INT64, tiles_done),
    FIELD(INT64, tiles_total),
    FIELD(INT64, bytes_read),
    FIELD(INT64, bytes_written),
    FIELD(INT64, elapsed_ms),
    FIELD(STRING, directory),
    FIELD(STRING, products),
    FIELD(STRING, report),
    FIELD(TEXT, error.code),
    FIELD(TEXT, error.message),
    FIELD(TEXT, error.hint),
    FIELD(TEXT, device_why),
    FIELD(TEXT, identity),
    FIELD(MANIFEST, manifest),
    FIELD(COMPANION, manifest),
    FIELD(BOOL, anyway),
    FIELD(TEXT, set_id),
    FIELD(TEXT, replaces),
    FIELD(STRING, bbox),
    FIELD(TEXT, datetime),
    FIELD(INT64, epoch),
    FIELD(BOOL, is_long),
    FIELD(TEXT, node),
    FIELD(INT64, error.memory_bytes),
    FIELD(TEXT, shunned),
};
static_assert((int)(sizeof fields / sizeof fields[0]) == PB_JOB_FIXED + PB_JOB_SET_COUNT &&
                  (int)(sizeof PB_JOB_HOLD_SET / 2) == PB_JOB_SET_COUNT,
              "a parameter for each field that changes");

/* Sets a copy of all but its input; NULL for a job without files. */
static bool set_manifest(struct pb_sql_statement *s, int at,
                         const struct pb_scene_manifest *manifest)
{
    size_t bytes = 0;
    struct pb_scene_manifest files = *manifest;
    files.input = NULL;
    if (files.n_entries == 0)
        return true;
    struct pb_json *json = pb_json_create(false);
    pb_scene_manifest_print(&files, json, NULL);
    const char *text = pb_json_text(json, &bytes);
    const bool set = text != NULL && pb_sql_copy_text(s, at, text, bytes);
    pb_json_destroy(json);
    return set;
}

/* Sets the parameters from `at` on to the fields first .. last. Strings are borrowed. */
bool pb_job_fields_set(struct pb_sql_statement *s, int at, size_t first, const struct pb_job *job)
{
    char path[PB_FILES_PATH_BYTES];
    const char *companion;
    bool set = true;
    for (size_t i = first; i < sizeof fields / sizeof fields[0]; i++, at++) {
        const char *member = (const char *)job + fields[i].offset;
        switch (fields[i].kind) {
        case FIELD_INT64:
            pb_sql_set_int(s, at, *(const int64_t *)(const void *)member);
            break;
        case FIELD_INT:
            pb_sql_set_int(s, at, *(const int *)(const void *)member);
            break;
        case FIELD_BOOL:
            pb_sql_set_int(s, at, *(const bool *)member);
            break;
        case FIELD_STATUS:
            pb_sql_set_int(s, at, (int)*(const enum pb_job_status *)(const void *)member);
            break;
        case FIELD_RANK:
            pb_sql_set_int(s, at, -*(const int *)(const void *)member);
            break;
        case FIELD_TEXT:
            pb_sql_set_text(s, at, member);
            break;
        case FIELD_STRING:
            pb_sql_set_text(s, at, *(char *const *)(const void *)member);
            break;
        case FIELD_MANIFEST:
            set = set_manifest(s, at, &job->manifest) && set;
            break;
        case FIELD_INPUT:
            pb_sql_set_text(s, at, job->manifest.input);
            break;
        case FIELD_COMPANION:
            companion = pb_job_companion(job, path);
            if (companion != NULL)
                set = pb_sql_copy_text(s, at, companion, strlen(companion)) && set;
            break;
        }
    }
    return set;
}

static enum pb_job_status read_status(struct pb_sql_statement *s, int at)
{
    int number = (int)pb_sql_int(s, at);
    return number >= 0 && number < PB_JOB_STATUS_COUNT ? (enum pb_job_status)number : PB_JOB_FAILED;
}

/* A text that is no manifest (a damaged row) leaves the manifest empty. The first one is logged,
 * because jobs are read often. */
static bool read_manifest(const char *text, struct pb_job *job)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const int rc = text != NULL ? pb_scene_manifest_parse(text, &job->manifest) : 0;
    if (rc != 0 && rc != -ENOMEM && !atomic_flag_test_and_set(&said))
        pb_log(PB_LOG_ERROR,
               "job store: the list of the files of job %s cannot be read (%s); its row is damaged "
               "or of another version; the job is used without that list",
               job->id, strerror(-rc));
    return rc != -ENOMEM;
}

/* Reads PB_JOB_COLUMNS into a job that is initialised here; false = out of memory (the job then
 * needs no fini). */
bool pb_job_fields_read(struct pb_sql_statement *s, struct pb_job *job)
{
    const char *input = NULL;
    bool ok = true;
    pb_job_init(job);
    job->seq = pb_sql_int(s, 0);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        void *member = (char *)job + fields[i].offset;
        int at = (int)i + 1;
        switch (fields[i].kind) {
        case FIELD_INT64:
            *(int64_t *)member = pb_sql_int(s, at);
            break;
        case FIELD_INT:
            *(int *)member = (int)pb_sql_int(s, at);
            break;
        case FIELD_BOOL:
            *(bool *)member = pb_sql_int(s, at) != 0;
            break;
        case FIELD_STATUS:
            *(enum pb_job_status *)member = read_status(s, at);
            break;
        case FIELD_RANK:
            *(int *)member = -(int)pb_sql_int(s, at);
            break;
        case FIELD_TEXT:
            pb_sql_read_text(s, at, member, fields[i].bytes);
            break;
        case FIELD_STRING:
            ok = pb_job_set(member, pb_sql_text(s, at)) == 0 && ok;
            break;
        case FIELD_MANIFEST:
            ok = read_manifest(pb_sql_text(s, at), job) && ok;
            break;
        case FIELD_INPUT:
            input = pb_sql_text(s, at);
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
