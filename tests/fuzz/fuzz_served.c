/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any requests of a job to the process that owns a device. The first byte chooses a pipeline, a
 * pass, and whether blocks are sent as they are stored; the next ones change a request that is
 * possible, and its tail: 4 bytes where, 1 byte how many, then these bytes. A count of NEXT_LEAST
 * or more begins the next request, whose pass and flags are the first two of the 4 bytes. Tiles of
 * the plan are computed from slots that have no byte more than the plan. For stored blocks the map
 * and its loads are made, and small passes of several requests are run (served_job.h): they keep
 * pixels for the requests after them, and find those of the requests before. */
#include "config/config.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/choose.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "fuzz_check.h"
#include "pipeline/plan/served.h"
#include "pipeline/cog/device_blocks.h"
#include "pipeline/numbers/value_tally.h"
#include "pipeline/plan/ways.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/run/served/said_blocks.h"
#include "pipeline/run/whole/whole_map.h"
#include "served_job.h"
#include "tests/op_ground.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { SIDE = 72, HEIGHTS = 48, TILES = 3, WORDS = 16384, PIECE_LEAST = 5 };
enum { BLOCK = 32, STORED = 100, DEFLATE = 8, PIECES_MOST = 1 << 16 };
enum { NEXT_LEAST = 240, REQUESTS_MOST = 4 };

/* Flags of a request. */
enum {
    MANAGED = 1,     /* planes of the scene are managed memory */
    ABORTED = 2,     /* the pass is aborted */
    WAITS = 4,       /* the job waits for others before it */
    FORGETS = 8,     /* the pixels of the pass before are unknown to the job */
    COUNTS = 16,     /* the values of a band are counted on the device, for a product */
    KEEPS_NONE = 32, /* the pass does not keep its pixels */
};

struct input {
    const uint8_t *data;
    size_t bytes;
};

#define INPUT "    input: {match: ['*.tif'], bands: {A: 1, B: 2}"
#define WARP  "crs: 'EPSG:3857'"
#define OUT   "    products: [cog: {type: float32, blocksize: 64}]\n"

static const char yaml[] =
    "compute: {device: cpu, tile: 64, memory: 64MiB, codecs: device, buffers: pinned}\n"
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

/* Lets the blocks be sent as they are stored; those of the first source have a mask of their own.
 */
static void store_blocks(struct pb_served_request *r, unsigned flags)
{
    r->whole = 1;
    r->unit_cols = 1;
    r->host_planes = UINT64_MAX;
    r->keeps = (flags & KEEPS_NONE) == 0;
    r->managed = (flags & MANAGED) != 0;
    r->n_made = (flags & COUNTS) != 0;
    r->out_size = PB_OUT_SIZES - 1;
    for (uint32_t i = 0; i < r->n_sources; i++)
        r->source[i].layout = (struct pb_served_layout){.block_w = BLOCK,
                                                        .block_h = BLOCK,
                                                        .tiled = 1,
                                                        .compression = DEFLATE,
                                                        .predictor = 1,
                                                        .stored_max = STORED};
    r->source[0].has_mask = 1;
    r->source[0].layout.mask = (struct pb_mask_blocks){.block_w = 2 * BLOCK,
                                                       .block_h = BLOCK,
                                                       .bits = 1,
                                                       .tiled = 1,
                                                       .compression = DEFLATE,
                                                       .predictor = 1,
                                                       .stored_max = STORED};
}

/* The way that a step of these pipelines needs. */
static void add_way(bool on_relief, struct pb_served_tail *tail)
{
    struct pb_plan plan = {.work = {.n_ways = 0}};
    static const struct pb_plan_inputs in;
    const struct pb_plan_request request = {.raster = NULL};
    struct pb_plan_ways_made made;
    const struct pb_way_finder finder = pb_plan_ways_make(&made, &plan, &request, &in);
    made.maker = op_way_maker; /* its places need no file */
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

/* Appends a product of one band, whose values are counted. */
static void add_made(struct pb_served_tail *tail)
{
    const uint32_t plane[] = {0};
    struct pb_plan_made made = {.n_planes = 1};
    struct pb_err err = {0};
    pb_device_parts_of(1, plane, PB_VALUE_TALLY_VALUES, &made.blocks);
    require(pb_served_tail_add(tail, &made, sizeof made, &err) == 0, err.msg);
}

/* Applies the changes up to the next request. Returns true if there is one; *out_begin: its pass
 * and flags. */
static bool change(struct input *in, struct pb_served_request *request, struct pb_served_tail *tail,
                   uint32_t *out_begin)
{
    const size_t all = sizeof *request + tail->bytes;
    while (in->bytes >= PIECE_LEAST) {
        uint32_t where;
        memcpy(&where, in->data, sizeof where);
        const uint8_t count = in->data[4];
        size_t n = count % 9, at = where % all;
        in->data += PIECE_LEAST;
        in->bytes -= PIECE_LEAST;
        if (count >= NEXT_LEAST) {
            *out_begin = where;
            return true;
        }
        n = n < in->bytes ? n : in->bytes;
        for (size_t i = 0; i < n && at + i < all; i++)
            if (at + i < sizeof *request)
                ((unsigned char *)request)[at + i] = in->data[i];
            else
                tail->data[at + i - sizeof *request] = in->data[i];
        in->data += n;
        in->bytes -= n;
    }
    return false;
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

/* Takes all loads of the map in their order. */
static void take_loads(const struct pb_whole_map *map, uint64_t slot_bytes)
{
    struct pb_whole_load load = {.end = 0};
    while (pb_whole_map_load(map, load.end, slot_bytes, NULL, &load) == PB_WHOLE_LOAD) {
        require(load.end > load.first && load.end <= map->n_pieces, "a load of no pieces");
        require(pb_whole_load_bytes(map, &load) <= slot_bytes, "a load larger than its slot");
    }
    for (uint32_t i = 0; i < map->n_pieces; i++) {
        const struct pb_whole_piece *piece = &map->piece[i];
        const uint64_t from = map->lot[map->group[piece->group].lot].decoded_from;
        const bool managed = map->plan->engine.whole.managed; /* both kinds in one memory */
        require(piece->stored_at + piece->bytes <= map->stored_bytes ||
                    map->plan->engine.whole.in_place,
                "stored bytes outside of their memory");
        require(from + piece->decoded_at + piece->decoded_bytes <=
                    (managed ? map->stored_bytes : map->decoded_bytes),
                "a decoded block outside of its memory");
    }
}

/* Makes the map, and serves the pass if its pixels may be found, or it may find some; more: there
 * is another request. Returns false if the job ends with the pass. */
static bool serve_blocks(struct served_job *job, struct served_pass *pass,
                         struct pb_served_tail *tail, bool more)
{
    struct pb_said_blocks *said = NULL;
    struct pb_whole_map map;
    struct pb_err err = {0};
    if (pb_said_blocks_take(pass->plan, pass->request, tail, &err, &said) < 0) {
        check_err(&err);
        return false;
    }
    const struct pb_plan_whole *whole = &pass->plan->engine.whole;
    const uint64_t slot_bytes = pass->plan->layout.in_slot_bytes;
    bool good = pb_whole_map_init(&map, pass->plan, said->blocks, slot_bytes, whole->device_bytes,
                                  NULL, &err) == 0 &&
                map.n_pieces < PIECES_MOST;
    if (good)
        take_loads(&map, slot_bytes);
    pb_whole_map_fini(&map);
    pass->said = said;
    if (good && (more || !pb_whole_kept_is_empty(job->own)))
        good = served_serve(job, pass);
    pb_said_blocks_free(said);
    return good;
}

/* Makes a request that is possible, and its tail. */
static void make_request(const struct pb_plan_request *base, const struct served_job *job,
                         uint32_t begin, struct pb_served_request *out, struct pb_served_tail *tail)
{
    const char *name = base->pipeline->name;
    const unsigned flags = begin >> 8;
    uint32_t words[WORDS]; /* numbers near 0, and sizes of blocks */
    struct pb_err err = {0};
    *out = request_of(base->pipeline, begin % 4);
    for (size_t i = 0; i < WORDS; i++)
        words[i] = STORED;
    if (base->cuda) {
        store_blocks(out, flags);
        out->finds = !pb_whole_kept_is_empty(job->own) && (flags & FORGETS) == 0;
    }
    if (out->n_made > 0)
        add_made(tail);
    if (strcmp(name, "plain") != 0 && strcmp(name, "matched") != 0)
        add_way(strcmp(name, "relief") == 0, tail);
    require(pb_served_tail_add(tail, words, sizeof words, &err) == 0, err.msg);
}

/* Serves a request; *begin: its pass and flags, replaced by those of the next one. Returns false if
 * the job ends with it. */
static bool serve(struct served_job *job, const struct pb_plan_request *base, struct input *in,
                  uint32_t *begin)
{
    struct pb_served_request request;
    struct pb_served_tail tail = {.data = NULL};
    struct pb_plan *plan = NULL, *pass = NULL;
    struct pb_err err = {0};
    const unsigned flags = *begin >> 8;
    make_request(base, job, *begin, &request, &tail);
    bool more = change(in, &request, &tail, begin);
    if ((flags & WAITS) != 0)
        pb_served_job_waits(&job->owner);
    if (pb_plan_serve(base, &request, &tail, &err, &plan, &pass) == 0) {
        struct served_pass served = {.base = base,
                                     .request = &request,
                                     .tail = &tail,
                                     .plan = pass,
                                     .is_aborted = (flags & ABORTED) != 0};
        if (pass->engine.whole.used)
            more = serve_blocks(job, &served, &tail, more) && more;
        else
            compute(pass);
        pb_plan_destroy(plan);
    } else {
        check_err(&err);
    }
    pb_served_tail_free(&tail);
    return more;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct pb_device_traits gpu = {.gpu = {"NVIDIA H200", 90, 132, 233472, 232448},
                                                .managed = true,
                                                .memory_bytes = UINT64_C(1) << 28};
    if (config == NULL)
        begin();
    if (bytes == 0)
        return 0;
    const bool is_whole = data[0] >= 128;
    const struct pb_plan_request base = {.config = config,
                                         .pipeline =
                                             &config->pipelines[data[0] % config->n_pipelines],
                                         .device_index = is_whole ? 0 : -1,
                                         .cuda = is_whole,
                                         .traits = is_whole ? &gpu : NULL,
                                         .whole_device = is_whole ? &whole_host_device : NULL};
    struct served_job job = {.own = pb_whole_kept_create()};
    struct input in = {data + 1, bytes - 1};
    uint32_t request = data[0] / 16 % 4;
    require(job.own != NULL, "no memory");
    for (int i = 0; i < REQUESTS_MOST && serve(&job, &base, &in, &request); i++)
        ;
    pb_served_job_end(&job.owner);
    pb_whole_kept_destroy(job.own);
    require(whole_host.opened == 0 && whole_host.kept == 0, "memory of the device that is left");
    return 0;
}
