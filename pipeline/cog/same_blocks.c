/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The file's blocks were decoded before, because the planes are made from them. Therefore a damaged
 * block has failed the run already, and the bytes that are read here are those that were decoded;
 * or the file was changed meanwhile, which fails the run at its end.
 *
 * Pixels outside the image keep the values in the file's block if both images end
 * there. If a crop ends within a block, they would be pixels that the crop leaves out. */
#include "pipeline/cog/same_blocks.h"

#include "kernels/pixel.h"
#include "pipeline/codec/predictor.h"
#include "pipeline/profile/work.h"

#include <float.h>
#include <math.h>

/* Range of values that move away from nodata: from `least` to `most`. */
struct near {
    float least, most;
};

/* True if all are finite and none moves. */
PB_CLONES static bool row_is_kept(const float *restrict row, size_t n, struct near near)
{
    uint32_t others = 0;
    for (size_t i = 0; i < n; i++)
        others |= (uint32_t) !(fabsf(row[i]) <= FLT_MAX) |
                  ((uint32_t)(row[i] >= near.least) & (uint32_t)(row[i] <= near.most));
    return others == 0;
}

/* Nodata alone; for floats all values between its neighbours. With a mask: empty. */
static struct near near_of(const struct pb_quantizer *quantizer)
{
    const float nodata = (float)quantizer->nodata;
    if (!(quantizer->below != quantizer->nodata))
        return (struct near){NAN, NAN};
    if (!pb_type_is_float(quantizer->type) || !(quantizer->below < quantizer->above))
        return (struct near){nodata, nodata};
    return (struct near){nextafterf((float)quantizer->below, INFINITY),
                         nextafterf((float)quantizer->above, -INFINITY)};
}

static bool is_kept(const struct pb_block_format *format, const struct pb_same_block *block)
{
    const struct near near = near_of(&format->quantizer);
    for (uint32_t b = 0; b < format->n_bands; b++)
        for (int32_t y = 0; y < block->pixels.h; y++) {
            size_t at;
            const float *row = pb_block_row(&block->pixels, y, &at)[b] + at;
            if (!row_is_kept(row, (size_t)block->pixels.w, near))
                return false;
        }
    return true;
}

/* True if the file's block has only the product's pixels. */
static bool ends_alike(const struct pb_same_blocks *same, int32_t side,
                       const struct pb_same_block *block)
{
    int64_t right = (int64_t)block->col * side + block->pixels.w + same->dx;
    int64_t bottom = (int64_t)block->row * side + block->pixels.h + same->dy;
    return (block->pixels.w == side || right == same->width) &&
           (block->pixels.h == side || bottom == same->height);
}

int pb_same_block_take(const struct pb_same_blocks *same, const struct pb_block_format *format,
                       const struct pb_same_block *block, struct pb_block_encoder *encoder,
                       struct pb_err *err, const void **out_data, size_t *out_bytes)
{
    int32_t side = format->block_px;
    size_t room = 0, bytes = 0;
    *out_bytes = 0;
    if (same->raster == NULL || block->pixels.upper == NULL || !ends_alike(same, side, block) ||
        !(same->certain || is_kept(format, block)))
        return 0;
    void *data = pb_block_encoder_room(encoder, &room);
    int rc =
        pb_raster_stored_block(same->raster, block->col + (uint32_t)(same->dx / side),
                               block->row + (uint32_t)(same->dy / side), data, room, err, &bytes);
    if (rc < 0)
        return rc;
    bool taken = format->codec->is_common == NULL || format->codec->is_common(data, bytes);
    *out_data = data;
    *out_bytes = taken ? bytes : 0;
    return 0;
}
