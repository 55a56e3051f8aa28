/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Clients of the status socket with every bad habit, as many as wanted, of several users: see
 * habits below. Client i has habit i mod N_HABITS. One thread, which sleeps in epoll. Each client
 * acts every --interval-ms on the mean, floods as fast as they are answered; the processor time
 * that the whole crowd may use is bounded by --cpu-percent of one core, so that a measurement next
 * to it is of the service and not of the scheduler.
 *
 *   status_crowd --socket PATH --clients N --uids U,U,... --gid G --stranger U --submit
 * PATH,PATH,...
 *                [--interval-ms N] [--cpu-percent N] [--seed N]
 *
 * Users U have the group G, which may use the socket; the stranger has not and must never get in.
 * Until SIGTERM, then one line of JSON: actions, connections, replies and refusals of each habit.
 */
#include "tests/tools/latency.h"
#include "tests/tools/mutate.h"

#include <errno.h>
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

#define GIANT_BYTES 80000 /* over the limit of a line */
#define JOBS_KEPT   256
#define LIST_MAX    16 /* users, paths */
#define CPU_LOOK_US 10000

enum habit {
    CONNECT_CLOSE,  /* leaves at once, or not */
    SILENT,         /* connects and sends nothing */
    HALF_REQUEST,   /* stops in the middle of a line */
    DRIP,           /* a byte of a request now and then */
    GIANT_LINE,     /* a line over the limit */
    GARBAGE,        /* random bytes, lines of no request */
    SUBMIT_NOTHING, /* submits what is not there, no file, not readable or does not answer */
    STRANGER,       /* has no right to connect */
    NEVER_READS,    /* requests long lists and reads none */
    WATCHER,
    DEAF_WATCHER, /* reads nothing */
    FLOOD_GET,
    FLOOD_LIST,
    FLOOD_METRICS,
    CHANGE_RANDOM,
    N_HABITS
};

#define ALL "\"limit\":1000"
/* Requests of habits without changes: two methods, taken at random; params NULL = a random job;
 * requests that may be on their way at a time. */
static const struct {
    const char *name, *method, *other, *params;
    unsigned at_once;
} habits[N_HABITS] = {
    [CONNECT_CLOSE] = {.name = "connect and close"},
    [SILENT] = {.name = "silent"},
    [HALF_REQUEST] = {.name = "half request"},
    [DRIP] = {.name = "drip"},
    [GIANT_LINE] = {.name = "giant line"},
    [GARBAGE] = {.name = "garbage"},
    [SUBMIT_NOTHING] = {.name = "submit nothing"},
    [STRANGER] = {.name = "stranger"},
    [NEVER_READS] = {"never reads", "job.list", "job.list", ALL, 1000},
    [WATCHER] = {"watcher", "job.watch", "job.watch", "", 1},
    [DEAF_WATCHER] = {"deaf watcher", "job.watch", "job.watch", "", 1},
    [FLOOD_GET] = {"flood of get", "job.get", "job.get", NULL, 16},
    [FLOOD_LIST] = {"flood of list", "job.list", "job.list", ALL, 4},
    [FLOOD_METRICS] = {"flood of metrics", "service.metrics", "service.info", "", 16},
    [CHANGE_RANDOM] = {"change random", "job.cancel", "job.retry", NULL, 1},
};

struct tally {
    unsigned actions, connections, replies, refused, ended;
};

struct client {
    enum habit habit;
    uid_t uid;
    int fd;
    int64_t due_us;
    unsigned asked; /* requests on their way */
};

static struct {
    struct sockaddr_un address;
    uid_t uids[LIST_MAX];
    gid_t gid;
    char *paths[LIST_MAX];
    size_t n_uids, n_paths, n_clients, n_jobs;
    int64_t interval_us;
    int epoll;
    struct mutate random;
    struct tally tally[N_HABITS];
    char jobs[JOBS_KEPT][48];
    size_t next_job;
} crowd;

/* Numbers by the option's value. */
enum { GID = 1, STRANGER_UID, CLIENTS, INTERVAL_MS, CPU_PERCENT, SEED, N_NUMBERS };
static long numbers[N_NUMBERS] = {[INTERVAL_MS] = 100, [CPU_PERCENT] = 30, [SEED] = 1};

static char bytes[1 << 20];

static size_t below(size_t n)
{
    return mutate_below(&crowd.random, n);
}

static void hang_up(struct client *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
    c->asked = 0;
}

static bool is_reading(enum habit habit)
{
    return habit != NEVER_READS && habit != DEAF_WATCHER;
}

/* Connects as the client's user: the kernel keeps the credentials of this moment. */
static bool connect_as(struct client *c)
{
    struct tally *tally = &crowd.tally[c->habit];
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = c}};
    gid_t group = c->habit == STRANGER ? (gid_t)c->uid : crowd.gid;
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return false;
    if (setegid(group) != 0 || seteuid(c->uid) != 0)
        abort();
    int rc = connect(c->fd, (struct sockaddr *)&crowd.address, sizeof crowd.address);
    int error = errno;
    if (seteuid(0) != 0)
        abort();
    if (rc != 0) {
        tally->refused += error == EACCES;
        hang_up(c);
        return false;
    }
    tally->connections++;
    if (!is_reading(c->habit))
        event.events = 0; /* its end is still reported */
    (void)epoll_ctl(crowd.epoll, EPOLL_CTL_ADD, c->fd, &event);
    return true;
}

static void say(struct client *c, const char *text, size_t n)
{
    ssize_t sent = send(c->fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN)
        hang_up(c);
    else if (sent == (ssize_t)n)
        c->asked++;
}

static void ask(struct client *c, const char *method, const char *member, const char *value)
{
    char line[2048];
    int n = snprintf(line, sizeof line,
                     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s%s%s}}\n",
                     method, member, value, *value ? "\"" : "");
    say(c, line, (size_t)n);
}

/* Until enough are on their way, or the connection takes no more. */
static void ask_habitually(struct client *c)
{
    for (int i = 0; i < 16 && c->fd >= 0 && c->asked < habits[c->habit].at_once; i++) {
        unsigned before = c->asked;
        const char *method = below(2) ? habits[c->habit].method : habits[c->habit].other;
        if (habits[c->habit].params != NULL)
            ask(c, method, habits[c->habit].params, "");
        else
            ask(c, method, "\"id\":\"", crowd.n_jobs ? crowd.jobs[below(crowd.n_jobs)] : "none");
        if (c->asked == before)
            break;
    }
}

static void send_random(struct client *c)
{
    char text[512];
    size_t n = 1 + below(sizeof text);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)below(256);
    text[n - 1] = '\n';
    say(c, text, n);
}

static void speak(struct client *c)
{
    static const char begun[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"meth", giant[GIANT_BYTES] = "[[[";
    if (habits[c->habit].method != NULL)
        ask_habitually(c);
    else if (c->habit == HALF_REQUEST && c->asked == 0)
        say(c, begun, sizeof begun - 1);
    else if (c->habit == DRIP)
        say(c, &begun[c->asked % (sizeof begun - 1)], 1);
    else if (c->habit == GIANT_LINE)
        say(c, giant, sizeof giant);
    else if (c->habit == GARBAGE)
        send_random(c);
    else if (c->habit == SUBMIT_NOTHING)
        ask(c, "job.submit", "\"input\":\"", crowd.paths[below(crowd.n_paths)]);
    else if (c->habit == CONNECT_CLOSE && below(4) != 0)
        hang_up(c);
}

static void act(struct client *c, int64_t now_us)
{
    c->due_us = now_us + 1 + (int64_t)below((size_t)crowd.interval_us * 2);
    crowd.tally[c->habit].actions++;
    if (c->habit == CONNECT_CLOSE)
        hang_up(c);
    if (c->fd < 0 && !connect_as(c))
        return;
    speak(c);
}

static void keep_jobs(const char *text)
{
    const char *at = text;
    for (int i = 0; i < 64 && (at = strstr(at, "{\"id\":\"")) != NULL; i++) {
        at += strlen("{\"id\":\"");
        (void)snprintf(crowd.jobs[crowd.next_job], sizeof crowd.jobs[0], "%.*s",
                       (int)strcspn(at, "\""), at);
        crowd.next_job = (crowd.next_job + 1) % JOBS_KEPT;
        crowd.n_jobs += crowd.n_jobs < JOBS_KEPT;
    }
}

static void take(struct client *c, unsigned events)
{
    struct tally *tally = &crowd.tally[c->habit];
    if (c->fd < 0)
        return; /* it left in this round */
    ssize_t n = is_reading(c->habit) ? recv(c->fd, bytes, sizeof bytes - 1, MSG_DONTWAIT) : 0;
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        tally->ended += (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
        hang_up(c);
        return;
    }
    bytes[n] = '\0';
    for (const char *at = bytes; (at = memchr(at, '\n', (size_t)(bytes + n - at))) != NULL; at++) {
        tally->replies++;
        if (c->habit != HALF_REQUEST && c->habit != WATCHER && c->asked > 0)
            c->asked--;
    }
    tally->refused += strstr(bytes, "\"service.busy\"") != NULL;
    if (c->habit == FLOOD_LIST || c->habit == WATCHER)
        keep_jobs(bytes);
    if (habits[c->habit].at_once > 1) /* floods as fast as it is answered */
        speak(c);
}

/* Sleeps while the crowd used more of the processor than it may. */
static void hold_back(int64_t start_us)
{
    int64_t may_ms = (latency_now_us() - start_us) / 1000 * numbers[CPU_PERCENT] / 100 + 20;
    int64_t over_ms = latency_cpu_ms() - may_ms;
    const struct timespec pause = {0, CPU_LOOK_US * 1000};
    if (over_ms > 0)
        (void)nanosleep(&pause, NULL);
}

static void run(struct client *clients, int end)
{
    struct epoll_event events[64], event = {.events = EPOLLIN, .data = {.ptr = NULL}};
    int64_t start_us = latency_now_us();
    size_t next = 0;
    (void)epoll_ctl(crowd.epoll, EPOLL_CTL_ADD, end, &event);
    for (;;) {
        int ready = epoll_wait(crowd.epoll, events, 64, 2);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr == NULL)
                return;
            take(events[i].data.ptr, events[i].events);
        }
        int64_t now_us = latency_now_us();
        for (size_t i = 0, acted = 0; i < crowd.n_clients && acted < 64; i++) {
            struct client *c = &clients[next];
            next = (next + 1) % crowd.n_clients;
            if (c->due_us > now_us)
                continue;
            act(c, now_us);
            acted++;
        }
        hold_back(start_us);
    }
}

static void print_tallies(int64_t took_us)
{
    printf("{");
    for (int i = 0; i < N_HABITS; i++) {
        const struct tally *t = &crowd.tally[i];
        printf("\"%s\":{\"actions\":%u,\"connections\":%u,\"replies\":%u,\"refused\":%u,"
               "\"ended\":%u},",
               habits[i].name, t->actions, t->connections, t->replies, t->refused, t->ended);
    }
    printf("\"cpu_ms\":%" PRId64 ",\"ms\":%" PRId64 "}\n", latency_cpu_ms(), took_us / 1000);
}

static void take_list(char *text, int option)
{
    for (char *save = NULL, *word = strtok_r(text, ",", &save); word != NULL;
         word = strtok_r(NULL, ",", &save)) {
        if (option == 'u' && crowd.n_uids < LIST_MAX)
            crowd.uids[crowd.n_uids++] = (uid_t)strtol(word, NULL, 10);
        else if (option == 'f' && crowd.n_paths < LIST_MAX)
            crowd.paths[crowd.n_paths++] = word;
    }
}

static int take_options(int argc, char **argv)
{
    static const struct option known[] = {{"socket", 1, NULL, 's'},
                                          {"submit", 1, NULL, 'f'},
                                          {"uids", 1, NULL, 'u'},
                                          {"gid", 1, NULL, GID},
                                          {"stranger", 1, NULL, STRANGER_UID},
                                          {"clients", 1, NULL, CLIENTS},
                                          {"interval-ms", 1, NULL, INTERVAL_MS},
                                          {"cpu-percent", 1, NULL, CPU_PERCENT},
                                          {"seed", 1, NULL, SEED},
                                          {0, 0, NULL, 0}};
    int option;
    crowd.address.sun_family = AF_UNIX;
    while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
        if (option < N_NUMBERS)
            numbers[option] = strtol(optarg, NULL, 10);
        else if (option == 's')
            (void)snprintf(crowd.address.sun_path, sizeof crowd.address.sun_path, "%s", optarg);
        else if (option == 'f' || option == 'u')
            take_list(optarg, option);
        else
            return -1;
    }
    crowd.gid = (gid_t)numbers[GID];
    crowd.n_clients = (size_t)numbers[CLIENTS];
    crowd.interval_us = numbers[INTERVAL_MS] * 1000;
    crowd.random.state = (uint64_t)numbers[SEED];
    return crowd.n_uids > 0 && crowd.n_paths > 0 && crowd.n_clients > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    sigset_t end;
    if (take_options(argc, argv) != 0) {
        fprintf(stderr, "usage: status_crowd --socket PATH --clients N --uids U,U --gid G "
                        "--stranger U --submit PATH,PATH [--interval-ms N] [--cpu-percent N]\n");
        return 2;
    }
    struct client *clients = calloc(crowd.n_clients, sizeof *clients);
    (void)sigemptyset(&end);
    (void)sigaddset(&end, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &end, NULL);
    crowd.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (clients == NULL || setgroups(0, NULL) != 0)
        return 1;
    int64_t start_us = latency_now_us();
    for (size_t i = 0; i < crowd.n_clients; i++) {
        enum habit habit = (enum habit)(i % N_HABITS);
        clients[i] =
            (struct client){.habit = habit,
                            .uid = habit == STRANGER ? (uid_t)numbers[STRANGER_UID]
                                                     : crowd.uids[i / N_HABITS % crowd.n_uids],
                            .fd = -1,
                            .due_us = start_us + (int64_t)below((size_t)crowd.interval_us)};
    }
    run(clients, signalfd(-1, &end, SFD_CLOEXEC));
    print_tallies(latency_now_us() - start_us);
    free(clients);
    return 0;
}
