/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SOCKET_BIND_H
#define PB_SOCKET_BIND_H
/* The file of a listening socket: made under another name and renamed, so that a client that finds
 * it can connect to it, with its mode from the start. Thread: any, one at a time. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pb_socket_bind {
    int fd; /* -1 = closed */
    dev_t dev;
    ino_t ino; /* inode of the socket's file */
};

/* Makes a non-blocking listening socket at path. A socket file without a listener is removed
 * first; any other file there stays and is an error, like a service that listens. May wait up to a
 * second for a service that is ending. */
int pb_socket_bind_open(const char *path, mode_t mode, struct pb_err *err,
                        struct pb_socket_bind *out);
/* Returns true if the file at path is still this socket's. */
bool pb_socket_bind_is_there(const char *path, const struct pb_socket_bind *bound);
/* Binds again after the file was deleted, if no file is there now; never removes one. The old
 * descriptor stays open and is owned by the caller. -EEXIST (no *err): another file is there. */
int pb_socket_bind_again(const char *path, mode_t mode, struct pb_err *err,
                         struct pb_socket_bind *out);
/* Accepts a connection. Returns its descriptor, with `flags` and SOCK_CLOEXEC, owned by the caller.
 * -EAGAIN: no connection waits. Another negative errno: no descriptor or no memory is free; the
 * listener stays readable, and the caller must not poll it before *out_again_ms (monotonic),
 * because the thread would spin. */
int pb_socket_bind_accept(int listener, int flags, int64_t *out_again_ms);
/* Closes the socket and removes its file, if that is still its own. */
void pb_socket_bind_close(const char *path, struct pb_socket_bind *bound);
#endif
