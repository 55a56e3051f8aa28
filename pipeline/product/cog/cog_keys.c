/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Keys of a COG, and the checks of keys against each other: a type and its nodata, a codec and
 * its level. */
#include "pipeline/product/cog/cog_paint.h"
#include "pipeline/product/joint.h"
#include "pipeline/product/product_kinds.h"

#include "config/product_check.h"
#include "config/units.h"
#include "pipeline/paint/stretch.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static const struct pb_key keys[] = {
    PB_PRODUCT_KEY_NAME(struct pb_cog_config, "indices"),
    PB_PRODUCT_KEY_BANDS(struct pb_cog_config, "[NDVI, EVI, WATER]", PB_PRODUCT_EVERY_BAND),
    {.name = "type",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_cog_config, type),
     .choices = "uint8|int16|uint16|int32|uint32|float32|float64",
     .def = "float32",
     .doc =
         "Pixel type. Integers are rounded to nearest even, saturated, and need a nodata. Values "
         "are "
         "computed in float32; a band of int32, uint32 or float64 that no step changes keeps all "
         "its digits in its own type."},
    {.name = "compress",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_cog_config, compress),
     .choices = "none|deflate|zstd|lzw|jpeg|webp",
     .def = "deflate",
     .doc = "Compression. jpeg and webp are for uint8 to look at, and lose: jpeg with one band or "
            "three and a mask, webp with three and a mask or an alpha band."},
    {.name = "level",
     .type = PB_KEY_INT,
     .offset = offsetof(struct pb_cog_config, level),
     .max = 22,
     .def = "0",
     .doc = "Compression level: deflate 1 to 12, zstd 1 to 22; 0 = the usual one. Levels 1 to 9 of "
            "deflate, and all of zstd for floats, are limits: each block is encoded faster where "
            "that costs less than 1 percent of its size."},
    {.name = "quality",
     .type = PB_KEY_INT,
     .offset = offsetof(struct pb_cog_config, quality),
     .max = 100,
     .def = "0",
     .doc = "Of jpeg and webp, 1 to 100; 0 is 75. webp at 100 loses nothing."},
    {.name = "predictor",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_cog_config, predictor),
     .choices = "auto|none|horizontal|float",
     .def = "auto",
     .doc = "TIFF predictor; auto is horizontal for integers and float for floats."},
    {.name = "blocksize",
     .type = PB_KEY_POWER,
     .offset = offsetof(struct pb_cog_config, blocksize),
     .min = 64,
     .max = 4096,
     .def = "512",
     .doc = "Side of a block in pixels, a power of two."},
    {.name = "blocks",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_cog_config, blocks),
     .choices = "auto|encode",
     .def = "auto",
     .doc = "auto takes compressed blocks over from the scene's file: where the bands are all of "
            "the file's, in its order and unchanged, and type, compress, predictor and blocksize "
            "are the file's, too. Pixels are the same as with encode: a block in which one would "
            "be stored as another value is compressed again. With a level all are."},
    {.name = "overviews",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_cog_config, overviews),
     .choices = "auto|average|nearest|none",
     .def = "auto",
     .doc =
         "How the smaller copies are made; average leaves nodata out. auto is average for floats, "
         "nearest for integers, for scenes with a palette and for bands of a few values (where, "
         "<) or that steps round (cast), which may be classes."},
    {.name = "nodata",
     .type = PB_KEY_NODATA,
     .offset = offsetof(struct pb_cog_config, nodata),
     .more = offsetof(struct pb_cog_config, has_nodata),
     .example = "-9999",
     .doc = "Stored value of invalid pixels; floats without this key: NaN."},
    {.name = "scale",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct pb_cog_config, scale),
     .more = offsetof(struct pb_cog_config, has_scale),
     .min = -1e12,
     .max = 1e12,
     .example = "0.0001",
     .doc = "Stores (value - offset) / scale, with both in the file's tags and the STAC item, so "
            "that readers get value = stored * scale + offset. Not given: values as they are, and "
            "the tags that the files have for a band whose numbers are theirs or means of them."},
    {.name = "offset",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct pb_cog_config, offset),
     .min = -1e12,
     .max = 1e12,
     .def = "0",
     .doc = "See scale."},
    {.name = "unit",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_cog_config, unit),
     .example = "m",
     .doc = "Unit of the values, such as m or K; not given: the scene's, of a band that no step "
            "changes."},
    {.name = "classes",
     .type = PB_KEY_CONSTANTS,
     .offset = offsetof(struct pb_cog_config, classes),
     .example = "{water: 6, snow: 11}",
     .doc = "Names of values of a band of classes, for the STAC item (classification:classes, with "
            "the colours of its palette); a GeoTIFF has no tag for them. Overviews are of the "
            "nearest pixel then."},
    {.name = "mask",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_cog_config, mask),
     .choices = "false|true",
     .def = "false",
     .doc = "In place of nodata: a mask inside the file marks the valid pixels (see valid), and "
            "every value may be one. For pictures of 8 bits; lossy codecs keep no nodata. "
            "Overviews are valid where one of their pixels is, and average those."},
    PB_JOINT_KEY(struct pb_cog_config,
                 "Of several bands with one mask or alpha band, and of pictures: all = a pixel is "
                 "valid where every band is; any = where at least one is, and the others have "
                 "their stored value there (the file's nodata, else 0; floats NaN). auto: any for "
                 "pictures of three bands of 8 bits, else all."),
    {.name = "stretch",
     .type = PB_KEY_PAIR,
     .offset = offsetof(struct pb_cog_config, paint.stretch),
     .more = offsetof(struct pb_cog_config, paint.has_stretch),
     .example = "[2, 98]",
     .doc = "Makes a picture of 8 bits: exact percentiles of the whole image, found in a pass "
            "before, become black and white, or the two ends of the ramp. Of one band or three "
            "(red, green, blue)."},
    PB_PAINT_KEYS(struct pb_cog_config, paint),
    {.name = "alpha",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_cog_config, alpha),
     .choices = "auto|false|true",
     .def = "auto",
     .doc = "A last band with the opacity of each pixel, 0 where it is invalid: for uint8 with one "
            "band or three. auto: in pictures that have neither nodata nor mask."},
};

static void check_scale(const struct pb_cog_config *cog, const struct pb_product_check *check)
{
    if (pb_product_key_is_sound(check, "scale") && cog->has_scale && cog->scale == 0)
        pb_product_key_wrong(check, "scale",
                             "cog.scale: 0 would make every value the same; write the size of one "
                             "stored step, such as 0.0001");
}

/* Checks that each name has a different value that the one band of the product may have. */
static void check_classes(const struct pb_cog_config *cog, const struct pb_product_check *check)
{
    const struct pb_items *classes = &cog->classes;
    if (classes->n == 0 || !pb_product_key_is_sound(check, "classes"))
        return;
    if (cog->is_painted)
        pb_product_key_wrong(check, "classes",
                             "cog.classes is for values, and a picture has levels; leave it out");
    if (pb_product_key_is_sound(check, "bands") && cog->product.n_bands != 1)
        pb_product_key_wrong(check, "classes",
                             "cog.classes names the values of one band; write bands: [CLASS], and "
                             "a product of its own for each such band");
    for (size_t i = 0; i < classes->n; i++) {
        const struct pb_item *one = &classes->items[i];
        if (one->num != floor(one->num) || one->num < INT32_MIN || one->num > UINT32_MAX)
            pb_product_key_wrong(check, "classes",
                                 "cog.classes: %.40s: %.40s is no whole number of 32 bits, as "
                                 "values of classes are",
                                 one->key, one->text);
        for (size_t k = 0; k < i; k++)
            if (classes->items[k].num == one->num)
                pb_product_key_wrong(check, "classes",
                                     "cog.classes: %.40s and %.40s are names of one value, %.40s",
                                     classes->items[k].key, one->key, one->text);
    }
}

static bool is_picture_codec(const struct pb_cog_config *cog)
{
    return cog->compress == PB_COMPRESS_JPEG || cog->compress == PB_COMPRESS_WEBP;
}

static bool is_true(const struct pb_cog_config *cog)
{
    return cog->alpha == PB_COG_ALPHA_YES;
}

/* Adds a stretch of the bands as a step of the product. */
static void stretch_bands(struct pb_cog_config *cog, const struct pb_product_check *check)
{
    const struct pb_paint_config *paint = &cog->paint;
    char params[160], label[120], low[PB_UNITS_TEXT], high[PB_UNITS_TEXT];
    size_t length;
    const char *method =
        pb_key_choice("percentiles|minmax|stddev|equalize", paint->method, &length);
    (void)pb_units_number_text(paint->stretch[0], low);
    (void)pb_units_number_text(paint->stretch[1], high);
    if (paint->method == PB_STRETCH_PERCENTILES) {
        (void)snprintf(label, sizeof label, "[%s, %s]", low, high);
        (void)snprintf(params, sizeof params, "percentiles: %s", label);
    } else if (paint->method == PB_STRETCH_STDDEV) {
        (void)snprintf(params, sizeof params, "method: stddev, deviations: %s",
                       pb_units_number_text(paint->deviations, low));
        (void)snprintf(label, sizeof label, "[stddev %s]", low);
    } else {
        (void)snprintf(params, sizeof params, "method: %.*s", (int)length, method);
        (void)snprintf(label, sizeof label, "[%.*s]", (int)length, method);
    }
    pb_product_stretch(check, &cog->product, params, label);
}

/* Checks a picture: uint8, with one band or three, and with an alpha band unless configured
 * otherwise. */
static void check_picture(struct pb_cog_config *cog, const struct pb_product_check *check)
{
    struct pb_paint_config *paint = &cog->paint;
    size_t n = cog->product.n_bands;
    pb_paint_check(paint, n, check);
    cog->is_painted = paint->is_asked || is_true(cog);
    if (!cog->is_painted || !pb_product_key_is_sound(check, "type"))
        return;
    if (!pb_product_key_is_given(check, "type"))
        cog->type = PB_U8;
    if (cog->type != PB_U8)
        pb_product_key_wrong(
            check, "type",
            "cog: pictures (ramp, colours, range, stretch, gamma, shade, alpha) are of uint8, "
            "not of %s; leave the type out",
            pb_type_name(cog->type));
    if (n != 1 && n != 3 && paint->chosen == NULL && pb_product_key_is_sound(check, "bands"))
        pb_product_key_wrong(check, "bands",
                             "cog: a picture has one band or three (red, green, blue), not %zu; "
                             "write bands: [R, G, B]",
                             n);
    if (paint->chosen != NULL && pb_ramp_needs_range(paint->chosen) && !paint->has_range &&
        !paint->has_stretch)
        pb_product_key_wrong(
            check, paint->colours != NULL ? "colours" : "ramp",
            "cog: which values are the two ends of the ramp? write range: [-1, 1], "
            "or stretch: [2, 98]");
    /* JPEG has no alpha: a mask marks transparent pixels. */
    if (cog->compress == PB_COMPRESS_JPEG && cog->alpha == PB_COG_ALPHA_AUTO && !cog->has_nodata)
        cog->mask = 1;
    cog->has_alpha =
        is_true(cog) || (cog->alpha == PB_COG_ALPHA_AUTO && !cog->mask && !cog->has_nodata);
    if (is_true(cog) && (cog->mask || cog->has_nodata))
        pb_product_key_wrong(check, "alpha",
                             "cog.alpha means the same as %s; leave one of the two out",
                             cog->mask ? "mask: true" : "nodata");
    const char *other = cog->has_scale ? "scale" : cog->offset != 0 ? "offset" : "unit";
    if (cog->has_scale || cog->offset != 0 || cog->unit != NULL)
        pb_product_key_wrong(check, other,
                             "cog.%s is for values, and a picture has levels; leave it out", other);
    if (!paint->has_range) { /* the step makes 0 to 1; alpha alone does not change levels */
        paint->range[0] = 0;
        paint->range[1] = paint->has_stretch ? 1 : UINT8_MAX;
    }
    if (paint->has_stretch && (n == 1 || n == 3))
        stretch_bands(cog, check);
    pb_paint_take_shade(paint, &cog->product, check);
}

static void check_nodata(struct pb_cog_config *cog, const struct pb_product_check *check)
{
    static const struct {
        double min, max;
    } ranges[PB_TYPE_COUNT] = {
        [PB_U8] = {0, UINT8_MAX},       [PB_I16] = {INT16_MIN, INT16_MAX},
        [PB_U16] = {0, UINT16_MAX},     [PB_I32] = {INT32_MIN, INT32_MAX},
        [PB_U32] = {0, UINT32_MAX},     [PB_F32] = {-(double)FLT_MAX, (double)FLT_MAX},
        [PB_F64] = {-DBL_MAX, DBL_MAX},
    };
    enum pb_type type = cog->type;
    bool is_float = type == PB_F32 || type == PB_F64;
    double nodata = cog->nodata, min = ranges[type].min, max = ranges[type].max;
    char low[PB_UNITS_TEXT], high[PB_UNITS_TEXT];
    if (!pb_product_key_is_sound(check, "type") || !pb_product_key_is_sound(check, "nodata") ||
        !pb_product_key_is_sound(check, "mask"))
        return;
    if (cog->mask && cog->has_nodata) {
        pb_product_key_wrong(check, "nodata",
                             "cog.nodata means nothing with mask: true; leave one of the two out");
        return;
    }
    if (!cog->has_nodata) {
        if (!is_float && !cog->mask && !cog->has_alpha)
            pb_product_key_wrong(
                check, "type",
                "cog: %s cannot hold invalid pixels without a nodata value; add one, such as "
                "nodata: %s, or mask: true",
                pb_type_name(type), min < 0 ? pb_units_number_text(min, low) : "0");
        else
            cog->nodata = (double)NAN;
        return;
    }
    if (isnan(nodata) ? is_float
                      : nodata >= min && nodata <= max && (is_float || nodata == floor(nodata)))
        return;
    if (is_float)
        pb_product_key_wrong(
            check, "nodata",
            "cog.nodata: %.80s does not fit %s; allowed: .nan, and numbers up to %.2g either side",
            pb_product_key_text(check, "nodata"), pb_type_name(type), max);
    else
        pb_product_key_wrong(
            check, "nodata",
            "cog.nodata: %.80s does not fit %s; allowed: whole numbers from %s to %s",
            pb_product_key_text(check, "nodata"), pb_type_name(type),
            pb_units_number_text(min, low), pb_units_number_text(max, high));
}

/* Checks that the codec stores pictures, and its limits. */
static void check_picture_codec(const struct pb_cog_config *cog,
                                const struct pb_product_check *check)
{
    const char *codec = pb_compress_name(cog->compress);
    bool jpeg = cog->compress == PB_COMPRESS_JPEG;
    size_t n = cog->paint.chosen != NULL ? 3 : cog->product.n_bands;
    if (cog->type != PB_U8)
        pb_product_key_wrong(check, "compress",
                             "cog.compress: %s stores pictures of uint8, not %s; write type: "
                             "uint8, or use deflate or zstd",
                             codec, pb_type_name(cog->type));
    else if (pb_product_key_is_sound(check, "bands") && n != 3 && !(jpeg && n == 1))
        pb_product_key_wrong(check, "compress",
                             "cog.compress: %s stores %s, not %zu; name them in bands, or use "
                             "deflate or zstd",
                             codec, jpeg ? "one band or three" : "three bands", n);
    if (cog->has_nodata)
        pb_product_key_wrong(check, "nodata",
                             "cog.nodata: %s loses it, as values near it change; write mask: true "
                             "in its place",
                             codec);
    if (jpeg && cog->has_alpha)
        pb_product_key_wrong(check, "alpha",
                             "cog.alpha: jpeg stores no alpha; write mask: true in its place");
    if (cog->predictor != 0)
        pb_product_key_wrong(check, "predictor",
                             "cog.predictor means nothing with compress: %s; leave the key out",
                             codec);
}

static void check_codec(const struct pb_cog_config *cog, const struct pb_product_check *check)
{
    enum pb_compress compress = cog->compress;
    enum pb_type type = cog->type;
    int32_t level = cog->level;
    if (!pb_product_key_is_sound(check, "compress") || !pb_product_key_is_sound(check, "type"))
        return;
    bool packs = compress == PB_COMPRESS_DEFLATE || compress == PB_COMPRESS_ZSTD;
    bool picture = is_picture_codec(cog);
    if (picture)
        check_picture_codec(cog, check);
    if (level && !packs)
        pb_product_key_wrong(check, "level", "cog.level: %s has no levels; %s",
                             pb_compress_name(compress),
                             picture ? "write quality" : "leave the key out");
    if (cog->quality && !picture)
        pb_product_key_wrong(check, "quality",
                             "cog.quality is of jpeg and webp, and %s loses nothing; leave the "
                             "key out",
                             pb_compress_name(compress));
    if (compress == PB_COMPRESS_DEFLATE && level > 12)
        pb_product_key_wrong(check, "level", "cog.level: deflate has no level %d; allowed: 1 to 12",
                             level);
    if (cog->predictor > 1 && compress == PB_COMPRESS_NONE)
        pb_product_key_wrong(check, "predictor",
                             "cog.predictor means nothing with compress: none; leave the key out");
    if (cog->predictor == 3 && type != PB_F32 && type != PB_F64)
        pb_product_key_wrong(
            check, "predictor",
            "cog.predictor: float is for float32 and float64, not for %s; use horizontal or auto",
            pb_type_name(type));
}

/* With nodata each band has its own valid pixels. */
static void check_valid(const struct pb_cog_config *cog, const struct pb_product_check *check)
{
    if (cog->valid != PB_JOINT_AUTO && !cog->mask && !cog->is_painted &&
        pb_product_key_is_sound(check, "valid") && pb_product_key_is_sound(check, "mask"))
        pb_product_key_wrong(check, "valid",
                             "cog.valid is for products with a mask or an alpha band, and for "
                             "pictures; with nodata each band has valid pixels of its own; leave "
                             "it out, or write mask: true");
}

static void check_keys(struct pb_product_config *product, const struct pb_product_check *check)
{
    struct pb_cog_config *cog = (struct pb_cog_config *)product;
    check_picture(cog, check);
    check_nodata(cog, check);
    check_valid(cog, check);
    check_codec(cog, check);
    check_scale(cog, check);
    check_classes(cog, check);
    if (cog->is_painted)
        pb_cog_find_steps(cog, check);
}

/* Returns the band whose values have names. */
static const char *class_band_of(const struct pb_product_config *product)
{
    const struct pb_cog_config *cog = (const struct pb_cog_config *)product;
    return cog->classes.n > 0 && product->n_bands == 1 ? product->bands[0] : NULL;
}

const struct pb_product_kind pb_kind_cog = {
    .section = {"cog", "A cloud-optimized GeoTIFF.", keys, sizeof keys / sizeof keys[0]},
    .bytes = sizeof(struct pb_cog_config),
    .class_band = class_band_of,
    .check = check_keys,
};
