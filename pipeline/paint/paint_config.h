/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PAINT_CONFIG_H
#define PB_PAINT_CONFIG_H
/* Keys for the colours of products, the same in each: ramp or colours, between, range and
 * stretch. A colour file is read when the configuration is loaded. */
#include "config/product_check.h"
#include "kernels/key.h"
#include "pipeline/paint/ramp.h"

struct pb_paint_config {
    int32_t ramp;    /* index in pb_ramp_choices; 0 = no ramp */
    char *colours;   /* a colour file; relative paths begin at the configuration's directory */
    int32_t between; /* enum pb_ramp_between */
    bool has_between;
    double range[2]; /* values of the two ends; the first may be greater than the second */
    bool has_range;
    double stretch[2]; /* percentiles, 0 <= a < b <= 100 */
    bool has_stretch;  /* stretch or method is given in the file */
    int32_t method;    /* enum pb_stretch_method */
    bool has_method;
    double deviations, gamma;
    char *shade;   /* name of a band of brightness; NULL = none */
    int32_t blend; /* enum pb_paint_blend */
    bool has_blend;
    bool is_asked; /* the file defines how values become levels */
    /* ramp from `ramp` or `colours`; NULL = no ramp. Set by pb_paint_check */
    const struct pb_ramp *chosen;
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
        {.name = "stretch_method",                                                                 \
         .type = PB_KEY_CHOICE,                                                                    \
         .offset = offsetof(config, member.method),                                                \
         .more = offsetof(config, member.has_method),                                              \
         .choices = "percentiles|minmax|stddev|equalize",                                          \
         .example = "equalize",                                                                    \
         .doc =                                                                                    \
             "Ends of the range: the percentiles of stretch, the least and greatest value, or a "  \
             "number of deviations around the mean; equalize: each level has as many pixels."},    \
        {.name = "deviations",                                                                     \
         .type = PB_KEY_NUMBER,                                                                    \
         .offset = offsetof(config, member.deviations),                                            \
         .min = 1e-6,                                                                              \
         .max = 1e6,                                                                               \
         .def = "2",                                                                               \
         .doc = "Standard deviations to each side of the mean, for stretch_method: stddev."},      \
        {.name = "gamma",                                                                          \
         .type = PB_KEY_NUMBER,                                                                    \
         .offset = offsetof(config, member.gamma),                                                 \
         .min = 0.01,                                                                              \
         .max = 100,                                                                               \
         .def = "1",                                                                               \
         .doc = "Levels, or shares of the ramp, to the power of 1 / gamma: above 1 brightens."},   \
        {.name = "shade",                                                                          \
         .type = PB_KEY_NAME,                                                                      \
         .offset = offsetof(config, member.shade),                                                 \
         .example = "SHADE",                                                                       \
         .doc = "A band of brightness from 0 to 255, as hillshade makes it, that the colours are " \
                "blended with."},                                                                  \
        {.name = "blend",                                                                          \
         .type = PB_KEY_CHOICE,                                                                    \
         .offset = offsetof(config, member.blend),                                                 \
         .more = offsetof(config, member.has_blend),                                               \
         .choices = "multiply|overlay",                                                            \
         .example = "overlay",                                                                     \
         .doc = "How shade and colours are blended: multiply darkens what is in the shade, "       \
                "overlay also brightens what is lit; multiply without this key."},                 \
    {                                                                                              \
        .name = "range", .type = PB_KEY_RANGE, .offset = offsetof(config, member.range),           \
        .more = offsetof(config, member.has_range), .example = "[-1, 1]",                          \
        .doc = "The values that become the two ends of the ramp, or black and white."              \
    }

/* Returns true if gamma has an effect. */
bool pb_paint_has_gamma(const struct pb_paint_config *paint);
/* Checks the keys against each other and reads the ramp. n_bands: count of bands that the
 * product names, 0 = no names. */
void pb_paint_check(struct pb_paint_config *paint, size_t n_bands,
                    const struct pb_product_check *check);
/* Call after pb_paint_check: adds the band of shade to the product's bands, after those that it
 * names. */
void pb_paint_take_shade(const struct pb_paint_config *paint, struct pb_product_config *product,
                         const struct pb_product_check *check);
/* Describes the ramp by its name, or the colour file; NULL = neither. Returns out otherwise. */
const char *pb_paint_ramp_text(const struct pb_paint_config *paint, char *out, size_t bytes);
#endif
