/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * cast: the values that an integer product would hold, still carried as float32. The upper limits
 * of the 32-bit types are no float32 numbers; the nearest ones stand for them (one above), so that
 * a product of that type saturates to the very limit, with or without a cast before it. */
#include "kernels/expr/band_list.h"

struct cast {
    int32_t type;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "type",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct cast, type),
     .choices = "uint8|int16|uint16|int32|uint32|float32",
     .required = true,
     .doc = "Type whose values the bands shall have."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct cast, bands),
     .makes_bands = true,
     .doc = "Bands to cast in place, or {NEW: OLD}; all bands when not given."},
};

/* By choice of type; the last one changes nothing. */
static const struct range {
    float low, high;
} ranges[] = {
    {0.0f, 255.0f},        {-32768.0f, 32767.0f}, {0.0f, 65535.0f}, {-2147483648.0f, 2147483648.0f},
    {0.0f, 4294967296.0f},
};
enum { FLOAT32 = sizeof ranges / sizeof ranges[0] };

static int build(const void *params, struct pb_builder *b)
{
    const struct cast *const cast = params;
    const size_t n = pb_band_list_count(&cast->bands, b);
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&cast->bands, b, i);
        pb_value v = pick.value;

        if (cast->type != FLOAT32) {
            const struct range *const range = &ranges[cast->type];

            v = pb_builder_emit(b, PB_VM_ROUND, v, -1, -1);
            v = pb_builder_emit(b, PB_VM_CLAMP, v, pb_builder_constant(b, range->low),
                                pb_builder_constant(b, range->high));
        }
        rc = pb_builder_define(b, pick.out, v);
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"to uint8", "N", true, {{"type", {{.text = "uint8"}}}}},
    {"to int16, new band",
     "X",
     true,
     {{"type", {{.text = "int16"}}}, {"bands", {{.key = "X", .text = "N"}}}}},
};

const struct pb_op pb_op_cast = {
    .name = "cast",
    .doc =
        {
            .summary = "rounds bands to an integer type's values and saturates them",
            .formula =
                "clamp(round(band), smallest, largest value of the type), halves to the even "
                "integer; float32: band",
            .units = "Those of the band.",
            .nodata = "A pixel is invalid where the band is.",
            .source = "Rounding as in IEEE 754, roundTiesToEven.",
            .notes =
                "The bands stay float32 inside the pipeline, which holds integers up to 16777216\n"
                "exactly (the largest int32 and uint32 are carried as 2147483648 and 4294967296).\n"
                "\n"
                "  - cast: {type: uint8, bands: [CLASS]}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct cast),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
