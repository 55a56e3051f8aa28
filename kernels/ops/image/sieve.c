/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * sieve: small areas of class rasters. How large an area is, and which of its neighbours is the
 * largest, depends on the whole image, and so may the end of a chain of small areas: no halo is
 * wide enough. The band is made in a pass of its own and kept, cells of it are labelled by
 * themselves, and what touches their borders is joined in a table (kernels/areas/areas.h); the
 * result is an input of the passes after that. */
#include "kernels/expr/band_list.h"

#include <math.h>

enum { EDGES, CORNERS };

struct sieve {
    struct pb_items bands;
    char *mask;
    int32_t size, connectivity;
};

static const struct pb_key keys[] = {
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct sieve, bands),
     .required = true,
     .makes_bands = true,
     .doc = "Bands to sieve in place, or {NEW: OLD}: classes, as a rule. A pipeline of one file "
            "sieves up to 5."},
    {.name = "size",
     .type = PB_KEY_INT,
     .offset = offsetof(struct sieve, size),
     .required = true,
     .min = 2,
     .max = 1000000000,
     .doc = "Areas of fewer pixels are replaced."},
    {.name = "connectivity",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct sieve, connectivity),
     .choices = "4|8",
     .def = "4",
     .doc = "4: pixels of an area, and areas that are neighbours, have an edge in common. 8: an "
            "edge or a corner."},
    {.name = "mask",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct sieve, mask),
     .doc = "A band: pixels where it is invalid or 0 belong to no area and keep their values. On "
            "the grid of the bands."},
};

/* 1 where the mask is valid and not 0, else 0. */
static pb_value taken(struct pb_builder *b, pb_value mask)
{
    return pb_builder_emit(b, PB_VM_AND, pb_builder_emit(b, PB_VM_VALID, mask, -1, -1), mask, -1);
}

static int build(const void *params, struct pb_builder *b)
{
    const struct sieve *const s = params;
    const struct pb_sieve sieve = {.size = s->size,
                                   .connectivity = s->connectivity == CORNERS ? 8 : 4};
    const size_t n = pb_band_list_count(&s->bands, b);
    const pb_value mask = s->mask ? taken(b, pb_band_list_named(b, &s->mask)) : -1;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&s->bands, b, i);
        pb_value x = pick.value;

        if (s->mask)
            x = pb_builder_emit(b, PB_VM_WHERE, mask, x, pb_builder_constant(b, NAN));
        x = pb_builder_sieve(b, &sieve, x);
        if (s->mask)
            x = pb_builder_emit(b, PB_VM_WHERE, mask, x, pick.value);
        rc = pb_builder_define(b, pick.out, x);
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"by edges", "N", true, {{"bands", {{.text = "N"}}}, {"size", {{.text = "10", .num = 10}}}}},
    {"by edges and corners, where a mask is",
     "N",
     true,
     {{"bands", {{.text = "N"}}},
      {"size", {{.text = "4", .num = 4}}},
      {"connectivity", {{.text = "8"}}},
      {"mask", {{.text = "R"}}}}},
};

const struct pb_op pb_op_sieve = {
    .name = "sieve",
    .doc =
        {
            .summary = "replaces small areas of equal values by the largest neighbour",
            .formula =
                "An area is all pixels of one value that hang together. One of fewer pixels than "
                "size gets the value of its largest neighbouring area; where that is small itself, "
                "of its largest neighbour, and so on. An area keeps its value when it has no "
                "neighbour, or when this chain returns to one of its areas. Of neighbours of "
                "one "
                "size the first counts that a walk over the image meets: row by row, each pixel "
                "with the one above, above left and above right (connectivity 8), and to the left.",
            .units = "The band's.",
            .nodata = "Invalid pixels belong to no area, join none and stay invalid; so do pixels "
                      "that the mask leaves out, which keep their values.",
            .source = "As gdal_sieve.py and GDALSieveFilter of GDAL 3.6 with the mask of nodata, "
                      "value for value, ties among them; values are compared as float32 where GDAL "
                      "rounds them to integers.",
            .notes =
                "Areas are those of the whole image, so the band is made in a pass before and kept "
                "in a temporary\n"
                "file in the directory of the products: a byte a pixel of classes from 0 to 254, "
                "four "
                "else.\n"
                "The memory for areas that touch the borders of tiles is in the plan: at most 0.3 "
                "bytes a\n"
                "pixel of the image with tiles of 512 or more. Where warp makes a product a tile "
                "of "
                "a grid, areas\n"
                "are those of the tile. The CPU sieves; a GPU computes the "
                "steps before and after.\n"
                "\n"
                "  - sieve: {bands: [SCL], size: 10}\n"
                "  - sieve: {bands: {CLEAN: CLASSES}, size: 25, connectivity: 8, mask: CLEAR}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct sieve),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
