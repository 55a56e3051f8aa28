/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OWNER_PARTS_H
#define PB_OWNER_PARTS_H
/* Shared by the parts of the owner process; no other file includes this. */
#include "service/base/socket_bind.h"
#include "pipeline/device/device.h"
#include "service/device/admission.h"
#include "service/device/owner_out.h"
#include "service/device/owner_streams.h"

struct owner {
    char device[64]; /* "cuda:0", "cpu" */
    int32_t index;   /* -1 = the CPU */
    struct pb_device_traits traits;
    bool calls_wait;  /* measured when the device was opened */
    const char *path; /* path of the socket */
    struct pb_socket_bind bound;
    struct pb_admission admission;
    struct pb_owner_out out; /* lines to the parent */
    pthread_mutex_t lock;    /* protects all below */
    struct pb_owner_streams streams;
    /* time until which there is no room for a kernel, because of other programs */
    int64_t full_until_ms;
    int64_t others_until_ms;
    int others; /* count of other processes on the GPU */
    int32_t other_pid;
};

/* --- owner.c --- */
/* Stops accepting connections, before the process ends. */
void owner_retire(struct owner *owner);
/* Adds a session (1) or removes one (-1), and its memory; reports to the parent. Does not wait.
 * Thread: any. */
void owner_loaded(struct owner *owner, int sessions, int64_t bytes);

/* Reason for which a job must use streams now, "" if it need not; logged after a change. Thread:
 * any. */
void owner_stream_why(struct owner *owner, char why[PB_OWNER_WHY_BYTES]);
/* Other programs left no room for a resident kernel: jobs use streams for a minute. Thread: any. */
void owner_is_full(struct owner *owner);

/* --- owner_session.c --- */
/* Serves a connection (taken) until it ends. Thread: one for each connection. */
void owner_session_run(struct owner *owner, int fd);
#endif
