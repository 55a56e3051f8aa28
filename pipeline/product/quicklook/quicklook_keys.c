/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/joint.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/product/quicklook/quicklook.h"

#include "config/product_check.h"

static const struct pb_key keys[] = {
    PB_PRODUCT_KEY_NAME(struct pb_quicklook_config, "preview"),
    PB_PRODUCT_KEY_BANDS(struct pb_quicklook_config, "[R, G, B]",
                         "One band (grey, by a ramp, or in the colours of its own table) or three "
                         "(red, green, blue); without this key: the first three, or the first."),
    {.name = "size",
     .type = PB_KEY_INT,
     .offset = offsetof(struct pb_quicklook_config, size_px),
     .min = 16,
     .max = 16384,
     .def = "1024",
     .doc = "Longest side in pixels."},
    {.name = "layout",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_quicklook_config, layout),
     .choices = "picture|sheet",
     .def = "picture",
     .doc = "picture: of one band or three; sheet: a contact sheet of the bands that the steps "
            "made, or those of bands, "
            "each with its name and a stretch of its own."},
    PB_JOINT_KEY(
        struct pb_quicklook_config,
        "Of three bands: any = a pixel is shown where at least one is valid, and the "
        "others have their stored value there (the file's nodata, else black); all = where "
        "every band is. auto is any."),
    {.name = "stretch",
     .type = PB_KEY_PAIR,
     .offset = offsetof(struct pb_quicklook_config, paint.stretch),
     .more = offsetof(struct pb_quicklook_config, paint.has_stretch),
     .sample = "[2, 98]",
     .example = "[2, 98]",
     .doc = "Percentiles of the pixels shown that become the two ends of the ramp, or black and "
            "white; [2, 98] without this key and without range."},
    PB_PAINT_KEYS(struct pb_quicklook_config, paint),
};

static void check_keys(struct pb_product_config *product, const struct pb_product_check *check)
{
    struct pb_quicklook_config *config = (struct pb_quicklook_config *)product;
    bool sheet = config->layout == PB_QUICKLOOK_SHEET;
    size_t n = product->n_bands;
    if (!sheet && pb_product_key_is_sound(check, "bands") && n != 0 && n != 1 && n != 3)
        pb_product_key_wrong(check, "bands",
                             "quicklook.bands has %zu bands; write one (grey) or three (red, "
                             "green, blue), or layout: sheet",
                             n);
    struct pb_paint_config *paint = &config->paint;
    if (sheet && paint->shade != NULL)
        pb_product_key_wrong(check, "shade",
                             "shade is for one picture, and layout: sheet has one of each band; "
                             "leave the key out");
    pb_paint_check(paint, sheet ? 1 : n, check);
    paint->is_asked = paint->is_asked || sheet; /* levels, not a colour table */
    if (sheet)
        paint->shade = NULL;
    if (!paint->has_stretch) {
        paint->stretch[0] = 2;
        paint->stretch[1] = 98;
    }
    pb_paint_take_shade(paint, product, check);
}

const struct pb_product_kind pb_kind_quicklook = {
    .section = {"quicklook", "A PNG to look at, transparent where invalid.", keys,
                sizeof keys / sizeof keys[0]},
    .bytes = sizeof(struct pb_quicklook_config),
    .check = check_keys,
};
