/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "config/base/json_reader.h"
#include "service/status/status_proto.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pb_request request;
static struct pb_fault fault;

static int parse(const char *line)
{
    pb_request_fini(&request);
    return pb_request_parse(line, strlen(line), &request, &fault);
}

/* A request of the method with these params, or without any for NULL. */
static int call(const char *method, const char *params)
{
    char line[1000];
    (void)snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\"%s%s}",
                   method, params ? ",\"params\":" : "", params ? params : "");
    return parse(line);
}

START_TEST(every_method_is_found_with_its_parameters)
{
    ck_assert_int_eq(call("job.list", NULL), 0);
    ck_assert_uint_eq(request.status_mask, PB_JOB_MASK_ALL);
    ck_assert_int_eq(request.limit, PB_STATUS_LIST_DEFAULT);
    ck_assert_int_eq(call("job.list", "{\"status\":\"failed\",\"limit\":5}"), 0);
    ck_assert_uint_eq(request.status_mask, PB_JOB_MASK(PB_JOB_FAILED));
    ck_assert_int_eq(request.limit, 5);
    ck_assert_int_eq(call("job.list", "{\"status\":[\"failed\",\"running\"],\"limit\":null}"), 0);
    ck_assert_uint_eq(request.status_mask,
                      PB_JOB_MASK(PB_JOB_FAILED) | PB_JOB_MASK(PB_JOB_RUNNING));
    ck_assert_int_eq(call("job.get", "{\"id\":\"4f2a\"}"), 0);
    ck_assert_str_eq(request.job, "4f2a");
    ck_assert_int_eq(call("job.submit", "{\"input\":\"/x.tif\",\"pipeline\":\"p\"}"), 0);
    ck_assert_str_eq(request.input, "/x.tif");
    ck_assert_str_eq(request.pipeline, "p");
    ck_assert(!request.descriptor);
    ck_assert_int_eq(call("job.submit", "{\"input\":\"/x.tif\",\"descriptor\":true}"), 0);
    ck_assert(request.descriptor);
    ck_assert_int_eq(call("job.watch", "{}"), 0);
    ck_assert_ptr_null(request.job);
    for (int i = 0; i < PB_METHOD_COUNT; i++) {
        (void)call(pb_method_name((enum pb_method)i), NULL);
        ck_assert_int_eq(request.method, i);
    }
}
END_TEST

START_TEST(faults_carry_the_codes_of_json_rpc)
{
    static const struct {
        const char *line;
        int code;
    } bad[] = {
        {"", PB_RPC_PARSE_ERROR},
        {"{", PB_RPC_PARSE_ERROR},
        {"null", PB_RPC_PARSE_ERROR},
        {"[]", PB_RPC_INVALID_REQUEST},
        {"\"x\"", PB_RPC_INVALID_REQUEST},
        {"{\"id\":1}", PB_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"job.list\"}", PB_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"job.list\"}", PB_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", PB_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":NaN,\"method\":\"job.list\"}", PB_RPC_PARSE_ERROR},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.eat\"}", PB_RPC_METHOD_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(parse(bad[i].line), -EINVAL);
        ck_assert_msg(fault.rpc_code == bad[i].code, "%s gives %d", bad[i].line, fault.rpc_code);
        ck_assert_int_ne(fault.message[0], 0);
    }
}
END_TEST

START_TEST(wrong_missing_or_unknown_parameters_are_named)
{
    static const char *const bad[][3] = {
        {"job.get", NULL, "'id'"},
        {"job.get", "{}", "'id'"},
        {"job.get", "{\"id\":null}", "'id'"},
        {"job.get", "{\"id\":7}", "id is"},
        {"job.get", "{\"id\":\"\"}", "id is"},
        {"job.get", "{\"id\":\"x\",\"limit\":1}", "'limit'"},
        {"job.get", "[\"x\"]", "object"},
        {"job.submit", "{\"pipeline\":\"p\"}", "'input'"},
        {"job.list", "{\"stauts\":\"failed\"}", "'stauts'"},
        {"job.list", "{\"status\":\"broken\"}", "broken"},
        {"job.list", "{\"status\":[1]}", "status is"},
        {"job.list", "{\"limit\":0}", "limit is"},
        {"job.list", "{\"limit\":99999999999}", "limit is"},
        {"job.list", "{\"limit\":1.5}", "limit is"},
        {"job.submit", "{\"input\":\"/x\",\"descriptor\":1}", "descriptor is"},
        {"service.info", "{\"id\":\"x\"}", "'id'"},
        {"service.drain", "{\"now\":1}", "now is"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(call(bad[i][0], bad[i][1]), -EINVAL);
        ck_assert_int_eq(fault.rpc_code, PB_RPC_INVALID_PARAMS);
        ck_assert_msg(strstr(fault.message, bad[i][2]) != NULL, "%s %s: %s", bad[i][0],
                      bad[i][1] ? bad[i][1] : "", fault.message);
    }
}
END_TEST

START_TEST(replies_repeat_the_id_as_it_came)
{
    static const char *const ids[] = {"7", "\"te\\\"xt\"", "-1", "1.5", "null"};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char line[200], expected[200];
        struct pb_err err = {0};
        (void)snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"job.list\"}",
                       ids[i]);
        ck_assert_int_eq(parse(line), 0);
        ck_assert(request.wants_reply);
        (void)pb_fail(&err, PB_E_JOB_UNKNOWN, "none");
        struct pb_json *reply = pb_json_create(false);
        pb_reply_error(reply, &request, &err);
        (void)snprintf(expected, sizeof expected,
                       "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32000,\"message\":"
                       "\"none\",\"data\":{\"code\":\"job.unknown\",\"hint\":",
                       ids[i]);
        const char *text = pb_json_text(reply, NULL);
        ck_assert_msg(strncmp(text, expected, strlen(expected)) == 0, "%s", text);
        pb_json_destroy(reply);
    }
    ck_assert_int_eq(parse("{\"jsonrpc\":\"2.0\",\"method\":\"job.list\"}"), 0);
    ck_assert(!request.wants_reply);
}
END_TEST

static void end(void)
{
    pb_request_fini(&request);
}

int main(void)
{
    Suite *suite = suite_create("status_proto");
    TCase *tests = tcase_create("status_proto");
    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_test(tests, every_method_is_found_with_its_parameters);
    tcase_add_test(tests, faults_carry_the_codes_of_json_rpc);
    tcase_add_test(tests, wrong_missing_or_unknown_parameters_are_named);
    tcase_add_test(tests, replies_repeat_the_id_as_it_came);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
