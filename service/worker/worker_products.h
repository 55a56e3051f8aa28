/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_PRODUCTS_H
#define PB_WORKER_PRODUCTS_H
/* Compares the products that the child announced with the directory and lists them as in the
 * manifest, for the service. products: the list of a "done" line that worker_lines.h has accepted.
 * Private to worker_publish.c. One thread. */
#include "service/worker/worker_publish.h"

/* Each product is a plain file of the announced size with one link, which becomes the service's,
 * and there is nothing else in the directory; else job.crashed. */
int pb_worker_products_check(const char *path, const struct pb_json_value *products,
                             struct pb_err *err);
/* One for each product; malloc'd, the caller's. NULL: no memory. */
struct pb_manifest_file *pb_worker_products_describe(const struct pb_json_value *products);
/* The "done" line for the service, of products published in that directory, with the child's report
 * (JSON); malloc'd, the caller's. NULL: no memory. */
char *pb_worker_products_line(const struct pb_worker_job *job, const struct pb_json_value *products,
                              const char *report, const char *directory);
#endif
