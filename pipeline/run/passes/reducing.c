/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The others are merged into set 0; a device has the last set. A reduction that is complete
 * after the first round takes no part in the next one. */
#include "pipeline/run/passes/reducing.h"
#include "pipeline/plan/staged.h"
#include "config/pipeline_config.h"
#include "pipeline/plan/engine.h"
#include "wic/pattern/schedule.h"

#include <stdlib.h>

/* --- rounds
 * --------------------------------------------------------------------------------------- */

enum { HOST, DEVICE, PARTIES, SLOTS = 2 };

struct pb_rounds {
    struct wic_schedule schedule;
    const char *name; /* name of the pattern */
};

static int fail(const struct pb_rounds *rounds, const char *why, struct pb_err *err)
{
    return pb_fail(err, PB_E_SYSTEM, "the rounds cannot follow the pattern '%s': %s", rounds->name,
                   why);
}

/* Sends one chunk from a party to the other, with `value`. 1; 0: the exchange is over. */
static int step(struct pb_rounds *rounds, uint16_t from, uint64_t value, struct pb_err *err)
{
    const struct wic_outcome outcome = {.count = 1, .value = value};
    char text[WIC_TEXT_BYTES] = "";
    struct wic_step next;
    int rc = wic_schedule_next(&rounds->schedule, &next, text, sizeof text);
    if (rc <= 0)
        return rc == 0 ? 0 : fail(rounds, text, err);
    if (next.from != from || next.count != 1 || (next.flags & WIC_STEP_TOLD) == 0)
        return fail(rounds, "it does not take turns", err);
    rc = wic_schedule_tell(&rounds->schedule, &outcome, text, sizeof text);
    return rc == 0 ? 1 : fail(rounds, text, err);
}

int pb_rounds_create(const struct pb_exchange_config *exchange, size_t bytes, struct pb_err *err,
                     struct pb_rounds **out_rounds)
{
    struct pb_rounds *rounds = calloc(1, sizeof *rounds);
    char text[WIC_TEXT_BYTES] = "";
    if (rounds == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the rounds");
    rounds->name = exchange->pattern->name;
    struct wic_pattern_params params = {
        .parties = PARTIES, .slots = SLOTS, .chunk_bytes = bytes, .args = exchange->args};
    params.chunks[HOST][DEVICE] = params.chunks[DEVICE][HOST] = WIC_OPEN;
    int rc = wic_schedule_init(&rounds->schedule, exchange->pattern, &params, text, sizeof text);
    rc = rc < 0 ? fail(rounds, text, err) : step(rounds, HOST, 0, err);
    if (rc <= 0) {
        rc = rc < 0 ? rc : fail(rounds, "it has no step", err);
        pb_rounds_destroy(rounds);
        return rc;
    }
    *out_rounds = rounds;
    return 0;
}

int pb_rounds_next(struct pb_rounds *rounds, uint32_t others, bool *out_more, struct pb_err *err)
{
    int rc = step(rounds, DEVICE, others, err);
    if (rc == 0)
        rc = fail(rounds, "it ends within a round", err);
    rc = rc < 0 ? rc : step(rounds, HOST, 0, err);
    if (rc < 0)
        return rc;
    *out_more = rc > 0;
    return 0;
}

void pb_rounds_destroy(struct pb_rounds *rounds)
{
    if (rounds == NULL)
        return;
    wic_schedule_fini(&rounds->schedule);
    free(rounds);
}

/* --- reductions
 * ----------------------------------------------------------------------------------- */

struct pb_reducing {
    const struct pb_plan *plan;
    struct pb_chain *pass;
    const struct pb_chain_reduction *reduction;
    size_t n;
    uint32_t workers; /* including a device */
    size_t set_bytes;
    uint8_t *sets;             /* workers + 1 */
    size_t *offset;            /* offset of each reduction's state in a set */
    bool *done;                /* indexed by reduction */
    struct pb_rounds **rounds; /* indexed by reduction; NULL: no loop */
    double *results;           /* results of the round, PB_REDUCE_RESULTS_MAX for each */
};

static void *state_of(const struct pb_reducing *r, uint32_t set, size_t i)
{
    return r->sets + set * r->set_bytes + r->offset[i];
}

/* Places states in the order in which pb_chain_reduce_bytes adds up their sizes. */
static void place_states(struct pb_reducing *r)
{
    size_t at = 0;
    for (size_t i = 0; i < r->n; i++) {
        r->offset[i] = at;
        at += pb_chain_state_bytes(&r->reduction[i]);
    }
}

static int begin_one(struct pb_reducing *r, size_t i, const struct pb_step_config *steps,
                     struct pb_err *err)
{
    const struct pb_chain_reduction *reduction = &r->reduction[i];
    const size_t n = reduction->reduce.n_numbers;
    float numbers[PB_REDUCE_NUMBERS_MAX] = {0};
    pb_chain_loop_start(r->pass, reduction, numbers);
    for (uint32_t set = 0; set <= r->workers; set++)
        pb_reduce_begin(&reduction->reduce, &reduction->samples, numbers, state_of(r, set, i));
    return n == 0 ? 0
                  : pb_rounds_create(&steps[reduction->step].exchange, n * sizeof *numbers, err,
                                     &r->rounds[i]);
}

static int allocate(struct pb_reducing *r, struct pb_err *err)
{
    const size_t n = r->n + 1; /* n may be 0: a pass that only makes whole images */
    r->done = calloc(n, sizeof *r->done);
    r->rounds = calloc(n, sizeof(struct pb_rounds *));
    r->offset = calloc(n, sizeof *r->offset);
    r->results = calloc(n * PB_REDUCE_RESULTS_MAX, sizeof *r->results);
    r->sets = aligned_alloc(64, r->set_bytes * (r->workers + (size_t)1) + 64);
    if (r->done == NULL || r->rounds == NULL || r->offset == NULL || r->results == NULL ||
        r->sets == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the reductions");
    return 0;
}

int pb_reducing_create(const struct pb_plan *plan, const struct pb_step_config *steps,
                       struct pb_err *err, struct pb_reducing **out_reducing)
{
    struct pb_reducing *r = calloc(1, sizeof *r);
    if (r == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the reductions");
    r->plan = plan;
    r->pass = plan->work.chain;
    r->n = pb_chain_reductions(r->pass, &r->reduction);
    r->workers = pb_plan_sink_workers(plan) + (plan->engine.out.reduced != 0);
    r->set_bytes = pb_chain_reduce_bytes(r->pass);
    int rc = allocate(r, err);
    if (rc == 0)
        place_states(r);
    for (size_t i = 0; i < r->n && rc == 0; i++)
        rc = begin_one(r, i, steps, err);
    if (rc < 0) {
        pb_reducing_destroy(r);
        return rc;
    }
    *out_reducing = r;
    return 0;
}

static int add_tile(void *object, const struct pb_tile *tile, const struct pb_tile_planes *pixels,
                    uint32_t worker, struct pb_err *err)
{
    struct pb_reducing *r = object;
    (void)err;
    for (size_t i = 0; i < r->n && pixels->plane_px > 0; i++) {
        const struct pb_chain_reduction *reduction = &r->reduction[i];
        const float *planes[PB_REDUCE_INPUTS_MAX];
        for (uint32_t k = 0; k < reduction->reduce.n_inputs; k++)
            planes[k] = pixels->data + reduction->output[k] * pixels->plane_px;
        if (!r->done[i] && !pb_plan_out_reduces(r->plan, i))
            pb_reduce_add(&reduction->reduce, state_of(r, worker + 1, i), planes, tile->core.w,
                          tile->core.h);
    }
    return 0;
}

void *pb_reducing_device_state(struct pb_reducing *r, size_t i)
{
    return r->done[i] ? NULL : state_of(r, r->workers, i);
}

/* Adds the sums of a device, part by part. */
static int add_sums(void *object, const struct pb_tile *tile, const struct pb_tile_planes *sums,
                    uint32_t worker, struct pb_err *err)
{
    struct pb_reducing *r = object;
    const struct pb_chain_sums *layout = &r->plan->layout.sums.chain;
    const size_t parts = pb_plan_parts(r->plan, &tile->core);
    (void)err;
    for (size_t i = 0; i < r->n && sums->plane_px > 0; i++)
        if (!r->done[i])
            pb_reduce_add_sums(&r->reduction[i].reduce, state_of(r, worker + 1, i),
                               (const int32_t *)(const void *)sums->data + layout->of[i].at,
                               layout->words, parts);
    return 0;
}

struct pb_sink pb_reducing_sink(struct pb_reducing *reducing)
{
    bool summed = reducing->plan->layout.sums.chain.n > 0;
    return (struct pb_sink){.tile = summed ? add_sums : add_tile, .object = reducing};
}

/* Ends the round of one reduction. */
static int end_one(struct pb_reducing *r, size_t i, double *out_results, bool *out_more,
                   struct pb_err *err)
{
    const struct pb_reduce *reduce = &r->reduction[i].reduce;
    void *into = state_of(r, 0, i);
    for (uint32_t set = 1; set <= r->workers; set++)
        pb_reduce_merge(reduce, into, state_of(r, set, i));
    uint32_t others = pb_reduce_end(reduce, into, out_results);
    *out_more = others > 0;
    return r->rounds[i] != NULL ? pb_rounds_next(r->rounds[i], others, out_more, err) : 0;
}

static void begin_again(struct pb_reducing *r, size_t i)
{
    const struct pb_reduce *reduce = &r->reduction[i].reduce;
    void *ended = state_of(r, 0, i);
    if (r->rounds[i] != NULL)
        pb_chain_loop_again(r->pass, &r->reduction[i], pb_reduce_next(reduce, ended));
    for (uint32_t set = r->workers + 1; set-- > 0;)
        pb_reduce_again(reduce, state_of(r, set, i), ended);
}

static int set_one(const struct pb_reducing *r, size_t i, struct pb_chain *whole,
                   const double *results, struct pb_err *err)
{
    const struct pb_chain_reduction *reduction = &r->reduction[i];
    pb_chain_set_results(whole, reduction, results);
    if (reduction->reduce.kind == PB_REDUCE_THRESHOLD &&
        pb_chain_set_counts(whole, reduction, state_of(r, 0, i)) < 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for a histogram");
    return 0;
}

/* Sets the results in the chain one by one; then the numbers of the loops that continue. */
int pb_reducing_end(struct pb_reducing *r, struct pb_chain *whole, bool *out_all,
                    struct pb_err *err)
{
    int rc = 0;
    *out_all = true;
    for (size_t i = 0; i < r->n && rc == 0; i++) {
        double *results = r->results + i * PB_REDUCE_RESULTS_MAX;
        bool more = false;
        if (r->done[i])
            continue;
        rc = end_one(r, i, results, &more, err);
        r->done[i] = !more;
        *out_all = *out_all && !more;
        if (rc == 0 && !more)
            rc = set_one(r, i, whole, results, err);
    }
    for (size_t i = 0; i < r->n && rc == 0; i++)
        if (!r->done[i])
            begin_again(r, i);
    return rc;
}

void pb_reducing_destroy(struct pb_reducing *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n && r->rounds != NULL; i++)
        pb_rounds_destroy(r->rounds[i]);
    free(r->rounds);
    free(r->done);
    free(r->offset);
    free(r->results);
    free(r->sets);
    free(r);
}
