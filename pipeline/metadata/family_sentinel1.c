/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Sentinel-1 Level 1: the annotation of a polarisation (annotation/s1*.xml). Backscatter needs the
 * look-up tables of annotation/calibration, which change from pixel to pixel along the range: no
 * gain and offset says the same, so it is not offered. */
#include "pipeline/metadata/family.h"
#include "pipeline/metadata/meta_reader.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_one(const struct pb_meta_node *root)
{
    const char *mission = pb_meta_text_below(pb_meta_below(root, "adsHeader", NULL), "missionId");
    return mission != NULL && strncmp(mission, "S1", 2) == 0;
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
    pb_meta_set_time(r, pb_meta_need_text(r, header, "startTime"), false);
    (void)pb_meta_band(r, polarisation);
    pb_meta_set_orbit(r, pb_meta_text_below(root, "pass"));
    pb_meta_set_number(r, &out->absolute_orbit,
                       pb_meta_number(r, header, "absoluteOrbitNumber", 1, 1e6),
                       "the absolute orbit");
    const char *spacing = pb_meta_text_below(root, "azimuthPixelSpacing");
    if (spacing != NULL)
        pb_meta_set_number(r, &out->gsd,
                           pb_meta_number_of(r, spacing, "azimuthPixelSpacing", 0.1, 1000),
                           "the ground sample distance");
    const char *incidence = pb_meta_text_below(root, "incidenceAngleMidSwath");
    if (incidence != NULL)
        pb_meta_set_number(r, &out->incidence,
                           pb_meta_number_of(r, incidence, "incidenceAngleMidSwath", 0, 90),
                           "the angle of incidence");
    for (int to = 0; to < PB_QUANTITIES; to++)
        (void)snprintf(
            out->why_not[to], sizeof out->why_not[to],
            "radar backscatter is none of these: sigma0 and gamma0 need the look-up tables "
            "of annotation/calibration, which change from pixel to pixel; calibrate it "
            "before (SNAP, pyroSAR)");
}

const struct pb_metadata_family pb_family_sentinel1 = {
    .name = "sentinel1",
    .files = "annotation/s1*.xml of each polarisation, annotation/calibration/*.xml",
    .source = "Sentinel-1 Product Specification (S1-RS-MDA-52-7441)",
    .constellation = "sentinel-1",
    .is_one = is_one,
    .read = read,
};
