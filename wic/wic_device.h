/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_DEVICE_H
#define WIC_DEVICE_H
/* A kernel as the consumer of one channel and the producer of another.
 *
 *   in channel ==> resident kernel ==> out channel
 *
 * The channels stay as they are for everybody else: producers of `in` and consumers of `out` park,
 * see back-pressure and may be any number. One thread, the relay, stands for the device at both: it
 * takes tickets from `in`, posts them to the kernel, and hands results over in the same order.
 * While tiles are under way it watches for their completion, with naps once nothing happened for a
 * while; while there are none it sleeps in wic_wait. It is also the heartbeat: if this process
 * stalls for 5 s the kernel leaves the GPU on its own.
 *
 * A ticket of `in` becomes the next ticket of `out`; its user bytes are copied, its bytes must be a
 * multiple of in_unit and become units * out_unit. Nobody else may consume `in` or produce into
 * `out` meanwhile. The kernel stays until `in` is closed and drained, then the relay closes `out`.
 * Either channel aborted: the kernel leaves, both are aborted.
 *
 * Pieces: where a unit's bytes do not lie together (bands), they must lie together for each piece:
 * producers lay a tile out in pieces of plan.in_piece bytes, each with all its bands, and take the
 * plan from wic_chunk_plan_choose themselves.
 *
 * The work is a kernel that calls wic_resident (wic/wic_device.cuh). While it is there, no call
 * that waits for the device: see wic/link.h. */
#include "wic/link.h"
#include "wic/wic.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wic_device;

struct wic_device_options {
    struct wic_channel *in, *out;      /* borrowed until wic_device_close */
    uint32_t in_unit, out_unit;        /* bytes */
    const struct wic_chunk_plan *plan; /* NULL: by wic_chunk_plan_choose; copied */
    const void *kernel, *argument;     /* as in struct wic_link_options */
};

struct wic_device_stats {
    uint64_t tiles;
    uint64_t in_bytes;   /* over the link, towards the device */
    uint64_t starved_ns; /* how long its blocks had nothing to pull, summed over them */
    uint64_t leave_ns;   /* from the last result until the kernel had left the GPU */
    uint32_t blocks;
};

/* Pins the slots of both channels if they are not, creates the link on the current device, starts
 * the kernel and the relay. What wic_link_create and wic_link_start return, or -EAGAIN: no thread.
 * Thread: init. */
int wic_device_open(const struct wic_device_options *options, struct wic_device **out_device);

/* Waits for the end of the stream (or an abort), gives the GPU and the pins back. Returns how it
 * ended: 0; -ECANCELED: a channel was aborted; -EIO: the kernel failed or left before its time, the
 * device may be lost to this process; -EINVAL: a ticket was not in whole units or somebody else
 * took it. out_stats may be NULL; written in any case. The device is gone. Thread: one. */
int wic_device_close(struct wic_device *device, struct wic_device_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
