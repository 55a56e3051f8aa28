/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/line_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM_LEAST 65536

union control { /* room for one descriptor, aligned */
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

void pb_line_reader_fini(struct pb_line_reader *reader)
{
    free(reader->text);
    if (reader->passed >= 0)
        (void)close(reader->passed);
    *reader = (struct pb_line_reader){.fd = -1, .passed = -1};
}

static ssize_t receive(struct pb_line_reader *reader, char *to, size_t bytes)
{
    union control control;
    struct iovec part = {to, bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    if (!reader->passes)
        return read(reader->fd, to, bytes);
    ssize_t n = recvmsg(reader->fd, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
        return n;
    if (reader->passed >= 0)
        (void)close(reader->passed);
    (void)memcpy(&reader->passed, CMSG_DATA(header), sizeof reader->passed);
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

bool pb_line_reader_fill(struct pb_line_reader *reader)
{
    if (!make_room(reader))
        return false;
    ssize_t n;
    do
        n = receive(reader, reader->text + reader->end, reader->room - reader->end - 1);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    reader->end += (size_t)n;
    return true;
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

bool pb_line_send(int fd, const char *text, size_t bytes, int passed)
{
    char newline[] = "\n";
    union control control = {.bytes = {0}};
    for (size_t at = 0; at <= bytes;) {
        ssize_t n;
        if (at == 0 && passed >= 0 && bytes > 0) {
            union {
                const char *in;
                char *out;
            } cast = {.in = text};
            struct iovec part = {cast.out, bytes};
            struct msghdr message = {.msg_iov = &part,
                                     .msg_iovlen = 1,
                                     .msg_control = control.bytes,
                                     .msg_controllen = sizeof control.bytes};
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof(int));
            (void)memcpy(CMSG_DATA(header), &passed, sizeof passed);
            n = sendmsg(fd, &message, MSG_NOSIGNAL);
        } else {
            n = at < bytes ? write(fd, text + at, bytes - at) : write(fd, newline, 1);
        }
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}
