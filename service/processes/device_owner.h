/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_OWNER_H
#define PB_DEVICE_OWNER_H
/* Starts and supervises the process that owns a device (service/device/owner.h), for the service
 * and for `pushbroom run`. A process that ends is replaced: at once, then after 1 s, 2 s, ... up to
 * 30 s, as long as it does not live for a minute; one that finds no device is not. Thread: loop. */
#include "service/base/log.h"
#include "service/device/owner_load.h"
#include "service/processes/worker_launch.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define PB_DEVICE_OWNER_PATH_BYTES 108

struct pb_device_owner;

struct pb_device_owner_options {
    uv_loop_t *loop;
    const char *program; /* run as `program --device ...`; borrowed; NULL: the process is a fork
                            that does main, for which the caller has no threads */
    int (*main)(void);
    /* The device that it found; "" = no device, and the reason. Called again when it was replaced.
     */
    void (*on_device)(void *user, const char *device, const char *why);
    void (*on_say)(void *user, int pid, enum pb_log_level level, const char *text);
    void *user;
};

/* NULL = out of memory. No process is started. */
struct pb_device_owner *pb_device_owner_create(const struct pb_device_owner_options *options);
/* Kills the process. NULL is fine. */
void pb_device_owner_destroy(struct pb_device_owner *owner);

/* From now on there is a process for this device ("0", "cpu"; NULL: no process) at that socket, for
 * that number of sessions at a time. A running one for the same device stays. */
void pb_device_owner_set(struct pb_device_owner *owner, const char *device, const char *path,
                         int32_t sessions);
/* Returns true until it reports its device, at most for 30 s. */
bool pb_device_owner_is_coming(const struct pb_device_owner *owner);
/* The socket for later jobs; NULL if there is no owner, or it found no device. */
const char *pb_device_owner_socket(const struct pb_device_owner *owner);
/* Why there is no socket although the machine has a GPU that is wanted; NULL: there is one, or none
 * is wanted. Borrowed until the next call. */
const char *pb_device_owner_why(const struct pb_device_owner *owner);
/* Its last report; zeroed while there is no process. */
struct pb_owner_load pb_device_owner_load(const struct pb_device_owner *owner);
#endif
