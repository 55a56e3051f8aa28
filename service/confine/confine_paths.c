/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Neither Landlock nor seccomp can judge stat, statfs and access by their path, and libraries make
 * them for the files that they may read: PROJ's database, GDAL's tables, the time zone.
 * Therefore the filter refuses these calls, and the kernel sends SIGSYS. Its handler opens the path
 * with the rights that the process has anyway, and answers from the descriptor. Paths that it may
 * not open do not exist for it. The handler has no rights of its own: code that has taken over the
 * process gains nothing by calling or replacing it.
 *
 * glibc before 2.39 reads the facts of an open descriptor by newfstatat with an empty path. The
 * handler answers that by fstat. */
#include "service/confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1 /* si_code of a signal that a filter sent */
#endif

/* Registers of the call: its arguments, and where its result is expected. */
struct trapped {
    long argument[4];
};

static struct trapped arguments_of(const ucontext_t *at)
{
#if defined(__x86_64__)
    const greg_t *r = at->uc_mcontext.gregs;
    return (struct trapped){{r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10]}};
#elif defined(__aarch64__)
    const unsigned long long *r = (const unsigned long long *)at->uc_mcontext.regs;
    return (struct trapped){{(long)r[0], (long)r[1], (long)r[2], (long)r[3]}};
#else
#error "the registers of a system call on this processor"
#endif
}

static void answer(ucontext_t *at, long result)
{
#if defined(__x86_64__)
    at->uc_mcontext.gregs[REG_RAX] = result;
#else
    at->uc_mcontext.regs[0] = (unsigned long long)result;
#endif
}

/* Returns a descriptor, or a negative errno. */
static long open_to_look(long directory, const char *path, int flags)
{
    long fd = syscall(SYS_openat, (int)directory, path,
                      O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
    if (fd >= 0)
        return fd;
    return errno == EACCES || errno == EPERM || errno == ELOOP ? -ENOENT : -errno;
}

static long stat_of(long directory, const char *path, long to, int flags)
{
    if ((flags & AT_EMPTY_PATH) != 0 && (path == NULL || path[0] == '\0'))
        return syscall(SYS_fstat, (int)directory, to) == 0 ? 0 : -errno;
    long fd = open_to_look(directory, path, (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0);
    if (fd < 0)
        return fd;
    long rc = syscall(SYS_fstat, (int)fd, to) == 0 ? 0 : -errno;
    (void)syscall(SYS_close, (int)fd);
    return rc;
}

static long file_system_of(const char *path, long to)
{
    long fd = open_to_look(AT_FDCWD, path, 0);
    if (fd < 0)
        return fd;
    long rc = syscall(SYS_fstatfs, (int)fd, to) == 0 ? 0 : -errno;
    (void)syscall(SYS_close, (int)fd);
    return rc;
}

static long access_of(long directory, const char *path, long mode)
{
    long fd = open_to_look(directory, path, 0);
    if (fd < 0)
        return fd;
    (void)syscall(SYS_close, (int)fd);
    return (mode & (W_OK | X_OK)) != 0 ? -EACCES : 0;
}

static long answer_of(int call, const struct trapped *t)
{
    const long *a = t->argument;
    switch (call) {
    case SYS_newfstatat:
        return stat_of(a[0], (const char *)a[1], a[2], (int)a[3]);
    case SYS_statfs:
        return file_system_of((const char *)a[0], a[1]);
    case SYS_faccessat:
#ifdef SYS_faccessat2
    case SYS_faccessat2:
#endif
        return access_of(a[0], (const char *)a[1], a[2]);
#ifdef SYS_stat
    case SYS_stat:
        return stat_of(AT_FDCWD, (const char *)a[0], a[1], 0);
    case SYS_lstat:
        return stat_of(AT_FDCWD, (const char *)a[0], a[1], AT_SYMLINK_NOFOLLOW);
    case SYS_access:
        return access_of(AT_FDCWD, (const char *)a[0], a[1]);
#endif
    default:
        return -EPERM;
    }
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
    const struct trapped t = arguments_of(context);
    int before = errno;
    (void)signal;
    if (info->si_code == SYS_SECCOMP)
        answer(context, answer_of(info->si_syscall, &t));
    errno = before;
}

int pb_confine_paths_answer(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t trap;
    (void)sigemptyset(&action.sa_mask);
    (void)sigemptyset(&trap);
    (void)sigaddset(&trap, SIGSYS);
    if (sigaction(SIGSYS, &action, NULL) != 0 || sigprocmask(SIG_UNBLOCK, &trap, NULL) != 0)
        return -errno;
    return 0;
}
