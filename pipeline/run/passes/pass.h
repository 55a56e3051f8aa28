/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PASS_H
#define PB_PASS_H
/* One pass of a run over its sources: slots, channels, executor and threads, as a plan has sized
 * them. The caller keeps plan, rasters and sinks until destroy. create, start, wait and destroy
 * belong to one thread; abort and progress to any, between create and destroy. */
#include "pipeline/run/base/remote.h"
#include "pipeline/run/stream/run_threads.h"
#include "pipeline/run/stream/stream.h"

struct pb_pass_request {
    const struct pb_plan *plan;
    const struct pb_raster *const *raster; /* plan->n_sources */
    const struct pb_limits *limits;
    const char *directory;              /* of temporary files; with plan->n_images */
    const struct pb_step_config *steps; /* of the pipeline */
    struct pb_tile_store *store;        /* tiles are kept there, or come from it; NULL = none */
    const struct pb_sink *sinks;        /* that get every tile */
    size_t n_sinks;
    bool open;                                  /* it may be run again (pb_pass_again) */
    const struct pb_whole_device *whole_device; /* of pb_stream; NULL but in tests */
    struct pb_whole_kept *kept;                 /* of pb_stream, as the next */
    struct pb_reducing *reducing;
    const struct pb_remote *remote;      /* the process that computes; NULL: this one */
    const struct pb_plan_request *facts; /* with remote: what the last pass's plan was made from */
    const struct pb_plan *last;          /* with remote: that plan */
    uint32_t number;                     /* with remote: of the pass, as pb_served_request has it */
};

struct pb_pass {
    const struct pb_plan *plan;
    struct pb_stream stream;
    bool open;
    void *in_memory, *out_memory; /* slots */
    size_t in_bytes, out_bytes;
    void *in_channel, *out_channel;   /* the channels themselves */
    struct pb_remote_session session; /* whose slots and channels they are, with a remote */
    const struct pb_exec_type *exec_type;
    void *exec;
    double to_device_rate, from_device_rate; /* of the link, bytes/s; 0 = not known */
    uint64_t set_up_ns, pin_ns;              /* as pb_device_report has them, of this process */
    struct pb_run_threads threads;
};

int pb_pass_create(const struct pb_pass_request *request, struct pb_err *err,
                   struct pb_pass **out_pass);
int pb_pass_start(struct pb_pass *pass, struct pb_err *err);
/* An open pass whose tiles are through: they begin again, with the slots, the executor and the
 * threads that there are. */
int pb_pass_again(struct pb_pass *pass, struct pb_err *err);
/* A pass that is complete leaves in request.kept what the next one can use. */
void pb_pass_keep(struct pb_pass *pass);
/* An open pass whose tiles are through is not run again: its threads come to their end, for which
 * pb_pass_wait waits. */
void pb_pass_end(struct pb_pass *pass);
/* 0 when all tiles are through; -ETIMEDOUT: still running, call again; else the first failure, with
 * *err filled. After an abort without a failure: 0, and tiles are missing. timeout_ms < 0 = no
 * limit. */
int pb_pass_wait(struct pb_pass *pass, int64_t timeout_ms, struct pb_err *err);
void pb_pass_abort(struct pb_pass *pass);
/* Adds the pass to the report; device, names and numbers that are no sums are those of this pass.
 */
void pb_pass_report(const struct pb_pass *pass, struct pb_run_report *report);
/* Aborts if needed, joins, frees. NULL is fine. Memory that a GPU which does not answer may still
 * use stays: see pb_device_left_behind. */
void pb_pass_destroy(struct pb_pass *pass);
#endif
