/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_WORK_H
#define PB_RUN_WORK_H
/* What the threads of a run do in each of its phases (pipeline/profile/work.h). Thread: the
 * caller's of the run. */
#include "pipeline/profile/work.h"

#include <stdint.h>

/* One after the other. */
enum pb_run_part {
    PB_RUN_OPEN,    /* create: headers, plan, the products' files */
    PB_RUN_TILES,   /* start and wait: until all tiles are through */
    PB_RUN_FINISH,  /* publish: after the last tile */
    PB_RUN_PUBLISH, /* by the process that may write where the products go */
    PB_RUN_PARTS
};

struct pb_part_report {
    uint64_t wall_ns;
    struct pb_work_times work; /* of the run's threads, that of the caller among them */
};

/* Zeroed: nothing was done. */
struct pb_run_work {
    struct pb_work_ledger ledger;
    struct pb_work_times before; /* in the ledger at the end of the last call */
    uint64_t start_ns;
    struct pb_part_report part[PB_RUN_PARTS];
};

/* Around each call that belongs to a phase. */
void pb_run_work_begin(struct pb_run_work *work);
void pb_run_work_end(struct pb_run_work *work, enum pb_run_part part);

/* "open", "tiles", "finish", "publish" */
const char *pb_run_part_name(enum pb_run_part part);
/* CPU time of the calling process so far, all its threads. */
uint64_t pb_run_work_process_ns(void);
#endif
