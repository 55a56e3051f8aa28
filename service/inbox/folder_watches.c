/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A folder that was removed and made again with the same name needs a new watch. It has another
 * inode, or by chance the same one: then the events of its parent reveal the change. */
#include "service/inbox/folder_watches.h"

#include "service/base/files.h"
#include "service/base/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct sub {
    uv_fs_event_t events; /* first: on_close */
    SLIST_ENTRY(sub) next;
    struct pb_folder_watches *watches;
    dev_t device;
    ino_t inode;
    bool is_doubtful; /* the folder may have been removed and made again */
    char folder[];
};

struct pb_folder_watches {
    uv_loop_t *loop;
    void (*on_event)(void *user);
    void *user;
    SLIST_HEAD(, sub) all; /* sorted by folder */
    size_t n;
    bool told;
    char root[];
};

struct pb_folder_watches *pb_folder_watches_create(uv_loop_t *loop, const char *root,
                                                   void (*on_event)(void *user), void *user)
{
    size_t bytes = strlen(root) + 1;
    struct pb_folder_watches *watches = calloc(1, sizeof *watches + bytes);
    if (watches == NULL)
        return NULL;
    watches->loop = loop;
    watches->on_event = on_event;
    watches->user = user;
    SLIST_INIT(&watches->all);
    (void)memcpy(watches->root, root, bytes);
    return watches;
}

static void on_close(uv_handle_t *handle)
{
    free(handle); /* frees the sub, because events is its first member */
}

static void end(struct sub *sub)
{
    uv_close((uv_handle_t *)&sub->events, on_close);
}

static void tell(struct pb_folder_watches *watches, const char *folder, const char *why)
{
    if (!watches->told)
        pb_log(PB_LOG_WARNING,
               "inbox: no events for %s%s%s (%s); it is scanned every service.rescan",
               watches->root, folder[0] ? "/" : "", folder, why);
    watches->told = true;
}

/* Returns true if the path is the entry `name` of the folder, or is below that entry. */
static bool is_at(const char *path, const char *folder, const char *name)
{
    size_t n = strlen(folder), m = strlen(name);
    if (n > 0 && (strncmp(path, folder, n) != 0 || path[n] != '/'))
        return false;
    path += n + (n > 0);
    return strncmp(path, name, m) == 0 && (path[m] == '/' || path[m] == '\0');
}

static void on_event(uv_fs_event_t *handle, const char *name, int events, int status)
{
    const struct sub *sub = handle->data;
    struct pb_folder_watches *watches = sub->watches;
    struct sub *other;
    if (status < 0)
        return;
    SLIST_FOREACH(other, &watches->all, next)
    {
        if ((events & UV_RENAME) != 0 && name != NULL && is_at(other->folder, sub->folder, name))
            other->is_doubtful = true;
    }
    watches->on_event(watches->user);
}

/* Returns NULL if the folder cannot be watched now. */
static struct sub *begin(struct pb_folder_watches *watches, const struct pb_inbox_folder *folder)
{
    char path[PB_FILES_PATH_BYTES];
    size_t bytes = strlen(folder->path) + 1;
    if (pb_files_join(path, watches->root, folder->path[0] ? folder->path : ".") != 0)
        return NULL;
    struct sub *sub = watches->n < PB_FOLDER_WATCHES_MAX ? calloc(1, sizeof *sub + bytes) : NULL;
    if (sub == NULL) {
        tell(watches, folder->path,
             watches->n < PB_FOLDER_WATCHES_MAX ? "no memory" : "there are too many");
        return NULL;
    }
    (void)memcpy(sub->folder, folder->path, bytes);
    sub->device = folder->device;
    sub->inode = folder->inode;
    (void)uv_fs_event_init(watches->loop, &sub->events);
    sub->events.data = sub;
    sub->watches = watches;
    int rc = uv_fs_event_start(&sub->events, on_event, path, 0);
    if (rc == 0)
        return sub;
    if (rc != UV_ENOENT)
        tell(watches, folder->path, uv_strerror(rc));
    end(sub);
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    const struct pb_inbox_folder *left = a, *right = b;
    return strcmp(left->path, right->path);
}

/* Finds the watch that the folder had, in the list from *before on, which is sorted like the
 * folders; NULL if absent. Watches before it in the list belong to folders that are gone. */
static struct sub *keep(struct sub **before, const struct pb_inbox_folder *folder, const char *root)
{
    int order = -1;
    while (*before != NULL && (order = strcmp((*before)->folder, folder->path)) <= 0) {
        struct sub *sub = *before;
        *before = SLIST_NEXT(sub, next);
        if (order == 0 && sub->device == folder->device && sub->inode == folder->inode &&
            !sub->is_doubtful)
            return sub;
        if (folder->path[0] == '\0')
            pb_log(PB_LOG_NOTICE, "inbox: another directory is at %s now and is watched", root);
        end(sub);
    }
    return NULL;
}

bool pb_folder_watches_follow(struct pb_folder_watches *watches,
                              const struct pb_inbox_folder *folders, size_t n)
{
    bool any_new = false;
    struct sub *before = SLIST_FIRST(&watches->all), *last = NULL;
    struct pb_inbox_folder *sorted = calloc(n + 1, sizeof *sorted);
    if (sorted == NULL)
        return false;
    if (n > 0) {
        (void)memcpy(sorted, folders, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, by_name);
    }
    SLIST_INIT(&watches->all);
    watches->n = 0;
    for (size_t i = 0; i < n; i++) {
        struct sub *sub = keep(&before, &sorted[i], watches->root);
        if (sub == NULL) {
            sub = begin(watches, &sorted[i]);
            any_new = any_new || sub != NULL;
        }
        if (sub == NULL)
            continue;
        if (last == NULL)
            SLIST_INSERT_HEAD(&watches->all, sub, next);
        else
            SLIST_INSERT_AFTER(last, sub, next);
        last = sub;
        watches->n++;
    }
    while (before != NULL) {
        struct sub *sub = before;
        before = SLIST_NEXT(sub, next);
        end(sub);
    }
    free(sorted);
    return any_new;
}

void pb_folder_watches_stop(struct pb_folder_watches *watches)
{
    struct sub *sub;
    if (watches == NULL)
        return;
    while ((sub = SLIST_FIRST(&watches->all)) != NULL) {
        SLIST_REMOVE_HEAD(&watches->all, next);
        end(sub);
    }
    free(watches);
}
