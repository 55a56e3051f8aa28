/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PASS_H
#define PB_PASS_H
/* One pass of a run over its sources: slots, channels, executor and threads, with the sizes of a
 * plan. The caller keeps plan, rasters and sinks until destroy. create, start, wait and destroy
 * belong to one thread; abort and progress to any, between create and destroy. */
#include "pipeline/run/base/remote.h"
#include "pipeline/run/stream/engine.h"

struct pb_pass_request {
    const struct pb_plan *plan;
    const struct pb_raster *const *raster; /* plan->n_sources */
    const struct pb_limits *limits;
    const char *directory;              /* for temporary files; with plan->n_images */
    const struct pb_step_config *steps; /* steps of the pipeline */
    /* Gets the tiles in the first round, has them later; NULL if unused. */
    struct pb_tile_store *store;
    const struct pb_sink *sinks; /* receive every tile */
    size_t n_sinks;
    bool open;                                  /* the pass may run again (pb_pass_again) */
    const struct pb_whole_device *whole_device; /* for pb_stream; NULL except in tests */
    struct pb_whole_kept *kept;                 /* for pb_stream, like the next */
    struct pb_reducing *reducing;
    const struct pb_remote *remote; /* the process that computes; NULL: this one */
    /* With remote: the request from which the last pass's plan was made. */
    const struct pb_plan_request *facts;
    const struct pb_plan *last; /* with remote: that plan */
    uint32_t number;            /* with remote: number of the pass, as in pb_served_request */
};

struct pb_pass {
    const struct pb_plan *plan;
    struct pb_engine engine;
    bool open;
    void *in_memory, *out_memory; /* memory of the slots */
    size_t in_bytes, out_bytes;
    void *in_channel, *out_channel;   /* memory of the channels themselves */
    struct pb_remote_session session; /* with a remote: owner of slots and channels */
};

int pb_pass_create(const struct pb_pass_request *request, struct pb_err *err,
                   struct pb_pass **out_pass);
int pb_pass_start(struct pb_pass *pass, struct pb_err *err);
/* Starts the tiles again after an open pass has finished them, with the same slots, executor and
 * threads. */
int pb_pass_again(struct pb_pass *pass, struct pb_err *err);
/* Moves the pixels that the next pass can use from a complete pass to request.kept. */
void pb_pass_keep(struct pb_pass *pass);
/* Ends an open pass whose tiles are done: its threads return, and pb_pass_wait waits for
 * them. */
void pb_pass_end(struct pb_pass *pass);
/* 0 when all tiles are done; -ETIMEDOUT: still running, call again; else the first failure, with
 * *err filled. After an abort without a failure: 0, and tiles are missing. timeout_ms < 0 = no
 * limit. */
int pb_pass_wait(struct pb_pass *pass, int64_t timeout_ms, struct pb_err *err);
void pb_pass_abort(struct pb_pass *pass);
/* Adds the pass to the report; device, names and numbers that are not sums are those of this pass.
 */
void pb_pass_report(const struct pb_pass *pass, struct pb_run_report *report);
/* Aborts if needed, joins, frees. NULL is fine. Memory that a hung GPU may still use is not freed:
 * see pb_device_left_behind. */
void pb_pass_destroy(struct pb_pass *pass);
#endif
