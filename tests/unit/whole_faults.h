/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_WHOLE_FAULTS_H
#define PB_TEST_WHOLE_FAULTS_H
/* The host in place of a GPU (whole_host.h) whose n-th call of one kind fails, as do all calls
 * after it: a device that is lost at any stage. The number among all calls depends on threads, that
 * of a kind does not. A function of the table that is not listed here does not fail. */
#include "whole_host.h"

static struct {
    const char *stage;
    int at; /* from 1; 0 = never */
    atomic_int calls;
    atomic_bool struck;
} whole_faults;

static bool whole_faults_strike(const char *name)
{
    if (whole_faults.at > 0 && strcmp(name, whole_faults.stage) == 0 &&
        atomic_fetch_add(&whole_faults.calls, 1) + 1 == whole_faults.at)
        atomic_store(&whole_faults.struck, true);
    return atomic_load(&whole_faults.struck);
}

#define WHOLE_FAULT(name, parameters, arguments)                                                   \
    static int whole_faults_##name parameters                                                      \
    {                                                                                              \
        if (whole_faults_strike(#name))                                                            \
            return pb_fail(err, PB_E_DEVICE_LOST, "the device is lost at %s", #name);              \
        return whole_host_device.name arguments;                                                   \
    }
WHOLE_FAULT(open,
            (const struct pb_plan *plan, const struct pb_whole_counts *counts, struct pb_err *err,
             void **out),
            (plan, counts, err, out))
WHOLE_FAULT(use, (void *device, struct pb_err *err), (device, err))
WHOLE_FAULT(memory, (void *device, size_t bytes, struct pb_err *err, void **out),
            (device, bytes, err, out))
WHOLE_FAULT(table, (void *device, size_t bytes, struct pb_err *err, void **out),
            (device, bytes, err, out))
WHOLE_FAULT(copy,
            (void *device, uint32_t queue, void *to, const void *from, size_t bytes,
             struct pb_err *err),
            (device, queue, to, from, bytes, err))
WHOLE_FAULT(decode,
            (void *device, uint32_t queue, enum pb_device_codec codec,
             const struct pb_decode_batch *batch, struct pb_err *err),
            (device, queue, codec, batch, err))
WHOLE_FAULT(unpredict,
            (void *device, uint32_t queue, const struct pb_unpredict_form *form,
             const struct pb_unpredict_block *blocks, uint32_t n, uint32_t rows_most,
             struct pb_err *err),
            (device, queue, form, blocks, n, rows_most, err))
WHOLE_FAULT(tile,
            (void *device, uint32_t lane, const struct pb_tile_in *in,
             const struct pb_tile_out *out, struct pb_err *err),
            (device, lane, in, out, err))
WHOLE_FAULT(mark, (void *device, uint32_t queue, uint32_t event, struct pb_err *err),
            (device, queue, event, err))
WHOLE_FAULT(after, (void *device, uint32_t queue, uint32_t event, struct pb_err *err),
            (device, queue, event, err))
WHOLE_FAULT(happened, (void *device, uint32_t event, const char *what, struct pb_err *err),
            (device, event, what, err))
WHOLE_FAULT(when, (void *device, uint32_t event, uint64_t *out_ns, struct pb_err *err),
            (device, event, out_ns, err))

WHOLE_FAULT(halve,
            (void *device, uint32_t queue, const struct pb_halve_part *parts, uint32_t n,
             uint32_t n_planes, int32_t most_rows, bool nearest, struct pb_err *err),
            (device, queue, parts, n, n_planes, most_rows, nearest, err))
WHOLE_FAULT(encode,
            (void *device, uint32_t queue, const struct pb_encode_batch *batch, struct pb_err *err),
            (device, queue, batch, err))

WHOLE_FAULT(statistics,
            (void *device, uint32_t queue, const struct pb_statistics_plane *planes, uint32_t n,
             uint64_t most_px, struct pb_statistics_part *parts, struct pb_err *err),
            (device, queue, planes, n, most_px, parts, err))

WHOLE_FAULT(values_begin,
            (void *device, uint32_t queue, struct pb_value_table *table, uint32_t limit,
             struct pb_err *err),
            (device, queue, table, limit, err))
WHOLE_FAULT(values_add,
            (void *device, uint32_t queue, struct pb_value_table *table,
             struct pb_value_table *spare, const struct pb_value_planes *planes,
             struct pb_err *err),
            (device, queue, table, spare, planes, err))
WHOLE_FAULT(values_list,
            (void *device, uint32_t queue, struct pb_value_table *table, uint32_t limit,
             struct pb_value_part *parts, struct pb_err *err),
            (device, queue, table, limit, parts, err))

/* The n-th call of the stage from now on fails. */
static const struct pb_whole_device *whole_faults_at(const char *stage, int n)
{
    static struct pb_whole_device faulty;
    faulty = whole_host_device;
    faulty.open = whole_faults_open;
    faulty.use = whole_faults_use;
    faulty.memory = whole_faults_memory;
    faulty.table = whole_faults_table;
    faulty.copy = whole_faults_copy;
    faulty.decode = whole_faults_decode;
    faulty.unpredict = whole_faults_unpredict;
    faulty.tile = whole_faults_tile;
    faulty.mark = whole_faults_mark;
    faulty.after = whole_faults_after;
    faulty.happened = whole_faults_happened;
    faulty.when = whole_faults_when;
    faulty.halve = whole_faults_halve;
    faulty.encode = whole_faults_encode;
    faulty.statistics = whole_faults_statistics;
    faulty.values_begin = whole_faults_values_begin;
    faulty.values_add = whole_faults_values_add;
    faulty.values_list = whole_faults_values_list;
    whole_faults.stage = stage;
    whole_faults.at = n;
    atomic_store(&whole_faults.calls, 0);
    atomic_store(&whole_faults.struck, false);
    return &faulty;
}
#endif
