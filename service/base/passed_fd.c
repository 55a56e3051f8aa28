/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/passed_fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* CMSG_SPACE rounds up to 8 bytes, which is room for one more descriptor: a receiver with that
 * much room would get it and leak it. */
#define CONTROL_BYTES(n) CMSG_LEN((n) * sizeof(int))

union control { /* room for PB_PASSED_MAX descriptors, aligned */
    char bytes[CMSG_SPACE(PB_PASSED_MAX * sizeof(int))];
    struct cmsghdr header;
};

ssize_t pb_passed_fds_send(int socket, const void *bytes, size_t n, const int *passed,
                           size_t n_passed, int flags)
{
    union control control = {.bytes = {0}};
    union {
        const void *in;
        void *out;
    } cast = {.in = bytes};
    struct iovec part = {cast.out, n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (n_passed > PB_PASSED_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (n_passed > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CONTROL_BYTES(n_passed);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CONTROL_BYTES(n_passed);
        (void)memcpy(CMSG_DATA(&control.header), passed, n_passed * sizeof *passed);
    }
    return sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

/* Receives at most `most` descriptors. */
static ssize_t receive(int socket, void *bytes, size_t n, int *out_passed, size_t most,
                       size_t *out_n, int flags)
{
    union control control = {.bytes = {0}};
    struct iovec part = {bytes, n};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CONTROL_BYTES(most)};
    *out_n = 0;
    ssize_t got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len <= CMSG_LEN(0))
        return got;
    *out_n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    (void)memcpy(out_passed, CMSG_DATA(header), *out_n * sizeof(int));
    return got;
}

ssize_t pb_passed_fds_receive(int socket, void *bytes, size_t n, int out_passed[PB_PASSED_MAX],
                              size_t *out_n, int flags)
{
    return receive(socket, bytes, n, out_passed, PB_PASSED_MAX, out_n, flags);
}

ssize_t pb_passed_fd_send(int socket, const void *bytes, size_t n, int passed, int flags)
{
    return pb_passed_fds_send(socket, bytes, n, &passed, passed >= 0 ? 1 : 0, flags);
}

ssize_t pb_passed_fd_receive(int socket, void *bytes, size_t n, int *out_passed, int flags)
{
    size_t n_passed;
    *out_passed = -1;
    return receive(socket, bytes, n, out_passed, 1, &n_passed, flags);
}
