/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/writers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- writers in /proc ------------------------------------------------------------------------- */

struct target {
    unsigned major, minor;
    uint64_t inode;
};

/* Uses cached attributes, which are sufficient, so that the call does not wait for storage that
 * hangs. */
static bool identify(int at, const char *name, struct target *out)
{
    struct statx st;
    int flags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | (name[0] == '\0' ? AT_EMPTY_PATH : 0);
    if (statx(at, name, flags, STATX_INO | STATX_TYPE, &st) != 0 || !S_ISREG(st.stx_mode))
        return false;
    *out = (struct target){st.stx_dev_major, st.stx_dev_minor, st.stx_ino};
    return true;
}

static bool is_for_writing(int process, const char *number)
{
    char path[64], text[256];
    unsigned flags = 0;
    (void)snprintf(path, sizeof path, "fdinfo/%.32s", number);
    int fd = openat(process, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "flags:");
    return line != NULL && sscanf(line, "flags: %o", &flags) == 1 &&
           (flags & O_ACCMODE) != O_RDONLY && (flags & O_PATH) == 0;
}

static bool writes(int process, int descriptors, const char *number, const struct target *file)
{
    struct target open_file;
    return number[0] != '.' && identify(descriptors, number, &open_file) &&
           open_file.inode == file->inode && open_file.major == file->major &&
           open_file.minor == file->minor && is_for_writing(process, number);
}

/* Returns 1 if the process writes the file; 0 if it does not, or is gone; -EPERM if it may not be
 * examined. */
static int look_at(int proc, const char *pid, const struct target *file)
{
    int process = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = process < 0 ? -1 : openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = errno;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int found = 0;
    for (const struct dirent *e; dir != NULL && found == 0 && (e = readdir(dir)) != NULL;)
        found = writes(process, dirfd(dir), e->d_name, file);
    if (dir != NULL)
        (void)closedir(dir);
    else if (fd >= 0)
        (void)close(fd);
    if (process >= 0)
        (void)close(process);
    return fd < 0 && (error == EACCES || error == EPERM) ? -EPERM : found;
}

/* Searches the descriptors of all other processes for the file of the open fd. Returns the id of a
 * process that writes it; 0 if no process does; -EPERM if no process that can be examined does,
 * but others cannot be examined; another negative errno if /proc cannot be read. */
static int find_writer(int fd)
{
    struct target file;
    char self[32];
    int result = 0;
    if (!identify(fd, "", &file))
        return -EINVAL;
    (void)snprintf(self, sizeof self, "%ld", (long)getpid());
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return -errno;
    for (const struct dirent *e; result <= 0 && (e = readdir(proc)) != NULL;) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || strcmp(e->d_name, self) == 0)
            continue;
        int rc = look_at(dirfd(proc), e->d_name, &file);
        if (rc == 1)
            result = atoi(e->d_name);
        else if (rc < 0)
            result = rc;
    }
    (void)closedir(proc);
    return result;
}

/* --- leases ----------------------------------------------------------------------------------- */

static int take_lease(int fd)
{
    /* When another process waits for the lease, the kernel sends SIGIO, which would end this
     * process. */
    (void)signal(SIGIO, SIG_IGN);
    if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
        return 0;
    if (errno == EAGAIN)
        return -EBUSY;
    return errno == EACCES || errno == EPERM ? -EPERM : -ENOTSUP;
}

int pb_writers_look(int fd)
{
    int rc = take_lease(fd);
    if (rc != -EPERM && rc != -ENOTSUP)
        return rc;
    return find_writer(fd) > 0 ? -EBUSY : rc;
}

bool pb_writers_still_none(int fd)
{
    return fcntl(fd, F_GETLEASE) == F_RDLCK;
}

static bool have_cap_lease(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    return (data[CAP_TO_INDEX(CAP_LEASE)].effective & CAP_TO_MASK(CAP_LEASE)) != 0;
}

int pb_writers_probe(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0;
    /* This descriptor is open for writing: a filesystem with leases reports "busy". */
    int rc = take_lease(fd);
    (void)close(fd);
    if (rc != -EBUSY)
        return rc == 0 ? -ENOTSUP : rc;
    return have_cap_lease() ? 0 : -EPERM;
}

const char *pb_writers_word(int rc)
{
    return rc == -EPERM   ? "detected with certainty only for the service's own files, because it "
                            "lacks CAP_LEASE; for others only by /proc and inotify"
           : rc == -EBUSY ? "open for writing"
           : rc == -ENOTSUP ? "not detected with certainty, because the inbox's filesystem has no "
                              "leases; only by /proc and inotify"
                            : "seen";
}

/* --- events ----------------------------------------------------------------------------------- */

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

struct pb_writers_events {
    int fd, watch;
    size_t n;
    struct file *bucket[BUCKETS];
    char directory[];
};

static void forget_all(struct pb_writers_events *events)
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
static struct file **find(struct pb_writers_events *events, const char *name)
{
    unsigned hash = 5381;
    for (const unsigned char *s = (const unsigned char *)name; *s != '\0'; s++)
        hash = hash * 33 + *s;
    struct file **link = &events->bucket[hash % BUCKETS];
    while (*link != NULL && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    return link;
}

static void note(struct pb_writers_events *events, const char *name, bool renamed, int64_t mono_ms)
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

static void forget(struct pb_writers_events *events, const char *name)
{
    struct file **link = find(events, name), *file = *link;
    if (file == NULL)
        return;
    *link = file->next;
    free(file);
    events->n--;
}

static void take(struct pb_writers_events *events, const struct inotify_event *event,
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

static void read_all(struct pb_writers_events *events, int64_t mono_ms)
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
static void watch(struct pb_writers_events *events)
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

struct pb_writers_events *pb_writers_events_create(const char *directory)
{
    size_t bytes = strlen(directory) + 1;
    struct pb_writers_events *events = calloc(1, sizeof *events + bytes);
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

void pb_writers_events_destroy(struct pb_writers_events *events)
{
    if (events == NULL)
        return;
    forget_all(events);
    (void)close(events->fd);
    free(events);
}

bool pb_writers_events_is_open(struct pb_writers_events *events, const char *name, int64_t mono_ms)
{
    if (events == NULL)
        return false;
    pb_writers_events_follow(events, mono_ms);
    const struct file *file = *find(events, name);
    return file != NULL && !file->renamed &&
           mono_ms - file->written_ms < PB_WRITERS_EVENTS_PATIENCE_MS;
}

void pb_writers_events_follow(struct pb_writers_events *events, int64_t mono_ms)
{
    if (events == NULL)
        return;
    watch(events);
    read_all(events, mono_ms);
}

bool pb_writers_events_took_in(struct pb_writers_events *events, const char *name)
{
    const struct file *file = events != NULL && events->n > 0 ? *find(events, name) : NULL;
    bool renamed = file != NULL && file->renamed;
    if (renamed)
        forget(events, name);
    return renamed;
}
