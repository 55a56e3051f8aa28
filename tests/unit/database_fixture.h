/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_DATABASE_FIXTURE_H
#define PB_TEST_DATABASE_FIXTURE_H
/* A store in a database, and a connection of the test to it. */
#include "job_store_fixture.h"

#define A "20261121-082850-aaaa"
#define B "20261121-082850-bbbb"

static struct pb_sql *db;

static inline void connect_database(void)
{
    struct pb_err err = {0};
    open_store();
    const struct pb_postgres_options options = {.conninfo = conninfo, .program = "test"};
    ck_assert_msg(pb_postgres_open(&options, &err, &db) == 0, "%s", err.msg);
    /* A test may wait long in a transaction on a loaded machine. */
    ck_assert_msg(pb_postgres_execute(db, "SET idle_in_transaction_session_timeout = 0"), "%s",
                  pb_sql_message(db));
}

static inline void disconnect_database(void)
{
    pb_sql_close(db);
    close_store();
}

/* First column of the first row of a query. */
static inline int64_t query(const char *text)
{
    struct pb_sql_statement *s = pb_sql_prepare(db, text, false);
    ck_assert_msg(pb_sql_step(s) == PB_SQL_ROW, "%s", pb_sql_message(db));
    const int64_t value = pb_sql_int(s, 0);
    pb_sql_finalize(s);
    return value;
}

static inline void execute(const char *texts)
{
    ck_assert_msg(pb_postgres_execute(db, texts), "%s", pb_sql_message(db));
}

static inline void end_connections_of(const char *program)
{
    char text[160];
    (void)snprintf(text, sizeof text,
                   "SELECT count(pg_terminate_backend(pid, 30000)) FROM pg_stat_activity WHERE"
                   " application_name = '%s' AND datname = current_database()",
                   program);
    ck_assert_int_gt(query(text), 0);
}
#endif
