/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * gate: invalid where a condition does not hold, and tiles where it holds nowhere are left out
 * before their other bands are decoded (kernels/chain/chain_gate.h). */
#include "kernels/expr/band_list.h"
#include "kernels/expr/gate_args.h"

#include <math.h>

struct gate {
    struct pb_items keep, bands;
    double minimum;
};

static const struct pb_key keys[] = {
    {.name = "keep",
     .type = PB_KEY_EXPRESSION,
     .offset = offsetof(struct gate, keep),
     .required = true,
     .doc =
         "A pixel passes where this is valid and not 0: an expression as in math, over the mask's "
         "bands."},
    {.name = "minimum",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct gate, minimum),
     .min = 0.0,
     .max = 1.0,
     .def = "0",
     .doc =
         "Squares of which a smaller share passes are left out as a whole: an approximation, for "
         "speed. 0: only those of which nothing passes, which changes no pixel."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct gate, bands),
     .makes_bands = true,
     .doc = "Bands to make invalid where keep does not hold, in place, or {NEW: OLD}; all bands on "
            "the grid of keep when not given."},
};

static int build(const void *params, struct pb_builder *b)
{
    const struct gate *const gate = params;
    const pb_value keep = gate->keep.n > 0
                              ? pb_builder_expression(b, &gate->keep.items[0], NULL, NULL, 0)
                              : PB_VALUE_POISON; /* reported by who read the step */
    const pb_value nothing = pb_builder_constant(b, NAN);
    const size_t n = pb_band_list_count(&gate->bands, b);
    const int32_t grid = pb_builder_grid(b, keep);
    int rc = 0;

    if (keep != PB_VALUE_POISON && keep >= 0 && grid < 0)
        return pb_builder_mistake(b, PB_DIAG_EXPRESSION, &gate->keep.items[0], 1,
                                  "'keep' reads no band, so that it is the same for all pixels");
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&gate->bands, b, i);
        const int32_t own = pb_builder_grid(b, pick.value);

        if (gate->bands.n > 0 || own < 0 || own == grid)
            rc = pb_builder_define(b, pick.out,
                                   pb_builder_emit(b, PB_VM_WHERE, keep, pick.value, nothing));
    }
    return rc || keep == PB_VALUE_POISON ? rc : pb_builder_gate(b, keep, gate->minimum);
}

static void exchange(const void *params, struct pb_op_exchange *out)
{
    (void)params;
    pb_gate_args_exchange(out);
}

static const struct pb_op_case cases[] = {
    {"a condition, all bands", "N", true, {{"keep", {{.text = "R < 0.3"}}}}},
    {"a band, some bands",
     "X",
     true,
     {{"keep", {{.text = "B"}}}, {"bands", {{.key = "X", .text = "N"}}}}},
};

const struct pb_op pb_op_gate = {
    .name = "gate",
    .doc =
        {
            .summary = "masks bands; tiles where nothing passes are not decoded",
            .formula = "band where keep is valid and not 0, else invalid.",
            .units = "Those of the band.",
            .nodata = "A pixel is invalid where the band is, where keep is invalid and where keep "
                      "is 0.",
            .source = "Masking as in where(keep, band, invalid); of this program.",
            .notes =
                "The bands that keep reads are decoded first. Of a tile in which no pixel passes "
                "the others are\n"
                "not decoded, nothing is computed, and it leaves as the products' nodata: the same "
                "products, bit\n"
                "for bit, as without leaving out, and much sooner under clouds. Neighbourhoods are "
                "looked at as far\n"
                "as they reach. Where all bands of a pixel are in one block of the file (pixel "
                "interleaved), that\n"
                "block is decoded anyway; computing and encoding are saved. Every band of the "
                "products must be\n"
                "invalid where nothing passes: a band made of constants, or one that bands leaves "
                "out, keeps all\n"
                "tiles, and the report gives the reason.\n"
                "\n"
                "The parts of a tile are an exchange by the pattern probabilistic: the bands that "
                "keep reads are sent first;\n"
                "the pixels that pass decide whether the rest follows, file by file, or the result "
                "is final.\n"
                "\n"
                "With a minimum, tiles are squares of 512 pixels (of the products' largest block "
                "if that is larger)\n"
                "whatever compute.tile is, from the upper left corner on, so that products do "
                "not depend on the\n"
                "machine; squares of which less passes are left out, valid pixels among them, and "
                "the STAC item's\n"
                "lineage has the number.\n"
                "\n"
                "  - gate: {keep: \"SCL > 3 and SCL < 8\"}\n"
                "  - gate: {keep: CLEAR, minimum: 0.05, bands: [R, N]}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct gate),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .exchange = exchange,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
