/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Requests are served one step at a time in the order of status_fair.c; a client with unread
 * replies is not served. */
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/status/status_loop.h"
#include "service/status/status_overlay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#define ROUND_US 1000
#define TELL_MS  60000

bool pb_status_may_tell(const struct pb_status *status, int64_t *told_ms)
{
    bool may = *told_ms == 0 || status->now_ms - *told_ms >= TELL_MS;
    if (may)
        *told_ms = status->now_ms;
    return may;
}

void pb_status_drop(struct pb_status *status, struct pb_status_client *client)
{
    (void)status;
    if (client->is_ready)
        TAILQ_REMOVE(&client->account->ready, client, ready);
    client->is_ready = false;
    client->dead = true;
}

/* The next client may have rows read. */
static void end_rows(struct pb_status *status, struct pb_status_client *client)
{
    client->rows_ticket = 0;
    status->rows_ticket = 0;
}

void pb_status_bury(struct pb_status *status)
{
    struct pb_status_client *client = TAILQ_FIRST(&status->clients);
    while (client != NULL) {
        struct pb_status_client *next = TAILQ_NEXT(client, all);
        if (client->dead) {
            TAILQ_REMOVE(&status->clients, client, all);
            if (client->is_ready)
                TAILQ_REMOVE(&client->account->ready, client, ready);
            client->account->n_clients--;
            client->account->n_watchers -= client->watches;
            client->account->n_later -= client->later;
            if (client->reads) {
                client->account->reads = false;
                status->options.forget(status->options.user, client->call.ticket);
            }
            if (client->rows_ticket != 0)
                end_rows(status, client);
            status->n_watchers -= client->watches;
            atomic_fetch_sub(&status->n_clients, 1);
            pb_client_conn_destroy(client);
        }
        client = next;
    }
}

void pb_status_settle(struct pb_status *status, struct pb_status_client *client)
{
    if (client->dead)
        return;
    bool silent = STAILQ_EMPTY(&client->out);
    bool has_more = client->in_call || pb_client_conn_has_line(client);
    if (silent && !client->later && !client->reads && has_more && !client->last &&
        !client->is_ready) {
        TAILQ_INSERT_TAIL(&client->account->ready, client, ready);
        client->is_ready = true;
    }
    bool over = (client->last && silent) ||
                (client->eof && silent && !has_more && !client->later && !client->watches) ||
                (client->gone && !has_more && !client->later);
    bool reads = !client->eof && !client->last && !has_more && !client->later;
    if (over || pb_client_conn_watch(client, reads) != 0)
        pb_status_drop(status, client);
}

static void send_message(struct pb_status *status, struct pb_status_client *client,
                         struct pb_message *message)
{
    int rc = message ? pb_client_conn_send(client, message, status->now_ms) : -ENOMEM;
    if (rc == -ENOBUFS && pb_status_may_tell(status, &status->told_slow_ms))
        pb_log(PB_LOG_WARNING,
               "status: a client of user %lld does not read its replies and is "
               "dropped",
               (long long)client->call.peer.uid);
    if (rc != 0)
        pb_status_drop(status, client);
}

static void send_json(struct pb_status *status, struct pb_status_client *client,
                      struct pb_json *json)
{
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    struct pb_message *message = text ? pb_message_create(text, bytes) : NULL;
    send_message(status, client, message);
    pb_message_put(message);
}

struct pb_json *pb_status_refusal(enum pb_code code, int rpc_code, const char *text)
{
    struct pb_request request = {0};
    struct pb_fault fault = {.rpc_code = rpc_code};
    struct pb_err err = {0};
    struct pb_json *json = pb_json_create(false);
    (void)snprintf(fault.message, sizeof fault.message, "%s", text);
    (void)pb_fail(&err, code, "%s", text);
    if (code == PB_E_SERVICE_PROTOCOL)
        pb_reply_fault(json, &request, &fault);
    else
        pb_reply_error(json, &request, &err);
    return json;
}

void pb_status_refuse(struct pb_status *status, struct pb_status_client *client, enum pb_code code,
                      int rpc_code, const char *text)
{
    struct pb_json *json = pb_status_refusal(code, rpc_code, text);
    client->last = true;
    send_json(status, client, json);
    pb_json_destroy(json);
    pb_status_settle(status, client);
}

/* --- serving --- */

static void end_call(struct pb_status_client *client)
{
    pb_json_destroy(client->call.reply);
    pb_job_listing_free(client->call.listing);
    pb_reading_destroy(client->call.reading);
    pb_request_fini(&client->request);
    client->call.reply = NULL;
    client->call.listing = NULL;
    client->call.reading = NULL;
    client->call.request = NULL;
    client->in_call = false;
    client->served++;
}

static void reply(struct pb_status *status, struct pb_status_client *client)
{
    if (client->request.wants_reply)
        send_json(status, client, client->call.reply);
    end_call(client);
}

/* The first watcher of a user is always admitted. */
static bool may_watch(const struct pb_status *status, const struct pb_status_client *client)
{
    int n = client->account->n_watchers;
    return client->watches || n == 0 ||
           (n < PB_STATUS_USER_WATCHERS_MAX && status->n_watchers < PB_STATUS_WATCHERS_MAX);
}

/* Begins the call of the next line. Returns false if the line is not a request and was answered. */
static bool begin_call(struct pb_status *status, struct pb_status_client *client)
{
    struct pb_fault fault;
    size_t bytes = 0;
    const char *line = pb_client_conn_line(client, &bytes);
    if (line == NULL)
        return false;
    client->request_ms = status->now_ms;
    int rc = pb_request_parse(line, bytes, &client->request, &fault);
    pb_client_conn_drop_line(client);
    client->call.reply = pb_json_create(false);
    if (rc != 0) {
        /* A notification gets no answer, but a line that is not a request gets one. */
        pb_reply_fault(client->call.reply, &client->request, &fault);
        send_json(status, client, client->call.reply);
        end_call(client);
        return false;
    }
    client->call = (struct pb_call){.request = &client->request,
                                    .peer = client->call.peer,
                                    .fd = client->fd,
                                    .ticket = ++status->tickets,
                                    .clients = atomic_load(&status->n_clients),
                                    .may_watch = may_watch(status, client),
                                    .may_wait = client->account->n_later < PB_STATUS_USER_CALLS_MAX,
                                    .since = -1,
                                    .reply = client->call.reply};
    client->in_call = true;
    return true;
}

/* Starts the watch at the first step, so that no event is missed between the list and the watch. */
static void follow_watch(struct pb_status *status, struct pb_status_client *client)
{
    if (!client->call.watches)
        return;
    (void)memcpy(client->watch, client->call.watch, sizeof client->watch);
    client->since = client->call.since;
    client->seen_mark = 0;
    if (!client->watches) {
        client->watches = true;
        client->account->n_watchers++;
        status->n_watchers++;
    }
}

/* No bytes are read here until the call is over: the checker reads the byte with the descriptor. */
static void ask_for_descriptor(struct pb_status *status, struct pb_status_client *client)
{
    struct pb_json *json = pb_json_create(false);
    pb_descriptor_print(json);
    if (pb_client_conn_watch(client, false) != 0)
        pb_status_drop(status, client);
    else
        send_json(status, client, json);
    pb_json_destroy(json);
}

static void serve_one(struct pb_status *status, struct pb_status_client *client)
{
    if (!client->in_call && !begin_call(status, client))
        return;
    enum pb_served served = status->options.serve(status->options.user, &client->call);
    follow_watch(status, client);
    if (served == PB_SERVED) {
        reply(status, client);
    } else if (served == PB_SERVED_READ) {
        client->reads = true;
        client->account->reads = true;
    } else if (served == PB_SERVED_LATER) {
        client->later = true;
        client->account->n_later++;
        if (client->call.wants_descriptor)
            ask_for_descriptor(status, client);
    } else { /* a long reply is ended before the user's next one begins: one buffer, not many */
        TAILQ_INSERT_HEAD(&client->account->ready, client, ready);
        client->is_ready = true;
    }
}

int64_t pb_status_cpu_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void pb_status_serve_round(struct pb_status *status)
{
    struct pb_status_client *client;
    int64_t start_us = pb_status_cpu_us(), last_us = start_us;
    while (last_us - start_us < ROUND_US &&
           (client = pb_fair_next(&status->fair, status->now_ms)) != NULL) {
        struct pb_account *account = client->account;
        serve_one(status, client);
        pb_status_settle(status, client);
        int64_t now_us = pb_status_cpu_us();
        pb_fair_charge(account, now_us - last_us);
        last_us = now_us;
    }
}

void pb_status_finish(struct pb_status *status, uint64_t ticket, const struct pb_outcome *outcome)
{
    struct pb_status_client *client;
    TAILQ_FOREACH(client, &status->clients, all)
    {
        if (!client->dead && client->later && client->call.ticket == ticket)
            break;
    }
    if (client == NULL)
        return; /* the client has disconnected */
    client->later = false;
    client->account->n_later--;
    status->options.finish(status->options.user, &client->call, outcome);
    reply(status, client);
    pb_status_settle(status, client);
}

/* Puts a client first, whose call continues. */
static void resume(struct pb_status *status, struct pb_status_client *client)
{
    client->reads = false;
    client->account->reads = false;
    TAILQ_INSERT_HEAD(&client->account->ready, client, ready);
    client->is_ready = true;
    pb_status_settle(status, client);
}

void pb_status_resume(struct pb_status *status, struct pb_reading *reading)
{
    struct pb_status_client *client;
    TAILQ_FOREACH(client, &status->clients, all)
    {
        if (!client->dead && client->reads && client->call.ticket == reading->ticket)
            break;
    }
    if (client == NULL) { /* the client has disconnected, or did not wait */
        pb_reading_destroy(reading);
        return;
    }
    pb_fair_charge(client->account, reading->cost_us);
    client->call.reading = reading;
    resume(status, client);
}

void pb_status_resume_all(struct pb_status *status)
{
    struct pb_status_client *client;
    TAILQ_FOREACH(client, &status->clients, all)
    {
        if (client->rows_ticket != 0)
            end_rows(status, client);
        if (client->dead || !client->reads)
            continue;
        status->options.forget(status->options.user, client->call.ticket);
        client->call.is_unanswered = true;
        resume(status, client);
    }
}

bool pb_status_reads(const struct pb_status *status)
{
    const struct pb_status_client *client;
    TAILQ_FOREACH(client, &status->clients, all)
    {
        if (!client->dead && client->reads)
            return true;
    }
    return false;
}

void pb_status_spread(struct pb_status *status, const struct pb_job *job)
{
    struct pb_status_client *client;
    struct pb_message *message = NULL;
    status->options.on_event(status->options.user, job, false);
    TAILQ_FOREACH(client, &status->clients, all)
    {
        if (client->dead || client->last || !client->watches ||
            (client->watch[0] != '\0' && strcmp(client->watch, job->id) != 0))
            continue;
        if (message == NULL) {
            size_t bytes = 0;
            struct pb_json *json = pb_json_create(false);
            pb_event_print(json, job);
            const char *text = pb_json_text(json, &bytes);
            message = text ? pb_message_create(text, bytes) : NULL;
            pb_json_destroy(json);
        }
        send_message(status, client, message);
        pb_status_settle(status, client);
    }
    pb_message_put(message);
}

/* --- rows of the journal --- */

static bool wants_rows(const struct pb_status_client *client, uint64_t mark)
{
    return !client->dead && !client->last && client->watches && client->since >= 0 &&
           !client->in_call && client->seen_mark != mark && STAILQ_EMPTY(&client->out);
}

/* A client with unread rows gets no more: its position in the journal is kept, not a backlog. */
void pb_status_replay(struct pb_status *status)
{
    struct pb_status_client *client;
    if (status->n_watchers == 0 || status->rows_ticket != 0 || status->rows_failed)
        return;
    const uint64_t mark = status->options.journal_mark(status->options.user);
    TAILQ_FOREACH(client, &status->clients, all)
    {
        if (wants_rows(client, mark))
            break;
    }
    if (client == NULL)
        return;
    const uint64_t ticket = ++status->tickets;
    if (status->options.read_rows(status->options.user, ticket, client->since, client->watch) < 0)
        return;
    status->rows_ticket = client->rows_ticket = ticket;
    client->rows_mark = mark;
    TAILQ_REMOVE(&status->clients, client, all); /* the others are next */
    TAILQ_INSERT_TAIL(&status->clients, client, all);
}

void pb_status_rows(struct pb_status *status, const struct pb_reading *reading)
{
    struct pb_status_client *client;
    status->rows_failed = reading->rc != 0;
    TAILQ_FOREACH(client, &status->clients, all)
    {
        if (client->rows_ticket == reading->ticket)
            break;
    }
    if (client == NULL)
        return;
    end_rows(status, client);
    /* A call may have begun another watch meanwhile. */
    if (reading->rc != 0 || client->in_call || client->since != reading->since ||
        strcmp(client->watch, reading->text) != 0)
        return;
    if (reading->is_lost) /* the reply to its next watch has `gone` */
        client->last = true;
    for (int i = 0; i < reading->n_rows && !client->dead && !client->last; i++) {
        send_json(status, client, reading->rows[i].json);
        client->since = reading->rows[i].seq;
    }
    if (reading->n_rows < PB_READING_ROWS)
        client->seen_mark = client->rows_mark;
    pb_fair_charge(client->account, reading->cost_us);
    pb_status_settle(status, client);
}

/* --- reading --- */

void pb_status_client_event(struct pb_status *status, struct pb_status_client *client,
                            unsigned events)
{
    int rc = 0;
    if (client->dead)
        return;
    if ((events & EPOLLOUT) != 0)
        rc = pb_client_conn_flush(client, status->now_ms);
    if (rc == 0 && (events & (EPOLLIN | EPOLLHUP)) != 0 && !client->eof &&
        !pb_client_conn_has_line(client))
        rc = pb_client_conn_read(client, status->now_ms);
    if (rc == -EFBIG) {
        pb_status_refuse(status, client, PB_E_SERVICE_PROTOCOL, PB_RPC_INVALID_REQUEST,
                         "a line over 65536 bytes");
        return;
    }
    if ((events & EPOLLHUP) != 0 && !client->gone) {
        /* epoll would report it again and again. Earlier requests are still served. */
        (void)epoll_ctl(client->epoll, EPOLL_CTL_DEL, client->fd, NULL);
        client->gone = client->eof = true;
    }
    if (rc != 0 || (events & EPOLLERR) != 0)
        pb_status_drop(status, client);
    pb_status_settle(status, client);
}

void pb_status_sweep(struct pb_status *status)
{
    struct pb_status_client *client;
    TAILQ_FOREACH(client, &status->clients, all)
    {
        if (client->dead || status->now_ms - client->moved_ms < PB_STATUS_STALL_MS)
            continue;
        if (!STAILQ_EMPTY(&client->out)) {
            if (pb_status_may_tell(status, &status->told_slow_ms))
                pb_log(PB_LOG_WARNING,
                       "status: a client of user %lld does not read its replies and is dropped",
                       (long long)client->call.peer.uid);
            pb_status_drop(status, client);
        } else if (client->n_line > client->n_whole && !pb_client_conn_has_line(client)) {
            pb_status_refuse(status, client, PB_E_SERVICE_PROTOCOL, PB_RPC_INVALID_REQUEST,
                             "a line that does not end");
        }
    }
}
