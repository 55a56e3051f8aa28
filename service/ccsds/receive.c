/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Datagrams are read until none is left; then the lines of an incomplete group are published, so
 * that a line does not wait for the next ones. Missing frames are given up when later ones show it,
 * or when the link is silent. */
#include "service/ccsds/receive.h"

#include "config/base/clock.h"
#include "config/downlink.h"
#include "config/yaml/report.h"
#include "service/base/log.h"
#include "service/ccsds/frames.h"
#include "service/ccsds/lines.h"
#include "service/ccsds/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPORT_MS     60000
#define PIECE_BYTES   262144  /* read of a file at once */
#define SOCKET_BYTES  8388608 /* buffer of the system for datagrams that wait */
#define PATIENCE_MS   60000   /* a file waits this long for the service */
#define AT_ONCE       64      /* datagrams between two looks at the clock */
#define DATAGRAM_MOST 65536
#define DRAIN_MOST    65536

struct receiver {
    const struct pb_receive_options *options;
    struct pb_downlink *downlink;
    struct pb_lines *lines;
    struct pb_frames *frames;
    struct pb_outlet *outlet;
    struct pb_ccsds_counts counts;
    int fd;
    struct sockaddr_storage from; /* family 0: any sender */
    uint8_t *data;
    uint32_t dropped;    /* the system's count, which wraps */
    int64_t report_ms;   /* time of the next report */
    int64_t received_ms; /* time of the last datagram */
    bool is_flushed;     /* since then */
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* --- report ----------------------------------------------------------------------------------- */

static const struct {
    const char *name, *meaning;
    size_t at;
} counts[] = {
#define PB_COUNT(name, meaning) {#name, meaning, offsetof(struct pb_ccsds_counts, name)},
    PB_CCSDS_COUNTS
#undef PB_COUNT
};
#define N_COUNTS (sizeof counts / sizeof *counts)

static unsigned long long count_at(const struct receiver *receiver, size_t i)
{
    uint64_t value;
    memcpy(&value, (const char *)&receiver->counts + counts[i].at, sizeof value);
    return value;
}

static void log_counts(const struct receiver *receiver)
{
    char text[2000];
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < N_COUNTS && n < sizeof text; i++)
        if (count_at(receiver, i) > 0)
            n += (size_t)snprintf(text + n, sizeof text - n, " %s=%llu", counts[i].name,
                                  count_at(receiver, i));
    pb_log_always(PB_LOG_INFO, "counts:%s", n > 0 ? text : " none");
}

static void print_counts(const struct receiver *receiver)
{
    for (size_t i = 0; i < N_COUNTS; i++)
        (void)printf("%-18s %12llu  %s\n", counts[i].name, count_at(receiver, i),
                     counts[i].meaning);
    (void)fflush(stdout);
}

static void report_if_due(struct receiver *receiver)
{
    if (pb_clock_mono_ms() < receiver->report_ms)
        return;
    receiver->report_ms = pb_clock_mono_ms() + REPORT_MS;
    log_counts(receiver);
}

/* --- a file ----------------------------------------------------------------------------------- */

static int read_file(struct receiver *receiver)
{
    while (!stop) {
        const ssize_t n = read(receiver->fd, receiver->data, PIECE_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            pb_log(PB_LOG_ERROR, "%s: %s", receiver->options->file, strerror(errno));
            return PB_CCSDS_EXIT_FAILED;
        }
        if (n == 0)
            break;
        pb_frames_feed(receiver->frames, receiver->data, (size_t)n);
        report_if_due(receiver);
    }
    return PB_CCSDS_EXIT_OK;
}

/* --- UDP -------------------------------------------------------------------------------------- */

static bool is_foreign(const struct receiver *receiver, const struct sockaddr_storage *sender)
{
    struct sockaddr_in a, b;
    struct sockaddr_in6 c, d;
    if (receiver->from.ss_family == 0)
        return false;
    if (sender->ss_family != receiver->from.ss_family)
        return true;
    memcpy(&a, &receiver->from, sizeof a);
    memcpy(&b, sender, sizeof b);
    memcpy(&c, &receiver->from, sizeof c);
    memcpy(&d, sender, sizeof d);
    if (sender->ss_family == AF_INET)
        return a.sin_addr.s_addr != b.sin_addr.s_addr;
    return memcmp(&c.sin6_addr, &d.sin6_addr, sizeof c.sin6_addr) != 0;
}

/* Adds the datagrams that the system dropped since the last one. */
static void count_dropped(struct receiver *receiver, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        uint32_t total;
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL)
            continue;
        memcpy(&total, CMSG_DATA(c), sizeof total);
        receiver->counts.datagrams_dropped += total - receiver->dropped;
        receiver->dropped = total;
    }
}

/* Takes one datagram. Returns 1, 0 if no datagram waits, or a negative errno. */
static int take_datagram(struct receiver *receiver)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint32_t))];
    struct sockaddr_storage sender = {0};
    struct iovec part = {receiver->data, DATAGRAM_MOST};
    struct msghdr message = {.msg_name = &sender,
                             .msg_namelen = sizeof sender,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    const ssize_t n = recvmsg(receiver->fd, &message, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED ? 0 : -errno;
    receiver->counts.datagrams++;
    count_dropped(receiver, &message);
    if ((message.msg_flags & MSG_TRUNC) != 0 || is_foreign(receiver, &sender) ||
        !pb_frames_datagram(receiver->frames, receiver->data, (size_t)n))
        receiver->counts.datagrams_refused++;
    return 1;
}

static void give_up_missing(struct receiver *receiver)
{
    pb_frames_flush(receiver->frames);
    pb_lines_flush(receiver->lines);
    pb_outlet_flush(receiver->outlet);
    receiver->is_flushed = true;
}

static void wait_for_datagram(struct receiver *receiver)
{
    struct pollfd fd = {.fd = receiver->fd, .events = POLLIN};
    const int64_t now = pb_clock_mono_ms();
    const int64_t silent = receiver->received_ms + receiver->options->silence_ms;
    int64_t until = receiver->report_ms;
    if (!receiver->is_flushed && now >= silent)
        give_up_missing(receiver);
    if (!receiver->is_flushed && silent < until)
        until = silent;
    (void)poll(&fd, 1, until > now ? (int)(until - now) : 0);
}

static int read_udp(struct receiver *receiver)
{
    receiver->is_flushed = true;
    while (!stop) {
        int rc = 1, n = 0;
        for (; rc == 1 && n < AT_ONCE && !stop; n += rc == 1)
            rc = take_datagram(receiver);
        if (rc < 0) {
            pb_log(PB_LOG_ERROR, "%s: %s", receiver->options->udp, strerror(-rc));
            return PB_CCSDS_EXIT_FAILED;
        }
        if (n > 0) {
            receiver->received_ms = pb_clock_mono_ms();
            receiver->is_flushed = false;
        }
        report_if_due(receiver);
        if (rc == 0) {
            pb_outlet_flush(receiver->outlet);
            wait_for_datagram(receiver);
        }
    }
    for (int n = 0; n < DRAIN_MOST && take_datagram(receiver) == 1; n++) {
    } /* those that wait when the program stops */
    return PB_CCSDS_EXIT_OK;
}

/* --- start and end ---------------------------------------------------------------------------- */

/* Splits ADDRESS:PORT or [ADDRESS]:PORT and finds the address; port NULL: an address alone. */
static struct addrinfo *find_address(const char *text, bool has_port)
{
    char host[256];
    const char *colon = has_port ? strrchr(text, ':') : text + strlen(text);
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    if (colon == NULL || (size_t)(colon - text) >= sizeof host)
        return NULL;
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    const size_t n = strlen(host);
    const bool has_brackets = n > 2 && host[0] == '[' && host[n - 1] == ']';
    if (has_brackets)
        host[n - 1] = '\0';
    if (getaddrinfo(n > 0 ? host + has_brackets : "0.0.0.0", has_port ? colon + 1 : "0", &hints,
                    &found) != 0)
        return NULL;
    return found;
}

static int bind_socket(struct receiver *receiver, const struct addrinfo *address)
{
    const int on = 1, bytes = SOCKET_BYTES;
    receiver->fd = socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (receiver->fd < 0)
        return -errno;
    if (address->ai_family == AF_INET6)
        (void)setsockopt(receiver->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    (void)setsockopt(receiver->fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    if (setsockopt(receiver->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        (void)setsockopt(receiver->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    return bind(receiver->fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : -errno;
}

/* Logs the address with the port that the system chose for port 0. */
static void log_address(const struct receiver *receiver)
{
    struct sockaddr_storage own;
    socklen_t length = sizeof own;
    char host[64] = "", port[16] = "";
    if (getsockname(receiver->fd, (struct sockaddr *)&own, &length) == 0)
        (void)getnameinfo((struct sockaddr *)&own, length, host, sizeof host, port, sizeof port,
                          NI_NUMERICHOST | NI_NUMERICSERV);
    pb_log(PB_LOG_NOTICE, "listens at %s port %s", host, port);
}

static int open_udp(struct receiver *receiver)
{
    const struct pb_receive_options *options = receiver->options;
    struct addrinfo *at = find_address(options->udp, true);
    struct addrinfo *from = options->from != NULL ? find_address(options->from, false) : NULL;
    int code = PB_CCSDS_EXIT_OK;
    if (at == NULL || (options->from != NULL && from == NULL)) {
        pb_log(PB_LOG_ERROR, "--%s: '%s' is not an address in numbers; write %s",
               at == NULL ? "udp" : "from", at == NULL ? options->udp : options->from,
               at == NULL ? "0.0.0.0:5000 or [::]:5000" : "192.0.2.7 or 2001:db8::7");
        code = PB_CCSDS_EXIT_USAGE;
    }
    if (code == PB_CCSDS_EXIT_OK && from != NULL)
        memcpy(&receiver->from, from->ai_addr, from->ai_addrlen);
    const int rc = code == PB_CCSDS_EXIT_OK ? bind_socket(receiver, at) : 0;
    if (rc != 0) {
        pb_log(PB_LOG_ERROR, "--udp %s: %s", options->udp, strerror(-rc));
        code = PB_CCSDS_EXIT_FAILED;
    } else if (code == PB_CCSDS_EXIT_OK) {
        log_address(receiver);
    }
    if (at != NULL)
        freeaddrinfo(at);
    if (from != NULL)
        freeaddrinfo(from);
    return code;
}

static int open_input(struct receiver *receiver)
{
    const struct pb_receive_options *options = receiver->options;
    if (options->udp != NULL)
        return open_udp(receiver);
    const bool is_stdin = strcmp(options->file, "-") == 0;
    receiver->fd = is_stdin ? dup(STDIN_FILENO) : open(options->file, O_RDONLY | O_CLOEXEC);
    if (receiver->fd >= 0)
        return PB_CCSDS_EXIT_OK;
    pb_log(PB_LOG_ERROR, "%s: %s", options->file, strerror(errno));
    return PB_CCSDS_EXIT_FAILED;
}

static int load(struct receiver *receiver)
{
    static struct pb_err_list errors;
    char text[1200];
    if (pb_downlink_load(receiver->options->downlink, &errors, &receiver->downlink) == 0)
        return PB_CCSDS_EXIT_OK;
    for (size_t i = 0; i < errors.n; i++) {
        pb_err_text(&errors.err[i], text, sizeof text);
        (void)fprintf(stderr, "pushbroom-ccsds: %s\n", text);
    }
    return PB_CCSDS_EXIT_USAGE;
}

static int open_outlet(struct receiver *receiver)
{
    const struct pb_receive_options *options = receiver->options;
    const struct pb_outlet_options outlet = {.stream = options->stream,
                                             .socket = options->socket,
                                             .token_file = options->token_file,
                                             .group_lines = options->group_lines,
                                             .patience_ms = options->udp != NULL ? 0 : PATIENCE_MS,
                                             .lines = &receiver->downlink->lines,
                                             .counts = &receiver->counts,
                                             .stop = &stop};
    struct pb_err err = {0};
    char text[1200];
    if (pb_outlet_open(&outlet, &receiver->outlet, &err) == 0)
        return PB_CCSDS_EXIT_OK;
    pb_err_text(&err, text, sizeof text);
    (void)fprintf(stderr, "pushbroom-ccsds: %s\n", text);
    return err.code == PB_E_SERVICE_UNREACHABLE ? PB_CCSDS_EXIT_UNREACHABLE : PB_CCSDS_EXIT_USAGE;
}

static int create(struct receiver *receiver)
{
    int rc = pb_lines_create(receiver->downlink, pb_outlet_line, receiver->outlet,
                             &receiver->counts, &receiver->lines);
    if (rc == 0) {
        const struct pb_frames_options frames = {.format = &receiver->downlink->frames,
                                                 .packet_bytes =
                                                     pb_lines_packet_bytes(receiver->lines),
                                                 .wanted = pb_lines_wanted(receiver->lines),
                                                 .deliver = pb_lines_packet,
                                                 .user = receiver->lines,
                                                 .counts = &receiver->counts};
        rc = pb_frames_create(&frames, &receiver->frames);
    }
    receiver->data = malloc(PIECE_BYTES);
    if (rc == 0 && receiver->data != NULL)
        return PB_CCSDS_EXIT_OK;
    if (rc == -E2BIG)
        (void)fprintf(stderr,
                      "pushbroom-ccsds: %s: lines.samples: the lines that may be in "
                      "reception need over 512 MiB; lower frames.reorder\n",
                      receiver->options->downlink);
    else
        (void)fprintf(stderr, "pushbroom-ccsds: no memory for lines\n");
    return rc == -E2BIG ? PB_CCSDS_EXIT_USAGE : PB_CCSDS_EXIT_FAILED;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART: poll returns */
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

int pb_receive_run(const struct pb_receive_options *options)
{
    struct receiver receiver = {.options = options, .fd = -1};
    receiver.report_ms = pb_clock_mono_ms() + REPORT_MS;
    catch_signals();
    int code = load(&receiver);
    code = code != PB_CCSDS_EXIT_OK ? code : open_input(&receiver);
    code = code != PB_CCSDS_EXIT_OK ? code : open_outlet(&receiver);
    code = code != PB_CCSDS_EXIT_OK ? code : create(&receiver);
    const bool has_begun = code == PB_CCSDS_EXIT_OK;
    if (has_begun)
        code = options->udp != NULL ? read_udp(&receiver) : read_file(&receiver);
    if (has_begun)
        give_up_missing(&receiver);
    if (pb_outlet_close(receiver.outlet) != 0 && code == PB_CCSDS_EXIT_OK) {
        pb_log(PB_LOG_ERROR, "stream %s: the service did not take all lines", options->stream);
        code = PB_CCSDS_EXIT_UNREACHABLE;
    }
    if (has_begun)
        print_counts(&receiver);
    pb_frames_destroy(receiver.frames);
    pb_lines_destroy(receiver.lines);
    pb_downlink_destroy(receiver.downlink);
    free(receiver.data);
    if (receiver.fd >= 0)
        (void)close(receiver.fd);
    return code;
}
