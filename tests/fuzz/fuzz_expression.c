/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Fuzzes expressions from text to pixels: an expression that compiles must run and give numbers
 * that are finite or NaN, and must pass the grammar check that knows no bands; every mistake must
 * have words and a column inside the text. */
#include "fuzz_check.h"
#include "kernels/graph/builder.h"
#include "kernels/chain/chain.h"
#include "tests/op_params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 5000
#define PX         3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void run(const struct pb_chain *chain)
{
    static float px[4 * PX] = {0.0f, 1.5f, -2.0f, NAN,  1e30f, -0.0f,
                               3.0f, 0.5f, 7.0f,  1.0f, 0.0f,  -1e-30f};
    const struct pb_rect all = {0, 0, PX, 1};
    const struct pb_tile_in in = {
        {{px, PX * sizeof *px, PX * sizeof *px, NULL, 0, all}}, all, PX, 1};
    float out[PX];
    void *const scratch = aligned_alloc(64, (pb_chain_scratch_bytes(chain, PX, 1) + 64) / 64 * 64);

    if (scratch) {
        require(pb_chain_run_cpu(chain, &in, &(struct pb_tile_out){out, PX}, scratch) == 0, "run");
        for (int i = 0; i < PX; i++)
            require(!isinf(out[i]), "an infinite pixel");
    }
    free(scratch);
}

static void check_mistake(void *to, const struct pb_diag *diag)
{
    const size_t length = strlen(diag->item ? diag->item->text : "");

    require(diag->msg[0] != '\0' && diag->col >= 1 && (size_t)diag->col <= length + 1,
            "a mistake without words or place");
    ++*(size_t *)to;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char text[TEXT_BYTES];
    const struct pb_chain_input inputs[] = {{.name = "a",
                                             .type = PB_F32,
                                             .has_nodata = false,
                                             .nodata = 0.0,
                                             .scale = 1.0,
                                             .offset = 0.0},
                                            {.name = "b",
                                             .type = PB_F32,
                                             .has_nodata = false,
                                             .nodata = 0.0,
                                             .scale = 1.0,
                                             .offset = 0.0},
                                            {.name = "N",
                                             .type = PB_F32,
                                             .has_nodata = false,
                                             .nodata = 0.0,
                                             .scale = 1.0,
                                             .offset = 0.0},
                                            {.name = "min",
                                             .type = PB_F32,
                                             .has_nodata = false,
                                             .nodata = 0.0,
                                             .scale = 1.0,
                                             .offset = 0.0}};
    const struct pb_item item = {.key = "X", .text = text};
    struct op_params params;
    const struct pb_chain_step step = {pb_op_find("math"), &params};
    const char *const output = "X";
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 4,
                                       .steps = &step,
                                       .n_steps = 1,
                                       .outputs = &output,
                                       .n_outputs = 1};
    struct pb_chain *chain = NULL;
    struct pb_diag grammar;
    const char *names[8];
    size_t lengths[8], n_mistakes = 0;

    if (bytes >= TEXT_BYTES)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    op_defaults(step.op, &params);
    require(op_give(step.op, &params, "bands", &item, 1), "math has no bands");
    if (pb_chain_build(&spec, check_mistake, &n_mistakes, &chain) == 0) {
        require(pb_expression_names(text, names, lengths, 8, &grammar) >= 0, "grammar differs");
        run(chain);
        pb_chain_destroy(chain);
    } else {
        require(n_mistakes >= 1 && n_mistakes <= 64, "no mistake, or too many");
    }
    return 0;
}
