/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ORBIT_H
#define PB_ORBIT_H
/* Position of a satellite at a time, from the state vectors of its product: Lagrange's
 * polynomial through the eight vectors around that time, for positions and for velocities. For
 * Sentinel-1, with a vector every 10 s, positions are accurate to 0.1 mm. float64; no
 * allocation; read-only after it is filled, any thread. */
#include <stdbool.h>
#include <stddef.h>

#define PB_ORBIT_NODES 8

/* Earth-fixed, in metres and seconds. */
struct pb_orbit_state {
    double position[3], velocity[3];
};

struct pb_orbit {
    size_t n;           /* vectors, at least PB_ORBIT_NODES */
    const double *time; /* seconds; ascending */
    const struct pb_orbit_state *state;
};

/* Computes the state at that time, and the acceleration, which is accurate to some percent: for
 * the slope of an iteration. Returns false if the time is not between the first and the last
 * vector. */
bool pb_orbit_at(const struct pb_orbit *orbit, double time, struct pb_orbit_state *out_state,
                 double out_acceleration[3]);
#endif
