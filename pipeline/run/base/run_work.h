/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_WORK_H
#define PB_RUN_WORK_H
/* CPU and waiting time of a run's threads in each of its phases (pipeline/profile/work.h). Thread:
 * the run's caller. */
#include "pipeline/profile/work.h"

#include <stdint.h>

/* Phases in their order. */
enum pb_run_part {
    PB_RUN_OPEN,    /* create: headers, plan, the products' files */
    PB_RUN_TILES,   /* start and wait: until all tiles are done */
    PB_RUN_FINISH,  /* publish: after the last tile */
    PB_RUN_PUBLISH, /* in the process that may write to the place of the products */
    PB_RUN_PARTS
};

struct pb_part_report {
    uint64_t wall_ns;
    struct pb_work_times work; /* times of the run's threads, including the caller's */
};

/* Zeroed: no work yet. */
struct pb_run_work {
    struct pb_work_ledger ledger;
    struct pb_work_times before; /* times in the ledger at the end of the last call */
    uint64_t start_ns;
    struct pb_part_report part[PB_RUN_PARTS];
};

/* Call them around each call that belongs to a phase. */
void pb_run_work_begin(struct pb_run_work *work);
void pb_run_work_end(struct pb_run_work *work, enum pb_run_part part);

/* "open", "tiles", "finish", "publish" */
const char *pb_run_part_name(enum pb_run_part part);
/* CPU time of the calling process so far, over all its threads. */
uint64_t pb_run_work_process_ns(void);
#endif
