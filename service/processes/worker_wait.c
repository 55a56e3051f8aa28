/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/worker_wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reads the first bytes of a file below /proc; "" if it cannot be read. */
static void read_proc(const char *path, char *out, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, bytes - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
}

/* Finds the state after the name, which may contain any characters: "12 (a) b) D ..." */
static char state_of(const char *stat)
{
    const char *end = strrchr(stat, ')');
    return end != NULL && end[1] == ' ' ? end[2] : '?';
}

static bool has_sleeper(long pid)
{
    char path[320], text[512];
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir != NULL && !found && (e = readdir(dir)) != NULL;) {
        (void)snprintf(path, sizeof path, "/proc/%ld/task/%.32s/stat", pid, e->d_name);
        if (e->d_name[0] == '.')
            continue;
        read_proc(path, text, sizeof text);
        found = state_of(text) == 'D';
    }
    if (dir != NULL)
        (void)closedir(dir);
    return found;
}

static bool has_sleeping_child(long pid)
{
    char path[64], text[1024], *at = text;
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", pid, pid);
    read_proc(path, text, sizeof text);
    for (char *next; !found; at = next) {
        long child = strtol(at, &next, 10);
        if (next == at)
            break;
        found = has_sleeper(child);
    }
    return found;
}

/* Returns true if the thread waits in a system call on a file. A worker's main thread opens,
 * examines and renames files, and waits for the end of a child that it killed; other threads sync
 * files for it (sync_all.h). "running" and an unreadable file prove nothing. */
static bool is_in_file_call(long pid, const char *thread)
{
    static const long calls[] = {SYS_openat,    SYS_newfstatat, SYS_statx,      SYS_fstat,
                                 SYS_fsync,     SYS_fchmod,     SYS_fchownat,   SYS_close,
                                 SYS_mkdirat,   SYS_unlinkat,   SYS_getdents64, SYS_renameat,
                                 SYS_renameat2, SYS_wait4};
    char path[320], text[256];
    long number = -1;
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%.32s/syscall", pid, thread);
    read_proc(path, text, sizeof text);
    if (sscanf(text, "%ld ", &number) != 1)
        return false;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        found = found || calls[i] == number;
    return found;
}

static bool waits_for_storage(long pid)
{
    char path[64];
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir != NULL && !found && (e = readdir(dir)) != NULL;)
        found = e->d_name[0] != '.' && is_in_file_call(pid, e->d_name);
    if (dir != NULL)
        (void)closedir(dir);
    return found;
}

const char *pb_worker_wait_why(int pid)
{
    if (has_sleeper(pid) || has_sleeping_child(pid))
        return "a thread of it sleeps in the kernel and cannot be woken";
    if (waits_for_storage(pid))
        return "it decodes nothing itself, and waits for a file";
    return NULL;
}
