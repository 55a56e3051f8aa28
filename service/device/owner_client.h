/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OWNER_CLIENT_H
#define PB_OWNER_CLIENT_H
/* Connection of a job to the process that owns a device (owner.h). The worker connects and names
 * the job; its confined child, which may open no connection, uses it. One thread at a time. */
#include "pipeline/run/base/remote.h"
#include "service/base/line_reader.h"
#include "service/device/owner_load.h"

struct pb_owner_hello {
    const char *job, *config, *config_name, *pipeline;
};

/* Connects to the owner's socket; waits a few seconds for it, because a new owner may be starting.
 * Returns the descriptor, owned by the caller; or negative, device.lost. */
int pb_owner_connect(const char *path, const struct pb_owner_hello *hello, struct pb_err *err);

/* Returns true if an owner listens there that this user may connect to, and reads its load; the
 * owner has a second to answer. */
bool pb_owner_load_at(const char *path, struct pb_owner_load *out_load);

struct pb_owner_client {
    struct pb_line_reader lines;
    char device[64], stream_why[200];
    struct pb_device_traits traits;
    struct pb_remote remote; /* for a run; its user is this struct */
};

/* Waits for the owner's answer. fd is borrowed. */
int pb_owner_client_begin(struct pb_owner_client *client, int fd, struct pb_err *err);
/* Ends the job at the owner, which frees its memory for the next one. The texts and traits stay. */
void pb_owner_client_end(struct pb_owner_client *client);
#endif
