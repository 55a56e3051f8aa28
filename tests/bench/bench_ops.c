/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Speed of every operator and of typical expressions on one CPU core: a warm tile of 512 x 512
 * UInt16 pixels with scale and nodata, over and over. Mpx/s counts output pixels. The GPU's figures
 * come from tests/gpu/check_ops. `bench_ops [--json] [OPERATOR ...]`:
 * one object a line; all operators unless named. */
#include "tests/op_cases.h"

#include <stdlib.h>
#include <time.h>

#define CORE 512
#define HALO 32
#define SIDE (CORE + 2 * HALO)

static double now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of the fastest of several tiles. */
static double time_tile(const struct pb_chain *chain, const struct pb_tile_in *in,
                        const struct pb_tile_out *out, void *scratch)
{
    double best = 1e9, spent = 0.0;

    for (int i = 0; i < 1000 && (i < 3 || spent < 0.3); i++) {
        const double start = now_s();

        if (pb_chain_run_cpu(chain, in, out, scratch) < 0)
            return -1.0;
        const double t = now_s() - start;
        best = t < best ? t : best;
        spent += t;
    }
    return best;
}

static uint16_t *px;
static float *out_px;
static bool json;

static char **wanted; /* names, NULL behind the last; none = all */

static bool is_wanted(const struct pb_op *op)
{
    bool found = !*wanted;

    for (char **name = wanted; *name; name++)
        found = found || strcmp(*name, op->name) == 0;
    return found;
}

static bool bench(const struct pb_op *op, const struct pb_op_case *c)
{
    if (!is_wanted(op))
        return true;
    struct pb_tile_in in = {.window[0].data = px,
                            .window[0].row_bytes = SIDE * sizeof *px,
                            .window[0].plane_bytes = (size_t)SIDE * SIDE * sizeof *px,
                            .window[0].rect = {0, 0, SIDE, SIDE},
                            .core = {HALO, HALO, CORE, CORE},
                            .image_w = SIDE,
                            .image_h = SIDE};
    const struct pb_tile_out out = {out_px, (size_t)CORE * CORE};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    const int rc = op_case_chain(op, c, PB_U16, true, 0.0, 0.0001, 0.0, SIDE, &diag, &chain);

    if (rc < 0) {
        (void)fprintf(stderr, "%s %s: %s\n", op->name, c->label, diag.msg);
        return false;
    }
    if (!pb_chain_keeps_grid(chain)) {
        const struct pb_geometry grid = pb_chain_geometry(chain);

        in.core =
            (struct pb_rect){0, 0, grid.w < CORE ? grid.w : CORE, grid.h < CORE ? grid.h : CORE};
    }
    const double made_px = (double)in.core.w * in.core.h;
    const size_t bytes = pb_chain_scratch_bytes(chain, CORE, CORE);
    void *const scratch = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    const double t = scratch ? time_tile(chain, &in, &out, scratch) : -1.0;
    if (t > 0.0 && json)
        printf("{\"op\":\"%s\",\"case\":\"%s\",\"device\":\"cpu\",\"instructions\":%zu,"
               "\"mpx_per_s\":%.2f}\n",
               op->name, c->label, pb_chain_instruction_count(chain), made_px / t * 1e-6);
    else if (t > 0.0)
        printf("%-9s %-12s %3zu instructions %8.0f Mpx/s\n", op->name, c->label,
               pb_chain_instruction_count(chain), made_px / t * 1e-6);
    free(scratch);
    pb_chain_destroy(chain);
    return t > 0.0;
}

int main(int argc, char **argv)
{
    const size_t n = OP_CASE_BANDS * SIDE * SIDE;
    uint32_t random = 1;

    px = malloc(n * sizeof *px);
    out_px = malloc((size_t)CORE * CORE * sizeof *out_px);
    json = argc > 1 && strcmp(argv[1], "--json") == 0;
    wanted = argv + (argc > 0 ? 1 : 0) + (json ? 1 : 0);
    for (size_t i = 0; px && i < n; i++) {
        random = random * 1664525u + 1013904223u;
        px[i] = (uint16_t)(random >> 18);
    }
    const bool good = px && out_px && op_cases_walk(bench);
    free(px);
    free(out_px);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
