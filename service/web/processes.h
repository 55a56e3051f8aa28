/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_PROCESSES_H
#define PB_WEB_PROCESSES_H
/* Documents of OGC API Processes 1.0 for reading: pipelines as processes, jobs with their states,
 * and results as links to product files. Processes are executed by the inbox and the socket only.
 * Thread: any. */
#include <stdbool.h>

struct pb_web_document;
struct pb_web_query;
struct pb_web_upstream;

/* Answers a request; the path of the query is below the root: "jobs/ID/results". knows_people:
 * this program knows people, who dismiss jobs if the service allows that. */
void pb_web_processes(struct pb_web_upstream *upstream, const struct pb_web_query *query,
                      bool knows_people, struct pb_web_document *out);
/* Makes the exception for a request with a method that its address does not have. */
void pb_web_processes_refuse(const char *path, struct pb_web_document *out);
#endif
