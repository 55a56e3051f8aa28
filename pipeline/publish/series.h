/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SERIES_H
#define PB_SERIES_H
/* A series of tables of many scenes: one CSV file in the directory of products, whose first column
 * is the scene. Rows of a scene are put in the place of those that it has, so a job that is tried
 * again, or a scene that comes again, adds none twice. Rows of other scenes stay byte by byte,
 * whatever else wrote them. Thread: any. */
#include "config/base/err.h"

struct pb_publish_lock;

/* Writes the series <products>/<name> with the rows of the CSV file `table` of the open directory,
 * a line of names first, all of that scene, as a file of the lock (publish_lock.h). A table without
 * rows takes those of the scene away; it begins no series. mode: permissions; 0 = those that the
 * file has, or of a new one 0644 without the umask's bits. output.series: what is there is no
 * series with these columns, or larger than a series may be; it stays as it is. Other errors: of
 * files, and memory. -ESTALE, without an error: the lock was broken. */
int pb_series_stage(struct pb_publish_lock *lock, int products_fd, const char *shown,
                    const char *name, const char *scene, int directory, const char *table,
                    unsigned mode, struct pb_err *err);
#endif
