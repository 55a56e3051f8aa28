/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VALUE_TABLE_H
#define PB_VALUE_TABLE_H
/* Count of each value of a band in the memory of a device: the entries of pb_value_counts
 * (value_counts.h) with one group. Planes of at most `px` pixels are added without a check for
 * room, because the table has slots for `limit` entries and that many new ones; afterwards the
 * level is raised until at most `limit` entries are left. The level is therefore the least at which
 * all values fit, as on the host, and the host merges the entries. C11 and C++17; the functions of
 * CUDA exist in CUDA builds only. */
#include "kernels/reduce/statistics_device.h"
#include "kernels/reduce/statistics_key.h"

#include <stddef.h>

/* Entries of a part in which a table is copied to the host. */
#define PB_VALUE_PART_ENTRIES (1 << 15)

/* Count of all finite values whose keys, shifted by `level`, are key[i]. */
struct pb_value_part {
    uint32_t level, n; /* n: entries of this part */
    uint64_t count[PB_VALUE_PART_ENTRIES];
    uint32_t key[PB_VALUE_PART_ENTRIES];
};

/* A hash table with open addressing: the counts, then the keys. */
struct pb_value_table {
    uint32_t limit; /* entries that stay, a power of two */
    uint32_t slots; /* a power of two */
    uint32_t level, n;
    uint32_t listed, spare; /* listed: entries that are in parts already */
    uint64_t count[];
};

#define PB_VALUE_FREE UINT32_C(0xffffffff) /* no finite value has this key */

/* Most pixels that are added to a table of that limit at once. */
PB_PIXEL uint64_t pb_value_table_px(uint32_t limit)
{
    return 2 * (uint64_t)limit;
}

PB_PIXEL size_t pb_value_table_bytes(uint32_t limit)
{
    return sizeof(struct pb_value_table) +
           (size_t)limit * 4 * (sizeof(uint64_t) + sizeof(uint32_t));
}

/* Parts of a table of that limit. */
PB_PIXEL uint32_t pb_value_table_parts(uint32_t limit)
{
    return (limit + PB_VALUE_PART_ENTRIES - 1) / PB_VALUE_PART_ENTRIES;
}

PB_PIXEL uint32_t *pb_value_table_keys(struct pb_value_table *table)
{
    return (uint32_t *)(table->count + table->slots);
}

/* Returns true if the value is counted, and its key at a level: the rule of the host and of
 * devices. -0 is 0. */
PB_PIXEL bool pb_value_key(float value, uint32_t level, uint32_t *out_key)
{
    *out_key = pb_statistics_key(value + 0.0f) >> level;
    return fabsf(value) <= FLT_MAX;
}

/* Hash of a key in a group, of which the upper half is used. */
PB_PIXEL uint32_t pb_value_hash(uint64_t group, uint32_t key)
{
    const uint64_t hash =
        (group * UINT64_C(0xd1342543de82ef95) + key) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Planes first, first + step, ... of a list: n of them, of which rows row .. row + rows - 1 are
 * added. */
struct pb_value_planes {
    const struct pb_statistics_plane *plane;
    uint32_t n, step;
    int32_t row, rows;
};

/* Makes an empty table of pb_value_table_bytes(limit) in device memory; 8-byte aligned. -EINVAL,
 * -ENODEV, -EIO, like the others. */
int pb_value_table_begin_cuda(struct pb_value_table *table, uint32_t limit, void *stream);
/* Adds pixels, at most pb_value_table_px(limit) in all, and makes the table fit. `spare` is an
 * empty table of the same limit, and empty again when the stream is done. The list is
 * device-readable until then. */
int pb_value_table_add_cuda(struct pb_value_table *table, struct pb_value_table *spare,
                            const struct pb_value_planes *planes, void *stream);
/* Writes the entries to pb_value_table_parts(limit) parts in device memory, in any order. Call it
 * once, after the last pixels. */
int pb_value_table_list_cuda(struct pb_value_table *table, uint32_t limit,
                             struct pb_value_part *parts, void *stream);

#ifdef __cplusplus
}
#endif
#endif
