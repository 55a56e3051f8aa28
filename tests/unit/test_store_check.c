/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Findings of `pushbroom store` in a database. The scratch server has fsync off, and waits for a
 * standby that does not exist, but not in its sessions. */
#include "service/jobs/store_check.h"

#include "store_suite.h"

#include <sys/stat.h>

#define SECRET "s3cret-word"

static struct {
    char name[40], text[640];
    enum pb_store_grade grade;
} points[32];
static size_t n_points;

static void note(void *user, const struct pb_store_point *point)
{
    (void)user;
    ck_assert_uint_lt(n_points, sizeof points / sizeof points[0]);
    (void)snprintf(points[n_points].name, sizeof points[0].name, "%s", point->name);
    (void)snprintf(points[n_points].text, sizeof points[0].text, "%s", point->text);
    points[n_points++].grade = point->grade;
    ck_assert_ptr_null(strstr(point->text, SECRET));
    ck_assert_ptr_null(strchr(point->text, '\n'));
}

static int check(const char *to)
{
    struct pb_err err = {0};
    n_points = 0;
    const int n = pb_store_check(to, note, NULL, &err);
    ck_assert_msg(n >= 0, "%s", err.msg);
    int to_mend = 0;
    for (size_t i = 0; i < n_points; i++)
        to_mend += points[i].grade == PB_STORE_MEND;
    ck_assert_int_eq(n, to_mend);
    return n;
}

/* Expects the point with the grade and the words. */
static void expect(const char *name, enum pb_store_grade grade, const char *words)
{
    for (size_t i = 0; i < n_points; i++)
        if (strcmp(points[i].name, name) == 0) {
            ck_assert_msg(points[i].grade == grade && strstr(points[i].text, words) != NULL,
                          "%s (%d): %s", name, (int)points[i].grade, points[i].text);
            return;
        }
    ck_abort_msg("there is no point %s", name);
}

static void change(const char *texts)
{
    char name[32];
    (void)snprintf(name, sizeof name, "test_%d", (int)getpid());
    postgres_run(name, texts);
}

static const char *as(const char *role)
{
    static char text[POSTGRES_CONNINFO_BYTES + 64];
    (void)snprintf(text, sizeof text, "%s user=%s", conninfo, role);
    return text;
}

static int init(int *out_version, struct pb_err *err)
{
    char text[256];
    *out_version = 0;
    return pb_store_init(conninfo, text, out_version, err);
}

START_TEST(test_settings_of_the_server_are_checked)
{
    ck_assert_int_eq(check(conninfo), 3);
    expect("database", PB_STORE_FINE, postgres_directory);
    expect("fsync", PB_STORE_MEND, "loses jobs; set it to on");
    expect("full_page_writes", PB_STORE_FINE, "on");
    expect("synchronous_commit", PB_STORE_MEND, "local: changes do not wait for the standby");
    expect("standby", PB_STORE_MEND, "'none', but no such standby is connected: start it");
    expect("changes", PB_STORE_FINE, "takes changes");
    expect("password", PB_STORE_FINE, "none is needed");
    expect("tables", PB_STORE_FINE, "version");
    expect("rights", PB_STORE_FINE, "role 'pushbroom' owns the tables");
    expect("autovacuum", PB_STORE_FINE, "on; 0 dead rows");
    expect("oldest transaction", PB_STORE_FINE, " s");
    expect("connections", PB_STORE_FINE, "a node needs 5");
    expect("sessions", PB_STORE_FINE, "of its own");
    ck_assert_str_eq(points[n_points - 1].name, "round trip");
}
END_TEST

START_TEST(test_tables_are_made_in_an_empty_database)
{
    int version;
    remove_store();
    ck_assert_int_eq(check(conninfo), 4);
    expect("tables", PB_STORE_MEND, "'pushbroom store init' makes them");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(init(&version, NULL), 0);
        ck_assert_int_gt(version, 0);
    }
    ck_assert_int_eq(check(conninfo), 3);
}
END_TEST

START_TEST(test_tables_of_another_version_are_named)
{
    struct pb_err err = {0};
    int version;
    change("UPDATE pushbroom.store SET version = 999, program = '99.1'");
    ck_assert_int_eq(check(conninfo), 4);
    expect("tables", PB_STORE_MEND, "version 999 of pushbroom 99.1");
    ck_assert_int_eq(init(&version, &err), 0);
    ck_assert_int_lt(version, 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "newer"));
    change("UPDATE pushbroom.store SET version = 0");
    ck_assert_int_eq(check(conninfo), 4);
    expect("tables", PB_STORE_MEND, "absent");
}
END_TEST

START_TEST(test_foreign_tables_are_left_alone)
{
    struct pb_err err = {0};
    int version;
    remove_store();
    change("CREATE SCHEMA pushbroom; CREATE TABLE pushbroom.jobs (mine text)");
    ck_assert_int_eq(init(&version, &err), 0);
    ck_assert_int_lt(version, 0);
    change("SELECT mine FROM pushbroom.jobs");
}
END_TEST

START_TEST(test_missing_rights_are_named)
{
    change("CREATE ROLE guest LOGIN");
    ck_assert_int_eq(check(as("guest")), 5);
    expect("tables", PB_STORE_MEND, "permission denied");
    expect("rights", PB_STORE_MEND, "GRANT USAGE");
    change("GRANT USAGE ON SCHEMA pushbroom TO guest; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL"
           " TABLES IN SCHEMA pushbroom TO guest; REVOKE DELETE ON pushbroom.kept FROM guest");
    ck_assert_int_eq(check(as("guest")), 4);
    expect("rights", PB_STORE_MEND, "(kept)");
    change("GRANT DELETE ON pushbroom.kept TO guest");
    ck_assert_int_eq(check(as("guest")), 3);
    expect("rights", PB_STORE_NOTE, "only 'pushbroom' can upgrade them");
    remove_store();
    ck_assert_int_eq(check(as("guest")), 5);
    expect("rights", PB_STORE_MEND, "ALTER DATABASE");
    change("ALTER ROLE guest CONNECTION LIMIT 1");
    ck_assert_int_eq(check(as("guest")), 7);
    expect("connections", PB_STORE_MEND, "0 left, a node needs 5");
    expect("sessions", PB_STORE_MEND, "a second connection is refused");
    change("DROP ROLE guest");
}
END_TEST

START_TEST(test_read_only_databases_are_named)
{
    change("DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() ||"
           " ' SET default_transaction_read_only = on'; END $$");
    ck_assert_int_eq(check(conninfo), 4);
    expect("changes", PB_STORE_MEND, "default_transaction_read_only is on");
}
END_TEST

START_TEST(test_stopped_vacuum_is_named)
{
    change("ALTER TABLE pushbroom.jobs SET (autovacuum_enabled = false)");
    ck_assert_int_eq(check(conninfo), 4);
    expect("autovacuum", PB_STORE_MEND, "set autovacuum");
}
END_TEST

/* Makes the server require the password of the role `asked`. */
static void ask_for_password(void)
{
    char path[128], rest[8192];
    struct pb_err err = {0};
    (void)snprintf(path, sizeof path, "%s/data/pg_hba.conf", postgres_directory);
    FILE *file = fopen(path, "r+e");
    ck_assert_ptr_nonnull(file);
    const size_t n = fread(rest, 1, sizeof rest, file);
    rewind(file);
    (void)fputs("local all asked scram-sha-256\n", file);
    ck_assert_uint_eq(fwrite(rest, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
    change("CREATE ROLE asked LOGIN PASSWORD '" SECRET "'; SELECT pg_reload_conf()");
    while (pb_store_check(as("asked"), note, NULL, &err) >= 0) { /* until the file is read */
        n_points = 0;
        (void)usleep(10000);
    }
    ck_assert_msg(strstr(err.msg, "passfile=FILE") != NULL, "%s", err.msg);
}

START_TEST(test_needed_passwords_are_named_and_not_shown)
{
    char path[128], to[512];
    ask_for_password();
    (void)snprintf(path, sizeof path, "%s/passfile", directory);
    FILE *file = fopen(path, "wxe");
    ck_assert_ptr_nonnull(file);
    (void)fputs("*:*:*:asked:" SECRET "\n", file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
    (void)snprintf(to, sizeof to, "%s passfile=%s", as("asked"), path);
    (void)check(to);
    expect("password", PB_STORE_NOTE, "passfile=FILE");
    change("DROP ROLE asked");
}
END_TEST

START_TEST(test_absent_servers_are_no_points)
{
    struct pb_err err = {0};
    int version = 0;
    char text[256];
    n_points = 0;
    ck_assert_int_lt(pb_store_check("host=/nowhere dbname=x", note, NULL, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "/nowhere"));
    ck_assert_int_lt(pb_store_init("host=/nowhere dbname=x", text, &version, &err), 0);
    ck_assert_uint_eq(n_points, 0);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, test_settings_of_the_server_are_checked);
    tcase_add_test(tests, test_tables_are_made_in_an_empty_database);
    tcase_add_test(tests, test_tables_of_another_version_are_named);
    tcase_add_test(tests, test_foreign_tables_are_left_alone);
    tcase_add_test(tests, test_missing_rights_are_named);
    tcase_add_test(tests, test_read_only_databases_are_named);
    tcase_add_test(tests, test_stopped_vacuum_is_named);
    tcase_add_test(tests, test_needed_passwords_are_named_and_not_shown);
    tcase_add_test(tests, test_absent_servers_are_no_points);
}

int main(void)
{
    return run_over_database("store_check", NULL, NULL, add_tests);
}
