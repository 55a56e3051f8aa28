/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * The client against a scripted other side on a real socket. */
#include "service/status/client.h"
#include "config/base/clock.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char path[108];
static int server = -1;
static pthread_t thread;
static const char *answer; /* sent after each line that arrives; NULL = silence */

static void *serve(void *user)
{
    (void)user;
    char line[1000];
    ssize_t n;
    int fd = accept(server, NULL, NULL);
    while (fd >= 0 && (n = recv(fd, line, sizeof line, 0)) > 0) {
        bool whole = line[n - 1] == '\n'; /* a line may arrive in parts */
        if (whole && answer != NULL && answer[0] == '\0')
            break;
        if (whole && answer != NULL)
            (void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    }
    if (fd >= 0)
        (void)close(fd);
    return NULL;
}

static void begin(const char *text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    answer = text;
    (void)snprintf(path, sizeof path, "/tmp/pb-client-%d.sock", (int)getpid());
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    (void)unlink(path); /* socket of a crashed process with this number */
    server = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(server, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(server, 4), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
}

static void end(struct pb_client *client)
{
    pb_client_close(client);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    (void)close(server);
    (void)unlink(path);
}

static struct pb_client *connect_to(int64_t timeout_ms)
{
    struct pb_client *client = NULL;
    struct pb_err err = {0};
    int rc = pb_client_open(path, timeout_ms, &err, &client);
    ck_assert_msg(rc == 0, "%s", err.msg);
    return client;
}

START_TEST(a_result_comes_back_and_events_in_between_are_kept)
{
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    struct pb_err err = {0};
    begin("{\"jsonrpc\":\"2.0\",\"method\":\"job.event\",\"params\":{\"id\":\"a\"}}\n"
          "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"jobs\":[]}}\n"
          "{\"jsonrpc\":\"2.0\",\"method\":\"job.event\",\"params\":{\"id\":\"b\"}}\n");
    struct pb_client *client = connect_to(5000);
    ck_assert_int_eq(pb_client_call(client, "job.list", "{\"limit\":1}", &err, &reply, &result), 0);
    ck_assert(pb_json_is_array(pb_json_get(result, "jobs", NULL)));
    pb_json_release(reply);
    const char *expected[] = {"a", "b"};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pb_client_event(client, 5000, &err, &reply, &result), 1);
        ck_assert_str_eq(pb_json_get_text(result, "id"), expected[i]);
        pb_json_release(reply);
    }
    ck_assert_int_eq(pb_client_event(client, 0, &err, &reply, &result), 0);
    end(client);
}
END_TEST

START_TEST(too_many_events_in_between_are_reported_as_lost)
{
    static const char event[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"job.event\",\"params\":{\"id\":\"a\"}}\n";
    static const char last[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    struct pb_err err = {0};
    for (size_t n = 1024; n <= 1025; n++) {
        char *text = malloc(n * (sizeof event - 1) + sizeof last);
        ck_assert_ptr_nonnull(text);
        for (size_t i = 0; i < n; i++)
            memcpy(text + i * (sizeof event - 1), event, sizeof event - 1);
        memcpy(text + n * (sizeof event - 1), last, sizeof last);
        begin(text);
        struct pb_client *client = connect_to(60000);
        ck_assert_int_eq(pb_client_call(client, "job.list", NULL, &err, &reply, &result), 0);
        pb_json_release(reply);
        ck_assert_int_eq(pb_client_lost_events(client), n > 1024);
        ck_assert(!pb_client_lost_events(client));
        end(client);
        free(text);
    }
}
END_TEST

START_TEST(an_error_reply_keeps_its_code_and_words)
{
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    struct pb_err err = {0};
    begin(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"there is no job\","
        "\"data\":{\"code\":\"job.unknown\",\"hint\":\"h\"}}}\n");
    struct pb_client *client = connect_to(5000);
    ck_assert_int_eq(pb_client_call(client, "job.get", "{\"id\":\"x\"}", &err, &reply, &result),
                     -ENOENT);
    ck_assert_int_eq(err.code, PB_E_JOB_UNKNOWN);
    ck_assert_str_eq(err.msg, "there is no job");
    end(client);
}
END_TEST

START_TEST(silence_ends_in_time)
{
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    struct pb_err err = {0};
    begin(NULL);
    struct pb_client *client = connect_to(200);
    int64_t start = pb_clock_mono_ms();
    ck_assert_int_lt(pb_client_call(client, "job.list", NULL, &err, &reply, &result), 0);
    ck_assert_int_eq(err.code, PB_E_SERVICE_UNREACHABLE);
    ck_assert_int_ge(pb_clock_mono_ms() - start, 200); /* a call without end is Check's to end */
    end(client);
}
END_TEST

START_TEST(closed_or_garbled_connection_is_an_error)
{
    static const char *const answers[] = {"", "rubbish\n",
                                          "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":1}\n",
                                          "{\"jsonrpc\":\"2.0\",\"id\":1}\n"};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct pb_json_value *reply = NULL;
        const struct pb_json_value *result = NULL;
        struct pb_err err = {0};
        begin(answers[i]);
        struct pb_client *client = connect_to(5000);
        ck_assert_int_lt(pb_client_call(client, "job.list", NULL, &err, &reply, &result), 0);
        ck_assert_int_eq(err.code, i == 0 ? PB_E_SERVICE_UNREACHABLE : PB_E_SERVICE_PROTOCOL);
        ck_assert_ptr_null(reply);
        end(client);
    }
}
END_TEST

START_TEST(nobody_there_says_where)
{
    struct pb_client *client = NULL;
    struct pb_err err = {0};
    ck_assert_int_lt(pb_client_open("/no/such.sock", 100, &err, &client), 0);
    ck_assert_int_eq(err.code, PB_E_SERVICE_UNREACHABLE);
    ck_assert_ptr_nonnull(strstr(err.msg, "/no/such.sock"));
    char flood[300];
    memset(flood, 'x', sizeof flood - 1);
    flood[sizeof flood - 1] = '\0';
    struct pb_err other = {0};
    ck_assert_int_lt(pb_client_open(flood, 100, &other, &client), 0);
    (void)setenv("PUSHBROOM_SOCKET", "/elsewhere", 1);
    ck_assert_str_eq(pb_client_default_path(), "/elsewhere");
    (void)setenv("PUSHBROOM_SOCKET", "", 1);
    ck_assert_str_eq(pb_client_default_path(), "/run/pushbroom/status.sock");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client");
    TCase *tests = tcase_create("client");
    tcase_add_test(tests, a_result_comes_back_and_events_in_between_are_kept);
    tcase_add_test(tests, too_many_events_in_between_are_reported_as_lost);
    tcase_add_test(tests, an_error_reply_keeps_its_code_and_words);
    tcase_add_test(tests, silence_ends_in_time);
    tcase_add_test(tests, closed_or_garbled_connection_is_an_error);
    tcase_add_test(tests, nobody_there_says_where);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
