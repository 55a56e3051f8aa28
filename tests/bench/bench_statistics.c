/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* How many pixels a second one core takes through the statistics product, for kinds of data that
 * treat its histogram differently: bench_statistics [SECONDS_EACH]. One line of JSON each. */
#include "pipeline/product/product.h"
#include "pipeline/product/statistics/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIDE = 512 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t state = 88172645463325252u;
static float uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (float)(state >> 40) * 0x1p-24F;
}

static float reflectance(int i)
{
    return 0.2F + 0.1F * sinf((float)i * 1e-3F) + 0.05F * uniform();
}
static float constant(int i)
{
    (void)i;
    return 0.25F;
}
static float index_with_gaps(int i)
{
    return uniform() < 0.1F ? NAN : sinf((float)i * 1e-4F) * 0.9F + 0.1F * uniform();
}
static float counts(int i)
{
    (void)i;
    return floorf(uniform() * 10000);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        float (*value)(int);
    } kinds[] = {{"reflectance", reflectance},
                 {"constant", constant},
                 {"index_with_gaps", index_with_gaps},
                 {"counts", counts}};
    double seconds = argc > 1 ? atof(argv[1]) : 1.0;
    float *data = malloc(sizeof *data * SIDE * SIDE);
    if (data == NULL)
        return 1;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct pb_grid grid;
        struct pb_raster_info info = {.width = SIDE, .height = SIDE, .n_bands = 1};
        const char *names[] = {"B1"};
        struct pb_product_env env = {.grid = &grid,
                                     .info = &info,
                                     .workers = 1,
                                     .scene = "bench",
                                     .input = "bench.tif",
                                     .band_names = names,
                                     .n_bands = 1};
        pb_product_place(&env, NULL);
        struct pb_statistics_config config = {.product.kind = &pb_kind_statistics};
        struct pb_err err = {0};
        void *product = NULL;
        for (int i = 0; i < SIDE * SIDE; i++)
            data[i] = kinds[k].value(i);
        if (pb_grid_init(&grid, SIDE, SIDE, SIDE) != 0 ||
            pb_product_statistics.create(&env, &config.product, &err, &product) != 0)
            return 1;
        const struct pb_tile tile = {.core = {0, 0, SIDE, SIDE}};
        const struct pb_tile_planes pixels = {data, (size_t)SIDE * SIDE, NULL};
        double start = now();
        uint64_t px = 0;
        while (now() - start < seconds) {
            (void)pb_product_statistics.tile(product, &tile, &pixels, 0, &err);
            px += (uint64_t)SIDE * SIDE;
        }
        double mpx = (double)px / (now() - start) * 1e-6;
        printf("{\"bench\":\"statistics\",\"data\":\"%s\",\"mpx_per_s\":%.0f}\n", kinds[k].name,
               mpx);
        pb_product_statistics.destroy(product);
    }
    free(data);
    return 0;
}
