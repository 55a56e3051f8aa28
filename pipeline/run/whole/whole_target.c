/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Layout of pixels in pieces, and their destination on the device: samples are written to the
 * planes of their source, masks to the plane of bytes after them. Interleaved alpha samples are
 * extracted from the blocks in a second step. */
#include "pipeline/run/whole/whole_inside.h"

#include "pipeline/codec/predictor.h"

/* --- forms ----------------------------------------------------------------------------------- */

static enum pb_device_codec codec_of(const struct pb_block_layout *l)
{
    return l->compression == 1   ? PB_DEVICE_STORED
           : l->compression == 5 ? PB_DEVICE_LZW
                                 : PB_DEVICE_DEFLATE;
}

static uint32_t predictor_of(const struct pb_block_layout *l)
{
    return l->compression == 1 ? 1 : l->predictor;
}

/* Lists the samples of a pixel that the plan needs. */
static void list_samples(struct pb_unpredict_form *form, const struct pb_plan_source *from,
                         const struct pb_block_layout *l)
{
    form->n_planes = l->planar ? 1 : (uint32_t)from->n_bands;
    for (size_t k = 0; k < form->n_planes && form->n_samples > 1; k++)
        form->sample[k] = (uint16_t)(from->bands[k] - 1);
}

/* Form of blocks that are not stored, whose pixels are made here. */
static struct pb_unpredict_form as_fill(struct pb_unpredict_form form)
{
    form.predictor = 1;
    form.swap = 0;
    return form;
}

/* Form of masks that have a byte or a bit a pixel. */
static struct pb_unpredict_form form_of_mask(const struct pb_block_layout *l, uint32_t bits,
                                             uint32_t predictor)
{
    return (struct pb_unpredict_form){
        .as = bits == 1 ? PB_UNPREDICT_BITS : PB_UNPREDICT_SAMPLES,
        .sample_bytes = 1,
        .predictor = predictor,
        .n_samples = 1,
        .block_w = l->block_w,
        .n_planes = 1,
    };
}

/* Form of an alpha band, of which a mask is made. */
static struct pb_unpredict_form form_of_alpha(const struct whole_source *source, enum pb_type type)
{
    struct pb_unpredict_form form = source->form;
    const bool is_inside = !source->blocks.layout->planar;
    form.as = type == PB_U8 ? PB_UNPREDICT_SAMPLES : PB_UNPREDICT_MASK;
    form.type = type;
    form.n_planes = 1;
    form.sample[0] = (uint16_t)(is_inside ? source->blocks.alpha_band - 1 : 0);
    return form;
}

static void make_mask_forms(struct whole_source *source, enum pb_type type)
{
    const struct pb_block_layout *l = source->blocks.layout, *own = source->blocks.mask;
    const enum pb_raw_mask mask = source->blocks.how.mask;
    const bool is_inside = mask == PB_RAW_MASK_ALPHA && !l->planar;
    source->mask_form = source->form;
    if (mask == PB_RAW_MASK_HOST)
        source->mask_form = form_of_mask(l, 8, 1);
    else if (mask == PB_RAW_MASK_ALPHA)
        source->mask_form = form_of_alpha(source, type);
    else if (mask == PB_RAW_MASK_BLOCKS)
        source->mask_form = form_of_mask(own, own->bits, predictor_of(own));
    source->mask_codec = own != NULL ? codec_of(own) : source->codec;
    source->mask_fill_form = as_fill(source->mask_form);
    source->alpha_form = source->mask_form;
    source->alpha_form.n_planes = is_inside;
    source->alpha_fill_form = as_fill(source->alpha_form);
}

void whole_forms(struct pb_exec_whole *e, uint32_t i)
{
    struct whole_source *source = &e->source[i];
    const struct pb_block_layout *l = source->blocks.layout;
    source->codec = codec_of(l);
    source->form = (struct pb_unpredict_form){
        .sample_bytes = l->bits / 8,
        .predictor = predictor_of(l),
        .swap = l->big_endian && l->predictor != PB_PREDICTOR_FLOAT,
        .n_samples = l->planar ? 1 : (uint32_t)l->bands,
        .block_w = l->block_w,
    };
    list_samples(&source->form, &e->map.plan->work.source[i], l);
    source->fill_form = as_fill(source->form);
    make_mask_forms(source, e->map.plan->work.source[i].type);
}

/* --- targets --------------------------------------------------------------------------------- */

/* An address in the band's memory: rows above the band's first one are skipped. */
static struct pb_unpredict_block place(const struct pb_exec_whole *e,
                                       const struct pb_whole_piece *piece, uint64_t at,
                                       uint64_t row_bytes, uint64_t sample_bytes)
{
    uint32_t w = e->map.plan->work.source[piece->source].window;
    uint32_t number = e->map.group[piece->group].band;
    int32_t first = e->map.band[number].y[w], above = first - piece->rect.y;
    above = above > 0 ? above : 0;
    return (struct pb_unpredict_block){
        .out = e->room[number % 2].pixels + at +
               (uint64_t)(piece->rect.y + above - first) * row_bytes +
               (uint64_t)piece->rect.x * sample_bytes,
        .row_bytes = row_bytes,
        .top = (uint32_t)above,
        .w = (uint32_t)piece->rect.w,
        .h = piece->rect.h > above ? (uint32_t)(piece->rect.h - above) : 0,
    };
}

struct pb_unpredict_block whole_alpha_target(const struct pb_exec_whole *e,
                                             const struct pb_whole_piece *piece)
{
    const struct pb_whole_window *window =
        &e->map.window[e->map.plan->work.source[piece->source].window];
    return place(e, piece, window->mask_at, window->mask_row_bytes, 1);
}

struct pb_unpredict_block whole_target(const struct pb_exec_whole *e,
                                       const struct pb_whole_piece *piece)
{
    const struct pb_plan_source *from = &e->map.plan->work.source[piece->source];
    const struct pb_block_layout *l = e->source[piece->source].blocks.layout;
    const struct pb_whole_window *window = &e->map.window[from->window];
    uint64_t plane = from->plane;
    if (piece->is_mask)
        return whole_alpha_target(e, piece);
    for (size_t k = 0; k < from->n_bands && l->planar; k++)
        if ((uint32_t)from->bands[k] == piece->plane + 1)
            plane = from->plane + k;
    struct pb_unpredict_block block =
        place(e, piece, window->at + plane * window->plane_bytes, window->row_bytes, l->bits / 8);
    block.plane_bytes = window->plane_bytes;
    return block;
}
