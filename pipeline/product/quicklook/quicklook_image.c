/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/file_out.h"
#include "pipeline/product/quicklook/png.h"
#include "pipeline/product/quicklook/quicklook_inside.h"
#include "pipeline/product/quicklook/quicklook_sheet.h"

#include <stdio.h>
#include <stdlib.h>

bool pb_quicklook_is_sheet(const struct pb_product_config *config)
{
    return ((const struct pb_quicklook_config *)config)->layout == PB_QUICKLOOK_SHEET;
}

static void picture_size(const struct quicklook *q, int32_t *out_w, int32_t *out_h)
{
    *out_w = q->turn.transposed ? q->how.target_h : q->how.target_w;
    *out_h = q->turn.transposed ? q->how.target_w : q->how.target_h;
}

static struct pb_sheet sheet_of(const struct quicklook *q)
{
    int32_t w, h;
    picture_size(q, &w, &h);
    return pb_sheet_of(q->n_pictures, w, h);
}

/* Size of the whole image. */
void pb_quicklook_image_size(const struct quicklook *q, int32_t *out_w, int32_t *out_h)
{
    const struct pb_sheet sheet = sheet_of(q);
    picture_size(q, out_w, out_h);
    if (pb_quicklook_is_sheet(&q->config->product)) {
        *out_w = pb_sheet_width(&sheet);
        *out_h = pb_sheet_height(&sheet);
    }
}

static void fill_picture(void *user, uint32_t i, int32_t y, uint8_t *out)
{
    const struct quicklook *q = user;
    const struct pb_painter *painter = &q->colours[i].painter;
    const uint32_t channels = pb_painter_channels(painter);
    int32_t w, h;
    picture_size(q, &w, &h);
    for (int32_t x = 0; x < w; x++, out += channels)
        pb_painter_row(painter, q->shown + i,
                       pb_turn_pixel(&q->turn, w, h, x, y, (size_t)q->how.target_w), 1, out);
}

static void fill_row(void *user, uint32_t y, uint8_t *out)
{
    struct quicklook *q = user;
    const struct pb_sheet sheet = sheet_of(q);
    if (pb_quicklook_is_sheet(&q->config->product))
        pb_sheet_row(&sheet, (int32_t)y, pb_painter_channels(&q->colours[0].painter), q->name,
                     fill_picture, q, out);
    else
        fill_picture(q, 0, (int32_t)y, out);
}

int pb_quicklook_write_png(const struct quicklook *q, struct pb_err *err,
                           struct pb_product_result *out)
{
    const bool sheet = pb_quicklook_is_sheet(&q->config->product);
    int32_t w, h;
    pb_quicklook_image_size(q, &w, &h);
    /* The keys have no colon, because GDAL would cut them there. */
    const struct pb_png_text texts[] = {
        {"Title", pb_product_base(q->env)},
        {"Software", "pushbroom " PB_VERSION},
        {"pushbroom.stretch", sheet ? "each band by itself" : q->colours[0].ends},
        {"pushbroom.colours", q->colours[0].colours},
        {"pushbroom.orientation", pb_turn_text(&q->turn)},
    };
    struct pb_png_options options = {
        .width = (uint32_t)w,
        .height = (uint32_t)h,
        .channels = (int)pb_painter_channels(&q->colours[0].painter),
        .texts = texts,
        .n_texts = sizeof texts / sizeof *texts,
        .row = fill_row,
        .user = (void *)(uintptr_t)q,
    };
    struct pb_file_out *file = NULL;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", q->env->directory, out->file) < 0)
        return pb_fail(err, PB_E_MEMORY, "no memory to write %s", out->file);
    int rc = pb_file_out_create(path, q->env->checksum, err, &file);
    if (rc == 0) {
        pb_file_out_watch(file, q->env->progress);
        rc = pb_png_write(file, &options, err);
    }
    if (rc == 0) {
        out->bytes = pb_file_out_at(file);
        rc = pb_file_out_finish(file, err, out->checksum);
    }
    pb_file_out_destroy(file);
    free(path);
    return rc;
}
