/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One timer drives everything: it is set to the earliest of "an event came" (plus a short pause
 * that gathers a burst), "a file may be complete now" and "rescan". The pause grows with the time a
 * scan takes, so that a huge inbox under constant writes costs a tenth of the loop at most. Files
 * are taken in batches, because each one costs a commit to the disk. */
#include "service/watch.h"

#include "service/clock.h"
#include "service/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GATHER_MS      50
#define BATCH          32
#define PAUSE_MS       5000
#define TOLD_NAMES_MAX 256

struct pb_watch {
    struct pb_watch_options options;
    char *inbox;
    uv_fs_event_t events;
    uv_timer_t timer;
    int open_handles;
    struct pb_settle *settle;
    int64_t last_scan_ms, scan_cost_ms;
    int64_t due_ms;          /* when the timer is set to fire */
    int64_t paused_until_ms; /* nothing is taken before */
    bool events_on, failing;
    char *told[TOLD_NAMES_MAX]; /* names in the log already, a ring */
    size_t n_told;
};

static void on_timer(uv_timer_t *timer);

/* Brings the timer forward to `in_ms` from now, never back. */
static void scan_within(struct pb_watch *watch, int64_t in_ms)
{
    int64_t due = pb_clock_mono_ms() + in_ms;
    if (uv_is_active((uv_handle_t *)&watch->timer) && watch->due_ms <= due)
        return;
    watch->due_ms = due;
    uv_update_time(watch->options.loop);
    (void)uv_timer_start(&watch->timer, on_timer, (uint64_t)in_ms, 0);
}

static int64_t gather_ms(const struct pb_watch *watch)
{
    return GATHER_MS + 9 * watch->scan_cost_ms;
}

static void on_event(uv_fs_event_t *handle, const char *name, int events, int status)
{
    (void)name;
    (void)events;
    struct pb_watch *watch = handle->data;
    if (status >= 0)
        scan_within(watch, gather_ms(watch));
}

static void tell_once(struct pb_watch *watch, const char *name, mode_t mode)
{
    for (size_t i = 0; i < TOLD_NAMES_MAX && watch->told[i] != NULL; i++) {
        if (strcmp(watch->told[i], name) == 0)
            return;
    }
    const char *kind = S_ISDIR(mode)    ? "a directory"
                       : S_ISLNK(mode)  ? "a symbolic link"
                       : S_ISFIFO(mode) ? "a pipe"
                       : S_ISSOCK(mode) ? "a socket"
                                        : "a device";
    pb_log(PB_LOG_WARNING, "inbox: %s is %s and stays; only plain files are taken", name, kind);
    char **slot = &watch->told[watch->n_told++ % TOLD_NAMES_MAX];
    free(*slot);
    *slot = strdup(name);
}

static int look_at(struct pb_watch *watch, int fd, const char *name)
{
    struct stat st;
    struct pb_settle_file file;
    if (pb_settle_is_left_alone(name))
        return 0;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return 0; /* gone again */
    if (!S_ISREG(st.st_mode)) {
        tell_once(watch, name, st.st_mode);
        return 0;
    }
    memset(&file, 0, sizeof file);
    (void)snprintf(file.name, sizeof file.name, "%s", name);
    file.size = (uint64_t)st.st_size;
    file.inode = (uint64_t)st.st_ino;
    file.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return pb_settle_add(watch->settle, &file);
}

static int read_inbox(struct pb_watch *watch)
{
    DIR *directory = opendir(watch->inbox);
    if (directory == NULL)
        return -errno;
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(directory)) != NULL)
        rc = look_at(watch, dirfd(directory), entry->d_name);
    (void)closedir(directory);
    return rc;
}

/* The event handle dies with its directory; an inbox that was made anew is watched again. */
static void watch_events(struct pb_watch *watch)
{
    if (watch->events_on)
        (void)uv_fs_event_stop(&watch->events);
    int rc = uv_fs_event_start(&watch->events, on_event, watch->inbox, 0);
    if (rc != 0 && !watch->failing)
        pb_log(PB_LOG_WARNING, "inbox: no events for %s (%s); it is looked at every %lld ms",
               watch->inbox, uv_strerror(rc), (long long)watch->options.rescan_ms);
    watch->events_on = rc == 0;
}

/* A file that cannot be taken (no space for the store, say) may have been moved out and back, which
 * is an event again: without the pause this would go round and round. */
static void take_complete(struct pb_watch *watch)
{
    const struct pb_settle_file *file;
    if (pb_clock_mono_ms() < watch->paused_until_ms)
        return;
    for (int i = 0; i < BATCH && (file = pb_settle_next(watch->settle)) != NULL; i++) {
        int rc = watch->options.take(watch->options.user, file);
        if (rc == 0)
            continue;
        pb_settle_again(watch->settle, file);
        if (rc != -EAGAIN) {
            watch->paused_until_ms = pb_clock_mono_ms() + PAUSE_MS;
            return;
        }
    }
}

static void scan(struct pb_watch *watch)
{
    int64_t start = pb_clock_mono_ms();
    pb_settle_begin(watch->settle);
    int rc = read_inbox(watch);
    if (rc != 0 && !watch->failing)
        pb_log(PB_LOG_ERROR, "inbox: cannot read %s: %s; trying again every %lld ms", watch->inbox,
               strerror(-rc), (long long)watch->options.rescan_ms);
    else if (rc == 0 && watch->failing)
        pb_log(PB_LOG_NOTICE, "inbox: %s can be read again", watch->inbox);
    if (rc == 0 && watch->failing)
        watch_events(watch);
    watch->failing = rc != 0;
    pb_settle_end(watch->settle, watch->options.settle_ms, start, pb_clock_wall_ms());
    take_complete(watch);
    watch->last_scan_ms = pb_clock_mono_ms();
    watch->scan_cost_ms = watch->last_scan_ms - start;
}

static void on_timer(uv_timer_t *timer)
{
    struct pb_watch *watch = timer->data;
    scan(watch);
    int64_t due = watch->options.rescan_ms;
    /* Are there more than one batch? pb_settle_next has moved on; the next scan offers the rest. */
    int64_t paused = watch->paused_until_ms - pb_clock_mono_ms();
    if (pb_settle_next(watch->settle) != NULL)
        due = paused > 0 ? paused + 1 : 1;
    int64_t settled = pb_settle_due_ms(watch->settle, pb_clock_mono_ms());
    if (settled >= 0 && settled + 1 < due)
        due = settled + 1;
    scan_within(watch, due);
}

int pb_watch_start(const struct pb_watch_options *options, struct pb_err *err,
                   struct pb_watch **out_watch)
{
    struct pb_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    watch->options = *options;
    watch->inbox = strdup(options->inbox);
    watch->settle = pb_settle_create();
    if (watch->inbox == NULL || watch->settle == NULL) {
        free(watch->inbox);
        pb_settle_destroy(watch->settle);
        free(watch);
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    }
    (void)uv_timer_init(options->loop, &watch->timer);
    (void)uv_fs_event_init(options->loop, &watch->events);
    watch->timer.data = watch->events.data = watch;
    watch->open_handles = 2;
    watch_events(watch);
    scan_within(watch, 0);
    *out_watch = watch;
    return 0;
}

void pb_watch_set_times(struct pb_watch *watch, int64_t settle_ms, int64_t rescan_ms)
{
    watch->options.settle_ms = settle_ms;
    watch->options.rescan_ms = rescan_ms;
    scan_within(watch, 0);
}

void pb_watch_scan_soon(struct pb_watch *watch)
{
    scan_within(watch, 0);
}

size_t pb_watch_waiting(const struct pb_watch *watch)
{
    return watch ? pb_settle_waiting(watch->settle) : 0;
}

static void on_close(uv_handle_t *handle)
{
    struct pb_watch *watch = handle->data;
    if (--watch->open_handles > 0)
        return;
    for (size_t i = 0; i < TOLD_NAMES_MAX; i++)
        free(watch->told[i]);
    pb_settle_destroy(watch->settle);
    free(watch->inbox);
    free(watch);
}

void pb_watch_stop(struct pb_watch *watch)
{
    if (watch == NULL)
        return;
    uv_close((uv_handle_t *)&watch->timer, on_close);
    uv_close((uv_handle_t *)&watch->events, on_close);
}
