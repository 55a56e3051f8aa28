/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stores parts of the configuration in the job store. The entries of notify are subscribers of its
 * journal: their events are kept from the first load of the configuration on, whether
 * pushbroom-notify runs or not. The pipelines are in jobs, so that nodes with other pipelines do
 * not take them. */
#include "service/daemon/daemon_parts.h"

#include "config/base/clock.h"
#include "config/base/json_writer.h"
#include "config/config.h"
#include "config/notify_config.h"
#include "config/pipeline_config.h"
#include "service/base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TROUBLE "notify"
#define TEXTS   "texts" /* pipelines that are not stored */

struct pb_subscribing {
    uv_work_t work;
    struct pb_daemon *daemon;
    struct pb_subscriber at[PB_SUBSCRIBERS_MAX];
    char *names[PB_SUBSCRIBERS_MAX];
    size_t n;
    struct pb_store_needs *needs; /* the pipelines of the configuration */
    int rc; /* negative, or the number of deleted subscribers with waiting events; 0: not stored */
    struct pb_err err;
    int needs_rc; /* result for the pipelines; negative and */
    struct pb_err needs_err;
};

static char *words_text(char *const *words, size_t n)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_array(json, NULL);
    for (size_t i = 0; i < n; i++)
        pb_json_string(json, NULL, words[i]);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *copy = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy;
}

static void drop(struct pb_subscribing *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->at[i].events);
        free(all->at[i].pipelines);
        free(all->names[i]);
    }
    free(all->needs);
    free(all);
}

/* Copies the names and digests of the pipelines; NULL = out of memory. */
static struct pb_store_needs *needs_of(const struct pb_config *config)
{
    struct pb_store_needs *needs =
        calloc(1, sizeof *needs + config->n_pipelines * sizeof needs->at[0]);
    if (needs != NULL)
        needs->gpu = config->compute.device == PB_DEVICE_CUDA;
    for (size_t i = 0; needs != NULL && i < config->n_pipelines; i++) {
        const struct pb_pipeline_config *pipeline = &config->pipelines[i];
        (void)snprintf(needs->at[i].pipeline, sizeof needs->at[i].pipeline, "%s", pipeline->name);
        (void)snprintf(needs->at[i].digest, sizeof needs->at[i].digest, "%s", pipeline->digest);
        needs->n++;
    }
    return needs;
}

/* The configuration may be replaced while they are stored. */
struct pb_subscribing *pb_daemon_subscribers(struct pb_daemon *daemon)
{
    const struct pb_config *config = daemon->config;
    struct pb_subscribing *all = calloc(1, sizeof *all);
    for (size_t i = 0; all != NULL && i < config->n_notify; i++) {
        const struct pb_notify_config *notify = &config->notify[i];
        struct pb_subscriber *one = &all->at[all->n];
        one->events = words_text(notify->events, notify->n_events);
        one->pipelines = words_text(notify->pipelines, notify->n_pipelines);
        one->name = all->names[all->n] = strdup(notify->name);
        one->expire_ms = notify->expire_ms;
        all->n++;
        if (one->events == NULL || one->pipelines == NULL || one->name == NULL) {
            drop(all);
            all = NULL;
        }
    }
    if (all == NULL)
        return NULL;
    all->daemon = daemon;
    all->needs = needs_of(config);
    if (all->needs == NULL) {
        drop(all);
        all = NULL;
    }
    return all;
}

int pb_daemon_subscribers_store(struct pb_subscribing *all, struct pb_err *err)
{
    all->needs_rc = pb_store_set_needs(all->daemon->store, all->needs, &all->needs_err);
    all->needs = NULL;
    all->rc = pb_subscribers_set(all->daemon->store, all->at, all->n, &all->err);
    const bool is_stored = all->needs_rc >= 0;
    if (!is_stored || all->rc < 0)
        *err = is_stored ? all->err : all->needs_err;
    return !is_stored ? all->needs_rc : all->rc < 0 ? all->rc : 0;
}

/* Reports whether jobs have the texts of the pipelines. */
static bool report_needs(const struct pb_subscribing *all)
{
    struct pb_troubles *troubles = &all->daemon->troubles;
    char text[512];
    if (all->needs_rc >= 0) {
        pb_trouble_clear(troubles, TEXTS);
        return true;
    }
    (void)snprintf(
        text, sizeof text,
        "the texts of the pipelines are not stored with the jobs that wait: %.300s; other "
        "nodes may leave them until that is done, which is tried again",
        all->needs_err.msg);
    pb_trouble_raise(troubles, TEXTS, all->needs_err.code, text);
    return false;
}

static bool report(const struct pb_subscribing *all)
{
    struct pb_daemon *daemon = all->daemon;
    const bool has_needs = report_needs(all);
    if (all->rc < 0) {
        pb_trouble_raise(&daemon->troubles, TROUBLE, all->err.code, all->err.msg);
        return false;
    }
    pb_trouble_clear(&daemon->troubles, TROUBLE);
    if (all->rc > 0)
        pb_log(PB_LOG_WARNING,
               "notify: %d entr%s gone from the configuration, and what waited for %s is dropped",
               all->rc, all->rc == 1 ? "y is" : "ies are", all->rc == 1 ? "it" : "them");
    return has_needs;
}

bool pb_daemon_subscribers_end(struct pb_subscribing *all)
{
    const bool stored = all != NULL && (all->daemon->methods.stopping || report(all));
    if (all != NULL)
        drop(all);
    return stored;
}

static void work(uv_work_t *request)
{
    struct pb_err err = {0};
    (void)pb_daemon_subscribers_store(request->data, &err);
}

static void on_worked(uv_work_t *request, int status)
{
    struct pb_subscribing *all = request->data;
    struct pb_daemon *daemon = all->daemon;
    (void)status;
    daemon->subscribes = false;
    if (!pb_daemon_subscribers_end(all))
        daemon->subscribe_again = true;
}

void pb_daemon_subscribe(struct pb_daemon *daemon)
{
    daemon->subscribe_again = true;
    if (!daemon->store_open || daemon->subscribes || daemon->methods.stopping)
        return; /* tried at the next beat */
    struct pb_subscribing *all = pb_daemon_subscribers(daemon);
    if (all == NULL)
        return;
    daemon->subscribe_again = false;
    daemon->subscribes = true;
    all->work.data = all;
    (void)uv_queue_work(&daemon->loop, &all->work, work, on_worked);
}

static int64_t overdue_ms(const struct pb_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_notify; i++)
        if (strcmp(config->notify[i].name, name) == 0)
            return config->notify[i].overdue_ms;
    return INT64_MAX;
}

/* Logs events that expired since the last check. */
static void log_expired(const struct pb_subscriber_state *state)
{
    int64_t n = state->expired - state->expired_before;
    if (n > 0)
        pb_log(PB_LOG_ERROR,
               "notify: %" PRId64 " event%s for '%s' waited for longer than its expire and %s not "
               "delivered any more",
               n, n == 1 ? "" : "s", state->name, n == 1 ? "is" : "are");
}

void pb_daemon_look_at_subscribers(void *user)
{
    struct pb_daemon *daemon = user;
    const struct pb_chores *chores = &daemon->chores;
    int64_t now_ms = pb_clock_wall_ms();
    char text[300] = "", since[PB_CLOCK_TEXT_BYTES];
    if (daemon->methods.stopping)
        return;
    for (int i = 0; i < chores->n_subscribers; i++) {
        const struct pb_subscriber_state *state = &chores->subscribers[i];
        log_expired(state);
        if (text[0] != '\0' || state->waiting == 0 ||
            now_ms - state->oldest_ms < overdue_ms(daemon->config, state->name))
            continue;
        pb_clock_text(state->oldest_ms, since);
        (void)snprintf(text, sizeof text,
                       "%" PRId64 " event%s not delivered to '%s', the oldest since %s; is "
                       "pushbroom-notify running, and its receiver?",
                       state->waiting, state->waiting == 1 ? " is" : "s are", state->name, since);
    }
    if (text[0] != '\0')
        pb_trouble_raise(&daemon->troubles, TROUBLE, PB_E_NOTIFY_FAILED, text);
    else
        pb_trouble_clear(&daemon->troubles, TROUBLE);
}
