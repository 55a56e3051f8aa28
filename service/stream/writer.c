/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Uses wic and nothing else of pushbroom, because it is a library of its own. */
#include "service/stream/writer.h"

#include "wic/wic.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_S 10
#define LOOK_MS   200 /* a waiting writer looks this often if the service is gone */

struct pb_stream_writer {
    struct pb_stream_format format;
    struct pb_stream_room room;
    int socket;
    bool holds; /* a slot is acquired */
    struct wic_slot slot;
};

static int __attribute__((format(printf, 3, 4)))
fail(char error[PB_STREAM_ERROR_BYTES], int rc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, PB_STREAM_ERROR_BYTES, format, args);
    va_end(args);
    return rc;
}

/* --- the request ------------------------------------------------------------------------------ */

struct text {
    char bytes[PB_STREAM_HANDSHAKE_BYTES];
    size_t n;
    bool is_full;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const size_t room = sizeof text->bytes - text->n;
    const int n = vsnprintf(text->bytes + text->n, room, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= room)
        text->is_full = true;
    else
        text->n += (size_t)n;
}

/* Adds `, "key": "value"`. */
static void add_string(struct text *text, const char *key, const char *value)
{
    add(text, ", \"%s\": \"", key);
    for (; *value != '\0'; value++) {
        const unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\')
            add(text, "\\%c", c);
        else if (c < 0x20)
            add(text, "\\u%04x", c);
        else
            add(text, "%c", c);
    }
    add(text, "\"");
}

static void make_request(const struct pb_stream_options *options, struct text *text)
{
    const struct pb_stream_format *format = &options->format;
    add(text, "{\"version\": 1");
    add_string(text, "stream", options->stream);
    add_string(text, "type", pb_stream_type_word(format->type));
    add(text, ", \"bands\": %u, \"samples\": %u, \"group_lines\": %u", format->bands,
        format->samples, format->group_lines);
    if (options->has_transform) {
        add(text, ", \"transform\": [");
        for (int i = 0; i < 6; i++)
            add(text, "%s%.17g", i ? ", " : "", options->transform[i]);
        add(text, "]");
    }
    if (options->epsg != 0)
        add(text, ", \"epsg\": %u", options->epsg);
    if (options->token != NULL)
        add_string(text, "token", options->token);
    add(text, "}\n");
}

/* --- the connection --------------------------------------------------------------------------- */

static int send_all(int socket, const char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t sent = send(socket, bytes, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return sent < 0 ? -errno : -EIO;
        bytes += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* Receives one part of a line, and the descriptor that arrives with it. */
static ssize_t receive_part(int socket, char *bytes, size_t n, int *fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control = {.bytes = {0}};
    struct iovec part = {bytes, n};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len >= CMSG_LEN(sizeof(int))) {
        if (*fd >= 0)
            (void)close(*fd);
        (void)memcpy(fd, CMSG_DATA(header), sizeof *fd);
    }
    return got;
}

/* Receives a line without its line feed. *fd: -1, or the descriptor that was passed. */
static int receive_line(int socket, char *line, size_t bytes, int *fd)
{
    size_t n = 0;
    while (n + 1 < bytes) {
        const ssize_t got = receive_part(socket, line + n, bytes - 1 - n, fd);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ECONNRESET;
        n += (size_t)got;
        if (line[n - 1] == '\n') {
            line[n - 1] = '\0';
            return 0;
        }
    }
    return -EPROTO;
}

static int connect_to(const char *path, char *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = CONNECT_S};
    if (strlen(path) >= sizeof address.sun_path)
        return fail(error, -ENAMETOOLONG, "the socket's path is too long: %s", path);
    (void)strcpy(address.sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(error, -errno, "cannot make a socket: %s", strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    const int rc = errno == ECONNREFUSED ? -ENOENT : -errno;
    (void)fail(error, rc, "no service takes streams at %s: %s", path, strerror(errno));
    (void)close(fd);
    return rc;
}

/* Codes of refusals, which the service sends as words. */
static int code_of(const char *answer)
{
    static const struct {
        const char *word;
        int rc;
    } codes[] = {{"\"unknown\"", -ENOENT},
                 {"\"denied\"", -EACCES},
                 {"\"busy\"", -EBUSY},
                 {"\"invalid\"", -EINVAL},
                 {"\"unavailable\"", -EAGAIN}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strstr(answer, codes[i].word) != NULL)
            return codes[i].rc;
    return -EPROTO;
}

/* Copies the text of the member "message". */
static void message_of(const char *answer, char *error)
{
    static const char key[] = "\"message\"";
    const char *from = strstr(answer, key);
    size_t n = 0;
    from = from != NULL ? strchr(from + sizeof key - 1, '"') : NULL;
    for (from = from ? from + 1 : ""; *from != '\0' && *from != '"'; from++) {
        if (*from == '\\' && from[1] != '\0')
            from++;
        if (n + 1 < PB_STREAM_ERROR_BYTES)
            error[n++] = *from;
    }
    error[n] = '\0';
}

static int take_answer(const char *answer, int fd, char *error, struct pb_stream_writer *writer)
{
    unsigned slots = 0;
    size_t slot_bytes = 0;
    if (strstr(answer, "\"error\"") != NULL) {
        message_of(answer, error);
        return code_of(answer);
    }
    if (fd < 0 || sscanf(answer, "{\"slots\": %u, \"slot_bytes\": %zu", &slots, &slot_bytes) != 2 ||
        slots < 1 || slots > WIC_SLOTS_MAX || slot_bytes != pb_stream_slot_bytes(&writer->format))
        return fail(error, -EPROTO, "the service's answer makes no sense: %.200s", answer);
    const int rc = pb_stream_room_open(fd, slots, slot_bytes, false, NULL, NULL, &writer->room);
    return rc ? fail(error, rc, "cannot map the memory of the stream: %s", strerror(-rc)) : 0;
}

static int greet(const struct pb_stream_options *options, char *error,
                 struct pb_stream_writer *writer)
{
    int passed = -1;
    struct text *text = calloc(1, sizeof *text);
    if (text == NULL)
        return fail(error, -ENOMEM, "out of memory");
    make_request(options, text);
    int rc = text->is_full ? fail(error, -EINVAL, "the request is too long") : 0;
    if (rc == 0) {
        rc = send_all(writer->socket, text->bytes, text->n);
        rc = rc ? rc : receive_line(writer->socket, text->bytes, sizeof text->bytes, &passed);
        if (rc != 0)
            (void)fail(error, rc, "the service does not answer: %s", strerror(-rc));
    }
    rc = rc ? rc : take_answer(text->bytes, passed, error, writer);
    if (passed >= 0)
        (void)close(passed);
    free(text);
    return rc;
}

static void destroy(struct pb_stream_writer *writer)
{
    pb_stream_room_close(&writer->room);
    if (writer->socket >= 0)
        (void)close(writer->socket);
    free(writer);
}

int pb_stream_open(const struct pb_stream_options *options, char error[PB_STREAM_ERROR_BYTES],
                   struct pb_stream_writer **out_writer)
{
    if (options->stream == NULL || options->socket == NULL ||
        pb_stream_slot_bytes(&options->format) == 0)
        return fail(error, -EINVAL, "socket or stream is missing, or the format is invalid");
    struct pb_stream_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return fail(error, -ENOMEM, "out of memory");
    writer->format = options->format;
    writer->socket = connect_to(options->socket, error);
    int rc = writer->socket < 0 ? writer->socket : greet(options, error, writer);
    if (rc != 0) {
        destroy(writer);
        return rc;
    }
    *out_writer = writer;
    return 0;
}

/* --- groups ----------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t now_ms(void)
{
    return now_ns() / 1000000;
}

/* The service sends nothing after its answer: any event means that it closed the stream. */
static bool is_over(const struct pb_stream_writer *writer, int wait_ms)
{
    struct pollfd fd = {.fd = writer->socket, .events = POLLIN | POLLRDHUP};
    const int64_t end_ms = now_ms() + wait_ms;
    int rc = poll(&fd, 1, wait_ms);
    while (rc < 0 && errno == EINTR) {
        const int64_t left_ms = end_ms - now_ms();
        rc = poll(&fd, 1, left_ms > 0 ? (int)left_ms : 0);
    }
    return rc > 0;
}

static int acquire(struct pb_stream_writer *writer, int64_t timeout_ms)
{
    const int64_t begin_ms = now_ms();
    const bool is_endless = timeout_ms < 0 || timeout_ms > INT64_MAX - begin_ms;
    const int64_t end_ms = is_endless ? INT64_MAX : begin_ms + timeout_ms;
    for (;;) {
        if (is_over(writer, 0))
            return -ECONNRESET;
        const int64_t left_ms = end_ms - now_ms();
        const int64_t wait_ms = left_ms < 0 ? 0 : left_ms > LOOK_MS ? LOOK_MS : left_ms;
        const int rc = wic_acquire(writer->room.channel, wait_ms * 1000000, &writer->slot);
        if (rc != -ETIMEDOUT)
            return rc == 0 ? 0 : -ECONNRESET;
        if (now_ms() >= end_ms)
            return -ETIMEDOUT;
    }
}

int pb_stream_acquire(struct pb_stream_writer *writer, int64_t timeout_ms, void **out_pixels)
{
    const int rc = writer->holds ? 0 : acquire(writer, timeout_ms);
    if (rc != 0)
        return rc;
    writer->holds = true;
    *out_pixels = (unsigned char *)writer->slot.data + pb_stream_pixels_offset(&writer->format);
    return 0;
}

int pb_stream_publish(struct pb_stream_writer *writer, uint64_t line, uint32_t lines,
                      const int64_t *times_ns)
{
    if (!writer->holds || lines < 1 || lines > writer->format.group_lines ||
        line > INT64_MAX - PB_STREAM_GROUP_LINES_MAX)
        return -EINVAL;
    unsigned char *slot = writer->slot.data;
    const struct pb_stream_group group = {
        .line = line, .lines = lines, .has_times = times_ns != NULL, .published_ns = now_ns()};
    (void)memcpy(slot, &group, sizeof group);
    if (times_ns != NULL)
        (void)memcpy(slot + pb_stream_times_offset(), times_ns, lines * sizeof *times_ns);
    writer->holds = false;
    return wic_publish(writer->room.channel, &writer->slot,
                       pb_stream_slot_bytes(&writer->format)) == 0
               ? 0
               : -ECONNRESET;
}

int pb_stream_copy(struct pb_stream_writer *writer, int64_t timeout_ms, uint64_t line,
                   uint32_t lines, const void *pixels, const int64_t *times_ns)
{
    void *room;
    if (lines < 1 || lines > writer->format.group_lines)
        return -EINVAL;
    const int rc = pb_stream_acquire(writer, timeout_ms, &room);
    if (rc != 0)
        return rc;
    (void)memcpy(room, pixels, lines * pb_stream_line_bytes(&writer->format));
    return pb_stream_publish(writer, line, lines, times_ns);
}

/* After the last line the service sends {} and closes the connection. It only closes it if it
 * could not take all lines. */
static int await_end(struct pb_stream_writer *writer, int64_t timeout_ms)
{
    char answer[16];
    const int wait_ms = timeout_ms < 0 || timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms;
    if (!is_over(writer, wait_ms))
        return -ETIMEDOUT;
    const ssize_t got = recv(writer->socket, answer, sizeof answer, MSG_DONTWAIT);
    return got > 0 && answer[0] == '{' ? 0 : -ECONNRESET;
}

int pb_stream_close(struct pb_stream_writer *writer, int64_t timeout_ms)
{
    int rc = 0;
    if (writer == NULL)
        return 0;
    /* An acquired slot is never published. The service reads what was published before it. */
    wic_close(writer->room.channel);
    if (writer->holds)
        (void)shutdown(writer->socket, SHUT_WR);
    rc = await_end(writer, timeout_ms);
    destroy(writer);
    return rc;
}
