/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/inbox.h"

#include "pipeline/scene/scene_walk.h"
#include "service/base/files.h"
#include "service/inbox/writer_events.h"

#include "service/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool pb_inbox_is_news(struct pb_inbox_told *told, const char *name)
{
    for (size_t i = 0; i < PB_INBOX_TOLD_MAX && told->name[i] != NULL; i++) {
        if (strcmp(told->name[i], name) == 0)
            return false;
    }
    char **slot = &told->name[told->n++ % PB_INBOX_TOLD_MAX];
    free(*slot);
    *slot = strdup(name);
    return true;
}

void pb_inbox_folder_facts(const struct pb_scene_walk *walk, struct pb_settle_file *out)
{
    out->is_folder = true;
    out->n_files = walk->n;
    out->size = walk->bytes;
    out->mtime_ns = walk->youngest_ns;
    out->ctime_ns = (int64_t)(walk->digest & INT64_MAX);
}

/* --- the scan --------------------------------------------------------------------------------- */

struct scan {
    const struct pb_inbox *inbox;
    const struct pb_inbox_rules *rules;
    struct pb_settle *settle;
    struct pb_inbox_told *told;
    struct pb_inbox_seen *out;
    uint64_t mount; /* mount id of the inbox; 0 if the kernel does not report it */
};

static int read_folder(struct scan *scan, int fd, const char *below, int depth);

/* Counts and records an entry that stays, and logs it once. */
static void __attribute__((format(printf, 5, 6)))
leave(struct scan *scan, const char *name, enum pb_settle_reason reason, enum pb_code code,
      const char *format, ...)
{
    struct pb_inbox_seen *seen = scan->out;
    char text[sizeof seen->left->text];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    seen->n_refused += reason == PB_SETTLE_REFUSED;
    seen->n_foreign += reason == PB_SETTLE_FOREIGN;
    if (pb_inbox_is_news(scan->told, name))
        pb_log(PB_LOG_WARNING, "inbox: %s stays: %s", name, text);
    if (seen->left == NULL)
        seen->left = calloc(PB_INBOX_LEFT_MAX, sizeof *seen->left);
    if (seen->left == NULL || seen->n_left == PB_INBOX_LEFT_MAX)
        return;
    struct pb_inbox_left *left = &seen->left[seen->n_left++];
    size_t n = strlen(name);
    const char *end = n < sizeof left->name ? name : name + n - (sizeof left->name - 1);
    (void)snprintf(left->name, sizeof left->name, "%s", end);
    (void)memcpy(left->text, text, sizeof text);
    left->reason = reason;
    left->code = code;
}

static void leave_kind(struct scan *scan, const char *name, mode_t mode)
{
    const char *kind = S_ISLNK(mode)    ? "a symbolic link"
                       : S_ISFIFO(mode) ? "a pipe"
                       : S_ISSOCK(mode) ? "a socket"
                                        : "a device";
    if (S_ISDIR(mode))
        leave(scan, name, PB_SETTLE_FOREIGN, PB_E_INPUT_NO_PIPELINE,
              "no pipeline's input.scene fits the name of this folder");
    else
        leave(scan, name, PB_SETTLE_REFUSED, PB_E_INPUT_LINK,
              "it is %s; only plain files and folders are taken", kind);
}

/* A folder that cannot be walked now, or is too large for a scene, is still added to settle; the
 * claim reports the reason. */
static int look_at_scene(const struct scan *scan, const char *name, const struct stat *st)
{
    char path[PB_FILES_PATH_BYTES];
    struct pb_scene_walk walk;
    struct pb_settle_file file = {.name = name, .inode = (uint64_t)st->st_ino};
    if (pb_files_join(path, scan->inbox->path, name) != 0)
        return 0;
    (void)pb_scene_walk_open(path, NULL, &walk);
    pb_inbox_folder_facts(&walk, &file);
    pb_scene_walk_close(&walk);
    return pb_settle_add(scan->settle, &file);
}

static int add_folder(struct pb_inbox_seen *seen, const char *name, const struct stat *st)
{
    if (seen->n_folders == seen->folders_room) {
        size_t room = seen->folders_room ? seen->folders_room * 2 : 16;
        struct pb_inbox_folder *more = realloc(seen->folder, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        seen->folder = more;
        seen->folders_room = room;
    }
    char *copy = strdup(name);
    if (copy == NULL)
        return -ENOMEM;
    seen->folder[seen->n_folders++] = (struct pb_inbox_folder){copy, st->st_dev, st->st_ino};
    return 0;
}

static uint64_t mount_of(int fd)
{
    struct statx x;
    bool told =
        statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) == 0 && (x.stx_mask & STATX_MNT_ID) != 0;
    return told ? x.stx_mnt_id : 0;
}

/* Files move to work/ by rename, therefore mounts below the inbox are left alone. */
static int look_into(struct scan *scan, int fd, const char *base, const char *name, int depth)
{
    struct stat st;
    int rc = 0;
    int own = openat(fd, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool gone = own < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
    const char *why = own < 0 ? strerror(errno) : NULL;
    if (own >= 0 &&
        (fstat(own, &st) != 0 || st.st_dev != scan->out->st.st_dev || mount_of(own) != scan->mount))
        why = "it is another mount than the inbox";
    if (own >= 0 && (depth > PB_INBOX_DEPTH_MAX || strlen(name) > PB_INBOX_FOLDER_MAX))
        why = "it is nested too deep, or its path is too long";
    if (why == NULL) {
        rc = add_folder(scan->out, name, &st);
        if (rc != 0)
            (void)close(own);
        rc = rc ? rc : read_folder(scan, own, name, depth);
        if (rc == 0 || rc == -ENOMEM)
            return rc;
        why = strerror(-rc); /* read_folder has closed fd */
    } else if (own >= 0) {
        (void)close(own);
    }
    if (!gone)
        leave(scan, name, PB_SETTLE_REFUSED, PB_E_INPUT_DENIED, "the files in it stay: %s", why);
    return 0;
}

/* base: its name in the open directory; name: its path below the inbox. */
static int look_at(struct scan *scan, int fd, const char *base, const char *name, int depth)
{
    struct stat st;
    if (pb_settle_is_left_alone(base))
        return 0;
    if (fstatat(fd, base, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return 0; /* removed since readdir */
    if (S_ISDIR(st.st_mode) && scan->rules->takes(scan->rules->user, base))
        return look_at_scene(scan, name, &st);
    if (S_ISDIR(st.st_mode) && scan->inbox->recurse)
        return look_into(scan, fd, base, name, depth + 1);
    if (!S_ISREG(st.st_mode)) {
        leave_kind(scan, name, st.st_mode);
        return 0;
    }
    /* A file with a second link may belong to another user: a user who may write the inbox could
     * submit a file that only the service can move or read. */
    if (st.st_nlink > 1) {
        leave(scan, name, PB_SETTLE_REFUSED, PB_E_INPUT_LINK,
              "it has %lu names (hard links); only a file with one name is taken: remove the "
              "others, or copy it",
              (unsigned long)st.st_nlink);
        return 0;
    }
    const struct pb_settle_file file = {
        .name = name,
        .size = (uint64_t)st.st_size,
        .inode = (uint64_t)st.st_ino,
        .mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
        .ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec};
    return pb_settle_add(scan->settle, &file);
}

/* Takes fd. below: path of the folder below the inbox, "" = the inbox itself. */
static int read_folder(struct scan *scan, int fd, const char *below, int depth)
{
    char name[PB_FILES_PATH_BYTES];
    DIR *directory = fdopendir(fd);
    int rc = directory == NULL ? -errno : 0;
    if (directory == NULL)
        (void)close(fd);
    for (errno = 0; rc == 0; errno = 0) {
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) {
            rc = -errno; /* 0 at the end of the directory */
            break;
        }
        int n = snprintf(name, sizeof name, "%s%s%s", below, below[0] ? "/" : "", entry->d_name);
        if (n >= PB_FILES_PATH_BYTES || strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0)
            continue;
        char input[PB_FILES_PATH_BYTES];
        bool is_companion = pb_companion_input(&scan->inbox->companion, name, input);
        if (!is_companion && scan->rules->ignores(scan->rules->user, name))
            scan->out->ignored++;
        else
            rc = look_at(scan, dirfd(directory), entry->d_name, name, depth);
    }
    if (directory != NULL)
        (void)closedir(directory);
    return rc;
}

void pb_inbox_seen_fini(struct pb_inbox_seen *seen)
{
    for (size_t i = 0; i < seen->n_folders; i++)
        free(seen->folder[i].path);
    free(seen->folder);
    free(seen->left);
    *seen = (struct pb_inbox_seen){0};
}

int pb_inbox_read(const struct pb_inbox *inbox, const struct pb_inbox_rules *rules,
                  struct pb_settle *settle, struct pb_inbox_told *told, struct pb_inbox_seen *out)
{
    struct scan scan = {inbox, rules, settle, told, out, 0};
    pb_inbox_seen_fini(out);
    int fd = open(inbox->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &out->st) != 0) {
        int error = errno;
        (void)close(fd);
        return -error;
    }
    scan.mount = mount_of(fd);
    if (add_folder(out, "", &out->st) != 0) {
        (void)close(fd);
        return -ENOMEM;
    }
    return read_folder(&scan, fd, "", 0);
}

/* The events are read after the scan has read the files' attributes: a file that was written in
 * between is not marked, and a file that is written later has changed at its claim. */
void pb_inbox_mark_renamed(const struct pb_inbox *inbox, struct pb_settle *settle, int64_t mono_ms)
{
    pb_writer_events_follow(inbox->events, mono_ms);
    for (size_t i = 0; i < pb_settle_count(settle); i++) {
        const struct pb_settle_file *file = pb_settle_at(settle, i);
        if (!file->is_folder && pb_writer_events_took_in(inbox->events, file->name))
            pb_settle_arrived(settle, i, mono_ms);
    }
}

void pb_inbox_told_fini(struct pb_inbox_told *told)
{
    for (size_t i = 0; i < PB_INBOX_TOLD_MAX; i++)
        free(told->name[i]);
}
