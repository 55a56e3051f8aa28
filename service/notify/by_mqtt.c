/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MQTT 3.1.1, by libmosquitto. An event is sent when the broker has confirmed it. The connection
 * stays open while events wait and is closed when no event waits. */
#include "config/base/clock.h"
#include "config/notify_config.h"
#include "service/notify/secret.h"
#include "service/notify/sender.h"

#include <errno.h>
#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEPALIVE_S 30
#define LOOK_MS     100 /* interval of checks for the end of the program */
#define CA_PATH     "/etc/ssl/certs"
#define TOPIC_BYTES 1024

struct mqtt {
    const struct pb_notify_config *notify;
    const struct pb_stop *stop;
    struct mosquitto *client;
    bool greeted;  /* true if CONNACK was received */
    int greeting;  /* reason code of CONNACK */
    int confirmed; /* last message that the broker confirmed */
};

static void on_connect(struct mosquitto *client, void *user, int code)
{
    struct mqtt *mqtt = user;
    (void)client;
    mqtt->greeted = true;
    mqtt->greeting = code;
}

static void on_publish(struct mosquitto *client, void *user, int id)
{
    struct mqtt *mqtt = user;
    (void)client;
    mqtt->confirmed = id;
}

static void hang_up(void *sender)
{
    struct mqtt *mqtt = sender;
    if (mqtt->client == NULL)
        return;
    if (mosquitto_disconnect(mqtt->client) == MOSQ_ERR_SUCCESS)
        (void)mosquitto_loop(mqtt->client, 0, 1);
    mosquitto_destroy(mqtt->client);
    mqtt->client = NULL;
}

static void destroy(void *sender)
{
    hang_up(sender);
    free(sender);
}

static void *create(const struct pb_notify_config *notify, const struct pb_stop *stop)
{
    struct mqtt *mqtt = calloc(1, sizeof *mqtt);
    if (mqtt == NULL)
        return NULL;
    mqtt->notify = notify;
    mqtt->stop = stop;
    return mqtt;
}

static enum pb_sent failed(struct mqtt *mqtt, const char *what, int rc, struct pb_sent_why *why)
{
    pb_sent_fail(why, "%s: %s: %s", mqtt->notify->host, what,
                 rc == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(rc));
    hang_up(mqtt);
    return PB_SENT_NOT;
}

static int log_in(struct mqtt *mqtt, struct pb_err *err)
{
    struct pb_secret password = {.bytes = 0};
    const struct pb_notify_config *notify = mqtt->notify;
    if (notify->user == NULL)
        return 0;
    int rc = notify->password ? pb_secret_read(notify->password, &password, err) : 0;
    if (rc == 0 && mosquitto_username_pw_set(mqtt->client, notify->user,
                                             notify->password ? password.text : NULL) != 0)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_secret_wipe(&password);
    return rc;
}

/* Configures the client's TLS; the server's certificate and name are verified. */
static int set_tls(struct mqtt *mqtt)
{
    const char *file = mqtt->notify->ca_file;
    int rc = mosquitto_tls_set(mqtt->client, file, file ? NULL : CA_PATH, NULL, NULL, NULL);
    rc = rc ? rc : mosquitto_tls_opts_set(mqtt->client, 1, "tlsv1.2", NULL);
    return rc ? rc : mosquitto_tls_insecure_set(mqtt->client, false);
}

/* Waits for *done(mqtt, id), the deadline, the end of the program or an error of the connection. */
static int wait_until(struct mqtt *mqtt, bool (*done)(const struct mqtt *mqtt, int id), int id,
                      int64_t deadline_ms)
{
    int rc = MOSQ_ERR_SUCCESS;
    while (rc == MOSQ_ERR_SUCCESS && !done(mqtt, id)) {
        if (pb_stop_is_set(mqtt->stop) || pb_clock_mono_ms() >= deadline_ms)
            return MOSQ_ERR_KEEPALIVE; /* "exceeded timeout" */
        rc = mosquitto_loop(mqtt->client, LOOK_MS, 1);
    }
    return rc;
}

static bool is_greeted(const struct mqtt *mqtt, int id)
{
    (void)id;
    return mqtt->greeted;
}

static bool is_confirmed(const struct mqtt *mqtt, int id)
{
    return mqtt->confirmed == id;
}

static enum pb_sent connect_now(struct mqtt *mqtt, int64_t deadline_ms, struct pb_sent_why *why)
{
    const struct pb_notify_config *notify = mqtt->notify;
    bool tls = notify->tls == 0;
    struct pb_err err = {0};
    int port = notify->port ? notify->port : tls ? 8883 : 1883;
    mqtt->greeted = false;
    mqtt->confirmed = 0;
    mqtt->client = mosquitto_new(NULL, true, mqtt);
    if (mqtt->client == NULL)
        return failed(mqtt, "no client", MOSQ_ERR_NOMEM, why);
    mosquitto_connect_callback_set(mqtt->client, on_connect);
    mosquitto_publish_callback_set(mqtt->client, on_publish);
    if (log_in(mqtt, &err) != 0) {
        pb_sent_fail(why, "%s [%s]", err.msg, pb_code_id(err.code));
        hang_up(mqtt);
        return PB_SENT_NOT;
    }
    int rc = tls ? set_tls(mqtt) : 0;
    rc = rc ? rc : mosquitto_connect(mqtt->client, notify->host, port, KEEPALIVE_S);
    rc = rc ? rc : wait_until(mqtt, is_greeted, 0, deadline_ms);
    bool refused = mqtt->greeted && mqtt->greeting != 0;
    if (rc != 0 && !refused)
        return failed(mqtt, "cannot connect", rc, why);
    if (!refused)
        return PB_SENT;
    pb_sent_fail(why, "%s refuses the connection: %s", notify->host,
                 mosquitto_connack_string(mqtt->greeting));
    hang_up(mqtt);
    return PB_SENT_NOT;
}

/* Appends a word of the event as one level: separators and wildcards are replaced. */
static size_t put_word(char *out, size_t room, const char *word)
{
    size_t n = 0;
    for (; word[n] != '\0' && n + 1 < room; n++)
        out[n] = strchr("/#+", word[n]) != NULL ? '_' : word[n];
    out[n] = '\0';
    return n;
}

static void make_topic(const char *form, const struct pb_letter *letter, char out[TOPIC_BYTES])
{
    const struct {
        const char *name, *value;
    } words[] = {{"{event}", letter->event},
                 {"{pipeline}", letter->pipeline},
                 {"{scene}", letter->scene},
                 {"{job}", letter->job}};
    size_t n = 0;
    while (*form != '\0' && n + 1 < TOPIC_BYTES) {
        size_t i = 0;
        while (i < 4 && strncmp(form, words[i].name, strlen(words[i].name)) != 0)
            i++;
        if (i == 4) {
            out[n++] = *form++;
            continue;
        }
        n += put_word(out + n, TOPIC_BYTES - n, words[i].value);
        form += strlen(words[i].name);
    }
    out[n] = '\0';
}

static enum pb_sent send_letter(void *sender, const struct pb_letter *letter,
                                struct pb_sent_why *why)
{
    struct mqtt *mqtt = sender;
    char topic[TOPIC_BYTES];
    int64_t deadline_ms = pb_clock_mono_ms() + mqtt->notify->timeout_ms;
    int id = 0;
    enum pb_sent sent = mqtt->client ? PB_SENT : connect_now(mqtt, deadline_ms, why);
    if (sent != PB_SENT)
        return sent;
    make_topic(mqtt->notify->topic, letter, topic);
    int rc = mosquitto_publish(mqtt->client, &id, topic, (int)letter->bytes, letter->body,
                               mqtt->notify->qos, false);
    if (rc == MOSQ_ERR_PAYLOAD_SIZE || rc == MOSQ_ERR_INVAL || rc == MOSQ_ERR_MALFORMED_UTF8) {
        (void)failed(mqtt, topic, rc, why);
        return PB_SENT_REFUSED;
    }
    rc = rc ? rc : wait_until(mqtt, is_confirmed, id, deadline_ms);
    return rc == 0 ? PB_SENT : failed(mqtt, "no confirmation", rc, why);
}

const struct pb_sender_kind pb_sender_mqtt = {create, send_letter, hang_up, destroy};

void pb_mqtt_init(void)
{
    (void)mosquitto_lib_init();
}

void pb_mqtt_fini(void)
{
    (void)mosquitto_lib_cleanup();
}
