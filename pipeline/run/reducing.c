/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Set 0 is what the others are merged into. A reduction that is complete after the first round
 * takes no part in the next one. */
#include "pipeline/run/reducing.h"

#include <stdlib.h>

struct pb_reducing {
    struct pb_chain *pass;
    const struct pb_chain_reduction *reduction;
    size_t n;
    uint32_t workers;
    size_t set_bytes;
    uint8_t *sets;   /* workers + 1 */
    size_t *offset;  /* of a reduction's state in a set */
    bool *done;      /* by reduction */
    double *results; /* of the round, PB_REDUCE_RESULTS_MAX of each */
};

static void *state_of(const struct pb_reducing *r, uint32_t set, size_t i)
{
    return r->sets + set * r->set_bytes + r->offset[i];
}

/* As pb_chain_reduce_bytes adds them up. */
static void place_states(struct pb_reducing *r)
{
    size_t at = 0;
    for (size_t i = 0; i < r->n; i++) {
        r->offset[i] = at;
        at += pb_chain_state_bytes(&r->reduction[i]);
    }
}

static void begin_one(struct pb_reducing *r, size_t i)
{
    float numbers[PB_REDUCE_NUMBERS_MAX] = {0};
    pb_chain_loop_start(r->pass, &r->reduction[i], numbers);
    for (uint32_t set = 0; set <= r->workers; set++)
        pb_reduce_begin(&r->reduction[i].reduce, &r->reduction[i].samples, numbers,
                        state_of(r, set, i));
}

int pb_reducing_create(struct pb_chain *pass, uint32_t workers, struct pb_err *err,
                       struct pb_reducing **out_reducing)
{
    struct pb_reducing *r = calloc(1, sizeof *r);
    if (r == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the reductions");
    r->pass = pass;
    r->n = pb_chain_reductions(pass, &r->reduction);
    r->workers = workers;
    r->set_bytes = pb_chain_reduce_bytes(pass);
    r->done = calloc(r->n, sizeof *r->done);
    r->offset = calloc(r->n, sizeof *r->offset);
    r->results = calloc(r->n * PB_REDUCE_RESULTS_MAX, sizeof *r->results);
    r->sets = aligned_alloc(64, r->set_bytes * (workers + (size_t)1));
    if (r->done == NULL || r->offset == NULL || r->results == NULL || r->sets == NULL) {
        pb_reducing_destroy(r);
        return pb_fail(err, PB_E_MEMORY, "out of memory for the reductions");
    }
    place_states(r);
    for (size_t i = 0; i < r->n; i++)
        begin_one(r, i);
    *out_reducing = r;
    return 0;
}

static int add_tile(void *object, const struct pb_tile *tile, const struct pb_tile_out *pixels,
                    uint32_t worker, struct pb_err *err)
{
    struct pb_reducing *r = object;
    (void)err;
    for (size_t i = 0; i < r->n; i++) {
        const struct pb_chain_reduction *reduction = &r->reduction[i];
        const float *planes[PB_REDUCE_INPUTS_MAX];
        for (uint32_t k = 0; k < reduction->reduce.n_inputs; k++)
            planes[k] = pixels->data + reduction->output[k] * pixels->plane_px;
        if (!r->done[i])
            pb_reduce_add(&reduction->reduce, state_of(r, worker + 1, i), planes, tile->core.w,
                          tile->core.h);
    }
    return 0;
}

struct pb_sink pb_reducing_sink(struct pb_reducing *reducing)
{
    return (struct pb_sink){add_tile, reducing};
}

/* Ends the round of one reduction; whether it was the last. */
static bool end_one(struct pb_reducing *r, size_t i, double *out_results)
{
    const struct pb_reduce *reduce = &r->reduction[i].reduce;
    void *into = state_of(r, 0, i);
    for (uint32_t set = 1; set <= r->workers; set++)
        pb_reduce_merge(reduce, into, state_of(r, set, i));
    if (pb_reduce_end(reduce, into, out_results))
        return true;
    for (uint32_t set = 1; set <= r->workers; set++)
        pb_reduce_again(reduce, state_of(r, set, i), into);
    return false;
}

/* Results go to the chain as they come; the numbers of the loops that go on after all of them. */
bool pb_reducing_end(struct pb_reducing *r, struct pb_chain *whole)
{
    bool all = true;
    for (size_t i = 0; i < r->n; i++) {
        double *results = r->results + i * PB_REDUCE_RESULTS_MAX;
        bool ended = !r->done[i] && end_one(r, i, results);
        if (ended)
            pb_chain_set_results(whole, &r->reduction[i], results);
        r->done[i] = r->done[i] || ended;
        all = all && r->done[i];
    }
    for (size_t i = 0; i < r->n; i++)
        if (!r->done[i])
            pb_chain_loop_again(r->pass, &r->reduction[i], r->results + i * PB_REDUCE_RESULTS_MAX);
    return all;
}

void pb_reducing_destroy(struct pb_reducing *r)
{
    if (r == NULL)
        return;
    free(r->done);
    free(r->offset);
    free(r->results);
    free(r->sets);
    free(r);
}
