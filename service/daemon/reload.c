/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/daemon/reload.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/io/sha256.h"
#include "service/inbox/dirs.h"
#include "service/base/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key;
    size_t offset;
} fixed[] = {
    {"work", offsetof(struct pb_service_config, work)},
    {"archive", offsetof(struct pb_service_config, archive)},
    {"quarantine", offsetof(struct pb_service_config, quarantine)},
    {"state", offsetof(struct pb_service_config, state)},
    {"socket", offsetof(struct pb_service_config, socket)},
    {"node", offsetof(struct pb_service_config, node)},
    {"store.postgresql", offsetof(struct pb_service_config, store.postgresql)},
};

/* Value of such a key; "" if it is not set. */
static const char *path_of(const struct pb_config *config, size_t offset)
{
    const char *member = (const char *)&config->service + offset;
    const char *value = *(char *const *)(const void *)member;
    return value != NULL ? value : "";
}

/* Finds the inbox with that path; NULL if absent. */
static const struct pb_inbox_config *find_inbox(const struct pb_service_config *service,
                                                const char *path)
{
    for (size_t i = 0; i < service->n_inboxes; i++)
        if (strcmp(service->inboxes[i].path, path) == 0)
            return &service->inboxes[i];
    return NULL;
}

/* Node of the inbox; "" = each that lists it. */
static const char *node_of(const struct pb_inbox_config *inbox)
{
    return inbox->node != NULL ? inbox->node : "";
}

static void log_warning(void *user, const char *file, int line, int col, const char *text)
{
    (void)user;
    pb_log(PB_LOG_WARNING, "%s:%d:%d: %s", file, line, col, text);
}

void pb_reload_digests(struct pb_config *config)
{
    char hex[65];
    for (size_t i = 0; i < config->n_pipelines; i++) {
        struct pb_pipeline_config *pipeline = &config->pipelines[i];
        char *text = pb_config_pipeline_text(pipeline);
        struct pb_sha256 *sum = text != NULL ? pb_sha256_create() : NULL;
        pb_sha256_add(sum, text, text != NULL ? strlen(text) : 0);
        if (pb_sha256_hex(sum, hex) == 0)
            (void)snprintf(pipeline->digest, sizeof pipeline->digest, "%.32s", hex);
        pb_sha256_destroy(sum);
        free(text);
    }
}

void pb_reload_warn(struct pb_config *config)
{
    pb_config_warnings(config, log_warning, NULL);
}

static void warn_of_inboxes(const struct pb_service_config *old,
                            const struct pb_service_config *new_service)
{
    for (size_t i = 0; i < new_service->n_inboxes; i++) {
        const struct pb_inbox_config *now = &new_service->inboxes[i],
                                     *before = find_inbox(old, now->path);
        if (before == NULL)
            pb_log(PB_LOG_WARNING,
                   "reload: inbox %s needs a restart of the service; until then it is not watched",
                   now->path);
        else if (strcmp(node_of(before), node_of(now)) != 0)
            pb_log(PB_LOG_WARNING,
                   "reload: the node of inbox %s needs a restart of the service; until then the "
                   "old one is used",
                   now->path);
    }
    for (size_t i = 0; i < old->n_inboxes; i++)
        if (find_inbox(new_service, old->inboxes[i].path) == NULL)
            pb_log(PB_LOG_WARNING, "reload: inbox %s is watched until the service is restarted",
                   old->inboxes[i].path);
}

int pb_reload_dirs(const struct pb_config *old, const struct pb_config *new_config,
                   struct pb_dirs *dirs, struct pb_err *err)
{
    char products[PB_FILES_PATH_BYTES];
    int rc = pb_files_make_directory(new_config->service.products, "products", err);
    if (rc == 0 && realpath(new_config->service.products, products) == NULL)
        rc = pb_fail(err, PB_E_SYSTEM, "products directory %s: %s", new_config->service.products,
                     strerror(errno));
    if (rc != 0)
        return rc;
    struct pb_dirs *next = malloc(sizeof *next);
    if (next == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    *next = *dirs;
    (void)memcpy(next->products, products, sizeof products);
    rc = pb_dirs_check_apart(next, old->service.socket, err);
    free(next);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        const char *before = path_of(old, fixed[i].offset);
        const char *after = path_of(new_config, fixed[i].offset);
        if (strcmp(before, after) != 0)
            pb_log(PB_LOG_WARNING,
                   "reload: service.%s: %s needs a restart of the service; until then the old one "
                   "is used",
                   fixed[i].key, after[0] != '\0' ? after : "(without it)");
    }
    if (old->service.store.lease_ms != new_config->service.store.lease_ms)
        pb_log(PB_LOG_WARNING, "reload: service.store.lease needs a restart of the service; until "
                               "then the old one is used");
    warn_of_inboxes(&old->service, &new_config->service);
    (void)memcpy(dirs->products, products, sizeof products);
    return 0;
}
