/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STREAM_REQUESTS_H
#define PB_STREAM_REQUESTS_H
/* Socket at which writers request a stream. Each connection sends one request in one line. Length,
 * time and the connections of a user are limited. Thread: one, unless noted. */
#include "config/base/err.h"
#include "config/pipeline_config.h"
#include "service/base/peer.h"
#include "service/stream/handshake.h"

#include <poll.h>

#define PB_REQUESTS_MAX 16 /* connections whose request is not complete */
#define PB_REQUESTS_FDS (PB_REQUESTS_MAX + 1)

struct pb_requests;

struct pb_requests_options {
    const char *path; /* copied */
    /* Decides about a complete request. If it accepts, it takes the connection and returns NULL. If
     * it refuses, it sets `why` and returns a code ("busy", ...). text: n bytes, borrowed. */
    const char *(*admit)(void *user, int connection, const char *text, size_t n,
                         char why[PB_HANDSHAKE_WHY_BYTES]);
    void *user;
};

/* Makes the object without its socket. NULL = out of memory. */
struct pb_requests *pb_requests_create(const struct pb_requests_options *options);
/* Opens the socket, or binds it again after its file was deleted. Returns 0, or negative and *err:
 * call again later. */
int pb_requests_open(struct pb_requests *requests, struct pb_err *err);
/* Sets the descriptors to poll; -1 = unused. Returns the timeout of the poll in ms, at most
 * most_ms. */
int pb_requests_poll(const struct pb_requests *requests, struct pollfd fd[PB_REQUESTS_FDS],
                     int most_ms);
/* Accepts connections, reads requests, and closes connections that take too long. fd: after the
 * poll. */
void pb_requests_serve(struct pb_requests *requests, const struct pollfd fd[PB_REQUESTS_FDS]);
/* Closes the socket and all connections that are not admitted. */
void pb_requests_close(struct pb_requests *requests);
/* NULL is fine. */
void pb_requests_destroy(struct pb_requests *requests);

/* Returns true if the user is in lines.writers, or if the token is in the file lines.token. Thread:
 * any. */
bool pb_requests_may_write(const struct pb_lines_config *lines, const struct pb_peer *peer,
                           const char *token);
#endif
