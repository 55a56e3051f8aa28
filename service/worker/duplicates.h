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
struct pb_scene_manifest;

/* --- in the service; these read files and the store, on libuv's pool --- */

/* Reads the manifest of the products in a directory if they belong to that job and are complete.
 * Returns 0, and the caller must fini it; negative errno. */
struct pb_manifest;
int pb_duplicates_products(const char *directory, const char *job, struct pb_manifest *out);
/* Completes the manifest of a successful job (pb_scene_manifest_complete) by the files that the
 * record of its products has, and, with contents, stores the content of one file. A failure is
 * logged and only costs a computation later. */
void pb_duplicates_remember(struct pb_job_store *store, struct pb_job *job, bool contents);
/* Lists the checksums that the job's input must be compared with, in the form of pb_contents_like;
 * NULL = no comparison. */
char *pb_duplicates_known(struct pb_job_store *store, const struct pb_job *job, int64_t since_ms);

enum pb_duplicates_verdict {
    PB_DUPLICATES_SAME, /* the message is in the job's error */
    PB_DUPLICATES_GONE, /* the products are absent and forgotten; or the store cannot be read */
    PB_DUPLICATES_FALSE /* no such content was processed: the worker's report is false */
};
/* Checks a worker's report of an equal content: job->error.message is its checksum. */
enum pb_duplicates_verdict pb_duplicates_judge(struct pb_job_store *store, struct pb_job *job);

/* --- in the worker --- */

/* Input of a job. The comparison sets the checksums of the files. */
struct pb_duplicates_input {
    struct pb_scene_manifest *files; /* files of sum (pipeline/scene/scene_inputs.h) */
    struct pb_input_sum *sum;
};
/* Compares the input, if it is one file, with `known` of the command; NULL = no comparison. Returns
 * 0, or *err: input.duplicate with the checksum as its message, or the error of reading. */
int pb_duplicates_compare(const struct pb_duplicates_input *input, const char *known,
                          struct pb_err *err);
/* Compares the input with the files of products. Returns the same. */
int pb_duplicates_compare_files(const struct pb_duplicates_input *input,
                                const struct pb_scene_manifest *products, struct pb_err *err);
#endif
