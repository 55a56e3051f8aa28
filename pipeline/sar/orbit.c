/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/sar/orbit.h"

enum { N = PB_ORBIT_NODES };

/* Index of the last vector that is not after that time. */
static size_t before(const struct pb_orbit *orbit, double time)
{
    size_t low = 0, high = orbit->n - 1;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (orbit->time[middle] <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Computes Lagrange's weights of N times. */
static void find_weights(const double *at, double time, double weight[N])
{
    for (int i = 0; i < N; i++) {
        double above = 1, below = 1;
        for (int k = 0; k < N; k++)
            if (k != i) {
                above *= time - at[k];
                below *= at[i] - at[k];
            }
        weight[i] = above / below;
    }
}

bool pb_orbit_at(const struct pb_orbit *orbit, double time, struct pb_orbit_state *out_state,
                 double out_acceleration[3])
{
    double weight[N];
    if (!(time >= orbit->time[0] && time <= orbit->time[orbit->n - 1]))
        return false;
    const size_t k = before(orbit, time), most = orbit->n - N;
    const size_t wanted = k < N / 2 - 1 ? 0 : k - (N / 2 - 1);
    const size_t first = wanted < most ? wanted : most;
    const struct pb_orbit_state *state = orbit->state + first;
    find_weights(orbit->time + first, time, weight);
    *out_state = (struct pb_orbit_state){{0, 0, 0}, {0, 0, 0}};
    for (int i = 0; i < N; i++)
        for (int axis = 0; axis < 3; axis++) {
            out_state->position[axis] += weight[i] * state[i].position[axis];
            out_state->velocity[axis] += weight[i] * state[i].velocity[axis];
        }
    const double step = orbit->time[k + 1] - orbit->time[k];
    for (int axis = 0; axis < 3; axis++)
        out_acceleration[axis] =
            (orbit->state[k + 1].velocity[axis] - orbit->state[k].velocity[axis]) / step;
    return true;
}
