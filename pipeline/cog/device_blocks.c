/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The device compresses like deflate's defaults. For all other codecs, those of pictures as well,
 * it makes raw blocks, which the host compresses. */
#include "pipeline/device/engine_limits.h"
#include "pipeline/cog/device_blocks.h"
#include "pipeline/cog/cog_format.h"
#include "pipeline/cog/mask_encoder.h"
#include "pipeline/paint/paint_steps.h"

static enum pb_encode_with with_of(const struct pb_codec *codec, int level, size_t sample_bytes)
{
    if (codec != &pb_codec_deflate)
        return PB_ENCODE_RAW;
    if (level == codec->default_level)
        return sample_bytes > 1 ? PB_ENCODE_PAIRS : PB_ENCODE_INTEGERS;
    return level == codec->default_float_level ? PB_ENCODE_RUNS : PB_ENCODE_RAW;
}

const char *pb_device_blocks_of(const struct pb_cog_options *options, const uint32_t *plane,
                                const struct pb_paint_steps *steps, struct pb_device_blocks *out)
{
    struct pb_block_format format = {.codec = &pb_codec_none};
    struct pb_encode_needs needs;
    if (options->painter != NULL && steps == NULL)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_PAINTED);
    if (pb_cog_writer_planes(options) > options->n_bands)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_DIGITS);
    if (pb_cog_format(options, NULL, &format) != 0)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_FORMAT);
    *out = (struct pb_device_blocks){
        .format = {.block_px = options->block_px,
                   .n_bands = format.n_bands,
                   .scale = format.scale,
                   .offset = format.offset,
                   .quantizer = format.quantizer,
                   .predictor = format.predictor,
                   .with =
                       with_of(format.codec, format.level, pb_type_bytes(format.quantizer.type)),
                   .repeats = format.codec->bands != 0},
        .has_mask = options->mask,
        .mask_with = with_of(pb_mask_codec(format.codec), pb_codec_deflate.default_level, 1),
        .levels = pb_cog_overviews(options),
        .nearest = options->overviews == PB_OVERVIEWS_NEAREST,
        .n_join = (uint32_t)__builtin_popcountll(options->join.planes),
        .any = options->join.any,
        .fill = options->join.fill,
    };
    if (options->painter != NULL) {
        out->format.paint = pb_paint_of(options->painter, steps);
        out->steps = steps->step;
    }
    for (uint32_t b = 0; b < pb_encode_planes(&out->format); b++)
        out->format.plane[b] = (uint16_t)plane[b];
    const struct pb_encode_format mask = pb_device_blocks_mask(out);
    if (pb_encode_measure(&out->format, 1, &needs) != 0 ||
        (out->has_mask && pb_encode_measure(&mask, 1, &needs) != 0))
        return pb_limit_reason(PB_LIMIT_PRODUCTS_FORMAT);
    return NULL;
}

void pb_device_parts_of(uint32_t n, const uint32_t *plane, uint32_t values,
                        struct pb_device_blocks *out)
{
    *out = (struct pb_device_blocks){
        .parts = true, .values = values, .format = {.block_px = 64, .n_bands = n}};
    for (uint32_t b = 0; b < n; b++)
        out->format.plane[b] = (uint16_t)plane[b];
}

struct pb_pixel_join pb_device_blocks_join(const struct pb_device_blocks *blocks)
{
    struct pb_pixel_join join = {.any = blocks->any, .fill = blocks->fill};
    for (uint32_t b = 0; b < blocks->n_join; b++)
        join.planes |= UINT64_C(1) << blocks->format.plane[b];
    return join;
}

struct pb_encode_format pb_device_blocks_mask(const struct pb_device_blocks *blocks)
{
    struct pb_encode_format mask = blocks->format;
    mask.n_bands = pb_encode_planes(&blocks->format);
    mask.paint = (struct pb_paint){.n_planes = 0};
    mask.repeats = false;
    mask.mask = true;
    mask.any = blocks->any;
    mask.predictor = PB_PREDICTOR_NONE;
    mask.with = blocks->mask_with;
    return mask;
}
