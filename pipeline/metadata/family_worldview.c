/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* WorldView, GeoEye, QuickBird, IKONOS of the same vendor: the IMD file. Bands are in the order of
 * their groups. Solar irradiance is not in the file: it is a table of the vendor's, by satellite.
 */
#include "pipeline/metadata/family.h"
#include "pipeline/metadata/meta_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Radiometric Use of WorldView-2 Imagery (DigitalGlobe 2010), table 4, and of WorldView-3 Imagery
 * (2016): band-averaged solar irradiance, W / (m2 um), by Thuillier 2003. */
static const struct irradiance {
    const char *satellite, *band;
    double value;
} irradiance[] = {
    {"WV02", "P", 1580.8140},  {"WV02", "C", 1758.2229}, {"WV02", "B", 1974.2416},
    {"WV02", "G", 1856.4104},  {"WV02", "Y", 1738.4791}, {"WV02", "R", 1559.4555},
    {"WV02", "RE", 1342.0695}, {"WV02", "N", 1069.7302}, {"WV02", "N2", 861.2866},
    {"WV03", "C", 1803.9109},  {"WV03", "B", 1982.4485}, {"WV03", "G", 1857.1232},
    {"WV03", "Y", 1746.5947},  {"WV03", "R", 1556.9730}, {"WV03", "RE", 1340.6822},
    {"WV03", "N", 1072.5267},  {"WV03", "N2", 871.1058},
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
        "the sun's irradiance in the bands of %.8s is not known here, or the sun's height "
        "or the time is missing; radiance is possible",
        satellite);
    (void)snprintf(out->why_not[PB_QUANTITY_SURFACE], sizeof out->why_not[0],
                   "no product of this family says how values become surface reflectance");
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
    .source = "Radiometric Use of WorldView-2 Imagery, DigitalGlobe 2010; of WorldView-3 Imagery, "
              "2016",
    .is_one = is_one,
    .read = read,
};
