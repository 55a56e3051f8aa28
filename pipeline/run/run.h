/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_H
#define PB_RUN_H
/* One scene through one pipeline, products out. Owns the stages (reader, executor and writer
 * threads), the channels between them and every buffer. Knows no jobs and no sockets.
 *
 *   create   opens, checks and plans; refuses what cannot work before a pixel is read
 *   start    starts the threads
 *   wait     until all tiles are written, or something failed; then publish() or destroy()
 *   publish  finishes the products and makes them visible by one rename
 *   abort    any time, any thread: everything parked wakes up, wait returns -ECANCELED
 */
#include "config/config.h"
#include "config/base/err.h"
#include "pipeline/product/product.h"
#include "pipeline/publish/publish.h"
#include "pipeline/run/device_report.h"
#include "pipeline/run/run_work.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_run;
struct pb_remote;
struct pb_scene_files;
struct pb_metadata_files;
struct pb_run_tiles;
struct pb_sidecars;

struct pb_run_options {
    const struct pb_config *config; /* borrowed until destroy */
    const struct pb_pipeline_config *pipeline;
    const char *input;                        /* path of the scene; borrowed until destroy */
    const struct pb_scene_files *files;       /* of a scene that is a folder, handed before
                                                 (pb_scene_files_hand); NULL = the scene is one file;
                                                 borrowed until destroy */
    const struct pb_metadata_files *metadata; /* of a scene that is one file: the open files of
                                              pb_sidecar_open; NULL = the run opens it, when the
                                              pipeline names one; borrowed until destroy */
    const struct pb_sidecars *sidecars;       /* of the scene, handed before
                                                 (pb_raster_file_hand_sidecars); NULL = none; borrowed
                                                 until destroy */
    const char
        *products; /* directory that gets <scene>/<pipeline>/, created when missing; NULL = the run
                      is only there to be explained: no file is touched, no tile allocated */
    const char *scene; /* NULL = base name of input without its suffix; copied */
    /* Where to write instead of below products: a directory that the caller made, and publishes or
     * removes afterwards, for the scene directory `place`. So a process that decodes foreign files
     * needs no right to any other place. NULL = the run makes and publishes one. Borrowed until
     * destroy. */
    const char *directory, *place;
    /* With directory, for a place that depends on the metadata (place NULL): tells it; borrowed
     * until destroy, NULL = the run is cancelled. */
    const char *(*locate)(void *user, const struct pb_output_facts *facts);
    /* With directory: the files that are read, with their checksums, which the caller computes;
     * waits for them; borrowed until destroy. NULL = they are not known. */
    int (*inputs)(void *user, struct pb_err *err, const struct pb_input_files **out);
    void *user;             /* of both */
    int32_t jobs_beside;    /* processes that compute at the same time, up to so many; 0: none */
    const char *stream_why; /* why kernels come and go, whatever compute.sync says; NULL: as
                               configured; borrowed until destroy */
    const struct pb_remote *remote; /* the process that computes; NULL = this one, on the device
                                       that config chooses; borrowed until destroy */
    const char *name; /* of the input as it was delivered; NULL = base name of input; copied */
    const char *job;  /* id for the manifest; NULL = none; copied */
    unsigned mode;    /* permissions of product files; see struct pb_publish_options */
};

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
    struct pb_digits_report digits[PB_BANDS_MAX];
    size_t n_digits;
    int64_t elapsed_ms;
    int64_t publish_ms;
};

struct pb_run_result {
    char directory[4096];
    struct pb_product_result *products; /* owned by the run */
    size_t n_products;
    struct pb_run_report report;
    const struct pb_chain *chain; /* whose reductions have their results; owned by the run */
    const struct pb_pipeline_config *pipeline; /* whose exchanges were followed; the caller's */
    const struct pb_metadata *metadata;        /* of the scene; family NULL = none; owned by the
                                                  run, as the next */
    const struct pb_scene_files *files;        /* of a scene of many files; the caller's; or NULL */
    const struct pb_sidecars *sidecars;        /* the caller's; NULL = none */
    const struct pb_observations *observations; /* n 0: metadata do not order the files; owned by
                                                   the run */
    const struct pb_calibrated *calibrated;     /* n_calibrated, by the steps that calibrate */
    size_t n_calibrated;
    const struct pb_run_tiles *tiles; /* of a grid (run_tiles.h); NULL = there are none; owned by
                                         the run */
    const char *warning;              /* of a success, "" = none; owned by the run */
};

int pb_run_create(const struct pb_run_options *options, struct pb_err *err,
                  struct pb_run **out_run);
int pb_run_start(struct pb_run *run, struct pb_err *err);
/* 0 when all tiles are through; -ETIMEDOUT: still running, call again; else the first failure, with
 * *err filled. timeout_ms < 0 = no limit. */
int pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err);
/* After a wait that returned 0, and once. With a directory of the caller's the files are complete
 * there and nothing is made visible. The result is valid until destroy. */
int pb_run_publish(struct pb_run *run, struct pb_err *err, struct pb_run_result *out_result);
/* As buffers_why of the report, known from create on. */
const char *pb_run_buffers_why(const struct pb_run *run);
void pb_run_abort(struct pb_run *run);
/* A snapshot. Thread: any, between create and destroy. */
void pb_run_progress(struct pb_run *run, struct pb_run_progress *out_progress);
/* Aborts if needed, joins, removes what was not published, frees. NULL is fine. What a GPU that
 * does not answer may still use stays: see pb_device_left_behind. */
void pb_run_destroy(struct pb_run *run);

const char *pb_phase_name(enum pb_phase stage); /* "plan", "compute", "publish", "done" */
/* The device a config would use right now ("cpu", "cuda:0"), and, when auto fell back to the CPU,
 * one line why
 * ("" otherwise). -ENODEV with *err when the config demands a device that is not there. */
int pb_run_device(const struct pb_compute_config *compute, char device[64], char why[200],
                  struct pb_err *err);
#endif
