/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_FAIR_H
#define PB_STATUS_FAIR_H
/* Private to the status socket: accounts and limits per user, and fair scheduling between users.
 * The user with the least processor time is served first, one step per turn; the clients of a user
 * are served round robin. Users with continuous requests share PB_FAIR_SHARE_PERCENT of a core in
 * equal parts: a user that has used its part waits until it has some again, so that the thread has
 * time for occasional requests. Thread: status. */
#include "service/status/status_client.h"

#define PB_FAIR_SHARE_PERCENT 25                /* share of one core, for all users over time */
#define PB_FAIR_BURST_US      100000            /* time that a user may use in a burst */
#define PB_FAIR_QUEUED_MAX    (4 * 1024 * 1024) /* bytes of unread replies of a user */

struct pb_account {
    TAILQ_ENTRY(pb_account) turn;
    int64_t uid;
    int n_clients, n_watchers, n_later; /* n_later: calls that are answered later */
    size_t queued_bytes;
    int64_t tokens_us;
    bool reads; /* a call of the user waits for the job store: the others wait, so that one user
                 * does not fill the memory with lists */
    bool is_privileged; /* value in the round asked_ms */
    int64_t asked_ms;
    int64_t crowded_ms; /* the round in which none of its clients was idle */
    struct pb_client_queue ready;
};
TAILQ_HEAD(pb_account_queue, pb_account);

struct pb_fair {
    struct pb_account_queue accounts; /* longest waiting first */
    int64_t refilled_ms;
};

void pb_fair_init(struct pb_fair *fair);
void pb_fair_fini(struct pb_fair *fair);
/* Finds the user's account, or makes it; NULL = out of memory. Valid while it has clients. */
struct pb_account *pb_fair_account(struct pb_fair *fair, int64_t uid);
/* Takes the next client out of its queue; NULL if no client may be served now. Its account moves to
 * the end of the queue. */
struct pb_status_client *pb_fair_next(struct pb_fair *fair, int64_t now_ms);
void pb_fair_charge(struct pb_account *account, int64_t used_us);
/* Milliseconds until a waiting client may be served; -1 if no client waits. */
int pb_fair_due_ms(struct pb_fair *fair, int64_t now_ms);
/* Deletes accounts without clients whose share is complete again. */
void pb_fair_sweep(struct pb_fair *fair, int64_t now_ms);
#endif
