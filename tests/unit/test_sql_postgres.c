/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Transactions, statements and runs of the engine of PostgreSQL. */
#include "database_fixture.h"

START_TEST(test_a_transaction_is_lost_with_its_connection)
{
    struct pb_sql *lost = NULL;
    const struct pb_postgres_options options = {.conninfo = conninfo, .program = "lost"};
    ck_assert_int_eq(pb_postgres_open(&options, NULL, &lost), 0);
    ck_assert(pb_sql_begin(lost));
    ck_assert(pb_postgres_execute(lost, "INSERT INTO set_windows VALUES ('p', 1)"));
    end_connections_of("lost");
    struct pb_sql_statement *s = pb_sql_prepare(lost, "SELECT reopen_ms FROM set_windows", true);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pb_sql_step(s), PB_SQL_FAILED);
        ck_assert_msg(strstr(pb_sql_message(lost), postgres_directory) != NULL, "%s",
                      pb_sql_message(lost));
        pb_sql_reset(s);
    }
    ck_assert(!pb_sql_commit(lost));
    pb_sql_rollback(lost);
    ck_assert(pb_sql_begin(lost));
    ck_assert_int_eq(pb_sql_step(s), PB_SQL_DONE);
    ck_assert(pb_sql_commit(lost));
    pb_sql_finalize(s);
    pb_sql_close(lost);
}
END_TEST

START_TEST(test_a_failed_statement_fails_its_transaction)
{
    ck_assert(pb_sql_begin(db));
    ck_assert(pb_postgres_execute(db, "INSERT INTO set_windows VALUES ('p', 1)"));
    ck_assert(!pb_postgres_execute(db, "INSERT INTO set_windows VALUES ('p', 2)"));
    ck_assert(pb_sql_may_repeat(db));
    ck_assert(!pb_sql_commit(db));
    pb_sql_rollback(db);
    ck_assert_int_eq(query("SELECT count(*) FROM set_windows"), 0);
    ck_assert(!pb_postgres_execute(db, "SELECT nothing"));
    ck_assert(!pb_sql_may_repeat(db));
    ck_assert_ptr_nonnull(strstr(pb_sql_message(db), "nothing"));
}
END_TEST

START_TEST(test_a_kept_statement_takes_parameters_of_any_type)
{
    struct pb_sql_statement *s = pb_sql_prepare(db, "SELECT ?1, ?2 || 'x?'", true);
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            pb_sql_set_int(s, 1, INT64_MIN);
        else if (i == 1)
            pb_sql_set_text(s, 1, "7");
        pb_sql_set_text(s, 2, "a");
        ck_assert_msg(pb_sql_step(s) == PB_SQL_ROW, "%s", pb_sql_message(db));
        if (i == 0)
            ck_assert_int_eq(pb_sql_int(s, 0), INT64_MIN);
        else if (i == 1)
            ck_assert_str_eq(pb_sql_text(s, 0), "7");
        else
            ck_assert(pb_sql_is_null(s, 0));
        ck_assert_str_eq(pb_sql_text(s, 1), "ax?");
        ck_assert_int_eq(pb_sql_step(s), PB_SQL_DONE);
        pb_sql_reset(s);
    }
    pb_sql_finalize(s);
}
END_TEST

/* Runs of a statement whose parameters are numbers, texts and NULL. */
static bool set_any(void *user, size_t i, struct pb_sql_statement *s)
{
    (void)user;
    if (i % 3 == 0)
        pb_sql_set_int(s, 1, (int64_t)i);
    else if (i % 3 == 1)
        pb_sql_set_text(s, 1, "a\xff");
    pb_sql_set_text(s, 2, "b");
    return true;
}

static void read_any(void *user, size_t i, struct pb_sql_statement *s, bool has_row)
{
    size_t *n_read = user;
    ck_assert(has_row);
    ck_assert_uint_eq(i, (*n_read)++);
    if (i % 3 == 0)
        ck_assert_int_eq(pb_sql_int(s, 0), (int64_t)i);
    else if (i % 3 == 1)
        ck_assert_str_eq(pb_sql_text(s, 0), "a\xff");
    else
        ck_assert(pb_sql_is_null(s, 0));
    ck_assert_str_eq(pb_sql_text(s, 1), "bx");
}

START_TEST(test_runs_take_parameters_of_any_type)
{
    size_t n_read = 0;
    const struct pb_sql_runs runs = {.n = 20, .set = set_any, .read = read_any, .user = &n_read};
    struct pb_sql_statement *s = pb_sql_prepare(db, "SELECT ?1, ?2 || 'x'", true);
    ck_assert(pb_sql_begin(db));
    ck_assert_msg(pb_sql_run_all(s, &runs), "%s", pb_sql_message(db));
    ck_assert_uint_eq(n_read, runs.n);
    ck_assert(pb_sql_commit(db));
    pb_sql_finalize(s);
}
END_TEST

/* Sets a text that is large enough to fill both directions of the connection. */
static bool set_large(void *user, size_t i, struct pb_sql_statement *s)
{
    (void)i;
    pb_sql_set_text(s, 1, user);
    return true;
}

static void read_large(void *user, size_t i, struct pb_sql_statement *s, bool has_row)
{
    (void)i;
    ck_assert(has_row);
    ck_assert_str_eq(pb_sql_text(s, 0), user);
}

START_TEST(test_runs_may_be_larger_than_buffers)
{
    static char text[50000];
    const struct pb_sql_runs runs = {.n = 200, .set = set_large, .read = read_large, .user = text};
    struct pb_sql_statement *s = pb_sql_prepare(db, "SELECT ?1", true);
    (void)memset(text, 'x', sizeof text - 1);
    ck_assert(pb_sql_begin(db));
    ck_assert_msg(pb_sql_run_all(s, &runs), "%s", pb_sql_message(db));
    ck_assert(pb_sql_commit(db));
    pb_sql_finalize(s);
}
END_TEST

/* Sets the texts of a list; NULL cannot be set. */
static bool set_listed(void *user, size_t i, struct pb_sql_statement *s)
{
    const char *const *texts = user;
    pb_sql_set_text(s, 1, texts[i]);
    pb_sql_set_int(s, 2, (int64_t)i);
    return texts[i] != NULL;
}

START_TEST(test_runs_that_fail_store_nothing)
{
    static const char *lists[2][4] = {{"p", "q", "p", "r"}, {"p", "q", NULL, "r"}};
    struct pb_sql_statement *s =
        pb_sql_prepare(db, "INSERT INTO set_windows VALUES (?1, ?2)", true);
    for (int i = 0; i < 2; i++) {
        const struct pb_sql_runs runs = {.n = 4, .set = set_listed, .user = (void *)lists[i]};
        ck_assert(pb_sql_begin(db));
        ck_assert(!pb_sql_run_all(s, &runs));
        ck_assert(pb_sql_may_repeat(db) == (i == 0));
        pb_sql_rollback(db);
        ck_assert_int_eq(query("SELECT count(*) FROM set_windows"), 0);
    }
    const struct pb_sql_runs runs = {.n = 2, .set = set_listed, .user = (void *)lists[0]};
    ck_assert(pb_sql_begin(db));
    ck_assert_msg(pb_sql_run_all(s, &runs), "%s", pb_sql_message(db));
    ck_assert(pb_sql_commit(db));
    ck_assert_int_eq(query("SELECT count(*) FROM set_windows"), 2);
    pb_sql_finalize(s);
}
END_TEST

START_TEST(test_runs_are_lost_with_their_connection)
{
    static const char *list[] = {"p", "q"};
    const struct pb_sql_runs runs = {.n = 2, .set = set_listed, .user = (void *)list};
    struct pb_sql *mine = db;
    struct pb_err err = {0};
    const struct pb_postgres_options options = {.conninfo = conninfo, .program = "runs"};
    struct pb_sql_statement *s = NULL;
    ck_assert_msg(pb_postgres_open(&options, &err, &mine) == 0, "%s", err.msg);
    s = pb_sql_prepare(mine, "INSERT INTO set_windows VALUES (?1, ?2)", true);
    ck_assert(pb_sql_begin(mine));
    end_connections_of("runs");
    for (int i = 0; i < 2; i++) {
        ck_assert(!pb_sql_run_all(s, &runs));
        ck_assert_ptr_nonnull(strstr(pb_sql_message(mine), "was lost"));
    }
    pb_sql_rollback(mine);
    ck_assert(pb_sql_begin(mine));
    ck_assert_msg(pb_sql_run_all(s, &runs), "%s", pb_sql_message(mine));
    ck_assert(pb_sql_commit(mine));
    ck_assert_int_eq(query("SELECT count(*) FROM set_windows"), 2);
    pb_sql_finalize(s);
    pb_sql_close(mine);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, test_a_transaction_is_lost_with_its_connection);
    tcase_add_test(tests, test_a_failed_statement_fails_its_transaction);
    tcase_add_test(tests, test_a_kept_statement_takes_parameters_of_any_type);
    tcase_add_test(tests, test_runs_take_parameters_of_any_type);
    tcase_add_test(tests, test_runs_may_be_larger_than_buffers);
    tcase_add_test(tests, test_runs_that_fail_store_nothing);
    tcase_add_test(tests, test_runs_are_lost_with_their_connection);
}

int main(void)
{
    return run_over_database("sql_postgres", connect_database, disconnect_database, add_tests);
}
