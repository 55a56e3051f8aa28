/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/cog/cog_format.h"
#include "pipeline/codec/predictor.h"
#include "pipeline/cog/pyramid.h"

#include <math.h>

#define OVERVIEW_SIDE_PX 512
#define BLOCK_BYTES_MAX  (UINT64_C(1) << 30) /* largest block that readers accept */

double pb_cog_writer_nodata(const struct pb_cog_options *options)
{
    if (!options->has_nodata)
        return pb_type_is_float(options->type) ? (double)NAN : options->fill;
    return options->type == PB_F32 ? (double)(float)options->nodata : options->nodata;
}

static int fail(struct pb_err *err, const char *what)
{
    return pb_fail(err, PB_E_PIPELINE_PRODUCT, "cog: %s", what);
}

uint32_t pb_cog_writer_planes(const struct pb_cog_options *options)
{
    uint32_t n = options->n_bands;
    for (uint32_t b = 0; b < options->n_bands && b < PB_BANDS_MAX; b++)
        n += options->n_rest[b];
    return n;
}

static int check_rests(const struct pb_cog_options *o, struct pb_err *err)
{
    bool any = pb_cog_writer_planes(o) > o->n_bands;
    bool holds = o->painter == NULL && o->scale == 0 && pb_rest_planes(o->type) > 0;
    for (uint32_t b = 0; b < o->n_bands; b++)
        holds = holds && o->n_rest[b] <= PB_REST_MAX;
    return !any || holds ? 0 : fail(err, "this type has no room for all digits of a band");
}

int pb_cog_format(const struct pb_cog_options *o, struct pb_err *err, struct pb_block_format *out)
{
    struct pb_block_format format = {
        .block_px = o->block_px,
        .n_planes = pb_cog_writer_planes(o),
        .n_bands = o->painter != NULL ? pb_painter_channels(o->painter) : o->n_bands,
        .painter = o->painter,
        .scale = o->scale,
        .offset = o->offset,
    };
    bool alpha = o->painter != NULL && o->painter->alpha;
    if (o->n_bands < 1 || o->n_bands > PB_BANDS_MAX)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "cog: %u bands; 1 to %d can be written",
                       o->n_bands, PB_BANDS_MAX);
    if (o->block_px < 16 || o->block_px > 4096 || (o->block_px & (o->block_px - 1)) != 0)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "cog: blocksize %d; it must be a power of two up to 4096", o->block_px);
    if (o->grid->side_px % o->block_px != 0 && pb_grid_count(o->grid) != 1)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "cog: tiles of %d px cannot be cut into blocks of %d px", o->grid->side_px,
                       o->block_px);
    if (!o->has_nodata && !o->mask && !alpha && !pb_type_is_float(o->type))
        return fail(err, "an integer type needs a nodata value; add 'nodata:'");
    if (o->has_nodata && o->mask)
        return fail(err, "a mask and a nodata value exclude each other");
    if ((o->mask ? pb_quantizer_init_masked : pb_quantizer_init)(&format.quantizer, o->type,
                                                                 pb_cog_writer_nodata(o)) != 0)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "cog: nodata %g is not a value of type %s",
                       o->nodata, pb_type_name(o->type));
    format.codec = pb_codec_of(o->compress);
    if (format.codec->bands != 0 &&
        (o->type != PB_U8 || format.n_bands >= 32 ||
         (format.codec->bands >> format.n_bands & 1) == 0 || o->has_nodata))
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "cog: %s does not hold %u bands of %s%s",
                       format.codec->name, format.n_bands, pb_type_name(o->type),
                       o->has_nodata ? " with nodata" : "");
    if (pb_codec_level(format.codec, o->level, pb_type_is_float(o->type), &format.level) != 0)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "cog: %s has levels %d to %d, not %d",
                       format.codec->name, format.codec->min_level, format.codec->max_level,
                       o->level);
    format.predictor = o->predictor != 0 ? o->predictor : pb_predictor_auto(o->type);
    if (format.codec->encode == NULL || format.codec->bands != 0)
        format.predictor = PB_PREDICTOR_NONE;
    if (!pb_predictor_fits(format.predictor, o->type))
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "cog: predictor %d is not possible with type %s",
                       format.predictor, pb_type_name(o->type));
    if (pb_block_raw_bytes(&format) > BLOCK_BYTES_MAX)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "cog: a block of %d x %d px and %u bands has over 1 GiB; lower blocksize",
                       o->block_px, o->block_px, o->n_bands);
    *out = format;
    return check_rests(o, err);
}

uint32_t pb_cog_overviews(const struct pb_cog_options *o)
{
    int32_t side = o->block_px < OVERVIEW_SIDE_PX ? o->block_px : OVERVIEW_SIDE_PX;
    if (o->overviews == PB_OVERVIEWS_NONE)
        return 0;
    return pb_pyramid_levels(o->grid->image_w, o->grid->image_h, side);
}
