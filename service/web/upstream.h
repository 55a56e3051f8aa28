/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_UPSTREAM_H
#define PB_WEB_UPSTREAM_H
/* Answers of pushbroomd, as the page gets them: queries of the status socket through one connection
 * that all browsers share, one query at a time. Each waits for earlier ones and for its answer, but
 * not longer than some seconds; then it fails with service.unreachable. Thread: any. */
#include "config/base/err.h"
#include "config/base/json_reader.h"
#include "service/web/request.h"

#include <limits.h>
#include <stdbool.h>

#define PB_WEB_TILES_BYTES 272

struct pb_client;
struct pb_json;
struct pb_web_upstream;

/* socket: path (borrowed), NULL = the default. NULL = out of memory. No service need run yet. */
struct pb_web_upstream *pb_web_upstream_create(const char *socket);
/* Ends all queries, now and later, as if the service had gone. */
void pb_web_upstream_end(struct pb_web_upstream *upstream);
void pb_web_upstream_destroy(struct pb_web_upstream *upstream); /* NULL is allowed */

/* Texts, malloc'd; NULL with *err. With a client of the caller (NULL = the shared connection) they
 * wait for no other query. */
char *pb_web_upstream_info(struct pb_web_upstream *upstream, struct pb_client *client,
                           struct pb_err *err);
char *pb_web_upstream_metrics(struct pb_web_upstream *upstream, struct pb_client *client,
                              struct pb_err *err);

/* The same by the shared connection. */
/* params: JSON of job.list. */
char *pb_web_upstream_jobs(struct pb_web_upstream *upstream, const char *params,
                           struct pb_err *err);
char *pb_web_upstream_job(struct pb_web_upstream *upstream, const char *id, struct pb_err *err);
/* The events of a job, as job.events has them. */
char *pb_web_upstream_steps(struct pb_web_upstream *upstream, const char *id, struct pb_err *err);

/* Changes a job by a connection of its own, once: the job that resulted, malloc'd; NULL with *err.
 * priority is that of PB_WEB_AGAIN only. */
char *pb_web_upstream_change(struct pb_web_upstream *upstream, enum pb_web_action action,
                             const char *id, int64_t priority, struct pb_err *err);

/* Submits a file or folder by a connection of its own, once: the new job, as before. */
char *pb_web_upstream_submit(struct pb_web_upstream *upstream, const char *pipeline,
                             const char *path, struct pb_err *err);

/* Settings of this program as the service reported them last (section web of its configuration). */
struct pb_web_settings {
    bool actions;
    char tiles[PB_WEB_TILES_BYTES]; /* scheme and host of the base map; "" = none */
};
void pb_web_upstream_settings(struct pb_web_upstream *upstream, struct pb_web_settings *out);
/* The directory of products as the service reported it last. Returns 0 or negative errno. */
int pb_web_upstream_products(struct pb_web_upstream *upstream, char out[PATH_MAX],
                             struct pb_err *err);

/* The same without a query. Returns false if it is not known yet. */
bool pb_web_upstream_known_products(struct pb_web_upstream *upstream, char out[PATH_MAX]);

/* A job as a row of lists: JSON, malloc'd, without report and products, and with the address of its
 * preview. NULL = out of memory. */
char *pb_web_upstream_row(struct pb_web_upstream *upstream, const struct pb_json_value *job);
#endif
