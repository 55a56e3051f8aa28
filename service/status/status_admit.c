/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Limits apply when a connection is accepted: one per user, one for all users, and some
 * connections are reserved for administrators. When a limit is reached, the connection of the same
 * user (or of the user with most connections) that was idle for longest is closed, unless it
 * watches. The first connections of a user are always accepted: the user with most connections
 * loses one, idle or not.
 *
 * A refusal is cheap: a flood of connections is taken from the queue as fast as they arrive,
 * because admitted clients wait in the same queue. */
#include "service/base/log.h"
#include "service/status/status_loop.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS_A_ROUND 64
#define TENURE_MS       250 /* a connection is not closed as idle before this time */

static bool is_idle(const struct pb_status *status, const struct pb_status_client *client)
{
    return !client->dead && !client->watches && !client->later && !client->is_ready &&
           !client->in_call && !client->last && STAILQ_EMPTY(&client->out) &&
           status->now_ms - client->request_ms >= TENURE_MS;
}

/* Order for closing idle clients: first a client that never sent a request, then the one with the
 * oldest last request. */
static bool goes_before(const struct pb_status_client *a, const struct pb_status_client *b)
{
    if ((a->served == 0) != (b->served == 0))
        return a->served == 0;
    return a->request_ms < b->request_ms;
}

static bool make_room(struct pb_status *status, struct pb_account *account)
{
    struct pb_status_client *client, *idle = NULL;
    if (account->crowded_ms == status->now_ms)
        return false; /* no client becomes idle within a round */
    TAILQ_FOREACH(client, &status->clients, all)
    {
        if (client->account == account && is_idle(status, client) &&
            (idle == NULL || goes_before(client, idle)))
            idle = client;
    }
    if (idle == NULL) {
        account->crowded_ms = status->now_ms;
        return false;
    }
    pb_status_refuse(status, idle, PB_E_SERVICE_BUSY, PB_RPC_JOB_ERROR,
                     "the service has too many clients; you were idle longest");
    pb_status_drop(status, idle); /* drops bytes that cannot be sent immediately */
    return true;
}

/* Order for closing clients that are not idle: the lowest first; -1: it stays. */
static int rank(const struct pb_status_client *client)
{
    if (client->dead || client->later)
        return -1;
    return client->watches ? 2 : client->served != 0;
}

static bool take_place(struct pb_status *status, const struct pb_account *from)
{
    struct pb_status_client *client, *first = NULL;
    TAILQ_FOREACH(client, &status->clients, all)
    {
        if (client->account == from && rank(client) >= 0 &&
            (first == NULL || rank(client) < rank(first)))
            first = client;
    }
    if (first == NULL)
        return false;
    pb_status_refuse(status, first, PB_E_SERVICE_BUSY, PB_RPC_JOB_ERROR,
                     "the service has too many clients; another user needs the place");
    pb_status_drop(status, first);
    return true;
}

static struct pb_account *largest(struct pb_status *status)
{
    struct pb_account *account, *most = NULL;
    TAILQ_FOREACH(account, &status->fair.accounts, turn)
    {
        if (most == NULL || account->n_clients > most->n_clients)
            most = account;
    }
    return most;
}

/* Maximum number of connections of all users together when this user connects. */
static int most_clients(const struct pb_account *account)
{
    return PB_STATUS_CLIENTS_MAX + (account->is_privileged ? PB_STATUS_RESERVE : 0);
}

static bool has_room(struct pb_status *status, struct pb_account *account)
{
    if (account->n_clients >= PB_STATUS_USER_CLIENTS_MAX && !make_room(status, account))
        return false;
    if (atomic_load(&status->n_clients) < most_clients(account))
        return true;
    struct pb_account *most_used = largest(status);
    if (make_room(status, most_used))
        return true;
    return account->n_clients < PB_STATUS_USER_PLACES &&
           most_used->n_clients > PB_STATUS_USER_PLACES && take_place(status, most_used);
}

static struct pb_message *refusal_when_full(void)
{
    size_t bytes = 0;
    struct pb_json *json = pb_status_refusal(
        PB_E_SERVICE_BUSY, PB_RPC_JOB_ERROR,
        "the service has too many clients of your user; close some, or try again");
    const char *text = pb_json_text(json, &bytes);
    struct pb_message *message = text ? pb_message_create(text, bytes) : NULL;
    pb_json_destroy(json);
    return message;
}

static void turn_away(struct pb_status *status, int fd, const struct pb_peer *peer)
{
    if (status->full == NULL)
        status->full = refusal_when_full();
    if (status->full != NULL)
        (void)send(fd, status->full->text, status->full->bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (pb_status_may_tell(status, &status->told_full_ms))
        pb_log(PB_LOG_WARNING, "status: user %lld has too many connections; new ones are sent away",
               (long long)peer->uid);
    (void)close(fd);
}

/* Returns true if has_room would fail again in the same round. */
static bool is_known_full(struct pb_status *status, const struct pb_account *account)
{
    if (account->n_clients >= PB_STATUS_USER_CLIENTS_MAX)
        return account->crowded_ms == status->now_ms;
    return account->n_clients >= PB_STATUS_USER_PLACES &&
           atomic_load(&status->n_clients) >= most_clients(account) &&
           largest(status)->crowded_ms == status->now_ms;
}

/* Admits a connection. Reads before it makes room: a client that has disconnected already
 * displaces no other client, and a client that has sent no data needs no buffer. */
static void admit(struct pb_status *status, int fd)
{
    char bytes[4096];
    struct pb_peer peer;
    struct pb_account *account = NULL;
    if (pb_peer_of(fd, &peer) == 0)
        account = pb_fair_account(&status->fair, peer.uid);
    if (account == NULL) {
        (void)close(fd);
        return;
    }
    if (account->asked_ms != status->now_ms) {
        account->asked_ms = status->now_ms;
        account->is_privileged = status->options.is_privileged(status->options.user, &peer);
    }
    if (is_known_full(status, account)) {
        turn_away(status, fd, &peer);
        return;
    }
    ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        (void)close(fd);
        return;
    }
    if (!has_room(status, account)) {
        turn_away(status, fd, &peer);
        return;
    }
    struct pb_status_client *client =
        pb_client_conn_create(fd, status->epoll, &peer, account, status->now_ms);
    if (client == NULL) {
        (void)close(fd);
        return;
    }
    TAILQ_INSERT_TAIL(&status->clients, client, all);
    account->n_clients++;
    atomic_fetch_add(&status->n_clients, 1);
    if (n > 0 && pb_client_conn_add(client, bytes, (size_t)n, status->now_ms) != 0)
        pb_status_drop(status, client);
    pb_status_settle(status, client);
}

void pb_status_accept(struct pb_status *status)
{
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        int64_t again_ms = 0;
        const int fd = pb_socket_bind_accept(status->bound.fd, SOCK_NONBLOCK, &again_ms);
        if (fd >= 0) {
            admit(status, fd);
            continue;
        }
        if (again_ms != 0 && status->accept_at_ms == 0) {
            if (pb_status_may_tell(status, &status->told_full_ms))
                pb_log(PB_LOG_WARNING, "status: cannot take a client: %s", strerror(-fd));
            (void)pb_status_listen(status, false);
            status->accept_at_ms = again_ms;
        }
        return;
    }
}
