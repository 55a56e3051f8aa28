/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * cast: the values that an integer product would hold, still carried as float32. The upper limits
 * of the 32-bit types are no float32 numbers; the nearest ones stand for them (one above), so that
 * a product of that type saturates to the very limit, with or without a cast before it. */
#include "kernels/expr/band_list.h"

#include <string.h>

enum { TYPE, BANDS };

static const struct pb_param params[] = {
    [TYPE] = {.name = "type",
              .type = PB_PARAM_ENUM,
              .choices = "uint8|int16|uint16|int32|uint32|float32",
              .required = true,
              .doc = "type whose values the bands shall have"},
    [BANDS] = {.name = "bands",
               .type = PB_PARAM_NAMES,
               .makes_bands = true,
               .doc = "bands to cast in place, or {NEW: OLD}; all bands when not given"},
};

struct range {
    const char *type;
    float low, high;
};

static const struct range ranges[] = {
    {"uint8", 0.0f, 255.0f},         {"int16", -32768.0f, 32767.0f},
    {"uint16", 0.0f, 65535.0f},      {"int32", -2147483648.0f, 2147483648.0f},
    {"uint32", 0.0f, 4294967296.0f},
};

static const struct range *find_range(const char *type)
{
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (strcmp(ranges[i].type, type) == 0)
            return &ranges[i];
    return NULL;
}

static int build(const struct pb_op_args *args, struct pb_builder *b)
{
    const struct pb_arg *const type = &args->arg[TYPE];
    const struct pb_arg *const names = &args->arg[BANDS];
    const size_t n = pb_band_list_count(names, b);
    const struct range *const range = type->n ? find_range(type->items[0].text) : NULL;
    int rc = 0;

    if (!range && (type->n == 0 || strcmp(type->items[0].text, "float32") != 0))
        (void)pb_builder_mistake(b, PB_DIAG_VALUE, type->n ? type->items : NULL, 0,
                                 "'type' must be one of %s", params[TYPE].choices);
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(names, b, i);
        pb_value v = pick.value;

        if (range) {
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
    .summary = "rounds bands to an integer type's values and saturates them",
    .doc = "Values are rounded to the nearest integer, halves to the even one, and values outside\n"
           "the type become its smallest or largest. Invalid pixels stay invalid. The bands stay\n"
           "float32 inside the pipeline, which holds integers up to 16777216 exactly (the largest\n"
           "int32 and uint32 are carried as 2147483648 and 4294967296); float32 changes nothing.\n"
           "\n"
           "  - cast: {type: uint8, bands: [CLASS]}\n",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
