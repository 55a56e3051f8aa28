/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ASKED_H
#define PB_ASKED_H
/* Metadata queries of the files of one inbox (input.by with {meta.*}), and their cached answers. In
 * memory only: after a restart the files are queried again. An answer is valid for a file and its
 * metadata as a scan saw them (digest), and for the configuration of that number; entries that a
 * scan does not use are deleted at its end. Thread: pool (scans, one at a time) and loop. */
#include "pipeline/scene/entry.h"

#include <stddef.h>
#include <stdint.h>

struct pb_asked;

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
