/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GROUND_UNIT_H
#define PB_GROUND_UNIT_H
/* How long angles are on the ground. Pure arithmetic. Thread: any. */

/* Metres that a unit of longitude and one of latitude are long at a latitude (radians, between the
 * poles) of an ellipsoid: its semi-major axis in metres and inverse flattening (0: a sphere). unit:
 * in radians. */
void pb_ground_unit(double semi_major, double inverse_flattening, double latitude, double unit,
                    double out_metres[2]);
#endif
