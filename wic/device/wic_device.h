/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_DEVICE_H
#define WIC_DEVICE_H
/* A kernel as the consumer of one channel and the producer of another.
 *
 *   in channel ==> resident kernel ==> out channel
 *
 * Other users of the channels see no difference: producers of `in` and consumers of `out` park, see
 * back-pressure and may be any number. One thread of the caller's, in wic_device_run, is the device
 * proxy: it takes tickets from `in`, posts them to the kernel, and publishes results in the same
 * order. While tiles are under way it polls for their completion, and sleeps between polls once
 * nothing happened for a while; otherwise it is parked like any other consumer. It also sends the
 * heartbeat: if the process stalls for 5 s the kernel leaves the GPU on its own; when the process
 * goes on, the kernel is launched again for the tiles that were not done.
 *
 * The kernel stays resident while tiles arrive. When none arrived for idle_ns, and at the end of
 * `in`, it leaves the GPU to others; the next tile launches it again.
 *
 *   struct wic_device *d;
 *   if (wic_device_open(&options, &d) == 0) {
 *       rc = wic_device_run(d);               until `in` is closed and drained; closes `out`
 *       wic_device_close(d, &stats);
 *   }
 *
 * A ticket of `in` becomes the next ticket of `out`; its user bytes are copied. Nobody else may
 * consume `in` or produce into `out` meanwhile. Either channel aborted: the kernel leaves, both are
 * aborted; where nothing is under way, within 50 ms.
 *
 * Pieces: a piece must be contiguous, also where a unit's bytes are not (bands): producers lay a
 * tile out in pieces of plan.in_piece bytes, each with all its bands, and take the plan from
 * wic_transfer_plan_choose themselves.
 *
 * The work is a kernel that calls wic_resident (wic/device/wic_device.cuh, with a list of
 * what the work must not do). While it is resident, the process must not make a CUDA call that
 * waits for the device: see wic/device/link.h. */
#include "wic/device/link.h"
#include "wic/wic.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wic_device;

/* The size of a ticket's tile. */
struct wic_device_tile {
    uint32_t units;      /* of input; no more than the plan has in a tile */
    size_t out_bytes;    /* that the kernel makes; no more than a slot of `out` holds */
    uint32_t unit_bytes; /* of its units in the slot; 0: plan.in_unit; see struct wic_link_tile */
};

struct wic_device_options {
    struct wic_channel *in, *out; /* borrowed until wic_device_close */
    struct wic_transfer_plan plan;
    const void *kernel, *argument; /* as in struct wic_link_options, and below */
    struct wic_launch *launch;     /* NULL: a kernel of its own */
    size_t argument_bytes;
    int32_t priority;       /* priority of the lane */
    struct wic_share share; /* share of a kernel of its own */
    /* Gives the size of a ticket's tile; may describe the results in the user bytes of `out` (they
     * hold a copy of the input's). 0, or a negative errno that ends the run. NULL: its bytes are a
     * multiple of plan.in_unit and become units * plan.out_unit. Thread: the one in run. */
    int (*describe)(void *context, const struct wic_slot *in, const struct wic_slot *out,
                    struct wic_device_tile *out_tile);
    void *context;
    /* Of a process with several devices of this kind, all NULL or none: `enter` is called before
     * each launch of the kernel and may wait, `left` when that launch is over. It returns the part
     * of the plan's blocks and pulls, of WIC_SHARE_WHOLE, that the launch has. If is_unwanted
     * returns true, the kernel leaves as soon as what it has is done, and is launched again. */
    uint32_t (*enter)(void *context);
    void (*left)(void *context);
    bool (*is_unwanted)(void *context);
    int64_t idle_ns; /* 0: WIC_DEVICE_IDLE_NS */
    int64_t hang_ns; /* when tiles are under way and none is done for this long, the device hangs;
                        0: WIC_DEVICE_HANG_NS */
    uint32_t nap_ns; /* 0, or up to WIC_NAP_NS_MOST: while tiles are under way the thread in run
                        sleeps this long between two looks, in place of polling: less CPU time, more
                        latency */
    uint32_t starts; /* tries to launch on a full device, WIC_LINK_START_NS each; 0: 20 */
    /* For kernels that depend on this one (wic/guest.hpp): it is launched when run begins, and
     * stays until the end of `in`, also while no tiles arrive and in pauses, which run out of time
     * then. If it leaves before, the run fails. */
    bool stays;
};

#define WIC_DEVICE_IDLE_NS INT64_C(20000000)
#define WIC_DEVICE_HANG_NS INT64_C(60000000000)

struct wic_device_stats {
    uint64_t tiles;
    uint64_t in_bytes, out_bytes; /* over the link, towards the device and back */
    uint64_t starved_ns;  /* time that a block waited for its next tile, mean over the blocks */
    uint64_t resident_ns; /* time that the kernel was resident */
    uint64_t parked_ns;   /* time without a kernel, as no tiles arrived */
    uint64_t
        leave_ns; /* from the last result until the kernel had left the GPU, at the last launch */
    uint32_t launches; /* of the kernel, by this device */
    uint32_t timeouts; /* how often it left because the heartbeat had stopped */
    uint32_t blocks;
};

/* Layout that the including program is compiled with: version of the device side, and the sizes of
 * what passes between program, kernel and library by value. */
#define WIC_DEVICE_VERSION 1
#define WIC_DEVICE_LAYOUT                                                                          \
    ((uint64_t)WIC_DEVICE_VERSION << 32 | (uint64_t)sizeof(struct wic_view) << 16 |                \
     sizeof(struct wic_device_options))

/* wic_device_open for a program of this layout; -EPROTO: the library has another one. */
int wic_device_open_as(uint64_t layout, const struct wic_device_options *options,
                       struct wic_device **out_device);

/* Makes the link on the current device, pinning the slots of both channels if they are not; starts
 * nothing. -EINVAL, -ENOMEM, -EPROTO: the program was compiled with the headers of another wic; or
 * what wic_link_create returns; wic_strerror(NULL) has the reason in words. Thread: init. */
static inline int wic_device_open(const struct wic_device_options *options,
                                  struct wic_device **out_device)
{
    return wic_device_open_as(WIC_DEVICE_LAYOUT, options, out_device);
}

/* Serves the channels until the end of the stream or an abort; the kernel has left the GPU when it
 * returns. To be called once. Returns 0; -ECANCELED: a channel was aborted; -EBUSY: another process
 * fills the device; -ETIMEDOUT: the kernel or a copy did not end, the device hangs; -EIO: the
 * kernel failed, the device may be lost to this process; -EINVAL: a ticket was not in whole units,
 * has more of them than a tile or than a slot holds the inputs or the results of, or another
 * consumer took it; or what describe returned. After an error both channels are aborted. Thread:
 * one, which may have to be woken by wic_abort. */
int wic_device_run(struct wic_device *device);

/* In place of run, for a thread that also produces or consumes: one turn of the device proxy, which
 * never sleeps. One thread then takes the place of three, and no thread is woken. Returns 1: call
 * it again, often, because tiles and results wait for it; after 5 s without a call the kernel
 * leaves, and the next call launches it again. Returns 0 or an error at the end, as run does; no
 * call follows. A call that launches the kernel returns when it is there. Calls at the channels by
 * the same thread must have a timeout of 0, because only the next step gives them a ticket. nap_ns
 * has no effect. Thread: one. */
int wic_device_step(struct wic_device *device);

/* Why wic_device_run or wic_device_step failed, as a sentence without a full stop; "" while it has
 * not, which includes the moments until it notices an abort. After a call at one of its channels
 * returned -ECANCELED, or run an error. NULL: wic_link_why(), for the calling thread's last call
 * that makes something. Valid until wic_device_close. Thread: any. */
const char *wic_strerror(const struct wic_device *device);

/* What it has done so far. Thread: the one of run or step, or any after it. */
void wic_device_stats_get(const struct wic_device *device, struct wic_device_stats *out_stats);

/* How its kernel shares the GPU; it may have fewer blocks than the plan. Thread: any. */
void wic_device_shaped(const struct wic_device *device, struct wic_shaped *out_shaped);

/* Frees the device in any case, in a pause of the other kernels of the process. out_stats may be
 * NULL. 0, or -ETIMEDOUT: a kernel or a copy is still on the GPU, and the memory that it may use
 * was not freed; see wic_link_destroy. Thread: init. */
int wic_device_close(struct wic_device *device, struct wic_device_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
