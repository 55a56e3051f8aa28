/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A STAC item of any producer, including pushbroom: acquisition time, angles and cloud cover of
 * a scene. The meaning of its stored values is left to families that know the producer. */
#include "pipeline/metadata/family.h"
#include "pipeline/metadata/meta_reader.h"
#include "pipeline/metadata/meta_time.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_one(const struct pb_meta_node *root)
{
    const struct pb_meta_node *item = pb_meta_child(root, "document");
    const char *type = pb_meta_text(item, "type");
    return type != NULL && strcmp(type, "Feature") == 0 &&
           pb_meta_text(item, "stac_version") != NULL && pb_meta_child(item, "properties") != NULL;
}

/* Takes over the interval of a product of several observations, which has no single time. */
static void read_interval(struct pb_meta_reader *r, const char *start, const char *end)
{
    struct pb_metadata *out = r->out;
    if (pb_meta_time(start, out->start, sizeof out->start) < 0 ||
        pb_meta_time(end, out->end, sizeof out->end) < 0)
        pb_meta_wrong(r, "start_datetime '%.40s' or end_datetime '%.40s' is no time", start, end);
    else if (pb_meta_julian_day(out->end) < pb_meta_julian_day(out->start))
        pb_meta_wrong(r, "end_datetime '%.40s' is before start_datetime '%.40s'", end, start);
}

static void read_time(struct pb_meta_reader *r, const struct pb_meta_node *item)
{
    const char *when = pb_meta_text(item, "datetime");
    const char *start = pb_meta_text(item, "start_datetime");
    const char *end = pb_meta_text(item, "end_datetime");
    const bool is_null = when == NULL || when[0] == '\0';
    if (is_null && start != NULL && end != NULL && strcmp(start, end) == 0)
        when = start;
    else if (is_null && start != NULL && end != NULL)
        read_interval(r, start, end);
    pb_meta_set_time(r, when, true);
}

static void read_view(struct pb_meta_reader *r, const struct pb_meta_node *item)
{
    struct pb_metadata *out = r->out;
    pb_meta_set_number(r, &out->sun_azimuth,
                       pb_meta_azimuth(pb_meta_number(r, item, "view:sun_azimuth", -360, 360)),
                       "the sun's azimuth");
    pb_meta_set_number(r, &out->sun_elevation,
                       pb_meta_number(r, item, "view:sun_elevation", -90, 90), "the sun's height");
    pb_meta_set_number(r, &out->view_azimuth,
                       pb_meta_azimuth(pb_meta_number(r, item, "view:azimuth", -360, 360)),
                       "the azimuth of the view");
    pb_meta_set_number(r, &out->off_nadir, fabs(pb_meta_number(r, item, "view:off_nadir", -90, 90)),
                       "the angle off nadir");
    pb_meta_set_number(r, &out->incidence,
                       fabs(pb_meta_number(r, item, "view:incidence_angle", -90, 90)),
                       "the angle of incidence");
}

static void read(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    const struct pb_meta_node *document = pb_meta_child(root, "document");
    const struct pb_meta_node *item = pb_meta_child(document, "properties");
    struct pb_metadata *out = r->out;
    PB_META_SET(r, product, pb_meta_text(document, "id"), "the product");
    PB_META_SET(r, platform, pb_meta_text(item, "platform"), "the satellite");
    PB_META_SET(r, constellation, pb_meta_text(item, "constellation"), "the constellation");
    PB_META_SET(r, instrument, pb_meta_text(item, "instruments/item"), "the instrument");
    PB_META_SET(r, orbit_state, pb_meta_text(item, "sat:orbit_state"),
                "the direction of the orbit");
    read_time(r, item);
    pb_meta_set_item_tile(r, item);
    read_view(r, item);
    pb_meta_set_number(r, &out->gsd, pb_meta_number(r, item, "gsd", 0.01, 100000),
                       "the ground sample distance");
    pb_meta_set_number(r, &out->cloud_cover, pb_meta_number(r, item, "eo:cloud_cover", 0, 100),
                       "the cloud cover");
    pb_meta_set_number(r, &out->relative_orbit,
                       pb_meta_number(r, item, "sat:relative_orbit", 1, 100000),
                       "the relative orbit");
    pb_meta_set_number(r, &out->absolute_orbit,
                       pb_meta_number(r, item, "sat:absolute_orbit", 1, 1e9), "the orbit");
}

static void finish(struct pb_meta_reader *r)
{
    for (int to = 0; to < PB_QUANTITIES; to++)
        (void)snprintf(r->out->why_not[to], sizeof r->out->why_not[to],
                       "a STAC item does not define the meaning of stored values; name the "
                       "producer's own metadata in input.metadata");
}

const struct pb_metadata_family pb_family_stac = {
    .name = "stac-item",
    .files = "a STAC item of any producer, for when and how a scene was taken",
    .source = "STAC Item Specification 1.0 and 1.1, with the extensions eo, view, sat, grid "
              "and landsat",
    .facts_only = true,
    .is_one = is_one,
    .read = read,
    .finish = finish,
};
