/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The keys of service.store, and their check. */
#include "config/config_parts.h"

#include "config/service_config.h"
#include "config/yaml/yaml_tree.h"

#include <ctype.h>
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
}
