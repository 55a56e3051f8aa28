/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/passed_fd.h"

#include <string.h>
#include <sys/socket.h>

/* CMSG_SPACE rounds up to 8 bytes, which is room for a second descriptor: a receiver with that much
 * room would get a second one and leak it. */
#define CONTROL_BYTES CMSG_LEN(sizeof(int))

union control { /* room for one descriptor, aligned */
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
};

ssize_t pb_passed_fd_send(int socket, const void *bytes, size_t n, int passed, int flags)
{
    union control control = {.bytes = {0}};
    union {
        const void *in;
        void *out;
    } cast = {.in = bytes};
    struct iovec part = {cast.out, n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (passed >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CONTROL_BYTES;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CONTROL_BYTES;
        (void)memcpy(CMSG_DATA(&control.header), &passed, sizeof passed);
    }
    return sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

ssize_t pb_passed_fd_receive(int socket, void *bytes, size_t n, int *out_passed, int flags)
{
    union control control = {.bytes = {0}};
    struct iovec part = {bytes, n};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CONTROL_BYTES};
    *out_passed = -1;
    ssize_t got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CONTROL_BYTES)
        (void)memcpy(out_passed, CMSG_DATA(header), sizeof *out_passed);
    return got;
}
