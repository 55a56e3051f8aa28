/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_TUNE_H
#define WIC_TUNE_H
/* Finds the transfer plan that gets the most tiles through this GPU with this kernel, by
 * measurement: candidates are enumerated, and halved again and again, the better half being
 * measured for about twice as long each time. The row that wins can be kept and given to
 * wic_transfer_plan_by later on.
 *
 *   struct wic_tune_trial trials[WIC_TUNE_TRIALS_MAX];
 *   size_t n = wic_tune_enumerate(&gpu, &shape, &work, trials);
 *   struct wic_tune_meter meter = {wic_tune_measure, NULL, &stream};
 *   rc = wic_tune_halve(trials, n, &meter, 250000000);       then trials[0] is the best
 *
 * Nothing is kept here. Thread: one at a time. */
#include "wic/device/link.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WIC_TUNE_TRIALS_MAX 96u
#define WIC_TUNE_LEAST_NS   UINT64_C(500000) /* of a measurement */
/* Of two plans, the one that takes less of the GPU is preferred where it costs this part of the
 * throughput at most. */
#define WIC_TUNE_PREFERENCE 0.01

/* A candidate and what was found of it. */
struct wic_tune_trial {
    struct wic_transfer_row row;
    struct wic_transfer_plan plan;
    uint32_t number; /* in the order of enumeration; 0: by the built-in table */
    double handicap; /* up to WIC_TUNE_PREFERENCE: what the plan takes of the GPU */
    double rate;     /* bytes of input a second, in its last and longest measurement */
    uint64_t ns;     /* that took so long; 0: it was never measured */
    uint32_t rounds; /* it was measured in so many */
    int error;       /* of its last measurement; out of the race */
};

/* Piece x depth x blocks x bytes on the link for tiles that are pulled, and backlogs from which on
 * copy engines take over; different plans only, the one of the built-in table first. work may be
 * NULL. Returns how many of trials[WIC_TUNE_TRIALS_MAX] were written; 0: this GPU or shape has no
 * plan. Pure arithmetic. Thread: any. */
size_t wic_tune_enumerate(const struct wic_gpu *gpu, const struct wic_tile_shape *shape,
                          const struct wic_work *work, struct wic_tune_trial *trials);
/* The same for the built-in table's row and these n_rows, such as were good for a similar shape. */
size_t wic_tune_rows(const struct wic_gpu *gpu, const struct wic_tile_shape *shape,
                     const struct wic_work *work, const struct wic_transfer_row *rows,
                     size_t n_rows, struct wic_tune_trial *trials);

/* Place of the copy x order x batch for the tiles of a frame with a halo, wic_transfer_plan_tiles;
 * engines by rows of tiles first. `row` of these trials is empty. work may be NULL; its blocks are
 * enumerated where workers load. Returns and needs what wic_tune_enumerate does. */
size_t wic_tune_tiles(const struct wic_gpu *gpu, const struct wic_tile_grid *grid,
                      const struct wic_work *work, struct wic_tune_trial *trials);

struct wic_tune_meter {
    /* Lets the plan run for about `ns` and gives its bytes of input a second. -E2BIG, -ENOSPC,
     * -ENOMEM and -EINVAL: this plan does not work; another negative errno ends the whole. */
    int (*measure)(void *context, const struct wic_transfer_plan *plan, uint64_t ns,
                   double *out_rate);
    uint64_t (*now_ns)(void *context); /* NULL: CLOCK_MONOTONIC */
    void *context;
};

/* Measures n trials (plan, number and handicap are set, the rest is zeroed) in turn and halves them
 * until one is left; they are sorted then, the best first. Begins no measurement that would not end
 * within the budget; what was not measured in time counts as worse than what was. 0; -ETIME: the
 * budget was over before anything was measured; -ENODEV: no plan worked; or what measure returned.
 */
int wic_tune_halve(struct wic_tune_trial *trials, size_t n, const struct wic_tune_meter *meter,
                   uint64_t budget_ns);

/* A stream of equal tiles through a link, for wic_tune_measure. */
struct wic_tune_stream {
    struct wic_link_options link; /* its plan is not used; its slots are pinned already, or each
                                     measurement pins them */
    struct wic_link_tile tile;    /* its number is not used; user bytes are borrowed */
};

/* Makes a link on the current device, keeps all its slots full for about `ns`, and takes it down.
 * The context is a struct wic_tune_stream. Errors as of link.h; after -ETIMEDOUT and -EIO the
 * device is of no use to this process any more. */
int wic_tune_measure(void *stream, const struct wic_transfer_plan *plan, uint64_t ns,
                     double *out_rate);

#ifdef __cplusplus
}
#endif
#endif
