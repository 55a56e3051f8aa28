/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESIDENCY_H
#define PB_RESIDENCY_H
/* Jobs of a process that use its device at the same time, and the share of each. A resident is a
 * kernel that stays, or a job whose tiles are launches. A kernel that serves several jobs
 * (pipeline/device/lanes.h) counts for as many.
 *
 * A kernel gets a share of the device, which limits its blocks and its tiles' part of the link:
 * all of it if it is alone, else an equal part among the running ones; a kernel of a lower
 * priority than another running one gets an eighth of that one's share. A kernel whose share has
 * changed is requested to leave and returns with the new one. A resident without a kernel for
 * PB_RESIDENCY_LINGER_NS is no longer counted. A job of launches is counted as long as it is
 * joined, and leaves its share to the device's scheduler: kernels that stay have the rest.
 *
 * Memory is freed in pauses of the kernels (wic/device/pause.h).
 *
 * One count per process, for its one device. Thread: any; a resident is used by one at a time. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PB_RESIDENCY_WHOLE     1000 /* unit of shares */
#define PB_RESIDENCY_LINGER_NS UINT64_C(500000000)

/* User of a kernel. Members belong to residency.c. */
struct pb_resident {
    struct pb_resident *next;
    int64_t priority;
    uint32_t jobs;  /* jobs that its kernel serves */
    uint32_t share; /* share of its kernel; 0 = no kernel */
    bool waits;     /* waits for a free share */
    bool launches;  /* a job of launches, which has no kernel */
    uint64_t left_ns;
    _Atomic uint64_t known; /* the state at the last check of its share, */
    atomic_bool differs;    /* and true if the share was different */
};

/* Must be zeroed before join; call part before freeing it. */
void pb_residency_join(struct pb_resident *resident, int64_t priority);
void pb_residency_part(struct pb_resident *resident);
/* The same for a job of launches; it must not enter. */
void pb_residency_join_launches(struct pb_resident *resident, int64_t priority);
/* Changes priority and count of jobs of a resident that has joined. */
void pb_residency_weigh(struct pb_resident *resident, int64_t priority, uint32_t jobs);

/* Call before its kernel is launched: waits until its share is free. Returns the share. */
uint32_t pb_residency_enter(struct pb_resident *resident);
/* Call after the kernel has left, or was not launched. */
void pb_residency_left(struct pb_resident *resident);
/* Returns true if its kernel has to leave, because its share has changed. Cheap. Thread: any
 * number. */
bool pb_residency_is_unwanted(struct pb_resident *resident);
#endif
