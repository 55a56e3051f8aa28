/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_LINK_H
#define WIC_LINK_H
/* A link: the memory that the host and a resident kernel share, which is the link's own or, with
 * others, a launch (wic/device/launch.h). It is the layer below the
 * channels (wic_device.h connects them); the benchmark, where one thread owns all the slots, uses
 * it directly.
 *
 *   host                                       device
 *   doorbell[t] = t + 1 | size    ==PCIe==>    Monitor (one warp): ready_board[t]
 *   input slots, pinned           ==PCIe==>    Activator of each block: piece -> shared memory
 *   output slots, pinned          <==PCIe==    working warps, or Publisher of each block
 *   done[t] = t + 1               <==PCIe==    the block that finished the tile's last piece
 *   control: end, abort, beat     ==PCIe==>    Monitor
 *
 * A tile that goes by copy engine lies in device memory instead, in a slot of the same number:
 *   input slots, user bytes       ==engine=>   in_copies, user_copies, then landed[lane] = tiles
 *   output slots                  <=engine==   out_copies, once done[t] says that they are made
 *   doorbell[t] = t + 1 | WIC_LINK_ENGINE | lane | size: the Monitor waits for landed[lane]
 *
 * Words are indexed by t modulo the ring. Tile t lies in input slot (in_first + t) % in_slots and
 * leaves in output slot (out_first + t) % out_slots. It is cut into pieces of plan.piece_units;
 * piece p of tile t belongs to block (t * pieces + p) % blocks, so neighbouring blocks pull
 * neighbouring pieces, and blocks need no agreement. A piece that is pulled must be contiguous: put
 * all bands of a piece side by side in the slot.
 *
 * The flag and the size are one word, so the load that sees a tile has its size as well. Most
 * machines have no atomics of the host's memory over PCIe: each of these words is written by one
 * side only.
 *
 * plan.transport and plan.engine_backlog select how a tile gets to the device and back
 * (wic/device/transfer_plan.h).
 *
 * Everything is allocated and loaded in create; between start and the end of join nothing here
 * calls a function that could wait for the resident kernel. Neither must the caller, except in a
 * pause (wic/device/pause.h): no cudaMalloc, cudaFree, stream creation, default-stream work or
 * first launch of a lazily loaded kernel. All functions return 0 or a negative errno. Thread: one
 * at a time, unless said otherwise; its current device must be the one of create, or be set by
 * start. */
#include "wic/device/share.h"
#include "wic/device/transfer_plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIC_LINK_RING_MAX  4096u       /* tiles under way, at most */
#define WIC_LINK_UNITS_MAX 0x1fffffffu /* of a tile */
#define WIC_LINK_ENGINE    0x80000000u /* of a doorbell's low word */
#define WIC_LINK_LANE      0x40000000u /* of two lanes, the second */
/* The tile's units are shorter than plan.in_unit, by as many times 16 bytes as the bits above
 * WIC_LINK_SHORT_UNITS say. */
#define WIC_LINK_SHORT       0x20000000u
#define WIC_LINK_SHORT_UNITS 15u /* bits of the units of such a tile; 14 are above them */
#define WIC_LINK_LANES       2u  /* streams of each direction that the batches alternate between */
#define WIC_LINK_OPEN        (UINT64_C(1) << 62) /* control.end: no end is known yet */
#define WIC_LINK_ABORT       (UINT64_C(1) << 63) /* control.end: leave now */
#define WIC_LINK_BEAT_NS                                                                           \
    UINT64_C(5000000000) /* without a heartbeat for this long, the kernel leaves */
#define WIC_LINK_START_NS UINT64_C(500000000) /* start waits this long for room on the device */

/* Pinned, written by the host, read by the Monitor alone, both words with one load. */
struct wic_link_control {
    uint64_t end;  /* tiles there will be, once known */
    uint64_t beat; /* changes while the host is alive */
};

/* Device memory, written by the Monitor; the counters by all blocks when they leave. */
struct wic_link_state {
    uint64_t end, beat;  /* copies of the host's */
    uint64_t starved_ns; /* time that blocks waited for their next tile, summed */
    uint64_t pulled_bytes;
    uint32_t started; /* blocks */
    uint32_t left;    /* of a lane: blocks, and its Monitor */
};

/* The kernel's argument, by value. All are device pointers. */
struct wic_view {
    const unsigned char *in;
    unsigned char *out;
    const unsigned char *in_copies; /* NULL: no tile goes by copy engine */
    unsigned char *out_copies;
    const unsigned char *user_copies;
    const uint64_t *landed; /* by lane */
    uint64_t in_stride, out_stride;
    uint64_t in_first,
        out_first; /* added to a tile's number: its slots, modulo the number of slots */
    uint32_t in_slots, out_slots;
    uint32_t ring_mask, first_round;
    uint64_t first_tile;
    struct wic_transfer_plan plan;
    const uint64_t *doorbell;
    const struct wic_link_control *control;
    const unsigned char *user; /* plan.user_bytes for each ring entry */
    uint64_t *done, *started;
    struct wic_link_state *state;
    uint64_t *ready_board;
    uint64_t *passed;  /* pieces that each block has pulled or skipped */
    uint32_t *arrived; /* pieces of the tile whose results are stored, by ring entry */
    uint64_t beat_ns;
    uint32_t stage_bytes; /* of the buffers of a stage */
    /* Of a lane of a launch; 0 elsewhere. */
    int32_t priority;
    uint64_t opening; /* number of this opening; the host gets it in `left` */
    uint64_t *left;   /* once all blocks and the Monitor are done with the lane */
};

struct wic_launch;

struct wic_link_options {
    /* in_slots slots, in_stride apart, and the same for out; borrowed. Pinned or managed memory;
     * other memory is pinned for the link's life. */
    void *in, *out;
    size_t in_stride, out_stride; /* multiples of 16 that hold a slot rounded up to 16 bytes */
    uint32_t in_slots, out_slots;
    struct wic_transfer_plan plan;
    /* __global__ void kernel(struct wic_view view, A argument); argument may be NULL if the kernel
     * takes only a view, is borrowed until destroy. */
    const void *kernel, *argument;
    uint64_t beat_ns;       /* 0: WIC_LINK_BEAT_NS */
    struct wic_share share; /* not with a launch, which has its own */
    /* The link is a lane of this launch (wic/device/launch.h), borrowed until destroy; `kernel` is
     * not used, and `argument` has so many bytes, copied. NULL: a kernel of its own. */
    struct wic_launch *launch;
    size_t argument_bytes;
    int32_t priority; /* of the lane among others: the higher goes first */
    /* First values of the counters, for tests of their wrap at 2^32: the number of the first tile,
     * and how often a block has used all its stages (even). 0 elsewhere. */
    uint64_t first_tile;
    uint32_t first_round;
};

struct wic_link;

/* On the current device. -ENOMEM, -ENODEV, -EIO, -EINVAL: options; -E2BIG: a block of this plan
 * does not fit on a multiprocessor, or has more threads than the kernel was compiled for; -ENOSPC:
 * its blocks cannot all be resident at once, which they must be, as they wait for each other;
 * -ENOLCK: the launch has no lane left, or its blocks are no match for the plan; -EOPNOTSUPP: no
 * kernel can stay on the device, because it drives a display (the driver ends kernels that run for
 * seconds, and the process loses its CUDA context), the driver cannot write a word from a stream
 * (WIC_COPY), or CUDA_LAUNCH_BLOCKING makes a launch wait for the end of the kernel. A plan that
 * pulls goes without the copy engine when there is no memory for it, or no such driver. */
int wic_link_create(const struct wic_link_options *options, struct wic_link **out_link);
/* Why the calling thread's last wic_gpu_read, wic_transfer_plan_*, wic_link_create,
 * wic_launch_create or wic_device_open failed: a sentence without a full stop; "" after one that
 * succeeded, and with -EINVAL of a link or launch. Valid until the thread's
 * next such call. */
const char *wic_link_why(void);
/* The link must not be running; NULL is fine. 0, or -ETIMEDOUT: after 1 s the kernel is still on
 * the device or queued for it. Then nothing was freed, as the device may still use it: the caller
 * keeps the slots, the argument and all device memory, and ends the process by _exit or exec,
 * because CUDA calls that free memory, those at exit among them, would wait for that kernel without
 * limit. */
int wic_link_destroy(struct wic_link *link);

/* How its kernel, or its launch's, shares the GPU. */
void wic_link_shaped(const struct wic_link *link, struct wic_shaped *out_shaped);

#define WIC_SHARE_WHOLE 1000u
/* The part of the plan's blocks and pulls, of WIC_SHARE_WHOLE, that launches from now on have: at
 * least one of each. All of them at first. Not while the link runs. Of a lane: of the launch that
 * its start makes, if it makes one. */
void wic_link_share(struct wic_link *link, uint32_t share);
/* Launches the kernel and waits until all its blocks are resident, or opens the lane of one that is
 * there, which is 1; makes the link's device the thread's current one. Tiles are counted from
 * first_tile again, which lies in input slot (in_first
 * + first_tile) % in_slots and in output slot (out_first + first_tile) % out_slots. -EBUSY: within
 * WIC_LINK_START_NS there was no room for all its blocks, as another process fills the device. The
 * kernel was told to leave; it does so when it starts, without touching a slot, and the next start
 * waits for that within its own limit. -ETIMEDOUT: work that was queued for an earlier launch does
 * not end: the device hangs, and the link can only be destroyed. */
int wic_link_start(struct wic_link *link, uint64_t in_first, uint64_t out_first);
/* Waits until the kernel has left, or all its blocks the lane and, with the last lane, the kernel,
 * after wic_link_close, wic_link_abort or a heartbeat that stopped.
 * -ETIMEDOUT: it did not, and the link can only be destroyed; -EIO: the kernel failed, the device
 * is lost to this process. */
int wic_link_join(struct wic_link *link, int64_t timeout_ns);
/* Whether the kernel runs, and has not left the lane: 1, 0 or -EIO, also when a copy failed. */
int wic_link_running(struct wic_link *link);

/* A tile to be posted. */
struct wic_link_tile {
    uint64_t number;
    uint32_t units;   /* up to what the plan has in a tile */
    size_t bytes;     /* of its input slot that are filled */
    size_t out_bytes; /* that its results take */
    const void *user; /* plan.user_bytes that its working warps see; copied */
    /* Of its units in the slot, one after the other; 0: plan.in_unit. Else less than that by a
     * multiple of 16, and of fewer than 2^15 units. Not for plans that do not pull. */
    uint32_t unit_bytes;
};

/* The tile's input is in its slot and its output slot is free. Tiles are posted in ascending order,
 * fewer than the ring has entries ahead of the oldest tile that is not done. One that goes by copy
 * engine may wait for others to share a copy with: wic_link_done sends it. -EIO: the copy engine
 * refused; -EINVAL: more units than a tile of the plan has, or than a slot has room for, or units
 * that are not as above. */
int wic_link_post(struct wic_link *link, const struct wic_link_tile *tile);
/* Whether the tile's output is there and its input slot belongs to the host again. To be asked in
 * ascending order, again and again until it is true, as this is what starts the copies of batches.
 * Costs one load where no tile goes by copy engine. */
bool wic_link_done(struct wic_link *link, uint64_t tile);
/* Whether the kernel has computed the tile, also when its results are still on their way. Such a
 * tile must not be posted again; wic_link_done is true when they are there. */
bool wic_link_computed(struct wic_link *link, uint64_t tile);
/* The heartbeat: to be called more often than every beat_ns while the link runs. Thread: any
 * one. */
void wic_link_beat(struct wic_link *link);
/* All `tiles` tiles of the run are posted. The kernel leaves when they are done. */
void wic_link_close(struct wic_link *link, uint64_t tiles);
/* The kernel leaves as soon as it can. Thread: any. */
void wic_link_abort(struct wic_link *link);

/* The properties of a device that a transfer plan is chosen by. -ENODEV, -EIO. Thread: any. */
int wic_gpu_read(int device, struct wic_gpu *out_gpu);

/* After wic_link_join: the state as the kernel left it. -EIO, -ETIMEDOUT. */
int wic_link_report(struct wic_link *link, struct wic_link_state *out_state);

#ifdef __cplusplus
}
#endif
#endif
