/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LANES_H
#define PB_LANES_H
/* Resident kernels of a process that serve several jobs at once (wic/device/launch.h): one for
 * each row of the table in kernels/chain/chain_lanes.cu, made when a job first needs it. Its
 * blocks fit the plan of that job; a later job whose plan needs larger blocks gets its own
 * kernel, unless no other job has a lane: then the kernel is recreated.
 *
 * Such a kernel is one resident of the device (residency.h), which counts for its jobs and has
 * the highest of their priorities. Thread: any. */
#include <stdbool.h>
#include <stdint.h>

/* Part of a job in such a kernel. */
struct pb_lane;
struct pb_lanes_count {
    int64_t launches; /* launches of these kernels since the process began */
    int64_t open;     /* lanes: jobs whose tiles are being processed */
};

struct pb_lanes_count pb_lanes_count(void);

#ifdef PB_HAVE_CUDA
#include "kernels/chain/chain_lanes.h"
#include "wic/device/launch.h"
#include "wic/device/transfer_plan.h"

/* Joins on the current device. *out_lane is NULL if the job needs its own kernel. Negative: as
 * wic_launch_create. */
int pb_lane_join(const struct pb_chain_resident_shape *shape, const struct wic_transfer_plan *plan,
                 const struct wic_gpu *gpu, int64_t priority, struct pb_lane **out_lane);
/* Values for the link, and for the shape of the chain. */
struct wic_launch *pb_lane_launch(const struct pb_lane *lane);
uint32_t pb_lane_blocks(const struct pb_lane *lane);
/* Callbacks for struct wic_device_options; the context is the lane. */
uint32_t pb_lane_enter(void *lane);
void pb_lane_left(void *lane);
bool pb_lane_is_unwanted(void *lane);
/* Ends the lane after its last tile. The link may be destroyed later. NULL is fine. */
void pb_lane_part(struct pb_lane *lane);
#endif
#endif
