/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/metadata/sensor_bands.h"

#include <stdio.h>
#include <string.h>

static const struct pb_sensor_band bands[] = {
#define PB_SENSOR_BAND(sensor, id, common, center, width) {sensor, id, common, center, width},
#include "pipeline/metadata/sensor_bands.def"
#undef PB_SENSOR_BAND
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

const struct pb_sensor_band *pb_sensor_band_find(const struct pb_metadata *facts, const char *id)
{
    char counted[sizeof facts->instrument + 24];
    (void)snprintf(counted, sizeof counted, "%s/%zu", facts->instrument, facts->n_bands);
    for (size_t i = 0; i < sizeof bands / sizeof *bands; i++)
        if (strcmp(bands[i].id, id) == 0 &&
            (begins(counted, bands[i].sensor) || begins(facts->platform, bands[i].sensor)))
            return &bands[i];
    return NULL;
}
