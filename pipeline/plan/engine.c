/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The resident kernel's part of the plan. A chain without a halo uses pieces of whole lines,
 * pulled from pinned slots; a chain with one needs neighbouring pixels, and one that changes the
 * grid needs lines of other positions or of several sources: its tiles are copied to device memory
 * and cut into parts, each of which reads its own input. On a GPU that shares memory with the CPU
 * they are read in place. The number of warps is that for which shared memory has registers.
 *
 * Each row of the table that depends on the plan alone has a condition here. Rows without one are
 * found when an engine's memory is sized.
 *
 * A pass that only has loops of k-means is summed up in the memory that has its tiles: a part of
 * some thousand pixels gives some kilobytes of results. The parts are those of a resident kernel
 * that processes whole tiles, so that streams have the same slots. */
#include "pipeline/plan/engine.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/device/device.h"

#include "kernels/chain/chain_block.h"
#include "kernels/chain/chain_resident.h"
#include "wic/device/launch.h"
#include "wic/pattern/schedule.h"

#include <errno.h>
#include <string.h>

enum {
    KIB = 1024,
    WARP = 32,
    PART_PX = 8192,
    PART_SIDE = 128,
    PART_SIDE_LEAST = 8,
    PART_PLANE_PX = 128 * KIB,
    PIECE_LEAST = 8 * KIB,
    AGAIN_MOST = 2,    /* limit of the pixels that parts read, in those that the tile reads */
    PROGRAM_LONG = 100 /* instructions: computing, not the link, is the limit then, and each
                          multiprocessor gets a block */
};

/* The tile must be sent with its pieces. */
enum { USER_BYTES = (sizeof(struct pb_tile) + 15) / 16 * 16 };
_Static_assert(USER_BYTES <= WIC_PLAN_USER_MAX, "a tile travels to the GPU");

/* For pulled lines one block of many warps a multiprocessor is as fast as the link; parts wait
 * for their own barriers, so that a second block fills the gaps. */
static const uint32_t line_warps[] = {PB_RESIDENT_LINE_WARPS, 8, 4, 2, 1};
static const uint32_t part_warps[] = {PB_RESIDENT_PART_WARPS, 4, 2, 1};
enum { PART_BLOCKS = 2 };

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Shared memory left for registers, if a block uses `taken` bytes of it otherwise. */
static uint32_t left_for_work(const struct wic_gpu *gpu, size_t taken)
{
    size_t used = WIC_STAGES_OFFSET + WIC_LANES_BYTES + PB_RESIDENT_OWN_BYTES + KIB + taken;
    return used < gpu->shared_block_bytes ? (uint32_t)(gpu->shared_block_bytes - used) : 0;
}

/* Registers and scratch of `warps` warps; false: they do not fit. */
static bool measure(const struct pb_plan *plan, uint32_t warps, uint32_t limit,
                    struct pb_plan_resident *r, struct wic_work *work)
{
    struct pb_chain_block_needs needs;
    int rc = plan->layout.sums.chain.n > 0
                 ? pb_plan_sums_measure(plan, WARP * warps, limit, &needs, &r->places)
                 : pb_chain_block_measure(plan->work.chain, r->part_w, r->part_h, WARP * warps,
                                          limit, &needs);
    if (limit == 0 || rc < 0)
        return false;
    r->px = needs.px;
    r->scratch_bytes = needs.scratch_bytes;
    r->plane_px = needs.plane_px;
    bool long_program = pb_chain_instruction_count(plan->work.chain) > PROGRAM_LONG;
    *work = (struct wic_work){warps, PB_RESIDENT_OWN_BYTES + needs.shared_bytes, USER_BYTES,
                              long_program ? 1 : 0};
    return true;
}

/* True if a line of a tile depends only on the same line of the scene. */
static bool stands_alone(const struct pb_plan *plan)
{
    return pb_chain_keeps_grid(plan->work.chain) && plan->work.halo == 0;
}

/* Chooses the plan measured for such tiles, or that of the table. */
static int choose(const struct pb_device_traits *traits, const struct wic_tile_shape *shape,
                  size_t out_bytes, const struct wic_work *work, struct pb_plan_resident *r)
{
    const struct pb_tuning_row *row = pb_tuning_find(&traits->tuning, shape->slot_bytes, out_bytes);
    r->measured =
        row != NULL && wic_transfer_plan_by(&traits->gpu, shape, work, &row->plan, &r->chunks) == 0;
    return r->measured ? 0 : wic_transfer_plan_choose(&traits->gpu, shape, work, &r->chunks);
}

static bool pull_lines(const struct pb_plan *plan, const struct pb_device_traits *traits,
                       struct pb_plan_resident *r)
{
    struct pb_slot_format format = plan->layout.format;
    r->by_line = true;
    pb_plan_core_most(plan, &r->part_w, &r->part_h);
    struct pb_rect full = {0, 0, r->part_w, r->part_h};
    format.line_px = r->part_w;
    size_t bytes = pb_slot_window_bytes(&format, 0, &full), line = bytes / (size_t)r->part_h;
    struct wic_tile_shape shape = {bytes, (uint32_t)line, 0};
    size_t piece = line > PIECE_LEAST ? line : PIECE_LEAST;
    size_t out_bytes = (size_t)r->part_w * (size_t)r->part_h * sizeof(float) * plan->work.outputs.n;
    struct wic_work work;
    for (size_t i = 0; i < sizeof line_warps / sizeof line_warps[0]; i++)
        if (measure(plan, line_warps[i], left_for_work(&traits->gpu, 2 * piece), r, &work) &&
            choose(traits, &shape, out_bytes, &work, r) == 0)
            return true;
    r->by_line = false;
    return false;
}

/* Side of a square that is large enough that its halo is not most of the work; if a plane of it
 * has a finer grid, small enough that the scratch of all blocks is bounded. */
static int32_t part_side(const struct pb_plan *plan)
{
    int32_t side = (4 * plan->work.halo + PART_SIDE - 1) / PART_SIDE * PART_SIDE;
    side = side > PART_SIDE ? side : PART_SIDE;
    while (!pb_chain_keeps_grid(plan->work.chain) && side > PART_SIDE_LEAST &&
           pb_chain_plane_px(plan->work.chain, side, side) > PART_PLANE_PX)
        side /= 2;
    return side;
}

/* Size of the parts of a core in which a kernel processes whole tiles: lines for a chain that needs
 * no neighbouring pixels, else squares. */
static void cut_parts(const struct pb_plan *plan, int32_t *out_w, int32_t *out_h)
{
    int32_t w, h, side = part_side(plan);
    pb_plan_core_most(plan, &w, &h);
    bool alone = stands_alone(plan);
    *out_w = alone ? w : least(side, w);
    *out_h = alone ? least((PART_PX + w - 1) / w, h) : least(side, h);
}

static uint32_t parts_of(int32_t part_w, int32_t part_h, const struct pb_rect *core)
{
    uint32_t columns = (uint32_t)((core->w + part_w - 1) / part_w);
    return columns * (uint32_t)((core->h + part_h - 1) / part_h);
}

static bool take_whole(const struct pb_plan *plan, const struct wic_gpu *gpu,
                       enum wic_transport transport, struct pb_plan_resident *r)
{
    struct pb_rect full = {0, 0, 0, 0};
    cut_parts(plan, &r->part_w, &r->part_h);
    pb_plan_core_most(plan, &full.w, &full.h);
    uint32_t units = parts_of(r->part_w, r->part_h, &full);
    struct wic_work work;
    for (size_t i = 0; i < sizeof part_warps / sizeof part_warps[0]; i++)
        if (measure(plan, part_warps[i], left_for_work(gpu, 0), r, &work)) {
            work.blocks = PART_BLOCKS;
            if (wic_transfer_plan_whole(gpu, transport, units, &work, &r->chunks) == 0)
                return true;
        }
    return false;
}

uint32_t pb_plan_parts(const struct pb_plan *plan, const struct pb_rect *core)
{
    const struct pb_plan_resident *r = &plan->engine.resident;
    if (plan->layout.sums.chain.n > 0)
        return parts_of(plan->layout.sums.part_w, plan->layout.sums.part_h, core);
    return r->by_line ? (uint32_t)core->h : parts_of(r->part_w, r->part_h, core);
}

size_t pb_plan_out_bytes(const struct pb_plan *plan, const struct pb_tile *tile)
{
    if (plan->layout.sums.chain.n > 0)
        return (size_t)pb_plan_parts(plan, &tile->core) * plan->layout.sums.chain.words *
               sizeof(int32_t);
    return pb_tile_out_px(tile) * sizeof(float) * plan->work.outputs.n;
}

uint32_t pb_plan_part_bytes(const struct pb_plan *plan, const struct pb_tile *tile)
{
    if (!plan->engine.resident.by_line)
        return 0;
    return (uint32_t)pb_slot_line_bytes(&plan->layout.format.source[0], (size_t)tile->read[0].w);
}

const char *pb_plan_stream_why(const struct pb_plan *plan, const struct pb_config *config)
{
    if (plan->engine.cpu_why != NULL)
        return plan->engine.cpu_why;
    bool other =
        plan->engine.cuda && !plan->engine.resident.used && config->compute.sync == PB_SYNC_WIC;
    return other ? plan->engine.resident.why_not : "";
}

const struct pb_plan *pb_plan_buffers_pass(const struct pb_plan *plan)
{
    const struct pb_plan *found = plan;
    for (size_t i = plan->n_earlier; i-- > 0;) {
        const struct pb_plan_whole *whole = &plan->earlier[i]->engine.whole;
        if (whole->managed && (whole->one_band || !found->engine.whole.one_band))
            found = plan->earlier[i];
    }
    return found;
}

const char *pb_plan_buffers(const struct pb_plan *plan)
{
    return pb_plan_buffers_pass(plan)->engine.whole.managed ? "managed"
           : plan->engine.mem == PB_MEM_PINNED              ? "pinned"
                                                            : "host";
}

const char *pb_plan_buffers_why(const struct pb_plan *plan)
{
    const char *why = pb_plan_buffers_pass(plan)->engine.whole.managed_why;
    return why != NULL ? why : "";
}

/* True if parts would read their surroundings again and again. The way to another coordinate system
 * is known by squares (pb_warp_most): on a large scene these are larger than parts, which then read
 * the same pixels many times. Web tiles whose parts read 3 times as much take 2.1 times as long as
 * by launches (one H200, 733 and 342 ms). */
static bool reads_too_much(const struct pb_plan *plan)
{
    int32_t part_w, part_h, w, h;
    pb_plan_core_most(plan, &w, &h);
    if (plan->work.warp == PB_CHAIN_NO_WARP)
        return false;
    cut_parts(plan, &part_w, &part_h);
    double part = (double)pb_chain_plane_px(plan->work.chain, part_w, part_h),
           tile = (double)pb_chain_plane_px(plan->work.chain, w, h);
    return part / ((double)part_w * part_h) > AGAIN_MOST * tile / ((double)w * h);
}

struct pb_plan_resident pb_plan_resident(const struct pb_plan *plan,
                                         const struct pb_plan_request *request)
{
    struct pb_plan_resident r = {0};
    const struct pb_device_traits *traits = request->traits;
    const struct wic_gpu *gpu = traits != NULL ? &traits->gpu : NULL;
    const struct pb_engine_case facts = {.plan = plan, .request = request};
    r.why_not = pb_engine_refuses(PB_ENGINE_RESIDENT, &facts);
    if (r.why_not != NULL)
        r.used = false;
    else if (reads_too_much(plan))
        r.why_not = pb_limit_reason(PB_LIMIT_RESIDENT_PARTS);
    else if (traits->integrated)
        r.used = take_whole(plan, gpu, WIC_IN_PLACE, &r);
    else
        r.used = (stands_alone(plan) && plan->layout.sums.chain.n == 0 &&
                  pull_lines(plan, traits, &r)) ||
                 take_whole(plan, gpu, WIC_COPY, &r);
    if (!r.used && r.why_not == NULL)
        r.why_not = pb_limit_reason(PB_LIMIT_RESIDENT_SHARED);
    r.shared = r.used && request->remote;
    if (gpu != NULL)
        r.gpu = *gpu;
    return r;
}

/* --- conditions of the limits ----------------------------------------------------------------- */

enum { SM_LEAST = 75 };
enum { COMPRESSION_LZW = 5, COMPRESSION_DEFLATE = 8, DEFLATE_OLD = 32946 };

typedef const struct pb_engine_case *facts_of;

/* --- computing on the GPU -------------------------------------------------------------------- */

static bool has_large_planes(facts_of c)
{
    return c->side == 0;
}

static bool has_far_ways(facts_of c)
{
    return c->plan->work.has_far_ways;
}

double pb_plan_cores(const struct pb_config *config)
{
    return pb_device_threads(config->compute.threads);
}

/* Count of cores that cut footprints as fast as the GPU does; measured with an H200 of 132
 * multiprocessors, which decodes the scene (0.14 s, and 1.49 s with 16 cores). GPUs for graphics
 * and boards have a few float64 units a multiprocessor. */
static double cores_of_areas(const struct wic_gpu *gpu)
{
    const bool is_fast = gpu->compute == 80 || gpu->compute == 90 || gpu->compute == 100;
    return is_fast ? 170.0 * gpu->multiprocessors / 132 : 0;
}

/* The process that owns the GPU computes what the job's plan has chosen. */
static bool has_slow_areas(facts_of c)
{
    const struct pb_plan_request *r = c->request;
    return c->plan->work.warp == PB_CHAIN_WARP_AREAS &&
           r->config->compute.device == PB_DEVICE_AUTO && r->whole_said == 0 && r->traits != NULL &&
           pb_plan_cores(r->config) > cores_of_areas(&r->traits->gpu);
}

/* --- a resident kernel ----------------------------------------------------------------------- */

static bool has_no_gpu(facts_of c)
{
    return !c->plan->engine.cuda || c->request->traits == NULL;
}

static bool is_old(facts_of c)
{
    return c->request->traits->gpu.compute < SM_LEAST;
}

static bool syncs_by_stream(facts_of c)
{
    return c->request->config->compute.sync == PB_SYNC_STREAM;
}

static bool decodes_there(facts_of c)
{
    return c->plan->engine.whole.used;
}

static bool owner_uses_streams(facts_of c)
{
    return c->request->stream_why != NULL;
}

static bool drives_display(facts_of c)
{
    return c->request->traits->time_limited;
}

static bool has_host_slots(facts_of c)
{
    return c->plan->engine.mem == PB_MEM_HOST;
}

/* --- decoding -------------------------------------------------------------------------------- */

/* True if tiles, not their parts, follow a pattern with steps in both directions. */
static bool is_two_way(facts_of c)
{
    const struct pb_exchange_config *exchange = &c->request->pipeline->exchange;
    return exchange->of != PB_EXCHANGE_PARTS && exchange->pattern != &wic_pattern_unidirectional;
}

static bool decodes_by_host(facts_of c)
{
    return c->request->config->compute.codecs == PB_CODECS_HOST;
}

static bool child_decodes(facts_of c)
{
    return c->request->whole_said < 0;
}

static bool is_two_way_remotely(facts_of c)
{
    return c->request->remote && is_two_way(c);
}

static bool has_host_buffers(facts_of c)
{
    return c->request->config->compute.buffers == PB_BUFFERS_HOST;
}

static bool has_wide_bands(facts_of c)
{
    return c->plan->work.n_wide > 0;
}

/* Returns true if it holds for a file that the pass reads. */
static bool any_file(facts_of c, bool (*holds)(const struct pb_raster_info *, bool by_host))
{
    for (size_t i = 0; i < c->plan->work.n_sources; i++)
        if (c->plan->work.source[i].n_bands > 0 &&
            holds(&c->plan->work.info[i], c->plan->engine.whole.how[i].by_host))
            return true;
    return false;
}

static bool is_large(const struct pb_raster_info *info, bool by_host)
{
    return by_host && pb_raw_blocks_stand_in_bytes(info) > PB_RAW_PIECE_MOST;
}

/* One thread decodes the rows in their order. */
static bool is_top_down(const struct pb_raster_info *info, bool by_host)
{
    (void)by_host;
    return info->top_down;
}

static bool is_growing(const struct pb_raster_info *info, bool by_host)
{
    (void)by_host;
    return info->is_growing;
}

static bool has_growing_file(facts_of c)
{
    return any_file(c, is_growing);
}

static bool has_large_blocks(facts_of c)
{
    return any_file(c, is_large);
}

static bool has_strip(facts_of c)
{
    return any_file(c, is_top_down);
}

/* --- decoding of a file ---------------------------------------------------------------------- */

static bool is_made(facts_of c)
{
    return c->info->is_made;
}

static bool has_other_layout(facts_of c)
{
    return !c->info->own_blocks;
}

static bool is_complex(facts_of c)
{
    return c->info->complex.kind != PB_COMPLEX_NONE;
}

bool pb_engine_decodes(uint16_t codec)
{
    return codec == COMPRESSION_LZW || codec == COMPRESSION_DEFLATE || codec == DEFLATE_OLD;
}

static bool has_other_codec(facts_of c)
{
    return pb_raster_is_compressed(c->info) && !pb_engine_decodes(c->info->tiff_compression);
}

static bool has_large_stored(facts_of c)
{
    return pb_raster_is_compressed(c->info) && c->info->stored_block_bytes > PB_RAW_PIECE_MOST;
}

/* --- products -------------------------------------------------------------------------------- */

static bool decodes_here(facts_of c)
{
    return !c->plan->engine.whole.used;
}

static bool is_any_two_way(facts_of c)
{
    return c->request->pipeline->exchange.pattern != NULL && is_two_way(c);
}

/* --- planes in managed memory ------------------------------------------------------------------
 */

static bool wants_managed(facts_of c)
{
    return c->plan->engine.cuda && c->request->config->compute.buffers == PB_BUFFERS_MANAGED;
}

static bool cannot_move(facts_of c)
{
    return wants_managed(c) && (c->request->traits == NULL || !c->request->traits->managed);
}

static bool has_no_planes(facts_of c)
{
    return wants_managed(c) && !c->plan->engine.whole.used;
}

static bool (*const holds[PB_LIMITS])(facts_of) = {
    [PB_LIMIT_GPU_PLANES] = has_large_planes,
    [PB_LIMIT_GPU_AREAS] = has_slow_areas,
    [PB_LIMIT_GPU_WAYS] = has_far_ways,
    [PB_LIMIT_RESIDENT_NO_GPU] = has_no_gpu,
    [PB_LIMIT_RESIDENT_OLD] = is_old,
    [PB_LIMIT_RESIDENT_SYNC] = syncs_by_stream,
    [PB_LIMIT_RESIDENT_DECODER] = decodes_there,
    [PB_LIMIT_RESIDENT_OWNER] = owner_uses_streams,
    [PB_LIMIT_RESIDENT_DISPLAY] = drives_display,
    [PB_LIMIT_RESIDENT_HOST] = has_host_slots,
    [PB_LIMIT_DECODER_NO_GPU] = has_no_gpu,
    [PB_LIMIT_DECODER_CODECS] = decodes_by_host,
    [PB_LIMIT_DECODER_CHILD] = child_decodes,
    [PB_LIMIT_DECODER_LINES] = has_growing_file,
    [PB_LIMIT_DECODER_PATTERN] = is_two_way_remotely,
    [PB_LIMIT_DECODER_BUFFERS] = has_host_buffers,
    [PB_LIMIT_DECODER_DIGITS] = has_wide_bands,
    [PB_LIMIT_DECODER_LARGE] = has_large_blocks,
    [PB_LIMIT_DECODER_STRIP] = has_strip,
    [PB_LIMIT_FILE_MADE] = is_made,
    [PB_LIMIT_FILE_LAYOUT] = has_other_layout,
    [PB_LIMIT_FILE_COMPLEX] = is_complex,
    [PB_LIMIT_FILE_CODEC] = has_other_codec,
    [PB_LIMIT_FILE_LARGE] = has_large_stored,
    [PB_LIMIT_PRODUCTS_HOST] = decodes_here,
    [PB_LIMIT_PRODUCTS_PATTERN] = is_any_two_way,
    [PB_LIMIT_MANAGED_GPU] = cannot_move,
    [PB_LIMIT_MANAGED_HOST] = has_no_planes,
};

const char *pb_engine_refuses(enum pb_engine_name engine, const struct pb_engine_case *facts)
{
    for (enum pb_limit i = 0; i < PB_LIMITS; i++)
        if (pb_engine_limit(i)->engine == engine && holds[i] != NULL && holds[i](facts))
            return i == PB_LIMIT_RESIDENT_OWNER ? facts->request->stream_why : pb_limit_reason(i);
    return NULL;
}

static void add(struct pb_engine_reason *out, size_t *n, enum pb_engine_name engine,
                const char *reason)
{
    if (reason != NULL && reason[0] != '\0')
        out[(*n)++] = (struct pb_engine_reason){engine, reason};
}

size_t pb_engine_reasons(const struct pb_plan *plan,
                         struct pb_engine_reason out[PB_ENGINE_REASONS_MAX])
{
    const struct pb_plan_engine *e = &plan->engine;
    size_t n = 0;
    add(out, &n, PB_ENGINE_GPU, e->cpu_why);
    if (!e->cuda)
        return n;
    add(out, &n, PB_ENGINE_RESIDENT, e->resident.used ? NULL : e->resident.why_not);
    add(out, &n, PB_ENGINE_DECODER, e->whole.used ? NULL : e->whole.why_not);
    add(out, &n, PB_ENGINE_FILE, e->whole.used ? e->whole.host_why : NULL);
    add(out, &n, PB_ENGINE_MANAGED, e->whole.managed ? NULL : e->whole.managed_why);
    return n;
}

/* --- sums of tiles ---------------------------------------------------------------------------- */

/* Threads of a kernel that is launched per tile; a block of this size must fit in any case. */
enum { THREADS = 32 };

int pb_plan_sums_measure(const struct pb_plan *plan, uint32_t threads, uint32_t shared_limit,
                         struct pb_chain_block_needs *out_needs,
                         struct pb_chain_sums_scratch *out_scratch)
{
    return pb_chain_sums_measure(plan->work.chain, &plan->layout.sums.chain,
                                 plan->layout.sums.part_w, plan->layout.sums.part_h, threads,
                                 shared_limit, out_needs, out_scratch);
}

void pb_plan_sums_set(struct pb_plan *plan)
{
    struct pb_plan_sums *sums = &plan->layout.sums;
    struct pb_chain_block_needs needs;
    struct pb_chain_sums_scratch scratch;
    memset(sums, 0, sizeof *sums);
    if (!plan->engine.cuda || !plan->is_earlier)
        return;
    sums->chain = pb_chain_sums_find(plan->work.chain);
    cut_parts(plan, &sums->part_w, &sums->part_h);
    if (sums->chain.n == 0 ||
        pb_plan_sums_measure(plan, THREADS, PB_CHAIN_BLOCK_SHARED, &needs, &scratch) < 0)
        memset(sums, 0, sizeof *sums);
}

size_t pb_plan_sums_tile_bytes(const struct pb_plan *plan)
{
    return pb_slot_align(plan->layout.in_slot_bytes - plan->layout.format.head_bytes,
                         PB_PLANE_ALIGN);
}

void pb_plan_sums_head(const struct pb_plan *plan, uint32_t round, struct pb_slot_head *out_head)
{
    memset(out_head, 0, plan->layout.format.head_bytes);
    out_head->round = round;
    pb_chain_sums_numbers(plan->work.chain, &plan->layout.sums.chain, (float *)(out_head + 1));
}
