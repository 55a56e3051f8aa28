/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any request to the process that owns a device. The first byte chooses a pipeline and a pass; the
 * next ones change a request that is possible, and its tail: 4 bytes where, 1 byte how many, then
 * these bytes. Tiles of the plan are computed from slots that have no byte more than the plan. */
#include "config/config.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/choose.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "fuzz_check.h"
#include "pipeline/plan/served.h"
#include "pipeline/plan/ways.h"
#include "pipeline/product/product_kinds.h"
#include "tests/op_ground.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { SIDE = 96, HEIGHTS = 48, TILES = 3, ZEROS = 65536, PIECE_LEAST = 5 };

#define INPUT "    input: {match: ['*.tif'], bands: {A: 1, B: 2}"
#define WARP  "crs: 'EPSG:3857'"
#define OUT   "    products: [cog: {type: float32, blocksize: 64}]\n"

static const char yaml[] =
    "compute: {device: cpu, tile: 64, memory: 64MiB}\n"
    "limits: {max_side_px: 512, max_pixels: 262144}\n"
    "pipelines:\n"
    "  plain:\n" INPUT "}\n    steps:\n      - stretch: {bands: [A, B]}\n" OUT "  warped:\n" INPUT
    "}\n    steps:\n      - warp: {" WARP ", method: cubic}\n"
    "      - stretch: {bands: [A, B]}\n" OUT "  areas:\n" INPUT
    "}\n    steps:\n      - warp: {" WARP ", method: average}\n" OUT "  relief:\n" INPUT
    ", sources: {D: {file: 'd.tif', bands: {D: 1}}}}\n    steps:\n"
    "      - warp: {" WARP ", from: rpc, dem: D, method: mode}\n" OUT "  matched:\n" INPUT
    "}\n    steps:\n"
    "      - histogram_match: {bands: [A], reference: [B]}\n"
    "      - sieve: {bands: [B], size: 5}\n" OUT;

static struct pb_config *config;

static void begin(void)
{
    struct pb_err_list *errors = calloc(1, sizeof *errors);
    int rc = errors == NULL
                 ? -1
                 : pb_config_parse(yaml, strlen(yaml), "fuzz", &pb_products, errors, &config);
    require(rc == 0, rc == 0 || errors == NULL ? "no memory" : errors->err[0].msg);
    free(errors);
}

static struct pb_served_request request_of(const struct pb_pipeline_config *pipeline, uint32_t pass)
{
    struct pb_served_request r = {.pass = pass,
                                  .side_px = 64,
                                  .in_slots = 2,
                                  .out_slots = 2,
                                  .workers = 1,
                                  .order = PB_ORDER_ROWS,
                                  .window_units = 4,
                                  .has_transform = true,
                                  .transform = {0, 1, 0, 0, 0, -1},
                                  .n_sources = 1 + (uint32_t)pipeline->input.n_sources};
    r.source[0] = (struct pb_served_source){
        .w = SIDE, .h = SIDE, .n_bands = 2, .placed = true, .map = {1, 1, 0, 0}};
    r.source[1] = (struct pb_served_source){
        .w = HEIGHTS, .h = HEIGHTS, .n_bands = 1, .type = PB_U16, .map = {1, 1, 0, 0}};
    return r;
}

/* The way that a step of these pipelines needs. */
static void add_way(bool on_relief, struct pb_served_tail *tail)
{
    struct pb_plan plan = {.work = {.n_ways = 0}};
    struct pb_plan_ways_made made = {.maker = op_way_maker, .plan = &plan};
    const struct pb_way_finder finder = pb_plan_ways_make(&made);
    const struct pb_ground_ask ask = {.crs = "EPSG:3857",
                                      .source_w = SIDE,
                                      .source_h = SIDE,
                                      .part = {0, 0, SIDE, SIDE},
                                      .has_areas = true};
    const struct pb_way_ask full = {
        .ask = &ask, .on_relief = on_relief, .input = 2, .w = HEIGHTS, .h = HEIGHTS};
    struct pb_way way;
    struct pb_err err = {0};
    char why[300] = "";
    require(finder.find(finder.of, &full, why, sizeof why, &way) == 0, why);
    require(pb_plan_ways_are_sound(&plan), "a way that was made is not sound");
    require(pb_plan_ways_send(&plan, tail, &err) == 0, err.msg);
    pb_way_release(&way);
    pb_plan_ways_free(&plan);
}

static void change(const uint8_t *data, size_t bytes, struct pb_served_request *request,
                   struct pb_served_tail *tail)
{
    const size_t all = sizeof *request + tail->bytes;
    while (bytes >= PIECE_LEAST) {
        uint32_t where;
        memcpy(&where, data, sizeof where);
        size_t n = data[4] % 9, at = where % all;
        data += PIECE_LEAST;
        bytes -= PIECE_LEAST;
        n = n < bytes ? n : bytes;
        for (size_t i = 0; i < n && at + i < all; i++)
            if (at + i < sizeof *request)
                ((unsigned char *)request)[at + i] = data[i];
            else
                tail->data[at + i - sizeof *request] = data[i];
        data += n;
        bytes -= n;
    }
}

static void *some(size_t bytes)
{
    unsigned char *memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
    require(memory != NULL, "no memory");
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (unsigned char)(i * 37);
    return memory;
}

static void compute(const struct pb_plan *pass)
{
    const uint32_t all = pb_grid_count(&pass->layout.grid);
    for (uint32_t number = 0; number < all && number < TILES; number++) {
        const struct pb_tile tile = pb_plan_tile(pass, number, 0);
        const size_t in_bytes = pb_slot_tile_bytes(&pass->layout.format, &tile),
                     out_bytes = pb_plan_out_bytes(pass, &tile);
        require(in_bytes <= pass->layout.in_slot_bytes, "a tile larger than its slot");
        require(out_bytes <= pass->layout.out_slot_bytes, "results larger than their slot");
        void *in = some(in_bytes), *out = some(out_bytes),
             *scratch = some(pass->layout.scratch_bytes);
        struct pb_tile_in source;
        const struct pb_tile_out target = {.data = out, .plane_px = pb_tile_out_px(&tile)};
        pb_slot_tile(&pass->layout.format, &tile, in, &source);
        require(pb_chain_run_cpu(pass->work.chain, &source, &target, scratch) == 0,
                "a tile that does not fit its plan");
        free(in);
        free(out);
        free(scratch);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const uint8_t zeros[ZEROS];
    struct pb_served_tail tail = {.data = NULL};
    struct pb_plan *plan = NULL, *pass = NULL;
    struct pb_err err = {0};
    if (config == NULL)
        begin();
    if (bytes == 0)
        return 0;
    const struct pb_pipeline_config *pipeline = &config->pipelines[data[0] % config->n_pipelines];
    const struct pb_plan_request base = {
        .config = config, .pipeline = pipeline, .device_index = -1};
    struct pb_served_request request = request_of(pipeline, data[0] / 16 % 4);
    if (strcmp(pipeline->name, "plain") != 0 && strcmp(pipeline->name, "matched") != 0)
        add_way(strcmp(pipeline->name, "relief") == 0, &tail);
    require(pb_served_tail_add(&tail, zeros, sizeof zeros, &err) == 0, err.msg); /* results */
    change(data + 1, bytes - 1, &request, &tail);
    if (pb_plan_serve(&base, &request, &tail, &err, &plan, &pass) == 0) {
        compute(pass);
        pb_plan_destroy(plan);
    } else {
        check_err(&err);
    }
    pb_served_tail_free(&tail);
    return 0;
}
