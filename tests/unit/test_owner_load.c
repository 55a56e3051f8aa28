/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/device/owner_load.h"
#include "config/config.h"
#include "service/processes/device_owners.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

START_TEST(the_owner_with_least_to_do_is_chosen)
{
    struct pb_owner_choice o[3] = {{.there = true}, {.there = true}, {.there = true}};
    ck_assert_int_eq(pb_owner_choose(o, 3), 0);
    o[0].jobs = 1; /* sent, and no session yet */
    ck_assert_int_eq(pb_owner_choose(o, 3), 1);
    o[1].load.sessions = 1; /* load of another program */
    ck_assert_int_eq(pb_owner_choose(o, 3), 2);
    o[2].load.sessions = o[2].jobs = 1; /* the same job */
    o[0].load = (struct pb_owner_load){1, 300};
    o[1].load.bytes = 200;
    o[2].load.bytes = 250;
    ck_assert_int_eq(pb_owner_choose(o, 3), 1);
    o[1].there = false;
    ck_assert_int_eq(pb_owner_choose(o, 3), 2);
    o[2].jobs = 2;
    ck_assert_int_eq(pb_owner_choose(o, 3), 0);
    o[0].there = o[2].there = false;
    ck_assert_int_eq(pb_owner_choose(o, 3), -1);
}
END_TEST

static bool take(const char *text, struct pb_owner_load *out)
{
    struct pb_json_value *line = NULL;
    (void)pb_json_parse(text, strlen(text), 1000, &line);
    bool taken = pb_owner_load_take(line, out);
    pb_json_release(line);
    return taken;
}

START_TEST(a_load_is_told_in_a_line)
{
    const struct pb_owner_load said = {3, INT64_C(5000000000)};
    struct pb_owner_load heard = {7, 7};
    struct pb_json *json = pb_owner_load_print(&said);
    size_t bytes;
    ck_assert(take(pb_json_text(json, &bytes), &heard));
    ck_assert_int_eq(heard.sessions, 3);
    ck_assert_int_eq(heard.bytes, INT64_C(5000000000));
    const struct pb_lanes_count lanes = {.launches = 9, .open = 2};
    struct pb_json *all = pb_owner_load_print_all(&said, &lanes);
    ck_assert_ptr_nonnull(strstr(pb_json_text(all, &bytes), "\"lanes\":2,\"launches\":9"));
    ck_assert(take(pb_json_text(all, &bytes), &heard));
    pb_json_destroy(all);
    ck_assert(!take("{\"event\":\"load\",\"sessions\":1}", &heard));
    ck_assert(!take("{\"event\":\"device\",\"sessions\":1,\"bytes\":1}", &heard));
    ck_assert(!take("[]", &heard));
    ck_assert_int_eq(heard.sessions, 3);
    pb_json_destroy(json);
}
END_TEST

static void expect_devices(enum pb_device_kind kind, int32_t index, int32_t jobs, int gpus,
                           const char *forced, const char *expected)
{
    const struct pb_compute_config compute = {.device = kind, .device_index = index};
    char devices[PB_DEVICE_OWNERS_MAX][16], all[200] = "";
    int n = pb_device_owners_wanted(&compute, jobs, forced, gpus, devices);
    for (int i = 0; i < n; i++) {
        (void)strcat(all, devices[i]);
        (void)strcat(all, " ");
    }
    ck_assert_str_eq(all, expected);
}

START_TEST(as_many_gpus_as_jobs_run_side_by_side)
{
    expect_devices(PB_DEVICE_AUTO, -1, 1, 2, NULL, "0 ");
    expect_devices(PB_DEVICE_AUTO, -1, 2, 2, NULL, "0 1 ");
    expect_devices(PB_DEVICE_CUDA, -1, 8, 2, NULL, "0 1 ");
    expect_devices(PB_DEVICE_CUDA, 1, 8, 2, NULL, "1 ");
    expect_devices(PB_DEVICE_CUDA, 0, 8, 2, NULL, "0 ");
    expect_devices(PB_DEVICE_AUTO, -1, 8, 0, NULL, "");
    expect_devices(PB_DEVICE_CPU, -1, 8, 2, NULL, "");
    expect_devices(PB_DEVICE_AUTO, -1, 64, 20, NULL, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 ");
    expect_devices(PB_DEVICE_AUTO, -1, 1, 0, "cpu,cpu,1", "cpu cpu 1 ");
}
END_TEST

START_TEST(each_owner_has_a_socket_of_its_own)
{
    char name[] = "/run/pushbroom/status.sock", path[PB_DEVICE_OWNER_PATH_BYTES];
    char longest[100];
    struct pb_config config = {.service = {.socket = name}};
    ck_assert(pb_device_owners_path(&config, "1", 0, path));
    ck_assert_str_eq(path, "/run/pushbroom/status.sock.cuda1");
    ck_assert(pb_device_owners_path(&config, "cpu", 1, path));
    ck_assert_str_eq(path, "/run/pushbroom/status.sock.cpu.1");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    config.service.socket = longest;
    ck_assert(pb_device_owners_path(&config, "12", 0, path));
    ck_assert(!pb_device_owners_path(&config, "123", 1, path));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("owner_load");
    TCase *tc = tcase_create("owner_load");
    tcase_add_test(tc, the_owner_with_least_to_do_is_chosen);
    tcase_add_test(tc, a_load_is_told_in_a_line);
    tcase_add_test(tc, as_many_gpus_as_jobs_run_side_by_side);
    tcase_add_test(tc, each_owner_has_a_socket_of_its_own);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
