/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_fair.h"

#include <stdlib.h>

#define PER_MS_US (1000 * PB_FAIR_SHARE_PERCENT / 100)

void pb_fair_init(struct pb_fair *fair)
{
    TAILQ_INIT(&fair->accounts);
    fair->refilled_ms = 0;
}

void pb_fair_fini(struct pb_fair *fair)
{
    struct pb_account *account;
    while ((account = TAILQ_FIRST(&fair->accounts)) != NULL) {
        TAILQ_REMOVE(&fair->accounts, account, turn);
        free(account);
    }
}

struct pb_account *pb_fair_account(struct pb_fair *fair, int64_t uid)
{
    struct pb_account *account;
    TAILQ_FOREACH(account, &fair->accounts, turn)
    {
        if (account->uid == uid)
            return account;
    }
    account = calloc(1, sizeof *account);
    if (account == NULL)
        return NULL;
    account->uid = uid;
    account->tokens_us = PB_FAIR_BURST_US;
    TAILQ_INIT(&account->ready);
    TAILQ_INSERT_TAIL(&fair->accounts, account, turn);
    return account;
}

/* Number of users that share the processor time. */
static int64_t sharers(const struct pb_fair *fair)
{
    const struct pb_account *account;
    int64_t n = 0;
    TAILQ_FOREACH(account, &fair->accounts, turn)
    {
        n += account->tokens_us < PB_FAIR_BURST_US;
    }
    return n > 0 ? n : 1;
}

static void refill(struct pb_fair *fair, int64_t now_ms)
{
    struct pb_account *account;
    int64_t passed_ms = now_ms - fair->refilled_ms;
    if (passed_ms <= 0)
        return;
    int64_t part_us = passed_ms * PER_MS_US / sharers(fair);
    fair->refilled_ms = now_ms;
    TAILQ_FOREACH(account, &fair->accounts, turn)
    {
        account->tokens_us += part_us;
        if (account->tokens_us > PB_FAIR_BURST_US)
            account->tokens_us = PB_FAIR_BURST_US;
    }
}

static bool wants_a_turn(const struct pb_account *account)
{
    return !account->reads && !TAILQ_EMPTY(&account->ready) &&
           account->queued_bytes < PB_FAIR_QUEUED_MAX;
}

struct pb_status_client *pb_fair_next(struct pb_fair *fair, int64_t now_ms)
{
    struct pb_account *account = NULL, *other;
    refill(fair, now_ms);
    TAILQ_FOREACH(other, &fair->accounts, turn)
    {
        if (wants_a_turn(other) && other->tokens_us > 0 &&
            (account == NULL || other->tokens_us > account->tokens_us))
            account = other;
    }
    if (account == NULL)
        return NULL;
    struct pb_status_client *client = TAILQ_FIRST(&account->ready);
    TAILQ_REMOVE(&account->ready, client, ready);
    client->is_ready = false;
    TAILQ_REMOVE(&fair->accounts, account, turn);
    TAILQ_INSERT_TAIL(&fair->accounts, account, turn);
    return client;
}

void pb_fair_charge(struct pb_account *account, int64_t used_us)
{
    account->tokens_us -= used_us > 0 ? used_us : 1;
}

int pb_fair_due_ms(struct pb_fair *fair, int64_t now_ms)
{
    int64_t due = -1;
    struct pb_account *account;
    refill(fair, now_ms);
    int64_t n = sharers(fair);
    TAILQ_FOREACH(account, &fair->accounts, turn)
    {
        if (!wants_a_turn(account))
            continue;
        int64_t wait = account->tokens_us > 0 ? 0 : -account->tokens_us * n / PER_MS_US + 1;
        if (due < 0 || wait < due)
            due = wait;
    }
    return (int)due;
}

void pb_fair_sweep(struct pb_fair *fair, int64_t now_ms)
{
    struct pb_account *account = TAILQ_FIRST(&fair->accounts);
    refill(fair, now_ms);
    while (account != NULL) {
        struct pb_account *next = TAILQ_NEXT(account, turn);
        if (account->n_clients == 0 && account->tokens_us >= PB_FAIR_BURST_US) {
            TAILQ_REMOVE(&fair->accounts, account, turn);
            free(account);
        }
        account = next;
    }
}
