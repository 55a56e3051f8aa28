/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/zone_sums.h"

#include <string.h>

/* Zones are dense, in the order in which they came, then their bands; a table of twice as many
 * slots finds them. */
struct pb_zone_sums {
    uint32_t entries, bands, n, spare;
    struct pb_zone zone[];
};

static struct pb_float_sums *bands_of(const struct pb_zone_sums *sums, uint32_t i)
{
    return (struct pb_float_sums *)(uintptr_t)(sums->zone + sums->entries) +
           (size_t)i * sums->bands;
}

static uint32_t *slots_of(const struct pb_zone_sums *sums)
{
    return (uint32_t *)(void *)bands_of(sums, sums->entries);
}

size_t pb_zone_sums_bytes(uint32_t entries, uint32_t bands)
{
    return sizeof(struct pb_zone_sums) +
           entries * (sizeof(struct pb_zone) + bands * sizeof(struct pb_float_sums) +
                      2 * sizeof(uint32_t));
}

static void clear(struct pb_zone_sums *sums)
{
    sums->n = 0;
    memset(slots_of(sums), 0, 2 * sums->entries * sizeof(uint32_t));
}

void pb_zone_sums_begin(struct pb_zone_sums *sums, uint32_t entries, uint32_t bands)
{
    memset(sums, 0, sizeof *sums);
    sums->entries = entries;
    sums->bands = bands;
    clear(sums);
}

int32_t pb_zone_sums_find(struct pb_zone_sums *sums, uint64_t key)
{
    const uint32_t mask = 2 * sums->entries - 1;
    uint32_t *const slot = slots_of(sums);
    uint64_t hash = (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t i = (uint32_t)(hash >> 32) & mask;

    while (slot[i] != 0 && sums->zone[slot[i] - 1].key != key)
        i = (i + 1) & mask;
    if (slot[i] == 0) {
        if (sums->n == sums->entries)
            return -1;
        sums->zone[sums->n] = (struct pb_zone){.key = key};
        memset(bands_of(sums, sums->n), 0, sums->bands * sizeof(struct pb_float_sums));
        slot[i] = ++sums->n;
    }
    return (int32_t)slot[i] - 1;
}

void pb_zone_sums_pixels(struct pb_zone_sums *sums, int32_t zone, uint64_t n, int64_t area)
{
    sums->zone[zone].pixels += n;
    sums->zone[zone].area += (pb_int128)n * area;
}

void pb_zone_sums_values(struct pb_zone_sums *sums, int32_t zone, uint32_t band, const float *value,
                         size_t n)
{
    pb_float_sums_add(&bands_of(sums, (uint32_t)zone)[band], value, n);
}

bool pb_zone_sums_merge(struct pb_zone_sums *into, struct pb_zone_sums *from)
{
    for (uint32_t i = 0; i < from->n; i++) {
        const int32_t zone = pb_zone_sums_find(into, from->zone[i].key);

        if (zone < 0)
            return false;
        into->zone[zone].pixels += from->zone[i].pixels;
        into->zone[zone].area += from->zone[i].area;
        for (uint32_t b = 0; b < into->bands; b++)
            pb_float_sums_merge(&bands_of(into, (uint32_t)zone)[b], &bands_of(from, i)[b]);
    }
    clear(from);
    return true;
}

uint32_t pb_zone_sums_count(const struct pb_zone_sums *sums)
{
    return sums->n;
}

const struct pb_zone *pb_zone_sums_zone(const struct pb_zone_sums *sums, uint32_t i)
{
    return &sums->zone[i];
}

const struct pb_float_sums *pb_zone_sums_band(const struct pb_zone_sums *sums, uint32_t i,
                                              uint32_t band)
{
    return &bands_of(sums, i)[band];
}
