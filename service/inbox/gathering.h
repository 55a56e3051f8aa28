/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GATHERING_H
#define PB_GATHERING_H
/* Scenes of a scan: assembles the files of the inbox (pipeline/scene/assemble.h), offers each scene
 * to the intake as one input, and reports the scenes that wait. Thread: pool, one scan at a
 * time, except pb_gathering_asked. */
#include "service/inbox/claim.h"

#include <stddef.h>
#include <stdint.h>

#define PB_GATHERING_TOLD_MAX 100 /* sets in the status */

/* Status of an incomplete set. */
struct pb_gathering_set {
    char scene[256], pipeline[256], missing[512]; /* pipeline "" = unknown */
    size_t files;
    int64_t expires_ms; /* wall clock; 0 = never */
};

struct pb_gathering_told {
    size_t n, n_all; /* sets in `set`; all incomplete sets */
    struct pb_gathering_set set[PB_GATHERING_TOLD_MAX];
};

struct pb_gathering;
struct pb_asked;

struct pb_gathering *pb_gathering_create(void); /* NULL = out of memory */
void pb_gathering_destroy(struct pb_gathering *gathering);
/* Call after pb_settle_end: groups the files of settle and excludes those of sets from
 * pb_settle_next. Both clocks as of the start of the scan. */
void pb_gathering_sort(struct pb_gathering *gathering, const struct pb_inbox *inbox,
                       struct pb_intake *intake, struct pb_settle *settle, int64_t mono_ms,
                       int64_t wall_ms);
/* Returns the next complete input, each once a scan: first the files, then the sets; false at the
 * end. Its pointers are borrowed until the next scan. */
bool pb_gathering_next(struct pb_gathering *gathering, struct pb_settle *settle,
                       struct pb_claimed *out);
/* Call after the claim of the file or set. If it was not taken (rc), the reason is remembered as a
 * note of settle, and its files must settle again. */
void pb_gathering_claimed(struct pb_settle *settle, const struct pb_claimed *file);
/* Number of unsettled or waiting files; sidecars without a scene are not counted. */
size_t pb_gathering_waiting(const struct pb_gathering *gathering, const struct pb_settle *settle);
/* Milliseconds until the first incomplete set expires; -1: no set expires. */
int64_t pb_gathering_due_ms(const struct pb_gathering *gathering, int64_t wall_ms);
/* Writes the report of the last sort, with the notes of settle. */
void pb_gathering_show(const struct pb_gathering *gathering, const struct pb_settle *settle,
                       struct pb_gathering_told *out);
/* Metadata queries; owned by gathering, with a lock of their own. Thread: any. */
struct pb_asked *pb_gathering_asked(const struct pb_gathering *gathering);

/* Metadata queries of the files of one inbox (input.by with {meta.*}), and their cached answers. In
 * memory only: after a restart the files are queried again. An answer is valid for a file and its
 * metadata as a scan saw them (digest), and for the configuration of that number; entries that a
 * scan does not use are deleted at its end. Thread: pool (scans, one at a time) and loop. */
/* Copy of a query. */
struct pb_asked_question {
    uint64_t ticket;
    char *name, *pipeline; /* path below the inbox; malloc'd, owned by the caller */
};

struct pb_asked *pb_asked_create(void);        /* NULL = out of memory */
void pb_asked_destroy(struct pb_asked *asked); /* NULL is allowed */

/* --- pool: one scan --- */
void pb_asked_begin(struct pb_asked *asked, unsigned long config_number);
/* Finds the answer, borrowed until the end of the next scan; NULL if there is no answer yet. */
const struct pb_described *pb_asked_find(struct pb_asked *asked, const char *name, uint64_t digest);
/* Queues a query unless one is pending. -ENOMEM: the next scan retries. */
int pb_asked_want(struct pb_asked *asked, const char *name, uint64_t digest, const char *pipeline);
void pb_asked_end(struct pb_asked *asked);

/* --- loop --- */
/* Returns the next query that was not sent yet; false if the queue is empty, or out of memory for
 * now. */
bool pb_asked_next(struct pb_asked *asked, struct pb_asked_question *out);
/* Call if the query could not be sent: another scan queues it again. */
void pb_asked_drop(struct pb_asked *asked, uint64_t ticket);
/* Stores an answer. Returns false if it is no longer needed. */
bool pb_asked_answer(struct pb_asked *asked, uint64_t ticket, const struct pb_described *answer);
#endif
