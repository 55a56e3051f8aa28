/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The process runs as long as the service has the other end of the socket open. All other
 * descriptors of the service are closed, so that a child that hangs in the kernel keeps no lock
 * and no connection open except that of its client. No allocation and no locks here, because the
 * process may be forked by a process with threads. */
#include "service/status/checker.h"
#include "config/base/clock.h"
#include "service/base/passed_fd.h"
#include "service/confine/confine.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS      100 /* interval of checks of running children */
#define STOP_MS      1000
#define STOP_STEP_MS 2

struct child {
    pid_t pid; /* 0 = free */
    uint64_t ticket;
    int64_t uid, since_ms;
    bool killed;
};

struct process {
    int fd;
    struct child child[PB_CHECKER_CHILDREN];
    int n;
    pid_t spare; /* a child that waits for its request; 0 = absent */
    int spare_fd;
};

/* Sends the request with the connection's descriptor, which the caller still owns. Only the used
 * bytes of the path are sent, because requests of many users must fit into the socket's buffer.
 * Negative errno. */
static int send_request(int fd, const struct pb_check_request *request, int connection)
{
    size_t bytes = offsetof(struct pb_check_request, path) + strlen(request->path) + 1;
    return pb_passed_fd_send(fd, request, bytes, connection, MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Returns 1: *request and *out_connection (-1 if absent); 0: no request this time; negative errno:
 * the other end is closed. */
static int receive_request(int fd, struct pb_check_request *request, int *out_connection)
{
    ssize_t n = pb_passed_fd_receive(fd, request, sizeof *request, out_connection, 0);
    if (n <= 0)
        return n < 0 && errno == EINTR ? 0 : -EPIPE;
    return n > (ssize_t)offsetof(struct pb_check_request, path) && ((char *)request)[n - 1] == '\0';
}

static void send_result(const struct process *process, const struct pb_check_result *result)
{
    (void)!send(process->fd, result, sizeof *result, MSG_NOSIGNAL);
}

static void refuse(const struct process *process, uint64_t ticket, enum pb_code code,
                   const char *text)
{
    struct pb_check_result result = {.ticket = ticket, .code = code};
    (void)snprintf(result.text, sizeof result.text, "%s", text);
    send_result(process, &result);
}

static struct child *place_for(struct process *process, int64_t uid)
{
    struct child *free_place = NULL;
    int n = 0;
    for (int i = 0; i < PB_CHECKER_CHILDREN; i++) {
        struct child *child = &process->child[i];
        if (child->pid == 0)
            free_place = child;
        else
            n += child->uid == uid;
    }
    return n < PB_CHECKER_USER_CHILDREN ? free_place : NULL;
}

static _Noreturn void wait_and_look(const struct process *process, int fd)
{
    static struct pb_check_request request;
    struct pb_check_result result = {0};
    int connection = -1, rc;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* without support in the kernel, it continues without a filter */
    (void)pb_seccomp_apply_look();
    while ((rc = receive_request(fd, &request, &connection)) == 0)
        ;
    if (rc < 0)
        _exit(0);
    pb_check_file(&request, connection, &result);
    send_result(process, &result);
    _exit(0);
}

static void fork_spare(struct process *process)
{
    int pair[2];
    if (process->spare != 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        wait_and_look(process, pair[1]);
    }
    (void)close(pair[1]);
    if (pid < 0) {
        (void)close(pair[0]);
        return;
    }
    process->spare = pid;
    process->spare_fd = pair[0];
}

/* Passes the request to a child and returns its pid; 0 = no child could be started. */
static pid_t give(struct process *process, const struct pb_check_request *request, int connection)
{
    for (int i = 0; i < 2; i++) { /* the spare child may have been killed */
        fork_spare(process);
        if (process->spare == 0)
            return 0;
        pid_t pid = process->spare;
        int rc = send_request(process->spare_fd, request, connection);
        (void)close(process->spare_fd);
        process->spare = 0;
        if (rc == 0)
            return pid;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    return 0;
}

static void start_child(struct process *process, const struct pb_check_request *request,
                        int connection)
{
    struct child *place = place_for(process, request->peer.uid);
    if (place == NULL) {
        refuse(process, request->ticket, PB_E_SERVICE_BUSY,
               "files of this user are still being checked; the storage may not answer");
        return;
    }
    pid_t pid = give(process, request, connection);
    if (pid == 0) {
        refuse(process, request->ticket, PB_E_SYSTEM, "cannot start a process to look at the file");
        return;
    }
    *place = (struct child){pid, request->ticket, request->peer.uid, pb_clock_mono_ms(), false};
    process->n++;
}

static void reap(struct process *process)
{
    int64_t now_ms = pb_clock_mono_ms();
    int how = 0;
    for (int i = 0; i < PB_CHECKER_CHILDREN; i++) {
        struct child *child = &process->child[i];
        if (child->pid == 0)
            continue;
        if (waitpid(child->pid, &how, WNOHANG) == child->pid) {
            /* The request of a killed child was answered already; that of a child that died by
             * itself has no answer yet. */
            if (!child->killed && !WIFEXITED(how))
                refuse(process, child->ticket, PB_E_SYSTEM, "the look at the file ended early");
            child->pid = 0;
            process->n--;
        } else if (!child->killed && now_ms - child->since_ms >= PB_CHECKER_LIMIT_MS) {
            (void)kill(child->pid, SIGKILL);
            child->killed = true;
            refuse(process, child->ticket, PB_E_INPUT_IO,
                   "the storage that holds the file did not answer in 5 s");
        }
    }
}

/* Returns false if the service is gone. */
static bool take_request(struct process *process, struct pb_check_request *request)
{
    int connection;
    int rc = receive_request(process->fd, request, &connection);
    if (rc > 0)
        start_child(process, request, connection);
    if (connection >= 0)
        (void)close(connection);
    return rc >= 0;
}

static _Noreturn void run(int fd)
{
    static struct process process;
    static struct pb_check_request request;
    sigset_t none;
    (void)prctl(PR_SET_NAME, "pb-checker");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* ends the process also while it is stopped */
    (void)signal(SIGTERM, SIG_IGN); /* the process ends when the service's socket is closed */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (fd > 3)
        (void)close_range(3, (unsigned)fd - 1, 0);
    (void)close_range((unsigned)fd + 1, ~0u, 0);
    process = (struct process){.fd = fd};
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        fork_spare(&process);
        if (poll(&wait, 1, process.n > 0 ? LOOK_MS : -1) > 0 && !take_request(&process, &request))
            _exit(0);
        reap(&process);
    }
}

int pb_checker_start(struct pb_checker *checker)
{
    int pair[2];
    *checker = (struct pb_checker){-1, 0};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -errno;
    pb_seccomp_prepare_look();
    pid_t pid = fork();
    if (pid == 0)
        run(pair[1]);
    int rc = pid < 0 ? -errno : 0;
    (void)close(pair[1]);
    if (rc != 0)
        (void)close(pair[0]);
    else
        *checker = (struct pb_checker){pair[0], pid};
    return rc;
}

/* Waits for the end of the process; false if it did not end in time. */
static bool is_gone(pid_t pid, int64_t wait_ms)
{
    const int64_t end_ms = pb_clock_mono_ms() + wait_ms;
    const struct timespec step = {.tv_nsec = STOP_STEP_MS * 1000000L};
    pid_t gone;
    while (((gone = waitpid(pid, NULL, WNOHANG)) == 0 || (gone < 0 && errno == EINTR)) &&
           pb_clock_mono_ms() < end_ms)
        (void)nanosleep(&step, NULL);
    return gone == pid || (gone < 0 && errno == ECHILD);
}

/* A stopped process does not detect that its socket was closed, but SIGKILL ends it as well. A
 * process that hangs in the kernel is abandoned. */
void pb_checker_stop(struct pb_checker *checker)
{
    if (checker->fd < 0)
        return;
    (void)close(checker->fd);
    if (!is_gone(checker->pid, STOP_MS)) {
        (void)kill(checker->pid, SIGKILL);
        (void)is_gone(checker->pid, STOP_MS);
    }
    checker->fd = -1;
}

int pb_checker_ask(const struct pb_checker *checker, uint64_t ticket, const char *path,
                   const struct pb_peer *peer, int connection, enum pb_check_proof proof)
{
    struct pb_check_request request = {.ticket = ticket, .peer = *peer, .proof = proof};
    request.n_groups = pb_peer_groups(connection, request.groups);
    (void)snprintf(request.path, sizeof request.path, "%s", path);
    return send_request(checker->fd, &request, connection);
}

int pb_checker_read(const struct pb_checker *checker, struct pb_check_result *out)
{
    ssize_t n = recv(checker->fd, out, sizeof *out, MSG_DONTWAIT);
    if (n == (ssize_t)sizeof *out)
        return 1;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return n < 0 ? -errno : -EPIPE;
}
