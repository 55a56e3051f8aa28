/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_PRODUCTS_H
#define PB_WORKER_PRODUCTS_H
/* Compares the products that the child announced with the directory and lists them as in the
 * manifest, for the service. products: the list of a "done" line that worker_lines.h has accepted.
 * Private to worker_publish.c. One thread. */
#include "service/worker/worker_publish.h"

/* Checks that each product is a plain file of the announced size with one link, makes the service
 * its owner, and checks that the directory has no other entry; otherwise job.crashed. */
int pb_worker_products_check(const char *path, const struct pb_json_value *products,
                             struct pb_err *err);
/* Makes one entry for each product; malloc'd, owned by the caller. NULL: out of memory. */
struct pb_manifest_file *pb_worker_products_describe(const struct pb_json_value *products);
/* Makes the "done" line for the service, for products published in that directory, with the
 * child's report (JSON); malloc'd, owned by the caller. NULL: out of memory. */
char *pb_worker_products_line(const struct pb_worker_job *job, const struct pb_json_value *products,
                              const char *report, const char *directory);
#endif
