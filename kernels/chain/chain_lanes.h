/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_LANE_H
#define PB_CHAIN_LANE_H
/* The kernels that stay and serve several chains at once, each as a lane (wic/device/launch.h). The
 * table in chain_lanes.cu is the one place that says which chains share a kernel. Present in CUDA
 * builds only. */
#include "kernels/chain/chain_resident.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pb_chain_lane {
    PB_CHAIN_LANE_LINES, /* chains whose tiles are pulled line by line */
    PB_CHAIN_LANE_COUNT  /* another one: a kernel of its own */
};

struct pb_lane_kernel {
    const void *kernel;
    uint32_t warps;       /* of a block that work */
    uint32_t blocks_each; /* of a multiprocessor */
};

/* The kernel of which a chain of this shape may be a lane, its blocks having `warps` warps. */
enum pb_chain_lane pb_chain_lanes_of(const struct pb_chain_resident_shape *shape, uint32_t warps);
const struct pb_lane_kernel *pb_chain_lanes_kernel(enum pb_chain_lane which);

#ifdef __cplusplus
}
#endif
#endif
