/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/web/guard.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW      1800000000
#define ALICE    "alice-has-a-long-token"
#define BOB      "bob-has-another-long-token"
#define HOST     "ground.example"
#define OWN_PAGE "https://" HOST

static char path[64];
static struct pb_web_guard guard;
static struct pb_err err;
static char who[PB_WEB_WHO_BYTES];
static const char *proof;

static void write_tokens(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
}

static void setup(void)
{
    (void)snprintf(path, sizeof path, "/tmp/pb-guard-XXXXXX");
    ck_assert_int_eq(close(mkstemp(path)), 0);
    guard = (struct pb_web_guard){.token_file = path};
    err = (struct pb_err){0};
    write_tokens("# who may act\nalice " ALICE "\n\nbob\t" BOB "  \n");
}

static void teardown(void)
{
    (void)unlink(path);
}

static enum pb_web_verdict ask(struct pb_web_claim claim)
{
    claim.changes = true;
    claim.host = claim.host ? claim.host : HOST;
    who[0] = '\0';
    return pb_web_guard_who(&guard, &claim, NOW, who, &proof, &err);
}

/* Value of the cookie of a person as a browser sends it. */
static const char *cookie_of(const char *name, int64_t now_s)
{
    static char cookie[PB_WEB_COOKIE_BYTES];
    ck_assert(pb_web_guard_cookie(&guard, name, now_s, cookie));
    cookie[strcspn(cookie, ";")] = '\0';
    return cookie;
}

START_TEST(test_token_names_its_person)
{
    ck_assert_int_eq(ask((struct pb_web_claim){.authorization = "Bearer " ALICE}), PB_WEB_KNOWN);
    ck_assert_str_eq(who, "alice");
    ck_assert_str_eq(proof, "token");
    ck_assert_int_eq(ask((struct pb_web_claim){.authorization = "bearer " BOB, .origin = OWN_PAGE}),
                     PB_WEB_KNOWN);
    ck_assert_str_eq(who, "bob");
    ck_assert_int_eq(pb_web_guard_check(&guard, &err), 2);
}
END_TEST

START_TEST(test_wrong_token_is_nobody)
{
    static const char *const wrong[] = {"Bearer ",           "Bearer alice",       "Basic " ALICE,
                                        "Bearer " ALICE "x", "Bearer " ALICE " ",  "Bearer  " ALICE,
                                        "Bearer #",          "Bearer who may act", ALICE};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(ask((struct pb_web_claim){.authorization = wrong[i], .origin = OWN_PAGE}) ==
                          PB_WEB_UNKNOWN,
                      "%s", wrong[i]);
    ck_assert_int_eq(ask((struct pb_web_claim){.origin = OWN_PAGE}), PB_WEB_UNKNOWN);
    ck_assert_str_eq(who, "");
}
END_TEST

START_TEST(test_other_pages_are_refused)
{
    static const char *const others[] = {"https://evil.example",
                                         "http://ground.example",
                                         "https://ground.example:8443",
                                         "null",
                                         "",
                                         "https://ground.example.evil.example"};
    const char *cookie = cookie_of("alice", NOW);
    ck_assert_int_eq(ask((struct pb_web_claim){.cookie = cookie}), PB_WEB_FOREIGN);
    ck_assert_int_eq(ask((struct pb_web_claim){.user = "alice"}), PB_WEB_FOREIGN);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_msg(ask((struct pb_web_claim){.cookie = cookie, .origin = others[i]}) ==
                          PB_WEB_FOREIGN,
                      "%s", others[i]);
        ck_assert_int_eq(
            ask((struct pb_web_claim){.authorization = "Bearer " ALICE, .origin = others[i]}),
            PB_WEB_FOREIGN);
    }
    struct pb_web_claim here = {
        .cookie = cookie, .origin = "http://127.0.0.1:8080", .host = "127.0.0.1:8080"};
    ck_assert_int_eq(ask(here), PB_WEB_KNOWN);
    here.host = "127.0.0.1:8081";
    ck_assert_int_eq(ask(here), PB_WEB_FOREIGN);
    here.host = "10.0.0.1", here.origin = "http://10.0.0.1";
    ck_assert_int_eq(ask(here), PB_WEB_FOREIGN);
}
END_TEST

START_TEST(test_reading_needs_no_origin)
{
    const struct pb_web_claim claim = {.host = HOST, .cookie = cookie_of("alice", NOW)};
    ck_assert_int_eq(pb_web_guard_who(&guard, &claim, NOW, who, &proof, &err), PB_WEB_KNOWN);
}
END_TEST

START_TEST(test_cookie_ends)
{
    ck_assert_int_eq(
        ask((struct pb_web_claim){.cookie = cookie_of("bob", NOW), .origin = OWN_PAGE}),
        PB_WEB_KNOWN);
    ck_assert_str_eq(who, "bob");
    ck_assert_str_eq(proof, "cookie");
    ck_assert_int_eq(ask((struct pb_web_claim){.cookie = cookie_of("bob", NOW - PB_WEB_COOKIE_S),
                                               .origin = OWN_PAGE}),
                     PB_WEB_UNKNOWN);
    char mixed[2 * PB_WEB_COOKIE_BYTES];
    (void)snprintf(mixed, sizeof mixed, "a=b; %s; c=d", cookie_of("alice", NOW));
    ck_assert_int_eq(ask((struct pb_web_claim){.cookie = mixed, .origin = OWN_PAGE}), PB_WEB_KNOWN);
    write_tokens("alice another-token-of-alice\nbob " BOB "\n");
    ck_assert_int_eq(ask((struct pb_web_claim){.cookie = mixed, .origin = OWN_PAGE}),
                     PB_WEB_UNKNOWN);
    write_tokens("bob " BOB "\n");
    ck_assert_int_eq(ask((struct pb_web_claim){.cookie = mixed, .origin = OWN_PAGE}),
                     PB_WEB_UNKNOWN);
    ck_assert(!pb_web_guard_cookie(&guard, "alice", NOW, mixed));
}
END_TEST

START_TEST(test_changed_cookie_is_nobody)
{
    char cookie[PB_WEB_COOKIE_BYTES];
    (void)snprintf(cookie, sizeof cookie, "%s", cookie_of("alice", NOW));
    for (size_t i = 0; cookie[i] != '\0'; i++) {
        const char was = cookie[i];
        cookie[i] = was == '0' ? '1' : '0';
        ck_assert_msg(ask((struct pb_web_claim){.cookie = cookie, .origin = OWN_PAGE}) ==
                          PB_WEB_UNKNOWN,
                      "%s", cookie);
        cookie[i] = was;
    }
    static const char *const broken[] = {"__Host-pushbroom=",
                                         "__Host-pushbroom=alice",
                                         "__Host-pushbroom=..",
                                         "__Host-pushbroom=alice.1800000001",
                                         ";;; ;",
                                         "__Host-pushbroom"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        ck_assert_msg(ask((struct pb_web_claim){.cookie = broken[i], .origin = OWN_PAGE}) ==
                          PB_WEB_UNKNOWN,
                      "%s", broken[i]);
    char large[400] = "__Host-pushbroom=";
    memset(large + strlen(large), 'a', 300);
    ck_assert_int_eq(ask((struct pb_web_claim){.cookie = large, .origin = OWN_PAGE}),
                     PB_WEB_UNKNOWN);
}
END_TEST

START_TEST(test_proxy_names_its_user)
{
    const char *const wrong[] = {
        "", "a b", "a\nb", "a\x7f",
        "a-name-that-is-far-too-long-to-be-one-of-a-person-at-any-site-ok"};
    const struct pb_web_claim claim = {.user = "carol@site", .origin = OWN_PAGE};
    ck_assert_int_eq(ask(claim), PB_WEB_UNKNOWN); /* no proxy is trusted */
    guard = (struct pb_web_guard){.user_header = "X-Remote-User"};
    ck_assert_int_eq(ask(claim), PB_WEB_KNOWN);
    ck_assert_str_eq(who, "carol@site");
    ck_assert_str_eq(proof, "proxy");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(ask((struct pb_web_claim){.user = wrong[i], .origin = OWN_PAGE}) ==
                          PB_WEB_UNKNOWN,
                      "%s", wrong[i]);
    ck_assert_int_eq(ask((struct pb_web_claim){.authorization = "Bearer " ALICE}), PB_WEB_FOREIGN);
}
END_TEST

START_TEST(test_bad_file_of_tokens_is_reported)
{
    static const struct {
        const char *text, *message;
    } bad[] = {{"\n# nobody\n", "no line"},
               {"alice short\n", "line 1 of the tokens has a token of less than 20"},
               {"\nalice\n", "line 2 of the tokens is not NAME TOKEN"},
               {"a.b " ALICE "\n", "line 1 of the tokens is not NAME TOKEN"},
               {"alice " ALICE " x\n", "line 1 of the tokens is not NAME TOKEN"},
               {"# alice x\nalice " ALICE "\nbob " BOB "\nalice\t" BOB "x\n",
                "line 4 of the tokens has the name of another line"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_tokens(bad[i].text);
        err = (struct pb_err){0};
        ck_assert_int_lt(pb_web_guard_check(&guard, &err), 0);
        ck_assert_msg(strstr(err.msg, bad[i].message) != NULL, "%s", err.msg);
    }
    write_tokens("alice " ALICE "\n");
    ck_assert_int_eq(chmod(path, 0604), 0);
    ck_assert_int_eq(ask((struct pb_web_claim){.authorization = "Bearer " ALICE}), PB_WEB_BROKEN);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("web_guard");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, test_token_names_its_person);
    tcase_add_test(all, test_wrong_token_is_nobody);
    tcase_add_test(all, test_other_pages_are_refused);
    tcase_add_test(all, test_reading_needs_no_origin);
    tcase_add_test(all, test_cookie_ends);
    tcase_add_test(all, test_changed_cookie_is_nobody);
    tcase_add_test(all, test_proxy_names_its_user);
    tcase_add_test(all, test_bad_file_of_tokens_is_reported);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
