/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PAINT_CASES_H
#define PB_PAINT_CASES_H
/* Painted blocks for the encoder of a device, on the emulator (unit/test_encode_device.c) and on a
 * GPU (gpu/check_encode.c); the host's painter makes the expected samples. */
#include "pipeline/paint/paint_steps.h"
#include "tests/encode_cases.h"

static const struct paint_case {
    const char *name;
    int ramp;        /* 0: grey, or three colours */
    uint32_t planes; /* count of planes of values */
    double low, high, gamma, fill;
    bool shade, overlays, any, alpha, has_nodata;
    uint8_t nodata;
    bool repeats;
    enum pb_encode_with with;
    enum encode_values values;
} paint_cases[] = {
    {"ramp", 2, 1, -1, 1, 0, NAN, false, false, false, true, false, 0, false, PB_ENCODE_INTEGERS,
     VALUES_RATIO},
    {"ramp backwards", 1, 1, 0.3, -0.2, 0, NAN, false, false, false, false, true, 255, false,
     PB_ENCODE_RUNS, VALUES_RATIO},
    {"ramp with gamma", 2, 1, -0.4, 0.5, 2.2, NAN, true, true, false, true, false, 0, false,
     PB_ENCODE_INTEGERS, VALUES_EXTREME},
    {"grey with gamma", 0, 1, 0, 70000, 0.45, NAN, false, false, false, true, false, 0, false,
     PB_ENCODE_RUNS, VALUES_EXTREME},
    {"grey of one value", 0, 1, 254.5, 254.5, 0, NAN, true, false, false, false, true, 0, false,
     PB_ENCODE_RAW, VALUES_EXTREME},
    {"colours, any", 0, 3, 0, 255, 0, 17, false, false, true, false, true, 17, false,
     PB_ENCODE_INTEGERS, VALUES_EXTREME},
    {"colours, all", 0, 3, 1600, 800, 0, NAN, true, true, false, true, false, 0, false,
     PB_ENCODE_INTEGERS, VALUES_HOLES},
    {"colours of a picture", 0, 3, 800, 1600, 0, NAN, false, false, true, false, false, 0, true,
     PB_ENCODE_RAW, VALUES_HOLES},
};
enum { PAINT_CASES = sizeof paint_cases / sizeof *paint_cases };

/* Planes of values, and one of brightness. */
static inline struct encode_case paint_case_block(const struct paint_case *c)
{
    return (struct encode_case){.name = c->name,
                                .type = PB_U8,
                                .side = 64,
                                .w = 41,
                                .h = 23,
                                .bands = 4,
                                .predictor = c->repeats ? PB_PREDICTOR_NONE : 2,
                                .nodata = c->nodata,
                                .masked = true,
                                .with = c->with,
                                .values = c->values};
}

struct paint_made {
    struct pb_painter painter;
    struct pb_ramp_table *ramp;
    struct pb_paint_step *step;
    struct pb_encode_format format;
};

static inline void paint_case_make(const struct paint_case *c, struct paint_made *out)
{
    struct pb_ramp_stop stops[PB_RAMP_NAMED_STOPS];
    const struct encode_case block = paint_case_block(c);
    const bool is_curved = c->gamma > 0;
    const struct pb_stretch_curve curve = {2, {c->low, c->high}, c->gamma};
    struct pb_ramp ramp;
    out->ramp = NULL;
    if (c->ramp > 0) {
        pb_ramp_named(c->ramp, stops, &ramp);
        out->ramp = pb_ramp_table_create(&ramp, is_curved ? 0 : c->low, is_curved ? 1 : c->high);
    }
    out->painter = (struct pb_painter){.n_planes = c->planes,
                                       .has_ramp = c->ramp > 0,
                                       .ramp = out->ramp,
                                       .low = {c->low, c->low, c->low},
                                       .high = {c->high, c->high, c->high},
                                       .is_curved = is_curved,
                                       .curve = {curve, curve, curve},
                                       .has_shade = c->shade,
                                       .blend = c->overlays ? PB_BLEND_OVERLAY : PB_BLEND_MULTIPLY,
                                       .any = c->any,
                                       .fill = c->fill,
                                       .alpha = c->alpha,
                                       .has_nodata = c->has_nodata,
                                       .nodata = c->nodata};
    out->step = malloc(PB_PAINT_STEPS_MAX * sizeof *out->step);
    if (out->step == NULL || (c->ramp > 0 && out->ramp == NULL))
        abort();
    const struct pb_paint_steps steps = {.n = pb_paint_steps_find(&out->painter, out->step),
                                         .step = out->step};
    out->format = encode_case_format(&block);
    out->format.n_bands = pb_painter_channels(&out->painter);
    out->format.paint = pb_paint_of(&out->painter, &steps);
    out->format.repeats = c->repeats;
}

static inline void paint_made_free(struct paint_made *made)
{
    pb_ramp_table_destroy(made->ramp);
    free(made->step);
}
#endif
