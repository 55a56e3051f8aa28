/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Chains on a GPU against the same chains on the CPU, in both ways that a GPU runs them: a kernel a
 * stage over the whole tile, and the whole chain part by part inside a block. Every operator of the
 * registry, chains of focal operations, random expressions, all sample types, masks, nodata, odd
 * sizes, padded rows, programs of up to 255 registers, guard bytes around the output.
 * check_ops_speed has their speed.
 *
 *   check_ops [--quick]     0 equal; 1 not; 77 no GPU or built without CUDA
 *
 * --quick checks less: for running under compute-sanitizer. */
#ifndef PB_HAVE_CUDA
#include <stdio.h>

int main(void)
{
    (void)fprintf(stderr, "skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/gpu/check_tile.h"
#include "tests/op_cases.h"
#include "tests/focal_chain.h"

static bool quick;
static long grid_chains;
enum { SIDE = 64 }; /* side of the scenes of cases */

/* --- the registry ---------------------------------------------------------------------------- */

/* The scene of op_case_chain. */
static bool check_case_tile(const struct pb_chain *chain, enum pb_type type,
                            const struct pb_op_case *c)
{
    uint32_t source_of[OP_CASE_BANDS + PB_SOURCES_MAX] = {0};
    struct random_image image[PB_SOURCES_MAX];
    const struct pb_chain_image *whole;
    const size_t n_whole = pb_chain_images(chain, &whole);

    for (size_t i = 0; i < PB_SOURCES_MAX; i++)
        image[i] = (struct random_image){
            .seed = random_below(1u << 20), .type = i == 0 ? type : PB_F32, .w = SIDE, .h = SIDE};
    for (size_t i = 0; i < n_whole; i++)
        source_of[whole[i].input] = whole[i].source;
    return pb_chain_keeps_grid(chain)
               ? check_tile(chain, type, c->exact, c->label)
               : check_grid_tile(chain, image, 1 + n_whole, source_of, c->exact, c->label);
}

static bool check_case(const struct pb_op *op, const struct pb_op_case *c)
{
    bool good = true;

    for (int type = 0; type < PB_TYPE_COUNT && good; type++)
        for (int variant = quick ? 3 : 0; variant < 4 && good; variant++) {
            struct pb_chain *chain = NULL;
            struct pb_diag diag;
            const int rc = op_case_chain(op, c, (enum pb_type)type, variant & 1, TILE_NODATA,
                                         variant & 2 ? 0.0001 : 1.0, variant & 2 ? -0.1 : 0.0, SIDE,
                                         &diag, &chain);

            if (rc < 0)
                (void)fprintf(stderr, "%s %s: %s\n", op->name, c->label, diag.msg);
            good = rc == 0;
            for (int i = 0; i < (quick ? 1 : 4) && good; i++)
                good = check_case_tile(chain, (enum pb_type)type, c);
            pb_chain_destroy(chain);
        }
    return good;
}

/* --- random expressions and large programs --------------------------------------------------- */

static void random_expression(char *text, int depth)
{
    static const char *const two[] = {"+", "-", "*", "/", "<", "==", ">=", " and ", " or "};
    static const char *const calls[] = {"min(", "max(",   "pow(",   "abs(",  "sqrt(",    "log(",
                                        "exp(", "clamp(", "where(", "mod(",  "floor(",   "sin(",
                                        "cos(", "atan(",  "atan2(", "bits(", "isvalid(", "(not "};
    static const int args[] = {2, 2, 2, 1, 1, 1, 1, 3, 3, 2, 1, 1, 1, 1, 2, 3, 1, 1};
    const uint32_t n_two = sizeof two / sizeof two[0], n_calls = sizeof calls / sizeof calls[0];

    if (depth == 0 || random_below(7) == 0) {
        if (random_below(4))
            strcat(text, op_case_bands[random_below(OP_CASE_BANDS)]);
        else
            sprintf(text + strlen(text), "%u.%u", random_below(4), random_below(100));
    } else if (random_below(3)) {
        strcat(text, "(");
        random_expression(text, depth - 1);
        strcat(text, two[random_below(n_two)]);
        random_expression(text, depth - 1);
        strcat(text, ")");
    } else {
        const uint32_t f = random_below(n_calls);
        const bool bits = strcmp(calls[f], "bits(") == 0;

        strcat(text, calls[f]);
        strcat(text, bits ? "floor(" : "");
        for (int i = 0; i < (bits ? 1 : args[f]); i++) {
            strcat(text, i ? "," : "");
            random_expression(text, depth - 1);
        }
        if (bits)
            sprintf(text + strlen(text), "),%u,%u", random_below(16), 1 + random_below(16));
        strcat(text, ")");
    }
}

/* Only a transcendental function's result may differ, and a difference may grow afterwards; so
 * these must be equal to the bit, which kernels/vm/vm_pixel.h promises for them too. */
static bool check_expression(const char *text)
{
    const enum pb_type type = (enum pb_type)random_below(PB_TYPE_COUNT);
    const struct pb_op_case c = {
        "random expression", "X", true, {{"bands", {{.key = "X", .text = text}}}}};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    bool good = op_case_chain(pb_op_find("math"), &c, type, true, TILE_NODATA,
                              random_below(2) ? 0.001 : 1.0, 0.0, 64, &diag, &chain) == 0;

    if (!good)
        (void)fprintf(stderr, "%s: %s\n", text, diag.msg);
    for (int i = 0; i < 2 && good; i++)
        good = check_tile(chain, type, true, text);
    pb_chain_destroy(chain);
    return good;
}

/* Keeps n values alive at once: one band sums them up, another one subtracts them. They are too
 * large to be computed twice. */
static bool check_registers(int n)
{
    static char texts[256][64], names[256][8], sums[2][4096];
    struct pb_item items[259];

    for (int i = 0; i < n; i++) {
        sprintf(names[i], "v%d", i);
        sprintf(texts[i], "((N + %d) * (R - %d) + N * 0.5) / (R * R + N + 1)", i, i);
        items[i] = (struct pb_item){.key = names[i], .text = texts[i]};
    }
    for (int k = 0; k < 2; k++) {
        char *at = sums[k] + sprintf(sums[k], "v0");

        for (int i = 1; i < n; i++)
            at += sprintf(at, "%cv%d", "+-"[k], i);
        items[n + k] = (struct pb_item){.key = k ? "D" : "S", .text = sums[k]};
    }
    items[n + 2] = (struct pb_item){.key = "X", .text = "S / (1 + abs(D))"};
    struct op_params params;
    const struct pb_chain_step step = {pb_op_find("math"), &params};
    const struct pb_chain_input inputs[] = {{.name = "R",
                                             .type = PB_U16,
                                             .has_nodata = false,
                                             .nodata = 0.0,
                                             .scale = 1.0,
                                             .offset = 0.0},
                                            {.name = "N",
                                             .type = PB_U16,
                                             .has_nodata = false,
                                             .nodata = 0.0,
                                             .scale = 1.0,
                                             .offset = 0.0}};
    const char *const output = "X";
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 2,
                                       .steps = &step,
                                       .n_steps = 1,
                                       .outputs = &output,
                                       .n_outputs = 1};
    struct pb_chain *chain = NULL;
    struct pb_diag diag = {.kind = PB_DIAG_NONE};
    size_t failed;
    op_defaults(step.op, &params);
    bool good = op_give(step.op, &params, "bands", items, (size_t)n + 3) &&
                pb_chain_create(&spec, &diag, &failed, &chain) == 0;
    if (!good)
        (void)fprintf(stderr, "%d values: %s\n", n, diag.msg);
    for (int i = 0; i < 3 && good; i++)
        good = check_tile(chain, PB_U16, true, "many registers");
    pb_chain_destroy(chain);
    return good;
}

/* Several stages, every kind of focal operation, radius and edge rule. */
static bool check_focals(int i)
{
    const enum pb_type type = (enum pb_type)random_below(PB_F32);
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    bool good = focal_chain_make(&random_state, type, 1 + i % 7, &diag, &chain) == 0;

    if (!good)
        (void)fprintf(stderr, "chain of focals: %s\n", diag.msg);
    for (int k = 0; k < 2 && good; k++)
        good = check_tile(chain, type, true, "chain of focals");
    pb_chain_destroy(chain);
    return good;
}

/* Chains over several grids and two sources. Returns how it went; chains that cannot be built do
 * not count. */
static bool check_grids(int i)
{
    static const uint32_t source_of[] = {0, 0, 1, 1};
    static struct grid_chain grids;
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    char label[32];
    bool good = true;

    (void)snprintf(label, sizeof label, "chain %d of grids", i);
    if (grid_chain_make(&random_state, quick ? 60 : 300, &grids, &diag, &chain) < 0)
        return true;
    grid_chains += !pb_chain_keeps_grid(chain);
    for (int k = 0; k < 2 && good; k++)
        good = check_grid_tile(chain, grids.image, GRID_CHAIN_SOURCES, source_of, true, label);
    pb_chain_destroy(chain);
    return good;
}

/* --- the program -------------------------------------------------------------------------------
 */

static bool check_all(void)
{
    static char text[100000];
    bool good = op_cases_walk(check_case);

    for (int i = 0; i < (quick ? 20 : 300) && good; i++) {
        do {
            text[0] = '\0';
            random_expression(text, 1 + i % 5);
        } while (strlen(text) > 2000);
        good = check_expression(text);
    }
    for (int i = 0; i < (quick ? 14 : 210) && good; i++)
        good = check_focals(i);
    for (int i = 0; i < (quick ? 40 : 400) && good; i++)
        good = check_grids(i);
    for (int n = 4; n <= 244 && good; n += quick ? 80 : 20)
        good = check_registers(n);
    return good;
}

int main(int argc, char **argv)
{
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);

    if (error != cudaSuccess || devices == 0) {
        (void)fprintf(stderr, "skipped: no CUDA device (%s)\n", cudaGetErrorString(error));
        return 77;
    }
    quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    if (!check_all())
        return EXIT_FAILURE;
    printf("%ld tiles, %ld pixels, %ld chains of several grids: GPU and CPU agree, largest "
           "difference %ld ULP\n",
           tiles_checked, pixels_checked, grid_chains, worst_ulp);
    return EXIT_SUCCESS;
}
#endif
