/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The reader of notify, and the checks of its keys against each other. */
#include "config/config_parts.h"

#include "config/base/arena.h"
#include "config/base/glob.h"
#include "config/config.h"
#include "config/notify/events.h"
#include "config/notify_config.h"
#include "config/pipeline_config.h"
#include "config/yaml/yaml_tree.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)

/* An entry being checked. */
struct entry {
    struct pb_load *load;
    const struct pb_yaml *name, *body; /* body may be NULL */
    struct pb_notify_config *notify;
};

/* The place of a key's value, or the entry's. */
static const struct pb_yaml *at(const struct entry *e, const char *key)
{
    const struct pb_yaml *node =
        e->body && e->body->kind == PB_YAML_MAP ? pb_yaml_find(e->body, key, NULL) : NULL;
    return node ? node : e->name;
}

static const struct pb_yaml *item(const struct pb_yaml *list, size_t i)
{
    return list->kind == PB_YAML_LIST && i < list->n ? list->items[i] : list;
}

static bool fits_event(const char *pattern)
{
    for (int i = 0; i < PB_EVENT_KINDS; i++)
        if (pb_glob_fits(pattern, pb_event_name((enum pb_event_kind)i), 0))
            return true;
    return false;
}

static bool fits_pipeline(const struct pb_config *config, const char *pattern)
{
    for (size_t i = 0; i < config->n_pipelines; i++)
        if (pb_glob_fits(pattern, config->pipelines[i].name, 0))
            return true;
    return false;
}

static void check_filters(const struct entry *e, const struct pb_config *config)
{
    for (size_t i = 0; i < e->notify->n_events; i++)
        if (!fits_event(e->notify->events[i]))
            WRONG(e->load, item(at(e, "events"), i),
                  "notify: '%.60s' fits no event; there are job.accepted, job.running, "
                  "job.successful, job.failed, job.dismissed, input.quarantined, "
                  "product.published and alert.raised",
                  e->notify->events[i]);
    for (size_t i = 0; i < e->notify->n_pipelines; i++)
        if (!fits_pipeline(config, e->notify->pipelines[i]))
            WRONG(e->load, item(at(e, "pipelines"), i), "notify: '%.60s' fits no pipeline",
                  e->notify->pipelines[i]);
}

static bool is_this_machine(const char *host, size_t n)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]", "::1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && strncasecmp(names[i], host, n) == 0)
            return true;
    return false;
}

/* An address of http or https; section: for messages. */
static void check_address(const struct entry *e, const char *section, const char *key,
                          const char *url)
{
    const char *scheme_end = url ? strstr(url, "://") : NULL;
    if (url == NULL)
        return;
    bool tls = strncasecmp(url, "https://", 8) == 0;
    const char *host = scheme_end ? scheme_end + 3 : "";
    size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
    if ((!tls && strncasecmp(url, "http://", 7) != 0) || n == 0)
        WRONG(e->load, at(e, key), "%s.%s: '%.80s' is no address; write https://host/path", section,
              key, url);
    else if (memchr(host, '@', strcspn(host, "/?#")) != NULL)
        WRONG(e->load, at(e, key),
              "%s.%s: no user or password belongs into the address; use token_file", section, key);
    else if (!tls && e->notify->token != NULL && url == e->notify->url && !is_this_machine(host, n))
        WRONG(e->load, at(e, "token_file"),
              "%s.token_file: a token is sent over https only, and the address is http", section);
}

static void check_webhook(const struct entry *e)
{
    check_address(e, "webhook", "url", e->notify->url);
}

static void check_stac(const struct entry *e)
{
    const struct pb_notify_config *notify = e->notify;
    check_address(e, "stac", "url", notify->url);
    check_address(e, "stac", "base_url", notify->base_url);
    for (size_t i = 0; i < 2; i++) {
        const char *url = i == 0 ? notify->url : notify->base_url;
        if (url != NULL && strpbrk(url, "?#") != NULL)
            WRONG(e->load, at(e, i == 0 ? "url" : "base_url"),
                  "stac.%s: paths are added to the address, so it has no '?' or '#'",
                  i == 0 ? "url" : "base_url");
    }
    for (size_t i = 0; i < notify->n_events; i++)
        if (strcmp(notify->events[i], "product.published") != 0)
            WRONG(e->load, item(at(e, "events"), i),
                  "stac.events: only product.published has an item; leave this key out");
}

static void check_mqtt(const struct entry *e)
{
    const struct pb_notify_config *notify = e->notify;
    if (notify->topic != NULL && (notify->topic[0] == '\0' || strpbrk(notify->topic, "#+") != NULL))
        WRONG(e->load, at(e, "topic"),
              "mqtt.topic: '%.80s' is no topic to publish to; it has no '#' or '+'", notify->topic);
    if (notify->password != NULL && notify->user == NULL)
        WRONG(e->load, at(e, "password_file"), "mqtt.password_file needs mqtt.user");
    if (notify->password != NULL && notify->tls != 0 && notify->host != NULL &&
        !is_this_machine(notify->host, strlen(notify->host)))
        WRONG(e->load, at(e, "password_file"),
              "mqtt.password_file: a password is sent with tls only, and tls is off");
}

static void check_exec(const struct entry *e)
{
    if (e->notify->n_command > 0 && e->notify->command[0][0] != '/')
        WRONG(e->load, item(at(e, "command"), 0),
              "exec.command: '%.80s' is no absolute path; no shell looks for programs",
              e->notify->command[0]);
}

static void check_name(const struct entry *e, const struct pb_config *config)
{
    for (size_t i = 0; i < config->n_notify; i++) {
        const struct pb_notify_config *other = &config->notify[i];
        if (e->notify->name == NULL || other->name == NULL ||
            strcmp(other->name, e->notify->name) != 0)
            continue;
        WRONG(e->load, at(e, "name"),
              "notify: the entry in line %d is called '%s' already; give this one another name",
              other->line, other->name);
        return;
    }
}

static bool find_kind(struct pb_load *load, const struct pb_yaml *name, enum pb_notify_kind *out)
{
    const char *names[PB_NOTIFY_KINDS];
    char suggestion[400];
    for (int i = 0; i < PB_NOTIFY_KINDS; i++) {
        names[i] = pb_notify_sections[i]->name;
        if (strcmp(names[i], name->text) == 0) {
            *out = (enum pb_notify_kind)i;
            return true;
        }
    }
    WRONG(load, name, "notify knows no '%.80s'%s", name->text,
          pb_suggest(name->text, names, PB_NOTIFY_KINDS, suggestion, sizeof suggestion));
    return false;
}

static void read_entry(struct pb_load *load, const struct pb_yaml *node, struct pb_config *config)
{
    static void (*const checks[PB_NOTIFY_KINDS])(const struct entry *e) = {
        [PB_NOTIFY_EXEC] = check_exec,
        [PB_NOTIFY_WEBHOOK] = check_webhook,
        [PB_NOTIFY_MQTT] = check_mqtt,
        [PB_NOTIFY_STAC] = check_stac};
    struct pb_notify_config *notify = &config->notify[config->n_notify];
    struct entry e = {load, NULL, NULL, notify};
    if (!pb_read_entry(load, node, "notification", "- webhook: {url: \"https://host/path\"}",
                       &e.name, &e.body) ||
        !find_kind(load, e.name, &notify->kind))
        return;
    const struct pb_section *section = pb_notify_sections[notify->kind];
    notify->line = node->line;
    notify->col = node->col;
    size_t before = pb_report_count(&load->report);
    pb_schema_read(load, section, e.body, notify);
    pb_schema_need(load, section, e.name, e.body);
    if (pb_report_count(&load->report) == before && !pb_arena_failed(load->arena)) {
        check_filters(&e, config);
        checks[notify->kind](&e);
        check_name(&e, config);
    }
    config->n_notify++;
}

void pb_read_notify(struct pb_load *load, const struct pb_yaml *list, struct pb_config *config)
{
    char found[80];
    if (list == NULL || pb_yaml_is_null(list))
        return;
    if (list->kind != PB_YAML_LIST) {
        WRONG(load, list, "'notify' must be a list such as - webhook: {url: ...}, not %s",
              pb_yaml_what(list, found, sizeof found));
        return;
    }
    if (list->n > PB_NOTIFY_MAX) {
        WRONG(load, list, "%zu entries under notify; at most %d are allowed", list->n,
              PB_NOTIFY_MAX);
        return;
    }
    config->notify = pb_arena_alloc(load->arena, list->n ? list->n : 1, sizeof *config->notify);
    for (size_t i = 0; config->notify && i < list->n && !pb_arena_failed(load->arena); i++)
        read_entry(load, list->items[i], config);
}
