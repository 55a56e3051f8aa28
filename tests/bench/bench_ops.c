/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Speed of every operator and of typical expressions on one CPU core: a warm tile of 512 x 512
 * UInt16 pixels with scale and nodata, over and over. Mpx/s counts output pixels.
 * tests/gpu/check_ops_speed measures the GPU. `bench_ops [--json] [OPERATOR ...]`: one object a
 * line; all operators unless named. */
#include "tests/op_cases.h"
#include "tests/op_tile.h"

#define CORE 512
#define SIDE (CORE + 64) /* side of the scene: room for the halo of any operator */

/* CPU seconds of the fastest of several runs; negative: one failed. */
static double time_tile(const struct pb_chain *chain, const struct op_tile *tile)
{
    double best = 1e9, spent = 0.0;

    for (int i = 0; i < 1000 && (i < 3 || spent < 0.3); i++) {
        const double start = op_cpu_s();

        if (op_tile_run(chain, tile) < 0)
            return -1.0;
        const double t = op_cpu_s() - start;
        best = t < best ? t : best;
        spent += t;
    }
    return best;
}

static bool json;
static char *const *wanted; /* names of operators; none = all */

static bool bench(const struct pb_op *op, const struct pb_op_case *c)
{
    if (!op_is_among(wanted, op->name))
        return true;
    struct pb_chain *chain = NULL;
    struct op_tile tile;
    struct pb_diag diag;
    const int rc = op_case_chain(op, c, PB_U16, true, 0.0, 0.0001, 0.0, SIDE, &diag, &chain);

    if (rc < 0) {
        (void)fprintf(stderr, "%s %s: %s\n", op->name, c->label, diag.msg);
        return false;
    }
    const double t = op_tile_make(chain, SIDE, CORE, &tile) ? time_tile(chain, &tile) : -1.0;
    const double mpx_per_s = (double)tile.made_px / t * 1e-6;
    if (t > 0.0 && json)
        printf("{\"op\":\"%s\",\"case\":\"%s\",\"device\":\"cpu\",\"instructions\":%zu,"
               "\"mpx_per_s\":%.2f}\n",
               op->name, c->label, pb_chain_instruction_count(chain), mpx_per_s);
    else if (t > 0.0)
        printf("%-9s %-12s %3zu instructions %8.0f Mpx/s\n", op->name, c->label,
               pb_chain_instruction_count(chain), mpx_per_s);
    op_tile_free(&tile);
    pb_chain_destroy(chain);
    return t > 0.0;
}

int main(int argc, char **argv)
{
    json = argc > 1 && strcmp(argv[1], "--json") == 0;
    wanted = argv + (argc > 0 ? 1 : 0) + (json ? 1 : 0);
    return op_cases_walk(bench) ? EXIT_SUCCESS : EXIT_FAILURE;
}
