/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PASSED_FD_H
#define PB_PASSED_FD_H
/* Bytes over a Unix socket together with one descriptor (SCM_RIGHTS). Thread: any. */
#include <stddef.h>
#include <sys/types.h>

/* Sends the bytes and the descriptor (-1 = none), which stays the caller's. flags and the return
 * value are those of sendmsg(2). At least one byte is needed for a descriptor to travel. */
ssize_t pb_passed_fd_send(int socket, const void *bytes, size_t n, int passed, int flags);
/* Receives up to n bytes. *out_passed: the descriptor that came with them, close-on-exec, now the
 * caller's; -1 = none. Of several descriptors in one message the kernel closes all but the first.
 * flags and the return value are those of recvmsg(2). */
ssize_t pb_passed_fd_receive(int socket, void *bytes, size_t n, int *out_passed, int flags);
#endif
