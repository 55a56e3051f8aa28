/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BAND_TAGS_H
#define PB_BAND_TAGS_H
/* The meaning of the numbers of a band, by the tags of its file: scale, offset and unit, and the
 * colours of its classes. A weighted mean of numbers has the scale, offset and unit that the
 * numbers share; only a selection among them keeps the colours. Plain data; any thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_band_tags {
    double scale, offset;        /* value = number * scale + offset; scale 0 = 1 and 0 */
    const char *unit;            /* borrowed; NULL or "" = not known */
    int32_t color;               /* GDAL's colour interpretation; 0 = none */
    const uint8_t (*colours)[4]; /* n_colours, borrowed: red, green, blue, alpha by value */
    size_t n_colours;
};

/* True if numbers of both may be mixed: equal scale and offset, and no two different units. */
bool pb_band_tags_agree(const struct pb_band_tags *a, const struct pb_band_tags *b);
/* The tags of a mixture of two that agree: what both have. */
struct pb_band_tags pb_band_tags_joined(const struct pb_band_tags *a, const struct pb_band_tags *b);
/* The tags of a weighted mean: without colours. */
struct pb_band_tags pb_band_tags_of_mean(const struct pb_band_tags *of);
/* "scale 0.01, offset 273.15, unit K"; "no scale". Returns out. */
const char *pb_band_tags_text(const struct pb_band_tags *q, char *out, size_t bytes);
#endif
