/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Warnings of a configuration. */
#include "config/output/output_path.h"

#include "config/base/glob.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/product_config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Whether every name that fits `later` fits `earlier`. A '*' of the earlier pattern takes any text,
 * also the wildcards of the later one and all that they stand for. */
static bool covers(const char *earlier, const char *later)
{
    if (strcasecmp(earlier, later) == 0)
        return true;
    return strpbrk(earlier, "?[\\") == NULL && pb_glob_fits(earlier, later, PB_GLOB_ANY_CASE);
}

static bool covers_all(const struct pb_input_config *earlier, const struct pb_input_config *later)
{
    bool all = earlier->n_files == 0 && later->n_files == 0 && later->n_match > 0;
    for (size_t i = 0; i < later->n_match && all; i++) {
        bool one = false;
        for (size_t k = 0; k < earlier->n_match && !one; k++)
            one = covers(earlier->match[k], later->match[i]);
        all = one;
    }
    return all;
}

/* An earlier pipeline whose patterns cover all of this one's; NULL = none. */
static const struct pb_pipeline_config *covered_by(const struct pb_config *config,
                                                   const struct pb_pipeline_config *pipeline)
{
    for (size_t i = 0; i < config->n_pipelines && &config->pipelines[i] != pipeline; i++)
        if (covers_all(&config->pipelines[i].input, &pipeline->input))
            return &config->pipelines[i];
    return NULL;
}

/* The part of output that needs the metadata that the pipeline does not name; NULL = none does. */
static const char *lacks_metadata(const struct pb_pipeline_config *pipeline)
{
    const struct pb_output_config *output = &pipeline->output;
    if (pipeline->input.n_metadata > 0)
        return NULL;
    return pb_output_path_needs_metadata(output->path)                           ? "output.path"
           : output->name != NULL && pb_output_path_needs_metadata(output->name) ? "output.name"
                                                                                 : NULL;
}

struct warnings {
    const struct pb_config *config;
    pb_config_warning *warn;
    void *user;
};

static void warn_at(const struct warnings *to, int line, int col, const char *text)
{
    int own = 0;
    const char *file = pb_config_place(to->config, line, &own);
    to->warn(to->user, file, own, col, text);
}

static void warn_of(const struct warnings *to, const struct pb_pipeline_config *pipeline)
{
    char text[400];
    const struct pb_pipeline_config *first = covered_by(to->config, pipeline);
    const char *part = lacks_metadata(pipeline);
    if (first != NULL) {
        (void)snprintf(text, sizeof text,
                       "no file reaches pipeline '%s', as '%s' before it takes all that fits its "
                       "input.match; it runs only when it is named (-p)",
                       pipeline->name, first->name);
        warn_at(to, pipeline->line, pipeline->col, text);
    }
    if (part != NULL) {
        (void)snprintf(text, sizeof text,
                       "every job of pipeline '%s' will fail: %s has {sensor} or {datetime}, and "
                       "no input.metadata provides them",
                       pipeline->name, part);
        warn_at(to, pipeline->line, pipeline->col, text);
    }
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *product = pipeline->products[i];
        const char *why =
            product->kind->never != NULL ? product->kind->never(product, pipeline) : NULL;
        if (why == NULL)
            continue;
        (void)snprintf(text, sizeof text, "every job of pipeline '%s' will fail: %s",
                       pipeline->name, why);
        warn_at(to, product->line, product->col, text);
    }
}

/* A unit starts the service in /, a shell where the user is. */
static void warn_of_paths(const struct warnings *to)
{
    const struct pb_service_config *service = &to->config->service;
    const struct {
        const char *key, *path;
    } paths[] = {{"work", service->work},
                 {"products", service->products},
                 {"quarantine", service->quarantine},
                 {"state", service->state},
                 {"socket", service->socket},
                 {"archive", service->archive}};
    char keys[120] = "", text[400];
    size_t n = 0;
    for (size_t i = 0; i < service->n_inboxes && n == 0; i++)
        if (service->inboxes[i].path[0] != '/')
            n = (size_t)snprintf(keys, sizeof keys, "inbox");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (paths[i].path != NULL && paths[i].path[0] != '/')
            n += (size_t)snprintf(keys + n, sizeof keys - n, "%s%s", n > 0 ? ", " : "",
                                  paths[i].key);
    if (n == 0)
        return;
    (void)snprintf(text, sizeof text,
                   "relative paths in service (%s) begin at the working directory of pushbroomd, "
                   "which is / in its unit; write absolute paths",
                   keys);
    warn_at(to, 1, 1, text);
}

void pb_config_warnings(const struct pb_config *config, pb_config_warning *warn, void *user)
{
    const struct warnings to = {config, warn, user};
    warn_of_paths(&to);
    for (size_t i = 0; i < config->n_pipelines; i++)
        warn_of(&to, &config->pipelines[i]);
}
