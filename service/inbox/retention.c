/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/retention.h"

#include "config/base/json_reader.h"
#include "config/base/base_name.h"
#include "pipeline/io/path.h"
#include "service/base/files.h"
#include "service/base/log.h"
#include "service/inbox/inbox.h"
#include "service/jobs/kept.h"
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
#define SLACK_MS         60000 /* between an input's move and the record that tells of it */
#define DEPTH_MAX        (PB_INBOX_DEPTH_MAX + 1) /* of sub-folders */
#define DIRECTORY_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int64_t ms_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000 + time->tv_nsec / 1000000;
}

/* Whether the entry is what was recorded at `recorded_ms`: a change of a file, or another one under
 * its name, has a later ctime. */
static bool is_untouched(int directory, const char *name, int64_t recorded_ms)
{
    struct stat st;
    return fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) &&
           ms_of(&st.st_ctim) <= recorded_ms + SLACK_MS;
}

/* directory: the one that it lies in; below: its path below `root`, for the log. */
static bool remove_input(const struct pb_retention *retention, int directory, const char *root,
                         const char *below, const char *key, int64_t recorded_ms, int64_t now_ms)
{
    const char *name = pb_base_name(below);
    (void)pthread_rwlock_wrlock(retention->moves);
    bool gone =
        is_untouched(directory, name, recorded_ms) && pb_path_remove_at(directory, name) == 0;
    (void)pthread_rwlock_unlock(retention->moves);
    if (gone)
        pb_log(PB_LOG_NOTICE, "retention: removed %s/%s after %lld hours (service.retention.%s)",
               root, below, (long long)((now_ms - recorded_ms) / 3600000), key);
    return gone;
}

/* --- the archive ------------------------------------------------------------------------------ */

/* The path below the directory; NULL: it lies elsewhere. */
static const char *path_in(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    if (strncmp(path, directory, n) != 0 || path[n] != '/')
        return NULL;
    const char *below = path + n + 1;
    return below[0] == '\0' || below[0] == '.' ? NULL : below;
}

/* The directory that it lies in. */
static int open_parent(const char *root, const char *below)
{
    char folder[PB_FILES_PATH_BYTES];
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(pb_base_name(below) - below), below);
    return pb_files_open_below(root, folder);
}

static bool remove_archived(const struct pb_retention *retention, const struct pb_kept *kept,
                            const char *below, int64_t now_ms)
{
    const char *archive = retention->dirs->archive;
    int directory = open_parent(archive, below);
    bool gone = directory >= 0 &&
                remove_input(retention, directory, archive, below, "done", kept->since_ms, now_ms);
    if (directory >= 0)
        (void)close(directory);
    return gone;
}

static void clear_archive(const struct pb_retention *retention, int64_t now_ms,
                          struct pb_retention_result *out)
{
    const char *archive = retention->dirs->archive;
    bool there = access(archive, R_OK | X_OK) == 0;
    struct pb_kept *kept = calloc(2, sizeof *kept), *next = kept + 1;
    if (!there || kept == NULL)
        (void)pb_fail(&out->err, PB_E_SYSTEM, "cannot open %s: %s", archive, strerror(errno));
    while (there && kept != NULL && out->err.code == PB_OK &&
           pb_kept_next(retention->store, kept, now_ms - retention->config.done_ms, &out->err,
                        next) == 1) {
        const char *below = path_in(next->path, archive);
        int held = pb_set_parts_hold(retention->store, next->path, &out->err);
        *kept = *next;
        if (held != 0) /* other files may join it */
            continue;
        if (below != NULL && remove_archived(retention, next, below, now_ms))
            out->archived++;
        /* What is not there, or not ours any more, is nobody's concern from now on; what lies in a
         * directory that was the archive once may be again. */
        if (below != NULL || access(next->path, F_OK) != 0)
            (void)pb_kept_forget(retention->store, next, &out->err);
    }
    free(kept);
}

/* --- the quarantine --------------------------------------------------------------------------- */

struct record {
    char *path; /* of the record, below quarantine/ */
    int64_t written_ms;
};

struct records {
    struct record *at;
    size_t n, room;
};

static int by_age(const void *a, const void *b)
{
    const struct record *left = a, *right = b;
    return (left->written_ms > right->written_ms) - (left->written_ms < right->written_ms);
}

static bool is_record_name(const char *name)
{
    size_t n = strlen(name), m = strlen(RECORD_SUFFIX);
    return n > m && n < 256 && name[0] != '.' && strcmp(name + n - m, RECORD_SUFFIX) == 0;
}

/* Whether it is a record that the service wrote, by what it says; of the input beside it *out_in is
 * set. path: of the record, below quarantine/. */
static bool read_record(int directory, const char *path, const char *quarantine, bool *out_in,
                        char out_companion[256])
{
    const char *name = pb_base_name(path);
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
    const char *input = good ? pb_json_get_text(root, "input") : NULL;
    const char *inside = input != NULL ? path_in(input, quarantine) : NULL;
    size_t bare = strlen(path) - strlen(RECORD_SUFFIX);
    *out_in = inside != NULL && strlen(inside) == bare && strncmp(inside, path, bare) == 0;
    const char *companion = good ? pb_json_get_text(root, "companion") : NULL;
    (void)snprintf(out_companion, 256, "%s", companion ? pb_base_name(companion) : "");
    pb_json_release(root);
    free(text);
    if (fd >= 0)
        (void)close(fd);
    return good;
}

static void remove_record(const struct pb_retention *retention, int directory,
                          const struct record *record, int64_t now_ms,
                          struct pb_retention_result *out)
{
    const char *quarantine = retention->dirs->quarantine;
    char input[PB_FILES_PATH_BYTES], companion[256];
    bool in = false;
    struct stat st;
    if (!read_record(directory, record->path, quarantine, &in, companion))
        return;
    (void)snprintf(input, sizeof input, "%.*s", (int)(strlen(record->path) - strlen(RECORD_SUFFIX)),
                   record->path);
    bool there = fstatat(directory, pb_base_name(input), &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (in && there &&
        !remove_input(retention, directory, quarantine, input, "quarantine", record->written_ms,
                      now_ms))
        return; /* it was changed since: it and its record stay */
    if (in && companion[0] != '\0' && is_untouched(directory, companion, record->written_ms))
        (void)unlinkat(directory, companion, 0);
    if (unlinkat(directory, pb_base_name(record->path), 0) == 0)
        out->quarantined += in && there;
}

/* False: no memory; the others are for the next time. */
static bool add_record(struct records *records, const char *path, int64_t written_ms)
{
    if (records->n == records->room) {
        size_t room = records->room ? records->room * 2 : 64;
        struct record *larger = realloc(records->at, room * sizeof *larger);
        if (larger == NULL)
            return false;
        records->at = larger;
        records->room = room;
    }
    char *copy = strdup(path);
    if (copy != NULL)
        records->at[records->n++] = (struct record){copy, written_ms};
    return copy != NULL;
}

/* An input has its record beside it: nothing in a folder that is one is a record of ours. */
static bool is_input(int directory, const char *name)
{
    char record[300];
    struct stat st;
    (void)snprintf(record, sizeof record, "%s%s", name, RECORD_SUFFIX);
    return fstatat(directory, record, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Takes fd. The records that are old enough, in that directory and its sub-folders. */
static bool list_records(int fd, const char *below, int depth, int64_t before_ms,
                         struct records *records)
{
    char path[PB_FILES_PATH_BYTES];
    bool goes_on = true;
    DIR *dir = fdopendir(fd);
    if (dir == NULL)
        (void)close(fd);
    for (const struct dirent *e; dir != NULL && goes_on && (e = readdir(dir)) != NULL;) {
        struct stat st;
        if (e->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s%s%s", below, below[0] ? "/" : "", e->d_name) >=
                PB_FILES_PATH_BYTES ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (is_record_name(e->d_name) && ms_of(&st.st_mtim) < before_ms && S_ISREG(st.st_mode))
            goes_on = add_record(records, path, ms_of(&st.st_mtim));
        if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX || is_input(dirfd(dir), e->d_name))
            continue;
        int own = openat(dirfd(dir), e->d_name, DIRECTORY_FLAGS);
        if (own >= 0)
            goes_on = list_records(own, path, depth + 1, before_ms, records);
    }
    if (dir != NULL)
        (void)closedir(dir);
    return goes_on;
}

static void clear_quarantine(const struct pb_retention *retention, int64_t now_ms,
                             struct pb_retention_result *out)
{
    const char *quarantine = retention->dirs->quarantine;
    struct records records = {NULL, 0, 0};
    int fd = open(quarantine, DIRECTORY_FLAGS);
    if (fd < 0) {
        (void)pb_fail(&out->err, PB_E_SYSTEM, "cannot open %s: %s", quarantine, strerror(errno));
        return;
    }
    (void)list_records(fd, "", 0, now_ms - retention->config.quarantine_ms, &records);
    if (records.n > 0)
        qsort(records.at, records.n, sizeof *records.at, by_age);
    for (size_t i = 0; i < records.n; i++) {
        int directory = open_parent(quarantine, records.at[i].path);
        if (directory >= 0) {
            remove_record(retention, directory, &records.at[i], now_ms, out);
            (void)close(directory);
        }
        free(records.at[i].path);
    }
    free(records.at);
}

void pb_retention_run(const struct pb_retention *retention, int64_t now_ms,
                      struct pb_retention_result *out)
{
    *out = (struct pb_retention_result){.archived = 0};
    if (retention->config.done_ms > 0)
        clear_archive(retention, now_ms, out);
    if (retention->config.quarantine_ms > 0)
        clear_quarantine(retention, now_ms, out);
}
