/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One timer drives everything: it is set to the earliest of "an event came" (plus a short pause
 * that gathers a burst), "a file may be complete now" and "rescan". The pause grows with the time a
 * scan takes, so that a huge inbox under constant writes costs a tenth of the loop at most. Files
 * are taken in batches, because each one costs a commit to the disk. */
#include "service/watch.h"

#include "service/clock.h"
#include "service/files.h"
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
    dev_t device;            /* of the directory that events come from */
    ino_t inode;
    bool events_on, no_events_told;
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

/* Whether the name was not told of before; from now on it is. */
static bool is_news(struct pb_watch *watch, const char *name)
{
    for (size_t i = 0; i < TOLD_NAMES_MAX && watch->told[i] != NULL; i++) {
        if (strcmp(watch->told[i], name) == 0)
            return false;
    }
    char **slot = &watch->told[watch->n_told++ % TOLD_NAMES_MAX];
    free(*slot);
    *slot = strdup(name);
    return true;
}

static void tell_kind(struct pb_watch *watch, const char *name, mode_t mode)
{
    const char *kind = S_ISDIR(mode)    ? "a directory"
                       : S_ISLNK(mode)  ? "a symbolic link"
                       : S_ISFIFO(mode) ? "a pipe"
                       : S_ISSOCK(mode) ? "a socket"
                                        : "a device";
    if (is_news(watch, name))
        pb_log(PB_LOG_WARNING, "inbox: %s is %s and stays; only plain files are taken", name, kind);
}

/* A second name of a file may be anybody's: whoever may write the inbox could hand in a file of
 * another user's that only the service can move or read. */
static void tell_links(struct pb_watch *watch, const char *name, unsigned long links)
{
    if (is_news(watch, name))
        pb_log(
            PB_LOG_WARNING,
            "inbox: %s has %lu names (hard links) and stays; only a file with one name is taken: "
            "remove the others, or copy it",
            name, links);
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
        tell_kind(watch, name, st.st_mode);
        return 0;
    }
    if (st.st_nlink > 1) {
        tell_links(watch, name, (unsigned long)st.st_nlink);
        return 0;
    }
    memset(&file, 0, sizeof file);
    (void)snprintf(file.name, sizeof file.name, "%s", name);
    file.size = (uint64_t)st.st_size;
    file.inode = (uint64_t)st.st_ino;
    file.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    file.ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    return pb_settle_add(watch->settle, &file);
}

/* Events come from the directory that had the name when they were asked for. One that was made anew
 * or mounted over it sends none until it is asked, too. Without events the rescan does it all, and
 * asks again. */
static void follow_events(struct pb_watch *watch, const struct stat *st)
{
    if (watch->events_on && st->st_dev == watch->device && st->st_ino == watch->inode)
        return;
    if (watch->events_on) {
        (void)uv_fs_event_stop(&watch->events);
        pb_log(PB_LOG_NOTICE, "inbox: another directory is at %s now and is watched", watch->inbox);
    }
    int rc = uv_fs_event_start(&watch->events, on_event, watch->inbox, 0);
    watch->events_on = rc == 0;
    watch->device = st->st_dev;
    watch->inode = st->st_ino;
    if (rc != 0 && !watch->no_events_told)
        pb_log(PB_LOG_WARNING, "inbox: no events for %s (%s); it is looked at every %lld ms",
               watch->inbox, uv_strerror(rc), (long long)watch->options.rescan_ms);
    watch->no_events_told = rc != 0;
}

static int read_inbox(struct pb_watch *watch)
{
    struct stat st;
    DIR *directory = opendir(watch->inbox);
    if (directory == NULL)
        return -errno;
    int rc = fstat(dirfd(directory), &st) == 0 ? 0 : -errno;
    if (rc == 0)
        follow_events(watch, &st);
    for (errno = 0; rc == 0; errno = 0) {
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) {
            rc = -errno; /* 0 at the end */
            break;
        }
        rc = look_at(watch, dirfd(directory), entry->d_name);
    }
    (void)closedir(directory);
    return rc;
}

/* The directory is gone, or cannot be read: what comes instead of it is another one. */
static void lose_events(struct pb_watch *watch)
{
    if (watch->events_on)
        (void)uv_fs_event_stop(&watch->events);
    watch->events_on = false;
}

static void report_reading(struct pb_watch *watch, int rc)
{
    char text[PB_FILES_PATH_BYTES + 200];
    if (rc == 0) {
        pb_trouble_clear(watch->options.troubles, "inbox");
        return;
    }
    (void)snprintf(text, sizeof text, "inbox: cannot read %s: %s; trying again every %lld ms",
                   watch->inbox, strerror(-rc), (long long)watch->options.rescan_ms);
    pb_trouble_raise(watch->options.troubles, "inbox",
                     rc == -EMFILE || rc == -ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM, text);
}

/* A file cannot be taken. Whether others can. */
static bool can_go_on(struct pb_watch *watch, const struct pb_settle_file *file, int rc,
                      const struct pb_err *err)
{
    char text[sizeof err->msg + 300];
    if (rc == -EAGAIN)
        return true;
    if (pb_code_class(err->code) == PB_CLASS_INPUT) {
        if (is_news(watch, file->name))
            pb_log(PB_LOG_WARNING, "inbox: %s stays: %s", file->name, err->msg);
        return true;
    }
    (void)snprintf(text, sizeof text, "inbox: %s stays: %s", file->name, err->msg);
    pb_trouble_raise(watch->options.troubles, "intake", err->code, text);
    watch->paused_until_ms = pb_clock_mono_ms() + PAUSE_MS;
    return false;
}

/* A file that cannot be taken (no space for the store, say) may have been moved out and back, which
 * is an event again: without the pause this would go round and round. */
static void take_complete(struct pb_watch *watch)
{
    const struct pb_settle_file *file = NULL;
    if (pb_clock_mono_ms() < watch->paused_until_ms)
        return;
    for (int i = 0; i < BATCH && (file = pb_settle_next(watch->settle)) != NULL; i++) {
        struct pb_err err = {0};
        int rc = watch->options.take(watch->options.user, file, &err);
        if (rc == 0)
            pb_trouble_clear(watch->options.troubles, "intake");
        else
            pb_settle_again(watch->settle, file);
        if (rc != 0 && !can_go_on(watch, file, rc, &err))
            return;
    }
    if (pb_settle_waiting(watch->settle) == 0 && file == NULL)
        pb_trouble_clear(watch->options.troubles, "intake"); /* what could not be taken is gone */
}

static void scan(struct pb_watch *watch)
{
    int64_t start = pb_clock_mono_ms(), wall = pb_clock_wall_ms();
    pb_settle_begin(watch->settle);
    int rc = read_inbox(watch);
    if (rc != 0)
        lose_events(watch);
    report_reading(watch, rc);
    pb_settle_end(watch->settle, watch->options.settle_ms, start, wall);
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
