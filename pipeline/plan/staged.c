/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Blocks are decoded on the GPU if their source has a plain layout and a codec that the GPU can
 * decode; those of other sources are decoded by the host, and their pixels are sent in the same
 * slots. A block is one sequential task on the GPU: a few blocks are all decoded at the same time,
 * but slowly, and cores that decode several at a time finish earlier.
 *
 * A product is made on the device if the device has an encoder for it, and enough memory. A pass
 * leaves its pixels there for later passes if they fit (run/whole/whole_kept.h). */
#include "pipeline/plan/staged.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/blocks.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/layout.h"
#include "pipeline/plan/pages.h"

#include "kernels/codec/decode_device.h"
#include "kernels/codec/pixel_join.h"
#include "kernels/reduce/value_table.h"

#include <string.h>

enum {
    COMPRESSION_NONE = 1,
    ALIGN = 256, /* bytes; as PB_WHOLE_ALIGN (run/whole/whole_map.h) */
    SHARE = 4,   /* jobs for which a GPU has memory, if not configured */
    FASTER = 2   /* factor over all cores from which a GPU decodes alone */
};

#define SHARED_MOST         (UINT64_C(8) << 20) /* limit of a decoded block that cores send */
#define CORE_BYTES_SECOND   250e6               /* decoding speed of a core */
#define SET_UP_SECONDS      0.1
#define DEVICE_BYTES_SECOND 90e6  /* decoding speed of a GPU for one block */
#define LINK_BYTES_SECOND   12e9  /* assumed for a link that was not measured */
#define SHARED_BYTES_SECOND 100e9 /* for memory that GPU and host share */

/* Origin of the mask of a file whose pixels are decoded on the GPU. */
static enum pb_raw_mask mask_of(const struct pb_raster_info *info)
{
    const struct pb_mask_blocks *mask = &info->mask_blocks;
    if (info->alpha_band > 0)
        return PB_RAW_MASK_ALPHA;
    return mask->block_w > 0 && mask->stored_max <= PB_RAW_PIECE_MOST &&
                   (mask->compression == COMPRESSION_NONE || pb_engine_decodes(mask->compression))
               ? PB_RAW_MASK_BLOCKS
               : PB_RAW_MASK_HOST;
}

/* Decoding of the source; *why: why the host decodes some of it. */
static struct pb_raw_how how_of(const struct pb_plan_source *source,
                                const struct pb_raster_info *info, const char **why)
{
    const struct pb_engine_case facts = {.info = info};
    const char *own = pb_engine_refuses(PB_ENGINE_FILE, &facts);
    struct pb_raw_how how = {.by_host = own != NULL};
    if (source->has_mask)
        how.mask = how.by_host ? PB_RAW_MASK_HOST : mask_of(info);
    if (own == NULL && how.mask == PB_RAW_MASK_HOST)
        own = pb_limit_reason(PB_LIMIT_FILE_MASK);
    *why = own;
    return how;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* True if the host would decode all before the GPU has decoded one block. */
static bool is_small(const struct pb_plan *plan, double n_cores)
{
    double host = 0, device = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = &plan->work.info[i];
        double pixel = (double)pb_raster_sample_bytes(info) * info->n_bands;
        double block = (double)info->block_w * info->block_h * pixel;
        if (plan->work.source[i].n_bands == 0 || !pb_raster_is_compressed(info) ||
            plan->engine.whole.how[i].by_host)
            continue;
        block = info->pixel_interleaved ? block : block / info->n_bands;
        host += (double)info->width * info->height * pixel / CORE_BYTES_SECOND;
        device = block / DEVICE_BYTES_SECOND > device ? block / DEVICE_BYTES_SECOND : device;
    }
    return device > 0 && host / n_cores < device;
}

/* True if the host decodes all before setting up a GPU's memory would pay. */
static bool is_small_of_host(const struct pb_plan *plan, double n_cores)
{
    double host = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = &plan->work.info[i];
        double pixel = (double)pb_raster_sample_bytes(info) * info->n_bands;
        if (plan->work.source[i].n_bands > 0)
            host += (double)info->width * info->height * pixel / CORE_BYTES_SECOND;
    }
    return plan->engine.whole.all_by_host && host / n_cores < SET_UP_SECONDS;
}

bool pb_plan_whole_is_vain(const struct pb_plan *plan, const struct pb_plan_request *request)
{
    return plan->engine.whole.used && plan->engine.whole.all_by_host && plan->engine.out.n == 0 &&
           request->config->compute.codecs == PB_CODECS_AUTO && request->whole_said == 0;
}

/* Largest decoded size of a compressed block in bytes. */
static uint64_t decoded_bytes(const struct pb_plan *plan)
{
    uint64_t most = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = &plan->work.info[i];
        uint64_t bytes = pb_raster_sample_bytes(info) * (uint64_t)info->block_w *
                         (uint64_t)info->block_h *
                         (info->pixel_interleaved ? (uint64_t)info->n_bands : 1);
        const uint64_t mask = plan->engine.whole.how[i].mask == PB_RAW_MASK_BLOCKS &&
                                      info->mask_blocks.compression != COMPRESSION_NONE
                                  ? pb_plan_mask_block_bytes(&info->mask_blocks)
                                  : 0;
        if (!pb_raster_is_compressed(info) || plan->engine.whole.how[i].by_host)
            bytes = 0;
        bytes = mask > bytes ? mask : bytes;
        if (plan->work.source[i].n_bands > 0 && bytes > most)
            most = bytes;
    }
    return most;
}

bool pb_plan_whole_shares(uint32_t streams, double n_cores)
{
    return streams * DEVICE_BYTES_SECOND < FASTER * n_cores * CORE_BYTES_SECOND;
}

/* Decides if cores decode as well: if they are a considerable part of the common speed. They have
 * other work, too. */
static void set_shares(const struct pb_plan *plan, const struct pb_plan_request *r, double n_cores,
                       struct pb_plan_whole *whole)
{
    const uint64_t decoded = whole->block_bytes = decoded_bytes(plan);
    const struct wic_gpu *gpu = &r->traits->gpu;
    whole->streams = gpu->multiprocessors * pb_decode_streams_each(gpu->shared_bytes);
    whole->core_rate = CORE_BYTES_SECOND;
    whole->device_rate = whole->streams > 0 ? whole->streams * DEVICE_BYTES_SECOND : 1;
    whole->link_rate = whole->in_place ? SHARED_BYTES_SECOND : LINK_BYTES_SECOND;
    whole->shares =
        r->config->compute.codecs == PB_CODECS_AUTO && decoded > 0 && decoded <= SHARED_MOST &&
        (r->whole_said > 0 ? r->whole_said == 2 : pb_plan_whole_shares(whole->streams, n_cores));
    if (whole->shares && whole->piece_bytes < decoded)
        whole->piece_bytes = (decoded + 4095) / 4096 * 4096;
}

/* Largest size of a part of a mask that is sent at once, in bytes. */
static uint64_t mask_piece_bytes(const struct pb_plan *plan, size_t i)
{
    const struct pb_raster_info *info = &plan->work.info[i];
    const struct pb_mask_blocks *mask = &info->mask_blocks;
    const struct pb_raw_how *how = &plan->engine.whole.how[i];
    if (how->mask == PB_RAW_MASK_HOST && pb_raster_is_compressed(info))
        return (uint64_t)info->block_w * (uint64_t)info->block_h;
    if (how->mask != PB_RAW_MASK_BLOCKS)
        return 0;
    return mask->compression == COMPRESSION_NONE
               ? pb_plan_mask_block_bytes(mask) / (uint64_t)mask->block_h
               : mask->stored_max;
}

/* Largest size of a block that is sent at once, in bytes. */
static uint64_t piece_bytes(const struct pb_plan *plan)
{
    uint64_t most = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = &plan->work.info[i];
        uint64_t row = pb_raster_sample_bytes(info) * (uint64_t)info->n_bands *
                       (uint64_t)(info->tiled ? info->block_w : info->width);
        uint64_t bytes = pb_raster_is_compressed(info) ? info->stored_block_bytes : row;
        const uint64_t mask = mask_piece_bytes(plan, i);
        if (plan->engine.whole.how[i].by_host)
            bytes = pb_raw_blocks_stand_in_bytes(info);
        else if (bytes < mask)
            bytes = mask;
        if (plan->work.source[i].n_bands > 0 && bytes > most)
            most = bytes;
    }
    return (most + 4095) / 4096 * 4096;
}

/* Blocks that the host decodes are read as a whole, each once. */
struct pb_plan_decoding pb_plan_whole_decoding(const struct pb_plan *plan)
{
    struct pb_plan_decoding out = {.readers = plan->layout.readers, .decodes = 1.0};
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = &plan->work.info[i];
        const struct pb_raw_how *how = &plan->engine.whole.how[i];
        struct pb_rect cell = {.x = 0};
        if (plan->work.source[i].n_bands > 0 && plan->engine.whole.shares &&
            pb_raster_is_compressed(info))
            out.reader_bytes += plan->layout.readers * pb_raster_reader_bytes(info);
        if (plan->work.source[i].n_bands == 0 || (!how->by_host && how->mask != PB_RAW_MASK_HOST))
            continue;
        uint32_t w, h;
        pb_raw_blocks_stand_in(info, &w, &h);
        cell.w = (int32_t)w;
        cell.h = (int32_t)h;
        out.cache_bytes += plan->layout.readers * pb_raster_cache_bytes(info, &cell);
        out.reader_bytes += plan->layout.readers * pb_raster_reader_bytes(info);
    }
    return out;
}

/* Planes that are made on the host are no reason as long as files are decoded on the GPU. */
static void find_how(const struct pb_plan *plan, struct pb_plan_whole *out)
{
    const char *made = NULL;
    out->all_by_host = true;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const char *why = NULL;
        if (plan->work.source[i].n_bands == 0)
            continue;
        out->how[i] = how_of(&plan->work.source[i], &plan->work.info[i], &why);
        if (plan->work.info[i].is_made)
            made = why;
        else if (out->host_why == NULL)
            out->host_why = why;
        out->all_by_host = out->all_by_host && out->how[i].by_host;
    }
    if (out->all_by_host && out->host_why == NULL)
        out->host_why = made;
}

/* Why a scene that does not fit is not decoded in bands; NULL: it may be. */
static const char *why_whole_scene(const struct pb_plan *plan)
{
    if (plan->layout.gate.chain != NULL)
        return pb_limit_reason(PB_LIMIT_DECODER_GATE);
    if (plan->layout.sums.chain.n > 0)
        return pb_limit_reason(PB_LIMIT_DECODER_ROUNDS);
    return NULL;
}

/* True if planes of the scene are managed memory. */
static bool has_managed(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    if (r->whole_said > 0)
        return r->said_managed;
    return r->traits->managed && plan->engine.whole.managed_why == NULL &&
           r->config->compute.buffers == PB_BUFFERS_MANAGED;
}

/* Sets the memory that decoding needs at least, and why that is not there. */
static void choose_memory(struct pb_plan *plan, const struct pb_plan_request *request)
{
    struct pb_plan_whole *whole = &plan->engine.whole;
    const uint64_t all = pb_plan_blocks_all(plan);
    const char *why_one_band = why_whole_scene(plan);
    whole->one_band = why_one_band != NULL ||
                      (!pb_chain_keeps_grid(plan->work.chain) && all <= whole->device_bytes);
    const uint64_t two_rows = whole->one_band ? all : pb_plan_blocks_least(plan);
    whole->least_bytes = all < two_rows ? all : two_rows;
    whole->managed = has_managed(plan, request);
    if (whole->managed) {
        whole->least_bytes = pb_plan_pages_least(plan);
        whole->planes_bytes = pb_plan_planes_bytes(plan);
    }
    if (whole->least_bytes <= whole->device_bytes)
        return;
    whole->why_not = whole->managed         ? pb_limit_reason(PB_LIMIT_DECODER_PLANES)
                     : why_one_band != NULL ? why_one_band
                                            : pb_limit_reason(PB_LIMIT_DECODER_ROWS);
    whole->why_bytes = whole->least_bytes;
}

/* Sets all but the reason for planes that are not managed. */
static void decide(struct pb_plan *plan, const struct pb_plan_request *request)
{
    struct pb_plan_whole *whole = &plan->engine.whole;
    const double n_cores = pb_plan_cores(request->config);
    *whole = (struct pb_plan_whole){.why_not = whole->why_not,
                                    .why_bytes = whole->why_bytes,
                                    .managed_why = whole->managed_why};
    find_how(plan, whole);
    if (whole->why_not == NULL)
        whole->why_not = pb_engine_refuses(
            PB_ENGINE_DECODER, &(struct pb_engine_case){.plan = plan, .request = request});
    if (whole->why_not != NULL)
        return;
    whole->device_bytes = request->config->compute.device_memory_bytes;
    if (whole->device_bytes == 0)
        whole->device_bytes = request->traits->memory_bytes / SHARE;
    whole->piece_bytes = piece_bytes(plan);
    whole->in_place = request->traits->integrated;
    set_shares(plan, request, n_cores, whole);
    choose_memory(plan, request);
    if (whole->why_not == NULL && request->config->compute.codecs == PB_CODECS_AUTO &&
        request->whole_said == 0 && (is_small(plan, n_cores) || is_small_of_host(plan, n_cores)))
        whole->why_not =
            whole->all_by_host ? whole->host_why : pb_limit_reason(PB_LIMIT_DECODER_SMALL);
    whole->used = whole->why_not == NULL;
    whole->keeps = whole->used && (request->whole_said == 0 || request->said_keeps) &&
                   plan->layout.gate.chain == NULL && !whole->managed &&
                   pb_plan_blocks_all(plan) <= whole->device_bytes;
}

void pb_plan_whole_set(struct pb_plan *plan, const struct pb_plan_request *request)
{
    struct pb_plan_whole *whole = &plan->engine.whole;
    const char *why = whole->managed_why;
    decide(plan, request);
    if (whole->used && whole->managed)
        return;
    whole->managed = false;
    whole->planes_bytes = 0;
    whole->managed_why =
        why != NULL ? why
                    : pb_engine_refuses(PB_ENGINE_MANAGED,
                                        &(struct pb_engine_case){.plan = plan, .request = request});
}

/* --- pixels that stay ------------------------------------------------------------------------- */

static bool has_band(const struct pb_plan_source *source, int32_t band)
{
    for (size_t k = 0; k < source->n_bands; k++)
        if (source->bands[k] == band)
            return true;
    return false;
}

static bool is_alone(const struct pb_plan *plan, size_t source)
{
    for (size_t i = 0; i < plan->work.n_sources; i++)
        if (i != source && plan->work.source[i].n_bands > 0 &&
            plan->work.source[i].window == plan->work.source[source].window)
            return false;
    return true;
}

/* Adds the bands of a source that only later passes read, after its own. */
static void add_later_bands(struct pb_plan *plan, size_t i)
{
    struct pb_plan_source *own = &plan->work.source[i];
    for (const struct pb_plan *later = plan->next; later != NULL; later = later->next)
        for (size_t k = 0; k < later->work.source[i].n_bands; k++)
            if (own->n_bands < PB_BANDS_MAX && !has_band(own, later->work.source[i].bands[k]))
                own->bands[own->n_bands++] = later->work.source[i].bands[k];
    own->n_later = own->n_bands;
}

bool pb_plan_whole_widen(struct pb_plan *plan, const struct pb_plan_request *request)
{
    struct pb_plan wide = *plan;
    bool more = false;
    for (size_t i = 0; i < plan->work.n_sources; i++)
        if (plan->work.source[i].n_bands > 0 && is_alone(plan, i)) {
            add_later_bands(&wide, i);
            more = more || wide.work.source[i].n_bands > plan->work.source[i].n_bands;
        }
    if (!more)
        return false;
    pb_plan_whole_set(&wide, request);
    if (!wide.engine.whole.keeps)
        return false;
    *plan = wide;
    return true;
}

bool pb_plan_whole_holds(const struct pb_plan *before, const struct pb_plan *plan)
{
    bool all = before->engine.whole.keeps && plan->engine.whole.used;
    for (size_t i = 0; i < plan->work.n_sources && all; i++)
        for (size_t k = 0; k < plan->work.source[i].n_bands && all; k++)
            all = has_band(&before->work.source[i], plan->work.source[i].bands[k]);
    return all;
}

/* --- sizes of what is made on the device ------------------------------------------------------ */

#define SLOT_LEAST (UINT64_C(1) << 20)

enum { REDUCE_FLIGHTS = 64 }; /* most tiles in flight */

/* From the fastest to the one that needs the least memory. */
static const struct {
    uint32_t strips;
    uint64_t batch_bytes; /* raw blocks of a batch */
} sizes[PB_OUT_SIZES] = {{4, 48 << 20}, {2, 16 << 20}, {1, 1}};

static uint32_t blocks(int32_t px, int32_t block_px)
{
    return (uint32_t)((px + block_px - 1) / block_px);
}

static int32_t halved(int32_t px, uint32_t level)
{
    return (int32_t)(((int64_t)px + (INT64_C(1) << level) - 1) >> level);
}

struct pb_encode_format pb_plan_out_format(const struct pb_plan_made *made, uint32_t layer)
{
    return layer == 0 ? made->blocks.format : pb_device_blocks_mask(&made->blocks);
}

bool pb_plan_out_makes(const struct pb_plan_made *made, uint32_t level)
{
    return !made->blocks.top_only || level == made->blocks.levels;
}

struct pb_out_level pb_plan_out_level(const struct pb_plan *plan, const struct pb_plan_made *made,
                                      uint32_t level)
{
    const struct pb_grid *g = &plan->layout.grid;
    const int32_t block_px = made->blocks.format.block_px;
    struct pb_out_level l = {.w = halved(g->image_w, level), .h = halved(g->image_h, level)};
    const int32_t rows = halved(g->side_px, level);
    l.rows = rows > block_px ? rows : block_px;
    l.row_px = (uint32_t)(aligned((uint64_t)l.w * sizeof(float)) / sizeof(float));
    l.plane_px = (uint64_t)l.row_px * (uint64_t)l.rows;
    return l;
}

bool pb_plan_out_has_planes(const struct pb_plan *plan)
{
    return plan->engine.out.host_planes != 0 || plan->is_earlier;
}

bool pb_plan_out_reduces(const struct pb_plan *plan, size_t i)
{
    return i < 64 && (plan->engine.out.reduced >> i & 1) != 0;
}

bool pb_plan_out_has_plane(const struct pb_plan *plan, uint32_t plane)
{
    return plane >= 64 || (plan->engine.out.host_planes >> plane & 1) != 0;
}

/* --- memory ---------------------------------------------------------------------------------- */

/* Sets the sizes for a layer of a product's blocks. */
static void size_layer(struct pb_plan_out *out, struct pb_plan_made *made, uint32_t layer,
                       uint64_t batch_bytes)
{
    const struct pb_encode_format format = pb_plan_out_format(made, layer);
    struct pb_encode_needs needs = {.raw_bytes = 1};
    (void)pb_encode_measure(&format, 1, &needs);
    uint64_t slot = needs.raw_bytes > needs.out_bytes ? needs.raw_bytes : needs.out_bytes;
    uint64_t n = batch_bytes / needs.raw_bytes;
    n = n < 1 ? 1 : n < made->row_blocks ? n : made->row_blocks;
    made->batch[layer] = (uint32_t)n;
    (void)pb_encode_measure(&format, (uint32_t)n, &needs);
    out->batch_most = n > out->batch_most ? (uint32_t)n : out->batch_most;
    if (needs.bytes > out->workspace_bytes)
        out->workspace_bytes = needs.bytes;
    if (needs.out_bytes > out->encoded_bytes)
        out->encoded_bytes = needs.out_bytes;
    slot += PB_BLOCK_SLOT_HEAD;
    out->slot_bytes = slot > out->slot_bytes ? slot : out->slot_bytes;
}

/* Adds the memory of the tables of values: one for each band, a spare one, and their parts as the
 * results of a batch. */
static void size_values(struct pb_plan_out *out, const struct pb_plan_made *made)
{
    const uint32_t most = made->blocks.values;
    const uint64_t table = aligned(pb_value_table_bytes(most)), part = sizeof(struct pb_value_part);
    const uint32_t parts = pb_value_table_parts(most);
    if (most == 0)
        return;
    out->device_bytes += made->blocks.format.n_bands * table;
    out->spare_bytes = table > out->spare_bytes ? table : out->spare_bytes;
    out->batch_most = parts > out->batch_most ? parts : out->batch_most;
    if (parts * part > out->encoded_bytes)
        out->encoded_bytes = parts * part;
    if (part + PB_BLOCK_SLOT_HEAD > out->slot_bytes)
        out->slot_bytes = part + PB_BLOCK_SLOT_HEAD;
}

/* Sets the sizes for batches of parts, which use the memory of encoded blocks. */
static void size_parts(const struct pb_plan *plan, struct pb_plan_out *out,
                       struct pb_plan_made *made, uint64_t batch_bytes)
{
    const uint64_t part = sizeof(struct pb_statistics_part), slot = part + PB_BLOCK_SLOT_HEAD;
    uint64_t n = batch_bytes / part;
    made->row_blocks = (uint32_t)plan->layout.grid.cols * made->blocks.format.n_bands;
    n = n < 1 ? 1 : n < made->row_blocks ? n : made->row_blocks;
    made->batch[0] = (uint32_t)n;
    out->batch_most = n > out->batch_most ? (uint32_t)n : out->batch_most;
    out->encoded_bytes = n * part > out->encoded_bytes ? n * part : out->encoded_bytes;
    out->slot_bytes = slot > out->slot_bytes ? slot : out->slot_bytes;
    size_values(out, made);
}

/* Bytes of all blocks of a product before compression: few blocks become larger. */
static uint64_t most_bytes(const struct pb_plan *plan, const struct pb_plan_made *made)
{
    const int32_t block_px = made->blocks.format.block_px;
    struct pb_encode_needs needs = {.raw_bytes = 0};
    uint64_t n = 0;
    (void)pb_encode_measure(&made->blocks.format, 1, &needs);
    for (uint32_t k = 0; k <= made->blocks.levels; k++)
        n += (uint64_t)blocks(halved(plan->layout.grid.image_w, k), block_px) *
             blocks(halved(plan->layout.grid.image_h, k), block_px);
    return made->blocks.format.with != PB_ENCODE_RAW ? n * needs.raw_bytes : 0;
}

static void size_product(const struct pb_plan *plan, struct pb_plan_out *out,
                         struct pb_plan_made *made, uint64_t batch_bytes)
{
    const struct pb_grid *g = &plan->layout.grid;
    const int32_t block_px = made->blocks.format.block_px;
    const int32_t side = g->side_px < g->image_h ? g->side_px : g->image_h;
    if (made->blocks.parts) {
        size_parts(plan, out, made, batch_bytes);
        return;
    }
    made->row_blocks =
        pb_plan_out_makes(made, 0) ? blocks(g->image_w, block_px) * blocks(side, block_px) : 0;
    for (uint32_t k = 1; k <= made->blocks.levels; k++) {
        const struct pb_out_level l = pb_plan_out_level(plan, made, k);
        if (pb_plan_out_makes(made, k))
            made->row_blocks += blocks(l.w, block_px) * blocks(l.rows, block_px);
        out->device_bytes += aligned(l.plane_px * made->n_planes * sizeof(float));
    }
    out->device_bytes += aligned(made->blocks.format.paint.n_steps * sizeof *made->blocks.steps);
    for (uint32_t layer = 0; layer < (made->blocks.has_mask ? 2u : 1u); layer++)
        size_layer(out, made, layer, batch_bytes);
    out->most_bytes += most_bytes(plan, made);
}

/* Bytes for the search of a valid pixel in tiles of another grid (run/whole/whole_valid.c). */
static uint64_t search_bytes(const struct pb_plan *plan)
{
    const uint64_t parts = PB_PLAN_LANES * (uint64_t)plan->work.outputs.n;
    return plan->work.warp != PB_CHAIN_NO_WARP ? aligned(parts * sizeof(struct pb_statistics_part))
                                               : 0;
}

static void size(const struct pb_plan *plan, struct pb_plan_out *out)
{
    const uint32_t strips = sizes[out->size].strips;
    const struct pb_grid *g = &plan->layout.grid;
    const struct pb_tile tile = {.core = {0, 0, g->side_px < g->image_w ? g->side_px : g->image_w,
                                          g->side_px < g->image_h ? g->side_px : g->image_h}};
    out->strips = strips < (uint32_t)g->rows ? strips : (uint32_t)g->rows;
    out->tile_bytes = aligned(pb_plan_out_bytes(plan, &tile));
    out->device_bytes = out->strips * (uint64_t)g->cols * out->tile_bytes;
    out->workspace_bytes = out->encoded_bytes = out->spare_bytes = 0;
    out->batch_most = 0;
    out->most_bytes = 0;
    out->slot_bytes = SLOT_LEAST;
    for (uint32_t i = 0; i < out->n; i++)
        size_product(plan, out, &out->made[i], sizes[out->size].batch_bytes);
    out->device_bytes += out->spare_bytes + search_bytes(plan);
    const uint64_t results = aligned(64 + out->batch_most * sizeof(struct pb_encoded));
    out->device_bytes +=
        PB_OUT_BATCHES * (aligned(out->workspace_bytes) + aligned(out->encoded_bytes) + results);
}

/* compute.device_memory for which the smallest size would fit, after fits() has failed. */
static uint64_t least_of_all(const struct pb_plan *plan, const struct pb_plan_out *out)
{
    const uint64_t beside = plan->engine.whole.least_bytes + out->device_bytes;
    return beside > 2 * out->device_bytes ? beside : 2 * out->device_bytes;
}

/* Memory of the device that decoding leaves. */
static uint64_t left_by_decoding(const struct pb_plan *plan)
{
    const uint64_t all = plan->engine.whole.device_bytes, least = plan->engine.whole.least_bytes;
    return all > least ? all - least : 0;
}

/* Returns true if it fits in addition to the memory for decoding. */
static bool fits(const struct pb_plan *plan, struct pb_plan_out *out)
{
    const uint64_t all = plan->engine.whole.device_bytes, left = left_by_decoding(plan);
    for (out->size = 0; out->size < PB_OUT_SIZES; out->size++) {
        size(plan, out);
        if (out->device_bytes <= left && out->device_bytes <= all / 2)
            return true;
    }
    return false;
}

/* --- products -------------------------------------------------------------------------------- */

/* Bit of a plane of tiles; a plane from the 64th on sets all bits. */
static uint64_t plane_bit(uint32_t plane)
{
    return plane < 64 ? UINT64_C(1) << plane : UINT64_MAX;
}

/* Bits of the planes of tiles that the product uses. */
static uint64_t planes_of(const struct pb_product_env *env, const struct pb_product_config *config)
{
    uint32_t plane[PB_BANDS_MAX];
    uint64_t bits = 0;
    int n = pb_product_bands(env, config, plane, NULL);
    for (int b = 0; b < n; b++)
        bits |= plane_bit(plane[b]);
    return n < 0 ? UINT64_MAX : bits;
}

/* Sets the first plane and their count up to the last one; format.plane counts from the first. */
static void place_planes(struct pb_plan_made *made)
{
    struct pb_encode_format *f = &made->blocks.format;
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t b = 0; b < pb_encode_planes(f); b++) {
        first = f->plane[b] < first ? f->plane[b] : first;
        last = f->plane[b] > last ? f->plane[b] : last;
    }
    made->first_plane = first;
    made->n_planes = last - first + 1;
    for (uint32_t b = 0; b < pb_encode_planes(f); b++)
        f->plane[b] = (uint16_t)(f->plane[b] - first);
}

/* True if rows of tiles make whole rows of blocks of a level, or some of them make such a row.
 */
static bool is_even(const struct pb_plan *plan, int32_t block_px)
{
    int32_t side = plan->layout.grid.side_px;
    while (side > block_px && side % 2 == 0)
        side /= 2;
    return side == block_px || pb_grid_count(&plan->layout.grid) == 1;
}

/* counts: values of bands may be counted there, in large tables. */
static const char *make_there(const struct pb_plan *plan, const struct pb_product_env *env,
                              size_t i, bool counts, struct pb_plan_out *out)
{
    const struct pb_product_config *config = env->pipeline->products[i];
    const struct pb_product_type *type = pb_product_type(config->kind);
    struct pb_plan_made made = {.product = (uint32_t)i};
    if (type->on_device == NULL)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_KIND);
    const char *why = type->on_device(env, config, &made.blocks);
    if (why != NULL)
        return why;
    if (!made.blocks.parts && !is_even(plan, made.blocks.format.block_px))
        return pb_limit_reason(PB_LIMIT_PRODUCTS_SIDE);
    place_planes(&made);
    if (made.blocks.n_join > 0 && made.n_planes > PB_JOIN_PLANES)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_BANDS);
    if (made.blocks.values > 0 && !counts)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_MEMORY);
    out->made[out->n++] = made;
    out->by_device |= UINT64_C(1) << i;
    return NULL;
}

/* True if the host looks for a valid pixel in all planes: of a tile of a grid, which has no
 * products without one, and of a step that warps, for a note, if pixels are sent to the host in any
 * case. */
static bool looks_for_valid(const struct pb_plan *plan, const struct pb_plan_request *r, uint32_t n)
{
    return plan->engine.whole.used &&
           (r->tile != NULL || (plan->work.warp != PB_CHAIN_NO_WARP && n == 0));
}

/* none: why no product is made there, or NULL. */
static struct pb_plan_out choose(const struct pb_plan *plan, const struct pb_plan_request *r,
                                 const char *none, bool counts)
{
    struct pb_plan_out out = {.n = 0};
    struct pb_product_env env;
    pb_plan_product_env(plan, r, &env);
    env.by_device = 0;
    for (size_t i = 0; i < r->pipeline->n_products; i++) {
        const struct pb_product_config *config = r->pipeline->products[i];
        if (pb_product_type(config->kind)->tile == NULL)
            continue;
        out.why[i] = none != NULL ? none : make_there(plan, &env, i, counts, &out);
        if (out.why[i] != NULL)
            out.host_planes |= planes_of(&env, config);
    }
    for (uint32_t k = 0; looks_for_valid(plan, r, out.n) && k < env.n_bands; k++)
        out.host_planes |= plane_bit(k);
    return out;
}

/* Uses the output side of another process, which has its products; only its planes are unchecked.
 */
static void take_said(struct pb_plan *plan, const struct pb_plan_out *said)
{
    bool good = plan->engine.whole.used && (said->n == 0 || !plan->is_earlier);
    plan->engine.out = *said;
    for (uint32_t i = 0; i < said->n; i++)
        good = good && said->made[i].first_plane + said->made[i].n_planes <= plan->work.outputs.n &&
               (said->made[i].blocks.parts || is_even(plan, said->made[i].blocks.format.block_px));
    if (!good)
        plan->engine.out.n = 0;
    else if (plan->engine.out.n > 0)
        size(plan, &plan->engine.out);
}

/* Adds planes that the host needs for whole images. */
static void add_image_planes(const struct pb_plan *plan, struct pb_plan_out *out)
{
    const struct pb_chain_image *image;
    const size_t n = pb_chain_images(plan->work.chain, &image);
    for (size_t i = 0; i < n; i++)
        out->host_planes |= plane_bit(image[i].output);
}

/* Output side of an earlier pass. As far as memory allows, percentiles and moments of one plane are
 * computed on the device, in this process; other reductions need planes on the host. */
static struct pb_plan_out of_earlier(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    struct pb_plan_out out = {.host_planes = UINT64_MAX};
    const struct pb_chain_reduction *reduction;
    const size_t n = pb_chain_reductions(plan->work.chain, &reduction);
    if (!plan->engine.whole.used || r->remote || r->whole_said != 0)
        return out;
    const uint64_t left = left_by_decoding(plan);
    out.host_planes = 0;
    for (size_t i = 0; i < n; i++) {
        const struct pb_reduce *reduce = &reduction[i].reduce;
        const uint64_t bytes = out.device_bytes + aligned(pb_chain_state_bytes(&reduction[i])) +
                               REDUCE_FLIGHTS * sizeof(struct pb_statistics_part);
        if (i < 64 && bytes <= left &&
            (reduce->kind == PB_REDUCE_PERCENTILES || reduce->kind == PB_REDUCE_MOMENTS)) {
            out.reduced |= UINT64_C(1) << i;
            out.device_bytes = bytes;
            continue;
        }
        for (uint32_t k = 0; k < reduce->n_inputs; k++)
            out.host_planes |= plane_bit(reduction[i].output[k]);
    }
    add_image_planes(plan, &out);
    return out;
}

void pb_plan_out(struct pb_plan *plan, const struct pb_plan_request *request)
{
    if (plan->is_earlier && request->said_out == NULL) {
        plan->engine.out = of_earlier(plan, request);
        return;
    }
    if (request->said_out != NULL) {
        take_said(plan, request->said_out);
        return;
    }
    const struct pb_engine_case facts = {.plan = plan, .request = request};
    const char *none = pb_engine_refuses(PB_ENGINE_PRODUCTS, &facts);
    struct pb_plan_out *out = &plan->engine.out;
    *out = choose(plan, request, none, true);
    if (out->n > 0 && !fits(plan, out)) {
        const uint64_t would_do = least_of_all(plan, out);
        *out = choose(plan, request, none, false);
        if (out->n > 0 && !fits(plan, out))
            *out = choose(plan, request, pb_limit_reason(PB_LIMIT_PRODUCTS_MEMORY), false);
        out->why_bytes = would_do;
    }
}
