/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Costs of a quicklook of three bands on one core: pixels a second while the tiles pass (all three
 * bands together count as one pixel) and the time of its end. bench_quicklook [SIDE_PX]. */
#include "pipeline/product/product.h"
#include "pipeline/product/quicklook/quicklook.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TILE_PX = 512, BANDS = 3 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    int32_t side = argc > 1 ? atoi(argv[1]) : 10980;
    char directory[] = "/tmp/pb_bench_XXXXXX", path[400];
    const char *names[] = {"R", "G", "B"};
    struct pb_grid grid;
    struct pb_raster_info info = {.width = side, .height = side, .n_bands = BANDS};
    struct pb_quicklook_config config = {
        .product.kind = &pb_kind_quicklook, .size_px = 1024, .paint.stretch = {2, 98}};
    struct pb_product_result result;
    struct pb_err err = {0};
    void *product = NULL;
    float *data = malloc(sizeof *data * BANDS * TILE_PX * TILE_PX);
    if (data == NULL || mkdtemp(directory) == NULL || pb_grid_init(&grid, side, side, TILE_PX) != 0)
        return 1;
    for (int i = 0; i < BANDS * TILE_PX * TILE_PX; i++)
        data[i] = 0.2F + 0.1F * sinf((float)i * 1e-2F) + 1e-7F * (float)(i * 7919LL % 100003);
    struct pb_product_env env = {.grid = &grid,
                                 .info = &info,
                                 .order = PB_ORDER_ROWS,
                                 .tiles_in_flight = 2 * (uint32_t)grid.cols,
                                 .workers = 1,
                                 .scene = "bench",
                                 .input = "bench.tif",
                                 .directory = directory,
                                 .band_names = names,
                                 .n_bands = BANDS};
    uint64_t planned = pb_product_quicklook.bytes(&env, &config.product);
    if (pb_product_quicklook.create(&env, &config.product, &err, &product) != 0)
        return 1;
    double start = now();
    for (uint32_t i = 0; i < pb_grid_count(&grid); i++) {
        const struct pb_tile tile = {.number = i, .core = pb_grid_core(&grid, i)};
        const struct pb_tile_planes pixels = {data, (size_t)TILE_PX * TILE_PX, NULL};
        if (pb_product_quicklook.tile(product, &tile, &pixels, 0, &err) != 0)
            return 1;
    }
    double tiles = now() - start;
    start = now();
    int rc = pb_product_quicklook.finish(product, NULL, 0, &err, &result);
    double finish = now() - start;
    pb_product_quicklook.destroy(product);
    if (rc == 0) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, result.file);
        unlink(path);
        printf("{\"bench\":\"quicklook\",\"side_px\":%d,\"mpx_per_s\":%.0f,\"finish_ms\":%.0f,"
               "\"planned_mib\":%.1f}\n",
               side, (double)side * side / tiles * 1e-6, finish * 1e3, (double)planned / (1 << 20));
    }
    rmdir(directory);
    free(data);
    return rc == 0 ? 0 : 1;
}
