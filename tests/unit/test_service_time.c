/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/service_time.h"

#include "job_store_fixture.h"
#include "run_suite.h"

#include <sys/syscall.h>
#include <time.h>

static int64_t shift_s; /* offset of CLOCK_BOOTTIME */

int clock_gettime(clockid_t clock, struct timespec *out);
int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, out);
    if (clock == CLOCK_BOOTTIME)
        out->tv_sec += shift_s;
    return rc;
}

static void change_store(const char *sql)
{
    char path[PB_FILES_PATH_BYTES];
    sqlite3 *db = NULL;
    ck_assert_int_eq(pb_files_join(path, directory, "jobs.db"), 0);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
}

START_TEST(time_passes_within_one_boot_while_stopped)
{
    const struct pb_service_time saved = {"a", 1000, 50}, now = {"a", 61000, 0};
    ck_assert_int_eq(pb_service_time_at(&saved, &now), 60050);
}
END_TEST

START_TEST(time_that_the_machine_was_off_does_not_count)
{
    const struct pb_service_time saved = {"a", 5000000, 70}, now = {"b", 9000, 0};
    ck_assert_int_eq(pb_service_time_at(&saved, &now), 9070);
}
END_TEST

START_TEST(time_never_goes_back)
{
    const struct pb_service_time saved = {"a", 5000, 70}, now = {"a", 1000, 0};
    ck_assert_int_eq(pb_service_time_at(&saved, &now), 70);
}
END_TEST

START_TEST(unknown_boot_adds_no_time_while_stopped)
{
    const struct pb_service_time saved = {"", 5000, 70}, now = {"a", 9000, 0}, none = {"", 9000, 0};
    ck_assert_int_eq(pb_service_time_at(&saved, &now), 70);
    ck_assert_int_eq(pb_service_time_at(&saved, &none), 70);
}
END_TEST

START_TEST(store_counts_from_its_making_and_goes_on)
{
    int64_t first = pb_job_store_time_ms(store);
    ck_assert_int_ge(first, 0);
    ck_assert_int_lt(first, 3600000);
    shift_s += 7200;
    ck_assert_int_ge(pb_job_store_time_ms(store), first + 7200000);
    pb_job_store_close(store);
    shift_s += 7200;
    open_store();
    struct pb_service_time now;
    pb_service_time_read(&now);
    ck_assert_int_ge(pb_job_store_time_ms(store),
                     first + (now.boot[0] != '\0' ? 14400000 : 7200000));
    ck_assert_int_lt(pb_job_store_time_ms(store), first + 18000000);
}
END_TEST

START_TEST(store_goes_on_after_another_boot)
{
    shift_s += 7200;
    ck_assert_int_eq(pb_job_store_save_time(store, NULL), 0);
    pb_job_store_close(store);
    change_store("UPDATE service_time SET boot = 'another', boot_ms = 1, total_ms = 1000");
    struct pb_service_time now;
    pb_service_time_read(&now);
    open_store();
    if (now.boot[0] == '\0') /* there is no /proc */
        now.boot_ms = 0;
    ck_assert_int_ge(pb_job_store_time_ms(store), 1000 + now.boot_ms);
    ck_assert_int_lt(pb_job_store_time_ms(store), 1000 + now.boot_ms + 3600000);
}
END_TEST

START_TEST(store_whose_time_cannot_be_read_is_not_open)
{
    struct pb_err err = {0};
    shift_s += 7200;
    pb_job_store_close(store);
    change_store("ALTER TABLE service_time RENAME TO away");
    ck_assert_int_eq(
        pb_job_store_create(&(struct pb_store_place){.directory = directory}, &err, &store), 0);
    ck_assert_int_lt(pb_job_store_connect(store, &err, moved), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "service time"));
    err.msg[0] = '\0';
    ck_assert_int_lt(pb_job_store_save_time(store, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "not open"));
    change_store("ALTER TABLE away RENAME TO service_time");
    ck_assert_int_eq(pb_job_store_connect(store, &err, moved), 0);
    ck_assert_int_ge(pb_job_store_time_ms(store), 7200000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("service_time");
    TCase *tests = tcase_create("service_time");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, time_passes_within_one_boot_while_stopped);
    tcase_add_test(tests, time_that_the_machine_was_off_does_not_count);
    tcase_add_test(tests, time_never_goes_back);
    tcase_add_test(tests, unknown_boot_adds_no_time_while_stopped);
    tcase_add_test(tests, store_counts_from_its_making_and_goes_on);
    tcase_add_test(tests, store_goes_on_after_another_boot);
    tcase_add_test(tests, store_whose_time_cannot_be_read_is_not_open);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
