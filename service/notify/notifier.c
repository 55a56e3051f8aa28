/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The main thread waits for signals. A thread watches the service's journal and wakes the targets;
 * it keeps no events: each target requests them from the service itself. */
#include "service/notify/notifier.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "config/notify_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "service/base/log.h"
#include "service/confine/confine.h"
#include "service/daemon/notify.h"
#include "service/notify/http.h"
#include "service/notify/sender.h"
#include "service/notify/target.h"
#include "service/status/client.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS   10000
#define AGAIN_MS  500
#define EXIT_OK   0
#define EXIT_BAD  1
#define EXIT_CONF 2

/* Running state of one configuration. */
struct pb_notifier {
    struct pb_config *config;
    const char *socket;
    struct pb_stop stop;
    struct pb_news_board news;
    struct pb_target *targets[PB_NOTIFY_MAX];
    pthread_t watcher;
    bool watches;
    pthread_mutex_t lock; /* client */
    struct pb_client *client;
};

static struct pb_config *load(const char *path)
{
    struct pb_config *config = NULL;
    struct pb_err_list errors;
    char text[1200];
    if (pb_config_load(path, &pb_products, &errors, &config) == 0)
        return config;
    for (size_t i = 0; i < errors.n; i++) {
        pb_err_text(&errors.err[i], text, sizeof text);
        pb_log(PB_LOG_ERROR, "%s", text);
    }
    return NULL;
}

/* --- the watcher --- */

static void set_client(struct pb_notifier *notifier, struct pb_client *client)
{
    (void)pthread_mutex_lock(&notifier->lock);
    pb_client_close(notifier->client);
    notifier->client = client;
    if (client != NULL && pb_stop_is_set(&notifier->stop))
        pb_client_hang_up(client);
    (void)pthread_mutex_unlock(&notifier->lock);
}

/* Watches until the connection ends. */
static void watch_once(struct pb_notifier *notifier)
{
    struct pb_err err = {0};
    struct pb_client *client = NULL;
    struct pb_json_value *reply = NULL, *event = NULL;
    const struct pb_json_value *result = NULL;
    if (pb_client_open(notifier->socket, CALL_MS, &err, &client) != 0)
        return;
    set_client(notifier, client);
    /* Uses a number that was never reached: the watch begins at the end. */
    if (pb_client_call(client, "job.watch", "{\"since\":0}", &err, &reply, &result) == 0) {
        pb_json_release(reply);
        pb_news_tell(&notifier->news); /* events that happened while it was disconnected */
        while (pb_client_event(client, -1, &err, &event, &result) > 0) {
            int64_t seq = 0;
            bool is_change = pb_json_get_int(result, "seq", &seq) == 0;
            pb_json_release(event);
            if (is_change)
                pb_news_tell(&notifier->news);
        }
    }
    set_client(notifier, NULL);
}

static void *watch(void *user)
{
    struct pb_notifier *notifier = user;
    (void)pthread_setname_np(pthread_self(), "pb-watch");
    while (!pb_stop_is_set(&notifier->stop)) {
        watch_once(notifier);
        pb_news_pause(&notifier->news, AGAIN_MS);
    }
    return NULL;
}

/* --- start and stop --- */

static void stop(struct pb_notifier *notifier)
{
    pb_stop_set(&notifier->stop);
    pb_news_end(&notifier->news);
    (void)pthread_mutex_lock(&notifier->lock);
    if (notifier->client != NULL)
        pb_client_hang_up(notifier->client);
    (void)pthread_mutex_unlock(&notifier->lock);
    if (notifier->watches)
        (void)pthread_join(notifier->watcher, NULL);
    for (size_t i = 0; i < PB_NOTIFY_MAX; i++)
        pb_target_stop(notifier->targets[i]);
    pb_stop_fini(&notifier->stop);
    pb_news_fini(&notifier->news);
    (void)pthread_mutex_destroy(&notifier->lock);
    pb_config_destroy(notifier->config);
    free(notifier);
}

/* Takes the configuration. Returns NULL if it cannot be started; the reason is in the log. */
static struct pb_notifier *start(struct pb_config *config, const char *socket)
{
    struct pb_notifier *notifier = calloc(1, sizeof *notifier);
    if (notifier == NULL || pb_stop_init(&notifier->stop) != 0) {
        pb_log(PB_LOG_ERROR, "cannot start: out of memory or descriptors");
        free(notifier);
        pb_config_destroy(config);
        return NULL;
    }
    notifier->config = config;
    notifier->socket = socket ? socket : config->service.socket;
    pb_news_init(&notifier->news);
    (void)pthread_mutex_init(&notifier->lock, NULL);
    bool ok = true;
    for (size_t i = 0; i < config->n_notify && ok; i++) {
        notifier->targets[i] =
            pb_target_start(&config->notify[i], notifier->socket, &notifier->news, &notifier->stop);
        ok = notifier->targets[i] != NULL;
    }
    if (ok && config->n_notify > 0)
        ok = notifier->watches = pthread_create(&notifier->watcher, NULL, watch, notifier) == 0;
    if (ok)
        return notifier;
    pb_log(PB_LOG_ERROR, "cannot start: no memory, or no threads");
    stop(notifier);
    return NULL;
}

static void say_start(const struct pb_notifier *notifier)
{
    char text[200];
    size_t n = notifier->config->n_notify;
    if (n == 0)
        (void)snprintf(text, sizeof text, "%s has no entries under notify; no event is delivered",
                       notifier->config->path);
    else
        (void)snprintf(text, sizeof text, "events of %s are delivered to %zu receiver%s",
                       notifier->socket, n, n == 1 ? "" : "s");
    pb_log(PB_LOG_NOTICE, "%s", text);
    pb_notify_ready(text);
}

static struct pb_notifier *reload(struct pb_notifier *old, const struct pb_notifier_options *o)
{
    pb_notify_reloading();
    struct pb_config *config = load(o->config);
    if (config == NULL) {
        pb_log(PB_LOG_ERROR, "reload: refused; the configuration as it was stays in use");
        say_start(old);
        return old;
    }
    stop(old);
    return start(config, o->socket);
}

int pb_notifier_run(const struct pb_notifier_options *options)
{
    sigset_t signals;
    int number = 0;
    (void)signal(SIGPIPE, SIG_IGN);
    pb_confine_hide(); /* its memory has secrets, and programs of exec entries have its user */
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* applies to all threads */
    struct pb_config *config = load(options->config);
    if (config == NULL)
        return EXIT_CONF;
    pb_http_init();
    pb_mqtt_init();
    pb_log(PB_LOG_NOTICE, "pushbroom-notify %s starts with %s", PB_VERSION, options->config);
    struct pb_notifier *notifier = start(config, options->socket);
    while (notifier != NULL) {
        say_start(notifier);
        if (sigwait(&signals, &number) != 0 || number != SIGHUP)
            break;
        notifier = reload(notifier, options);
    }
    if (notifier != NULL) {
        pb_log(PB_LOG_NOTICE, "stopping: signal %d", number);
        pb_notify_stopping();
        stop(notifier);
    }
    pb_mqtt_fini();
    pb_http_fini();
    return number == SIGTERM || number == SIGINT ? EXIT_OK : EXIT_BAD;
}
