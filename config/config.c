/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Text -> tree (yaml_tree.h) -> struct by the schema (schema.h) -> checks across keys. Each part
 * reports its mistakes and the next one runs all the same, so that one load shows every mistake;
 * checks that would only repeat a mistake are left out. Everything lives in one arena, the
 * configuration itself included. */
#include "config/config.h"

#include "config/base/arena.h"
#include "config/config_parts.h"
#include "config/group_pattern.h"
#include "config/yaml/yaml_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_sections(struct pb_load *load, const struct pb_yaml *root,
                          struct pb_config *config)
{
    pb_report_unknown(load, root, "the file", pb_top_keys, PB_TOP_KEYS);
    struct pb_service_config *service = &config->service;
    const struct pb_yaml *section = pb_yaml_find(root, "service", NULL);
    size_t before = pb_report_count(&load->report);
    pb_schema_read(load, &pb_section_service, section, service);
    if (service->archive == NULL && service->work) {
        size_t bytes = strlen(service->work) + sizeof "/done";
        service->archive = pb_arena_alloc(load->arena, bytes, 1);
        if (service->archive)
            (void)snprintf(service->archive, bytes, "%s/done", service->work);
    }
    if (!pb_arena_failed(load->arena))
        pb_list_inboxes(load, section, service);
    if (!pb_arena_failed(load->arena))
        pb_check_service(load, section, service, pb_report_count(&load->report) == before);
    pb_schema_read(load, &pb_section_compute, pb_yaml_find(root, "compute", NULL),
                   &config->compute);
    pb_schema_read(load, &pb_section_limits, pb_yaml_find(root, "limits", NULL), &config->limits);
    if (!pb_arena_failed(load->arena))
        pb_read_pipelines(load, root, config);
    if (!pb_arena_failed(load->arena))
        pb_read_notify(load, pb_yaml_find(root, "notify", NULL), config);
}

static void read_text(struct pb_load *load, const char *text, size_t bytes,
                      struct pb_config *config)
{
    const struct pb_yaml *root = NULL;
    char found[80];
    int rc = pb_yaml_parse(text, bytes, load->arena, &load->report, &root);
    if (rc == -ENOMEM)
        pb_arena_fail(load->arena);
    if (rc)
        return;
    if (root == NULL || pb_yaml_is_null(root))
        pb_report(&load->report, PB_E_CONFIG_VALUE, 1, 1,
                  "the file is empty; 'pipelines' is needed at least");
    else if (root->kind != PB_YAML_MAP)
        pb_report(&load->report, PB_E_CONFIG_SYNTAX, root->line, root->col,
                  "the file must be a map with service, compute, limits and pipelines, not %s",
                  pb_yaml_what(root, found, sizeof found));
    else
        read_sections(load, root, config);
}

static void free_groups(struct pb_config *config)
{
    for (size_t i = 0; i < config->n_pipelines; i++)
        pb_group_pattern_destroy(config->pipelines[i].input.group_pattern);
}

int pb_config_parse(const char *text, size_t bytes, const char *name,
                    const struct pb_product_kinds *kinds, struct pb_err_list *errors,
                    struct pb_config **out_config)
{
    struct pb_arena *arena = pb_arena_create();
    struct pb_load load = {
        .arena = arena, .kinds = kinds, .report = {.list = errors, .file = name}};
    memset(errors, 0, sizeof *errors);
    struct pb_config *config = pb_arena_alloc(arena, 1, sizeof *config);
    if (config) {
        config->memory = arena;
        config->kinds = kinds;
        config->path = pb_arena_text(arena, name, strlen(name));
        if (bytes <= PB_CONFIG_BYTES_MAX)
            config->text = pb_arena_text(arena, text, bytes);
        read_text(&load, text, bytes, config);
    }
    if (pb_arena_failed(arena))
        pb_report_memory(&load.report);
    if (errors->n) {
        if (config != NULL)
            free_groups(config);
        pb_arena_destroy(arena);
        return pb_code_errno(errors->err[0].code);
    }
    *out_config = config;
    return 0;
}

/* Reads one byte over the limit, to detect a file that is too large. */
static int read_file(const char *path, char *text, size_t *out_bytes, struct pb_report *report)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return pb_report(report, PB_E_CONFIG_FILE, 0, 0, "cannot open it: %s", strerror(errno));
    size_t bytes = fread(text, 1, PB_CONFIG_BYTES_MAX + 1, file);
    int rc = 0;
    if (ferror(file))
        rc = pb_report(report, PB_E_CONFIG_FILE, 0, 0, "cannot read it: %s", strerror(errno));
    (void)fclose(file);
    *out_bytes = bytes;
    return rc;
}

int pb_config_load(const char *path, const struct pb_product_kinds *kinds,
                   struct pb_err_list *errors, struct pb_config **out_config)
{
    struct pb_report report = {.list = errors, .file = path};
    size_t bytes = 0;
    memset(errors, 0, sizeof *errors);
    char *text = malloc(PB_CONFIG_BYTES_MAX + 1);
    if (text == NULL)
        return pb_report_memory(&report);
    int rc = read_file(path, text, &bytes, &report);
    if (rc == 0)
        rc = pb_config_parse(text, bytes, path, kinds, errors, out_config);
    free(text);
    return rc;
}

void pb_config_destroy(struct pb_config *config)
{
    if (config == NULL)
        return;
    free_groups(config);
    pb_arena_destroy(config->memory);
}

const struct pb_pipeline_config *pb_config_pipeline(const struct pb_config *config,
                                                    const char *name)
{
    for (size_t i = 0; i < config->n_pipelines; i++)
        if (strcmp(config->pipelines[i].name, name) == 0)
            return &config->pipelines[i];
    return NULL;
}
