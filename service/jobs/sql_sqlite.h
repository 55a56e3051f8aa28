/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SQL_SQLITE_H
#define PB_SQL_SQLITE_H
/* The engine of SQLite for sql.h. Private to the files of the job store that know SQLite: these,
 * store_sqlite.c and schema_sqlite.c. */
#include "service/jobs/sql.h"

#include <sqlite3.h>

/* Makes a connection of an open database, which it owns from then on: NULL if out of memory, and
 * the database is closed. */
struct pb_sql *pb_sql_sqlite(sqlite3 *db);
#endif
