/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_SERVED_H
#define PB_PLAN_SERVED_H
/* The computing part of a plan: chain, tiles, slots and the work of a device on them. A process
 * that computes for another makes it again from the configuration and from facts of the scene,
 * which the other sends: no fact is used before it is checked. Pure. Thread: any.
 */
#include "pipeline/plan/plan.h"

enum {
    PB_SERVED_SLOTS_MAX = 4096,
    PB_SERVED_WORKERS_MAX = 512,
    PB_SERVED_WINDOW_MAX = 16384,
    PB_SERVED_NUMBERS_MAX = 4096,
    PB_SERVED_RULES_MAX = 256,
    PB_SERVED_AREAS_MAX = 64,
    PB_SERVED_BLOCKS_MAX = 200000
};

/* Calibration of one entry of a step's bands. */
struct pb_served_rule {
    uint32_t step, entry;
    int32_t has_planck, has_tables, area, noise;
    double gain, offset, k1, k2;
};

/* Area of a step, in pixels of the scene. */
struct pb_served_area {
    uint32_t step;
    int32_t none, has_cutline, cutline;
    double left, top, right, bottom;
};

/* Layout of a source's blocks, if they are sent as they are stored. */
struct pb_served_layout {
    int32_t block_w, block_h, tiled, planar, big_endian;
    int32_t by_host;    /* 1: they are sent as planes of pixels, without sizes */
    int32_t alpha_band; /* 1-based; 0 = absent, or a mask has precedence */
    uint32_t compression, predictor;
    uint64_t stored_max;
    unsigned char fill[PB_BANDS_MAX][8]; /* pixels of blocks that are not stored, by band */
};

/* Stored bytes of all blocks of the sources that are read, one source after the other. */
struct pb_served_stored {
    const uint32_t *bytes;
    uint32_t n;
};

/* One source of the scene, the delivered file first. */
struct pb_served_source {
    int32_t w, h, n_bands;
    int32_t type; /* enum pb_type */
    int32_t has_mask, placed, is_absent;
    int32_t is_complex; /* in the file: as the type; has no nodata, which is NaN already */
    struct pb_map map;
    /* Indexed by band. */
    int32_t has_nodata[PB_BANDS_MAX], nodata_unreadable[PB_BANDS_MAX], is_class[PB_BANDS_MAX];
    double nodata[PB_BANDS_MAX];
    struct pb_served_layout layout; /* in requests with `whole` */
};

/* A product whose blocks the other process makes: struct pb_plan_made as numbers. */
struct pb_served_made {
    uint32_t product, first_plane, n_planes, plane[PB_BANDS_MAX];
    int32_t block_px, type, predictor, has_mask, nearest;
    uint32_t n_bands, with, mask_with, levels, n_join;
    int32_t parts, top_only, any;
    double scale, offset, nodata, below, above, fill;
};

/* Output side there: struct pb_plan_out as numbers. */
struct pb_served_out {
    uint32_t n, size;
    uint64_t host_planes;
    struct pb_served_made made[PB_OUT_MADE];
};

/* Request to the computing process. Plain numbers; pb_served_is_sound() range-checks them. */
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
    uint32_t whole; /* 1: slots have blocks as they are stored, 2: or decoded by cores */
    struct pb_served_out out;
    int32_t by_streams; /* no kernel may be resident on the device */
    int32_t has_transform;
    double transform[6];
    struct pb_ground_unit unit;
    uint32_t n_sources;
    struct pb_served_source source[PB_FILES_MAX];
    /* Numbers of the chain's programs from passes before: the results of all reductions, in the
     * order of the earlier passes, then the numbers of this pass's loops. */
    uint32_t n_numbers;
    double numbers[PB_SERVED_NUMBERS_MAX];
    uint32_t n_rules;
    struct pb_served_rule rule[PB_SERVED_RULES_MAX];
    uint32_t n_areas;
    struct pb_served_area area[PB_SERVED_AREAS_MAX];
};

/* Conversions (plan_served_out.c). False: the numbers are invalid. */
void pb_served_say_out(const struct pb_plan_out *out, struct pb_served_out *said);
bool pb_served_take_out(const struct pb_served_out *said, struct pb_plan_out *out);

/* Request for pass `pass` of a plan that was made from *request. -E2BIG: too many reductions to
 * send.
 */
int pb_served_request_make(const struct pb_plan_request *request, const struct pb_plan *plan,
                           uint32_t pass, struct pb_err *err, struct pb_served_request *out);
/* Plan of one pass. Only config, pipeline, device and traits of base are used; the rest is taken
 * from `said`, which is checked: service.protocol if it is invalid. The slots use at most
 * compute.memory. The returned plan owns the whole chain; *out_pass is the pass in it. */
int pb_plan_serve(const struct pb_plan_request *base, const struct pb_served_request *said,
                  struct pb_err *err, struct pb_plan **out_plan, struct pb_plan **out_pass);
#endif
