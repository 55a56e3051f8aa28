/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Pleiades, Pleiades Neo, SPOT 6 and 7: DIMAP V2 (DIM_*.XML). */
#include "pipeline/metadata/family.h"
#include "pipeline/metadata/meta_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PI 3.14159265358979323846

static bool is_one(const struct pb_meta_node *root)
{
    return root->first != NULL && strcmp(root->first->name, "Dimap_Document") == 0;
}

/* Returns the values at the middle of the image, else the first ones. */
static const struct pb_meta_node *middle_of(const struct pb_meta_node *root)
{
    static const char name[] = "Located_Geometric_Values";
    for (const struct pb_meta_node *at = NULL; (at = pb_meta_below(root, name, at)) != NULL;) {
        const char *where = pb_meta_text(at, "LOCATION_TYPE");
        if (where != NULL && strcmp(where, "Center") == 0)
            return at;
    }
    return pb_meta_below(root, name, NULL);
}

/* Makes "pleiades-1b" from "PLEIADES", "1B". */
static void set_platform(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    const char *mission = pb_meta_text_below(root, "MISSION");
    const char *index = pb_meta_text_below(root, "MISSION_INDEX");
    char platform[32], constellation[32];
    if (mission == NULL)
        return;
    (void)snprintf(platform, sizeof platform, "%.20s%s%.8s", mission, index ? "-" : "",
                   index ? index : "");
    (void)snprintf(constellation, sizeof constellation, "%.20s", mission);
    for (char *c = platform; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    for (char *c = constellation; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    PB_META_SET(r, platform, platform, "the satellite");
    PB_META_SET(r, constellation, constellation, "the constellation");
}

static void read_numbers(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    static const char name[] = "Raster_Index";
    for (const struct pb_meta_node *at = NULL;
         r->rc == 0 && (at = pb_meta_below(root, name, at)) != NULL;) {
        struct pb_meta_band *band = pb_meta_band(r, pb_meta_need_text(r, at, "BAND_ID"));
        double number = pb_meta_need_number(r, at, "BAND_INDEX", 1, 32);
        if (band != NULL && r->rc == 0)
            band->number = (int)number;
    }
}

/* L = DN / GAIN + BIAS. */
static void read_radiance(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    static const char name[] = "Band_Radiance";
    for (const struct pb_meta_node *at = NULL;
         r->rc == 0 && (at = pb_meta_below(root, name, at)) != NULL;) {
        struct pb_meta_band *band = pb_meta_band(r, pb_meta_need_text(r, at, "BAND_ID"));
        double gain = pb_meta_need_number(r, at, "GAIN", 1e-6, 1e6);
        double bias = pb_meta_need_number(r, at, "BIAS", -1e6, 1e6);
        pb_meta_set_scale(band, PB_QUANTITY_RADIANCE, 1 / gain, bias);
    }
}

static void read_toa(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    static const char name[] = "Band_Solar_Irradiance";
    double distance = pb_meta_sun_distance(r->out);
    if (!(r->out->sun_elevation > 0) || isnan(distance))
        return;
    for (const struct pb_meta_node *at = NULL;
         r->rc == 0 && (at = pb_meta_below(root, name, at)) != NULL;) {
        struct pb_meta_band *band = pb_meta_band(r, pb_meta_need_text(r, at, "BAND_ID"));
        double sun = pb_meta_need_number(r, at, "VALUE", 1, 1e5);
        double factor = PI * distance * distance / (sun * pb_meta_sun_height(r));
        if (band != NULL && band->to[PB_QUANTITY_RADIANCE].known)
            pb_meta_set_scale(band, PB_QUANTITY_TOA, band->to[PB_QUANTITY_RADIANCE].gain * factor,
                              band->to[PB_QUANTITY_RADIANCE].offset * factor);
    }
}

static void say_rules(struct pb_metadata *out)
{
    (void)snprintf(out->rule[PB_QUANTITY_RADIANCE], sizeof out->rule[0], "DN / GAIN + BIAS");
    (void)snprintf(out->rule[PB_QUANTITY_TOA], sizeof out->rule[0],
                   "(DN / GAIN + BIAS) * pi * d^2 / (Band_Solar_Irradiance * sin(sun elevation "
                   "%.8g degrees)), d = %.6g AU",
                   out->sun_elevation, pb_meta_sun_distance(out));
    (void)snprintf(out->why_not[PB_QUANTITY_SURFACE], sizeof out->why_not[0],
                   "DIMAP does not define how values become surface reflectance");
    (void)snprintf(out->why_not[PB_QUANTITY_TEMPERATURE], sizeof out->why_not[0],
                   "the satellite has no thermal bands");
    (void)snprintf(out->why_not[PB_QUANTITY_TOA], sizeof out->why_not[0],
                   "Band_Solar_Irradiance, SUN_ELEVATION or the time is missing");
}

/* Stored values are counts of the sensor only in products of basic radiometry. */
static void read_calibration(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    const char *processing = pb_meta_text_below(root, "RADIOMETRIC_PROCESSING");
    struct pb_metadata *out = r->out;
    read_numbers(r, root);
    if (processing != NULL && strcmp(processing, "BASIC") != 0) {
        for (int to = 0; to < PB_QUANTITIES; to++)
            (void)snprintf(
                out->why_not[to], sizeof out->why_not[to],
                "RADIOMETRIC_PROCESSING is %.40s: the stored values are no counts of the "
                "sensor; order BASIC",
                processing);
        return;
    }
    read_radiance(r, root);
    read_toa(r, root);
    say_rules(out);
}

static void read(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    const struct pb_meta_node *middle = middle_of(root);
    const struct pb_meta_node *source = pb_meta_below(root, "Strip_Source", NULL);
    const struct pb_meta_node *sun = pb_meta_child(middle, "Solar_Incidences");
    const struct pb_meta_node *view = pb_meta_child(middle, "Acquisition_Angles");
    struct pb_metadata *out = r->out;
    set_platform(r, root);
    PB_META_SET(r, product, pb_meta_text_below(root, "DATASET_NAME"), "the product");
    PB_META_SET(r, level, pb_meta_text_below(root, "PROCESSING_LEVEL"), "the level");
    pb_meta_set_time(r, pb_meta_text(middle, "TIME"), true);
    if (out->datetime[0] == '\0')
        pb_meta_set_day_time(r, pb_meta_text(source, "IMAGING_DATE"),
                             pb_meta_text(source, "IMAGING_TIME"));
    pb_meta_set_number(r, &out->sun_azimuth, pb_meta_number(r, sun, "SUN_AZIMUTH", 0, 360),
                       "the sun's azimuth");
    pb_meta_set_number(r, &out->sun_elevation, pb_meta_number(r, sun, "SUN_ELEVATION", -90, 90),
                       "the sun's height");
    pb_meta_set_number(r, &out->view_azimuth, pb_meta_number(r, view, "AZIMUTH_ANGLE", 0, 360),
                       "the azimuth of the view");
    pb_meta_set_number(r, &out->off_nadir, fabs(pb_meta_number(r, view, "VIEWING_ANGLE", -90, 90)),
                       "the angle off nadir");
    pb_meta_set_number(r, &out->incidence,
                       fabs(pb_meta_number(r, view, "INCIDENCE_ANGLE", -90, 90)),
                       "the angle of incidence");
    const char *spacing = pb_meta_text_below(root, "RESAMPLING_SPACING");
    if (spacing != NULL)
        pb_meta_set_number(r, &out->gsd,
                           pb_meta_number_of(r, spacing, "RESAMPLING_SPACING", 0.01, 100),
                           "the ground sample distance");
    if (r->rc == 0)
        read_calibration(r, root);
}

const struct pb_metadata_family pb_family_pleiades = {
    .name = "pleiades",
    .files = "DIM_*.XML",
    .source = "Pleiades Imagery User Guide, appendix A; SPOT 6 and SPOT 7 Imagery User Guide",
    .is_one = is_one,
    .read = read,
};
