/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A quicklook whose pyramid is made by a device: of all its levels only the blocks of the level
 * for the picture are copied to the host, as float32 samples with the bands of a pixel
 * interleaved. */
#include "pipeline/device/engine_limits.h"
#include "pipeline/cog/cog_writer.h"
#include "pipeline/cog/device_blocks.h"
#include "pipeline/codec/predictor.h"
#include "pipeline/codec/quantize.h"
#include "pipeline/product/quicklook/quicklook_inside.h"

#include <math.h>

/* A block of few bands is as large as the pyramid's; a block of many bands is limited to
 * BLOCK_BYTES. */
enum { BLOCK_BYTES = 1 << 20, BLOCK_LEAST_PX = 64 };

static int32_t block_px_of(const struct pb_grid *grid, uint32_t n_bands)
{
    int32_t px;
    (void)pb_quicklook_grid(grid, &px);
    while (px > BLOCK_LEAST_PX && (size_t)px * (size_t)px * n_bands * sizeof(float) > BLOCK_BYTES)
        px /= 2;
    return px;
}

const char *pb_quicklook_on_device(const struct pb_product_env *env,
                                   const struct pb_product_config *config,
                                   struct pb_device_blocks *out)
{
    uint32_t plane[PB_BANDS_MAX];
    struct pb_encode_needs needs;
    const struct pb_shrink how = pb_quicklook_sizes(env, config);
    const int n = pb_quicklook_planes(env, config, plane, NULL);
    if (n < 1)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_UNKNOWN);
    *out = (struct pb_device_blocks){
        .format = {.block_px = block_px_of(env->grid, (uint32_t)n),
                   .n_bands = (uint32_t)n,
                   .predictor = PB_PREDICTOR_NONE,
                   .with = PB_ENCODE_RAW},
        .levels = (uint32_t)how.level,
        .nearest = pb_quicklook_shows_classes(
            env, (const struct pb_quicklook_config *)(const void *)config),
        .top_only = true,
    };
    for (int b = 0; b < n; b++)
        out->format.plane[b] = (uint16_t)plane[b];
    const struct pb_pixel_join join = pb_quicklook_join(env, config, plane, (uint32_t)n);
    out->n_join = (uint32_t)__builtin_popcountll(join.planes);
    out->any = join.any;
    out->fill = join.fill;
    if (pb_quantizer_init(&out->format.quantizer, PB_F32, NAN) != 0 ||
        pb_encode_measure(&out->format, 1, &needs) != 0)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_FORMAT);
    return NULL;
}

void pb_quicklook_take(const float *from, size_t step, int32_t w, float *to)
{
    for (int32_t i = 0; i < w; i++) {
        const float value = from[(size_t)i * step];
        to[i] = isfinite(value) ? value : NAN;
    }
}

int pb_quicklook_block(void *product, const struct pb_cog_block *block, uint32_t worker,
                       struct pb_err *err)
{
    struct quicklook *q = product;
    const int64_t side = block_px_of(q->env->grid, q->n_bands);
    const int64_t x = block->col * side, y = block->row * side;
    const float *const from = block->data;
    (void)worker;
    if (block->level != (uint32_t)q->how.level || !block->raw || block->mask ||
        x >= q->how.source_w || y >= q->how.source_h ||
        block->bytes != (uint64_t)(side * side) * q->n_bands * sizeof(float))
        return pb_fail(err, PB_E_SYSTEM, "a block of a quicklook that is none of its");
    const int64_t w = q->how.source_w - x < side ? q->how.source_w - x : side;
    const int64_t h = q->how.source_h - y < side ? q->how.source_h - y : side;
    for (int64_t row = 0; row < h; row++)
        for (uint32_t b = 0; b < q->n_bands; b++)
            pb_quicklook_take(from + (size_t)(row * side) * q->n_bands + b, q->n_bands, (int32_t)w,
                              q->level[b] + (y + row) * q->how.source_w + x);
    return 0;
}
