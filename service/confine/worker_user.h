/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_USER_H
#define PB_WORKER_USER_H
/* User that computes scenes (service.worker_user), where the service may change users: as root, or
 * with CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_KILL
 * (AmbientCapabilities= of its unit). A hijacked decoder then has no rights over the service's
 * files and processes, also where a kernel has no Landlock. One user for all jobs: jobs are
 * separated by Landlock and seccomp, and a user for each would need a range of reserved user ids.
 * Thread: any, one at a time. */
#include "config/base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct pb_worker_user {
    bool own; /* false: the service's user */
    uid_t uid;
    gid_t gid;
    /* description: "user pushbroom-worker", or the reason why it is the service's user */
    char why[160];
};

/* name: name in the configuration; "" = not configured. */
void pb_worker_user_find(const char *name, struct pb_worker_user *out_user);
/* Makes the calling process run as that user, without other groups and without any capability; its
 * parent-death signal is set again, because the kernel clears it. If `own` is false, nothing
 * changes. */
int pb_worker_user_become(const struct pb_worker_user *user, struct pb_err *err);
/* Reduces the capabilities that exec passes on to workers to those that they need to change users,
 * or to none if one of these is missing. */
void pb_worker_user_keep_ambient(void);
#endif
