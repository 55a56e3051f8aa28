/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INPUT_STORE_H
#define PB_INPUT_STORE_H
/* Moves the input of a finished job. Inputs from the inbox are moved into the archive (or deleted)
 * after success or if the same input was processed before (pb_job_is_skipped), otherwise into
 * quarantine/ with <name>.error.json; no file is ever overwritten. Submitted files are not
 * touched; their error record is still written to quarantine/. Repeating any of this after a crash
 * is harmless. Thread: pool (runner/pending.c) or that of pb_adopt_work, one call at a time for a
 * job. */
#include "config/service_config.h"
#include "service/inbox/dirs.h"
#include "service/jobs/file_list.h"
#include "service/jobs/job.h"

/* Moves the input of a finished job and updates job->manifest.input (the caller stores the job). */
int pb_input_store_put(struct pb_job *job, const struct pb_dirs *dirs,
                       enum pb_on_success on_success, struct pb_err *err);
/* Finds the plain file or folder in work/<id>/: 1 and its path; 0 if absent; negative errno. */
int pb_input_store_claimed(const char *work, const char *id, char out_path[PB_FILES_PATH_BYTES]);
/* After the service died between a move and its commit: makes the manifest of a finished job name
 * its input and companion again, which are in the archive or in quarantine under any name. lists:
 * their contents from before the move. Returns true if a path has changed. */
bool pb_input_store_find(struct pb_job *job, const struct pb_dirs *dirs,
                         const struct pb_input_lists *lists);
/* Call before a retry: moves the input from quarantine/ or the archive back into work/<id>/ and
 * removes its error record. An input that is not at the stored path (the service died after a move
 * and before it stored the path) is searched for in work/<id>/ and, by its record, in quarantine/.
 */
int pb_input_store_restore(struct pb_job *job, const struct pb_dirs *dirs, struct pb_err *err);
/* Removes the quarantined input of a failed or dismissed job with its record; for a submitted file
 * only the record. Fails with job.state if a file in the input was not delivered with it or was
 * changed, according to the lists; an empty list allows any files. No other file is touched. */
int pb_input_store_drop(struct pb_job *job, const struct pb_dirs *dirs,
                        const struct pb_input_lists *lists, struct pb_err *err);
#endif
