/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Each row of the table that depends on the plan alone has a condition here. Rows without one are
 * found when an engine's memory is sized. */
#include "pipeline/plan/engine.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/plan_ways.h"

#include "wic/pattern/schedule.h"

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
    return c->request->remote && !pb_plan_ways_are_sound(c->plan);
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

static bool has_others(facts_of c)
{
    return c->request->jobs_beside > 1 && !c->request->traits->mps;
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

static bool warps_remotely(facts_of c)
{
    return c->request->remote && c->plan->work.has_warp;
}

static bool is_two_way_remotely(facts_of c)
{
    return c->request->remote && is_two_way(c);
}

static bool is_not_pinned(facts_of c)
{
    return c->plan->engine.mem != PB_MEM_PINNED;
}

static bool has_wide_bands(facts_of c)
{
    return c->plan->work.n_wide > 0;
}

/* True if a pass runs repeatedly with numbers of the round before. */
static bool has_loops(facts_of c)
{
    const struct pb_chain_reduction *reduction;
    const struct pb_plan *plan = c->plan;
    size_t n = plan->is_earlier ? pb_chain_reductions(plan->work.chain, &reduction) : 0;
    for (size_t i = 0; i < n; i++)
        if (reduction[i].reduce.n_numbers > 0)
            return true;
    return false;
}

static bool loops_remotely(facts_of c)
{
    return c->request->remote && has_loops(c) && c->plan->layout.sums.chain.n == 0;
}

/* Returns true if it holds for a file that the pass reads. */
static bool any_file(facts_of c, bool (*holds)(const struct pb_raster_info *, bool by_host))
{
    for (size_t i = 0; i < c->plan->work.n_sources; i++)
        if (c->plan->work.source[i].n_bands > 0 &&
            holds(pb_plan_info(c->plan, c->request, i), c->plan->engine.whole.how[i].by_host))
            return true;
    return false;
}

static bool is_made(const struct pb_raster_info *info, bool by_host)
{
    (void)by_host;
    return info->is_made;
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

static bool has_made_planes(facts_of c)
{
    return any_file(c, is_made);
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

static bool has_other_layout(facts_of c)
{
    return !c->info->own_blocks;
}

static bool is_complex(facts_of c)
{
    return c->info->complex.kind != PB_COMPLEX_NONE;
}

static bool has_other_codec(facts_of c)
{
    const uint16_t codec = c->info->tiff_compression;
    return pb_raster_is_compressed(c->info) && codec != COMPRESSION_LZW &&
           codec != COMPRESSION_DEFLATE && codec != DEFLATE_OLD;
}

static bool has_large_stored(facts_of c)
{
    return pb_raster_is_compressed(c->info) && c->info->stored_block_bytes > PB_RAW_PIECE_MOST;
}

static bool has_wide_alpha(facts_of c)
{
    return c->info->alpha_band > 0 && c->info->has_mask && pb_type_bytes(c->info->type) > 1;
}

/* --- products -------------------------------------------------------------------------------- */

static bool decodes_here(facts_of c)
{
    return !c->plan->engine.whole.used;
}

static bool has_many_bands(facts_of c)
{
    return c->plan->work.outputs.n > PB_BANDS_MAX;
}

static bool is_any_two_way(facts_of c)
{
    return c->request->pipeline->exchange.pattern != NULL && is_two_way(c);
}

/* --- slots ----------------------------------------------------------------------------------- */

static bool maps_managed(facts_of c)
{
    return c->plan->engine.cuda && c->request->config->compute.buffers == PB_BUFFERS_MANAGED &&
           c->plan->engine.mem != PB_MEM_MANAGED;
}

static bool (*const holds[PB_LIMITS])(facts_of) = {
    [PB_LIMIT_GPU_PLANES] = has_large_planes,
    [PB_LIMIT_GPU_WAYS] = has_far_ways,
    [PB_LIMIT_RESIDENT_NO_GPU] = has_no_gpu,
    [PB_LIMIT_RESIDENT_OLD] = is_old,
    [PB_LIMIT_RESIDENT_SYNC] = syncs_by_stream,
    [PB_LIMIT_RESIDENT_DECODER] = decodes_there,
    [PB_LIMIT_RESIDENT_OWNER] = owner_uses_streams,
    [PB_LIMIT_RESIDENT_OTHERS] = has_others,
    [PB_LIMIT_RESIDENT_DISPLAY] = drives_display,
    [PB_LIMIT_RESIDENT_HOST] = has_host_slots,
    [PB_LIMIT_DECODER_NO_GPU] = has_no_gpu,
    [PB_LIMIT_DECODER_CODECS] = decodes_by_host,
    [PB_LIMIT_DECODER_CHILD] = child_decodes,
    [PB_LIMIT_DECODER_WARP] = warps_remotely,
    [PB_LIMIT_DECODER_PATTERN] = is_two_way_remotely,
    [PB_LIMIT_DECODER_BUFFERS] = is_not_pinned,
    [PB_LIMIT_DECODER_DIGITS] = has_wide_bands,
    [PB_LIMIT_DECODER_LOOPS] = loops_remotely,
    [PB_LIMIT_DECODER_MADE] = has_made_planes,
    [PB_LIMIT_DECODER_LARGE] = has_large_blocks,
    [PB_LIMIT_DECODER_STRIP] = has_strip,
    [PB_LIMIT_FILE_LAYOUT] = has_other_layout,
    [PB_LIMIT_FILE_COMPLEX] = is_complex,
    [PB_LIMIT_FILE_CODEC] = has_other_codec,
    [PB_LIMIT_FILE_LARGE] = has_large_stored,
    [PB_LIMIT_FILE_ALPHA] = has_wide_alpha,
    [PB_LIMIT_PRODUCTS_HOST] = decodes_here,
    [PB_LIMIT_PRODUCTS_BANDS] = has_many_bands,
    [PB_LIMIT_PRODUCTS_PATTERN] = is_any_two_way,
    [PB_LIMIT_MANAGED_OWNER] = maps_managed,
};

const char *pb_engine_refuses(enum pb_engine_name engine, const struct pb_engine_case *facts)
{
    for (int i = 0; i < PB_LIMITS; i++)
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

size_t pb_engine_reasons(const struct pb_plan *plan, const struct pb_config *config,
                         struct pb_engine_reason out[PB_ENGINE_REASONS_MAX])
{
    const struct pb_plan_engine *e = &plan->engine;
    const struct pb_plan_request request = {.config = config};
    const struct pb_engine_case facts = {.plan = plan, .request = &request};
    size_t n = 0;
    add(out, &n, PB_ENGINE_GPU, e->cpu_why);
    if (!e->cuda)
        return n;
    add(out, &n, PB_ENGINE_RESIDENT, e->resident.used ? NULL : e->resident.why_not);
    add(out, &n, PB_ENGINE_DECODER, e->whole.used ? NULL : e->whole.why_not);
    add(out, &n, PB_ENGINE_FILE, e->whole.used ? e->whole.host_why : NULL);
    add(out, &n, PB_ENGINE_MANAGED, pb_engine_refuses(PB_ENGINE_MANAGED, &facts));
    return n;
}
