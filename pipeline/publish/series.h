/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SERIES_H
#define PB_SERIES_H
/* A series of tables of many scenes: one CSV file in the directory of products, whose first column
 * is the scene. Rows of a scene are put in the place of those that it has, so a job that is tried
 * again, or a scene that comes again, adds none twice.
 *
 * Writers hold a lock (flock) on the directory, which ends with their process, and replace the file
 * by a rename: a reader sees the old or the new one, whoever is killed when. Thread: any; any
 * number of processes. */
#include "config/base/err.h"

/* Puts the rows of the CSV file at `table`, a line of names first, all of that scene, into
 * <products>/<name>, which is made when there is none and there are rows. A table without rows
 * takes those of the scene away. output.exists: what is there is no series with these columns, or
 * larger than a series may be; it stays as it is. Other errors: of files, and memory. */
int pb_series_put(const char *products, const char *name, const char *scene, const char *table,
                  struct pb_err *err);
#endif
