/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/cog/halve.h"

#include "kernels/codec/halve_pixel.h"

#include <math.h>

enum { CHUNK = 256 }; /* count of columns that are joined at a time, an even number */

PB_CLONES void pb_halve_average(const float *from, size_t from_row_px, int32_t w, int32_t h,
                                float *to, size_t to_row_px)
{
    int32_t pairs = w / 2;
    for (int32_t y = 0; y < h; y += 2) {
        const float *restrict upper = from + (size_t)y * from_row_px;
        const float *restrict lower = upper + from_row_px;
        float *restrict out = to + (size_t)(y / 2) * to_row_px;
        if (y + 1 == h) {
            for (int32_t i = 0; i < pairs; i++)
                out[i] = pb_mean4(upper[2 * i], upper[2 * i + 1], NAN, NAN);
            if (w % 2)
                out[pairs] = upper[w - 1];
            continue;
        }
        for (int32_t i = 0; i < pairs; i++)
            out[i] = pb_mean4(upper[2 * i], upper[2 * i + 1], lower[2 * i], lower[2 * i + 1]);
        if (w % 2)
            out[pairs] = pb_mean4(upper[w - 1], NAN, lower[w - 1], NAN);
    }
}

/* --- planes together ------------------------------------------------------------------------- */

/* Finds the valid ones of n pixels. */
PB_CLONES static void find_valid(const struct pb_pixel_join *join, const float *const *planes,
                                 uint32_t n_planes, size_t at, size_t n, uint8_t *restrict valid)
{
    for (size_t x = 0; x < n; x++)
        valid[x] = !join->any;
    for (uint32_t b = 0; b < n_planes; b++) {
        const float *restrict row = planes[b] + at;
        if (!pb_join_decides(join, b))
            continue;
        for (size_t x = 0; x < n && join->any; x++)
            valid[x] |= row[x] == row[x];
        for (size_t x = 0; x < n && !join->any; x++)
            valid[x] &= row[x] == row[x];
    }
}

/* Copies a plane of these pixels; out may be row. */
PB_CLONES static void take_valid(const struct pb_pixel_join *join, uint32_t plane, const float *row,
                                 const uint8_t *restrict valid, size_t n, float *out)
{
    const float fill = join->any && pb_join_decides(join, plane) ? join->fill : NAN;
    PB_INDEPENDENT
    for (size_t x = 0; x < n; x++) {
        const float v = row[x] == row[x] ? row[x] : fill;
        out[x] = valid[x] ? v : NAN;
    }
}

void pb_join_row(const struct pb_pixel_join *join, const float *const *planes, uint32_t n_planes,
                 size_t at, size_t n, float *const *out)
{
    uint8_t valid[CHUNK];
    for (size_t x = 0; x < n; x += CHUNK) {
        const size_t some = n - x < CHUNK ? n - x : CHUNK;
        find_valid(join, planes, n_planes, at + x, some, valid);
        for (uint32_t b = 0; b < n_planes; b++)
            take_valid(join, b, planes[b] + at + x, valid, some, out[b] + x);
    }
}

/* Halves two rows of n pixels, n at most CHUNK; the second one may be missing. */
static void halve_chunk(const struct pb_pixel_join *join, const float *const *planes,
                        uint32_t n_planes, const size_t at[2], bool has_lower, size_t n, float *to,
                        size_t to_plane_px)
{
    uint8_t valid[2][CHUNK];
    float row[2][CHUNK + 1];
    for (int i = 0; i < 1 + has_lower; i++)
        find_valid(join, planes, n_planes, at[i], n, valid[i]);
    for (size_t x = 0; x < n && !has_lower; x++)
        row[1][x] = NAN;
    row[0][n] = row[1][n] = NAN;
    for (uint32_t b = 0; b < n_planes; b++) {
        float *restrict out = to + b * to_plane_px;
        for (int i = 0; i < 1 + has_lower; i++)
            take_valid(join, b, planes[b] + at[i], valid[i], n, row[i]);
        for (size_t x = 0; x < n; x += 2)
            out[x / 2] = pb_mean4(row[0][x], row[0][x + 1], row[1][x], row[1][x + 1]);
    }
}

void pb_halve_average_joined(const struct pb_pixel_join *join, const float *const *planes,
                             uint32_t n_planes, size_t from_row_px, int32_t w, int32_t h, float *to,
                             size_t to_plane_px, size_t to_row_px)
{
    for (int32_t y = 0; y < h; y += 2)
        for (int32_t x = 0; x < w; x += CHUNK) {
            const size_t upper = (size_t)y * from_row_px + (size_t)x;
            const size_t at[2] = {upper, upper + from_row_px};
            halve_chunk(join, planes, n_planes, at, y + 1 < h,
                        (size_t)(w - x < CHUNK ? w - x : CHUNK),
                        to + (size_t)(y / 2) * to_row_px + (size_t)(x / 2), to_plane_px);
        }
}

void pb_halve_nearest(const float *from, size_t from_row_px, int32_t w, int32_t h, float *to,
                      size_t to_row_px)
{
    int32_t out_w = w / 2 + w % 2;
    for (int32_t y = 0; y < h; y += 2) {
        const float *restrict row = from + (size_t)y * from_row_px;
        float *restrict out = to + (size_t)(y / 2) * to_row_px;
        for (int32_t i = 0; i < out_w; i++)
            out[i] = row[2 * i];
    }
}
