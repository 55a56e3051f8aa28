/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCHEMA_POSTGRES_H
#define PB_SCHEMA_POSTGRES_H
/* Tables of the job store in the schema pushbroom of a PostgreSQL database. */
#include <stdbool.h>
#include <stddef.h>

struct pb_sql;

#define PB_POSTGRES_SCHEMA_VERSION 8
/* First number of the advisory locks of the store; the second is 1: change of the tables, 2: the
 * writer, 3: numbers of events, 4: sums of job_changes. */
#define PB_POSTGRES_LOCKS "1886745448"

/* Makes or upgrades the tables; one service at a time does. False, with the message of the engine:
 * they are of a newer service, or cannot be made. */
bool pb_postgres_schema(struct pb_sql *db);
/* Reads the version of the tables, and the program that made them: 0 if they are absent, -1 and the
 * message of the engine on failure. */
int pb_postgres_schema_version(struct pb_sql *db, char *out_program, size_t bytes);
#endif
