/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_OWNERS_H
#define PB_DEVICE_OWNERS_H
/* The owners of all devices that a service computes on, one process each (device_owner.h), and
 * which of them a job goes to: the one that has least to do. Thread: loop. */
#include "config/config.h"
#include "service/processes/device_owner.h"

#define PB_DEVICE_OWNERS_MAX 16

struct pb_device_owners;

struct pb_device_owners_options {
    uv_loop_t *loop;
    const char *program; /* as in struct pb_device_owner_options */
    /* All have said what they found: "cuda:0, cuda:1"; "" = no device, and why. Again when one was
     * replaced. */
    void (*on_device)(void *user, const char *devices, const char *why);
    void (*on_say)(void *user, int pid, enum pb_log_level level, const char *text);
    void *user;
};

/* The devices that a service computes on ("0", "1", "cpu"), on a machine with so many GPUs:
 * the one that it names, else as many as there are, up to parallel_jobs. forced not NULL: those, as
 * "cpu" or "0,1". Returns how many. */
int pb_device_owners_wanted(const struct pb_compute_config *compute, int32_t parallel_jobs,
                            const char *forced, int gpus, char out[PB_DEVICE_OWNERS_MAX][16]);
/* The socket's name for a device of a configuration, the n-th (0, 1, ..) owner of the same one;
 * false: it would be too long. */
bool pb_device_owners_path(const struct pb_config *config, const char *device, int n,
                           char out[PB_DEVICE_OWNER_PATH_BYTES]);

/* NULL = out of memory. No process is started. */
struct pb_device_owners *pb_device_owners_create(const struct pb_device_owners_options *options);
/* Kills the processes. NULL is fine. */
void pb_device_owners_destroy(struct pb_device_owners *owners);

/* From now on there is a process for each device that the configuration wants, at sockets beside
 * its own. Those that are there already stay. False: none, workers compute. */
bool pb_device_owners_follow(struct pb_device_owners *owners, const struct pb_config *config,
                             const char *forced);
/* Whether one has yet to say what device it found. */
bool pb_device_owners_is_coming(const struct pb_device_owners *owners);
/* Why there is none although the machine has a GPU that is wanted; NULL: there is one, or none is
 * wanted. Borrowed until the next call. */
const char *pb_device_owners_why(const struct pb_device_owners *owners);

/* A job is sent to the owner with least to do, *out_owner, which is the caller's to give back when
 * the job is over. The socket, borrowed until the next call; NULL: there is none, *out_owner is -1.
 */
const char *pb_device_owners_take(struct pb_device_owners *owners, int *out_owner);
/* *owner becomes -1, which is fine already. */
void pb_device_owners_give(struct pb_device_owners *owners, int *owner);
#endif
