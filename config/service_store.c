/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The keys of service.store and service.fetch, and their check. */
#include "config/config_parts.h"

#include "config/service_config.h"
#include "config/yaml/yaml_tree.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECOND   1000.0
#define HOUR     3600000.0
#define AT(name) offsetof(struct pb_store_config, name)

static const struct pb_key keys[] = {
    {.name = "postgresql",
     .type = PB_KEY_TEXT,
     .offset = AT(postgresql),
     .required = true,
     .doc = "Connection to the database, as libpq takes it: \"host=/run/postgresql "
            "dbname=pushbroom\". No password belongs here; libpq reads a passfile."},
    {.name = "lease",
     .type = PB_KEY_DURATION,
     .offset = AT(lease_ms),
     .min = SECOND,
     .max = HOUR,
     .def = "30s",
     .doc = "A node that does not report to the database for this long is over: its running jobs "
            "wait again, and other nodes take them."},
};

const struct pb_section pb_section_store = {"store", "Database for the jobs of several nodes.",
                                            keys, sizeof keys / sizeof *keys};

#define FETCH(name) offsetof(struct pb_fetch_config, name)

static const struct pb_key fetch_keys[] = {
    {.name = "listen",
     .type = PB_KEY_TEXT,
     .offset = FETCH(listen),
     .def = "0.0.0.0:8447",
     .doc = "Address and port at which pushbroom-fetch waits for other nodes; an IPv6 address is "
            "in brackets: \"[::]:8447\"."},
    {.name = "address",
     .type = PB_KEY_TEXT,
     .offset = FETCH(address),
     .required = true,
     .doc = "Host and port at which other nodes reach this one: \"hot-1.example.org:8447\"."},
    {.name = "certificate",
     .type = PB_KEY_PATH,
     .offset = FETCH(certificate),
     .def = "/etc/pushbroom/fetch/node.crt",
     .doc = "Certificate of this node (PEM). Its name (subjectAltName, DNS) is service.node."},
    {.name = "key",
     .type = PB_KEY_PATH,
     .offset = FETCH(key),
     .def = "/etc/pushbroom/fetch/node.key",
     .doc = "Its private key (PEM), which only pushbroom-fetch may read."},
    {.name = "ca",
     .type = PB_KEY_PATH,
     .offset = FETCH(ca),
     .def = "/etc/pushbroom/fetch/ca.crt",
     .doc =
         "Certificates (PEM) that the certificates of all nodes are signed with, and no others."},
    {.name = "socket",
     .type = PB_KEY_PATH,
     .offset = FETCH(socket),
     .def = "/run/pushbroom-fetch/fetch.sock",
     .doc = "Socket of pushbroom-fetch, to which workers connect; at most 100 bytes."},
    {.name = "user",
     .type = PB_KEY_TEXT,
     .may_be_empty = true,
     .offset = FETCH(user),
     .def = "pushbroom-fetch",
     .doc = "User that pushbroom-fetch runs as. \"\": root and the service's own user only."},
};

const struct pb_section pb_section_fetch = {
    "fetch", "Transfer of files between nodes without a common file system.", fetch_keys,
    sizeof fetch_keys / sizeof *fetch_keys};

/* Returns true if the text has the key: at its begin or after a space, '?' or '&', and before '='.
 */
static bool has_key(const char *text, const char *key)
{
    const size_t n = strlen(key);
    for (const char *at = text; (at = strcasestr(at, key)) != NULL; at += n) {
        const char *after = at + n;
        while (isspace((unsigned char)*after))
            after++;
        if (*after == '=' && (at == text || strchr(" \t\n?&", at[-1]) != NULL))
            return true;
    }
    return false;
}

/* Returns true for postgresql://user:password@host. */
static bool has_user_with_password(const char *text)
{
    const char *begin = strstr(text, "://");
    const char *at = begin != NULL ? strchr(begin + 3, '@') : NULL;
    const char *colon = begin != NULL ? strchr(begin + 3, ':') : NULL;
    return at != NULL && colon != NULL && colon < at && strcspn(begin + 3, "/?") > 0 &&
           at < begin + 3 + strcspn(begin + 3, "/?");
}

bool pb_store_has_password(const char *conninfo)
{
    return has_key(conninfo, "password") || has_key(conninfo, "sslpassword") ||
           has_user_with_password(conninfo);
}

void pb_fetch_guests_socket(const char *socket, char out[108])
{
    (void)snprintf(out, 108, "%.100s.fetch", socket);
}

/* Returns true for HOST:PORT, with an IPv6 address in brackets. */
static bool is_host_and_port(const char *text)
{
    const char *colon = strrchr(text, ':');
    const size_t n = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
    const bool is_address = text[0] == '[' && colon != NULL && colon[-1] == ']';
    return n > 0 && n <= 5 && colon[1 + n] == '\0' && atoi(colon + 1) > 0 &&
           atoi(colon + 1) <= 65535 && colon > text && colon - text < 250 &&
           (is_address || memchr(text, ':', (size_t)(colon - text)) == NULL) &&
           strcspn(text, " \t/@\"") == strlen(text);
}

static void check_fetch(struct pb_load *load, const struct pb_yaml *section,
                        const struct pb_service_config *service)
{
    const struct pb_yaml *fetch = pb_yaml_find(section, "fetch", NULL);
    const struct pb_fetch_config *config = &service->fetch;
    const struct {
        const char *key, *text;
    } places[] = {{"listen", config->listen}, {"address", config->address}};
    if (fetch == NULL)
        return;
    pb_schema_need(load, &pb_section_fetch, fetch, fetch);
    if (!service->has_store)
        pb_report(&load->report, PB_E_CONFIG_VALUE, fetch->line, fetch->col,
                  "service.fetch is for services that share jobs; give service.store, or remove "
                  "fetch");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const struct pb_yaml *at = pb_yaml_find(fetch, places[i].key, NULL);
        if (at != NULL && places[i].text != NULL && !is_host_and_port(places[i].text))
            pb_report(&load->report, PB_E_CONFIG_VALUE, at->line, at->col,
                      "service.fetch.%s: '%.80s' is no HOST:PORT", places[i].key, places[i].text);
    }
    if (config->socket != NULL && strlen(config->socket) > PB_FETCH_SOCKET_MAX)
        pb_report(&load->report, PB_E_CONFIG_VALUE, fetch->line, fetch->col,
                  "service.fetch.socket is too long for a socket; at most %d bytes are allowed",
                  PB_FETCH_SOCKET_MAX);
}

void pb_check_store(struct pb_load *load, const struct pb_yaml *section,
                    const struct pb_service_config *service)
{
    const struct pb_yaml *node = pb_yaml_find(section, "node", NULL);
    const struct pb_yaml *store = pb_yaml_find(section, "store", NULL);
    const struct pb_yaml *database = pb_yaml_find(store, "postgresql", NULL);
    const char *text = service->store.postgresql;
    for (size_t i = 0; i < service->n_own_inboxes && store == NULL; i++) {
        const struct pb_inbox_config *inbox = &service->own_inboxes[i];
        if (inbox->node != NULL)
            pb_report(&load->report, PB_E_CONFIG_VALUE, inbox->line, inbox->col,
                      "service.inboxes: node %.63s is for services that share jobs; give "
                      "service.store, or remove node",
                      inbox->node);
    }
    if (store != NULL)
        pb_schema_need(load, &pb_section_store, store, store);
    if (node != NULL && service->node != NULL && !pb_is_file_word(service->node))
        pb_report(&load->report, PB_E_CONFIG_VALUE, node->line, node->col,
                  "service.node: '%.80s' is no name of a node; write up to 63 letters, digits, "
                  "'_', '-' and '.', which does not begin with '-' or '.'",
                  service->node);
    if (database != NULL && text != NULL && pb_store_has_password(text))
        pb_report(&load->report, PB_E_CONFIG_VALUE, database->line, database->col,
                  "service.store.postgresql: no password belongs into the configuration; use "
                  "passfile=FILE, or the socket of a database on this machine");
    check_fetch(load, section, service);
}
