/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * mask: from the classes or bits of a quality band, or the range of measurements, which pixels are
 * kept. The dropped pixels are found first, as 1, 0 or invalid where nothing is known; growing
 * them is a focal operation for each 7 pixels; kept is what is left. */
#include "kernels/expr/band_list.h"
#include "kernels/expr/gate_args.h"
#include "kernels/expr/mask_grow.h"
#include "kernels/expr/mask_values.h"
#include "kernels/nearest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ABOVE, BELOW };

struct mask {
    struct pb_items name, band, bands;
    char *preset;
    struct pb_items drop, keep, drop_bits, keep_bits;
    int32_t grow, shape, gate, otsu;
    bool has_otsu;
    struct pb_items apply;
};

#define WORDS(member, text)                                                                        \
    {                                                                                              \
        .name = #member, .type = PB_KEY_WORDS, .offset = offsetof(struct mask, member),            \
        .doc = (text)                                                                              \
    }

static const struct pb_key keys[] = {
    {.name = "name",
     .type = PB_KEY_BAND,
     .offset = offsetof(struct mask, name),
     .makes_one = true,
     .doc = "The mask as a band for later steps and products: 1 kept, 0 dropped."},
    {.name = "band",
     .type = PB_KEY_BAND,
     .offset = offsetof(struct mask, band),
     .names_classes = true,
     .doc =
         "The quality band, whose values are classes or bits; input.scale does not apply to them."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct mask, bands),
     .doc = "In place of band: measurements that must all be in the range keep; or one, by otsu."},
    {.name = "preset",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct mask, preset),
     .doc =
         "Meaning of the values of band: landsat-c2, landsat-c2-radsat, landsat-c1, sentinel2-scl, "
         "sentinel2-qa60, planetscope-udm2, planetscope-udm, hls-fmask or modis-state. A preset "
         "defines words for the lists below, and the values that are dropped when there is no "
         "list."},
    WORDS(drop, "Values that are dropped, as numbers or the preset's words."),
    WORDS(keep, "Values that are kept, all others are dropped; with bands: [low, high], both ends "
                "inside."),
    WORDS(drop_bits, "Bits, from 0, or the preset's words: pixels with one of them are dropped."),
    WORDS(keep_bits, "Pixels without any of these bits are dropped."),
    {.name = "otsu",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct mask, otsu),
     .more = offsetof(struct mask, has_otsu),
     .choices = "above|below",
     .doc = "In place of keep, with one of bands: the side of Otsu's threshold of the whole image "
            "that is kept; below has the threshold itself."},
    {.name = "grow",
     .type = PB_KEY_INT,
     .offset = offsetof(struct mask, grow),
     .min = 0,
     .max = 64,
     .def = "0",
     .doc =
         "Pixels of the mask's own grid within this distance of a dropped one are dropped, too."},
    {.name = "shape",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct mask, shape),
     .choices = "disc|square",
     .def = "disc",
     .doc = "How grow measures: disc is the distance of pixel centres, square the greater of "
            "columns and rows."},
    {.name = "apply",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct mask, apply),
     .makes_bands = true,
     .doc = "Bands to make invalid where the mask drops or is invalid, in place, or {NEW: OLD}; "
            "all bands when not given."},
    {.name = "gate",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct mask, gate),
     .choices = "false|true",
     .def = "false",
     .doc = "Tiles of which nothing is kept are not decoded further, as by the step gate."},
};

/* --- which keys go together ------------------------------------------------------------------- */

static pb_value number(struct pb_builder *b, double v)
{
    return pb_builder_constant(b, (float)v);
}

static pb_value inverted(struct pb_builder *b, pb_value v)
{
    return pb_builder_emit(b, PB_VM_EQ, v, number(b, 0), -1);
}

static const struct pb_items *the_list(const struct mask *m, struct pb_builder *b, bool *out_bad)
{
    const struct pb_items *const lists[] = {&m->drop, &m->keep, &m->drop_bits, &m->keep_bits};
    const struct pb_items *found = NULL;

    *out_bad = false;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (lists[i]->n == 0 && !lists[i]->is_partial)
            continue;
        if (found) {
            (void)pb_builder_wrong(b, lists[i],
                                   "drop, keep, drop_bits and keep_bits exclude each other; a "
                                   "second mask step drops more");
            *out_bad = true;
        }
        found = lists[i];
    }
    return found;
}

/* Of `bands`: outside the range, or unknown. */
static pb_value out_of_range(const struct mask *m, struct pb_builder *b)
{
    const struct pb_item *const ends = m->keep.items;
    pb_value inside = -1;

    if (m->keep.n != 2 || isnan(ends[0].num) || isnan(ends[1].num) || ends[0].num > ends[1].num) {
        (void)pb_builder_wrong(b, &m->keep,
                               "with 'bands', keep is the range [low, high]; values of a quality "
                               "band are 'band: NAME' with drop or keep");
        return PB_VALUE_POISON;
    }
    for (size_t i = 0; i < m->bands.n; i++) {
        const pb_value band = pb_band_list_at(&m->bands, b, i).value;
        const pb_value in = pb_builder_emit(
            b, PB_VM_AND, pb_builder_emit(b, PB_VM_GE, band, number(b, ends[0].num), -1),
            pb_builder_emit(b, PB_VM_LE, band, number(b, ends[1].num), -1), -1);

        inside = i == 0 ? in : pb_builder_emit(b, PB_VM_AND, inside, in, -1);
    }
    return inverted(b, inside);
}

/* Of one of `bands`: on the other side of the threshold, or unknown. */
static pb_value beyond_threshold(const struct mask *m, struct pb_builder *b)
{
    const struct pb_reduce reduce = pb_reduce_threshold();

    if (m->bands.n != 1) {
        (void)pb_builder_wrong(b, &m->bands, "otsu finds the threshold of one band, not of %zu",
                               m->bands.n);
        return PB_VALUE_POISON;
    }
    const pb_value band = pb_band_list_at(&m->bands, b, 0).value;
    const char *const name = m->name.n > 0 ? m->name.items[0].text : m->bands.items[0].text;
    if (band == PB_VALUE_POISON || band < 0)
        return PB_VALUE_POISON;
    const pb_value threshold = pb_builder_reduce(b, &reduce, band, PB_THRESHOLD_VALUE, name);
    return pb_builder_emit(b, m->otsu == ABOVE ? PB_VM_LE : PB_VM_GT, band, threshold, -1);
}

static bool find_preset(const struct mask *m, struct pb_builder *b, struct pb_mask_preset *out)
{
    const char *names[16];
    const size_t n = pb_mask_preset_count();

    if (pb_mask_preset_find(m->preset, out))
        return true;
    for (size_t i = 0; i < n && i < sizeof names / sizeof names[0]; i++)
        names[i] = pb_mask_preset_at(i).name;
    const char *const near = pb_nearest(m->preset, names, n);
    (void)pb_builder_wrong(b, &m->preset, "there is no preset '%.60s'%s%s%s", m->preset,
                           near ? "; did you mean '" : "; 'pushbroom operators mask' lists them",
                           near ? near : "", near ? "'?" : "");
    return false;
}

/* Of `band`. */
static pb_value by_values(const struct mask *m, const struct pb_items *list, struct pb_builder *b)
{
    const bool bits = list == &m->drop_bits || list == &m->keep_bits;
    const pb_value known =
        pb_band_list_at(&m->band, b, 0).value; /* reports one that is not there */
    struct pb_mask_preset preset = {.n = 0};

    if (m->preset && !find_preset(m, b, &preset))
        return PB_VALUE_POISON;
    if (!list && !m->preset) {
        (void)pb_builder_wrong(b, &m->band,
                               "nothing is chosen to be dropped: give drop or keep with values, "
                               "drop_bits or keep_bits with bits, or a preset");
        return PB_VALUE_POISON;
    }
    if (list && m->preset && bits != preset.is_bits) {
        (void)pb_builder_wrong(b, list, "the preset %s is of %s; use %s", preset.name,
                               preset.is_bits ? "bits" : "values",
                               preset.is_bits ? "drop_bits or keep_bits" : "drop or keep");
        return PB_VALUE_POISON;
    }
    if (known == PB_VALUE_POISON || known < 0)
        return PB_VALUE_POISON;
    const pb_value band = pb_builder_stored(b, m->band.items[0].text);
    if (!list)
        return pb_mask_has_usual(b, band, &preset);
    const pb_value any = pb_mask_has_any(b, band, m->preset ? &preset : NULL, bits, list);
    return list == &m->keep || list == &m->keep_bits ? inverted(b, any) : any;
}

/* 1 where the pixel is dropped, invalid where that is not known; poison after a mistake. */
static pb_value dropped(const struct mask *m, struct pb_builder *b)
{
    bool bad = false;
    const struct pb_items *const list = the_list(m, b, &bad);

    if ((m->band.n > 0) == (m->bands.n > 0)) {
        if (!m->band.is_partial && !m->bands.is_partial)
            (void)pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0,
                                     "a mask is made of 'band', a quality band, or of 'bands', "
                                     "measurements with a range: give one of the two");
        return PB_VALUE_POISON;
    }
    if (bad)
        return PB_VALUE_POISON;
    if (m->has_otsu && (m->band.n > 0 || list || m->preset)) {
        (void)pb_builder_wrong(b, &m->otsu,
                               "otsu finds which values of 'bands' are kept: without band, preset, "
                               "keep and drop");
        return PB_VALUE_POISON;
    }
    if (m->band.n > 0)
        return by_values(m, list, b);
    if (m->has_otsu)
        return beyond_threshold(m, b);
    if (m->preset || (list && list != &m->keep)) {
        (void)pb_builder_wrong(b, m->preset ? (const void *)&m->preset : (const void *)list,
                               "belongs to a quality band; 'bands' need keep: [low, high]");
        return PB_VALUE_POISON;
    }
    return out_of_range(m, b);
}

/* --- the step --------------------------------------------------------------------------------- */

static int apply_to(const struct mask *m, struct pb_builder *b, pb_value keep)
{
    const size_t n = pb_band_list_count(&m->apply, b);
    pb_value gate = keep;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&m->apply, b, i);
        const int32_t grid = pb_builder_grid(b, pick.value);
        const pb_value here = grid < 0 || keep == PB_VALUE_POISON
                                  ? keep
                                  : pb_builder_resample(b, PB_NEAREST, keep, grid);

        gate = i == 0 ? here : gate;
        rc = pb_builder_define(b, pick.out,
                               pb_builder_emit(b, PB_VM_WHERE, here, pick.value, number(b, NAN)));
    }
    return rc || !m->gate || gate == PB_VALUE_POISON ? rc : pb_builder_gate(b, gate, 0.0);
}

static int build(const void *params, struct pb_builder *b)
{
    const struct mask *const m = params;
    pb_value drop = dropped(m, b);

    if (m->grow > 0 && drop != PB_VALUE_POISON && drop >= 0)
        drop = pb_mask_grown(b, drop, m->grow, m->shape == 1);
    const pb_value keep = inverted(b, drop);
    const int rc = apply_to(m, b, keep);
    return rc || m->name.n == 0 ? rc : pb_builder_define(b, m->name.items[0].text, keep);
}

static void exchange(const void *params, struct pb_op_exchange *out)
{
    if (((const struct mask *)params)->gate)
        pb_gate_args_exchange(out);
}

static const struct pb_op_case cases[] = {
    {"classes, grown",
     "N",
     true,
     {{"band", {{.text = "R"}}},
      {"drop", {{.text = "0", .num = 0}, {.text = "1", .num = 1}, {.text = "3", .num = 3}}},
      {"grow", {{.text = "3", .num = 3}}}}},
    {"a preset's bits",
     "X",
     true,
     {{"name", {{.text = "CLEAR"}}},
      {"band", {{.text = "S1"}}},
      {"preset", {{.text = "landsat-c2"}}},
      {"drop_bits", {{.text = "fill", .num = NAN}, {.text = "cloud_high", .num = NAN}}},
      {"apply", {{.key = "X", .text = "N"}}}}},
    {"a dropped class of a preset, squares",
     "CLEAR",
     true,
     {{"name", {{.text = "CLEAR"}}},
      {"band", {{.text = "S1"}}},
      {"preset", {{.text = "sentinel2-scl"}}},
      {"grow", {{.text = "9", .num = 9}}},
      {"shape", {{.text = "square"}}}}},
    {"a range",
     "R",
     true,
     {{"bands", {{.text = "R"}, {.text = "N"}}},
      {"keep", {{.text = "0.1", .num = 0.1}, {.text = "30", .num = 30}}}}},
    {"above a threshold of the image",
     "R",
     true,
     {{"bands", {{.text = "N"}}}, {"otsu", {{.text = "above"}}}, {"apply", {{.text = "R"}}}}},
};

/* What a preset drops that no list overrules. */
static void unsaid(const void *params, char *out, size_t bytes)
{
    const struct mask *m = params;
    struct pb_mask_preset preset;
    bool by_list = m->drop.n + m->keep.n + m->drop_bits.n + m->keep_bits.n > 0;

    out[0] = '\0';
    if (m->preset && !by_list && pb_mask_preset_find(m->preset, &preset))
        pb_mask_preset_usual(&preset, out, bytes);
}

const struct pb_op pb_op_mask = {
    .name = "mask",
    .doc =
        {
            .summary = "makes bands invalid by a quality band or a range",
            .formula = "mask = 0 where the pixel is dropped, or one within grow, else 1; band "
                       "where mask is 1, else invalid.",
            .units = "Those of the band; the mask has 1 and 0.",
            .nodata = "A pixel is invalid where the band is, where the mask is 0 and where the "
                      "quality band is invalid; such pixels are not grown, and the mask is invalid "
                      "there. With a range: where none of the bands is outside and one is invalid.",
            .source = "Meanings of bits and classes: USGS LSDS-1619, 1414 and 1415 (Landsat "
                      "Collection 2), Sentinel-2 L2A scene classification, Planet UDM2, HLS v2 and "
                      "MOD09 user "
                      "guides.",
            .notes =
                "band is a quality band: drop and keep list its values, drop_bits and keep_bits "
                "its bits. bands are\n"
                "measurements: keep is the range [low, high] in which all of them must be. On "
                "bands of another grid\n"
                "the mask is that of the nearest pixel. grow is a dilation: a disc of up to 7 "
                "pixels is exact, a larger\n"
                "one is made of several (14 is 7 and 7) and has straighter sides; a square always "
                "is. Each 7 pixels\n"
                "make the halo that tiles read larger by 7.\n"
                "\n"
                "otsu keeps one side of the threshold that parts the band's valid pixels into two "
                "classes with the\n"
                "greatest variance between them, as `classify` with method otsu finds it: the "
                "scene is read once or\n"
                "twice more. The report and the STAC item have the threshold and the pixels of "
                "both sides.\n"
                "\n"
                "Presets and their words; those before the semicolon are dropped when the step has "
                "no list:\n"
                "  landsat-c2         QA_PIXEL: fill dilated_cloud cirrus cloud cloud_shadow;\n"
                "                     snow clear water, and cloud_low, cloud_medium, cloud_high;\n"
                "                     low and high also of cloud_shadow_, snow_ and cirrus_\n"
                "  landsat-c2-radsat  QA_RADSAT: band_1 to band_7, band_9, terrain_occlusion\n"
                "  landsat-c1         BQA: fill cloud cloud_shadow_high cirrus_high;\n"
                "                     terrain_occlusion and cloud_low, cloud_medium, cloud_high,\n"
                "                     also cloud_shadow_, snow_ and cirrus_;\n"
                "                     saturated_1_or_2_bands, _3_or_4_, _5_or_more_bands\n"
                "  sentinel2-scl      no_data saturated_or_defective cloud_shadow cloud_medium\n"
                "                     cloud_high cirrus; dark_area vegetation not_vegetated water\n"
                "                     unclassified snow\n"
                "  sentinel2-qa60     cloud cirrus\n"
                "  planetscope-udm2   band 1: not_clear; clear\n"
                "  planetscope-udm    band 8: fill cloud band_1 to band_5 (missing or suspect)\n"
                "  hls-fmask          cloud adjacent cloud_shadow; snow water aerosol_high\n"
                "  modis-state        cloud cloud_mixed cloud_shadow cirrus_average cirrus_high\n"
                "                     internal_cloud; cirrus_small snow adjacent\n"
                "\n"
                "apply: [SCL] leaves the measurements alone: the mask is then a band for later "
                "steps and products.\n"
                "A product has the mask when it names it: cog: {bands: [CLEAR], type: uint8, "
                "nodata: 255}.\n"
                "\n"
                "  - mask: {name: CLEAR, band: SCL, drop: [0, 1, 3, 8, 9, 10], grow: 3}\n"
                "  - mask: {band: QA, preset: landsat-c2, drop_bits: [fill, cloud], gate: true}\n"
                "  - mask: {bands: [R, N], keep: [0, 1], apply: [R]}\n"
                "  - mask: {name: VEG, bands: [NDVI], otsu: above}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct mask),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .exchange = exchange,
    .unsaid = unsaid,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
