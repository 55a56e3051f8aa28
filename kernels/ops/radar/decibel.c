/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * decibel: powers on a logarithmic scale. */
#include "kernels/expr/band_list.h"
#include "kernels/expr/speckle_args.h"

struct decibel {
    int32_t data;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    PB_KEY_SPECKLE_DATA(struct decibel),
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct decibel, bands),
     .makes_bands = true,
     .doc = "Bands to change in place, or {NEW: OLD}; all bands when not given."},
};

static int build(const void *params, struct pb_builder *b)
{
    const struct decibel *const decibel = params;
    const size_t n = pb_band_list_count(&decibel->bands, b);
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&decibel->bands, b, i);
        pb_value value = pb_decibel(b, pick.value);

        if (decibel->data == 1)
            value = pb_builder_emit(b, PB_VM_ADD, value, value, -1);
        rc = pb_builder_define(b, pick.out, value);
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"power", "N", false, {{NULL, {{.text = NULL}}}}},
    {"amplitude",
     "D",
     false,
     {{"data", {{.text = "amplitude"}}}, {"bands", {{.key = "D", .text = "N"}}}}},
};

const struct pb_op pb_op_decibel = {
    .name = "decibel",
    .doc =
        {
            .summary = "makes decibels of powers",
            .formula = "10 * log10(value); of amplitude 20 * log10(value).",
            .units = "Decibels (dB).",
            .nodata = "Invalid where the band is, and where it is 0 or less.",
            .source = "ISO 80000-1:2022, level of a power quantity.",
            .notes = "Use it after filters and means, which need intensity.\n"
                     "\n"
                     "  - decibel: {bands: [VV, VH]}\n"
                     "  - decibel: {data: amplitude, bands: {VV_dB: VV}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct decibel),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
