/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_READY_H
#define WIC_READY_H
/* Tasks that are ready, in device memory: rings from which the workers of a resident kernel take
 * (ready.cuh), ring 0 first. Any worker pushes, and streams push behind the data that copy
 * engines bring, into rings of their own. A ring holds all tasks that can be ready at a time, so
 * nobody waits for room; tickets go up and are never reset. What an entry holds carries its ticket,
 * so a taker knows it from that of the lap before.
 *
 * The host lays the rings out in an image, copies that to the device, and passes struct wic_ready
 * to kernels by value. C11 and C++17. Thread: one at a time. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIC_READY_RINGS 8

/* What workers poll: one line of 128 bytes. */
struct wic_ready_line {
    uint32_t ready[WIC_READY_RINGS];   /* tasks that nobody has claimed; below zero for moments */
    uint32_t listed[WIC_READY_RINGS];  /* of `brought`, those that `ready` has counted */
    uint64_t brought[WIC_READY_RINGS]; /* listed tasks that are ready, written by streams alone */
};

/* Numbers of the next entry that is written, and taken. */
struct wic_ready_tickets {
    uint32_t pushed[WIC_READY_RINGS], taken[WIC_READY_RINGS];
};

struct wic_ready {
    struct wic_ready_line *line;
    struct wic_ready_tickets *tickets;
    uint64_t *entry[WIC_READY_RINGS]; /* ticket + 1 << 32 | task */
    uint32_t mask[WIC_READY_RINGS];   /* entries - 1 */
    uint32_t *stop;    /* nonzero: every worker leaves; the first to write it says why */
    uint64_t limit_ns; /* a worker that finds nothing for so long leaves */
};

/* Why workers leave. */
enum wic_ready_stop {
    WIC_READY_GOES_ON,
    WIC_READY_DONE,    /* by the worker that did the last task */
    WIC_READY_ABORTED, /* by the host */
    WIC_READY_LATE     /* by a worker that found nothing for limit_ns */
};

/* Bytes of rings for that many ready tasks, at most 2^30 a ring. */
size_t wic_ready_bytes(const uint32_t most[WIC_READY_RINGS]);
/* Empty rings. image: wic_ready_bytes of host memory, aligned to 128, that the caller then copies
 * to `memory` on the device, aligned likewise. They may be the same. */
void wic_ready_init(const uint32_t most[WIC_READY_RINGS], uint64_t limit_ns, void *image,
                    void *memory, struct wic_ready *out);
/* Lists tasks in an empty ring of the image, for the host to push by wic_ready_push_behind in
 * that order; workers push nothing into it. n: at most those of the ring. */
void wic_ready_list(void *image, const struct wic_ready *ready, uint32_t ring,
                    const uint32_t *tasks, uint32_t n);

/* CUDA builds only. When what is in `stream` (a cudaStream_t) by now is done, the first `brought`
 * listed tasks of the ring are ready. 0, -EOPNOTSUPP (the driver cannot write words from a stream),
 * -EIO. Thread: any. */
int wic_ready_push_behind(const struct wic_ready *ready, uint32_t ring, uint64_t brought,
                          void *stream);
/* CUDA builds only. The same for the word that stops all workers. */
int wic_ready_stop_behind(const struct wic_ready *ready, enum wic_ready_stop why, void *stream);

#ifdef __cplusplus
}
#endif
#endif
