/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENE_GROUND_H
#define SCENE_GROUND_H
/* The ground of synthetic scenes: what is seen at a pixel. The same for the same kind, seed and
 * place, whatever the size of the scene. */
#include <stdint.h>

/* The kinds, their names and what they show; ground_kinds ends with a NULL name. */
enum ground_kind { GROUND_FIELDS, GROUND_COAST, GROUND_MOUNTAINS, GROUND_RELIEF };
struct ground_kind_text {
    const char *name, *shows;
};
extern const struct ground_kind_text ground_kinds[];

struct ground;
/* NULL: no memory. */
struct ground *ground_create(enum ground_kind kind, int width, uint32_t seed);
void ground_destroy(struct ground *ground);

/* How thick clouds are over each pixel of a row, and over what shadows it, 0 .. 1; NULL = none. */
struct ground_sky {
    const float *cloud, *shadow;
};
/* Row y: out[b * width + x]. Of RELIEF metres above the sea, else reflectances of blue, green, red,
 * near infrared, and weaker ones after. */
void ground_row(struct ground *ground, int y, int bands, const struct ground_sky *sky, float *out);
/* Noise, 0 .. 1, of so many octaves, each of a third of the distances. */
void ground_noise(float *row, int width, int y, int cell, int octaves, uint32_t seed);
#endif
