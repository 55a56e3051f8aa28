/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * change_vector: change vector analysis of two scenes, how far and into which direction each pixel
 * moved in the space of its bands. */
#include "kernels/expr/grid_args.h"
#include "kernels/expr/scene_pairs.h"
#include "kernels/nearest.h"

#include <math.h>
#include <string.h>

#define BANDS_MAX 16 /* sectors are whole numbers below 2^16 */

struct change_vector {
    struct pb_items bands, after, before;
    int32_t method;
    bool has_method;
};

static const struct pb_key keys[] = {
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct change_vector, bands),
     .required = true,
     .makes_bands = true,
     .doc = "Bands to make: {NEW: magnitude}, {NEW: direction}, {NEW: sector}, or some of them."},
    {.name = "after",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct change_vector, after),
     .required = true,
     .doc = "Bands of the later scene, 1 to 16."},
    {.name = "before",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct change_vector, before),
     .required = true,
     .doc = "Those of the earlier scene, in the same order."},
    PB_KEY_METHOD_BY_BAND(struct change_vector, "bilinear"),
};

struct work {
    struct pb_builder *b;
    pb_value change[BANDS_MAX]; /* after - before */
    size_t n;
};

static pb_value emit(struct work *w, enum pb_vm_op op, pb_value x, pb_value y)
{
    return pb_builder_emit(w->b, op, x, y, -1);
}

static pb_value number(struct work *w, double v)
{
    return pb_builder_constant(w->b, (float)v);
}

static pb_value magnitude(struct work *w)
{
    pb_value sum = emit(w, PB_VM_MUL, w->change[0], w->change[0]);

    for (size_t i = 1; i < w->n; i++)
        sum = emit(w, PB_VM_ADD, sum, emit(w, PB_VM_MUL, w->change[i], w->change[i]));
    return emit(w, PB_VM_SQRT, sum, -1);
}

/* 0 to 360 degrees, counted from the first band's axis to the second one's. */
static pb_value direction(struct work *w)
{
    const pb_value radians = emit(w, PB_VM_ATAN2, w->change[1], w->change[0]);
    const pb_value degrees = emit(w, PB_VM_MUL, radians, number(w, 180.0 / 3.14159265358979324));
    const pb_value turned = emit(w, PB_VM_ADD, degrees, number(w, 360));
    const pb_value positive = pb_builder_emit(
        w->b, PB_VM_WHERE, emit(w, PB_VM_LT, degrees, number(w, 0)), turned, degrees);

    /* An angle just below 0 is rounded to 360. */
    return pb_builder_emit(w->b, PB_VM_WHERE, emit(w, PB_VM_GE, positive, number(w, 360)),
                           number(w, 0), positive);
}

static pb_value sector(struct work *w)
{
    pb_value sum = number(w, 0);

    for (size_t i = 0; i < w->n; i++) {
        const pb_value rises = emit(w, PB_VM_GT, w->change[i], number(w, 0));

        sum = emit(w, PB_VM_ADD, sum, emit(w, PB_VM_MUL, rises, number(w, ldexp(1, (int)i))));
    }
    return sum;
}

static pb_value measure(struct work *w, const struct pb_item *item)
{
    static const char *const names[] = {"magnitude", "direction", "sector"};
    const char *const near = pb_nearest(item->text, names, sizeof names / sizeof names[0]);

    if (strcmp(item->text, names[0]) == 0)
        return magnitude(w);
    if (strcmp(item->text, names[2]) == 0)
        return sector(w);
    if (strcmp(item->text, names[1]) != 0)
        (void)pb_builder_mistake(w->b, PB_DIAG_VALUE, item, 0,
                                 "there is no '%.60s' of a change vector%s%s%s", item->text,
                                 near ? "; did you mean '" : ": magnitude, direction or sector",
                                 near ? near : "", near ? "'?" : "");
    else if (w->n != 2)
        (void)pb_builder_mistake(w->b, PB_DIAG_VALUE, item, 0,
                                 "a direction is that of two bands, and 'after' has %zu; sector is "
                                 "for any number of them",
                                 w->n);
    else
        return direction(w);
    return PB_VALUE_POISON;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct change_vector *const step = params;
    const struct pb_scene_pairs pairs = {.bands = &step->after,
                                         .others = &step->before,
                                         .bands_name = "after",
                                         .others_name = "before",
                                         .method = {step->method, step->has_method, PB_BILINEAR}};
    struct work w = {.b = b, .n = step->after.n};
    int rc = pb_scene_pairs_check(&pairs, b);

    if (rc == 0 && (w.n < 1 || w.n > BANDS_MAX))
        rc = pb_builder_wrong(b, &step->after, "1 to %d bands, not %zu", BANDS_MAX, w.n);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < w.n; i++)
        w.change[i] = pb_scene_pairs_emit(&pairs, b, PB_VM_SUB, i);
    for (size_t i = 0; i < step->bands.n && rc == 0; i++)
        rc = pb_builder_define(b, pb_item_band(&step->bands.items[i]),
                               measure(&w, &step->bands.items[i]));
    return rc;
}

#define CASE(label_, exact_, measure_)                                                             \
    {                                                                                              \
        .label = label_, .output = "X", .exact = exact_, .args = {                                 \
            {"bands", {{.key = "X", .text = measure_}}},                                           \
            {"after", {{.text = "N"}, {.text = "R"}}},                                             \
            {"before", {{.text = "S1"}, {.text = "S2"}}},                                          \
        }                                                                                          \
    }

static const struct pb_op_case cases[] = {
    CASE("magnitude of two", true, "magnitude"),
    CASE("direction of two", false, "direction"),
    CASE("sector of two", true, "sector"),
};

const struct pb_op pb_op_change_vector = {
    .name = "change_vector",
    .doc =
        {
            .summary = "how far, and which way, pixels changed between two scenes",
            .formula = "d = after - before, band by band, before on the grid of after. magnitude: "
                       "sqrt(sum of d * d). direction: atan2(d of the second band, d of the "
                       "first). sector: the sum of 2^i over the bands, counted from 0, that rose.",
            .units = "magnitude: that of the bands. direction: degrees, from 0 (the first band "
                     "rises) over 90 (the second one does) to below 360. sector: a number that "
                     "stands for a combination, 0 to 2^n - 1.",
            .nodata = "Invalid where a band of one of the scenes is, and outside of the other "
                      "scene; direction also where nothing changed.",
            .source = "Change vector analysis: W. A. Malila, Machine Processing of Remotely Sensed "
                      "Data, Purdue University, 1980 (sectors as well).",
            .notes = "The bands should have one unit and similar spread: reflectances, or "
                     "brightness and greenness\n"
                     "of a tasseled cap. direction is for two of them.\n"
                     "\n"
                     "  - change_vector:\n"
                     "      bands: {CHANGE: magnitude, DIRECTION: direction}\n"
                     "      after: [R, N]\n"
                     "      before: [R_MAY, N_MAY]\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct change_vector),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
