/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STORE_SQLITE_H
#define PB_STORE_SQLITE_H
/* Tables of the job store in SQLite (schema_sqlite.c), as the steps from each version to the next.
 * Private to store_sqlite.c, which opens the file. */
#include "service/jobs/job_store_sql.h"

#include <sqlite3.h>

#define PB_JOB_SCHEMA_VERSION 27
/* Statements that make version i + 1 from version i; version 0 is an empty file. They use the
 * functions that prepare registers. */
extern const char *const pb_job_schema[PB_JOB_SCHEMA_VERSION];
/* Registers these functions; false on failure. */
bool pb_job_schema_prepare(sqlite3 *db);
#endif
