/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESIDENCY_H
#define PB_RESIDENCY_H
/* Resident kernels of a process: the share of the device for each, and periods without any
 * kernel. A kernel that serves several jobs (pipeline/device/lanes.h) counts for as many.
 *
 * A kernel gets a share of the device, which limits its blocks and its tiles' part of the link:
 * all of it if it is alone, else an equal part among the running ones; a kernel of a lower
 * priority than another running one gets an eighth of that one's share. A kernel whose share has
 * changed is requested to leave and returns with the new one. A resident without a kernel for
 * PB_RESIDENCY_LINGER_NS is no longer counted.
 *
 * CUDA calls that block while a kernel is resident, those that free or unpin memory, are made
 * while no kernel runs. (Allocating, pinning, uploading and making streams do not block:
 * measured, driver 580.) Frees that are not urgent are deferred until no kernel runs; else the
 * kernels are requested to leave, and return afterwards.
 *
 * One count per process, for its one device. Thread: any; a resident is used by one at a time. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
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
    uint64_t left_ns;
    _Atomic uint64_t known; /* the state at the last check of its share, */
    atomic_bool differs;    /* and true if the share was different */
};

/* Sets another time than PB_RESIDENCY_LINGER_NS. Thread: init. */
void pb_residency_set_linger(uint64_t ns);

/* Must be zeroed before join; call part before freeing it. */
void pb_residency_join(struct pb_resident *resident, int64_t priority);
void pb_residency_part(struct pb_resident *resident);
/* Changes priority and count of jobs of a resident that has joined. */
void pb_residency_weigh(struct pb_resident *resident, int64_t priority, uint32_t jobs);

/* Call before its kernel is launched: waits until its share is free, and no memory is being
 * freed. Returns the share. */
uint32_t pb_residency_enter(struct pb_resident *resident);
/* Call after the kernel has left, or was not launched. */
void pb_residency_left(struct pb_resident *resident);
/* Returns true if its kernel has to leave: its share has changed, or memory has to be freed.
 * Cheap. Thread: any number. */
bool pb_residency_is_unwanted(struct pb_resident *resident);

/* Call before and after calls that free memory; they may overlap. Begin waits until no kernel is
 * resident; false: after PB_RESIDENCY_FREE_NS one still is, and memory that its device may use
 * must not be freed. */
#define PB_RESIDENCY_FREE_NS UINT64_C(90000000000) /* more than a device's time-out */
bool pb_residency_free_begin(void);
void pb_residency_free_end(void);

/* Calls free_it when no kernel is resident, on the thread that detects it, which may be at once.
 * Deferred memory may reach PB_RESIDENCY_LATER_BYTES; beyond that, the kernels are requested to
 * leave. */
#define PB_RESIDENCY_LATER_BYTES ((size_t)512 << 20)
void pb_residency_free_later(void (*free_it)(void *user), void *user, size_t bytes);
/* Frees deferred memory now: for callers that need the memory. */
void pb_residency_free_all(void);
#endif
