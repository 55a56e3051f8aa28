/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_H
#define PB_STATUS_H
/* The status socket: a unix socket that speaks status_proto.h. Owns the clients and their limits;
 * what a request means is somebody else's (`serve`). Thread: loop. */
#include "config/err.h"
#include "service/job.h"
#include "service/status_proto.h"

#include <uv.h>

#define PB_STATUS_CLIENTS_MAX 64
#define PB_STATUS_BACKLOG_BYTES                                                                    \
    (1024 * 1024) /* unread replies of a client before it is dropped                               \
                   */

struct pb_status;

struct pb_status_options {
    uv_loop_t *loop;
    const char *path; /* of the socket; copied */
    /* Writes the whole reply to a request. *out_watch (id of one job, or "" for all; copied) makes
     * the client get events from then on; NULL = no change. */
    void (*serve)(void *user, const struct pb_request *request, struct pb_json *reply,
                  const char **out_watch);
    void *user;
};

/* Removes a socket file that nobody listens on. Mode 0660. */
int pb_status_start(const struct pb_status_options *options, struct pb_err *err,
                    struct pb_status **out_status);
/* Sends job.event to everybody who watches the job. */
void pb_status_tell(struct pb_status *status, const struct pb_job *job);
int64_t pb_status_clients(const struct pb_status *status);
/* Closes and removes the socket; what is queued for clients is still sent if they read at once.
 * NULL is fine. */
void pb_status_stop(struct pb_status *status);
#endif
