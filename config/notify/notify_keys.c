/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The keys of the entries of notify, by their kind. */
#include "config/config_parts.h"
#include "config/notify_config.h"

#include <assert.h>

#define N_OF(rows) (sizeof(rows) / sizeof *(rows))
#define AT(member) offsetof(struct pb_notify_config, member)
#define SECOND     1000.0
#define DAY        86400000.0

#define ROW(n, kind, member, ...)                                                                  \
    {                                                                                              \
        .name = n, .type = kind, .offset = AT(member), __VA_ARGS__                                 \
    }

#define USUAL_EVENTS "[job.successful, job.failed, input.quarantined]"

/* Keys of all kinds, with the defaults of name and events. */
#define COMMON(default_name, default_events)                                                       \
    ROW("name", PB_KEY_NAME, name, .def = default_name,                                            \
        .doc = "Its name in log, metrics and status; each entry has one of its own. Waiting "      \
               "events of an entry are kept by its name."),                                        \
        ROW("events", PB_KEY_PATTERNS, events, .more = AT(n_events), .def = default_events,        \
            .doc = "Patterns of the events that it receives: job.accepted, job.running, "          \
                   "job.successful, job.failed, job.dismissed, input.quarantined, "                \
                   "product.published, alert.raised."),                                            \
        ROW("pipelines", PB_KEY_PATTERNS, pipelines, .more = AT(n_pipelines),                      \
            .example = "[vegetation]", .doc = "Patterns of pipelines; without this key: all."),    \
        ROW("timeout", PB_KEY_DURATION, timeout_ms, .min = 100, .max = 3600 * SECOND,              \
            .def = "30s", .doc = "A try that takes longer has failed."),                           \
        ROW("retry", PB_KEY_DURATION, retry_ms, .min = 100, .max = DAY, .def = "5m",               \
            .doc = "The longest wait between two tries; the first is 1s, each is twice the one "   \
                   "before."),                                                                     \
        ROW("overdue", PB_KEY_DURATION, overdue_ms, .min = 100, .max = 365 * DAY, .def = "15m",    \
            .doc = "When an event waits for longer, the service has the trouble notify."),         \
        ROW("expire", PB_KEY_DURATION, expire_ms, .min = 1 * SECOND, .max = 365 * DAY,             \
            .def = "7d",                                                                           \
            .doc = "An event that was not delivered for so long is given up; the "                 \
                   "log, the metrics and the status count it.")

static_assert(N_OF(((const struct pb_key[]){COMMON("", "")})) == PB_NOTIFY_COMMON,
              "as many as declared");

#define CA_FILE                                                                                    \
    ROW("ca_file", PB_KEY_PATH, ca_file, .example = "/etc/pushbroom/ca.pem",                       \
        .doc = "Certificates of the authorities that may vouch for the server; without this key: " \
               "the system's. The server's certificate and name are always verified.")

static const struct pb_key exec_keys[] = {
    COMMON("exec", USUAL_EVENTS),
    ROW("command", PB_KEY_COMMAND, command, .more = AT(n_command), .required = true,
        .sample = "[/usr/local/bin/tell, --from, pushbroom]",
        .doc = "A program by its absolute path, and its arguments. It is started without a shell "
               "and inherits nothing; the event is on its standard input, as CloudEvents JSON. "
               "Exit status 0: delivered."),
};

static const struct pb_key webhook_keys[] = {
    COMMON("webhook", USUAL_EVENTS),
    ROW("url", PB_KEY_TEXT, url, .required = true, .sample = "https://catalogue.example/hook",
        .doc = "Where the event is posted to, as CloudEvents 1.0 in structured mode. A status of "
               "2xx: delivered. Redirections are not followed."),
    ROW("secret_file", PB_KEY_PATH, secret, .example = "/etc/pushbroom/hook.secret",
        .doc = "Key of the signature (HMAC with SHA-256, as of standardwebhooks.com: headers "
               "webhook-id, webhook-timestamp and webhook-signature)."),
    ROW("token_file", PB_KEY_PATH, token, .example = "/etc/pushbroom/hook.token",
        .doc = "A bearer token for the header Authorization; over https only."),
    CA_FILE,
};

static const struct pb_key mqtt_keys[] = {
    COMMON("mqtt", USUAL_EVENTS),
    ROW("host", PB_KEY_TEXT, host, .required = true, .sample = "broker.example",
        .doc = "Name or address of the broker."),
    ROW("port", PB_KEY_INT, port, .min = 0, .max = 65535, .def = "0",
        .doc = "0 = 8883 with tls, 1883 without."),
    ROW("tls", PB_KEY_CHOICE, tls, .choices = "on|off", .def = "on",
        .doc = "Whether the connection is encrypted."),
    CA_FILE,
    ROW("topic", PB_KEY_TEXT, topic, .def = "pushbroom/{pipeline}/{event}",
        .doc = "{event}, {pipeline}, {scene} and {job} are those of the event."),
    ROW("qos", PB_KEY_INT, qos, .min = 1, .max = 2, .def = "1",
        .doc = "1: the broker may get an event twice, and must take it once."),
    ROW("user", PB_KEY_TEXT, user, .example = "pushbroom", .doc = "The broker's user."),
    ROW("password_file", PB_KEY_PATH, password, .example = "/etc/pushbroom/mqtt.password",
        .doc = "That user's password; with tls only."),
};

static const struct pb_key stac_keys[] = {
    COMMON("stac", "[product.published]"),
    ROW("url", PB_KEY_TEXT, url, .required = true, .sample = "https://stac.example/api",
        .doc = "Root of a STAC API with the Transaction extension. The item of each stac product "
               "is posted to URL/collections/COLLECTION/items; the answer 409 (it exists) is "
               "followed by a PUT to .../items/ID."),
    ROW("base_url", PB_KEY_TEXT, base_url, .required = true,
        .sample = "https://data.example/products",
        .doc = "Address under which readers find the directory of products: the item names its "
               "files by it."),
    ROW("collection", PB_KEY_TEXT, collection, .example = "sentinel-2-indices",
        .doc = "Collection of the API, which must exist; without this key: that of the item "
               "(stac.collection)."),
    ROW("token_file", PB_KEY_PATH, token, .example = "/etc/pushbroom/stac.token",
        .doc = "A bearer token for the header Authorization; over https only."),
    CA_FILE,
};

const struct pb_section pb_section_exec = {"exec", "A program that is started for each event.",
                                           exec_keys, N_OF(exec_keys)},
                        pb_section_webhook = {"webhook", "An HTTP server.", webhook_keys,
                                              N_OF(webhook_keys)},
                        pb_section_mqtt = {"mqtt", "An MQTT broker.", mqtt_keys, N_OF(mqtt_keys)},
                        pb_section_stac = {"stac", "A STAC API.", stac_keys, N_OF(stac_keys)};

const struct pb_section *const pb_notify_sections[PB_NOTIFY_KINDS] = {
    [PB_NOTIFY_EXEC] = &pb_section_exec,
    [PB_NOTIFY_WEBHOOK] = &pb_section_webhook,
    [PB_NOTIFY_MQTT] = &pb_section_mqtt,
    [PB_NOTIFY_STAC] = &pb_section_stac};
