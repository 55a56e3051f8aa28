// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulator.h"

#include "kernels/reduce/percentiles.cuh"
#include "kernels/reduce/statistics.cuh"
#include "kernels/reduce/value_table.cuh"
#include "tests/device/emulate_statistics.h"

void emulate_statistics(const struct pb_statistics_plane *plane, uint32_t shares, unsigned order,
                        struct pb_statistics_part *part)
{
    using namespace pb_device;
    const auto group = [] { return pb_block_group{threadIdx.x, blockDim.x}; };
    emulator.order = order;
    emulate(1, STATISTICS_THREADS, 0, [&] { pb_statistics_begin(part, group()); });
    emulate(shares, STATISTICS_THREADS, sizeof(moments_arena), [&] {
        pb_statistics_moments(*plane, blockIdx.x, shares,
                              *reinterpret_cast<moments_arena *>(emulated_shared), part, group());
    });
    emulate(shares, STATISTICS_THREADS, sizeof(bins_arena), [&] {
        pb_statistics_bins(*plane, blockIdx.x, shares,
                           *reinterpret_cast<bins_arena *>(emulated_shared), part, group());
    });
}

void emulate_percentiles(struct pb_percentiles *state, const struct pb_statistics_plane *plane,
                         uint32_t shares, unsigned order)
{
    using namespace pb_device;
    emulator.order = order;
    emulate(shares, PERCENTILES_THREADS, sizeof(percentiles_arena), [&] {
        pb_percentiles_rows(*plane, blockIdx.x, shares,
                            *reinterpret_cast<percentiles_arena *>(emulated_shared), state,
                            pb_block_group{threadIdx.x, blockDim.x});
    });
}

void emulate_values_begin(struct pb_value_table *table, uint32_t limit, uint32_t blocks)
{
    emulate(blocks, pb_device::VALUE_THREADS, 0, [&] {
        pb_value_table_begin(table, limit, blockIdx.x, blocks,
                             pb_block_group{threadIdx.x, blockDim.x});
    });
}

void emulate_values_add(struct pb_value_table *table, struct pb_value_table *spare,
                        const struct pb_value_planes *planes, uint32_t shares, unsigned order)
{
    using namespace pb_device;
    emulator.order = order;
    for (uint32_t i = 0; i < planes->n; i++) {
        emulate(shares, VALUE_THREADS, sizeof(value_arena), [&] {
            pb_value_table_rows(*planes, i, blockIdx.x, shares,
                                *reinterpret_cast<value_arena *>(emulated_shared), table,
                                pb_block_group{threadIdx.x, blockDim.x});
        });
    }
    emulate(1, VALUE_FIT_THREADS, 0, [&] {
        pb_value_table_fit(table, spare, pb_block_group{threadIdx.x, blockDim.x});
    });
}

void emulate_values_list(struct pb_value_table *table, struct pb_value_part *parts, uint32_t blocks)
{
    emulate(blocks, pb_device::VALUE_THREADS, 0, [&] {
        pb_value_table_list(table, blockIdx.x, blocks, parts,
                            pb_block_group{threadIdx.x, blockDim.x});
    });
}
