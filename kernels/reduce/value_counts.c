/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/value_counts.h"

#include "kernels/reduce/value_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A group has two entries then: one bit of a key is left. */
enum { LEVEL_MAX = 31 };

/* Entries are dense, in the order in which they came; a table of twice as many slots finds them. */
struct pb_value_counts {
    uint32_t entries, n, level, spare;
    struct pb_value_count entry[];
};

static uint32_t *slots_of(const struct pb_value_counts *counts)
{
    return (uint32_t *)(uintptr_t)(counts->entry + counts->entries);
}

size_t pb_value_counts_bytes(uint32_t entries)
{
    return sizeof(struct pb_value_counts) +
           entries * (sizeof(struct pb_value_count) + 2 * sizeof(uint32_t));
}

static void clear_slots(struct pb_value_counts *counts)
{
    memset(slots_of(counts), 0, 2 * counts->entries * sizeof(uint32_t));
}

void pb_value_counts_begin(struct pb_value_counts *counts, uint32_t entries)
{
    memset(counts, 0, sizeof *counts);
    counts->entries = entries;
    clear_slots(counts);
}

/* The slot of a pair: that which has its entry's number + 1, or the empty one where it would be. */
static uint32_t *find(const struct pb_value_counts *counts, uint64_t group, uint32_t key)
{
    const uint32_t mask = 2 * counts->entries - 1;
    uint32_t *const slot = slots_of(counts);
    uint32_t i = pb_value_hash(group, key) & mask;

    while (slot[i] != 0 &&
           (counts->entry[slot[i] - 1].key != key || counts->entry[slot[i] - 1].group != group))
        i = (i + 1) & mask;
    return &slot[i];
}

/* False: it is full. The entries may be moved to a lower place, never to a higher one. */
static bool take(struct pb_value_counts *counts, uint64_t group, uint32_t key, uint64_t n)
{
    uint32_t *const slot = find(counts, group, key);

    if (*slot == 0) {
        if (counts->n == counts->entries)
            return false;
        counts->entry[counts->n] = (struct pb_value_count){group, 0, key};
        *slot = ++counts->n;
    }
    counts->entry[*slot - 1].n += n;
    return true;
}

size_t pb_value_counts_add(struct pb_value_counts *counts, uint64_t group, const float *value,
                           size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t key;

        if (pb_value_key(value[i], counts->level, &key) && !take(counts, group, key, 1))
            return i;
    }
    return n;
}

static void raise_level(struct pb_value_counts *counts, uint32_t by)
{
    const uint32_t n = counts->n;

    counts->n = 0;
    counts->level += by;
    clear_slots(counts);
    for (uint32_t i = 0; i < n; i++) {
        const struct pb_value_count was = counts->entry[i];
        (void)take(counts, was.group, was.key >> by, was.n);
    }
}

bool pb_value_counts_merge(struct pb_value_counts *into, struct pb_value_counts *from)
{
    if (into->level < from->level)
        raise_level(into, from->level - into->level);
    for (uint32_t i = 0; i < from->n; i++) {
        const struct pb_value_count *const one = &from->entry[i];

        while (!take(into, one->group, one->key >> (into->level - from->level), one->n)) {
            if (into->level == LEVEL_MAX)
                return false;
            raise_level(into, 1);
        }
    }
    if (from->n > 0)
        clear_slots(from);
    from->n = 0;
    from->level = into->level;
    return true;
}

bool pb_value_counts_take_part(struct pb_value_counts *into, const struct pb_value_part *part)
{
    const uint32_t level = part->level, n = part->n; /* another process can write to the part */
    bool sound = level <= LEVEL_MAX && n <= PB_VALUE_PART_ENTRIES && level >= into->level;

    if (sound && level > into->level)
        raise_level(into, level - into->level);
    for (uint32_t i = 0; i < n && sound; i++) {
        const uint32_t key = part->key[i];
        const uint64_t count = part->count[i];
        sound = key <= UINT32_MAX >> level && count > 0 && take(into, 0, key, count);
    }
    return sound;
}

void pb_value_counts_take_level(struct pb_value_counts *empty, const struct pb_value_counts *of)
{
    empty->level = of->level;
}

uint32_t pb_value_counts_level(const struct pb_value_counts *counts)
{
    return counts->level;
}

static int by_group_and_key(const void *a, const void *b)
{
    const struct pb_value_count *const x = a, *const y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

void pb_value_counts_sort(struct pb_value_counts *counts)
{
    qsort(counts->entry, counts->n, sizeof counts->entry[0], by_group_and_key);
}

/* The first entry of a group, or behind all of it; entries of a group that is not there have no
 * place between the two. */
static size_t bound_of(const struct pb_value_counts *counts, uint64_t group, bool behind)
{
    size_t low = 0, high = counts->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (counts->entry[middle].group < group || (behind && counts->entry[middle].group == group))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct pb_value_count *pb_value_counts_of(const struct pb_value_counts *counts,
                                                uint64_t group, size_t *out_n)
{
    const size_t first = bound_of(counts, group, false);

    *out_n = bound_of(counts, group, true) - first;
    return *out_n > 0 ? counts->entry + first : NULL;
}

double pb_value_of_key(uint32_t key, uint32_t level, double *out_error)
{
    const uint32_t low = key << level, high = low | ((UINT32_C(1) << level) - 1);
    const double a = (double)pb_statistics_value(low), b = (double)pb_statistics_value(high);

    *out_error = level > 0 ? (b - a) / 2 : 0;
    return level > 0 ? a + (b - a) / 2 : a;
}

static double value_of_rank(const struct pb_value_count *entry, size_t n, uint32_t level,
                            uint64_t rank, double *io_error)
{
    double error;
    size_t i = 0;

    for (uint64_t below = entry[0].n; below <= rank && i + 1 < n; below += entry[i].n)
        i++;
    const double value = pb_value_of_key(entry[i].key, level, &error);
    *io_error = error > *io_error ? error : *io_error;
    return value;
}

double pb_value_percentile(const struct pb_value_count *entry, size_t n, uint32_t level, double p,
                           double *io_error)
{
    uint64_t values = 0;

    for (size_t i = 0; i < n; i++)
        values += entry[i].n;
    const double at = p / 100 * (double)(values - 1);
    const uint64_t rank = (uint64_t)floor(at);
    const double low = value_of_rank(entry, n, level, rank, io_error);
    if (at == floor(at))
        return low;
    const double high = value_of_rank(entry, n, level, rank + 1, io_error);
    return low + (high - low) * (at - floor(at));
}

const struct pb_value_count *pb_value_majority(const struct pb_value_count *entry, size_t n)
{
    const struct pb_value_count *most = entry;

    for (size_t i = 1; i < n; i++)
        if (entry[i].n > most->n)
            most = &entry[i];
    return most;
}

const struct pb_value_count *pb_value_minority(const struct pb_value_count *entry, size_t n)
{
    const struct pb_value_count *least = entry;

    for (size_t i = 1; i < n; i++)
        if (entry[i].n < least->n)
            least = &entry[i];
    return least;
}
