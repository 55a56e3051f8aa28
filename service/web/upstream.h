/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_UPSTREAM_H
#define PB_WEB_UPSTREAM_H
/* Answers of pushbroomd, as the page gets them: queries of the status socket through one connection
 * that all browsers share, one query at a time. Each waits for earlier ones and for its answer, but
 * not longer than some seconds; then it fails with service.unreachable. Thread: any. */
#include "config/base/err.h"
#include "config/base/json_reader.h"

#include <limits.h>

struct pb_client;
struct pb_json;
struct pb_web_upstream;

/* socket: path (borrowed), NULL = the default. NULL = out of memory. No service need run yet. */
struct pb_web_upstream *pb_web_upstream_create(const char *socket);
/* Ends all queries, now and later, as if the service had gone. */
void pb_web_upstream_end(struct pb_web_upstream *upstream);
void pb_web_upstream_destroy(struct pb_web_upstream *upstream); /* NULL is allowed */

/* Texts, malloc'd; NULL with *err. */
char *pb_web_upstream_info(struct pb_web_upstream *upstream, struct pb_err *err);
/* The same by the caller's own connection, without a wait for other queries. */
char *pb_web_upstream_info_by(struct pb_web_upstream *upstream, struct pb_client *client,
                              struct pb_err *err);
/* params: JSON of job.list. */
char *pb_web_upstream_jobs(struct pb_web_upstream *upstream, const char *params,
                           struct pb_err *err);
char *pb_web_upstream_job(struct pb_web_upstream *upstream, const char *id, struct pb_err *err);
/* The events of a job, as job.events has them. */
char *pb_web_upstream_steps(struct pb_web_upstream *upstream, const char *id, struct pb_err *err);
char *pb_web_upstream_metrics(struct pb_web_upstream *upstream, struct pb_err *err);
char *pb_web_upstream_metrics_by(struct pb_client *client, struct pb_err *err);

/* The directory of products as the service reported it last. Returns 0 or negative errno. */
int pb_web_upstream_products(struct pb_web_upstream *upstream, char out[PATH_MAX],
                             struct pb_err *err);

/* A job as a row of lists: JSON, malloc'd, without report and products, and with the address of its
 * preview. NULL = out of memory. */
char *pb_web_upstream_row(struct pb_web_upstream *upstream, const struct pb_json_value *job);
#endif
