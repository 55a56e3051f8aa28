/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SENSOR_BANDS_H
#define PB_SENSOR_BANDS_H
/* Names of bands of known sensors in STAC (eo extension), and their wavelengths. Static. */
#include "pipeline/metadata/metadata.h"

struct pb_sensor_band {
    const char *sensor; /* prefix of pb_metadata.platform or .instrument */
    const char *id;     /* pb_meta_band.id */
    const char *common; /* eo:common_name; "" = no name */
    double center_um, width_um;
};

/* Returns NULL if the band is unknown. */
const struct pb_sensor_band *pb_sensor_band_find(const struct pb_metadata *facts, const char *id);
#endif
