/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One inotify descriptor for all folders, because libuv's watches do not report an overflow of the
 * queue. A folder that was removed and made again with the same name needs a new watch. It has
 * another inode, or by chance the same one: then an event reports that the kernel ended the old
 * watch. After an overflow, which may have lost that event, all watches are checked. */
#include "service/inbox/folder_watches.h"

#include "service/base/files.h"
#include "service/base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/queue.h>
#include <unistd.h>

#define BUCKETS 256u
#define EVENTS                                                                                     \
    (IN_ATTRIB | IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |                 \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define READS_MAX                                                                                  \
    16 /* reads of a wake-up of the loop, so that a flood of events does not keep it */

struct sub {
    SLIST_ENTRY(sub) next;
    SLIST_ENTRY(sub) next_in_bucket;
    int watch;
    dev_t device;
    ino_t inode;
    bool is_doubtful; /* the kernel has ended the watch, or may have */
    char folder[];
};

SLIST_HEAD(subs, sub);

struct pb_folder_watches {
    uv_poll_t poll;
    int fd; /* a negative errno if inotify is not available */
    struct pb_changes *changes;
    void (*on_event)(void *user);
    void *user;
    struct subs all;             /* sorted by folder */
    struct subs bucket[BUCKETS]; /* the same watches in buckets by their number */
    size_t n, n_unwatched;
    bool has_warned;
    char root[];
};

static struct subs *bucket_of(struct pb_folder_watches *watches, int watch)
{
    return &watches->bucket[(unsigned)watch % BUCKETS];
}

static struct sub *find(struct pb_folder_watches *watches, int watch)
{
    struct sub *sub;
    SLIST_FOREACH(sub, bucket_of(watches, watch), next_in_bucket)
    {
        if (sub->watch == watch)
            return sub;
    }
    return NULL;
}

/* --- events ----------------------------------------------------------------------------------- */

/* Adds what the event reports. Returns true if a scan should examine it soon. */
static bool take(struct pb_folder_watches *watches, const struct inotify_event *event)
{
    const char *name = event->len > 0 ? event->name : "";
    struct sub *sub;
    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        SLIST_FOREACH(sub, &watches->all, next)
        {
            sub->is_doubtful = true;
        }
        pb_changes_add_all(watches->changes);
        return true;
    }
    sub = find(watches, event->wd);
    if (sub == NULL)
        return false; /* a watch that was ended */
    if ((event->mask & IN_IGNORED) != 0)
        sub->is_doubtful = true; /* the folder was removed, or its file system unmounted */
    pb_changes_add(watches->changes, sub->folder, name);
    return name[0] == '\0' || !pb_settle_is_left_alone(name);
}

static bool read_some(struct pb_folder_watches *watches)
{
    union {
        struct inotify_event event; /* for its alignment */
        char bytes[64 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
    } room;
    bool any = false;
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t n = watches->fd >= 0 ? read(watches->fd, room.bytes, sizeof room.bytes) : -1;
        const struct inotify_event *event;
        for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof *event + event->len)) {
            event = (const struct inotify_event *)(const void *)(room.bytes + at);
            any = take(watches, event) || any;
        }
        if (n <= 0)
            break;
    }
    return any;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct pb_folder_watches *watches = poll->data;
    (void)events;
    if (status == 0 && read_some(watches))
        watches->on_event(watches->user);
}

void pb_folder_watches_read(struct pb_folder_watches *watches)
{
    (void)read_some(watches);
}

/* --- watches ---------------------------------------------------------------------------------- */

struct pb_folder_watches *pb_folder_watches_create(uv_loop_t *loop, const char *root,
                                                   struct pb_changes *changes,
                                                   void (*on_event)(void *user), void *user)
{
    size_t bytes = strlen(root) + 1;
    struct pb_folder_watches *watches = calloc(1, sizeof *watches + bytes);
    if (watches == NULL)
        return NULL;
    watches->changes = changes;
    watches->on_event = on_event;
    watches->user = user;
    (void)memcpy(watches->root, root, bytes);
    watches->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    watches->poll.data = watches;
    int rc = watches->fd < 0 ? -errno : uv_poll_init(loop, &watches->poll, watches->fd);
    if (rc != 0 && watches->fd >= 0)
        (void)close(watches->fd);
    if (rc != 0)
        watches->fd = rc;
    else
        (void)uv_poll_start(&watches->poll, UV_READABLE, on_readable);
    return watches;
}

static void warn(struct pb_folder_watches *watches, const char *folder, const char *why)
{
    watches->n_unwatched++;
    if (!watches->has_warned)
        pb_log(PB_LOG_WARNING,
               "inbox: no events for %s%s%s (%s); it is scanned every service.rescan",
               watches->root, folder[0] ? "/" : "", folder, why);
    watches->has_warned = true;
}

/* Ends the watch of a folder; takes it off its bucket, not off the list. */
static void end(struct pb_folder_watches *watches, struct sub *sub)
{
    SLIST_REMOVE(bucket_of(watches, sub->watch), sub, sub, next_in_bucket);
    (void)inotify_rm_watch(watches->fd, sub->watch);
    free(sub);
    watches->n--;
}

/* Returns NULL if the folder cannot be watched now. */
static struct sub *begin(struct pb_folder_watches *watches, const struct pb_scan_folder *folder)
{
    char path[PB_FILES_PATH_BYTES];
    size_t bytes = strlen(folder->path) + 1;
    if (pb_files_join(path, watches->root, folder->path[0] ? folder->path : ".") != 0)
        return NULL;
    const bool is_possible = watches->fd >= 0 && watches->n < PB_FOLDER_WATCHES_MAX;
    struct sub *sub = is_possible ? calloc(1, sizeof *sub + bytes) : NULL;
    if (sub == NULL) {
        warn(watches, folder->path,
             watches->fd < 0 ? strerror(-watches->fd)
             : is_possible   ? "no memory"
                             : "there are too many");
        return NULL;
    }
    (void)memcpy(sub->folder, folder->path, bytes);
    sub->device = folder->device;
    sub->inode = folder->inode;
    sub->watch = inotify_add_watch(watches->fd, path, EVENTS);
    if (sub->watch >= 0 && find(watches, sub->watch) == NULL) {
        SLIST_INSERT_HEAD(bucket_of(watches, sub->watch), sub, next_in_bucket);
        watches->n++;
        return sub;
    }
    if (sub->watch >= 0)
        watches->n_unwatched++; /* renamed since the scan: it has a watch by its former path, which
                                   the follow after the next scan ends */
    else if (errno != ENOENT)
        warn(watches, folder->path, strerror(errno));
    free(sub);
    return NULL;
}

/* Returns true if the kernel has the watch: it gives a second watch of a folder the number of the
 * first one. */
static bool is_alive(struct pb_folder_watches *watches, struct sub *sub)
{
    char path[PB_FILES_PATH_BYTES];
    if (!sub->is_doubtful)
        return true;
    if (pb_files_join(path, watches->root, sub->folder[0] ? sub->folder : ".") != 0)
        return false;
    const int watch = inotify_add_watch(watches->fd, path, EVENTS);
    if (watch >= 0 && find(watches, watch) == NULL)
        (void)inotify_rm_watch(watches->fd, watch);
    sub->is_doubtful = watch != sub->watch;
    return !sub->is_doubtful;
}

/* Returns true if the watch is one of that folder. */
static bool is_of(struct pb_folder_watches *watches, struct sub *sub,
                  const struct pb_scan_folder *folder)
{
    return sub->device == folder->device && sub->inode == folder->inode && is_alive(watches, sub);
}

/* Ends the watches that belong to no folder any more, before others begin: a folder that was
 * renamed keeps the number of its watch. */
static void end_others(struct pb_folder_watches *watches, const struct pb_scan_folders *folders)
{
    struct subs kept = SLIST_HEAD_INITIALIZER(kept);
    struct sub *sub, *last = NULL;
    size_t i = 0;
    while ((sub = SLIST_FIRST(&watches->all)) != NULL) {
        int order = 1;
        SLIST_REMOVE_HEAD(&watches->all, next);
        while (i < folders->n && (order = strcmp(folders->folder[i].path, sub->folder)) < 0)
            i++;
        if (order == 0 && is_of(watches, sub, &folders->folder[i])) {
            if (last == NULL)
                SLIST_INSERT_HEAD(&kept, sub, next);
            else
                SLIST_INSERT_AFTER(last, sub, next);
            last = sub;
            continue;
        }
        if (order == 0 && sub->folder[0] == '\0')
            pb_log(PB_LOG_NOTICE, "inbox: another directory is at %s now and is watched",
                   watches->root);
        end(watches, sub);
    }
    watches->all = kept;
}

bool pb_folder_watches_follow(struct pb_folder_watches *watches,
                              const struct pb_scan_folders *folders)
{
    bool any_new = false;
    end_others(watches, folders);
    struct sub *last = NULL, *next = SLIST_FIRST(&watches->all);
    watches->n_unwatched = 0;
    for (size_t i = 0; i < folders->n; i++) {
        const struct pb_scan_folder *folder = &folders->folder[i];
        if (next != NULL && strcmp(next->folder, folder->path) == 0) {
            last = next;
            next = SLIST_NEXT(next, next);
            continue;
        }
        struct sub *sub = begin(watches, folder);
        if (sub == NULL)
            continue;
        if (last == NULL)
            SLIST_INSERT_HEAD(&watches->all, sub, next);
        else
            SLIST_INSERT_AFTER(last, sub, next);
        last = sub;
        any_new = true;
        pb_changes_add(watches->changes, folder->path, "");
    }
    return any_new;
}

bool pb_folder_watches_see_all(const struct pb_folder_watches *watches)
{
    return watches->fd >= 0 && watches->n > 0 && watches->n_unwatched == 0;
}

static void on_close(uv_handle_t *handle)
{
    struct pb_folder_watches *watches = handle->data;
    (void)close(watches->fd);
    free(watches);
}

void pb_folder_watches_stop(struct pb_folder_watches *watches)
{
    struct sub *sub;
    if (watches == NULL)
        return;
    while ((sub = SLIST_FIRST(&watches->all)) != NULL) {
        SLIST_REMOVE_HEAD(&watches->all, next);
        end(watches, sub);
    }
    if (watches->fd >= 0)
        uv_close((uv_handle_t *)&watches->poll, on_close);
    else
        free(watches);
}
