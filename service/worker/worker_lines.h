/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_LINES_H
#define PB_WORKER_LINES_H
/* Parses and checks the lines of a worker like those of an untrusted client: a worker decodes
 * foreign files, which may have taken control of it. A line becomes a typed event only if it names
 * the running job, its numbers are in range and never decrease, its paths are those of that job's
 * products, and its texts are bounded and without control characters. The rate of the lines of a
 * worker is limited. Plain memory without I/O. Thread: any, one at a time for each object. */
#include "config/output/output_path.h"
#include "pipeline/run/base/latency.h"
#include "service/jobs/job.h"
#include "service/jobs/job_alert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_WORKER_LINE_MAX     (1024 * 1024)
#define PB_WORKER_PRODUCTS_MAX 256
#define PB_WORKER_LINES_BURST  1000 /* credits of a new worker, which is also the maximum */
/* credits per second; a line costs one, and one more per 4 KiB */
#define PB_WORKER_LINES_RATE 100
#define PB_WORKER_ALERTS_MAX 20 /* most alerts in one event */
#define PB_WORKER_LINES_JOB  20 /* credits added by a job, because many short ones may follow */
#define PB_WORKER_WHY_BYTES  160
#define PB_WORKER_PATH_BYTES 4096

enum pb_worker_event {
    PB_WORKER_SAYS_DEVICE,
    PB_WORKER_SAYS_PROGRESS,
    PB_WORKER_SAYS_TURN,
    PB_WORKER_SAYS_PERMIT,
    PB_WORKER_SAYS_PLACE,  /* to the worker only: facts of the metadata for output.path */
    PB_WORKER_SAYS_INPUTS, /* to the worker only: checksums of the files that were read */
    PB_WORKER_SAYS_ALERTS, /* alerts of a job that computes */
    PB_WORKER_SAYS_DONE,
    PB_WORKER_SAYS_FAILED
};

struct pb_worker_numbers {
    int64_t tiles_done, tiles_total, bytes_read, bytes_written, elapsed_ms;
    int64_t
        io_ms;  /* time for which a read or write has been waiting for storage; 0 if none waits */
    bool waits; /* true while the run waits for lines of the scene */
    struct pb_latency_counts latency; /* latencies of the run; last values if the line omits them */
    int64_t bytes_checked; /* bytes read of the input for its checksum; the last value if the line
                              has no number */
};

/* Event of a worker; members that it does not have are zero. */
struct pb_worker_line {
    enum pb_worker_event event;
    char device[64];
    char why[256];                    /* device */
    char stage[16];                   /* progress */
    char sensor[64];                  /* place; "" = unknown */
    bool has_time;                    /* place */
    int64_t time_s;                   /* place; since 1970-01-01 UTC */
    struct pb_worker_numbers numbers; /* progress; done: elapsed_ms */
    char bbox[PB_JOB_BBOX_BYTES];     /* progress, failed: bounds of the scene, as in a job; "" =
                                         unknown */
    struct pb_job_error error;        /* failed */
    char directory[PB_WORKER_PATH_BYTES];
    int64_t tiles;        /* turn */
    int64_t memory_bytes; /* turn; done */
    int epsg;             /* done, to the worker only: CRS of the scene; 0 = unknown */
    /* JSON written from the checked values, owned by the line. products: done. report: done; failed
     * with input.scenes: the "scenes" of the archive, and its "manifest" (worker.h). */
    char *products, *report;
    struct pb_job_alert *alerts; /* alerts: n_alerts of them, owned by the line */
    size_t n_alerts;
};

/* State of a worker: its job, and the last values that it reported. All-zero: no job. */
struct pb_worker_lines {
    char job[PB_JOB_ID_BYTES]; /* "" = no job */
    char scene[PB_JOB_NAME_BYTES], pipeline[PB_JOB_NAME_BYTES];
    char products[PB_WORKER_PATH_BYTES];
    struct pb_output_pattern place;       /* pattern of the products' directory below `products` */
    char directory[PB_WORKER_PATH_BYTES]; /* directory that it writes to; "" = unknown */
    struct pb_worker_numbers said;
    int64_t alerts; /* count of alerts of the job */
    /* true if "turn" is allowed: the worker has neither requested its turn nor begun to publish */
    bool turn;
    /* true if "permit" is allowed, once, with that epoch; the caller sets it after begin */
    bool permit;
    int64_t epoch;
    /* true after a breach of the protocol: the caller ignores its lines */
    bool refused;
    int64_t credit, credit_ms; /* thousandths of a credit; 0 ms = a new worker */
};

/* Call for a new worker: sets all its credit and no job. */
void pb_worker_lines_reset(struct pb_worker_lines *lines);
/* Call after a job was sent to the worker (borrowed for the call); its products are below
 * `products`, at output.path of its pipeline (NULL = the default). turn: the worker
 * requests its turn after the plan is made, and waits for it. */
void pb_worker_lines_begin(struct pb_worker_lines *lines, const struct pb_job *job,
                           const char *products, const char *path, bool turn);
/* Call when the worker has no job any more: lines about a job are then ignored. */
void pb_worker_lines_end(struct pb_worker_lines *lines);
/* Counts a line of that many bytes; returns false if the rate limit is exceeded. */
bool pb_worker_lines_admit(struct pb_worker_lines *lines, size_t bytes, int64_t mono_ms);
/* Parses one line without its newline. Returns 0 and *out_line (pb_worker_line_fini); 1: progress
 * without a running job, to be ignored; -EPROTO: it breaks the protocol, with the reason in why;
 * -ENOMEM. After "done" or "failed" the caller ends the job. */
int pb_worker_lines_take(struct pb_worker_lines *lines, const char *text, size_t bytes,
                         char why[PB_WORKER_WHY_BYTES], struct pb_worker_line *out_line);
/* Returns true if a worker whose job failed with that error takes no other job: its CUDA context
 * may be lost, therefore its owner replaces it. The next job that was sent to it is void. */
bool pb_worker_is_spent(const char *code);
void pb_worker_line_fini(struct pb_worker_line *line); /* all-zero is allowed */

/* --- worker_result.c: the parts of "done" --- */
struct pb_json_value;
/* Returns true if path is the directory that the worker writes to, or, if that is unknown, one
 * that output.path allows; the scene may have a version (~2). */
bool pb_worker_is_place(const struct pb_worker_lines *lines, const char *path);
/* Both return malloc'd JSON, or NULL with the reason in why (empty: out of memory). */
char *pb_worker_products(const struct pb_json_value *products, const char *directory,
                         char why[PB_WORKER_WHY_BYTES]);
char *pb_worker_report(const struct pb_json_value *report, char why[PB_WORKER_WHY_BYTES]);
#endif
