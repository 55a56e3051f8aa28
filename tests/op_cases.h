/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_CASES_H
#define PB_OP_CASES_H
/* The cases of every operator of the registry as chains, for parity tests and benchmarks. */
#include "kernels/chain/chain.h"
#include "kernels/ops/pixel/calibrate.h"
#include "tests/op_ground.h"
#include "tests/op_params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_case_bands[] = {"B", "G", "R", "N", "S1", "S2"};
#define OP_CASE_BANDS (sizeof op_case_bands / sizeof op_case_bands[0])

/* Parameters of a case, and the defaults of those it does not give. The items are the case's own.
 * false: the operator lacks one of the parameters. */
static inline bool op_case_params(const struct pb_op_case *c, const struct pb_op *op,
                                  struct op_params *out_params)
{
    op_defaults(op, out_params);
    for (size_t a = 0; a < sizeof c->args / sizeof c->args[0] && c->args[a].param; a++) {
        size_t n = 0;

        while (n < PB_OP_CASE_ITEMS && c->args[a].items[n].text)
            n++;
        if (!op_give(op, out_params, c->args[a].param, c->args[a].items, n))
            return false;
    }
    return true;
}

/* Calls check(op, case) for every case of the registry; returns true if all calls did. An operator
 * without a case is a failure. */
static inline bool op_cases_walk(bool (*check)(const struct pb_op *op, const struct pb_op_case *c))
{
    bool good = true;

    for (size_t i = 0; i < pb_op_count(); i++) {
        const struct pb_op *const op = pb_op_at(i);

        if (op->n_cases == 0)
            (void)fprintf(stderr, "operator '%s' has no case\n", op->name);
        good = good && op->n_cases > 0;
        for (size_t k = 0; k < op->n_cases; k++)
            good = check(op, &op->cases[k]) && good;
    }
    return good;
}

/* Returns true if the list, which ends with NULL, has the name; an empty list has all. */
static inline bool op_is_among(char *const *names, const char *name)
{
    bool found = *names == NULL;

    for (; *names != NULL; names++)
        found = found || strcmp(*names, name) == 0;
    return found;
}

/* Counts of a few hundred values of all sizes, for curves of the reduction. */
static inline void op_case_set_counts(struct pb_chain *chain,
                                      const struct pb_chain_reduction *reduction)
{
    float values[400];
    double results[PB_REDUCE_RESULTS_MAX];
    const float *const planes[] = {values};
    void *state;

    if (reduction->reduce.kind != PB_REDUCE_THRESHOLD)
        return;
    for (int i = 0; i < 400; i++)
        values[i] = (float)(i * i) * 0.37f - 0.09f;
    state = malloc(pb_chain_state_bytes(reduction));
    if (state == NULL)
        abort();
    pb_reduce_begin(&reduction->reduce, &reduction->samples, NULL, state);
    do
        pb_reduce_add(&reduction->reduce, state, planes, 400, 1);
    while (pb_reduce_end(&reduction->reduce, state, results) > 0);
    if (pb_chain_set_counts(chain, reduction, state) < 0)
        abort();
    free(state);
}

/* Results of the reductions of a chain that is run without its earlier passes: as good as any. */
static inline void op_case_set_results(struct pb_chain *chain)
{
    for (size_t i = 0; i < pb_chain_earlier_count(chain); i++) {
        const struct pb_chain_reduction *reduction;
        const size_t n = pb_chain_reductions(pb_chain_earlier(chain, i), &reduction);

        for (size_t k = 0; k < n; k++) {
            double results[PB_REDUCE_RESULTS_MAX];

            for (uint32_t r = 0; r < PB_REDUCE_RESULTS_MAX; r++)
                results[r] = 0.25 + 40.0 * r;
            pb_chain_set_results(chain, &reduction[k], results);
            op_case_set_counts(chain, &reduction[k]);
        }
    }
}

/* Numbers for steps that calibrate, like those of a thermal band of Landsat. For radar and for
 * columns the first two bands are the tables. */
static inline bool op_case_rule(const void *of, const void *params, size_t entry,
                                struct pb_calibration_rule *out)
{
    const struct pb_calibrate *const calibrate = params;

    (void)of;
    (void)entry;
    *out = (struct pb_calibration_rule){.gain = 3.342e-4,
                                        .offset = 0.1,
                                        .has_planck = calibrate->to == 3,
                                        .has_tables = pb_calibrate_is_radar(calibrate) ||
                                                      calibrate->columns != NULL,
                                        .area = 0,
                                        .noise = 1,
                                        .k1 = 774.8853,
                                        .k2 = 1321.0789};
    return true;
}

/* The case as a chain over bands of one type, of a scene of side x side pixels, with results
 * for its reductions. Returns what pb_chain_create does. */
static inline int op_case_chain(const struct pb_op *op, const struct pb_op_case *c,
                                enum pb_type type, bool has_nodata, double nodata, double scale,
                                double offset, int32_t side, struct pb_diag *diag,
                                struct pb_chain **out_chain)
{
    struct pb_chain_input inputs[OP_CASE_BANDS];
    struct op_params params;
    struct pb_chain_step step = {op, &params};
    const struct pb_scene_facts scene = {.has_transform = true,
                                         .transform = {0, 1, 0, 0, 0, -1},
                                         .unit = {.metres = {637, 633},
                                                  .axis = 6378137,
                                                  .square = 0.0067,
                                                  .radians = 1e-4,
                                                  .law = PB_GROUND_LATITUDE},
                                         .calibration = op_case_rule,
                                         .ways = &op_ways};
    const struct pb_chain_source source = {
        .w = side, .h = side, .placed = true, .map = pb_map_identity()};
    size_t at;

    memset(diag, 0, sizeof *diag);
    for (size_t i = 0; i < OP_CASE_BANDS; i++)
        inputs[i] = (struct pb_chain_input){.name = op_case_bands[i],
                                            .type = type,
                                            .has_nodata = has_nodata,
                                            .nodata = nodata,
                                            .scale = scale,
                                            .offset = offset};
    if (!op_case_params(c, op, &params))
        return pb_diag_set(diag, PB_DIAG_VALUE, NULL, 0, "operator or parameter is not there");
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = OP_CASE_BANDS,
                                       .steps = &step,
                                       .n_steps = 1,
                                       .outputs = &c->output,
                                       .n_outputs = 1,
                                       .sources = &source,
                                       .n_sources = 1,
                                       .scene = &scene};
    const int rc = pb_chain_create(&spec, diag, &at, out_chain);
    if (rc == 0)
        op_case_set_results(*out_chain);
    return rc;
}
#endif
