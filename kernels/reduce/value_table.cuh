// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_VALUE_TABLE_CUH
#define PB_VALUE_TABLE_CUH
// Counts values in a table in device memory. Neighbours often have the same value: as in
// percentiles.cuh, a table in shared memory holds the first of the keys that share a place. Every
// key finds a slot, because the caller limits the pixels between two calls of fit.
#include "kernels/reduce/value_table.h"
#include "kernels/thread_group.cuh"

namespace pb_device
{
constexpr uint32_t VALUE_THREADS = 256, VALUE_FIT_THREADS = 1024, HELD_KEYS = 2048;

struct value_arena {
    uint32_t key[HELD_KEYS], n[HELD_KEYS];
};

// Adds n to the count of a key; a new key is counted in table->n.
inline __device__ void add_to_table(pb_value_table *table, uint32_t key, uint64_t n)
{
    const uint32_t mask = table->slots - 1;
    uint32_t *const keys = pb_value_table_keys(table);
    uint32_t i = pb_value_hash(0, key) & mask;
    for (;; i = (i + 1) & mask) {
        const uint32_t held = atomicCAS(&keys[i], PB_VALUE_FREE, key);
        if (held == PB_VALUE_FREE) {
            atomicAdd(&table->n, 1u);
        }
        if (held == PB_VALUE_FREE || held == key) {
            break;
        }
    }
    atomicAdd(reinterpret_cast<unsigned long long *>(&table->count[i]),
              static_cast<unsigned long long>(n));
}

inline __device__ void hold_key(value_arena &arena, pb_value_table *table, uint32_t key)
{
    const uint32_t place = pb_value_hash(1, key) % HELD_KEYS;
    const uint32_t held = atomicCAS(&arena.key[place], PB_VALUE_FREE, key);
    if (held == PB_VALUE_FREE || held == key) {
        atomicAdd(&arena.n[place], 1u);
    } else {
        add_to_table(table, key, 1);
    }
}

// Clears the slots index, index + threads, ...
inline __device__ void clear_slots(pb_value_table *table, uint64_t index, uint64_t threads)
{
    uint32_t *const keys = pb_value_table_keys(table);
    for (uint64_t i = index; i < table->slots; i += threads) {
        keys[i] = PB_VALUE_FREE;
        table->count[i] = 0;
    }
}
} // namespace pb_device

// Makes an empty table by `groups` thread groups, of which this is number `index`. No thread reads
// the head before all have written it.
template <class Group>
__device__ void pb_value_table_begin(pb_value_table *table, uint32_t limit, uint32_t index,
                                     uint32_t groups, const Group &group)
{
    const uint32_t slots = 4 * limit;
    uint32_t *const keys = reinterpret_cast<uint32_t *>(table->count + slots);
    for (uint64_t i = static_cast<uint64_t>(index) * group.threads + group.thread; i < slots;
         i += static_cast<uint64_t>(groups) * group.threads) {
        keys[i] = PB_VALUE_FREE;
        table->count[i] = 0;
    }
    if (index == 0 && group.thread == 0) {
        table->limit = limit;
        table->slots = slots;
        table->level = table->n = table->listed = table->spare = 0;
    }
}

// The share `index` of `shares` of a plane's rows. Every thread of the group calls it; a barrier
// follows before the arena is used again.
template <class Group>
__device__ void pb_value_table_rows(const pb_value_planes &planes, uint32_t number, uint32_t index,
                                    uint32_t shares, pb_device::value_arena &arena,
                                    pb_value_table *table, const Group &group)
{
    using namespace pb_device;
    const pb_statistics_plane &plane = planes.plane[number * planes.step];
    const uint32_t level = table->level;
    for (uint32_t i = group.thread; i < HELD_KEYS; i += group.threads) {
        arena.key[i] = PB_VALUE_FREE;
        arena.n[i] = 0;
    }
    group.sync();
    const int32_t h = plane.data == nullptr ? 0 : plane.h;
    const int32_t end = h - planes.row < planes.rows ? h : planes.row + planes.rows;
    for (int32_t y = planes.row + static_cast<int32_t>(index); y < end;
         y += static_cast<int32_t>(shares)) {
        const float *const row = plane.data + static_cast<size_t>(y) * plane.row_px;
        for (uint32_t x = group.thread; x < static_cast<uint32_t>(plane.w); x += group.threads) {
            uint32_t key;
            if (pb_value_key(row[x], level, &key)) {
                hold_key(arena, table, key);
            }
        }
    }
    group.sync();
    for (uint32_t i = group.thread; i < HELD_KEYS; i += group.threads) {
        if (arena.n[i] > 0) {
            add_to_table(table, arena.key[i], arena.n[i]);
        }
    }
}

// Raises the level until at most `limit` entries are left, by one thread group.
template <class Group>
__device__ void pb_value_table_fit(pb_value_table *table, pb_value_table *spare, const Group &group)
{
    using namespace pb_device;
    uint32_t *const keys = pb_value_table_keys(table), *const others = pb_value_table_keys(spare);
    while (table->n > table->limit) {
        for (uint32_t i = group.thread; i < table->slots; i += group.threads) {
            if (keys[i] != PB_VALUE_FREE) {
                add_to_table(spare, keys[i] >> 1, table->count[i]);
            }
        }
        group.sync();
        for (uint32_t i = group.thread; i < table->slots; i += group.threads) {
            keys[i] = others[i];
            table->count[i] = spare->count[i];
        }
        if (group.thread == 0) {
            table->n = spare->n;
            table->level++;
            spare->n = 0;
        }
        clear_slots(spare, group.thread, group.threads);
        group.sync();
    }
}

// Writes the entries of the slots index, index + shares, ... blocks of the group's threads, and
// zeros after the last entry, because parts are copied whole.
template <class Group>
__device__ void pb_value_table_list(pb_value_table *table, uint32_t index, uint32_t shares,
                                    pb_value_part *parts, const Group &group)
{
    const uint32_t *const keys = pb_value_table_keys(table);
    if (index == 0 && group.thread < pb_value_table_parts(table->limit)) {
        const uint32_t before = group.thread * PB_VALUE_PART_ENTRIES;
        const uint32_t left = table->n > before ? table->n - before : 0;
        parts[group.thread].level = table->level;
        parts[group.thread].n = left < PB_VALUE_PART_ENTRIES ? left : PB_VALUE_PART_ENTRIES;
    }
    for (uint64_t i = static_cast<uint64_t>(index) * group.threads + group.thread; i < table->slots;
         i += static_cast<uint64_t>(shares) * group.threads) {
        if (keys[i] != PB_VALUE_FREE) {
            const uint32_t at = atomicAdd(&table->listed, 1u);
            pb_value_part &part = parts[at / PB_VALUE_PART_ENTRIES];
            part.key[at % PB_VALUE_PART_ENTRIES] = keys[i];
            part.count[at % PB_VALUE_PART_ENTRIES] = table->count[i];
        }
    }
    const uint64_t room =
        static_cast<uint64_t>(pb_value_table_parts(table->limit)) * PB_VALUE_PART_ENTRIES;
    for (uint64_t i = table->n + static_cast<uint64_t>(index) * group.threads + group.thread;
         i < room; i += static_cast<uint64_t>(shares) * group.threads) {
        parts[i / PB_VALUE_PART_ENTRIES].key[i % PB_VALUE_PART_ENTRIES] = 0;
        parts[i / PB_VALUE_PART_ENTRIES].count[i % PB_VALUE_PART_ENTRIES] = 0;
    }
}
#endif
