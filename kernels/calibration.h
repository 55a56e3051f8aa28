/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CALIBRATION_H
#define PB_CALIBRATION_H
/* What a calibrating step makes of a band: numbers of the scene's metadata, which the layers above
 * find before a chain is built. Plain data. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_calibration_rule {
    double gain, offset; /* value = stored * gain + offset */
    bool has_planck;     /* then value = k2 / ln(k1 / value + 1) */
    double k1, k2;
    /* Of radar: value = max(0, stored^2 - noise) / area, which change from pixel to pixel: inputs
     * of the chain, by their numbers. */
    bool has_tables;
    int32_t area, noise; /* noise -1: none is taken off */
};

/* The rule for entry `entry` of the bands of the step whose struct is `params`. False: there is
 * none. */
typedef bool pb_calibration_find(const void *of, const void *params, size_t entry,
                                 struct pb_calibration_rule *out);
#endif
