/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD that makes a process one of another machine, as far as a directory that
 * machines share can show it: locks of flock and fcntl are never those of others, as on a network
 * file system that keeps them to each client, and the host name is PB_HOST. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
