/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* WorldView, GeoEye, QuickBird, IKONOS of the same vendor: the IMD file. Bands are in the order of
 * their groups. Solar irradiance is not in the file: it is in a table of the vendor's, by
 * satellite. */
#include "pipeline/metadata/family.h"
#include "pipeline/metadata/meta_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Band-averaged solar irradiance at 1 AU by Thuillier 2003, W / (m2 um), from Maxar's
 * (DigitalGlobe's) Absolute Radiometric Calibration 2016v0, as published twice: eoreader for
 * all, the Charter's documentation (docs.disasterscharter.org) for WorldView-2 and -3, the Polar
 * Geospatial Center for GeoEye-1, others for QuickBird. They disagree on WorldView-1, and
 * WorldView-4 has one source: neither is here. The values of "Radiometric Use of WorldView-2
 * Imagery" (2010) are from another solar spectrum. */
static const struct irradiance {
    const char *satellite, *band;
    double value;
} irradiance[] = {
    {"QB02", "P", 1370.92},  {"QB02", "B", 1949.59},  {"QB02", "G", 1823.64},
    {"QB02", "R", 1553.78},  {"QB02", "N", 1102.85},  {"GE01", "P", 1610.73},
    {"GE01", "B", 1993.18},  {"GE01", "G", 1828.83},  {"GE01", "R", 1491.49},
    {"GE01", "N", 1022.58},  {"WV02", "P", 1571.36},  {"WV02", "C", 1773.81},
    {"WV02", "B", 2007.27},  {"WV02", "G", 1829.62},  {"WV02", "Y", 1701.85},
    {"WV02", "R", 1538.85},  {"WV02", "RE", 1346.09}, {"WV02", "N", 1053.21},
    {"WV02", "N2", 856.599}, {"WV03", "P", 1574.41},  {"WV03", "C", 1757.89},
    {"WV03", "B", 2004.61},  {"WV03", "G", 1830.18},  {"WV03", "Y", 1712.07},
    {"WV03", "R", 1535.33},  {"WV03", "RE", 1348.08}, {"WV03", "N", 1055.94},
    {"WV03", "N2", 858.77},
};

static const struct {
    const char *id, *platform, *constellation;
} satellites[] = {{"WV01", "worldview-1", "worldview"}, {"WV02", "worldview-2", "worldview"},
                  {"WV03", "worldview-3", "worldview"}, {"WV04", "worldview-4", "worldview"},
                  {"GE01", "geoeye-1", "geoeye"},       {"QB02", "quickbird-2", "quickbird"}};

static bool is_one(const struct pb_meta_node *root)
{
    return pb_meta_text(root, "IMAGE_1/satId") != NULL;
}

static double irradiance_of(const char *satellite, const char *band)
{
    for (size_t i = 0; i < sizeof irradiance / sizeof *irradiance; i++)
        if (strcmp(irradiance[i].satellite, satellite) == 0 &&
            strcmp(irradiance[i].band, band) == 0)
            return irradiance[i].value;
    return NAN;
}

static void read_band(struct pb_meta_reader *r, const struct pb_meta_node *group,
                      const char *satellite, int number)
{
    const char *id = group->name + strlen("BAND_");
    double factor = pb_meta_need_number(r, group, "absCalFactor", 1e-9, 1e3);
    double width = pb_meta_need_number(r, group, "effectiveBandwidth", 1e-6, 1e3);
    struct pb_meta_band *band = pb_meta_band(r, id);
    if (r->rc < 0 || band == NULL)
        return;
    band->number = number;
    pb_meta_set_scale(band, PB_QUANTITY_RADIANCE, factor / width, 0);
    double sun = irradiance_of(satellite, id), distance = pb_meta_sun_distance(r->out);
    if (!isnan(sun) && r->out->sun_elevation > 0 && !isnan(distance))
        pb_meta_set_scale(band, PB_QUANTITY_TOA,
                          factor / width * distance * distance * PI / (sun * pb_meta_sun_height(r)),
                          0);
}

static void read_bands(struct pb_meta_reader *r, const struct pb_meta_node *root,
                       const char *satellite)
{
    int number = 0;
    for (const struct pb_meta_node *at = root->first; at != NULL && r->rc == 0; at = at->next)
        if (strncmp(at->name, "BAND_", 5) == 0 && at->first != NULL)
            read_band(r, at, satellite, ++number);
    struct pb_metadata *out = r->out;
    (void)snprintf(
        out->rule[PB_QUANTITY_RADIANCE], sizeof out->rule[0],
        "DN * absCalFactor / effectiveBandwidth, without later adjustments of the vendor");
    (void)snprintf(out->rule[PB_QUANTITY_TOA], sizeof out->rule[0],
                   "radiance * pi * d^2 / (irradiance by Thuillier 2003 * sin(sun elevation %.8g "
                   "degrees)), d = %.6g AU",
                   out->sun_elevation, pb_meta_sun_distance(out));
    (void)snprintf(
        out->why_not[PB_QUANTITY_TOA], sizeof out->why_not[0],
        "no irradiance of the sun in this band of %.8s is known here, or its height or the time is "
        "missing; give calibrate.irradiance: {BAND: W/(m2 um)}, or write to: radiance",
        satellite);
    (void)snprintf(out->why_not[PB_QUANTITY_SURFACE], sizeof out->why_not[0],
                   "no product of this family defines how values become surface reflectance");
    (void)snprintf(out->why_not[PB_QUANTITY_TEMPERATURE], sizeof out->why_not[0],
                   "the satellite has no thermal bands");
}

static void set_satellite(struct pb_meta_reader *r, const char *id)
{
    for (size_t i = 0; id && i < sizeof satellites / sizeof *satellites; i++)
        if (strcmp(satellites[i].id, id) == 0) {
            PB_META_SET(r, platform, satellites[i].platform, "the satellite");
            PB_META_SET(r, constellation, satellites[i].constellation, "the constellation");
            return;
        }
    PB_META_SET(r, platform, id, "the satellite");
}

static void read(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    const struct pb_meta_node *image = pb_meta_child(root, "IMAGE_1");
    const char *satellite = pb_meta_need_text(r, image, "satId");
    const char *when = pb_meta_text(image, "TLCTime");
    struct pb_metadata *out = r->out;
    set_satellite(r, satellite);
    PB_META_SET(r, product, pb_meta_text(root, "productOrderId"), "the product");
    PB_META_SET(r, level, pb_meta_text(root, "productLevel"), "the level");
    if (when == NULL)
        when = pb_meta_text(image, "firstLineTime");
    pb_meta_set_time(r, when, true);
    pb_meta_set_number(r, &out->sun_azimuth, pb_meta_number(r, image, "meanSunAz", 0, 360),
                       "the sun's azimuth");
    pb_meta_set_number(r, &out->sun_elevation, pb_meta_number(r, image, "meanSunEl", -90, 90),
                       "the sun's height");
    pb_meta_set_number(r, &out->view_azimuth, pb_meta_number(r, image, "meanSatAz", 0, 360),
                       "the azimuth of the view");
    pb_meta_set_number(r, &out->off_nadir, pb_meta_number(r, image, "meanOffNadirViewAngle", 0, 90),
                       "the angle off nadir");
    pb_meta_set_number(r, &out->incidence, 90 - pb_meta_number(r, image, "meanSatEl", 0, 90),
                       "the angle of incidence");
    pb_meta_set_number(r, &out->gsd, pb_meta_number(r, image, "meanProductGSD", 0.01, 100),
                       "the ground sample distance");
    double cloud = pb_meta_number(r, image, "cloudCover", -999, 1); /* -999: not assessed */
    pb_meta_set_number(r, &out->cloud_cover, cloud < 0 ? NAN : 100 * cloud, "the cloud cover");
    if (r->rc == 0)
        read_bands(r, root, satellite);
}

const struct pb_metadata_family pb_family_worldview = {
    .name = "worldview",
    .files = "*.IMD",
    .source = "Radiometric Use of WorldView-2 Imagery, DigitalGlobe 2010; Absolute Radiometric "
              "Calibration, 2016v0 and 2018v0",
    .is_one = is_one,
    .read = read,
};
