/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_REPORT_H
#define PB_RUN_REPORT_H
/* What a run says of itself: how far it is, where its time went, what its device did. Plain values;
 * pointers as their members say. */
#include "config/config.h"
#include "pipeline/product/notes.h"
#include "pipeline/product/product.h"
#include "pipeline/run/base/device_report.h"
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
    uint64_t bytes_written; /* of product files, which are written while publishing */
    int64_t elapsed_ms;     /* since start */
};

/* Where the time went, per stage of the stream: threads, busy and parked time summed over them. */
struct pb_stage_report {
    const char *name; /* "read", "compute", "write" */
    uint32_t threads;
    uint64_t busy_ns, parked_ns;
    uint64_t tiles, bytes;
};

/* What crossed the link to the device, and how long the device waited for it. */
struct pb_link_report {
    bool used; /* the rest counts only then */
    uint64_t to_device_bytes, from_device_bytes;
    double to_device_rate, from_device_rate; /* bytes/s, as measured at the start of the run; 0 =
                                                not measured */
    uint64_t starved_ns; /* how long the next tiles of the device's blocks were not there, mean */
    uint64_t leave_ns;   /* from the last result until the kernel had left */
    uint32_t blocks, launches;
    char plan[200]; /* the transfer plan in words, "" = none */
    struct pb_device_report device;
};

/* Tiles that a gate left out, over all passes. */
struct pb_gate_report {
    uint64_t tiles, left_out; /* tiles looked at, and of them left out */
    uint64_t blocks;          /* of the sources' files, a band each, that no tile needed for that */
    const char *why;          /* none is left out although a step is a gate; "" or NULL = it is not
                                 so; owned by the run */
};

struct pb_run_report {
    char device[64]; /* "cpu" or "cuda:0" */
    char buffers[16];
    const char *buffers_why; /* why it is pinned although compute.buffers is managed; "" or NULL =
                                it is as configured. Static text */
    char sync[16];
    char
        sync_why[200]; /* why it is stream although compute.sync is wic; "" = it is as configured */
    const char *codecs; /* where blocks are decoded: "device" or "host"; NULL: there is no GPU */
    const char *codecs_why; /* why on the host, all of them or some; NULL = they are not. Both
                               static */
    const struct pb_plan_out *out; /* which products were made on the device, with codecs; owned by
                                      the run; NULL: there is no GPU */
    uint64_t memory_bytes;         /* planned */
    uint64_t wanted_bytes;         /* compute.memory with which no core is left idle; 0: none is */
    int32_t tile_px;
    struct pb_stage_report stage[3];
    struct pb_part_report part[PB_RUN_PARTS];
    uint64_t process_ns; /* CPU time of the process since its start: what the parts do not have of
                            it was used before the run, or by threads that take no part */
    uint32_t cores;      /* that the process may use */
    struct pb_link_report link;
    struct pb_gate_report gate;
    const char *valid;       /* what decides which pixels of the scene are valid */
    const char *valid_notes; /* what the files declare and is not used so; "" = nothing. Both owned
                                by the run */
    struct pb_digits_report digits[PB_BANDS_MAX];
    size_t n_digits;
    struct pb_notes notes; /* what the passes found */
    int64_t elapsed_ms;
    int64_t publish_ms;
};
#endif
