/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* PlanetScope (and RapidEye, SkySat with the same schema): *_metadata.xml, and the
 * *_metadata.json of newer orders, which has no coefficients. The XML is the same for the two
 * kinds of rasters of a delivery: radiance (*_AnalyticMS.tif) and surface reflectance
 * (*_AnalyticMS_SR.tif); the name of a raster decides its kind (calibration.c). */
#include "pipeline/metadata/family.h"
#include "pipeline/metadata/meta_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns the properties of *_metadata.json: an item of Planet's catalogue. */
static const struct pb_meta_node *item_of(const struct pb_meta_node *root)
{
    const struct pb_meta_node *properties = pb_meta_child(root, "document/properties");
    const char *type = pb_meta_text(properties, "item_type");
    const char *provider = pb_meta_text(properties, "provider");
    bool is = (type != NULL && strncmp(type, "PS", 2) == 0) ||
              (provider != NULL && strcmp(provider, "planetscope") == 0);
    return is && pb_meta_text(properties, "acquired") != NULL ? properties : NULL;
}

static bool is_document(const struct pb_meta_node *root)
{
    return root->first != NULL && strcmp(root->first->name, "EarthObservation") == 0 &&
           pb_meta_below(root, "EarthObservationResult", NULL) != NULL;
}

static bool is_one(const struct pb_meta_node *root)
{
    return is_document(root) || item_of(root) != NULL;
}

/* Sets the product from "20170831_172754_101c" of the item, or
 * "20170831_172754_101c_3B_AnalyticMS" of a raster of it. */
static void set_product(struct pb_meta_reader *r, const char *id)
{
    char *product = r->out->product;
    size_t n = id != NULL ? strlen(id) : 0, have = strlen(product);
    if (n > 0 && have > 0 && strncmp(product, id, n < have ? n : have) == 0) {
        if (n > have && n < sizeof r->out->product)
            (void)snprintf(product, sizeof r->out->product, "%s", id);
        return;
    }
    PB_META_SET(r, product, id, "the product");
}

static void read_bands(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    static const char name[] = "bandSpecificMetadata";
    for (const struct pb_meta_node *at = NULL;
         r->rc == 0 && (at = pb_meta_below(root, name, at)) != NULL;) {
        const char *number = pb_meta_need_text(r, at, "bandNumber");
        double radiance = pb_meta_number(r, at, "radiometricScaleFactor", 1e-9, 1e3);
        double toa = pb_meta_number(r, at, "reflectanceCoefficient", 1e-9, 1);
        double n = number != NULL ? pb_meta_number_of(r, number, "bandNumber", 1, 32) : NAN;
        if (r->rc < 0 || n != floor(n))
            return;
        struct pb_meta_band *band = pb_meta_band(r, number);
        if (band == NULL)
            return;
        if (band->number != 0)
            pb_meta_conflict(r, "bandNumber %.10s occurs twice", number);
        band->number = (int)n;
        pb_meta_set_scale(band, PB_QUANTITY_RADIANCE, radiance, 0);
        pb_meta_set_scale(band, PB_QUANTITY_TOA, toa, 0);
        pb_meta_set_scale(band, PB_QUANTITY_SURFACE, 1e-4, 0);
    }
}

/* Sets a fact unless it is known: the two files use one name for different things, without a
 * conflict: clouds are from another mask, rowGsd is the size of a pixel. */
static void complete(double *fact, double number)
{
    if (isnan(*fact))
        *fact = number;
}

static void replace(double *fact, double number)
{
    if (!isnan(number))
        *fact = number;
}

static double angle(struct pb_meta_reader *r, const struct pb_meta_node *root, const char *name,
                    double low, double high)
{
    const char *text = pb_meta_text_below(root, name);
    return text != NULL ? pb_meta_number_of(r, text, name, low, high) : NAN;
}

static void read_document(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    struct pb_metadata *out = r->out;
    const char *serial = pb_meta_text_below(root, "serialIdentifier");
    const char *sensor = pb_meta_text(pb_meta_below(root, "Instrument", NULL), "shortName");
    const char *when = pb_meta_text_below(root, "acquisitionDateTime");
    set_product(r, pb_meta_text_below(root, "identifier"));
    PB_META_SET(r, level, pb_meta_text_below(root, "productType"), "the level");
    PB_META_SET(r, platform, serial, "the satellite");
    PB_META_SET(r, instrument, sensor, "the instrument");
    pb_meta_set_time(r, when ? when : pb_meta_text_below(root, "beginPosition"), true);
    pb_meta_set_number(r, &out->sun_azimuth, angle(r, root, "illuminationAzimuthAngle", 0, 360),
                       "the sun's azimuth");
    pb_meta_set_number(r, &out->sun_elevation,
                       angle(r, root, "illuminationElevationAngle", -90, 90), "the sun's height");
    complete(&out->view_azimuth, pb_meta_azimuth(angle(r, root, "azimuthAngle", -360, 360)));
    pb_meta_set_number(r, &out->off_nadir, fabs(angle(r, root, "spaceCraftViewAngle", -90, 90)),
                       "the angle off nadir");
    pb_meta_set_number(r, &out->incidence, fabs(angle(r, root, "incidenceAngle", -90, 90)),
                       "the angle of incidence");
    complete(&out->cloud_cover, angle(r, root, "cloudCoverPercentage", 0, 100));
    complete(&out->gsd, angle(r, root, "rowGsd", 0.1, 100));
    read_bands(r, root);
    (void)snprintf(out->rule[PB_QUANTITY_RADIANCE], sizeof out->rule[0],
                   "DN * radiometricScaleFactor");
    (void)snprintf(out->rule[PB_QUANTITY_TOA], sizeof out->rule[0], "DN * reflectanceCoefficient");
    (void)snprintf(out->rule[PB_QUANTITY_SURFACE], sizeof out->rule[0],
                   "DN / 10000, as all rasters of surface reflectance (*_SR)");
}

/* cloud_percent is from the usable data mask and newer than cloud_cover, a ratio. */
static void read_item(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    const struct pb_meta_node *item = item_of(root);
    struct pb_metadata *out = r->out;
    double cloud = pb_meta_number(r, item, "cloud_percent", 0, 100);
    if (isnan(cloud))
        cloud = 100 * pb_meta_number(r, item, "cloud_cover", 0, 1);
    set_product(r, pb_meta_text(pb_meta_child(root, "document"), "id"));
    PB_META_SET(r, platform, pb_meta_text(item, "satellite_id"), "the satellite");
    PB_META_SET(r, instrument, pb_meta_text(item, "instrument"), "the instrument");
    pb_meta_set_time(r, pb_meta_need_text(r, item, "acquired"), false);
    pb_meta_set_number(r, &out->sun_azimuth, pb_meta_number(r, item, "sun_azimuth", 0, 360),
                       "the sun's azimuth");
    pb_meta_set_number(r, &out->sun_elevation, pb_meta_number(r, item, "sun_elevation", -90, 90),
                       "the sun's height");
    complete(&out->view_azimuth, pb_meta_number(r, item, "satellite_azimuth", 0, 360));
    pb_meta_set_number(r, &out->off_nadir, fabs(pb_meta_number(r, item, "view_angle", -90, 90)),
                       "the angle off nadir");
    replace(&out->cloud_cover, cloud);
    replace(&out->gsd, pb_meta_number(r, item, "gsd", 0.1, 100));
}

static void read(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    if (item_of(root) != NULL)
        read_item(r, root);
    else
        read_document(r, root);
}

static void finish(struct pb_meta_reader *r)
{
    struct pb_metadata *out = r->out;
    (void)snprintf(out->why_not[PB_QUANTITY_TEMPERATURE], sizeof out->why_not[0],
                   "PlanetScope has no thermal bands");
    for (int to = 0; to < PB_QUANTITIES && r->rc == 0; to++)
        if (out->n_bands == 0 && to != PB_QUANTITY_TEMPERATURE)
            (void)snprintf(out->why_not[to], sizeof out->why_not[to],
                           "the bands are in *_metadata.xml; name that file in input.metadata as "
                           "well");
}

static const char *refuses(const struct pb_metadata *facts, const char *stem, enum pb_quantity to)
{
    const char *at = strstr(stem, "_SR");
    bool is_surface = at != NULL && (at[3] == '\0' || at[3] == '_');
    (void)facts;
    if (is_surface && (to == PB_QUANTITY_TOA || to == PB_QUANTITY_RADIANCE))
        return "the file is surface reflectance by its name (_SR): use to: surface";
    if (!is_surface && to == PB_QUANTITY_SURFACE)
        return "the file is no surface reflectance by its name, which has no _SR: use to: toa";
    return NULL;
}

const struct pb_metadata_family pb_family_planetscope = {
    .name = "planetscope",
    .files = "*_metadata.xml, *_metadata.json",
    .source = "Planet Imagery Product Specifications, PlanetScope analytic products",
    .constellation = "planetscope",
    .is_one = is_one,
    .read = read,
    .finish = finish,
    .refuses = refuses,
};
