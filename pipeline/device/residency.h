/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESIDENCY_H
#define PB_RESIDENCY_H
/* The resident kernels of a process: how much of the device each may have, and when none may be
 * there. A kernel that serves several jobs (pipeline/device/lanes.h) counts for as many.
 *
 * A kernel gets a share of the device, its blocks and what its tiles take of the link: all of it
 * when it is alone, else an equal part among those that run; one of a lower priority than another
 * one that runs gets an eighth of that one's share. A kernel whose share has changed is asked to
 * leave and comes back with the new one. Who has no kernel for PB_RESIDENCY_LINGER_NS counts no
 * longer.
 *
 * The calls that CUDA holds up while a kernel stays go where none is there: those that free or
 * unpin memory. (Allocating, pinning, uploading and making streams go on beside: measured, driver
 * 580.) What need not be freed at once is put off until no kernel is there; else the kernels are
 * asked to leave, and come back afterwards.
 *
 * One count a process, for its one device. Thread: any; a resident is used by one at a time. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_RESIDENCY_WHOLE     1000 /* a share is given in parts of this */
#define PB_RESIDENCY_LINGER_NS UINT64_C(500000000)

/* Who has a kernel at times. Members are residency.c's. */
struct pb_resident {
    struct pb_resident *next;
    int64_t priority;
    uint32_t jobs;  /* that its kernel serves */
    uint32_t share; /* of its kernel; 0 = it has none */
    bool waits;     /* for the room to have one */
    uint64_t left_ns;
    _Atomic uint64_t known; /* the state in which its share was looked at last, */
    atomic_bool differs;    /* and whether it was another one */
};

/* Another time than PB_RESIDENCY_LINGER_NS. Thread: init. */
void pb_residency_set_linger(uint64_t ns);

/* Zeroed before; to be left before it is freed. */
void pb_residency_join(struct pb_resident *resident, int64_t priority);
void pb_residency_part(struct pb_resident *resident);
/* Of one that has joined: what it is from now on. */
void pb_residency_weigh(struct pb_resident *resident, int64_t priority, uint32_t jobs);

/* Before its kernel is launched: waits until there is room for its share, and no memory is being
 * freed. Returns the share. */
uint32_t pb_residency_enter(struct pb_resident *resident);
/* The kernel has left, or was not launched. */
void pb_residency_left(struct pb_resident *resident);
/* Whether its kernel is to leave: its share has changed, or memory is to be freed. Cheap. Thread:
 * any number. */
bool pb_residency_is_unwanted(struct pb_resident *resident);

/* Before and after calls that free memory; they may overlap. Begin waits until no kernel stays;
 * false: after PB_RESIDENCY_FREE_NS one still does, and what its device may use must not be freed.
 */
#define PB_RESIDENCY_FREE_NS UINT64_C(90000000000) /* longer than a device takes to be hung */
bool pb_residency_free_begin(void);
void pb_residency_free_end(void);

/* Has free_it called when no kernel stays, by whichever thread finds it so: at once if none does.
 * What is put off may take up to PB_RESIDENCY_LATER_BYTES; with more, the kernels are asked to
 * leave. */
#define PB_RESIDENCY_LATER_BYTES ((size_t)512 << 20)
void pb_residency_free_later(void (*free_it)(void *user), void *user, size_t bytes);
/* Frees now what was put off: for who needs the memory. */
void pb_residency_free_all(void);
#endif
