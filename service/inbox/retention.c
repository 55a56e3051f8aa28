/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/retention.h"

#include "config/base/json_reader.h"
#include "config/base/base_name.h"
#include "pipeline/io/path.h"
#include "service/base/files.h"
#include "service/base/log.h"
#include "service/inbox/inbox.h"
#include "service/jobs/again_rows.h"
#include "service/jobs/kept.h"
#include "service/jobs/nodes.h"
#include "service/jobs/set_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_SUFFIX    ".error.json"
#define RECORD_BYTES_MAX 65536
#define SLACK_MS         60000 /* between an input's move and the row that records it */
#define DEPTH_MAX        (PB_INBOX_DEPTH_MAX + 1) /* levels of sub-folders */
#define DIRECTORY_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

enum outcome { GONE, STAYS, FAILED };

static int64_t ms_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000 + time->tv_nsec / 1000000;
}

/* Returns the path below the directory; NULL if it is elsewhere. */
static const char *path_in(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    if (strncmp(path, directory, n) != 0 || path[n] != '/')
        return NULL;
    const char *below = path + n + 1;
    return below[0] == '\0' || below[0] == '.' ? NULL : below;
}

/* Opens the parent directory of the path `below` root. */
static int open_parent(const char *root, const char *below)
{
    char folder[PB_FILES_PATH_BYTES];
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(pb_base_name(below) - below), below);
    return pb_files_open_below(root, folder);
}

static bool is_there(int directory, const char *name)
{
    struct stat st;
    return fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- one input -------------------------------------------------------------------------------- */

struct removal {
    const struct pb_retention *retention;
    struct pb_retention_result *out;
    int64_t now_ms;
    const char *root, *key; /* archive or quarantine, and its key of service.retention */
};

static void say_stays(const struct removal *removal, const struct pb_kept *kept, const char *other)
{
    if (kept->is_said)
        return;
    pb_log(PB_LOG_WARNING,
           "retention: %s stays: %s%s changed since it was put there; move your files away, or "
           "remove it yourself (service.retention.%s)",
           kept->path, other[0] ? other : "it",
           other[0] ? " in it was not delivered with it, or was" : " was", removal->key);
    (void)pb_kept_say(removal->retention->store, kept, &removal->out->err);
}

/* directory: the directory of the input. */
static enum outcome remove_input(const struct removal *removal, const struct pb_kept *kept,
                                 int directory)
{
    const struct pb_retention *retention = removal->retention;
    struct pb_file_list files;
    char other[PB_FILES_PATH_BYTES] = "";
    const char *name = pb_base_name(kept->path);
    if (!is_there(directory, name))
        return GONE;
    if (pb_kept_files(retention->store, kept, &removal->out->err, &files) != 0)
        return FAILED;
    (void)pthread_rwlock_wrlock(retention->moves);
    int rc = pb_file_list_remove(&files, kept->since_ms + SLACK_MS, directory, name, other);
    (void)pthread_rwlock_unlock(retention->moves);
    pb_file_list_fini(&files);
    if (rc == 0)
        pb_log(PB_LOG_NOTICE, "retention: removed %s after %lld hours (service.retention.%s)",
               kept->path, (long long)((removal->now_ms - kept->up_ms) / 3600000), removal->key);
    else if (rc > 0)
        say_stays(removal, kept, other);
    else
        (void)pb_fail(&removal->out->err, PB_E_SYSTEM, "cannot remove %s: %s", kept->path,
                      strerror(-rc));
    return rc == 0 ? GONE : rc > 0 ? STAYS : FAILED;
}

/* --- the archive ------------------------------------------------------------------------------ */

static void clear_archived(const struct removal *removal, const struct pb_kept *kept)
{
    const struct pb_retention *retention = removal->retention;
    const char *below = path_in(kept->path, removal->root);
    int held = pb_set_parts_hold(retention->store, kept->path, &removal->out->err);
    held = held ? held : pb_again_holds(retention->store, kept->path, &removal->out->err);
    if (held != 0) /* files may join its set, or a job makes its products again */
        return;
    int directory = below != NULL ? open_parent(removal->root, below) : -1;
    bool there = directory >= 0 && is_there(directory, pb_base_name(below));
    enum outcome outcome = there ? remove_input(removal, kept, directory) : GONE;
    if (directory >= 0)
        (void)close(directory);
    removal->out->archived += there && outcome == GONE;
    /* Forgets the rows of inputs that are gone or were changed. The row of an input in another
     * directory stays: the configuration may set that directory as the archive again. */
    if (outcome != FAILED && (below != NULL || access(kept->path, F_OK) != 0))
        (void)pb_kept_forget(retention->store, kept, &removal->out->err);
}

/* --- the quarantine --------------------------------------------------------------------------- */

/* Record of a quarantined input. */
struct record {
    char job[PB_JOB_ID_BYTES];
    bool has_input; /* the input is next to the record */
    char companion[256];
    int64_t written_ms; /* wall clock */
};

static bool is_record_name(const char *name)
{
    size_t n = strlen(name), m = strlen(RECORD_SUFFIX);
    return n > m && n < 256 && name[0] != '.' && strcmp(name + n - m, RECORD_SUFFIX) == 0;
}

/* Reads a record; returns true if its content shows that the service wrote it. input: path of the
 * input next to it. */
static bool read_record(int directory, const char *name, const char *input, struct record *out)
{
    struct stat st;
    struct pb_json_value *root = NULL;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char *text = calloc(1, RECORD_BYTES_MAX);
    bool good = fd >= 0 && text != NULL && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                st.st_uid == geteuid() && st.st_size < RECORD_BYTES_MAX;
    ssize_t n = good ? read(fd, text, RECORD_BYTES_MAX - 1) : -1;
    good = n > 0 && pb_json_parse(text, (size_t)n, RECORD_BYTES_MAX, &root) == 0 &&
           pb_json_get_text(root, "job") != NULL && pb_json_get_text(root, "code") != NULL &&
           pb_json_get_text(root, "status") != NULL;
    const char *said = good ? pb_json_get_text(root, "input") : NULL;
    const char *companion = good ? pb_json_get_text(root, "companion") : NULL;
    *out = (struct record){.has_input = said != NULL && strcmp(said, input) == 0,
                           .written_ms = good ? ms_of(&st.st_mtim) : 0};
    (void)snprintf(out->job, sizeof out->job, "%.23s", good ? pb_json_get_text(root, "job") : "");
    (void)snprintf(out->companion, sizeof out->companion, "%.255s",
                   companion ? pb_base_name(companion) : "");
    pb_json_release(root);
    free(text);
    if (fd >= 0)
        (void)close(fd);
    return good;
}

/* Removes the companion of an input that was removed. */
static void remove_companion(const struct removal *removal, int directory, const char *input,
                             const struct record *record)
{
    struct pb_job_store *store = removal->retention->store;
    char other[PB_FILES_PATH_BYTES];
    struct pb_file_list files = {NULL, 0};
    struct pb_kept *kept = calloc(1, sizeof *kept);
    int n = (int)(pb_base_name(input) - input);
    if (kept == NULL || record->companion[0] == '\0')
        goto out;
    (void)snprintf(kept->path, sizeof kept->path, "%.*s%s", n, input, record->companion);
    int known = pb_kept_find(store, kept->path, &removal->out->err, kept);
    if (known == 1 && strcmp(kept->job, record->job) == 0)
        (void)pb_kept_files(store, kept, &removal->out->err, &files);
    if (pb_file_list_remove(&files, record->written_ms + SLACK_MS, directory, record->companion,
                            other) == 0 &&
        known == 1)
        (void)pb_kept_forget(store, kept, &removal->out->err);
out:
    pb_file_list_fini(&files);
    free(kept);
}

/* Removes an input and its record. Returns true if the row can be forgotten. */
static bool clear_recorded(const struct removal *removal, const struct pb_kept *kept, int directory)
{
    char name[300];
    struct record record;
    (void)snprintf(name, sizeof name, "%s" RECORD_SUFFIX, pb_base_name(kept->path));
    if (!read_record(directory, name, kept->path, &record) ||
        (kept->job[0] != '\0' && strcmp(record.job, kept->job) != 0))
        return true; /* the record of an input is the proof that the service put it there */
    bool there = record.has_input && is_there(directory, pb_base_name(kept->path));
    if (there && remove_input(removal, kept, directory) != GONE)
        return false; /* keeps the record as well */
    if (record.has_input)
        remove_companion(removal, directory, kept->path, &record);
    if (unlinkat(directory, name, 0) == 0)
        removal->out->quarantined += there;
    return true;
}

static void clear_quarantined(const struct removal *removal, const struct pb_kept *kept)
{
    const char *below = path_in(kept->path, removal->root);
    int directory = below != NULL ? open_parent(removal->root, below) : -1;
    bool over = directory >= 0 ? clear_recorded(removal, kept, directory)
                               : below != NULL || access(kept->path, F_OK) != 0;
    if (directory >= 0)
        (void)close(directory);
    if (over)
        (void)pb_kept_forget(removal->retention->store, kept, &removal->out->err);
}

/* Returns true if the name has a record next to it and thus is an input: files in such a folder
 * are not records of the service. */
static bool is_input(int directory, const char *name)
{
    char record[300];
    (void)snprintf(record, sizeof record, "%s" RECORD_SUFFIX, name);
    return is_there(directory, record);
}

/* Adds a row for a record that the store does not have: of a submitted file, or of a store that
 * was lost. Its time begins now. path: absolute path of the input. */
static void meet_record(const struct removal *removal, int directory, const char *name,
                        const char *path)
{
    struct pb_job_store *store = removal->retention->store;
    struct record record;
    struct pb_kept *kept = calloc(1, sizeof *kept);
    if (kept != NULL && pb_kept_find(store, path, &removal->out->err, kept) == 0 &&
        read_record(directory, name, path, &record)) {
        (void)snprintf(kept->path, sizeof kept->path, "%s", path);
        (void)snprintf(kept->job, sizeof kept->job, "%s", record.job);
        kept->since_ms = record.written_ms;
        (void)pb_kept_add(store, kept, &removal->out->err);
    }
    free(kept);
}

/* Handles the records in a directory and its sub-folders. Takes fd. path: of the directory. */
static void meet_records(const struct removal *removal, int fd, const char *path, int depth)
{
    char below[PB_FILES_PATH_BYTES];
    DIR *dir = fdopendir(fd);
    if (dir == NULL)
        (void)close(fd);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        struct stat st;
        if (e->d_name[0] == '.' || pb_files_join(below, path, e->d_name) != 0 ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (is_record_name(e->d_name) && S_ISREG(st.st_mode)) {
            below[strlen(below) - strlen(RECORD_SUFFIX)] = '\0';
            meet_record(removal, dirfd(dir), e->d_name, below);
        }
        if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX || is_input(dirfd(dir), e->d_name))
            continue;
        int own = openat(dirfd(dir), e->d_name, DIRECTORY_FLAGS);
        if (own >= 0)
            meet_records(removal, own, below, depth + 1);
    }
    if (dir != NULL)
        (void)closedir(dir);
}

/* --- both ------------------------------------------------------------------------------------- */

/* The node that has the directory of the input handles it. */
static bool is_of_another_node(const struct removal *removal, const struct pb_kept *kept)
{
    return pb_store_is_shared(removal->retention->store) &&
           path_in(kept->path, removal->root) == NULL;
}

static void clear(const struct removal *removal, enum pb_kept_kind kind, int64_t keep_ms)
{
    struct pb_retention_result *out = removal->out;
    struct pb_kept *after = calloc(2, sizeof *after), *kept = after + 1;
    if (after == NULL)
        (void)pb_fail(&out->err, PB_E_MEMORY, "out of memory");
    /* Continues after an input that cannot be removed. */
    while (after != NULL && pb_kept_next(removal->retention->store, kind, after,
                                         removal->now_ms - keep_ms, &out->err, kept) == 1) {
        *after = *kept;
        if (is_of_another_node(removal, kept))
            continue;
        if (kind == PB_KEPT_ARCHIVED)
            clear_archived(removal, kept);
        else
            clear_quarantined(removal, kept);
    }
    free(after);
}

static bool can_be_read(const char *directory, struct pb_err *err)
{
    if (access(directory, R_OK | X_OK) == 0)
        return true;
    (void)pb_fail(err, PB_E_SYSTEM, "cannot open %s: %s", directory, strerror(errno));
    return false;
}

void pb_retention_run(const struct pb_retention *retention, int64_t now_ms,
                      struct pb_retention_result *out)
{
    struct removal archive = {retention, out, now_ms, retention->dirs->archive, "done"};
    struct removal quarantine = {retention, out, now_ms, retention->dirs->quarantine, "quarantine"};
    *out = (struct pb_retention_result){.archived = 0};
    if (pb_kept_count(retention->store, &out->err) != 0)
        return;
    if (retention->config.done_ms > 0 && can_be_read(archive.root, &out->err))
        clear(&archive, PB_KEPT_ARCHIVED, retention->config.done_ms);
    if (retention->config.quarantine_ms > 0 && can_be_read(quarantine.root, &out->err)) {
        int fd = open(quarantine.root, DIRECTORY_FLAGS);
        if (fd >= 0)
            meet_records(&quarantine, fd, quarantine.root, 0);
        clear(&quarantine, PB_KEPT_QUARANTINED, retention->config.quarantine_ms);
    }
}
