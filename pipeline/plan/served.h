/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_SERVED_H
#define PB_PLAN_SERVED_H
#include "kernels/tiling.h"
#include "pipeline/plan/plan.h"
#include "pipeline/plan/served_tail.h"
/* The computing part of a plan: chain, tiles, slots and the work of a device on them. A process
 * that computes for another makes it again from the configuration and from facts of the scene,
 * which the other sends: no fact is used before it is checked. Pure. Thread: any.
 */

enum {
    PB_SERVED_SLOTS_MAX = 4096,
    PB_SERVED_WORKERS_MAX = 512,
    PB_SERVED_WINDOW_MAX = 16384,
    PB_SERVED_PLANES_MAX = 4096 /* planes of tiles */
};

/* Layout of a source's blocks, if they are sent as they are stored. */
struct pb_served_layout {
    int32_t block_w, block_h, tiled, planar, big_endian;
    int32_t by_host;    /* 1: they are sent as planes of pixels, without sizes */
    int32_t alpha_band; /* 1-based; 0 = absent, or a mask has precedence */
    uint32_t compression, predictor;
    uint64_t stored_max, file_bytes;
    struct pb_mask_blocks mask;
    unsigned char fill[PB_BANDS_MAX][8]; /* pixels of blocks that are not stored, by band */
};

/* One source of the scene, the delivered file first: the facts of struct pb_raster_info that a plan
 * without files needs. No other member of that struct is sent, because each one that is used must
 * be checked. */
struct pb_served_source {
    int32_t w, h, n_bands;
    int32_t type; /* enum pb_type */
    int32_t has_mask, placed, is_absent;
    int32_t is_growing; /* true if its lines still arrive */
    int32_t is_complex; /* in the file: as the type; has no nodata, which is NaN already */
    /* In the file the bands of a block decode together; the blocks that are sent may be planar. */
    int32_t interleaved;
    struct pb_map map;
    /* Indexed by band. */
    int32_t has_nodata[PB_BANDS_MAX], nodata_unreadable[PB_BANDS_MAX], is_class[PB_BANDS_MAX];
    double nodata[PB_BANDS_MAX];
    struct pb_served_layout layout; /* in requests with `whole` */
};

/* Request to the computing process. Plain numbers, whose ranges pb_plan_serve() checks. Facts of
 * variable size are in its tail: the products that the other process makes (n_made of struct
 * pb_plan_made), their colours (struct pb_paint_step), the rules of calibration (n_rules of struct
 * pb_calibrated), the areas of steps (n_areas of struct pb_plan_area), the ways to other coordinate
 * systems (ways.h); numbers that are known since passes before: the results of all reductions, in
 * the order of the earlier passes, those of this pass's loops, the knots of its curves; with
 * `whole` the stored bytes of all blocks of the sources that are read and of their masks, one
 * source after the other. */
struct pb_served_request {
    uint32_t pass; /* index of an earlier pass; the count of earlier passes = the last */
    int32_t side_px;
    uint32_t in_slots, out_slots, workers;
    /* Slot bytes of the largest pass; 0: each pass has its own memory, which no other pass keeps.
     */
    uint64_t room_bytes;
    /* Order in which tiles are sent: enum pb_order, as in plan and grid. */
    uint32_t order, window_units;
    int32_t stripe_cols, unit_cols;
    int32_t lines;   /* layout.lines of the plan; 0: slots have tiles, not strips */
    uint32_t whole;  /* 1: slots have blocks as they are stored, 2: or decoded by cores */
    int32_t managed; /* planes of the scene are managed memory */
    int32_t finds;   /* with `whole`: the sender has found pixels of the job's last pass there */
    int32_t keeps;   /* with `whole`: pixels stay on the device for the job's next passes */
    /* Output side: struct pb_plan_out without products. */
    uint32_t out_size;
    uint64_t host_planes;
    int32_t by_streams; /* no kernel may be resident on the device */
    int32_t has_transform;
    double transform[6];
    struct pb_ground_unit unit;
    uint32_t n_sources;
    struct pb_served_source source[PB_FILES_MAX];
    uint32_t n_made, n_rules, n_areas;
    int32_t has_tile;
    struct pb_ground_tile tile; /* for which the products are made */
};

/* Request for pass `pass` of a plan that was made from *request, and its tail, which is empty
 * before; without the bytes of stored blocks, which the caller appends. */
int pb_served_request_make(const struct pb_plan_request *request, const struct pb_plan *plan,
                           uint32_t pass, struct pb_err *err, struct pb_served_request *out,
                           struct pb_served_tail *out_tail);
/* Plan of one pass. Only config, pipeline, device and traits of base are used; the rest is taken
 * from `said` and its tail, which are checked: service.protocol if they are invalid. The slots use
 * at most compute.memory. The bytes of stored blocks are left in the tail. The returned plan owns
 * the whole chain and uses no byte of the tail; *out_pass is the pass in it. */
int pb_plan_serve(const struct pb_plan_request *base, const struct pb_served_request *said,
                  struct pb_served_tail *tail, struct pb_err *err, struct pb_plan **out_plan,
                  struct pb_plan **out_pass);
#endif
