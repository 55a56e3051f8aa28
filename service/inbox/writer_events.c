/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/writer_events.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define BUCKETS   256u
#define FILES_MAX 4096 /* further files are not tracked: for them only the scans decide */
#define ENDS      (IN_CLOSE_WRITE | IN_MOVED_FROM | IN_DELETE | IN_CREATE)

struct file {
    struct file *next;
    /* true: renamed in and untouched since; false: written and not closed since written_ms */
    bool renamed;
    int64_t written_ms;
    char name[];
};

struct pb_writer_events {
    int fd, watch;
    size_t n;
    struct file *bucket[BUCKETS];
    char directory[];
};

static void forget_all(struct pb_writer_events *events)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        while (events->bucket[i] != NULL) {
            struct file *file = events->bucket[i];
            events->bucket[i] = file->next;
            free(file);
        }
    }
    events->n = 0;
}

/* Finds the link to the file, or the link at which it would be added. */
static struct file **find(struct pb_writer_events *events, const char *name)
{
    unsigned hash = 5381;
    for (const unsigned char *s = (const unsigned char *)name; *s != '\0'; s++)
        hash = hash * 33 + *s;
    struct file **link = &events->bucket[hash % BUCKETS];
    while (*link != NULL && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    return link;
}

static void note(struct pb_writer_events *events, const char *name, bool renamed, int64_t mono_ms)
{
    struct file **link = find(events, name);
    if (*link == NULL) {
        size_t bytes = strlen(name) + 1;
        struct file *file = events->n < FILES_MAX ? malloc(sizeof *file + bytes) : NULL;
        if (file == NULL)
            return;
        file->next = NULL;
        (void)memcpy(file->name, name, bytes);
        *link = file;
        events->n++;
    }
    (*link)->renamed = renamed;
    (*link)->written_ms = mono_ms;
}

static void forget(struct pb_writer_events *events, const char *name)
{
    struct file **link = find(events, name), *file = *link;
    if (file == NULL)
        return;
    *link = file->next;
    free(file);
    events->n--;
}

static void take(struct pb_writer_events *events, const struct inotify_event *event,
                 int64_t mono_ms)
{
    if ((event->mask & IN_Q_OVERFLOW) != 0 ||
        ((event->mask & IN_IGNORED) != 0 && event->wd == events->watch))
        forget_all(events);
    else if (event->wd != events->watch || event->len == 0)
        return;
    else if ((event->mask & ENDS) != 0)
        forget(events, event->name);
    else if ((event->mask & (IN_MODIFY | IN_MOVED_TO)) != 0)
        note(events, event->name, (event->mask & IN_MOVED_TO) != 0, mono_ms);
}

static void read_all(struct pb_writer_events *events, int64_t mono_ms)
{
    union {
        struct inotify_event event; /* for its alignment */
        char bytes[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
    } room;
    ssize_t n;
    while ((n = read(events->fd, room.bytes, sizeof room.bytes)) > 0) {
        const struct inotify_event *event;
        for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof *event + event->len)) {
            event = (const struct inotify_event *)(const void *)(room.bytes + at);
            take(events, event, mono_ms);
        }
    }
}

/* The directory may have been replaced by another with its name: then inotify returns another
 * watch. */
static void watch(struct pb_writer_events *events)
{
    int wd = inotify_add_watch(events->fd, events->directory,
                               IN_MODIFY | IN_MOVED_TO | ENDS | IN_ONLYDIR);
    if (wd == events->watch)
        return;
    if (events->watch >= 0)
        (void)inotify_rm_watch(events->fd, events->watch);
    events->watch = wd;
    forget_all(events);
}

struct pb_writer_events *pb_writer_events_create(const char *directory)
{
    size_t bytes = strlen(directory) + 1;
    struct pb_writer_events *events = calloc(1, sizeof *events + bytes);
    if (events == NULL)
        return NULL;
    (void)memcpy(events->directory, directory, bytes);
    events->watch = -1;
    events->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (events->fd < 0) {
        free(events);
        return NULL;
    }
    watch(events);
    return events;
}

void pb_writer_events_destroy(struct pb_writer_events *events)
{
    if (events == NULL)
        return;
    forget_all(events);
    (void)close(events->fd);
    free(events);
}

bool pb_writer_events_is_open(struct pb_writer_events *events, const char *name, int64_t mono_ms)
{
    if (events == NULL)
        return false;
    pb_writer_events_follow(events, mono_ms);
    const struct file *file = *find(events, name);
    return file != NULL && !file->renamed &&
           mono_ms - file->written_ms < PB_WRITER_EVENTS_PATIENCE_MS;
}

void pb_writer_events_follow(struct pb_writer_events *events, int64_t mono_ms)
{
    if (events == NULL)
        return;
    watch(events);
    read_all(events, mono_ms);
}

bool pb_writer_events_took_in(struct pb_writer_events *events, const char *name)
{
    const struct file *file = events != NULL ? *find(events, name) : NULL;
    bool renamed = file != NULL && file->renamed;
    if (renamed)
        forget(events, name);
    return renamed;
}
