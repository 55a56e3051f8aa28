/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A well-behaved client of the status socket that measures how long each method takes, through a
 * connection that stays and through a new one for each request (connecting counts). Each lane has
 * at most one request on its way and sends at fixed times; a reply that arrives later than the next
 * of these times counts for the requests that were not sent, too (else one pause of a second would
 * be one slow sample among thousands). One thread, which sleeps in epoll.
 *
 *   status_load --socket PATH --submit FILE [--uid N --gid N] [--interval-ms N]
 *
 * Until SIGTERM, then one line of JSON: of each method and kind of connection n, p50, p99, max
 * (us), `busy` (replies service.busy) and `lost` (connections that ended instead of a reply), and
 * the first wrong replies. `--patience-ms`: a reply that takes longer is a wrong one. */
#include "tests/tools/latency.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REPLY_BYTES (4u << 20)
#define HEAD_BYTES  4096 /* bytes of a reply that are looked at */
#define RETRY_US    200  /* after a connect that found the queue full */
#define WRONG_MAX   20

enum method { INFO, METRICS, LIST, LIST_ALL, GET, WATCH, SUBMIT, CANCEL, RETRY, N_METHODS };

static const struct {
    const char *name, *method, *params;
} methods[N_METHODS] = {
    [INFO] = {"service.info", "service.info", ""},
    [METRICS] = {"service.metrics", "service.metrics", ""},
    [LIST] = {"job.list of 21", "job.list", "\"limit\":21"},
    [LIST_ALL] = {"job.list of 1000", "job.list", "\"limit\":1000"},
    [GET] = {"job.get", "job.get", NULL},
    [WATCH] = {"job.watch", "job.watch", NULL},
    [SUBMIT] = {"job.submit", "job.submit", NULL},
    [CANCEL] = {"job.cancel", "job.cancel", NULL},
    [RETRY] = {"job.retry", "job.retry", NULL},
};

struct figures {
    struct latency latency;
    unsigned busy, lost;
};

enum state { IDLE, CONNECTING, WAITING };

struct lane {
    enum method method;
    bool fresh;   /* a new connection for each request */
    bool changes; /* submit, cancel, retry, cancel of one job, in turn */
    int step;
    int64_t interval_us, due_us, sent_us;
    enum state state;
    int fd;
    unsigned id;
    char head[HEAD_BYTES + 1];
    size_t n_head;
    char job[64];
};

static const enum method rota[] = {SUBMIT, CANCEL, RETRY, CANCEL};
#define N_ROTA (int)(sizeof rota / sizeof rota[0])

static struct {
    struct sockaddr_un address;
    const char *submit;
    int64_t interval_us, patience_us;
    int epoll;
    char any_job[64]; /* the last one that this client submitted */
    struct figures figures[N_METHODS][2];
    unsigned n_wrong;
} load = {.interval_us = 100000, .patience_us = 30000000};

static char bytes[REPLY_BYTES];

static void wrong(const struct lane *lane, const char *what)
{
    if (load.n_wrong++ < WRONG_MAX)
        fprintf(stderr, "%s (%s connection): %s: %.300s\n", methods[lane->method].name,
                lane->fresh ? "new" : "kept", what, lane->n_head ? lane->head : "");
}

static void hang_up(struct lane *lane)
{
    if (lane->fd >= 0)
        (void)close(lane->fd);
    lane->fd = -1;
}

/* Ends what is on its way; taken_us < 0: there was no reply to measure. */
static void end_request(struct lane *lane, int64_t now_us, int64_t taken_us)
{
    struct latency *latency = &load.figures[lane->method][lane->fresh].latency;
    for (int64_t us = taken_us; us >= 0; us -= lane->interval_us)
        latency_add(latency, us);
    if (lane->changes)
        lane->step = lane->job[0] == '\0' ? 0 : (lane->step + 1) % N_ROTA;
    if (lane->changes && lane->step == 0)
        lane->job[0] = '\0';
    lane->state = IDLE;
    while (lane->due_us <= now_us)
        lane->due_us += lane->interval_us;
    if (lane->fresh)
        hang_up(lane);
}

static void request_of(struct lane *lane, char *out, size_t room)
{
    char params[512];
    if (methods[lane->method].params != NULL)
        (void)snprintf(params, sizeof params, "%s", methods[lane->method].params);
    else if (lane->method == SUBMIT)
        (void)snprintf(params, sizeof params, "\"input\":\"%s\"", load.submit);
    else
        (void)snprintf(params, sizeof params, "\"id\":\"%s\"",
                       lane->changes ? lane->job : load.any_job);
    (void)snprintf(out, room, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":{%s}}\n",
                   ++lane->id, methods[lane->method].method, params);
}

static void begin_request(struct lane *lane, int64_t now_us)
{
    char line[1024];
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = lane}};
    if (lane->state == IDLE) {
        lane->method = lane->changes ? rota[lane->step] : lane->method;
        lane->sent_us = now_us;
        lane->n_head = 0;
        lane->head[0] = '\0';
    }
    lane->state = CONNECTING;
    if (lane->fd < 0) {
        lane->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (connect(lane->fd, (struct sockaddr *)&load.address, sizeof load.address) != 0) {
            hang_up(lane);
            if (errno == EAGAIN && now_us - lane->sent_us < load.patience_us)
                return; /* the service's queue of connections is full: tried again */
            wrong(lane, strerror(errno));
            end_request(lane, now_us, now_us - lane->sent_us);
            return;
        }
        (void)epoll_ctl(load.epoll, EPOLL_CTL_ADD, lane->fd, &event);
    }
    request_of(lane, line, sizeof line);
    size_t n = strlen(line);
    lane->state = WAITING;
    (void)send(lane->fd, line, n, MSG_NOSIGNAL); /* a connection that ended is seen at recv */
}

/* "code":"..." of the error's data; empty if absent. */
static void code_of(const char *reply, char out[64])
{
    const char *at = strstr(reply, "\"code\":\"");
    size_t n = at ? strcspn(at + 8, "\"") : 0;
    (void)snprintf(out, 64, "%.*s", (int)(n < 63 ? n : 63), at ? at + 8 : "");
}

static bool is_reply(const struct lane *lane, const char *line)
{
    char start[64];
    (void)snprintf(start, sizeof start, "{\"jsonrpc\":\"2.0\",\"id\":%u,", lane->id);
    return strncmp(line, start, strlen(start)) == 0;
}

static void take_job(struct lane *lane)
{
    const char *at = strstr(lane->head, "\"result\":{\"id\":\"");
    if (at == NULL) {
        wrong(lane, "no job in the reply");
        return;
    }
    at += strlen("\"result\":{\"id\":\"");
    (void)snprintf(lane->job, sizeof lane->job, "%.*s", (int)strcspn(at, "\""), at);
    (void)snprintf(load.any_job, sizeof load.any_job, "%s", lane->job);
}

/* A whole reply has arrived. */
static void judge(struct lane *lane, int64_t now_us)
{
    char code[64];
    int64_t taken_us = now_us - lane->sent_us;
    if (!is_reply(lane, lane->head)) {
        bool busy = strstr(lane->head, "\"service.busy\"") != NULL;
        load.figures[lane->method][lane->fresh].busy += busy;
        if (!busy) /* message to a connection that has to end */
            wrong(lane, "no reply to the request");
        hang_up(lane);
        end_request(lane, now_us, -1);
        return;
    }
    if (strstr(lane->head, "\"error\":{\"code\":-") == NULL) {
        if (lane->method == SUBMIT)
            take_job(lane);
        end_request(lane, now_us, taken_us);
        return;
    }
    code_of(lane->head, code);
    bool busy = strcmp(code, "service.busy") == 0;
    bool state = strcmp(code, "job.state") == 0 && lane->changes; /* it has ended meanwhile */
    load.figures[lane->method][lane->fresh].busy += busy;
    if (!busy && !state)
        wrong(lane, "refused");
    if (busy)
        lane->job[0] = '\0';
    end_request(lane, now_us, taken_us);
}

/* Only the beginning of a reply is kept; it is complete at its newline. */
static void take_reply(struct lane *lane, int64_t now_us)
{
    ssize_t n = recv(lane->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(lane);
        if (lane->state == WAITING) {
            load.figures[lane->method][lane->fresh].lost++;
            lane->job[0] = '\0';
            end_request(lane, now_us, -1);
        }
        return;
    }
    size_t room = HEAD_BYTES - lane->n_head, keep = (size_t)n < room ? (size_t)n : room;
    (void)memcpy(lane->head + lane->n_head, bytes, keep);
    lane->n_head += keep;
    lane->head[lane->n_head] = '\0';
    if (lane->state == WAITING && memchr(bytes, '\n', (size_t)n) != NULL)
        judge(lane, now_us);
}

static int64_t step_lane(struct lane *lane, int64_t now_us)
{
    if (lane->state == WAITING && now_us - lane->sent_us > load.patience_us) {
        wrong(lane, "no reply in time");
        hang_up(lane);
        lane->job[0] = '\0';
        end_request(lane, now_us, now_us - lane->sent_us);
    }
    bool waits_for_job =
        !lane->changes && methods[lane->method].params == NULL && load.any_job[0] == '\0';
    if (lane->state == CONNECTING || (lane->state == IDLE && lane->due_us <= now_us)) {
        if (waits_for_job)
            lane->due_us = now_us + lane->interval_us;
        else
            begin_request(lane, now_us);
    }
    if (lane->state == CONNECTING)
        return now_us + RETRY_US;
    return lane->state == IDLE ? lane->due_us : lane->sent_us + load.patience_us + 1;
}

static void print_figures(void)
{
    printf("{");
    for (int i = 0; i < N_METHODS; i++) {
        for (int fresh = 0; fresh < 2; fresh++) {
            struct figures *f = &load.figures[i][fresh];
            printf("\"%s, %s\":{", methods[i].name, fresh ? "new" : "kept");
            latency_print(&f->latency);
            printf(",\"busy\":%u,\"lost\":%u},", f->busy, f->lost);
            free(f->latency.us);
        }
    }
    printf("\"wrong\":%u,\"cpu_ms\":%" PRId64 "}\n", load.n_wrong, latency_cpu_ms());
}

static void run(struct lane *lanes, int n, int end)
{
    struct epoll_event events[32], event = {.events = EPOLLIN, .data = {.ptr = NULL}};
    (void)epoll_ctl(load.epoll, EPOLL_CTL_ADD, end, &event);
    for (;;) {
        int64_t now_us = latency_now_us(), next_us = now_us + 1000000;
        for (int i = 0; i < n; i++) {
            int64_t due_us = step_lane(&lanes[i], now_us);
            next_us = due_us < next_us ? due_us : next_us;
        }
        int64_t wait_us = next_us - latency_now_us();
        wait_us = wait_us > 0 ? wait_us : 0;
        const struct timespec wait = {wait_us / 1000000, wait_us % 1000000 * 1000};
        int ready = epoll_pwait2(load.epoll, events, 32, &wait, NULL);
        now_us = latency_now_us();
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr == NULL)
                return;
            take_reply(events[i].data.ptr, now_us);
        }
    }
}

/* The changes are one lane, the others one a method; each kind with kept and with new connections.
 * A kept connection that watched would get events between replies: that method has new ones only.
 */
static int make_lanes(struct lane *lanes)
{
    int n = 0;
    for (int fresh = 0; fresh < 2; fresh++) {
        for (int i = 0; i <= SUBMIT; i++) {
            if (i == WATCH && fresh == 0)
                continue;
            lanes[n] = (struct lane){.method = (enum method)i,
                                     .fresh = fresh != 0,
                                     .changes = i == SUBMIT,
                                     .interval_us = load.interval_us * (i == LIST_ALL ? 20 : 1),
                                     .fd = -1};
            lanes[n].due_us = latency_now_us() + lanes[n].interval_us * n / 16;
            n++;
        }
    }
    return n;
}

static int take_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"socket", 1, NULL, 's'}, {"submit", 1, NULL, 'f'},      {"uid", 1, NULL, 'u'},
        {"gid", 1, NULL, 'g'},    {"interval-ms", 1, NULL, 'i'}, {"patience-ms", 1, NULL, 'p'},
        {0, 0, NULL, 0}};
    int option;
    gid_t gid = getgid();
    uid_t uid = getuid();
    load.address.sun_family = AF_UNIX;
    while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
        long n = optarg != NULL ? strtol(optarg, NULL, 10) : 0;
        if (option == 's')
            (void)snprintf(load.address.sun_path, sizeof load.address.sun_path, "%s", optarg);
        else if (option == 'f')
            load.submit = optarg;
        else if (option == 'u')
            uid = (uid_t)n;
        else if (option == 'g')
            gid = (gid_t)n;
        else if (option == 'i')
            load.interval_us = n * 1000;
        else if (option == 'p')
            load.patience_us = n * 1000;
        else
            return -1;
    }
    if (load.submit == NULL || load.address.sun_path[0] == '\0' || load.interval_us <= 0)
        return -1;
    if (uid == getuid())
        return 0;
    return setgroups(1, &gid) == 0 && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0
               ? 0
               : -1;
}

int main(int argc, char **argv)
{
    static struct lane lanes[2 * N_METHODS];
    sigset_t end;
    if (take_options(argc, argv) != 0) {
        fprintf(stderr, "usage: status_load --socket PATH --submit FILE [--uid N --gid N] "
                        "[--interval-ms N] [--patience-ms N]\n");
        return 2;
    }
    (void)sigemptyset(&end);
    (void)sigaddset(&end, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &end, NULL);
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    int n = make_lanes(lanes);
    run(lanes, n, signalfd(-1, &end, SFD_CLOEXEC));
    print_figures();
    return 0;
}
