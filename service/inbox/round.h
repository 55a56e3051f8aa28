/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ROUND_H
#define PB_ROUND_H
/* The work of an inbox on libuv's pool. A round is a scan, the decision which files have settled,
 * the assembly of scenes, and claims, batch after batch; after each batch the loop takes over what
 * was claimed. It owns everything that these stages share; the loop passes a request and receives a
 * result. A part of a round ends after a slice of time or with a batch. Thread: pool, one part at a
 * time, unless the comment of a function names another. */
#include "service/inbox/gathering.h"
#include "service/inbox/left.h"
#include "service/inbox/scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_round_stage {
    PB_ROUND_SCAN,
    PB_ROUND_SETTLE,
    PB_ROUND_ASSEMBLE,
    PB_ROUND_CLAIM,
    PB_ROUND_HAND_OVER, /* the loop's turn; also before the first round */
    PB_ROUND_STAGES
};

struct pb_round_request {
    bool begins;               /* true: a new round; false: the next part of this one */
    struct pb_changes changes; /* for a new round; pb_round_run takes the content */
    int64_t settle_ms;
    bool may_claim; /* false during the back-off after a failed claim, and while the service drains
                     */
};

struct pb_round_result {
    /* PB_ROUND_SCAN: the slice is over, and nothing below is set; otherwise PB_ROUND_HAND_OVER */
    enum pb_round_stage stage;
    /* --- of the scan --- */
    bool has_scanned; /* true in the first result of a round */
    bool has_listed;  /* true if that scan was a listing */
    bool lacks_files; /* true if an update could not read a folder; the next scan is a listing */
    int read_rc;      /* 0, or the error at which the inbox could not be read */
    int64_t took_ms;  /* duration of the scan and the assembly */
    int64_t cpu_ms;   /* CPU time of these */
    const struct pb_scan_folders *folders; /* borrowed until the next part */
    struct pb_pairing pairing;
    /* --- of the batch --- */
    bool has_claimed;         /* false if no file may be taken after this scan */
    bool has_more;            /* complete files remain that were not offered in this round */
    struct pb_claimed *batch; /* borrowed until the next part; the jobs are for the receiver */
    size_t n_batch;
    enum pb_code fault; /* reason that no file can be taken now; PB_OK if there is no fault */
    char fault_text[900];
    /* --- state of the inbox after this part --- */
    size_t waiting, ignored;
    struct pb_stays stays;
    struct pb_gathering_told gathering;
    int64_t settled_in_ms; /* until the first file can be complete; -1: no file settles */
    int64_t expires_in_ms; /* until the first incomplete scene expires; -1: none expires */
};

struct pb_round;

/* path: of the inbox, copied. intake: borrowed until destroy. NULL = out of memory. Thread: any. */
struct pb_round *pb_round_create(struct pb_intake *intake, size_t inbox_number, const char *path);
/* A scan may be in progress. NULL is allowed. Thread: any, after the last part. */
void pb_round_destroy(struct pb_round *round);
/* Runs a part; out is overwritten. */
void pb_round_run(struct pb_round *round, struct pb_round_request *request,
                  struct pb_round_result *out);
/* Metadata queries, with a lock of their own. Thread: any. */
struct pb_asked *pb_round_asked(const struct pb_round *round);
#endif
