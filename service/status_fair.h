/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_FAIR_H
#define PB_STATUS_FAIR_H
/* Inside the status socket: what each user has and may have, and whose turn it is. Users take turns
 * with one step each, and the clients of a user among themselves; a user who has used up its share
 * of the processor waits until it has some again. Thread: status. */
#include "service/status_client.h"

#define PB_FAIR_SHARE_PERCENT 50                /* of one core, for one user over time */
#define PB_FAIR_BURST_US      100000            /* that it may use at once */
#define PB_FAIR_QUEUED_MAX    (4 * 1024 * 1024) /* bytes of unread replies of a user */

struct pb_account {
    TAILQ_ENTRY(pb_account) turn;
    int64_t uid;
    int n_clients, n_watchers, n_later; /* n_later: calls that the service works on */
    size_t queued_bytes;
    int64_t tokens_us, refilled_ms;
    struct pb_client_queue ready;
};
TAILQ_HEAD(pb_account_queue, pb_account);

struct pb_fair {
    struct pb_account_queue accounts; /* who waits longest first */
};

void pb_fair_init(struct pb_fair *fair);
void pb_fair_fini(struct pb_fair *fair);
/* The user's account, made if need be; NULL = out of memory. Valid while it has clients. */
struct pb_account *pb_fair_account(struct pb_fair *fair, int64_t uid, int64_t now_ms);
/* Takes the client whose turn it is out of its queue; NULL = nobody may go on now. Its account goes
 * to the end of the line. */
struct pb_status_client *pb_fair_next(struct pb_fair *fair, int64_t now_ms);
void pb_fair_charge(struct pb_account *account, int64_t used_us);
/* Milliseconds until somebody who waits may go on; -1 = nobody waits. */
int pb_fair_due_ms(struct pb_fair *fair, int64_t now_ms);
/* Forgets accounts without clients whose share is whole again. */
void pb_fair_sweep(struct pb_fair *fair, int64_t now_ms);
#endif
