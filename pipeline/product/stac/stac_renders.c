/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac/stac_renders.h"

#include "pipeline/paint/ramp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLOURS = 256 };

/* Description of the rendering of one picture. */
struct render {
    size_t picture, data; /* numbers of results */
    const struct pb_shown *shown;
    struct pb_stored_band band[3];
    double low[3], high[3]; /* stored values, low < high */
    bool reversed;          /* the ends of one band were exchanged */
};

static bool is_whole(double value)
{
    return value == floor(value) && fabs(value) < 1e9;
}

/* Finds the ends of a ramp with its own values; returns false if two of them have no value in
 * between. */
static bool ramp_ends(const struct pb_ramp *ramp, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < ramp->n; i++) {
        *low = fmin(*low, ramp->stop[i].at);
        *high = fmax(*high, ramp->stop[i].at);
        if (ramp->stop[i].is_share ||
            (ramp->between == PB_RAMP_EXACT && !is_whole(ramp->stop[i].at)))
            return false;
    }
    return ramp->between == PB_RAMP_EXACT || *low < *high;
}

static bool is_exact(const struct render *r)
{
    return !r->shown->has_ends && r->shown->paint->chosen->between == PB_RAMP_EXACT;
}

/* Converts the ends to stored values. Returns false if no range of stored values expresses them. */
static bool take_ends(struct render *r)
{
    const struct pb_shown *shown = r->shown;
    for (uint32_t p = 0; p < shown->n; p++) {
        double low = shown->low[p], high = shown->high[p];
        if (!shown->has_ends && !ramp_ends(shown->paint->chosen, &low, &high))
            return false;
        if (is_exact(r) && (r->band[p].scale != 1 || r->band[p].offset != 0))
            return false;
        low = (low - r->band[p].offset) / r->band[p].scale;
        high = (high - r->band[p].offset) / r->band[p].scale;
        bool swapped = low > high;
        r->reversed = p == 0 ? swapped : r->reversed;
        r->low[p] = fmin(low, high);
        r->high[p] = fmax(low, high);
        if (!isfinite(low) || !isfinite(high) || (low == high && !is_exact(r)) ||
            (swapped && shown->n > 1))
            return false;
    }
    return true;
}

/* Finds the first product with all planes of the picture. */
static bool find(const struct pb_stac_item *item, size_t picture, struct render *out)
{
    const struct pb_shown *shown = item->results[picture].shown;
    *out = (struct render){.picture = picture, .shown = shown};
    for (size_t i = 0; shown != NULL && i < item->n_results; i++) {
        const struct pb_product_type *type = pb_product_type(item->results[i].kind);
        bool all = type->stored != NULL;
        for (uint32_t p = 0; p < shown->n && all; p++)
            all = type->stored(item->env, item->results[i].config, shown->plane[p], &out->band[p]);
        out->data = i;
        if (all && take_ends(out))
            return true;
    }
    return false;
}

bool pb_stac_has_renders(const struct pb_stac_item *item)
{
    struct render render;
    for (size_t i = 0; i < item->n_results; i++)
        if (find(item, i, &render))
            return true;
    return false;
}

/* --- colours --------------------------------------------------------------------------------- */

/* Names of ramps whose colours rio-tiler has too; NULL = absent. Without a ramp one band is
 * grey, which needs a name only if reversed. */
static const char *known_name(const struct render *r)
{
    static const struct {
        const char *ramp, *name, *reversed;
    } known[] = {{"none", NULL, "gray_r"},
                 {"grey", "gray", "gray_r"},
                 {"viridis", "viridis", "viridis_r"},
                 {"magma", "magma", "magma_r"},
                 {"inferno", "inferno", "inferno_r"},
                 {"plasma", "plasma", "plasma_r"},
                 {"turbo", "turbo", "turbo_r"}};
    size_t length;
    const char *ramp = pb_key_choice(pb_ramp_choices, r->shown->paint->ramp, &length);
    for (size_t i = 0; r->shown->paint->colours == NULL && i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].ramp) == length && strncmp(known[i].ramp, ramp, length) == 0)
            return r->reversed ? known[i].reversed : known[i].name;
    return NULL;
}

/* "12":[255,0,0,255] */
static int put_colour(FILE *text, long value, const uint8_t rgba[4], bool first)
{
    return fprintf(text, "%s\"%ld\":[%u,%u,%u,%u]", first ? "" : ",", value, rgba[0], rgba[1],
                   rgba[2], rgba[3]);
}

/* Writes the ramp over the range in 256 colours; for a ramp of single values only these. */
static int put_colours(FILE *text, const struct render *r)
{
    const struct pb_ramp *ramp = r->shown->paint->chosen;
    const struct pb_stored_band *band = &r->band[0];
    struct pb_ramp_table *table = pb_ramp_table_create(ramp, r->shown->low[0], r->shown->high[0]);
    uint8_t rgba[4];
    int rc = table == NULL ? -1 : fprintf(text, "{");
    for (size_t i = 0; rc >= 0 && is_exact(r) && i < ramp->n; i++)
        rc = put_colour(text, (long)ramp->stop[i].at, ramp->stop[i].rgba, i == 0);
    for (long i = 0; rc >= 0 && !is_exact(r) && i < COLOURS; i++) {
        double stored = r->low[0] + (r->high[0] - r->low[0]) * (double)i / (COLOURS - 1);
        pb_ramp_colour(table, stored * band->scale + band->offset, rgba);
        rc = put_colour(text, i, rgba, i == 0);
    }
    rc = rc < 0 ? rc : fprintf(text, "}");
    pb_ramp_table_destroy(table);
    return rc;
}

static void write_colours(struct pb_json *json, const struct render *r)
{
    const char *name = known_name(r);
    char *colours = NULL;
    size_t bytes = 0;
    if (name != NULL)
        pb_json_string(json, "colormap_name", name);
    if (name != NULL || r->shown->paint->chosen == NULL)
        return;
    FILE *text = open_memstream(&colours, &bytes);
    bool good = text != NULL && put_colours(text, r) >= 0;
    good = text != NULL && fclose(text) == 0 && good;
    if (good)
        pb_json_raw(json, "colormap", colours);
    free(colours);
}

/* --- the member ------------------------------------------------------------------------------ */

static void write_render(const struct pb_stac_item *item, const struct render *r)
{
    struct pb_json *json = item->json;
    char key[80];
    pb_stac_asset_key(item, r->picture, key, sizeof key);
    pb_json_object(json, key);
    pb_json_string(json, "title", pb_product_type(item->results[r->picture].kind)->title);
    pb_stac_asset_key(item, r->data, key, sizeof key);
    pb_json_array(json, "assets");
    pb_json_string(json, NULL, key);
    pb_json_end(json);
    pb_json_array(json, "bidx");
    for (uint32_t p = 0; p < r->shown->n; p++)
        pb_json_int(json, NULL, r->band[p].number);
    pb_json_end(json);
    if (!is_exact(r)) {
        pb_json_array(json, "rescale");
        for (uint32_t p = 0; p < r->shown->n; p++) {
            pb_json_array(json, NULL);
            pb_json_number(json, NULL, r->low[p]);
            pb_json_number(json, NULL, r->high[p]);
            pb_json_end(json);
        }
        pb_json_end(json);
    }
    if (r->shown->n == 1)
        write_colours(json, r);
    pb_json_end(json);
}

void pb_stac_renders(const struct pb_stac_item *item)
{
    struct render render;
    if (!pb_stac_has_renders(item))
        return;
    pb_json_object(item->json, "renders");
    for (size_t i = 0; i < item->n_results; i++)
        if (find(item, i, &render))
            write_render(item, &render);
    pb_json_end(item->json);
}
