/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OWNER_PARTS_H
#define PB_OWNER_PARTS_H
/* What the parts of the owner process share. Nobody else includes this. */
#include "service/base/socket_bind.h"
#include "pipeline/device/device.h"
#include "service/device/admission.h"
#include "service/device/owner_load.h"

struct owner {
    char device[64]; /* "cuda:0", "cpu" */
    int32_t index;   /* -1: the CPU */
    struct pb_device_traits traits;
    const char *path; /* of the socket */
    struct pb_socket_bind bound;
    struct pb_admission admission;
    int out;              /* lines to the parent */
    pthread_mutex_t lock; /* load, what is written to out */
    struct pb_owner_load load;
};

/* --- owner.c --- */
/* No connection is taken any more. Before the process ends. */
void owner_retire(struct owner *owner);
/* A session came (1) or went (-1), or its memory did; told to the parent. Thread: any. */
void owner_loaded(struct owner *owner, int sessions, int64_t bytes);

/* --- owner_session.c --- */
/* Serves a connection (taken) to its end. Thread: one of its own. */
void owner_session_run(struct owner *owner, int fd);
#endif
