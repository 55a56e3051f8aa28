/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Blocks are decoded on the GPU if their source has a plain layout and a codec that the GPU can
 * decode; those of other sources are decoded by the host, and their pixels are sent in the same
 * slots. A block is one sequential task on the GPU: a few blocks are all decoded at the same time,
 * but slowly, and cores that decode several at a time finish earlier. */
#include "pipeline/plan/plan_whole.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/plan_gate.h"

#include "kernels/codec/decode_device.h"

enum {
    ALIGN = 256,       /* bytes; as PB_WHOLE_ALIGN (run/whole/whole_map.h) */
    PARTS_SHARE = 512, /* parts of a block exceed it by at most 1 / 512 */
    SHARE = 4,         /* jobs for which a GPU has memory, if not configured */
    FASTER = 2         /* factor over all cores from which a GPU decodes alone */
};

#define SHARED_MOST         (UINT64_C(8) << 20) /* limit of a decoded block that cores send */
#define CORE_BYTES_SECOND   250e6               /* decoding speed of a core */
#define SET_UP_SECONDS      0.1
#define DEVICE_BYTES_SECOND 90e6  /* decoding speed of a GPU for one block */
#define LINK_BYTES_SECOND   12e9  /* assumed for a link that was not measured */
#define SHARED_BYTES_SECOND 100e9 /* for memory that GPU and host share */

/* Decoding of the source; *why: why the host decodes some of it. */
static struct pb_raw_how how_of(const struct pb_plan_source *source,
                                const struct pb_raster_info *info, const char **why)
{
    const struct pb_engine_case facts = {.info = info};
    const char *own = pb_engine_refuses(PB_ENGINE_FILE, &facts);
    struct pb_raw_how how = {.by_host = own != NULL};
    if (source->has_mask)
        how.mask = how.by_host || info->alpha_band == 0 ? PB_RAW_MASK_HOST : PB_RAW_MASK_ALPHA;
    if (own == NULL && how.mask == PB_RAW_MASK_HOST)
        own = pb_limit_reason(PB_LIMIT_FILE_MASK);
    *why = own;
    return how;
}

/* Bytes of a pixel in the form in which it is sent. */
static uint64_t pixel_bytes(const struct pb_plan *plan, const struct pb_plan_request *r, size_t i)
{
    const struct pb_raster_info *info = pb_plan_info(plan, r, i);
    const struct pb_plan_source *source = &plan->work.source[i];
    return plan->engine.whole.how[i].by_host
               ? pb_type_bytes(info->type) * source->n_bands
               : pb_raster_sample_bytes(info) * (uint64_t)info->n_bands;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Upper bound of the bytes of a source's blocks on the device, stored and decoded. */
static uint64_t block_bytes(const struct pb_plan *plan, const struct pb_plan_request *r, size_t i)
{
    const struct pb_raster_info *info = pb_plan_info(plan, r, i);
    const struct pb_plan_source *source = &plan->work.source[i];
    const struct pb_raw_how *how = &plan->engine.whole.how[i];
    uint32_t w = (uint32_t)info->block_w, h = (uint32_t)info->block_h;
    uint64_t planes = info->pixel_interleaved ? 1 : source->n_bands,
             sample = pixel_bytes(plan, r, i);
    if (how->by_host) {
        pb_raw_blocks_stand_in(info, &w, &h);
        planes = source->n_bands;
        sample = pb_type_bytes(info->type);
    } else if (!info->pixel_interleaved) {
        sample = pb_raster_sample_bytes(info);
    }
    const uint64_t cells =
        (((uint64_t)info->width + w - 1) / w) * (((uint64_t)info->height + h - 1) / h);
    const uint64_t block = aligned((uint64_t)w * h * sample);
    const uint64_t masks = source->has_mask ? cells * aligned((uint64_t)w * h) : 0;
    if (how->by_host || !pb_raster_is_compressed(info)) /* sent in parts */
        return cells * planes * (block + block / PARTS_SHARE + ALIGN) + masks;
    return info->file_bytes + cells * planes * (block + ALIGN) + 2 * masks;
}

/* Upper bound of the bytes of the sources on the device, as blocks and as planes; and those of a
 * gate. */
static uint64_t all_bytes(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    uint64_t bytes = pb_plan_gate_device_bytes(plan);
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = pb_plan_info(plan, r, i);
        const struct pb_plan_source *source = &plan->work.source[i];
        const uint64_t w = (uint64_t)info->width;
        const uint64_t row = aligned(w * pb_type_bytes(source->type)) * source->n_bands +
                             aligned(w) * source->has_mask;
        if (source->n_bands > 0)
            bytes += block_bytes(plan, r, i) + (uint64_t)info->height * row;
    }
    return bytes;
}

/* Upper estimate of the bytes of two bands of one row of tiles each. */
static uint64_t least_bytes(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = pb_plan_info(plan, r, i);
        uint64_t rows = (uint64_t)plan->layout.grid.side_px + 2 * (uint64_t)plan->work.halo;
        rows += pb_raster_is_compressed(info) ? 2 * (uint64_t)info->block_h : 0;
        rows = rows < (uint64_t)info->height ? rows : (uint64_t)info->height;
        const struct pb_plan_source *source = &plan->work.source[i];
        uint64_t plane =
            pb_type_bytes(source->type) * source->n_bands + (uint64_t)2 * source->has_mask;
        if (source->n_bands > 0)
            bytes += 2 * rows * (uint64_t)info->width * (plane + 2 * pixel_bytes(plan, r, i));
    }
    return bytes;
}

static double cores(const struct pb_plan_request *r)
{
    int32_t threads = r->config->compute.threads;
    return threads > 0 ? threads : (double)pb_device_cores();
}

/* True if the host would decode all before the GPU has decoded one block. */
static bool is_small(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    double host = 0, device = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = pb_plan_info(plan, r, i);
        double pixel = (double)pb_raster_sample_bytes(info) * info->n_bands;
        double block = (double)info->block_w * info->block_h * pixel;
        if (plan->work.source[i].n_bands == 0 || !pb_raster_is_compressed(info) ||
            plan->engine.whole.how[i].by_host)
            continue;
        block = info->pixel_interleaved ? block : block / info->n_bands;
        host += (double)info->width * info->height * pixel / CORE_BYTES_SECOND;
        device = block / DEVICE_BYTES_SECOND > device ? block / DEVICE_BYTES_SECOND : device;
    }
    return device > 0 && host / cores(r) < device;
}

/* True if the host decodes all before setting up a GPU's memory would pay. */
static bool is_small_of_host(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    double host = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = pb_plan_info(plan, r, i);
        double pixel = (double)pb_raster_sample_bytes(info) * info->n_bands;
        if (plan->work.source[i].n_bands > 0)
            host += (double)info->width * info->height * pixel / CORE_BYTES_SECOND;
    }
    return plan->engine.whole.all_by_host && host / cores(r) < SET_UP_SECONDS;
}

bool pb_plan_whole_is_vain(const struct pb_plan *plan, const struct pb_plan_request *request)
{
    return plan->engine.whole.used && plan->engine.whole.all_by_host && plan->engine.out.n == 0 &&
           request->config->compute.codecs == PB_CODECS_AUTO && request->whole_said == 0;
}

/* Largest decoded size of a compressed block in bytes. */
static uint64_t decoded_bytes(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    uint64_t most = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = pb_plan_info(plan, r, i);
        uint64_t bytes = pb_raster_sample_bytes(info) * (uint64_t)info->block_w *
                         (uint64_t)info->block_h *
                         (info->pixel_interleaved ? (uint64_t)info->n_bands : 1);
        if (plan->work.source[i].n_bands > 0 && pb_raster_is_compressed(info) &&
            !plan->engine.whole.how[i].by_host && bytes > most)
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
static void set_shares(const struct pb_plan *plan, const struct pb_plan_request *r,
                       struct pb_plan_whole *whole)
{
    uint64_t decoded = decoded_bytes(plan, r);
    const struct wic_gpu *gpu = &r->traits->gpu;
    whole->streams = gpu->multiprocessors * pb_decode_streams_each(gpu->shared_bytes);
    whole->core_rate = CORE_BYTES_SECOND;
    whole->device_rate = whole->streams > 0 ? whole->streams * DEVICE_BYTES_SECOND : 1;
    whole->link_rate = whole->in_place ? SHARED_BYTES_SECOND : LINK_BYTES_SECOND;
    whole->shares =
        r->config->compute.codecs == PB_CODECS_AUTO && decoded > 0 && decoded <= SHARED_MOST &&
        (r->whole_said > 0 ? r->whole_said == 2 : pb_plan_whole_shares(whole->streams, cores(r)));
    if (whole->shares && whole->piece_bytes < decoded)
        whole->piece_bytes = (decoded + 4095) / 4096 * 4096;
}

/* Largest size of a block that is sent at once, in bytes. */
static uint64_t piece_bytes(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    uint64_t most = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = pb_plan_info(plan, r, i);
        uint64_t row = pb_raster_sample_bytes(info) * (uint64_t)info->n_bands *
                       (uint64_t)(info->tiled ? info->block_w : info->width);
        uint64_t bytes = pb_raster_is_compressed(info) ? info->stored_block_bytes : row;
        uint64_t mask = (uint64_t)info->block_w * (uint64_t)info->block_h;
        if (plan->engine.whole.how[i].by_host)
            bytes = pb_raw_blocks_stand_in_bytes(info);
        else if (pb_raster_is_compressed(info) &&
                 plan->engine.whole.how[i].mask == PB_RAW_MASK_HOST && bytes < mask)
            bytes = mask;
        if (plan->work.source[i].n_bands > 0 && bytes > most)
            most = bytes;
    }
    return (most + 4095) / 4096 * 4096;
}

/* Blocks that the host decodes are read as a whole, each once. */
struct pb_plan_decoding pb_plan_whole_decoding(const struct pb_plan *plan,
                                               const struct pb_plan_request *request)
{
    struct pb_plan_decoding out = {.readers = plan->layout.readers, .decodes = 1.0};
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = pb_plan_info(plan, request, i);
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

static void find_how(const struct pb_plan *plan, const struct pb_plan_request *r,
                     struct pb_plan_whole *out)
{
    out->all_by_host = true;
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const char *why = NULL;
        if (plan->work.source[i].n_bands == 0)
            continue;
        out->how[i] = how_of(&plan->work.source[i], pb_plan_info(plan, r, i), &why);
        out->host_why = out->host_why != NULL ? out->host_why : why;
        out->all_by_host = out->all_by_host && out->how[i].by_host;
    }
}

/* Why a scene that does not fit is not decoded in bands; NULL: it may be. */
static const char *why_whole_scene(const struct pb_plan *plan)
{
    if (!pb_chain_keeps_grid(plan->work.chain))
        return pb_limit_reason(PB_LIMIT_DECODER_GRID);
    if (plan->layout.gate.chain != NULL)
        return pb_limit_reason(PB_LIMIT_DECODER_GATE);
    if (plan->layout.sums.chain.n > 0)
        return pb_limit_reason(PB_LIMIT_DECODER_ROUNDS);
    return NULL;
}

struct pb_plan_whole pb_plan_whole(const struct pb_plan *plan,
                                   const struct pb_plan_request *request)
{
    struct pb_plan_whole whole = {.why_not = plan->engine.whole.why_not,
                                  .why_bytes = plan->engine.whole.why_bytes};
    const char *why_one_band = NULL;
    struct pb_plan with_how = *plan;
    find_how(plan, request, &whole);
    with_how.engine.whole = whole;
    plan = &with_how;
    if (whole.why_not == NULL)
        whole.why_not = pb_engine_refuses(
            PB_ENGINE_DECODER, &(struct pb_engine_case){.plan = plan, .request = request});
    if (whole.why_not != NULL)
        return whole;
    whole.device_bytes = request->config->compute.device_memory_bytes;
    if (whole.device_bytes == 0)
        whole.device_bytes = request->traits->memory_bytes / SHARE;
    whole.piece_bytes = piece_bytes(plan, request);
    whole.in_place = request->traits->integrated;
    set_shares(plan, request, &whole);
    whole.least_bytes = all_bytes(plan, request);
    why_one_band = why_whole_scene(plan);
    whole.one_band = why_one_band != NULL;
    if (!whole.one_band && least_bytes(plan, request) < whole.least_bytes)
        whole.least_bytes = least_bytes(plan, request);
    if (whole.one_band && all_bytes(plan, request) > whole.device_bytes)
        whole.why_not = why_one_band;
    else if (least_bytes(plan, request) > whole.device_bytes &&
             all_bytes(plan, request) > whole.device_bytes)
        whole.why_not = pb_limit_reason(PB_LIMIT_DECODER_ROWS);
    else if (request->config->compute.codecs == PB_CODECS_AUTO && request->whole_said == 0 &&
             (is_small(plan, request) || is_small_of_host(plan, request)))
        whole.why_not =
            whole.all_by_host ? whole.host_why : pb_limit_reason(PB_LIMIT_DECODER_SMALL);
    whole.used = whole.why_not == NULL;
    whole.keeps = whole.used && !request->remote && request->whole_said == 0 &&
                  plan->layout.gate.chain == NULL && all_bytes(plan, request) <= whole.device_bytes;
    if (!whole.used && whole.least_bytes > whole.device_bytes)
        whole.why_bytes = whole.least_bytes;
    return whole;
}
