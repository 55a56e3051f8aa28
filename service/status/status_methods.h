/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_METHODS_H
#define PB_STATUS_METHODS_H
/* What requests on the status socket mean. Questions are answered here and now: jobs from a reader
 * of the job store and a board of those whose state is newer than the store's, the rest from the
 * texts that the service leaves. Changes are checked (who asks, whose job) and handed to the loop.
 * Thread: status, but for create and destroy. */
#include "service/status/checker.h"
#include "service/status/facts.h"
#include "service/jobs/job_store.h"
#include "service/status/status.h"
#include "service/status/tasks.h"

struct pb_status_methods;

/* Makes its own reader of the store. All are borrowed. */
int pb_status_methods_create(const struct pb_job_store *store, struct pb_facts *facts,
                             struct pb_tasks *tasks, struct pb_checker *checker,
                             int64_t start_wall_ms, struct pb_err *err,
                             struct pb_status_methods **out_methods);
void pb_status_methods_destroy(struct pb_status_methods *methods); /* NULL is fine */
/* Fills in everything but path; valid until destroy. */
void pb_status_methods_options(struct pb_status_methods *methods,
                               struct pb_status_options *options);
/* Where outcomes of checks go; before the status thread is started. */
void pb_status_methods_set_status(struct pb_status_methods *methods, struct pb_status *status);
#endif
