/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Both directions use Newton's method: in time for the orbit position perpendicular to the
 * place, in ground range for a slant range, in the angle of the line of sight for a height. Each
 * ends at a limit far below the accuracy of the annotation's numbers. */
#include "pipeline/sar/range_doppler.h"

#include <math.h>

#define LIGHT        299792458.0 /* m/s */
#define SEMI_MAJOR   6378137.0   /* semi-major axis of WGS 84 */
#define FLATTENING   (1 / 298.257223563)
#define ECCENTRICITY (FLATTENING * (2 - FLATTENING)) /* squared */
#define RADIANS      (3.14159265358979323846 / 180)

#define STEPS_MAX     20
#define TIME_LIMIT_S  1e-10
#define RANGE_LIMIT_M 1e-6
/* Beyond the image polynomials are used for this fraction of its width; then their tangents. */
#define MARGIN 0.1
#define CHECKS 64

/* --- the Earth -------------------------------------------------------------------------------- */

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double a[3], const double b[3], double out[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static void place_of(double lon, double lat, double height, double out[3])
{
    const double s = sin(lat * RADIANS), c = cos(lat * RADIANS);
    const double n = SEMI_MAJOR / sqrt(1 - ECCENTRICITY * s * s);
    out[0] = (n + height) * c * cos(lon * RADIANS);
    out[1] = (n + height) * c * sin(lon * RADIANS);
    out[2] = (n * (1 - ECCENTRICITY) + height) * s;
}

/* Bowring's formula, whose error is far less than a millimetre near the surface. */
static void geodetic_of(const double at[3], double *lon, double *lat, double *height)
{
    const double minor = SEMI_MAJOR * (1 - FLATTENING), across = hypot(at[0], at[1]);
    const double beta = atan2(at[2] * SEMI_MAJOR, across * minor);
    const double second = ECCENTRICITY / (1 - ECCENTRICITY);
    const double phi = atan2(at[2] + second * minor * pow(sin(beta), 3),
                             across - ECCENTRICITY * SEMI_MAJOR * pow(cos(beta), 3));
    const double s = sin(phi), n = SEMI_MAJOR / sqrt(1 - ECCENTRICITY * s * s);
    *lon = atan2(at[1], at[0]) / RADIANS;
    *lat = phi / RADIANS;
    *height = across * cos(phi) + at[2] * s - SEMI_MAJOR * SEMI_MAJOR / n;
}

/* --- ground range and slant range ------------------------------------------------------------- */

/* Finds the polynomial of a time: interpolated between two updates, or the first or last one. */
static void terms_at(const struct pb_range_doppler *m, double time, double out[PB_RANGE_TERMS_MAX])
{
    size_t low = 0, high = m->n_updates;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (m->update[middle].time <= time)
            low = middle;
        else
            high = middle;
    }
    const struct pb_range_update *a = &m->update[low];
    const struct pb_range_update *b = low + 1 < m->n_updates ? a + 1 : a;
    const double part = a == b || time <= a->time ? 0 : (time - a->time) / (b->time - a->time);
    for (int i = 0; i < PB_RANGE_TERMS_MAX; i++)
        out[i] = a->term[i] + (b->term[i] - a->term[i]) * part;
}

/* Slant range and its slope at a ground range. */
static void slant_of(const struct pb_range_doppler *m, const double term[PB_RANGE_TERMS_MAX],
                     double ground, double *out, double *out_slope)
{
    const double width = m->width * m->pixel_metres;
    const double inside = fmax(-MARGIN * width, fmin((1 + MARGIN) * width, ground));
    double value = 0, slope = 0;
    for (int i = PB_RANGE_TERMS_MAX; i-- > 0;) {
        slope = slope * inside + value;
        value = value * inside + term[i];
    }
    *out = value + (ground - inside) * slope;
    *out_slope = slope;
}

static bool ground_of(const struct pb_range_doppler *m, const double term[PB_RANGE_TERMS_MAX],
                      double slant, double *out)
{
    double ground = m->width * m->pixel_metres / 2;
    for (int i = 0; i < STEPS_MAX; i++) {
        double value, slope;
        slant_of(m, term, ground, &value, &slope);
        const double step = (value - slant) / slope;
        ground -= step;
        if (fabs(step) < RANGE_LIMIT_M) {
            *out = ground;
            return true;
        }
    }
    return false;
}

/* Returns true if the polynomial is ascending wherever it is used. */
static bool ascends(const struct pb_range_doppler *m, const double term[PB_RANGE_TERMS_MAX])
{
    const double width = m->width * m->pixel_metres;
    for (int i = 0; i <= CHECKS; i++) {
        double value, slope;
        slant_of(m, term, ((1 + 2 * MARGIN) * i / CHECKS - MARGIN) * width, &value, &slope);
        if (!(slope > 0.01 && slope < 2 && value > 0 && isfinite(value)))
            return false;
    }
    return true;
}

bool pb_range_doppler_finish(struct pb_range_doppler *m)
{
    double term[PB_RANGE_TERMS_MAX], near, far, slope;
    for (size_t i = 0; i < m->n_updates; i++)
        if (!ascends(m, m->update[i].term))
            return false;
    terms_at(m, m->height * m->line_seconds / 2, term);
    slant_of(m, term, 0, &near, &slope);
    slant_of(m, term, (m->width - 1) * m->pixel_metres, &far, &slope);
    m->middle_metres = (near + far) / 2;
    return true;
}

/* --- from the ground to the image ------------------------------------------------------------- */

/* Finds the time at which the line of sight to the place is perpendicular to the path, and the
 * state then. */
static bool find_time(const struct pb_range_doppler *m, const double place[3], double *out_time,
                      struct pb_orbit_state *out)
{
    const double first = m->orbit.time[0], last = m->orbit.time[m->orbit.n - 1];
    double time = fmax(first, fmin(last, m->height * m->line_seconds / 2));
    for (int i = 0; i < STEPS_MAX; i++) {
        double acceleration[3], sight[3];
        if (!pb_orbit_at(&m->orbit, time, out, acceleration))
            return false;
        for (int axis = 0; axis < 3; axis++)
            sight[axis] = place[axis] - out->position[axis];
        const double step = dot(sight, out->velocity) /
                            (dot(out->velocity, out->velocity) - dot(sight, acceleration));
        if (fabs(step) < TIME_LIMIT_S) {
            *out_time = time;
            return true;
        }
        /* One step beyond the orbit's ends may be reversed by the next, two may not. */
        if ((time == first && step < 0) || (time == last && step > 0))
            return false;
        time = fmax(first, fmin(last, time + step));
    }
    return false;
}

bool pb_range_doppler_pixel(const struct pb_range_doppler *m, double lon, double lat, double height,
                            double *out_x, double *out_y)
{
    double place[3], sight[3], right[3], term[PB_RANGE_TERMS_MAX], time, ground;
    struct pb_orbit_state state;
    place_of(lon, lat, height, place);
    if (!isfinite(place[0] + place[1] + place[2]) || !find_time(m, place, &time, &state))
        return false;
    for (int axis = 0; axis < 3; axis++)
        sight[axis] = place[axis] - state.position[axis];
    cross(state.velocity, state.position, right);
    const double slant = sqrt(dot(sight, sight));
    terms_at(m, time, term);
    /* A place on the other side of the tangent from the satellite is beyond the horizon. */
    if (dot(sight, right) <= 0 || dot(sight, place) >= 0 || !ground_of(m, term, slant, &ground))
        return false;
    *out_x = ground / m->pixel_metres + 0.5;
    *out_y = (time - (slant - m->middle_metres) / LIGHT) / m->line_seconds + 0.5;
    return true;
}

/* --- from the image to the ground ------------------------------------------------------------- */

/* Makes unit vectors, down and to the right, of the plane perpendicular to the path. */
static void make_plane(const struct pb_orbit_state *state, double down[3], double right[3])
{
    double side[3], below[3];
    cross(state->velocity, state->position, side);
    cross(state->velocity, side, below);
    const double a = sqrt(dot(side, side)), b = sqrt(dot(below, below));
    for (int axis = 0; axis < 3; axis++) {
        right[axis] = side[axis] / a;
        down[axis] = below[axis] / b;
    }
}

/* Finds the angle from straight down at which the line of sight has that height at the slant
 * range. */
static bool find_place(const struct pb_orbit_state *state, double slant, double height,
                       double *out_lon, double *out_lat)
{
    double down[3], right[3], at[3];
    make_plane(state, down, right);
    /* Initial angle: on a sphere through the place below the satellite. */
    const double far = sqrt(dot(state->position, state->position));
    geodetic_of(state->position, out_lon, out_lat, &at[0]);
    const double radius = far - at[0] + height;
    const double c = (far * far + slant * slant - radius * radius) / (2 * far * slant);
    if (!(fabs(c) < 1))
        return false;
    double angle = acos(c);
    for (int i = 0; i < STEPS_MAX; i++) {
        double found;
        for (int axis = 0; axis < 3; axis++)
            at[axis] = state->position[axis] +
                       slant * (down[axis] * cos(angle) + right[axis] * sin(angle));
        geodetic_of(at, out_lon, out_lat, &found);
        /* Slope of the height by the angle: the component of the line of sight's rotation along
         * the normal, which is near the radius. */
        double slope = 0;
        for (int axis = 0; axis < 3; axis++)
            slope += at[axis] * (right[axis] * cos(angle) - down[axis] * sin(angle));
        slope *= slant / sqrt(dot(at, at));
        const double step = (found - height) / slope;
        if (!(slope > 0) || !isfinite(step))
            return false;
        angle -= step;
        if (fabs(step * slant) < RANGE_LIMIT_M)
            return true;
    }
    return false;
}

bool pb_range_doppler_ground(const struct pb_range_doppler *m, double x, double y, double height,
                             double *out_lon, double *out_lat)
{
    double term[PB_RANGE_TERMS_MAX], acceleration[3], slant = m->middle_metres, slope, time = 0;
    struct pb_orbit_state state;
    for (int i = 0; i < STEPS_MAX; i++) {
        const double before = time;
        time = (y - 0.5) * m->line_seconds + (slant - m->middle_metres) / LIGHT;
        terms_at(m, time, term);
        slant_of(m, term, (x - 0.5) * m->pixel_metres, &slant, &slope);
        if (i > 0 && fabs(time - before) < TIME_LIMIT_S)
            return isfinite(slant) && pb_orbit_at(&m->orbit, time, &state, acceleration) &&
                   find_place(&state, slant, height, out_lon, out_lat);
    }
    return false;
}
