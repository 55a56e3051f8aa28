/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_OWNER_H
#define PB_DEVICE_OWNER_H
/* Starts and supervises the process that owns a device (service/device/owner.h), for the service
 * and for `pushbroom run`. A process that ends is replaced: immediately, then after 1 s, 2 s, ...
 * up to 30 s, as long as it does not live for a minute. A process that finds no device is not
 * replaced. Thread: loop. */
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
    /* Called with the device that it found; "" = no device, and the reason. Called again after it
     * was replaced. */
    void (*on_device)(void *user, const char *device, const char *why);
    void (*on_say)(void *user, int pid, enum pb_log_level level, const char *text);
    void *user;
};

/* Starts no process. NULL = out of memory. */
struct pb_device_owner *pb_device_owner_create(const struct pb_device_owner_options *options);
/* Kills the process. NULL is allowed. */
void pb_device_owner_destroy(struct pb_device_owner *owner);

/* Sets the device ("0", "cpu"; NULL: no process), the socket, the maximum number of concurrent
 * sessions and compute.share of the process from now on. A running process for the same stays. */
void pb_device_owner_set(struct pb_device_owner *owner, const char *device, const char *path,
                         int32_t sessions, int32_t share_percent);
/* Returns true until it reports its device, at most for 30 s. */
bool pb_device_owner_is_coming(const struct pb_device_owner *owner);
/* Socket for later jobs; NULL if there is no owner, or it found no device. */
const char *pb_device_owner_socket(const struct pb_device_owner *owner);
/* Reason for the absence of a socket although the machine has a GPU that is wanted; NULL if there
 * is a socket, or no GPU is wanted. Borrowed until the next call. */
const char *pb_device_owner_why(const struct pb_device_owner *owner);
/* Its last report; all-zero while there is no process. */
struct pb_owner_load pb_device_owner_load(const struct pb_device_owner *owner);
#endif
