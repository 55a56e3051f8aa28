/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Gradient noise (Perlin) in octaves makes heights, regions, woods, rivers and clouds; parcels are
 * strips of two directions, bent a little, cut across at random. Spectra are rounded from what
 * Sentinel-2 sees over such land. A little noise of a sensor in the low bits makes a scene compress
 * about as a real one does. */
#include "scene_ground.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const struct ground_kind_text ground_kinds[] = {
    [GROUND_FIELDS] = {"fields", "parcels, woods, villages, a river"},
    [GROUND_COAST] = {"coast", "the same behind beaches and a sea"},
    [GROUND_MOUNTAINS] = {"mountains", "meadows, woods, rock and snow, lit from the northwest"},
    [GROUND_RELIEF] = {"relief", "heights in metres, one band"},
    {NULL, NULL},
};

/* --- noise ------------------------------------------------------------------------------------ */

static uint32_t hash(uint32_t x, uint32_t y, uint32_t seed)
{
    uint32_t h = x * 0x9E3779B1u ^ y * 0x85EBCA77u ^ seed * 0xC2B2AE3Du;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 12;
    h *= 0x297A2D39u;
    return h ^ h >> 15;
}

static float unit(uint32_t h)
{
    return (float)(h >> 8) * (1.0f / 16777216.0f);
}

static float clamp01(float x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static float fade(float t)
{
    return t * t * t * (t * (t * 6.0f - 15.0f) + 10.0f);
}

/* The part that the gradient of a corner has at the distance dx, dy. */
static float slope(uint32_t corner, float dx, float dy)
{
    static const float way[8][2] = {{1, 0},          {-1, 0},         {0, 1},
                                    {0, -1},         {0.71f, 0.71f},  {-0.71f, 0.71f},
                                    {0.71f, -0.71f}, {-0.71f, -0.71f}};
    return way[corner >> 13 & 7][0] * dx + way[corner >> 13 & 7][1] * dy;
}

/* One octave along a row, lattice of `cell` pixels, about -1 .. 1. ridged: crests where it is 0.
 * Each octave's lattice begins elsewhere, or its lines would be seen. */
static void add_octave(float *row, int width, int y, int cell, float gain, bool ridged,
                       uint32_t seed)
{
    int from_x = (int)(hash(1, 2, seed) % (uint32_t)cell);
    int from_y = y + (int)(hash(3, 4, seed) % (uint32_t)cell);
    uint32_t cy = (uint32_t)(from_y / cell);
    float ty = ((float)(from_y % cell) + 0.5f) / (float)cell, fy = fade(ty);
    for (int cx = 0; cx * cell - from_x < width; cx++) {
        uint32_t x = (uint32_t)cx;
        uint32_t a = hash(x, cy, seed), b = hash(x + 1, cy, seed);
        uint32_t c = hash(x, cy + 1, seed), d = hash(x + 1, cy + 1, seed);
        int begin = cx * cell - from_x, end = begin + cell < width ? begin + cell : width;
        for (int px = begin > 0 ? begin : 0; px < end; px++) {
            float tx = ((float)(px - begin) + 0.5f) / (float)cell, fx = fade(tx);
            float upper = slope(a, tx, ty), lower = slope(c, tx, ty - 1);
            upper += (slope(b, tx - 1, ty) - upper) * fx;
            lower += (slope(d, tx - 1, ty - 1) - lower) * fx;
            float value = 1.5f * (upper + (lower - upper) * fy);
            row[px] += gain * (ridged ? 0.5f - 1.9f * fabsf(value) : value);
        }
    }
}

void ground_noise(float *row, int width, int y, int cell, int octaves, uint32_t seed)
{
    float gain = 0.5f;
    for (int x = 0; x < width; x++)
        row[x] = 0.5f;
    for (int i = 0; i < octaves && cell >= 4; i++, cell /= 3, gain *= 0.5f)
        add_octave(row, width, y, cell, gain, false, seed + (uint32_t)i);
    for (int x = 0; x < width; x++)
        row[x] = clamp01(row[x]);
}

/* About 0 .. 1. */
static void noise_row(float *row, int width, int y, int cell, int octaves, bool ridged,
                      uint32_t seed)
{
    float gain = 0.5f;
    for (int x = 0; x < width; x++)
        row[x] = 0.5f;
    for (int i = 0; i < octaves && cell >= 4; i++, cell /= 2, gain *= 0.5f)
        add_octave(row, width, y, cell, gain, ridged && i < 4, seed + (uint32_t)i);
}

/* --- what is there ---------------------------------------------------------------------------- */

/* Reflectance of blue, green, red, near infrared. */
struct spectrum {
    float band[4];
};

static const struct spectrum DEEP = {{0.045f, 0.040f, 0.022f, 0.010f}},
                             SHALLOW = {{0.085f, 0.105f, 0.060f, 0.020f}},
                             SAND = {{0.180f, 0.230f, 0.270f, 0.330f}},
                             SURF = {{0.420f, 0.430f, 0.420f, 0.360f}},
                             WOOD = {{0.020f, 0.036f, 0.023f, 0.280f}},
                             HEDGE = {{0.026f, 0.046f, 0.032f, 0.330f}},
                             TRACK = {{0.110f, 0.130f, 0.155f, 0.230f}},
                             ROAD = {{0.095f, 0.100f, 0.105f, 0.130f}},
                             ROCK = {{0.110f, 0.125f, 0.140f, 0.180f}},
                             SNOW = {{0.820f, 0.840f, 0.830f, 0.740f}},
                             MEADOW = {{0.034f, 0.072f, 0.046f, 0.420f}},
                             CLOUD = {{0.620f, 0.610f, 0.610f, 0.630f}};
static const struct spectrum CROPS[] = {
    {{0.030f, 0.062f, 0.034f, 0.470f}}, /* wheat */
    {{0.032f, 0.066f, 0.038f, 0.420f}}, /* beet */
    {{0.040f, 0.082f, 0.050f, 0.380f}}, /* grass */
    {{0.044f, 0.082f, 0.060f, 0.340f}}, /* grazed */
    {{0.050f, 0.128f, 0.120f, 0.460f}}, /* rape in flower */
    {{0.062f, 0.094f, 0.104f, 0.290f}}, /* young maize */
    {{0.088f, 0.128f, 0.165f, 0.265f}}, /* stubble */
    {{0.075f, 0.104f, 0.138f, 0.205f}}, /* bare soil */
};
static const struct spectrum ROOFS[] = {{{0.085f, 0.100f, 0.170f, 0.230f}},
                                        {{0.150f, 0.155f, 0.160f, 0.190f}},
                                        {{0.240f, 0.245f, 0.250f, 0.280f}},
                                        {{0.036f, 0.062f, 0.046f, 0.310f}}};

struct ground {
    enum ground_kind kind;
    int width;
    uint32_t seed;
    float *height, *below, *region, *wood, *bend, *stream;
    struct spectrum *seen;
};

static struct spectrum mix(struct spectrum a, struct spectrum b, float share)
{
    for (int k = 0; k < 4; k++)
        a.band[k] += (b.band[k] - a.band[k]) * share;
    return a;
}

static struct spectrum scaled(struct spectrum a, float by)
{
    for (int k = 0; k < 4; k++)
        a.band[k] *= by;
    return a;
}

/* Parcels: strips of one direction, cut across; hedges and tracks between them. */
static struct spectrum parcel(const struct ground *g, int x, int y)
{
    enum { STRIP = 31, ROAD_EVERY = 9 };
    bool turned = g->region[x] > 0.5f;
    float c = turned ? 0.93f : 0.56f, s = turned ? 0.36f : -0.83f, bend = 60.0f * g->bend[x];
    float u = c * (float)x + s * (float)y + bend + 100000.0f;
    float v = c * (float)y - s * (float)x - bend + 100000.0f;
    uint32_t strip = (uint32_t)(v / STRIP), family = g->seed + (turned ? 71u : 72u);
    float in_strip = v - (float)strip * STRIP;
    uint32_t own = hash(strip, 0, family);
    float length = 34.0f + 80.0f * unit(own);
    uint32_t cut = (uint32_t)((u + 50.0f * unit(own * 31u)) / length);
    float in_cut = u + 50.0f * unit(own * 31u) - (float)cut * length;
    uint32_t id = hash(strip, cut, family + 5u);
    if (strip % ROAD_EVERY == 0 && in_strip < 1.6f)
        return ROAD;
    if (in_strip < 1.0f || in_cut < 1.0f)
        return id & 64 ? HEDGE : TRACK;
    struct spectrum crop = CROPS[id % (sizeof CROPS / sizeof CROPS[0])];
    float rows = 0.03f * sinf((id & 128 ? u : v) * 2.1f), growth = 0.75f + 0.5f * g->bend[x];
    return scaled(crop, (0.82f + 0.3f * unit(id * 7u)) * growth * (1.0f + rows));
}

/* 0 .. 1: how much of a village is here. */
static float village(const struct ground *g, int x, int y)
{
    enum { APART = 330 };
    uint32_t cx = (uint32_t)(x / APART), cy = (uint32_t)(y / APART);
    uint32_t id = hash(cx, cy, g->seed + 41u);
    if (id % 5 > 2)
        return 0;
    float at_x = 70.0f + 190.0f * unit(id * 3u), at_y = 70.0f + 190.0f * unit(id * 5u);
    float dx = (float)(x % APART) - at_x, dy = (float)(y % APART) - at_y;
    float radius = 14.0f + 34.0f * unit(id * 11u) + 60.0f * (g->bend[x] - 0.5f);
    return clamp01((radius - sqrtf(dx * dx + dy * dy)) / 12.0f);
}

static struct spectrum countryside(const struct ground *g, int x, int y)
{
    uint32_t grain = hash((uint32_t)x, (uint32_t)y, g->seed + 7u);
    float town = village(g, x, y), stream = fabsf(g->stream[x] - 0.5f);
    if (stream < 0.006f)
        return mix(DEEP, SHALLOW, 0.45f);
    if (g->wood[x] > 0.60f || stream < 0.011f) {
        uint32_t crown = hash((uint32_t)x / 2, (uint32_t)y / 2, g->seed + 8u);
        return scaled(WOOD, 0.75f + 0.45f * unit(crown) + 0.2f * unit(grain));
    }
    uint32_t block = hash((uint32_t)(x / 3), (uint32_t)(y / 3), g->seed + 9u);
    if (town > 0 && unit(block) < 0.25f + 0.75f * town)
        return scaled(ROOFS[block % 4], 0.8f + 0.4f * unit(grain));
    return parcel(g, x, y);
}

static struct spectrum shore(const struct ground *g, int x, int y)
{
    float above = g->height[x] - 0.46f;
    float grain = unit(hash((uint32_t)x, (uint32_t)y, g->seed + 13u));
    if (above < -0.004f) {
        float wave = 0.95f + 0.1f * g->bend[x];
        return scaled(mix(SHALLOW, DEEP, clamp01(sqrtf(-above) * 4.5f)), wave);
    }
    if (above < -0.0005f)
        return mix(SHALLOW, SURF, grain);
    if (above < 0.012f + 0.012f * g->bend[x])
        return scaled(SAND, 0.9f + 0.2f * grain);
    return countryside(g, x, y);
}

/* Higher is barer, and steeper too. */
static struct spectrum mountain(const struct ground *g, int x, int y)
{
    float high = g->height[x] + 0.12f * (g->wood[x] - 0.5f);
    float steep = fabsf(g->below[x] - g->height[x]) * 120.0f;
    float grain = unit(hash((uint32_t)x, (uint32_t)y, g->seed + 17u));
    struct spectrum wood = scaled(WOOD, 0.8f + 0.5f * grain);
    struct spectrum rock = scaled(ROCK, 0.85f + 0.3f * grain);
    if (high < 0.36f)
        return mix(parcel(g, x, y), wood, clamp01((high - 0.33f) * 30.0f));
    if (high < 0.60f)
        return mix(wood, MEADOW, clamp01((high - 0.53f) * 20.0f));
    if (high < 0.72f)
        return mix(MEADOW, rock, clamp01((high - 0.61f) * 15.0f));
    return mix(rock, SNOW, clamp01((high - 0.75f - 0.1f * steep) * 16.0f));
}

/* By the sun in the northwest: slopes towards it are brighter. */
static float light(const struct ground *g, int x)
{
    int east = x + 1 < g->width ? x + 1 : x;
    float strength = g->kind == GROUND_MOUNTAINS ? 40.0f : 14.0f;
    float up = (g->height[east] - g->height[x]) + (g->below[x] - g->height[x]);
    float lit = 1.0f + strength * up;
    return lit < 0.35f ? 0.35f : lit > 1.6f ? 1.6f : lit;
}

static struct spectrum under(const struct ground_sky *sky, int x, struct spectrum seen)
{
    if (sky->cloud == NULL)
        return seen;
    seen = scaled(seen, 1.0f - 0.6f * sky->shadow[x]);
    return mix(seen, scaled(CLOUD, 0.8f + 0.35f * sky->cloud[x]), sky->cloud[x]);
}

/* --- rows ------------------------------------------------------------------------------------- */

static void fill_noise(struct ground *g, int y)
{
    bool ridged = g->kind == GROUND_MOUNTAINS || g->kind == GROUND_RELIEF;
    int cell = ridged ? 640 : 1000, octaves = ridged ? 7 : 6, w = g->width;
    noise_row(g->height, w, y, cell, octaves, ridged, g->seed);
    if (g->kind == GROUND_RELIEF)
        return;
    noise_row(g->below, w, y + 1, cell, octaves, ridged, g->seed);
    noise_row(g->region, w, y, 520, 3, false, g->seed + 211u);
    noise_row(g->wood, w, y, 190, 5, false, g->seed + 223u);
    noise_row(g->bend, w, y, 150, 3, false, g->seed + 227u);
    noise_row(g->stream, w, y, 1400, 6, false, g->seed + 229u);
}

static struct spectrum look(const struct ground *g, const struct ground_sky *sky, int x, int y)
{
    struct spectrum seen = g->kind == GROUND_COAST       ? shore(g, x, y)
                           : g->kind == GROUND_MOUNTAINS ? mountain(g, x, y)
                                                         : countryside(g, x, y);
    bool water = g->kind == GROUND_COAST && g->height[x] < 0.46f;
    return under(sky, x, water ? seen : scaled(seen, light(g, x)));
}

void ground_row(struct ground *g, int y, int bands, const struct ground_sky *sky, float *out)
{
    fill_noise(g, y);
    for (int x = 0; x < g->width && g->kind != GROUND_RELIEF; x++)
        g->seen[x] = look(g, sky, x, y);
    for (int b = 0; b < bands; b++, out += g->width)
        for (int x = 0; x < g->width; x++) {
            uint32_t noise = hash((uint32_t)x, (uint32_t)y, g->seed + 97u + (uint32_t)b);
            float sensor = (unit(noise) - 0.5f) * 0.004f, h = clamp01(g->height[x]);
            if (g->kind == GROUND_RELIEF)
                out[x] = 120.0f + 3200.0f * h * h + 20.0f * sensor;
            else if (b < 4)
                out[x] = g->seen[x].band[b] + sensor;
            else
                out[x] = g->seen[x].band[3] / (float)(b - 2) + sensor;
        }
}

struct ground *ground_create(enum ground_kind kind, int width, uint32_t seed)
{
    struct ground *g = calloc(1, sizeof *g);
    float *rows = calloc((size_t)width * 6, sizeof *rows);
    struct spectrum *seen = calloc((size_t)width, sizeof *seen);
    if (g == NULL || rows == NULL || seen == NULL) {
        free(g);
        free(rows);
        free(seen);
        return NULL;
    }
    *g = (struct ground){.kind = kind, .width = width, .seed = seed};
    float **row[] = {&g->height, &g->below, &g->region, &g->wood, &g->bend, &g->stream};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        *row[i] = rows + i * (size_t)width;
    g->seen = seen;
    return g;
}

void ground_destroy(struct ground *g)
{
    if (g == NULL)
        return;
    free(g->height); /* one allocation for all rows */
    free(g->seen);
    free(g);
}
