/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Sentinel-1 Level 1: for each polarisation the annotation (annotation/s1*.xml), and the tables
 * of calibration and of noise in annotation/calibration. */
#include "pipeline/metadata/family.h"
#include "pipeline/metadata/meta_reader.h"
#include "pipeline/metadata/sentinel1_geometry.h"
#include "pipeline/metadata/sentinel1_tables.h"
#include "pipeline/sar/sar_tables.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_one(const struct pb_meta_node *root)
{
    const char *mission = pb_meta_text_below(pb_meta_below(root, "adsHeader", NULL), "missionId");
    return mission != NULL && strncmp(mission, "S1", 2) == 0;
}

static void say_rules(struct pb_metadata *out)
{
    static const char *const tables[] = {"sigmaNought", "betaNought", "gamma"};
    for (int to = 0; to < PB_QUANTITY_SIGMA0; to++)
        (void)snprintf(out->why_not[to], sizeof out->why_not[to],
                       "a radar image becomes backscatter: write to: sigma0, beta0 or gamma0");
    for (int i = 0; i < PB_SAR_AREAS; i++)
        (void)snprintf(out->rule[PB_QUANTITY_SIGMA0 + i], sizeof out->rule[0],
                       "A and noise are those of the annotation for each pixel, A its table %s",
                       tables[i]);
}

/* Reads annotation/s1*.xml. */
static void read_product(struct pb_meta_reader *r, const struct pb_meta_node *root,
                         struct pb_meta_band *band, struct pb_sar_channel *channel)
{
    struct pb_metadata *out = r->out;
    const struct pb_meta_node *image = pb_meta_below(root, "imageInformation", NULL);
    const char *removed = pb_meta_text_below(root, "thermalNoiseCorrectionPerformed");
    const double width = pb_meta_number(r, image, "numberOfSamples", 1, 1e6);
    const double height = pb_meta_number(r, image, "numberOfLines", 1, 1e6);
    const char *incidence = pb_meta_text_below(root, "incidenceAngleMidSwath");
    const char *frequency = pb_meta_text_below(root, "radarFrequency");
    if (channel->width > 0)
        pb_meta_conflict(r, "polarisation %s has a second annotation; a scene is of one swath",
                         channel->id);
    pb_meta_set_file(band, r->name);
    if (!isnan(width) && !isnan(height)) {
        channel->width = (int32_t)width;
        channel->height = (int32_t)height;
    }
    pb_sentinel1_geometry(r, root, channel);
    channel->noise_is_off = removed != NULL && strcmp(removed, "true") == 0;
    pb_meta_set_number(r, &out->range_spacing,
                       pb_meta_number(r, image, "rangePixelSpacing", 0.1, 1000),
                       "the spacing of pixels in range");
    pb_meta_set_number(r, &out->azimuth_spacing,
                       pb_meta_number(r, image, "azimuthPixelSpacing", 0.1, 1000),
                       "the spacing of pixels in azimuth");
    pb_meta_set_number(r, &out->gsd, out->azimuth_spacing, "the ground sample distance");
    if (frequency != NULL)
        pb_meta_set_number(r, &out->radar_ghz,
                           pb_meta_number_of(r, frequency, "radarFrequency", 1e8, 1e11) / 1e9,
                           "the radar's frequency");
    if (incidence != NULL)
        pb_meta_set_number(r, &out->incidence,
                           pb_meta_number_of(r, incidence, "incidenceAngleMidSwath", 0, 90),
                           "the angle of incidence");
}

static void read(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    const struct pb_meta_node *header = pb_meta_below(root, "adsHeader", NULL);
    const char *mission = pb_meta_need_text(r, header, "missionId");
    const char *type = pb_meta_need_text(r, header, "productType");
    const char *polarisation = pb_meta_need_text(r, header, "polarisation");
    struct pb_metadata *out = r->out;
    char platform[32] = "";
    if (mission != NULL && strlen(mission) == 3)
        (void)snprintf(platform, sizeof platform, "sentinel-1%c",
                       tolower((unsigned char)mission[2]));
    PB_META_SET(r, platform, platform, "the platform");
    PB_META_SET(r, instrument, "c-sar", "the instrument");
    PB_META_SET(r, level, type, "the type of product");
    PB_META_SET(r, radar_mode, pb_meta_text(header, "mode"), "the mode of the radar");
    pb_meta_set_time(r, pb_meta_need_text(r, header, "startTime"), false);
    pb_meta_set_orbit(r, pb_meta_text_below(root, "pass"));
    pb_meta_set_number(r, &out->absolute_orbit,
                       pb_meta_number(r, header, "absoluteOrbitNumber", 1, 1e6),
                       "the absolute orbit");
    struct pb_sar_channel *channel = pb_sentinel1_channel(r, polarisation);
    struct pb_meta_band *band = channel != NULL ? pb_meta_band(r, polarisation) : NULL;
    if (r->rc < 0 || band == NULL || channel == NULL)
        return;
    band->is_word = true;
    if (pb_meta_child(root, "calibration") != NULL)
        pb_sentinel1_calibration(r, root, channel);
    else if (pb_meta_child(root, "noise") != NULL)
        pb_sentinel1_noise(r, root, channel);
    else
        read_product(r, root, band, channel);
    say_rules(out);
}

const struct pb_metadata_family pb_family_sentinel1 = {
    .name = "sentinel1",
    .files = "annotation/s1*.xml of each polarisation, annotation/calibration/*.xml",
    .source = "Sentinel-1 Product Specification (S1-RS-MDA-52-7441)",
    .constellation = "sentinel-1",
    .is_one = is_one,
    .read = read,
};
