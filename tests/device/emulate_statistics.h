/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_STATISTICS_H
#define PB_EMULATE_STATISTICS_H
/* The statistics of planes as a device finds them, on the host (device/emulator.h). C11 and C++17;
 * one thread. */
#include "kernels/reduce/percentiles_device.h"
#include "kernels/reduce/value_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does the work of pb_statistics_cuda for one plane, by `shares` thread blocks. */
void emulate_statistics(const struct pb_statistics_plane *plane, uint32_t shares, unsigned order,
                        struct pb_statistics_part *part);
/* Does the work of pb_percentiles_cuda for one plane. */
void emulate_percentiles(struct pb_percentiles *state, const struct pb_statistics_plane *plane,
                         uint32_t shares, unsigned order);

/* Do the work of pb_value_table_begin_cuda, _add_cuda and _list_cuda. */
void emulate_values_begin(struct pb_value_table *table, uint32_t limit, uint32_t blocks);
void emulate_values_add(struct pb_value_table *table, struct pb_value_table *spare,
                        const struct pb_value_planes *planes, uint32_t shares, unsigned order);
void emulate_values_list(struct pb_value_table *table, struct pb_value_part *parts,
                         uint32_t blocks);

#ifdef __cplusplus
}
#endif
#endif
