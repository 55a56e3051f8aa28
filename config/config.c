/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Files (config_files.h) -> trees (yaml_tree.h) -> one tree (compose.h) -> struct by the schema
 * (schema.h) -> checks across keys. Each part reports its mistakes and the next one runs all the
 * same, so that one load shows every mistake; checks that would only repeat a mistake are left out.
 * Everything lives in one arena, the configuration itself included. */
#include "config/base/arena.h"
#include "config/compose.h"
#include "config/config.h"
#include "config/config_files.h"
#include "config/config_parts.h"
#include "config/group_pattern.h"
#include "config/pipeline_config.h"
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
    if (!pb_arena_failed(load->arena))
        pb_check_store(load, section, service);
    pb_schema_read(load, &pb_section_compute, pb_yaml_find(root, "compute", NULL),
                   &config->compute);
    pb_schema_read(load, &pb_section_limits, pb_yaml_find(root, "limits", NULL), &config->limits);
    section = pb_yaml_find(root, "web", NULL);
    before = pb_report_count(&load->report);
    pb_schema_read(load, &pb_section_web, section, &config->web);
    if (!pb_arena_failed(load->arena) && pb_report_count(&load->report) == before)
        pb_check_web(load, section, &config->web);
    if (!pb_arena_failed(load->arena))
        pb_read_pipelines(load, root, config);
    if (!pb_arena_failed(load->arena))
        pb_read_notify(load, pb_yaml_find(root, "notify", NULL), config);
}

static void read_files(struct pb_load *load, struct pb_config *config)
{
    const size_t before = pb_report_count(&load->report);
    const struct pb_yaml *root = pb_config_files_root(load, 0);
    char found[80];
    if (pb_report_count(&load->report) != before && root == NULL)
        return;
    if (root == NULL || pb_yaml_is_null(root))
        pb_report(&load->report, PB_E_CONFIG_VALUE, 1, 1,
                  "the file is empty; 'pipelines' is needed at least");
    else if (root->kind != PB_YAML_MAP)
        pb_report(&load->report, PB_E_CONFIG_SYNTAX, root->line, root->col,
                  "the file must be a map with service, compute, limits and pipelines, not %s",
                  pb_yaml_what(root, found, sizeof found));
    else
        read_sections(load, pb_compose(load, root), config);
}

static void free_groups(struct pb_config *config)
{
    for (size_t i = 0; i < config->n_pipelines; i++)
        pb_group_pattern_destroy(config->pipelines[i].input.group_pattern);
}

/* From the files of the load, which has its arena; takes it. */
static int finish(struct pb_load *load, struct pb_config **out_config)
{
    struct pb_err_list *errors = load->report.list;
    struct pb_config *config = pb_arena_alloc(load->arena, 1, sizeof *config);
    if (config != NULL && load->files->n > 0) {
        config->memory = load->arena;
        config->kinds = load->kinds;
        config->path = (char *)load->files->name[0];
        read_files(load, config);
        config->text = pb_config_files_join(load);
        config->files = load->files->name;
    }
    if (pb_arena_failed(load->arena))
        pb_report_memory(&load->report);
    if (errors->n) {
        if (config != NULL)
            free_groups(config);
        pb_arena_destroy(load->arena);
        return pb_code_errno(errors->err[0].code);
    }
    *out_config = config;
    return 0;
}

/* Begins a load without files. Returns false without memory, and reports it. */
static bool begin(struct pb_load *load, const struct pb_product_kinds *kinds, const char *name,
                  struct pb_err_list *errors)
{
    memset(errors, 0, sizeof *errors);
    *load = (struct pb_load){
        .arena = pb_arena_create(), .kinds = kinds, .report = {.list = errors, .file = name}};
    load->files = pb_arena_alloc(load->arena, 1, sizeof *load->files);
    if (load->files != NULL)
        return true;
    pb_arena_destroy(load->arena);
    pb_report_memory(&load->report);
    return false;
}

int pb_config_parse(const char *text, size_t bytes, const char *name,
                    const struct pb_product_kinds *kinds, struct pb_err_list *errors,
                    struct pb_config **out_config)
{
    struct pb_load load;
    if (!begin(&load, kinds, name, errors))
        return -ENOMEM;
    pb_config_files_split(&load, text, bytes, name);
    return finish(&load, out_config);
}

int pb_config_load(const char *path, const struct pb_product_kinds *kinds,
                   struct pb_err_list *errors, struct pb_config **out_config)
{
    struct pb_load load;
    if (!begin(&load, kinds, path, errors))
        return -ENOMEM;
    pb_config_files_open(&load, path);
    return finish(&load, out_config);
}

const char *pb_config_place(const struct pb_config *config, int line, int *out_line)
{
    *out_line = line % PB_FILE_LINES;
    return config->files[line / PB_FILE_LINES];
}

struct pb_config *pb_config_hold(const struct pb_config *config)
{
    struct pb_config *held = (struct pb_config *)config; /* all but the count is constant */
    (void)atomic_fetch_add(&held->holds, 1);
    return held;
}

void pb_config_destroy(struct pb_config *config)
{
    if (config == NULL || atomic_fetch_sub(&config->holds, 1) > 0)
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
