/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_STAY_H
#define WIC_STAY_H
/* Decides if a kernel can stay on a device, from numbers that CUDA reports, and keeps the sentence
 * for a caller whose link cannot be made. No CUDA calls. Inside of the device side. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct wic_stay {
    bool time_limited;        /* the driver ends kernels that run for seconds */
    uint32_t multiprocessors; /* count on the device */
    uint32_t shared_most;     /* bytes of shared memory that a block can have */
    uint32_t threads_most; /* limit of this kernel's blocks: its launch bound, or its registers */
    uint32_t own_shared_bytes; /* static shared memory of the kernel */
    /* Wanted blocks, which are all resident together, because they wait for each other. */
    uint32_t blocks, threads;
    size_t shared_bytes;
    uint32_t blocks_each; /* count that fits on a multiprocessor; UINT32_MAX: not known yet */
};

/* 0; -EOPNOTSUPP: no kernel can stay on this device; -E2BIG: a block does not fit on a
 * multiprocessor; -ENOSPC: the blocks cannot all be resident together. Sets the sentence. */
int wic_stay_check(const struct wic_stay *stay);

/* Sets the sentence of the calling thread (wic_link_why); returns rc. */
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
int wic_stay_refuse(int rc, const char *format, ...);
/* Empties it. */
void wic_stay_forget(void);

#ifdef __cplusplus
}
#endif
#endif
