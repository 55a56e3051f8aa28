/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs programs without a shell and without descriptors, signal mask or environment of
 * pushbroom-notify. The event is a file at standard input; if the program fails, the end of its
 * standard error is written to the log. The program is a process group of its own, which is ended
 * as a whole at the time limit and when the program is over. */
#include "config/base/clock.h"
#include "config/notify_config.h"
#include "service/notify/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 2000 /* time from SIGTERM to SIGKILL */
#define SAID_BYTES  300
#define EXIT_DATA   65 /* EX_DATAERR of sysexits.h: the program does not take this event */
#define EXIT_START  127

struct exec {
    const struct pb_notify_config *notify;
    const struct pb_stop *stop;
    char **argv; /* the command and NULL */
};

static void destroy(void *sender)
{
    struct exec *exec = sender;
    free(exec->argv);
    free(exec);
}

static void *create(const struct pb_notify_config *notify, const struct pb_stop *stop)
{
    struct exec *exec = calloc(1, sizeof *exec);
    if (exec == NULL)
        return NULL;
    exec->notify = notify;
    exec->stop = stop;
    exec->argv = calloc(notify->n_command + 1, sizeof *exec->argv);
    if (exec->argv == NULL) {
        free(exec);
        return NULL;
    }
    (void)memcpy(exec->argv, notify->command, notify->n_command * sizeof *exec->argv);
    return exec;
}

/* A file without a name that holds the event. */
static int event_file(const struct pb_letter *letter)
{
    size_t done = 0;
    int fd = memfd_create("event", MFD_CLOEXEC);
    while (fd >= 0 && done < letter->bytes) {
        ssize_t n = write(fd, letter->body + done, letter->bytes - done);
        if (n <= 0) {
            (void)close(fd);
            return -EIO;
        }
        done += (size_t)n;
    }
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    return fd < 0 ? -errno : fd;
}

/* After fork: only calls that are safe there. */
static void become(char *const *argv, char *const *environment, int input, int said)
{
    sigset_t none;
    struct sigaction plain = {.sa_handler = SIG_DFL};
    (void)sigemptyset(&none);
    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, &plain, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_WRONLY);
    if (dup2(input, 0) == 0 && dup2(null, 1) == 1 && dup2(said, 2) == 2 && chdir("/") == 0 &&
        syscall(SYS_close_range, 3u, ~0u, 0u) == 0) {
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)execve(argv[0], argv, environment);
    }
    const char *why = strerror(errno);
    (void)!write(2, why, strlen(why));
    _exit(EXIT_START);
}

/* Starts the program and returns its id; negative errno. *out_said: its standard error. */
static pid_t start(const struct exec *exec, const struct pb_letter *letter, int *out_said)
{
    char id[200], event[100];
    int said[2], input = event_file(letter);
    if (input < 0)
        return input;
    if (pipe2(said, O_CLOEXEC) != 0) {
        (void)close(input);
        return -errno;
    }
    (void)snprintf(id, sizeof id, "PUSHBROOM_EVENT_ID=%s", letter->id);
    (void)snprintf(event, sizeof event, "PUSHBROOM_EVENT=%s", letter->event);
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char language[] = "LANG=C.UTF-8";
    char *environment[] = {path, language, id, event, NULL};
    pid_t pid = fork();
    if (pid == 0)
        become(exec->argv, environment, input, said[1]);
    int rc = pid < 0 ? -errno : 0;
    (void)close(input);
    (void)close(said[1]);
    if (rc != 0) {
        (void)close(said[0]);
        return rc;
    }
    (void)setpgid(pid, pid); /* parent and child both set it: the order is not known */
    *out_said = said[0];
    return pid;
}

/* Keeps the end of the output. False: the output has ended. */
static bool hear(int said, char text[SAID_BYTES + 1])
{
    char more[SAID_BYTES];
    ssize_t n = read(said, more, sizeof more);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    size_t old = strlen(text), keep = SAID_BYTES - (size_t)n;
    keep = keep < old ? keep : old;
    (void)memmove(text, text + old - keep, keep);
    (void)memcpy(text + keep, more, (size_t)n);
    text[keep + (size_t)n] = '\0';
    return true;
}

/* Waits until the program is over, the deadline, or the end of pushbroom-notify. True = over. */
static bool wait_for(const struct exec *exec, int pidfd, int said, int64_t deadline_ms,
                     char text[SAID_BYTES + 1])
{
    bool speaks = true;
    for (;;) {
        int64_t left = deadline_ms - pb_clock_mono_ms();
        struct pollfd watched[] = {{.fd = pidfd, .events = POLLIN},
                                   {.fd = exec->stop->fd, .events = POLLIN},
                                   {.fd = speaks ? said : -1, .events = POLLIN}};
        if (left <= 0)
            return false;
        if (poll(watched, 3, left > 1000000 ? 1000000 : (int)left) < 0 && errno != EINTR)
            return false;
        if (watched[2].revents != 0) {
            speaks = hear(said, text);
            continue;
        }
        if (watched[0].revents != 0)
            return true;
        if (watched[1].revents != 0)
            return false;
    }
}

/* Ends its group: SIGTERM, wait, SIGKILL. Returns its status in any case. */
static int finish(pid_t pid, int pidfd, bool over)
{
    int status = 0;
    if (!over) {
        struct pollfd watched = {.fd = pidfd, .events = POLLIN};
        (void)kill(-pid, SIGTERM);
        (void)poll(&watched, 1, PATIENCE_MS);
    }
    (void)kill(
        -pid,
        SIGKILL); /* also for its descendants; it is still a zombie, so the id is not reused */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static enum pb_sent judge(const struct exec *exec, bool over, int status, const char *text,
                          struct pb_sent_why *why)
{
    const char *program = exec->argv[0], *colon = text[0] ? ": " : "";
    if (!over && pb_stop_is_set(exec->stop))
        pb_sent_fail(why, "%s was stopped", program);
    else if (!over)
        pb_sent_fail(why, "%s ran for longer than its timeout%s%s", program, colon, text);
    else if (WIFSIGNALED(status))
        pb_sent_fail(why, "%s was ended by signal %d%s%s", program, WTERMSIG(status), colon, text);
    else if (WEXITSTATUS(status) == EXIT_START)
        pb_sent_fail(why, "%s cannot be started%s%s", program, colon, text);
    else if (WEXITSTATUS(status) != 0)
        pb_sent_fail(why, "%s ended with status %d%s%s", program, WEXITSTATUS(status), colon, text);
    else
        return PB_SENT;
    return over && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DATA ? PB_SENT_REFUSED
                                                                         : PB_SENT_NOT;
}

static enum pb_sent send_letter(void *sender, const struct pb_letter *letter,
                                struct pb_sent_why *why)
{
    const struct exec *exec = sender;
    char text[SAID_BYTES + 1] = "";
    int said = -1;
    int64_t deadline_ms = pb_clock_mono_ms() + exec->notify->timeout_ms;
    pid_t pid = start(exec, letter, &said);
    if (pid < 0) {
        pb_sent_fail(why, "%s cannot be started: %s", exec->argv[0], strerror(-pid));
        return PB_SENT_NOT;
    }
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0u);
    bool over = pidfd >= 0 && wait_for(exec, pidfd, said, deadline_ms, text);
    int status = finish(pid, pidfd, over);
    (void)close(said);
    if (pidfd >= 0)
        (void)close(pidfd);
    return judge(exec, over, status, text, why);
}

const struct pb_sender_kind pb_sender_exec = {create, send_letter, NULL, destroy};
