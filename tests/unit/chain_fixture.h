/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_FIXTURE_H
#define PB_CHAIN_FIXTURE_H
/* Shared parts of the tests of chains: steps from short descriptions, and runs over small float32
 * scenes with guard bytes around everything. Failures are Check assertions. */
#include "kernels/chain/chain.h"
#include "tests/op_params.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 64

static inline uint32_t fx_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static inline float fx_uniform(uint32_t *state, float low, float high)
{
    return low + (high - low) * (float)fx_random(state) * 0x1p-24f;
}

static inline bool fx_same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)) || (a == 0.0f && b == 0.0f);
}

/* A step with its parameters. */
struct fx_step {
    struct op_params params;
    struct pb_chain_step step;
};

static inline void fx_arg(struct fx_step *s, const char *param, const struct pb_item *items,
                          size_t n)
{
    ck_assert_msg(op_give(s->step.op, &s->params, param, items, n), "operator %s has no key %s",
                  s->step.op->name, param);
}

static inline void fx_op(struct fx_step *s, const char *op)
{
    s->step = (struct pb_chain_step){pb_op_find(op), &s->params};
    ck_assert_ptr_nonnull(s->step.op);
    op_defaults(s->step.op, &s->params);
}

/* Chain over float32 bands a, b, c, ... (one letter each) without nodata and scale. */
static inline int fx_create(const char *letters, const struct fx_step *steps, size_t n_steps,
                            const char *const *outputs, size_t n_outputs, struct pb_diag *diag,
                            size_t *out_step, struct pb_chain **out_chain)
{
    struct pb_chain_input inputs[64];
    struct pb_chain_step plain[64];
    char names[64][2] = {0};
    const size_t n = strlen(letters);

    for (size_t i = 0; i < n; i++) {
        names[i][0] = letters[i];
        inputs[i] = (struct pb_chain_input){.name = names[i], .type = PB_F32, .scale = 1.0};
    }
    for (size_t i = 0; i < n_steps; i++)
        plain[i] = steps[i].step;
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = n,
                                       .steps = plain,
                                       .n_steps = n_steps,
                                       .outputs = outputs,
                                       .n_outputs = n_outputs};
    return pb_chain_create(&spec, diag, out_step, out_chain);
}

/* Chain of one `math` step {X: text} whose output is X. */
static inline int fx_expression(const char *letters, const char *text, struct pb_diag *diag,
                                struct pb_chain **out_chain)
{
    const char *const output = "X";
    const struct pb_item item = {.key = "X", .text = text};
    struct fx_step step;
    size_t at;

    fx_op(&step, "math");
    fx_arg(&step, "bands", &item, 1);
    return fx_create(letters, &step, 1, &output, 1, diag, &at, out_chain);
}

/* Runs a tile with the scratch that the chain needs; checks that nothing was written past it. */
static inline int fx_run(const struct pb_chain *chain, const struct pb_tile_in *in,
                         const struct pb_tile_out *out)
{
    const size_t bytes = pb_chain_scratch_bytes(chain, in->core.w, in->core.h);
    unsigned char *const scratch = aligned_alloc(64, (bytes + 63) / 64 * 64 + GUARD);

    ck_assert_ptr_nonnull(scratch);
    memset(scratch, 0xa5, (bytes + 63) / 64 * 64 + GUARD);
    const int rc = pb_chain_run_cpu(chain, in, out, scratch);
    for (size_t i = bytes; i < (bytes + 63) / 64 * 64 + GUARD; i++)
        ck_assert_int_eq(scratch[i], 0xa5);
    free(scratch);
    return rc;
}

/* One row of n pixels; band i of the chain's letters at planes[i]. */
static inline void fx_run_row(const struct pb_chain *chain, const float *const *planes, int32_t n,
                              float *out)
{
    const uint32_t *used;
    const size_t n_used = pb_chain_used(chain, &used);
    float *const data = malloc(n_used * (size_t)n * sizeof *data);

    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < n_used; i++)
        memcpy(data + i * (size_t)n, planes[used[i]], (size_t)n * sizeof *data);
    const struct pb_rect row = {0, 0, n, 1};
    const struct pb_tile_in in = {.window[0].data = data,
                                  .window[0].row_bytes = (size_t)n * sizeof *data,
                                  .window[0].plane_bytes = (size_t)n * sizeof *data,
                                  .window[0].rect = row,
                                  .core = row,
                                  .image_w = n,
                                  .image_h = 1};
    const struct pb_tile_out to = {out, (size_t)n};
    ck_assert_int_eq(fx_run(chain, &in, &to), 0);
    free(data);
}

static inline int fx_main(Suite *suite)
{
    SRunner *const runner = srunner_create(suite);

    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
#endif
