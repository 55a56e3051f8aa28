/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * After a try that failed the list is requested again: it lacks events that expired meanwhile. */
#include "service/notify/target.h"

#include "config/base/clock.h"
#include "config/base/json_writer.h"
#include "config/notify_config.h"
#include "service/base/log.h"
#include "service/notify/cloud_event.h"
#include "service/notify/sender.h"
#include "service/status/client.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS        10000
#define LIST_EVENTS    16
#define LOOK_AGAIN_MS  60000 /* interval of lists without news */
#define FIRST_WAIT_MS  1000
#define SERVICE_MS     200 /* first wait for a service that is not running */
#define SERVICE_MAX_MS 5000
#define REFUSALS_MAX   5
#define SAY_AGAIN_MS   600000

struct pb_target {
    const struct pb_notify_config *notify;
    const struct pb_sender_kind *kind;
    void *sender;
    const char *socket;
    struct pb_news_board *news;
    const struct pb_stop *stop;
    pthread_t thread;
    pthread_mutex_t lock; /* protects client: another thread may hang it up */
    struct pb_client *client;
    int64_t service_ms; /* next wait for the service */
    bool service_told;  /* the service's absence was logged */
    /* State of the current event: */
    int64_t seq;
    int tries, refusals;
    int64_t said_ms; /* monotonic: when its failure was logged */
};

void pb_sent_fail(struct pb_sent_why *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
}

static const struct pb_sender_kind *kind_of(enum pb_notify_kind kind)
{
    static const struct pb_sender_kind *const kinds[PB_NOTIFY_KINDS] = {
        [PB_NOTIFY_EXEC] = &pb_sender_exec,
        [PB_NOTIFY_WEBHOOK] = &pb_sender_webhook,
        [PB_NOTIFY_MQTT] = &pb_sender_mqtt,
        [PB_NOTIFY_STAC] = &pb_sender_stac};
    return kinds[kind];
}

/* --- the service --- */

static void close_client(struct pb_target *target)
{
    (void)pthread_mutex_lock(&target->lock);
    pb_client_close(target->client);
    target->client = NULL;
    (void)pthread_mutex_unlock(&target->lock);
}

static int open_client(struct pb_target *target, struct pb_err *err)
{
    struct pb_client *client = NULL;
    int rc = target->client ? 0 : pb_client_open(target->socket, CALL_MS, err, &client);
    if (client == NULL)
        return rc;
    (void)pthread_mutex_lock(&target->lock);
    target->client = client;
    if (pb_stop_is_set(target->stop))
        pb_client_hang_up(client);
    (void)pthread_mutex_unlock(&target->lock);
    return 0;
}

/* Handles an error of the socket, or an error in the reply. The service may be stopped or started
 * at any time; therefore the error is logged once. */
static void miss_service(struct pb_target *target, const struct pb_err *err)
{
    if (err->code != PB_E_SERVICE_BUSY)
        close_client(target);
    if (pb_stop_is_set(target->stop))
        return;
    if (!target->service_told && err->code != PB_E_SERVICE_BUSY)
        pb_log(PB_LOG_WARNING, "%s: %s [%s]; the request is sent again", target->notify->name,
               err->msg, pb_code_id(err->code));
    target->service_told = target->service_told || err->code != PB_E_SERVICE_BUSY;
    pb_news_pause(target->news, target->service_ms);
    target->service_ms =
        target->service_ms * 2 < SERVICE_MAX_MS ? target->service_ms * 2 : SERVICE_MAX_MS;
}

/* params is destroyed. */
static int call(struct pb_target *target, const char *method, struct pb_json *params,
                struct pb_json_value **out_reply, const struct pb_json_value **out_result)
{
    struct pb_err err = {0};
    const char *text = pb_json_text(params, NULL);
    int rc = text ? open_client(target, &err) : pb_fail(&err, PB_E_MEMORY, "out of memory");
    rc = rc ? rc : pb_client_call(target->client, method, text, &err, out_reply, out_result);
    pb_json_destroy(params);
    if (rc != 0) {
        miss_service(target, &err);
        return rc;
    }
    if (target->service_told)
        pb_log(PB_LOG_NOTICE, "%s: the service answers", target->notify->name);
    target->service_told = false;
    target->service_ms = SERVICE_MS;
    return 0;
}

/* Requests the waiting events; *out_reply must be released. */
static int list(struct pb_target *target, struct pb_json_value **out_reply,
                const struct pb_json_value **out_events)
{
    const struct pb_json_value *result = NULL;
    struct pb_json *params = pb_json_create(false);
    pb_json_object(params, NULL);
    pb_json_string(params, "target", target->notify->name);
    pb_json_int(params, "limit", LIST_EVENTS);
    pb_json_end(params);
    int rc = call(target, "event.list", params, out_reply, &result);
    if (rc == 0)
        *out_events = pb_json_get(result, "events", NULL);
    return rc;
}

/* Repeats until the service has the acknowledgement, or the program ends; otherwise the event
 * would be sent again. */
static bool acknowledge(struct pb_target *target, int64_t seq, bool given_up)
{
    while (!pb_stop_is_set(target->stop)) {
        struct pb_json_value *reply = NULL;
        const struct pb_json_value *result = NULL;
        struct pb_json *params = pb_json_create(false);
        pb_json_object(params, NULL);
        pb_json_string(params, "target", target->notify->name);
        pb_json_int(params, "seq", seq);
        pb_json_bool(params, "given_up", given_up);
        pb_json_end(params);
        if (call(target, "event.ack", params, &reply, &result) == 0) {
            pb_json_release(reply);
            return true;
        }
    }
    return false;
}

/* --- an event --- */

/* Doubles the wait each time. */
static int64_t wait_of(const struct pb_target *target, int64_t asked_ms)
{
    int64_t longest = target->notify->retry_ms, wait_ms = FIRST_WAIT_MS;
    for (int i = 1; i < target->tries && wait_ms < longest; i++)
        wait_ms *= 2;
    wait_ms = wait_ms < longest ? wait_ms : longest;
    return wait_ms > asked_ms ? wait_ms : asked_ms;
}

static void say_failure(struct pb_target *target, const struct pb_letter *letter,
                        const struct pb_sent_why *why, int64_t wait_ms)
{
    int64_t now_ms = pb_clock_mono_ms();
    if (target->tries > 1 && now_ms - target->said_ms < SAY_AGAIN_MS)
        return;
    target->said_ms = now_ms;
    pb_log(PB_LOG_WARNING, "%s: %s %s is not delivered: %s; tried again in %.1f s",
           target->notify->name, letter->event, letter->id, why->text, (double)wait_ms / 1000);
}

/* Returns true if the next event may follow. */
static bool take_result(struct pb_target *target, const struct pb_letter *letter, enum pb_sent sent,
                        const struct pb_sent_why *why)
{
    int64_t wait_ms = wait_of(target, why->wait_ms);
    if (sent == PB_SENT && target->tries > 1)
        pb_log(PB_LOG_NOTICE, "%s: %s is delivered after %d tries", target->notify->name,
               letter->id, target->tries);
    else if (sent == PB_SENT)
        pb_log(PB_LOG_DEBUG, "%s: %s %s is delivered", target->notify->name, letter->event,
               letter->id);
    if (sent == PB_SENT)
        return acknowledge(target, target->seq, false);
    if (pb_stop_is_set(target->stop))
        return false;
    target->refusals += sent == PB_SENT_REFUSED;
    if (target->refusals >= REFUSALS_MAX) {
        pb_log(PB_LOG_ERROR, "%s: %s %s is refused and given up after %d tries: %s [%s]",
               target->notify->name, letter->event, letter->id, target->tries, why->text,
               pb_code_id(PB_E_NOTIFY_REFUSED));
        return acknowledge(target, target->seq, true);
    }
    say_failure(target, letter, why, wait_ms);
    pb_news_pause(target->news, wait_ms);
    return false;
}

static bool deliver(struct pb_target *target, const struct pb_json_value *event)
{
    struct pb_sent_why why = {.wait_ms = 0};
    struct pb_letter letter = {.id = "?", .event = "?"};
    int64_t seq = 0;
    enum pb_sent sent = PB_SENT_NOT;
    struct pb_json *json = pb_json_create(false);
    int rc = pb_cloud_event_write(event, json, &letter);
    (void)pb_json_get_int(event, "seq", &seq);
    if (seq != target->seq)
        target->tries = target->refusals = 0;
    target->seq = seq;
    target->tries++;
    if (rc == 0)
        sent = target->kind->send(target->sender, &letter, &why);
    else
        pb_sent_fail(&why, "the service sent no event: %s", strerror(-rc));
    bool next = take_result(target, &letter, sent, &why);
    pb_json_destroy(json);
    return next;
}

static void deliver_all(struct pb_target *target, const struct pb_json_value *events)
{
    size_t n = pb_json_count(events), i = 0;
    while (i < n && !pb_stop_is_set(target->stop) && deliver(target, pb_json_at(events, i)))
        i++;
}

static void *run(void *user)
{
    struct pb_target *target = user;
    (void)pthread_setname_np(pthread_self(), "pb-notify");
    while (!pb_stop_is_set(target->stop)) {
        uint64_t seen = pb_news_number(target->news);
        struct pb_json_value *reply = NULL;
        const struct pb_json_value *events = NULL;
        if (list(target, &reply, &events) != 0)
            continue;
        bool none = pb_json_count(events) == 0;
        deliver_all(target, events);
        pb_json_release(reply);
        if (none && target->kind->rest != NULL)
            target->kind->rest(target->sender);
        if (none)
            pb_news_wait(target->news, seen, LOOK_AGAIN_MS);
    }
    return NULL;
}

struct pb_target *pb_target_start(const struct pb_notify_config *notify, const char *socket,
                                  struct pb_news_board *news, const struct pb_stop *stop)
{
    struct pb_target *target = calloc(1, sizeof *target);
    if (target == NULL)
        return NULL;
    target->notify = notify;
    target->kind = kind_of(notify->kind);
    target->socket = socket;
    target->news = news;
    target->stop = stop;
    target->service_ms = SERVICE_MS;
    (void)pthread_mutex_init(&target->lock, NULL);
    target->sender = target->kind->create(notify, stop);
    if (target->sender != NULL && pthread_create(&target->thread, NULL, run, target) == 0)
        return target;
    if (target->sender != NULL)
        target->kind->destroy(target->sender);
    (void)pthread_mutex_destroy(&target->lock);
    free(target);
    return NULL;
}

void pb_target_stop(struct pb_target *target)
{
    if (target == NULL)
        return;
    (void)pthread_mutex_lock(&target->lock);
    if (target->client != NULL)
        pb_client_hang_up(target->client);
    (void)pthread_mutex_unlock(&target->lock);
    (void)pthread_join(target->thread, NULL);
    target->kind->destroy(target->sender);
    pb_client_close(target->client);
    (void)pthread_mutex_destroy(&target->lock);
    free(target);
}
