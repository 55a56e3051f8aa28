/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_REPORT_H
#define PB_RUN_REPORT_H
/* Reports of a run: its progress, where its time was spent, the work of its device. Plain values;
 * the comment of each pointer has its owner. */
#include "config/input_values.h"
#include "pipeline/product/notes.h"
#include "pipeline/product/product.h"
#include "pipeline/run/base/device_report.h"
#include "pipeline/run/base/latency.h"
#include "pipeline/run/base/run_work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_plan_out;

enum pb_phase { PB_PHASE_PLAN, PB_PHASE_COMPUTE, PB_PHASE_PUBLISH, PB_PHASE_DONE };

struct pb_run_progress {
    enum pb_phase stage;
    uint32_t tiles_done, tiles_total;
    uint64_t bytes_read;    /* decoded bytes of pixels that entered the pipeline */
    uint64_t bytes_written; /* bytes of product files, which are written while publishing */
    int64_t elapsed_ms;     /* since start */
    bool waits;             /* lines of the scene are still to arrive */
    struct pb_latency_counts latency; /* latencies of the present or last pass */
};

/* Time of each stage of the stream: busy and parked time, summed over its threads. */
struct pb_stage_report {
    const char *name; /* "read", "compute", "write" */
    uint32_t threads;
    uint64_t busy_ns, parked_ns;
    uint64_t tiles, bytes;
};

/* Transfers over the link to the device, and how long the device waited for them. */
struct pb_link_report {
    bool used; /* false: the other members are unset */
    uint64_t to_device_bytes, from_device_bytes;
    /* bytes/s, as measured at the start of the run; 0 = not measured */
    double to_device_rate, from_device_rate;
    /* Mean time that a block of the device waited for its next tiles. */
    uint64_t starved_ns;
    uint64_t leave_ns; /* time between the last result and the end of the kernel */
    uint32_t blocks, launches;
    char plan[200]; /* description of the transfer plan, "" if absent */
    struct pb_device_report device;
};

/* Tiles that a gate left out, over all passes. */
struct pb_gate_report {
    /* Tiles that were checked; those of them that were left out. */
    uint64_t tiles, left_out;
    /* Blocks of the sources' files, one band each, that no tile needed because of that. */
    uint64_t blocks;
    /* Why no tile is left out although a step is a gate; "" or NULL = not the case; owned by the
     * run. */
    const char *why;
};

struct pb_run_report {
    char device[64];  /* "cpu" or "cuda:0" */
    char buffers[16]; /* "managed": planes of the scene are; "pinned" or "host": of the slots */
    /* Why it is managed although compute.buffers is auto, or is not although that is managed; "" or
     * NULL = neither. Static. */
    const char *buffers_why;
    char sync[16];
    /* Why it is stream although compute.sync is wic; "" = as configured. */
    char sync_why[200];
    /* "device" or "host": where blocks are decoded; NULL without a GPU. Static. */
    const char *codecs;
    /* Why the host decodes all or some blocks; NULL = it decodes none of them. Static. */
    const char *codecs_why;
    /* Products that the device made, with their codecs; owned by the run; NULL without a GPU. */
    const struct pb_plan_out *out;
    uint64_t memory_bytes; /* planned */
    /* compute.memory that would leave no core idle; 0 = no core is idle */
    uint64_t wanted_bytes;
    int32_t tile_px;
    struct pb_stage_report stage[3];
    struct pb_part_report part[PB_RUN_PARTS];
    /* CPU time of the process since its start. The rest after subtracting the parts was used before
     * the run or by threads that do no part of it. */
    uint64_t process_ns;
    uint32_t cores; /* count of cores that the process may use */
    struct pb_link_report link;
    struct pb_gate_report gate;
    struct pb_latency_report latency; /* latency of the last pass; n 0: no line arrived in it */
    const char *valid; /* source of the validity of the scene's pixels; owned by the run */
    /* Declared validity in the files that is not used; "" if absent; owned by the run. */
    const char *valid_notes;
    struct pb_digits_report digits[PB_BANDS_MAX];
    size_t n_digits;
    struct pb_notes notes; /* findings of the passes */
    int64_t elapsed_ms;
    int64_t publish_ms;
};
#endif
