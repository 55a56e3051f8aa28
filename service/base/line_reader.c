/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/line_reader.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROOM_LEAST 8192

static void close_passed(struct pb_line_reader *reader)
{
    for (size_t i = 0; i < reader->n_passed; i++)
        (void)close(reader->passed[i]);
    reader->n_passed = 0;
}

void pb_line_reader_fini(struct pb_line_reader *reader)
{
    free(reader->text);
    close_passed(reader);
    *reader = (struct pb_line_reader){.fd = -1};
}

static ssize_t receive(struct pb_line_reader *reader, char *to, size_t bytes)
{
    if (!reader->passes)
        return read(reader->fd, to, bytes);
    int passed[PB_PASSED_MAX];
    size_t n_passed;
    ssize_t n = pb_passed_fds_receive(reader->fd, to, bytes, passed, &n_passed, 0);
    if (n_passed > 0) {
        close_passed(reader);
        (void)memcpy(reader->passed, passed, n_passed * sizeof passed[0]);
        reader->n_passed = n_passed;
    }
    return n;
}

static bool make_room(struct pb_line_reader *reader)
{
    if (reader->start > 0) {
        (void)memmove(reader->text, reader->text + reader->start, reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    if (reader->room - reader->end >= ROOM_LEAST)
        return true;
    size_t room = reader->room * 2 + 2 * (size_t)ROOM_LEAST;
    char *more = room <= PB_LINE_READER_MAX ? realloc(reader->text, room) : NULL;
    if (more == NULL)
        return false;
    reader->text = more;
    reader->room = room;
    return true;
}

/* Reads what is available, again after a signal; returns 0 or less at the end. */
static ssize_t receive_some(struct pb_line_reader *reader, char *to, size_t bytes)
{
    ssize_t n;
    do
        n = receive(reader, to, bytes);
    while (n < 0 && errno == EINTR);
    return n;
}

bool pb_line_reader_fill(struct pb_line_reader *reader)
{
    if (!make_room(reader))
        return false;
    ssize_t n = receive_some(reader, reader->text + reader->end, reader->room - reader->end - 1);
    reader->end += n > 0 ? (size_t)n : 0;
    return n > 0;
}

bool pb_line_reader_bytes(struct pb_line_reader *reader, void *to, size_t bytes)
{
    const size_t here = reader->end - reader->start;
    size_t at = here < bytes ? here : bytes;
    if (at > 0)
        (void)memcpy(to, reader->text + reader->start, at);
    reader->start += at;
    for (ssize_t n = 1; at < bytes && n > 0; at += n > 0 ? (size_t)n : 0)
        n = receive_some(reader, (char *)to + at, bytes - at);
    return at == bytes;
}

char *pb_line_reader_next(struct pb_line_reader *reader, size_t *out_bytes)
{
    char *line = reader->text ? reader->text + reader->start : NULL;
    char *end = line ? memchr(line, '\n', reader->end - reader->start) : NULL;
    if (end == NULL)
        return NULL;
    *end = '\0';
    *out_bytes = (size_t)(end - line);
    reader->start += *out_bytes + 1;
    return line;
}

bool pb_line_send_bytes(int fd, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = write(fd, (const char *)from + at, bytes - at);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Line and newline in one call: two would wake the reader twice. */
static ssize_t send_rest(int fd, const char *text, size_t bytes, size_t at)
{
    struct iovec parts[2] = {{(char *)(uintptr_t)text + at, bytes - at}, {(char[]){'\n'}, 1}};
    return writev(fd, parts, 2);
}

bool pb_line_send(int fd, const char *text, size_t bytes, const int *passed, size_t n_passed)
{
    for (size_t at = 0; at <= bytes;) {
        ssize_t n;
        if (at == 0 && n_passed > 0 && bytes > 0)
            n = pb_passed_fds_send(fd, text, bytes, passed, n_passed, 0);
        else
            n = send_rest(fd, text, bytes, at);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}
