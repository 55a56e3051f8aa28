/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_METHODS_H
#define PB_STATUS_METHODS_H
/* Methods of the status socket. Queries are answered without a wait of the thread: jobs from a
 * reader of the job store (status_reader.h) and an overlay of the jobs whose state is newer than
 * the store's, other queries from the texts of facts.h. While the store does not answer, its last
 * picture is shown with its age. Changes are checked (user, owner of the job) and passed to the
 * loop. Thread: status, except create and destroy. */
#include "service/status/checker.h"
#include "service/status/facts.h"
#include "service/jobs/job_store.h"
#include "service/status/status.h"
#include "service/status/tasks.h"

struct pb_status_methods;

/* Starts its own reader of the store. All arguments are borrowed. */
int pb_status_methods_create(const struct pb_job_store *store, struct pb_facts *facts,
                             struct pb_tasks *tasks, struct pb_checker *checker,
                             int64_t start_wall_ms, struct pb_err *err,
                             struct pb_status_methods **out_methods);
/* Waits for the present reading of the store. NULL is allowed. Thread: any, after the status
 * thread. */
void pb_status_methods_destroy(struct pb_status_methods *methods);
/* Sets all options except path; valid until destroy. */
void pb_status_methods_options(struct pb_status_methods *methods,
                               struct pb_status_options *options);
/* Sets the receiver of the outcomes of checks; call it before the status thread is started. */
void pb_status_methods_set_status(struct pb_status_methods *methods, struct pb_status *status);
#endif
