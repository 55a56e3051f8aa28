/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_END_H
#define PB_JOB_END_H
/* The end of a job's run: by its outcome and the class of its error, the job ends or returns to
 * the queue. A state is announced when it is on the disk, or when the store refuses it. The
 * functions take the job's memory. Thread: loop. */
#include "service/runner/faults.h"
#include "service/runner/job_queue.h"
#include "service/runner/pending.h"
#include "service/processes/worker_slot.h"

struct pb_job_ends {
    const struct pb_runner_env *env; /* borrowed, like all of these */
    struct pb_pending_list *pending;
    struct pb_faults *faults;
    struct pb_job_queue *queue;
};

/* Ends the job or returns it to the queue. Returns true if it ends, and no fault of the machine or
 * of the configuration ended its run. */
bool pb_job_end_run(struct pb_job_ends *ends, struct pb_run_over *over);
/* Returns a job whose run failed before its scene was complete to the queue. The run is not counted
 * as an attempt. */
void pb_job_end_again(struct pb_job_ends *ends, struct pb_run_over *over);
/* Changes running to accepted, or to successful if its products are in place. Its error is kept. */
void pb_job_end_put_back(struct pb_job_ends *ends, struct pb_job *job);
/* Ends a waiting job with scenes (pb_job_has_scenes), which are over; or keeps it waiting if the
 * store cannot be read. The end of the last scene does so too, because it needs no slot; the queue
 * has the jobs whose scenes ended before a restart. */
void pb_job_end_scenes(struct pb_job_ends *ends, struct pb_job *job);

/* The functions below are for jobs that are pending already and whose products were searched for.
 */

/* Moves a running job to its final state, stores it, moves its input to its final place and
 * announces it. */
void pb_job_end_finish(struct pb_job_ends *ends, struct pb_pending *pending,
                       enum pb_job_status status);
/* Makes a waiting job successful whose products are in place after all. */
void pb_job_end_is_done(struct pb_job_ends *ends, struct pb_pending *pending);
/* Call after the fault of the machine in the job's error ended its start or its run, which began at
 * began_ms: it waits again, or fails. */
void pb_job_end_fault(struct pb_job_ends *ends, struct pb_pending *pending, int64_t began_ms);
/* Changes running to accepted. Its error is kept. */
void pb_job_end_return(struct pb_job_ends *ends, struct pb_pending *pending);
/* Dismisses a waiting job. If that cannot be stored, the job is unchanged. */
void pb_job_end_dismiss(struct pb_job_ends *ends, struct pb_pending *pending);
#endif
