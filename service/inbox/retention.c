/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/retention.h"

#include "config/base/json_reader.h"
#include "pipeline/io/path.h"
#include "service/base/files.h"
#include "service/base/log.h"
#include "service/jobs/kept.h"

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

static bool remove_input(const struct pb_retention *retention, int directory, const char *shown,
                         const char *name, const char *key, int64_t recorded_ms, int64_t now_ms)
{
    (void)pthread_rwlock_wrlock(retention->moves);
    bool gone =
        is_untouched(directory, name, recorded_ms) && pb_path_remove_at(directory, name) == 0;
    (void)pthread_rwlock_unlock(retention->moves);
    if (gone)
        pb_log(PB_LOG_NOTICE, "retention: removed %s/%s after %lld hours (service.retention.%s)",
               shown, name, (long long)((now_ms - recorded_ms) / 3600000), key);
    return gone;
}

/* --- the archive ------------------------------------------------------------------------------ */

/* The name in the directory itself; NULL: it lies elsewhere. */
static const char *name_in(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    if (strncmp(path, directory, n) != 0 || path[n] != '/')
        return NULL;
    const char *name = path + n + 1;
    return name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL ? NULL : name;
}

static void clear_archive(const struct pb_retention *retention, int64_t now_ms,
                          struct pb_retention_result *out)
{
    const char *archive = retention->dirs->archive;
    int directory = open(archive, DIRECTORY_FLAGS);
    struct pb_kept *kept = calloc(2, sizeof *kept), *next = kept + 1;
    if (directory < 0 || kept == NULL)
        (void)pb_fail(&out->err, PB_E_SYSTEM, "cannot open %s: %s", archive, strerror(errno));
    while (directory >= 0 && kept != NULL && out->err.code == PB_OK &&
           pb_kept_next(retention->store, kept, now_ms - retention->config.done_ms, &out->err,
                        next) == 1) {
        const char *name = name_in(next->path, archive);
        if (name != NULL &&
            remove_input(retention, directory, archive, name, "done", next->since_ms, now_ms))
            out->archived++;
        /* What is not there, or not ours any more, is nobody's concern from now on; what lies in a
         * directory that was the archive once may be again. */
        if (name != NULL || access(next->path, F_OK) != 0)
            (void)pb_kept_forget(retention->store, next, &out->err);
        *kept = *next;
    }
    free(kept);
    if (directory >= 0)
        (void)close(directory);
}

/* --- the quarantine --------------------------------------------------------------------------- */

struct record {
    char name[256]; /* of the record */
    int64_t written_ms;
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

/* Whether it is a record that the service wrote, by what it says; of an input in quarantine *out_in
 * is set. */
static bool read_record(int directory, const char *name, const char *quarantine, bool *out_in)
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
    const char *input = good ? pb_json_get_text(root, "input") : NULL;
    const char *inside = input != NULL ? name_in(input, quarantine) : NULL;
    size_t bare = strlen(name) - strlen(RECORD_SUFFIX);
    *out_in = inside != NULL && strlen(inside) == bare && strncmp(inside, name, bare) == 0;
    pb_json_release(root);
    free(text);
    if (fd >= 0)
        (void)close(fd);
    return good;
}

static void remove_recorded(const struct pb_retention *retention, int directory,
                            const struct record *record, int64_t now_ms,
                            struct pb_retention_result *out)
{
    const char *quarantine = retention->dirs->quarantine;
    char input[256];
    bool in = false;
    struct stat st;
    if (!read_record(directory, record->name, quarantine, &in))
        return;
    (void)snprintf(input, sizeof input, "%.*s", (int)(strlen(record->name) - strlen(RECORD_SUFFIX)),
                   record->name);
    bool there = fstatat(directory, input, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (in && there &&
        !remove_input(retention, directory, quarantine, input, "quarantine", record->written_ms,
                      now_ms))
        return; /* it was changed since: it and its record stay */
    if (unlinkat(directory, record->name, 0) == 0)
        out->quarantined += in && there;
}

/* The records that are old enough; malloc'd. */
static struct record *list_records(int directory, int64_t before_ms, size_t *out_n)
{
    struct record *records = NULL;
    size_t n = 0, room = 0;
    int own = openat(directory, ".", DIRECTORY_FLAGS);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    if (dir == NULL && own >= 0)
        (void)close(own);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        struct stat st;
        if (!is_record_name(e->d_name) ||
            fstatat(directory, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            ms_of(&st.st_mtim) >= before_ms)
            continue;
        if (n == room) {
            size_t more = room ? room * 2 : 64;
            struct record *larger = realloc(records, more * sizeof *larger);
            if (larger == NULL)
                break; /* the others are for the next time */
            records = larger;
            room = more;
        }
        (void)snprintf(records[n].name, sizeof records[n].name, "%s", e->d_name);
        records[n++].written_ms = ms_of(&st.st_mtim);
    }
    if (dir != NULL)
        (void)closedir(dir);
    if (n > 0)
        qsort(records, n, sizeof *records, by_age);
    *out_n = n;
    return records;
}

static void clear_quarantine(const struct pb_retention *retention, int64_t now_ms,
                             struct pb_retention_result *out)
{
    size_t n = 0;
    int directory = open(retention->dirs->quarantine, DIRECTORY_FLAGS);
    if (directory < 0) {
        (void)pb_fail(&out->err, PB_E_SYSTEM, "cannot open %s: %s", retention->dirs->quarantine,
                      strerror(errno));
        return;
    }
    struct record *records = list_records(directory, now_ms - retention->config.quarantine_ms, &n);
    for (size_t i = 0; i < n; i++)
        remove_recorded(retention, directory, &records[i], now_ms, out);
    free(records);
    (void)close(directory);
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
