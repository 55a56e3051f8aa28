/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/web/request.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum pb_web_place place_of(const char *path)
{
    static struct pb_web_route route;
    pb_web_route(path, &route);
    return route.place;
}

static const char *product_of(const char *path)
{
    static struct pb_web_route route;
    pb_web_route(path, &route);
    return route.place == PB_WEB_PRODUCT ? route.name : NULL;
}

START_TEST(test_places_have_one_address)
{
    ck_assert_int_eq(place_of("/"), PB_WEB_ASSET);
    ck_assert_int_eq(place_of("/page.js"), PB_WEB_ASSET);
    ck_assert_int_eq(place_of("/api/info"), PB_WEB_INFO);
    ck_assert_int_eq(place_of("/api/jobs"), PB_WEB_JOBS);
    ck_assert_int_eq(place_of("/api/jobs/20261130-010407-1wzy/events"), PB_WEB_STEPS);
    ck_assert_int_eq(place_of("/api/jobs/a/events/"), PB_WEB_NOT_FOUND);
    ck_assert_int_eq(place_of("/api/jobs//events"), PB_WEB_NOT_FOUND);
    ck_assert_int_eq(place_of("/api/graphs"), PB_WEB_GRAPHS);
    ck_assert_int_eq(place_of("/api/jobs/20261130-010407-1wzy"), PB_WEB_JOB);
    ck_assert_int_eq(place_of("/events"), PB_WEB_EVENTS);
    ck_assert_int_eq(place_of("/metrics"), PB_WEB_METRICS);
    static const char *const nowhere[] = {"",
                                          "page.js",
                                          "//",
                                          "/page.js/",
                                          "/page.c",
                                          "/api",
                                          "/api/",
                                          "/api/info/",
                                          "/api/jobs/",
                                          "/api/jobs/a\"b",
                                          "/api/jobs/a/b",
                                          "/api/jobs/a%20b",
                                          "/events/",
                                          "/products",
                                          "/%65vents",
                                          "/page.html"};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        ck_assert_msg(place_of(nowhere[i]) == PB_WEB_NOT_FOUND, "%s", nowhere[i]);
}
END_TEST

START_TEST(test_products_are_decoded_once)
{
    ck_assert_str_eq(product_of("/products/a/b/c.png"), "a/b/c.png");
    ck_assert_str_eq(product_of("/products/a%20b/%3Cscript%3E.png"), "a b/<script>.png");
    ck_assert_str_eq(product_of("/products/a%252fb/c"), "a%2fb/c");
    ck_assert_str_eq(product_of("/products/a%FF/c"), "a\xff/c");
    ck_assert_str_eq(product_of("/products/..a/..."), "..a/...");
}
END_TEST

START_TEST(test_catalogue_is_below_its_root)
{
    static struct pb_web_route route;
    static const struct {
        const char *path, *name;
    } rows[] = {{"/stac", ""},
                {"/stac/search", "search"},
                {"/stac/collections/a%20b/items/%3Cx%3E", "collections/a b/items/<x>"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pb_web_route(rows[i].path, &route);
        ck_assert_int_eq(route.place, i == 1 ? PB_WEB_SEARCH : PB_WEB_STAC);
        ck_assert_str_eq(route.name, rows[i].name);
    }
    static const char *const nowhere[] = {"/stac/",      "/stac//a",   "/stac/..", "/stac/%2e%2e/a",
                                          "/stac/a%2fb", "/stac/a%00", "/stacs",   "/stac/a/"};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        ck_assert_msg(place_of(nowhere[i]) == PB_WEB_NOT_FOUND, "%s", nowhere[i]);
}
END_TEST

START_TEST(test_processes_and_jobs_are_at_the_root)
{
    static struct pb_web_route route;
    static const char *const paths[] = {"/conformance",
                                        "/processes",
                                        "/processes/%3Cp%3E",
                                        "/jobs",
                                        "/jobs/a",
                                        "/jobs/a/results",
                                        "/jobs/a%22",
                                        "/processes/a/b",
                                        "/processes/execution",
                                        "/processes/a/b/execution",
                                        "/processes/%3Cp%3E/execution"};
    static const char *const names[] = {"conformance",
                                        "processes",
                                        "processes/<p>",
                                        "jobs",
                                        "jobs/a",
                                        "jobs/a/results",
                                        "jobs/a\"",
                                        "processes/a/b",
                                        "processes/execution",
                                        "processes/a/b/execution",
                                        "processes/<p>/execution"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        pb_web_route(paths[i], &route);
        ck_assert_int_eq(route.place, i == 4    ? PB_WEB_OGC_JOB
                                      : i == 10 ? PB_WEB_EXECUTE
                                                : PB_WEB_OGC);
        ck_assert_str_eq(route.name, names[i]);
    }
    static const char *const nowhere[] = {"/jobs/", "/jobs/..", "/jobsx", "/processes/a%2fb",
                                          "/jobs//results"};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        ck_assert_msg(place_of(nowhere[i]) == PB_WEB_NOT_FOUND, "%s", nowhere[i]);
}
END_TEST

START_TEST(test_values_of_a_query_are_decoded_once)
{
    char out[8];
    ck_assert_int_eq(pb_web_value("a%2Bb+c", out, sizeof out), 5);
    ck_assert_str_eq(out, "a+b c");
    ck_assert_int_eq(pb_web_value("%25zz", out, sizeof out), 3);
    ck_assert_str_eq(out, "%zz");
    ck_assert_int_eq(pb_web_value("", out, sizeof out), 0);
    ck_assert_int_eq(pb_web_value("1234567", out, sizeof out), 7);
    ck_assert_int_eq(pb_web_value("12345678", out, sizeof out), -1);
    ck_assert_int_eq(pb_web_value("%00", out, sizeof out), -1);
    ck_assert_int_eq(pb_web_value("%4", out, sizeof out), -1);
    ck_assert_int_eq(pb_web_value("a", out, 0), -1);
    out[0] = 'x';
    ck_assert_int_eq(pb_web_value("", out, 0), -1);
    ck_assert_int_eq(out[0], 'x');
}
END_TEST

START_TEST(test_ways_out_of_products_are_refused)
{
    static const char *const refused[] = {
        "/products/",      "/products//a",       "/products/a//b",       "/products/a/",
        "/products/..",    "/products/a/../b",   "/products/%2e%2e/a",   "/products/a/.%2E/b",
        "/products/./a",   "/products/a%2fb",    "/products/a%2F..%2Fb", "/products/a%00b",
        "/products/a%0ab", "/products/a%7Fb",    "/products/a%",         "/products/a%2",
        "/products/a%zz",  "/products/%2e%2e%2f"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        ck_assert_msg(product_of(refused[i]) == NULL, "%s", refused[i]);
    char path[3 * PB_WEB_PATH_BYTES] = "/products/";
    memset(path + 10, 'a', PB_WEB_PATH_BYTES);
    ck_assert_ptr_null(product_of(path));
    path[10 + PB_WEB_PATH_BYTES - 1] = '\0';
    ck_assert_ptr_nonnull(product_of(path));
    for (size_t i = 0; i < 2 * PB_WEB_PATH_PARTS; i++)
        path[10 + i] = i % 2 ? '/' : 'a';
    path[10 + 2 * PB_WEB_PATH_PARTS - 1] = '\0';
    ck_assert_ptr_nonnull(product_of(path));
    (void)strcat(path, "/a");
    ck_assert_ptr_null(product_of(path));
}
END_TEST

/* The action of a path, or NULL. */
static const char *action_of(const char *path)
{
    static struct pb_web_route route;
    pb_web_route(path, &route);
    return route.place == PB_WEB_ACT ? pb_web_action_name(route.action) : NULL;
}

START_TEST(test_actions_have_one_address)
{
    static const char *const nowhere[] = {
        "/api/jobs/a",        "/api/jobs/a/retry/", "/api/jobs/a/Retry",  "/api/jobs/a/retr",
        "/api/jobs//retry",   "/api/jobs/retry",    "/api/jobs/a/submit", "/api/jobs/a%2fretry",
        "/api/jobs/a//retry", "/jobs/a/retry"};
    ck_assert_str_eq(action_of("/api/jobs/20261130-010407-1wzy/retry"), "retry");
    ck_assert_str_eq(action_of("/api/jobs/a/again"), "again");
    ck_assert_str_eq(action_of("/api/jobs/a/cancel"), "cancel");
    ck_assert_str_eq(action_of("/api/jobs/a/drop"), "drop");
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        ck_assert_msg(action_of(nowhere[i]) == NULL, "%s", nowhere[i]);
}
END_TEST

START_TEST(test_places_have_their_methods)
{
    for (int place = PB_WEB_NOT_FOUND; place <= PB_WEB_EXECUTE; place++) {
        const bool executes = place == PB_WEB_EXECUTE;
        const bool acts = place == PB_WEB_ACT || executes, session = place == PB_WEB_SESSION;
        const bool deletes = session || place == PB_WEB_OGC_JOB, searches = place == PB_WEB_SEARCH;
        ck_assert(pb_web_has_body((enum pb_web_place)place, "POST") == (searches || executes));
        ck_assert(!pb_web_has_body((enum pb_web_place)place, "GET"));
        ck_assert(pb_web_allows((enum pb_web_place)place, "GET") == !acts);
        ck_assert(pb_web_allows((enum pb_web_place)place, "HEAD") == !acts);
        ck_assert(pb_web_allows((enum pb_web_place)place, "POST") == (acts || session || searches));
        ck_assert(pb_web_allows((enum pb_web_place)place, "DELETE") == deletes);
        static const char *const others[] = {"", "PUT", "get", "GE", "GETS", ",", "GET, HEAD"};
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            ck_assert_msg(!pb_web_allows((enum pb_web_place)place, others[i]), "%s", others[i]);
    }
}
END_TEST

START_TEST(test_priority_is_read_in_full)
{
    static const char *const wrong[] = {"",   "-",   "101", "-101", "1 ",
                                        "+1", "1.5", "--1", "x",    "99999999999999999999999"};
    int64_t priority = 7;
    ck_assert(pb_web_priority(NULL, -50, &priority) && priority == -50);
    ck_assert(pb_web_priority("100", -50, &priority) && priority == 100);
    ck_assert(pb_web_priority("-100", -50, &priority) && priority == -100);
    ck_assert(pb_web_priority("0", -50, &priority) && priority == 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!pb_web_priority(wrong[i], 0, &priority), "%s", wrong[i]);
}
END_TEST

/* The range as "first+bytes", "whole" or "outside". */
static const char *range_of(const char *text, uint64_t size)
{
    static char out[64];
    uint64_t first = 0, bytes = 0;
    const enum pb_web_range range = pb_web_range(text, size, &first, &bytes);
    if (range != PB_WEB_RANGE_PART)
        return range == PB_WEB_RANGE_WHOLE ? "whole" : "outside";
    (void)snprintf(out, sizeof out, "%llu+%llu", (unsigned long long)first,
                   (unsigned long long)bytes);
    return out;
}

START_TEST(test_range_is_cut_at_the_end)
{
    ck_assert_str_eq(range_of("bytes=0-0", 10), "0+1");
    ck_assert_str_eq(range_of("bytes=0-9", 10), "0+10");
    ck_assert_str_eq(range_of("bytes=0-10", 10), "0+10");
    ck_assert_str_eq(range_of("bytes=9-", 10), "9+1");
    ck_assert_str_eq(range_of("bytes=3-", 10), "3+7");
    ck_assert_str_eq(range_of("Bytes=-1", 10), "9+1");
    ck_assert_str_eq(range_of("bytes=-10", 10), "0+10");
    ck_assert_str_eq(range_of("bytes=-11", 10), "0+10");
    ck_assert_str_eq(range_of("bytes=1-99999999999999999999999", 10), "1+9");
    ck_assert_str_eq(range_of("bytes=0-18446744073709551615", UINT64_MAX),
                     "0+18446744073709551615");
}
END_TEST

START_TEST(test_range_without_bytes_is_outside)
{
    ck_assert_str_eq(range_of("bytes=10-", 10), "outside");
    ck_assert_str_eq(range_of("bytes=10-20", 10), "outside");
    ck_assert_str_eq(range_of("bytes=-0", 10), "outside");
    ck_assert_str_eq(range_of("bytes=0-", 0), "outside");
    ck_assert_str_eq(range_of("bytes=-5", 0), "outside");
    ck_assert_str_eq(range_of("bytes=99999999999999999999999-", 10), "outside");
}
END_TEST

START_TEST(test_other_ranges_mean_the_whole)
{
    static const char *const texts[] = {"",          "bytes",      "bytes=",     "bytes=-",
                                        "bytes=5",   "bytes=5-2",  "bytes=a-b",  "bytes=0-1,3-4",
                                        "lines=0-1", "bytes= 0-1", "bytes=0-1 ", "bytes=0--1",
                                        "bytes=+0-1"};
    ck_assert_str_eq(range_of(NULL, 10), "whole");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(strcmp(range_of(texts[i], 10), "whole") == 0, "%s", texts[i]);
}
END_TEST

START_TEST(test_other_hosts_are_refused)
{
    static const char *const names[] = {"ground.example"};
    static const char *const ours[] = {"localhost",         "LOCALHOST:8080", "127.0.0.1:8080",
                                       "10.1.2.3",          "[::1]:8080",     "[::1]",
                                       "Ground.Example:443"};
    static const char *const others[] = {"",
                                         "evil.example",
                                         "localhost.evil.example",
                                         "127.0.0.1.evil.example:8080",
                                         "evil.example:localhost",
                                         "[evil.example]",
                                         "[::1",
                                         "[::1]x",
                                         "ground.example.",
                                         "0x7f.1",
                                         "localhost@evil.example"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        ck_assert_msg(pb_web_host_is_ours(ours[i], names, 1), "%s", ours[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(!pb_web_host_is_ours(others[i], names, 1), "%s", others[i]);
    ck_assert(!pb_web_host_is_ours(NULL, names, 1));
    ck_assert(!pb_web_host_is_ours("ground.example", names, 0));
}
END_TEST

static void check_params(const char *before, const char *limit, const char *status,
                         const char *expected)
{
    char *params = pb_web_list_params(before, limit, status);
    if (expected == NULL)
        ck_assert_ptr_null(params);
    else
        ck_assert_str_eq(params, expected);
    free(params);
}

START_TEST(test_list_has_a_limit)
{
    check_params(NULL, NULL, NULL, "{\"fields\":\"brief\",\"limit\":200}");
    check_params("a-1", "5", "failed",
                 "{\"fields\":\"brief\",\"limit\":5,\"before\":\"a-1\",\"status\":\"failed\"}");
    check_params(NULL, "99999999999999999999", NULL, "{\"fields\":\"brief\",\"limit\":500}");
    check_params(NULL, "0", NULL, NULL);
    check_params(NULL, "-1", NULL, NULL);
    check_params(NULL, "", NULL, NULL);
    check_params("a\"b", NULL, NULL, NULL);
    check_params(NULL, NULL, "a,b", NULL);
}
END_TEST

START_TEST(test_address_of_a_product_is_escaped)
{
    char *href = pb_web_href("/p/products/a b/<c>\xff.png", "/p/products");
    ck_assert_str_eq(href, "/products/a%20b/%3Cc%3E%FF.png");
    ck_assert_str_eq(product_of(href), "a b/<c>\xff.png");
    free(href);
    ck_assert_ptr_null(pb_web_href("/p/products2/a", "/p/products"));
    ck_assert_ptr_null(pb_web_href("/p/products/", "/p/products"));
    ck_assert_ptr_null(pb_web_href("/p/products", "/p/products"));
    ck_assert_ptr_null(pb_web_href("/other", ""));
    ck_assert_ptr_null(pb_web_href(NULL, "/p"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("web_request");
    TCase *all = tcase_create("all");
    tcase_add_test(all, test_places_have_one_address);
    tcase_add_test(all, test_actions_have_one_address);
    tcase_add_test(all, test_places_have_their_methods);
    tcase_add_test(all, test_priority_is_read_in_full);
    tcase_add_test(all, test_products_are_decoded_once);
    tcase_add_test(all, test_catalogue_is_below_its_root);
    tcase_add_test(all, test_processes_and_jobs_are_at_the_root);
    tcase_add_test(all, test_values_of_a_query_are_decoded_once);
    tcase_add_test(all, test_ways_out_of_products_are_refused);
    tcase_add_test(all, test_range_is_cut_at_the_end);
    tcase_add_test(all, test_range_without_bytes_is_outside);
    tcase_add_test(all, test_other_ranges_mean_the_whole);
    tcase_add_test(all, test_other_hosts_are_refused);
    tcase_add_test(all, test_list_has_a_limit);
    tcase_add_test(all, test_address_of_a_product_is_escaped);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
