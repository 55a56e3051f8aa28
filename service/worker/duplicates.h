/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DUPLICATES_H
#define PB_DUPLICATES_H
/* service.duplicates: an input whose content was processed before in its pipeline is not computed
 * again. The service remembers the checksums of processed inputs; when an input of the same size
 * arrives, its worker gets those of that size and compares before it computes; it reports an equal
 * one, and the service verifies that the products still exist. Only inputs of one file, with
 * nothing else read, are compared: for other inputs, size and checksum do not identify the
 * products. */
#include "service/jobs/contents.h"

struct pb_input_sum;

/* --- in the service; these read files and the store, on libuv's pool --- */

/* The manifest of the products in a directory, if they are that job's and complete: 0, the
 * caller's to fini; negative errno. */
struct pb_manifest;
int pb_duplicates_products(const char *directory, const char *job, struct pb_manifest *out);
/* Remembers the content of a successful job, by the manifest of its products. A failure costs a
 * computation later, and is in the log. */
void pb_duplicates_remember(struct pb_job_store *store, const struct pb_job *job);
/* The checksums that the job's input is to be compared with, as pb_contents_like; NULL = it is not
 * to be compared. */
char *pb_duplicates_known(struct pb_job_store *store, const struct pb_job *job, int64_t since_ms);

enum pb_duplicates_verdict {
    PB_DUPLICATES_SAME, /* the message is in the job's error */
    PB_DUPLICATES_GONE, /* the products are absent and forgotten; or the store cannot be read */
    PB_DUPLICATES_FALSE /* no such content was done: the worker's report is false */
};
/* After a worker reported an equal content: job->error.message is its checksum. */
enum pb_duplicates_verdict pb_duplicates_judge(struct pb_job_store *store, struct pb_job *job);

/* --- in the worker --- */

/* known: of the command; NULL = nothing is compared. 0, or *err: input.duplicate with the checksum
 * as its message, or what reading failed with. */
int pb_duplicates_compare(struct pb_input_sum *sum, const char *known, struct pb_err *err);
/* The same of an input of any number of files. */
int pb_duplicates_find(struct pb_input_sum *sum, const char *known, struct pb_err *err);
#endif
