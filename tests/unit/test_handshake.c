/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/stream/handshake.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REST "\"type\": \"int16\", \"bands\": 2, \"samples\": 5, \"group_lines\": 3"
#define GOOD "{\"version\": 1, \"stream\": \"swir\", " REST

static int parse(const char *text, struct pb_stream_request *out, char *why)
{
    return pb_handshake_parse(text, strlen(text), out, why);
}

START_TEST(complete_request_is_read)
{
    struct pb_stream_request request;
    char why[PB_HANDSHAKE_WHY_BYTES];
    ck_assert_int_eq(parse(GOOD ", \"transform\": [1, 2, 3, 4, 5, 6], \"epsg\": 32633, "
                                "\"token\": \"x\", \"later\": {}}",
                           &request, why),
                     0);
    ck_assert_str_eq(request.stream, "swir");
    ck_assert_str_eq(request.token, "x");
    ck_assert_int_eq(request.format.type, PB_STREAM_INT16);
    ck_assert_int_eq(request.type, PB_I16);
    ck_assert_uint_eq(request.format.bands, 2);
    ck_assert_uint_eq(request.format.samples, 5);
    ck_assert_uint_eq(request.format.group_lines, 3);
    ck_assert(request.has_transform && request.transform[5] == 6);
    ck_assert_uint_eq(request.epsg, 32633);
    ck_assert_int_eq(parse(GOOD "}", &request, why), 0);
    ck_assert(!request.has_transform && request.epsg == 0 && request.token[0] == '\0');
}
END_TEST

START_TEST(wrong_requests_are_refused_with_the_reason)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "JSON object"},
        {"[]", "JSON object"},
        {"{\"version\": 1", "JSON object"},
        {"{}", "version must be 1"},
        {"{\"version\": 2}", "version must be 1"},
        {"{\"version\": 1, " REST "}", "stream must be"},
        {"{\"version\": 1, \"stream\": "
         "\"0123456789012345678901234567890123456789012345678901234567890123\", " REST "}",
         "stream must be a text of at most 63"},
        {"{\"version\": 1, \"stream\": 5, " REST "}", "stream must be"},
        {GOOD ", \"token\": 5}", "token must be"},
        {GOOD ", \"bands\": 0}", "bands must be"},
        {GOOD ", \"bands\": 257}", "bands must be"},
        {GOOD ", \"samples\": -1}", "samples must be"},
        {GOOD ", \"samples\": 1048577}", "samples must be"},
        {GOOD ", \"group_lines\": 4097}", "group_lines must be"},
        {GOOD ", \"type\": \"int8\"}", "type must be"},
        {GOOD ", \"samples\": 1048576, \"group_lines\": 4096}", "64 MiB"},
        {GOOD ", \"transform\": [1, 2, 3, 4, 5]}", "six numbers"},
        {GOOD ", \"transform\": [1, 2, 3, 4, 5, \"6\"]}", "six numbers"},
        {GOOD ", \"transform\": [1, 0, 0, 4, 0, 0]}", "one line"},
        {GOOD ", \"epsg\": -1}", "epsg must be"},
        {GOOD ", \"epsg\": 65536}", "epsg must be"},
        {GOOD ", \"epsg\": \"EPSG:4326\"}", "epsg must be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb_stream_request request = {.epsg = 7};
        char why[PB_HANDSHAKE_WHY_BYTES] = "";
        ck_assert_int_eq(parse(cases[i].text, &request, why), -EINVAL);
        ck_assert_msg(strstr(why, cases[i].why) != NULL, "%s: %s", cases[i].text, why);
        ck_assert_uint_eq(request.epsg, 7);
    }
}
END_TEST

START_TEST(refusals_are_one_line_of_json)
{
    char out[PB_STREAM_HANDSHAKE_BYTES];
    const size_t n = pb_handshake_refuse("busy", "it \"has\" one", out);
    static const char expected[] = "{\"error\":\"busy\",\"message\":\"it \\\"has\\\" one\"}\n";
    ck_assert_uint_eq(n, sizeof expected - 1);
    ck_assert_mem_eq(out, expected, n);
}
END_TEST

START_TEST(groups_are_copied_or_refused)
{
    static const struct pb_stream_format format = {PB_STREAM_UINT8, 1, 4, 3};
    _Alignas(8) unsigned char slot[512] = {0};
    struct pb_stream_group group = {.line = 9, .lines = 2, .has_times = 1}, out;
    const int64_t times[3] = {1000, PB_STREAM_NO_TIME, 5};
    int64_t got[3];
    char why[PB_HANDSHAKE_WHY_BYTES];
    ck_assert_uint_le(pb_stream_slot_bytes(&format), sizeof slot);
    (void)memcpy(slot + pb_stream_times_offset(), times, sizeof times);
    (void)memcpy(slot, &group, sizeof group);
    ck_assert_int_eq(pb_handshake_group(slot, &format, &out, got, why), 0);
    ck_assert_uint_eq(out.line, 9);
    ck_assert_int_eq(got[0], 1000);
    ck_assert_int_eq(got[1], 0); /* unknown */
    ck_assert_int_eq(got[2], 0); /* beyond the lines */
    static const struct pb_stream_group wrong[] = {
        {.lines = 0},
        {.lines = 4},
        {.lines = UINT32_MAX},
        {.lines = 1, .line = UINT64_MAX},
        {.lines = 1, .line = INT64_MAX},
        {.lines = 1, .has_times = 2},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        (void)memcpy(slot, &wrong[i], sizeof wrong[i]);
        ck_assert_int_eq(pb_handshake_group(slot, &format, &out, got, why), -EINVAL);
        ck_assert_uint_eq(out.line, 9);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handshake");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, complete_request_is_read);
    tcase_add_test(tests, wrong_requests_are_refused_with_the_reason);
    tcase_add_test(tests, refusals_are_one_line_of_json);
    tcase_add_test(tests, groups_are_copied_or_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
