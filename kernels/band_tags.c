/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/band_tags.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PALETTE = 2 }; /* GDAL's number of colour tables */

static double scale_of(const struct pb_band_tags *q)
{
    return q->scale == 0 ? 1 : q->scale;
}

static double offset_of(const struct pb_band_tags *q)
{
    return q->scale == 0 ? 0 : q->offset;
}

static bool has_unit(const struct pb_band_tags *q)
{
    return q->unit != NULL && q->unit[0] != '\0';
}

/* One spelling for units that files write in several ways. */
static const char *spelling(const char *unit)
{
    static const char *const words[][6] = {
        {"m", "metre", "meter", "metres", "meters"},
        {"K", "kelvin", "kelvins"},
        {"1", "none", "unitless", "dimensionless"},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (size_t k = 0; k < 6 && words[i][k] != NULL; k++)
            if (strcasecmp(unit, words[i][k]) == 0)
                return words[i][0];
    return unit;
}

static bool same_unit(const struct pb_band_tags *a, const struct pb_band_tags *b)
{
    return strcmp(spelling(a->unit), spelling(b->unit)) == 0;
}

static bool same_colours(const struct pb_band_tags *a, const struct pb_band_tags *b)
{
    return a->n_colours > 0 && a->n_colours == b->n_colours &&
           memcmp(a->colours, b->colours, a->n_colours * sizeof *a->colours) == 0;
}

bool pb_band_tags_agree(const struct pb_band_tags *a, const struct pb_band_tags *b)
{
    return scale_of(a) == scale_of(b) && offset_of(a) == offset_of(b) &&
           (!has_unit(a) || !has_unit(b) || same_unit(a, b));
}

struct pb_band_tags pb_band_tags_joined(const struct pb_band_tags *a, const struct pb_band_tags *b)
{
    const bool colours = same_colours(a, b);

    return (struct pb_band_tags){
        .scale = a->scale,
        .offset = a->offset,
        .unit = has_unit(a) && has_unit(b) ? a->unit : NULL,
        .color = a->color != b->color || (a->color == PALETTE && !colours) ? 0 : a->color,
        .colours = colours ? a->colours : NULL,
        .n_colours = colours ? a->n_colours : 0,
    };
}

struct pb_band_tags pb_band_tags_of_mean(const struct pb_band_tags *of)
{
    struct pb_band_tags mean = *of;

    mean.colours = NULL;
    mean.n_colours = 0;
    mean.color = of->color == PALETTE ? 0 : of->color;
    return mean;
}

const char *pb_band_tags_text(const struct pb_band_tags *q, char *out, size_t bytes)
{
    int n = 0;

    if (scale_of(q) == 1 && offset_of(q) == 0)
        n = snprintf(out, bytes, "no scale");
    else
        n = snprintf(out, bytes, "scale %.10g, offset %.10g", scale_of(q), offset_of(q));
    if (has_unit(q) && n >= 0 && (size_t)n < bytes)
        (void)snprintf(out + n, bytes - (size_t)n, ", unit %s", q->unit);
    return out;
}
