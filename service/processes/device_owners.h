/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_OWNERS_H
#define PB_DEVICE_OWNERS_H
/* Owners of all devices that a service computes on, one process each (device_owner.h). Selects the
 * owner of each job: the one with the least work. Thread: loop. */
#include "service/processes/device_owner.h"

struct pb_compute_config;
struct pb_config;

#define PB_DEVICE_OWNERS_MAX 16

struct pb_device_owners;

struct pb_device_owners_options {
    uv_loop_t *loop;
    const char *program; /* as in struct pb_device_owner_options */
    /* Called when all have reported their devices: "cuda:0, cuda:1"; "" = no device, and the
     * reason. Called again after an owner was replaced. */
    void (*on_device)(void *user, const char *devices, const char *why);
    void (*on_say)(void *user, int pid, enum pb_log_level level, const char *text);
    void *user;
};

/* Lists the devices that a service computes on ("0", "1", "cpu"), on a machine with that number of
 * GPUs: the configured one, otherwise all, up to parallel_jobs. forced: if not NULL, the devices,
 * as "cpu" or "0,1". Returns their number. */
int pb_device_owners_wanted(const struct pb_compute_config *compute, int32_t parallel_jobs,
                            const char *forced, int gpus, char out[PB_DEVICE_OWNERS_MAX][16]);
/* Makes the path of the socket for a device of a configuration, for the n-th (0, 1, ..) owner of
 * the same device; false if it would be too long. */
bool pb_device_owners_path(const struct pb_config *config, const char *device, int n,
                           char out[PB_DEVICE_OWNER_PATH_BYTES]);

/* Starts no process. NULL = out of memory. */
struct pb_device_owners *pb_device_owners_create(const struct pb_device_owners_options *options);
/* Kills the processes. NULL is allowed. */
void pb_device_owners_destroy(struct pb_device_owners *owners);

/* Starts a process for each device that the configuration wants, at sockets next to its own;
 * running ones stay. Returns false if there are no owners and workers compute. */
bool pb_device_owners_follow(struct pb_device_owners *owners, const struct pb_config *config,
                             const char *forced);
bool pb_device_owners_exist(const struct pb_device_owners *owners);
/* Returns true if an owner has not reported its device yet. */
bool pb_device_owners_is_coming(const struct pb_device_owners *owners);
/* Reason for the absence of owners although the machine has a GPU that is wanted; NULL if there is
 * an owner, or no GPU is wanted. Borrowed until the next call. */
const char *pb_device_owners_why(const struct pb_device_owners *owners);

/* Selects the owner with the least work for a job, *out_owner, which the caller returns by
 * pb_device_owners_give when the job is over. Returns its socket, borrowed until the next call;
 * NULL if absent, then *out_owner is -1. */
const char *pb_device_owners_take(struct pb_device_owners *owners, int *out_owner);
/* *owner becomes -1; -1 is allowed. */
void pb_device_owners_give(struct pb_device_owners *owners, int *owner);
#endif
