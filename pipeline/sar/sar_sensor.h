/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SAR_SENSOR_H
#define PB_SAR_SENSOR_H
/* Range-Doppler model of a scene (range_doppler.h) as the sensor model for a step that changes
 * the coordinate system. */
#include "pipeline/raster/ground.h"

struct pb_sar;

/* Makes the model from metadata; sar is borrowed, NULL: no metadata, or not of a radar. */
struct pb_ground_sensor pb_sar_sensor(const struct pb_sar *sar);
#endif
