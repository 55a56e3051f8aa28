/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_PROCESSES_H
#define PB_WEB_PROCESSES_H
/* Documents of OGC API Processes 1.0: pipelines as processes, jobs with their states, results as
 * links to product files, and requests to execute a process. Thread: any. */
#include "config/base/json_path.h"
#include "service/web/document.h"
#include "service/web/request.h"

#include <stdbool.h>

#define PB_WEB_LOCATION_BYTES (PB_WEB_BASE_BYTES + PB_WEB_ID_BYTES + 32)

struct pb_web_upstream;

/* Answers a request; the path of the query is below the root: "jobs/ID/results". may_execute:
 * people may change jobs here. */
void pb_web_processes(struct pb_web_upstream *upstream, const struct pb_web_query *query,
                      bool may_execute, struct pb_web_document *out);

/* Copies the id that the service has for a job: the text, or its part before "-document". Returns
 * true for the latter: its results are a document. */
bool pb_web_job_id(const char *text, char out[PB_WEB_ID_BYTES]);

/* A request to execute a process. */
struct pb_web_execution {
    char pipeline[PB_WEB_PATH_BYTES];
    char path[PB_JSON_PATH_BYTES]; /* absolute path of the input */
    bool is_document;              /* form of the results */
};
/* Reads the request of a query with a body, whose path is "processes/NAME/execution". Returns false
 * with the exception. */
bool pb_web_execution_read(struct pb_web_upstream *upstream, const struct pb_web_query *query,
                           struct pb_web_execution *out, struct pb_web_document *out_failure);
/* Makes the answer from the new job (taken), and its address. */
void pb_web_execution_answer(const struct pb_web_query *query,
                             const struct pb_web_execution *execution, char *job,
                             char out_location[PB_WEB_LOCATION_BYTES], struct pb_web_document *out);
#endif
