/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SERIES_H
#define PB_SERIES_H
/* Series of tables of many scenes: one CSV file in the directory of products, whose first column
 * is the scene. New rows of a scene replace its older ones; therefore a retried job, or a scene
 * that is delivered again, adds no duplicates. Rows of other scenes are preserved byte by byte,
 * whatever wrote them. Thread: any. */
#include "config/base/err.h"

struct pb_publish_lock;

/* Writes the series <products>/<name> with the rows of the CSV file `table` of the open
 * directory, a line of names first, all of that scene, as a file of the lock (publish_lock.h). A
 * table without rows removes those of the scene; it does not create a series. mode: permissions;
 * 0 = those of the file, or 0644 without the umask's bits for a new one. output.series: the
 * existing file is not a series with these columns, or larger than the limit; it is unchanged.
 * Other errors: of files, and memory. -ESTALE, without an error: the lock was broken. */
int pb_series_stage(struct pb_publish_lock *lock, int products_fd, const char *shown,
                    const char *name, const char *scene, int directory, const char *table,
                    unsigned mode, struct pb_err *err);
#endif
