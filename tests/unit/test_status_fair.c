/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_fair.h"

#include "run_suite.h"

#include <check.h>
#include <stdlib.h>

#define STEP_US 500

/* A user with one client that always has a request. */
struct user {
    struct pb_account *account;
    struct pb_status_client client;
    int64_t served_us;
};

static void ask(struct user *user)
{
    if (user->client.is_ready)
        return;
    TAILQ_INSERT_TAIL(&user->account->ready, &user->client, ready);
    user->client.is_ready = true;
}

static void begin(struct pb_fair *fair, struct user *users, int n)
{
    pb_fair_init(fair);
    for (int i = 0; i < n; i++) {
        users[i] = (struct user){.account = pb_fair_account(fair, 1000 + i)};
        ck_assert_ptr_nonnull(users[i].account);
        users[i].client.account = users[i].account;
    }
}

/* One turn; who had it, or NULL. */
static struct user *take_turn(struct pb_fair *fair, struct user *users, int n, int64_t now_ms)
{
    struct pb_status_client *client = pb_fair_next(fair, now_ms);
    for (int i = 0; client != NULL && i < n; i++) {
        if (client != &users[i].client)
            continue;
        pb_fair_charge(users[i].account, STEP_US);
        users[i].served_us += STEP_US;
        return &users[i];
    }
    ck_assert_ptr_null(client);
    return NULL;
}

/* All send requests without end from from_ms to until_ms. */
static void ask_without_end(struct pb_fair *fair, struct user *users, int n, int64_t from_ms,
                            int64_t until_ms)
{
    for (int64_t now_ms = from_ms; now_ms < until_ms; now_ms++) {
        for (int turns = 0; turns < 1000 / STEP_US; turns++) { /* a millisecond of the processor */
            for (int i = 0; i < n; i++)
                ask(&users[i]);
            if (take_turn(fair, users, n, now_ms) == NULL)
                break;
        }
    }
}

START_TEST(who_used_little_comes_before_who_asks_without_end)
{
    struct pb_fair fair;
    struct user users[5];
    begin(&fair, users, 5);
    ask_without_end(&fair, users, 4, 0, 50);
    for (int64_t now_ms = 50; now_ms < 60; now_ms++) {
        for (int i = 0; i < 5; i++)
            ask(&users[i]);
        ck_assert_ptr_eq(take_turn(&fair, users, 5, now_ms), &users[4]);
    }
    pb_fair_fini(&fair);
}
END_TEST

START_TEST(endless_requests_share_part_of_a_core_equally)
{
    struct pb_fair fair;
    struct user users[4];
    begin(&fair, users, 4);
    ask_without_end(&fair, users, 4, 0, 2000); /* the share for immediate use is used up */
    int64_t all_us = 0;
    for (int i = 0; i < 4; i++)
        users[i].served_us = 0;
    ask_without_end(&fair, users, 4, 2000, 12000);
    for (int i = 0; i < 4; i++)
        all_us += users[i].served_us;
    ck_assert_int_le(all_us, 10000 * 10 * PB_FAIR_SHARE_PERCENT + 4 * STEP_US);
    ck_assert_int_ge(all_us, 10000 * 10 * PB_FAIR_SHARE_PERCENT * 9 / 10);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_ge(users[i].served_us, all_us / 4 - 10 * STEP_US);
        ck_assert_int_le(users[i].served_us, all_us / 4 + 10 * STEP_US);
    }
    pb_fair_fini(&fair);
}
END_TEST

START_TEST(a_user_alone_has_the_whole_share)
{
    struct pb_fair fair;
    struct user users[3];
    begin(&fair, users, 3); /* two of them send nothing */
    ask_without_end(&fair, users, 1, 0, 2000);
    users[0].served_us = 0;
    ask_without_end(&fair, users, 1, 2000, 12000);
    ck_assert_int_ge(users[0].served_us, 10000 * 10 * PB_FAIR_SHARE_PERCENT * 9 / 10);
    pb_fair_fini(&fair);
}
END_TEST

START_TEST(who_waits_is_told_when_its_turn_comes)
{
    struct pb_fair fair;
    struct user users[2];
    begin(&fair, users, 2);
    ck_assert_int_eq(pb_fair_due_ms(&fair, 0), -1);
    ask(&users[0]);
    ck_assert_int_eq(pb_fair_due_ms(&fair, 0), 0);
    pb_fair_charge(users[0].account, PB_FAIR_BURST_US + 10 * 1000);
    int due_ms = pb_fair_due_ms(&fair, 0);
    ck_assert_int_gt(due_ms, 0);
    ck_assert_ptr_null(pb_fair_next(&fair, due_ms - 2));
    ck_assert_ptr_eq(pb_fair_next(&fair, due_ms), &users[0].client);
    pb_fair_fini(&fair);
}
END_TEST

START_TEST(idle_accounts_are_forgotten_when_share_is_full)
{
    struct pb_fair fair;
    struct user users[2];
    begin(&fair, users, 2);
    users[1].account->n_clients = 1;
    pb_fair_charge(users[0].account, 1000);
    pb_fair_sweep(&fair, 0);
    ck_assert_ptr_eq(pb_fair_account(&fair, 1000), users[0].account);
    pb_fair_sweep(&fair, 1000);
    ck_assert_ptr_eq(TAILQ_FIRST(&fair.accounts), users[1].account);
    ck_assert_ptr_null(TAILQ_NEXT(users[1].account, turn));
    pb_fair_fini(&fair);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("status_fair");
    TCase *tcase = tcase_create("status_fair");
    tcase_add_test(tcase, who_used_little_comes_before_who_asks_without_end);
    tcase_add_test(tcase, endless_requests_share_part_of_a_core_equally);
    tcase_add_test(tcase, a_user_alone_has_the_whole_share);
    tcase_add_test(tcase, who_waits_is_told_when_its_turn_comes);
    tcase_add_test(tcase, idle_accounts_are_forgotten_when_share_is_full);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
