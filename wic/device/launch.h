/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_LAUNCH_H
#define WIC_LAUNCH_H
/* A launch: one resident kernel that serves several links at once, each as one of its lanes.
 *
 * A link that is created with a launch has doorbell, ready board, slots and counters like any
 * other, but no kernel of its own. When it starts, it opens its lane: a copy engine brings its view
 * and the argument of its work to the launch's tables in device memory, and writes the lane's open
 * word behind them. The kernel stays meanwhile, and does so when a lane is left. It is launched
 * with the first lane that is opened, and leaves with the last one.
 *
 * In the kernel each block serves all open lanes: its Activator polls what is next of each and
 * takes that of the lane whose turn it is (wic/device/lane.h). Warp 2 of block l is the Monitor of
 * lane l. A lane is left by a mark that goes through the stages of each block behind its pieces:
 * when the last block has passed it on, nothing in the kernel uses the lane's memory any more.
 *
 * An end, an abort and a heartbeat that stopped are the matter of one lane. The kernel itself
 * leaves when it is told so, which is when its last lane is left, and when the heartbeats of all
 * lanes have stopped.
 *
 * Links of one launch differ in slots, tiles, pieces and argument, but share a block: its warps,
 * its stages and their bytes. Errors as in link.h. Thread: any, unless said otherwise; a link of a
 * launch is still used by one thread at a time. */
#include "wic/device/lane.h"
#include "wic/device/link.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel's argument, by value. */
struct wic_lanes {
    /* What all lanes share: plan.blocks, depth, warps and work_bytes, stage_bytes, and the control,
     * the state and the started word of the launch. */
    struct wic_view base;
    const uint64_t *open;           /* device memory, by lane: the number of its last opening */
    const struct wic_view *views;   /* device memory, by lane */
    const unsigned char *arguments; /* likewise, argument_bytes apart */
    uint32_t argument_bytes;
    uint32_t
        views_at; /* in a block's shared memory: its copies of the views, one more than lanes */
};

struct wic_launch_options {
    const void *kernel;      /* __global__ void kernel(struct wic_lanes), with wic_resident_lanes */
    uint32_t argument_bytes; /* of a lane, at most */
    /* Of a block: warps that work, stages and the bytes of each (in_piece, and out_piece for
     * WIC_PUSH_BULK), of the work at most. A lane's plan has as many warps and no more of the
     * rest. */
    uint32_t warps, depth, stage_bytes, work_bytes;
    uint32_t blocks;  /* more than WIC_LANES_MAX */
    uint64_t beat_ns; /* 0: WIC_LINK_BEAT_NS */
    /* Its share next to other kernels. It has fewer blocks than these, but more than WIC_LANES_MAX,
     * if no more fit on the multiprocessors of the share. */
    struct wic_share share;
};

struct wic_launch;

/* Layout that the including program is compiled with, as WIC_DEVICE_LAYOUT. */
#define WIC_LAUNCH_LAYOUT                                                                          \
    (UINT64_C(1) << 32 | (uint64_t)sizeof(struct wic_lanes) << 16 |                                \
     sizeof(struct wic_launch_options))
int wic_launch_create_as(uint64_t layout, const struct wic_launch_options *options,
                         struct wic_launch **out_launch);
/* On the current device. Errors of wic_link_create, for these blocks; -EOPNOTSUPP: the driver
 * cannot write a word from a stream; -EPROTO: the program was compiled with the headers of another
 * wic. Thread: init. */
static inline int wic_launch_create(const struct wic_launch_options *options,
                                    struct wic_launch **out_launch)
{
    return wic_launch_create_as(WIC_LAUNCH_LAYOUT, options, out_launch);
}
/* All its links are destroyed; NULL is fine. As wic_link_destroy. */
int wic_launch_destroy(struct wic_launch *launch);
/* Whether a link of this plan and argument can be a lane of it. */
bool wic_launch_takes(const struct wic_launch *launch, const struct wic_transfer_plan *plan,
                      size_t argument_bytes);
/* Size of the kernel from its next launch on, up to that of the options, which it has at first:
 * blocks, more than WIC_LANES_MAX, before the share of wic_link_share; and work_bytes of a block,
 * at least those of the plans of its lanes, because a start of a link that needs more is -ENOLCK
 * then. The rest of a
 * multiprocessor is free for other kernels. */
void wic_launch_limit(struct wic_launch *launch, uint32_t blocks, uint32_t work_bytes);
/* How often the kernel was launched, and how many lanes are open now. */
void wic_launch_count(struct wic_launch *launch, uint64_t *out_launches, uint32_t *out_open);
/* Shared memory that a block takes beside stages and work. */
#define WIC_LANES_BYTES ((uint32_t)((WIC_LANES_MAX + 1) * sizeof(struct wic_view)))

#ifdef __cplusplus
}
#endif
#endif
