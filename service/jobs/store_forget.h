/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STORE_FORGET_H
#define PB_STORE_FORGET_H
/* The end of a node that is gone for ever: its row, session and requests are removed, so that other
 * nodes run its jobs. Files are not touched; those that its directories have and no other node
 * moves are visited, each kind with its remedy. Thread: any. */
#include "service/jobs/store_check.h"

#include <stdint.h>

struct pb_store_forgetting {
    /* Called for each point; borrowed for the call. */
    void (*visit)(void *user, const struct pb_store_point *point);
    void (*progress)(void *user, int64_t n_seen); /* after each batch of jobs; NULL is allowed */
    void *user;
};

/* Connects to a server that takes changes. Jobs are changed in batches, so that other nodes do not
 * wait; an interrupted call can be repeated. Returns the number of points to mend; or negative and
 * *err: the database cannot be reached, or (job.state) the store does not have the node or the node
 * still reports. A node that starts again later joins as a new one. */
int pb_store_forget(const char *conninfo, const char *node,
                    const struct pb_store_forgetting *options, struct pb_err *err);
#endif
