/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OWNER_OUT_H
#define PB_OWNER_OUT_H
/* Load of a device's owner, reported to its parent whenever it changes. No call waits: if the
 * parent does not read, it later gets only the latest state. Thread: any, except init, watch and
 * go_on: the polling thread. */
#include "service/device/owner_load.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { PB_OWNER_OUT_WATCHED = 2, PB_OWNER_OUT_LINE = 128 };

struct pb_owner_out {
    int fd, wake;
    pthread_mutex_t lock; /* protects all below, and the output to fd */
    struct pb_owner_load load;
    bool differs; /* load differs from the last line */
    char line[PB_OWNER_OUT_LINE];
    size_t at, n; /* bytes of the line: written, total */
};

/* fd: borrowed; does not block from now on. Returns a negative errno if there is no descriptor. */
int pb_owner_out_init(struct pb_owner_out *out, int fd);
/* Returns false if the parent is gone. */
bool pb_owner_out_add(struct pb_owner_out *out, int sessions, int64_t bytes);
struct pb_owner_load pb_owner_out_load(struct pb_owner_out *out);
/* Descriptors to poll, and the function to call afterwards; returns false if the parent is gone. */
void pb_owner_out_watch(struct pb_owner_out *out, struct pollfd watched[PB_OWNER_OUT_WATCHED]);
bool pb_owner_out_go_on(struct pb_owner_out *out,
                        const struct pollfd watched[PB_OWNER_OUT_WATCHED]);
#endif
