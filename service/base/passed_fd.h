/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PASSED_FD_H
#define PB_PASSED_FD_H
/* Bytes over a Unix socket together with one descriptor, or a few (SCM_RIGHTS). Thread: any. */
#include <stddef.h>
#include <sys/types.h>

enum { PB_PASSED_MAX = 16 }; /* descriptors of a message: a scene and its sources */

/* Sends the bytes and the descriptor (-1 = absent), which the caller still owns. flags and the
 * return value are those of sendmsg(2). A descriptor can only be sent with at least one byte. */
ssize_t pb_passed_fd_send(int socket, const void *bytes, size_t n, int passed, int flags);
/* Receives up to n bytes. *out_passed: the descriptor that arrived with them, close-on-exec, owned
 * by the caller; -1 if absent. If a message has several descriptors, the kernel closes all except
 * the first. flags and the return value are those of recvmsg(2). */
ssize_t pb_passed_fd_receive(int socket, void *bytes, size_t n, int *out_passed, int flags);
/* Do the same for up to PB_PASSED_MAX descriptors, which arrive in the order of sending; EINVAL:
 * more were given. */
ssize_t pb_passed_fds_send(int socket, const void *bytes, size_t n, const int *passed,
                           size_t n_passed, int flags);
ssize_t pb_passed_fds_receive(int socket, void *bytes, size_t n, int out_passed[PB_PASSED_MAX],
                              size_t *out_n, int flags);
#endif
