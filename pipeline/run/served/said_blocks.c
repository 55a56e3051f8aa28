/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/served/said_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COMPRESSION_NONE = 1 };

/* --- the requesting process ------------------------------------------------------------------- */

static void say_layout(const struct pb_raw_blocks *blocks, const struct pb_raster *raster,
                       struct pb_served_layout *out)
{
    const struct pb_block_layout *l = blocks->layout;
    *out = (struct pb_served_layout){.block_w = (int32_t)l->block_w,
                                     .block_h = (int32_t)l->block_h,
                                     .tiled = l->tiled,
                                     .planar = l->planar,
                                     .big_endian = l->big_endian,
                                     .compression = l->compression,
                                     .predictor = l->predictor,
                                     .by_host = blocks->how.by_host,
                                     .alpha_band = blocks->alpha_band,
                                     .mask = pb_raster_info(raster)->mask_blocks,
                                     .stored_max = pb_raster_info(raster)->stored_block_bytes,
                                     .file_bytes = pb_raster_info(raster)->file_bytes};
    if (l->predictor < 1 || l->predictor > 3) /* unused with this codec */
        out->predictor = 1;
    if (out->mask.compression == COMPRESSION_NONE)
        out->mask.predictor = 1;
    memcpy(out->fill, blocks->fill->sample, sizeof out->fill);
}

/* Layout for a source that the pass does not read: any valid one. */
static const struct pb_served_layout unread = {
    .block_w = 256, .block_h = 256, .by_host = 1, .compression = COMPRESSION_NONE, .predictor = 1};

/* Sends the stored sizes of n blocks. */
static int send_sizes(const struct pb_block_place *place, uint64_t n, struct pb_served_tail *tail,
                      struct pb_err *err)
{
    uint32_t *bytes = malloc((n + 1) * sizeof *bytes);
    if (bytes == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    for (uint64_t i = 0; i < n; i++)
        bytes[i] = place[i].bytes < UINT32_MAX ? (uint32_t)place[i].bytes : UINT32_MAX;
    int rc = pb_served_tail_add(tail, bytes, n * sizeof *bytes, err);
    free(bytes);
    return rc;
}

static int say_source(const struct pb_raster *raster, const struct pb_raw_how *how,
                      struct pb_served_layout *out_layout, struct pb_served_tail *tail,
                      struct pb_err *err)
{
    struct pb_raw_blocks blocks = {.n = 0};
    int rc = pb_raw_blocks_open(&blocks, raster, how, err);
    if (rc == 0)
        say_layout(&blocks, raster, out_layout);
    if (rc == 0 && !how->by_host)
        rc = send_sizes(blocks.place, blocks.n_image, tail, err);
    if (rc == 0 && how->mask == PB_RAW_MASK_BLOCKS)
        rc = send_sizes(blocks.place + blocks.n_image, blocks.n - blocks.n_image, tail, err);
    pb_raw_blocks_free(&blocks);
    return rc;
}

int pb_said_blocks_make(const struct pb_plan *plan, const struct pb_raster *const *raster,
                        struct pb_served_request *request, struct pb_served_tail *tail,
                        struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < request->n_sources && rc == 0; i++) /* whole images are no facts */
        if (plan->work.source[i].n_bands > 0)
            rc = say_source(raster[i], &plan->engine.whole.how[i], &request->source[i].layout, tail,
                            err);
        else
            request->source[i].layout = unread;
    return rc;
}

/* --- the serving process ---------------------------------------------------------------------- */

static void count_blocks(struct pb_block_layout *l)
{
    l->across = ((uint32_t)l->width + l->block_w - 1) / l->block_w;
    l->down = ((uint32_t)l->height + l->block_h - 1) / l->block_h;
    l->block_bytes = l->row_bytes * l->block_h;
}

/* The request was checked: sizes are positive, and their products have at most 63 bits. */
static void take_layout(const struct pb_served_source *said, struct pb_block_layout *out)
{
    const struct pb_served_layout *l = &said->layout;
    size_t sample = pb_type_bytes((enum pb_type)said->type);
    bool planar = l->planar != 0 && said->n_bands > 1;
    *out = (struct pb_block_layout){
        .width = said->w,
        .height = said->h,
        .bands = said->n_bands,
        .big_endian = l->big_endian != 0,
        .tiled = l->tiled != 0,
        .planar = planar,
        .block_w = (uint32_t)l->block_w,
        .block_h = (uint32_t)l->block_h,
        .bits = (uint32_t)(8 * sample),
        .compression = (uint16_t)l->compression,
        .predictor = (uint16_t)l->predictor,
        .group_w = 1,
        .group_h = 1,
        .row_bytes = (uint64_t)l->block_w * sample * (planar ? 1 : (uint64_t)said->n_bands),
    };
    count_blocks(out);
}

static void take_mask(const struct pb_served_source *said, struct pb_block_layout *out)
{
    const struct pb_mask_blocks *m = &said->layout.mask;
    *out =
        (struct pb_block_layout){.width = said->w,
                                 .height = said->h,
                                 .bands = 1,
                                 .tiled = m->tiled,
                                 .block_w = (uint32_t)m->block_w,
                                 .block_h = (uint32_t)m->block_h,
                                 .bits = m->bits,
                                 .compression = m->compression,
                                 .predictor = m->predictor,
                                 .group_w = 1,
                                 .group_h = 1,
                                 .row_bytes = ((uint64_t)m->block_w * (uint64_t)m->bits + 7) / 8};
    count_blocks(out);
}

/* Takes the stored sizes of n blocks. */
static int take_sizes(const struct pb_block_layout *l, uint64_t stored_max,
                      struct pb_served_tail *tail, uint64_t n, struct pb_block_place *out)
{
    const uint32_t *bytes = pb_served_tail_take(tail, n, sizeof *bytes);
    if (bytes == NULL)
        return -EPROTO;
    for (uint64_t k = 0; k < n; k++) {
        out[k].bytes = bytes[k];
        if (l->compression != COMPRESSION_NONE && bytes[k] > stored_max)
            return -EPROTO;
    }
    return 0;
}

/* Takes a source whose blocks files store. */
static int take_source(struct pb_said_blocks *said, size_t i, const struct pb_raw_how *how,
                       const struct pb_served_source *from, struct pb_served_tail *tail)
{
    struct pb_raw_blocks *blocks = &said->blocks[i];
    struct pb_block_layout *l = &said->layout[i];
    take_layout(from, l);
    memcpy(said->fill[i].sample, from->layout.fill, sizeof said->fill[i].sample);
    blocks->layout = l;
    blocks->fill = &said->fill[i];
    blocks->how = *how;
    blocks->alpha_band = from->layout.alpha_band;
    blocks->n = blocks->n_image = pb_block_layout_count(l);
    if (how->mask == PB_RAW_MASK_BLOCKS) {
        take_mask(from, &said->mask[i]);
        blocks->mask = &said->mask[i];
        blocks->n += pb_block_layout_count(blocks->mask);
    }
    if (blocks->n > (tail->bytes - tail->at) / sizeof(uint32_t))
        return -EPROTO;
    blocks->place = calloc(blocks->n, sizeof *blocks->place);
    if (blocks->place == NULL)
        return -ENOMEM;
    int rc = take_sizes(l, from->layout.stored_max, tail, blocks->n_image, blocks->place);
    if (rc == 0 && blocks->mask != NULL)
        rc = take_sizes(blocks->mask, from->layout.mask.stored_max, tail,
                        blocks->n - blocks->n_image, blocks->place + blocks->n_image);
    return rc;
}

int pb_said_blocks_take(const struct pb_plan *plan, const struct pb_served_request *request,
                        struct pb_served_tail *tail, struct pb_err *err,
                        struct pb_said_blocks **out)
{
    struct pb_said_blocks *said = calloc(1, sizeof *said);
    int rc = said == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < plan->work.n_sources && rc == 0; i++) {
        const struct pb_raw_how *how = &plan->engine.whole.how[i];
        if (plan->work.source[i].n_bands > 0 && how->by_host)
            rc = pb_raw_blocks_open_made(&said->blocks[i], &plan->work.info[i], how, err);
        else if (plan->work.source[i].n_bands > 0)
            rc = take_source(said, i, how, &request->source[i], tail);
    }
    if (rc == 0) {
        *out = said;
        return 0;
    }
    pb_said_blocks_free(said);
    return rc == -ENOMEM ? pb_fail(err, PB_E_MEMORY, "out of memory for the stream")
                         : pb_fail(err, PB_E_SERVICE_PROTOCOL,
                                   "sizes of blocks that do not fit the layout of their scene");
}

void pb_said_blocks_free(struct pb_said_blocks *said)
{
    for (size_t i = 0; said != NULL && i < PB_FILES_MAX; i++)
        pb_raw_blocks_free(&said->blocks[i]);
    free(said);
}
