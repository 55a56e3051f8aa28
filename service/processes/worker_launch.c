/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/worker_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 8 };
enum { IN, OUT, LOG, STATUS, PIPES }; /* STATUS: carries the errno of an exec that failed */

struct ends {
    int ours, theirs; /* -1 = closed */
};

/* Makes a pipe with both ends above stderr, so that dup2 to the worker's streams overwrites
 * neither of them. */
static int make_pipe(struct ends *ends, int ours)
{
    int low[2], high[2];
    if (pipe2(low, O_CLOEXEC) != 0)
        return -errno;
    for (int i = 0; i < 2; i++)
        high[i] = fcntl(low[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int rc = high[0] < 0 || high[1] < 0 ? -errno : 0;
    (void)close(low[0]);
    (void)close(low[1]);
    *ends = (struct ends){high[ours], high[1 - ours]};
    return rc;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* Resets signal handlers and the signal mask, which the worker must not inherit. Signals of a
 * terminal and of `kill -- -GROUP` reach all processes of the group, also one that starts; the
 * service decides whether it ends. exec keeps them ignored. */
static void reset_signals(void)
{
    sigset_t none;
    for (int number = 1; number < SIGRTMIN; number++)
        (void)signal(number, SIG_DFL); /* fails for some signals, which then have no handler */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs the worker in the forked process. Other descriptors stay open, because libuv closes the
 * numbers of its descriptors at the next fork, even if they belong to other files by then. */
static _Noreturn void go_on(const struct pb_worker_program *program, struct ends *pipes)
{
    for (int i = 0; i < PIPES; i++) {
        close_end(&pipes[i].ours);
        close_end(&pipes[i].theirs);
    }
    _exit(program->main());
}

static _Noreturn void become(const struct pb_worker_program *program, struct ends *pipes)
{
    static const char *const worker[] = {"--worker", NULL};
    const char *const *given = program->arguments != NULL ? program->arguments : worker;
    const char *arguments[ARGUMENTS_MAX + 2] = {"pushbroomd"};
    for (int i = 0; i < ARGUMENTS_MAX && given[i] != NULL; i++)
        arguments[i + 1] = given[i];
    (void)dup2(pipes[IN].theirs, STDIN_FILENO);
    (void)dup2(pipes[OUT].theirs, STDOUT_FILENO);
    (void)dup2(pipes[LOG].theirs, STDERR_FILENO);
    if (program->passed > STDERR_FILENO)
        (void)fcntl(program->passed, F_SETFD, 0);
    reset_signals();
    if (program->path == NULL)
        go_on(program, pipes);
    union {
        const char *const *in;
        char *const *out;
    } cast = {.in = arguments};
    (void)execv(program->path, cast.out);
    int error = errno;
    ssize_t n = write(pipes[STATUS].theirs, &error, sizeof error);
    _exit(n == (ssize_t)sizeof error ? 127 : 126);
}

/* Waits until the other end is closed, by exec or by the forked process. */
static int read_status(int fd)
{
    int error = 0;
    ssize_t n;
    do
        n = read(fd, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof error ? -error : 0;
}

static int start(const struct pb_worker_program *program, struct ends *pipes, pid_t *out_pid)
{
    sigset_t all, before;
    if (program->path == NULL)
        (void)fflush(NULL); /* the fork would write buffered output a second time */
    (void)sigfillset(&all);
    /* no handler of this process runs in the worker */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        become(program, pipes);
    int rc = pid < 0 ? -errno : 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (int i = 0; i < PIPES; i++)
        close_end(&pipes[i].theirs);
    if (rc != 0)
        return rc;
    rc = read_status(pipes[STATUS].ours);
    while (rc != 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *out_pid = pid;
    return rc;
}

int pb_worker_launch(const struct pb_worker_program *program, pid_t *out_pid,
                     struct pb_worker_pipes *out_pipes)
{
    struct ends pipes[PIPES];
    int rc = 0;
    for (int i = 0; i < PIPES; i++)
        pipes[i] = (struct ends){-1, -1};
    for (int i = 0; i < PIPES && rc == 0; i++)
        rc = make_pipe(&pipes[i], i == IN ? 1 : 0);
    rc = rc ? rc : start(program, pipes, out_pid);
    if (rc == 0)
        *out_pipes = (struct pb_worker_pipes){pipes[IN].ours, pipes[OUT].ours, pipes[LOG].ours};
    close_end(&pipes[STATUS].ours);
    for (int i = 0; i < PIPES; i++) {
        close_end(&pipes[i].theirs);
        if (rc != 0)
            close_end(&pipes[i].ours);
    }
    return rc;
}
