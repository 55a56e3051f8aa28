/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PAINT_CONFIG_H
#define PB_PAINT_CONFIG_H
/* The keys by which products say their colours, the same in each: ramp or colours, between, range
 * and stretch. A colour file is read when the configuration is loaded. */
#include "config/product_check.h"
#include "kernels/key.h"
#include "pipeline/paint/ramp.h"

struct pb_paint_config {
    int32_t ramp;    /* index in pb_ramp_choices; 0 = none */
    char *colours;   /* a colour file; relative paths begin at the configuration's directory */
    int32_t between; /* enum pb_ramp_between */
    bool has_between;
    double range[2]; /* the values that become the two ends; the first may be the greater */
    bool has_range;
    double stretch[2];            /* percentiles, 0 <= a < b <= 100 */
    bool has_stretch;             /* given in the file */
    bool is_asked;                /* the file says how values become levels */
    const struct pb_ramp *chosen; /* of ramp or colours; NULL = none. Set by pb_paint_check */
};

/* Rows for a table of keys; config: the kind's struct, member: its struct pb_paint_config. */
#define PB_PAINT_KEYS(config, member)                                                              \
    {.name = "ramp",                                                                               \
     .type = PB_KEY_CHOICE,                                                                        \
     .offset = offsetof(config, member.ramp),                                                      \
     .choices = pb_ramp_choices,                                                                   \
     .def = "none",                                                                                \
     .doc = "Colours of one band, from the low end of its range to the high one."},                \
        {.name = "colours",                                                                        \
         .type = PB_KEY_PATH,                                                                      \
         .offset = offsetof(config, member.colours),                                               \
         .example = "colours.txt",                                                                 \
         .doc =                                                                                    \
             "In place of ramp: a colour file as gdaldem color-relief takes it, with values or "   \
             "percentages of the range. A relative path begins at the configuration's "            \
             "directory."},                                                                        \
        {.name = "between",                                                                        \
         .type = PB_KEY_CHOICE,                                                                    \
         .offset = offsetof(config, member.between),                                               \
         .more = offsetof(config, member.has_between),                                             \
         .choices = "blend|nearest|exact",                                                         \
         .example = "exact",                                                                       \
         .doc = "Of values between two lines of the colour file: blended, the nearest line, or "   \
                "none (exact); blended without this key."},                                        \
    {                                                                                              \
        .name = "range", .type = PB_KEY_RANGE, .offset = offsetof(config, member.range),           \
        .more = offsetof(config, member.has_range), .example = "[-1, 1]",                          \
        .doc = "The values that become the two ends of the ramp, or black and white."              \
    }

/* Checks the keys against each other and reads the ramp. n_bands: that the product names, 0 =
 * none. */
void pb_paint_check(struct pb_paint_config *paint, size_t n_bands,
                    const struct pb_product_check *check);
/* The ramp by its name, or the colour file; NULL = neither. Returns out otherwise. */
const char *pb_paint_ramp_text(const struct pb_paint_config *paint, char *out, size_t bytes);
#endif
