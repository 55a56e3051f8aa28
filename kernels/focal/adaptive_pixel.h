/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ADAPTIVE_PIXEL_H
#define PB_ADAPTIVE_PIXEL_H
/* Weighted means of a window whose weights depend on its values. C11 and C++17.
 *
 * A mean is that of the differences from the pixel in the middle, added to it: where all are equal,
 * it is exactly their value. pb_focal.weight and pb_focal.strength are those of a choice. */
#include "kernels/focal/focal.h"
#include "kernels/focal/moments_pixel.h"
#include "kernels/pixel.h"

/* pb_focal.choice of PB_FOCAL_ADAPTIVE.
 * BILATERAL: weight * exp(-strength * difference^2).
 * FROST: exp(-strength * variance / mean^2 * weight); a mean of 0 counts as no variance. */
enum pb_adaptive { PB_ADAPTIVE_BILATERAL, PB_ADAPTIVE_FROST };

/* exp(-x), x >= 0, to 2 ULP; at least exp(-87), so that a sum of weights is never 0. 2^k * exp(r),
 * |r| <= ln2 / 2, with the polynomial of Cephes' expf; + - * alone, so that both devices and all
 * widths of vectors give the same bits. */
PB_PIXEL float pb_adaptive_decay(float x)
{
    const float shift = 12582912.0f; /* adding it leaves the rounded integer in the low bits */
    const float y = x > 87.0f ? -87.0f : -x; /* NaN stays */
    const float t = y * 1.44269504f + shift;
    const float k = t - shift;
    const float r = (y - k * 0.693359375f) - k * -2.12194440e-4f;
    uint32_t bits;
    float scale, p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits << 23) + 0x3f800000u;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* The weight of a pixel. alpha: of the window, for FROST. */
PB_PIXEL float pb_adaptive_weight(int32_t choice, float difference, float strength, float alpha,
                                  float weight)
{
    return choice == PB_ADAPTIVE_FROST
               ? pb_adaptive_decay(alpha * weight)
               : weight * pb_adaptive_decay(strength * difference * difference);
}

/* strength * variance / mean^2 of n pixels with the sum `first`, their squares with `second`. */
PB_PIXEL float pb_adaptive_alpha(double first, double second, double n, float strength)
{
    const double variation = (double)pb_moment_of(first, second, n, PB_MOMENT_VARIATION);
    return first == 0.0 ? 0.0f : (float)(variation * variation * (double)strength);
}

PB_PIXEL float pb_focal_adaptive(const float *window, int32_t stride, int32_t radius,
                                 const struct pb_focal *focal)
{
    const int32_t side = 2 * radius + 1, choice = focal->choice;
    const float middle = window[radius * stride + radius], strength = focal->strength;
    float alpha = 0.0f, sum = 0.0f, total = 0.0f;

    if (choice == PB_ADAPTIVE_FROST) {
        double first = 0.0, second = 0.0;

        pb_moment_sums(window, stride, side, &first, &second);
        alpha = pb_adaptive_alpha(first, second, (double)(side * side), strength);
    }
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++) {
            const float difference = window[y * stride + x] - middle;
            const float weight = pb_adaptive_weight(choice, difference, strength, alpha,
                                                    focal->weight[y * side + x]);

            sum += weight * difference;
            total += weight;
        }
    return middle + sum / total;
}
#endif
