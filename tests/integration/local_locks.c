/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD that makes a process one of another machine, as far as a directory that
 * machines share can show it: locks of flock and fcntl are never those of others, as on a network
 * file system that keeps them to each client, and the host name is PB_HOST.
 *
 * With PB_STOP a worker outlives its service, as on a machine that was cut off, and stops itself
 * (SIGSTOP) before it publishes, if it can remove that file: each file stops one process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int flock(int fd, int operation)
{
    (void)fd;
    (void)operation;
    return 0;
}

static int control(int fd, int command, void *arg)
{
    return command == F_OFD_SETLK ? 0 : (int)syscall(SYS_fcntl, fd, command, arg);
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    return control(fd, command, arg);
}

int fcntl64(int fd, int command, ...);
int fcntl64(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    return control(fd, command, arg);
}

int uname(struct utsname *out)
{
    const char *host = getenv("PB_HOST");
    const int rc = (int)syscall(SYS_uname, out);
    if (rc == 0 && host != NULL)
        (void)snprintf(out->nodename, sizeof out->nodename, "%s", host);
    return rc;
}

int prctl(int option, ...)
{
    unsigned long word[4];
    va_list args;
    va_start(args, option);
    for (int i = 0; i < 4; i++)
        word[i] = va_arg(args, unsigned long);
    va_end(args);
    if (option == PR_SET_PDEATHSIG && getenv("PB_STOP") != NULL)
        return 0;
    return (int)syscall(SYS_prctl, option, word[0], word[1], word[2], word[3]);
}

/* The directory of a publication is "scene" when its place is free. */
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    const char *file = getenv("PB_STOP");
    const int keep = errno;
    if (file != NULL && strcmp(from, "scene") == 0 && unlink(file) == 0)
        (void)raise(SIGSTOP);
    errno = keep;
    return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
}
