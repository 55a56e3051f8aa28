/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SAR_SENSOR_H
#define PB_SAR_SENSOR_H
/* The range-Doppler model of a scene (range_doppler.h) as a step that changes the coordinate system
 * asks for it. */
#include "pipeline/raster/ground.h"

struct pb_sar;

/* Of what the metadata say; sar is borrowed, NULL: they are not of a radar, or there are none. */
struct pb_ground_sensor pb_sar_sensor(const struct pb_sar *sar);
#endif
