/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Checks of inputs that are streams of lines. */
#include "config/config_parts.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/yaml_tree.h"

#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)

static const struct pb_yaml *find(const struct pb_yaml *map, const char *key)
{
    return map != NULL && map->kind == PB_YAML_MAP ? pb_yaml_find(map, key, NULL) : NULL;
}

static void check_name(struct pb_load *load, const struct pb_yaml *node, const char *name)
{
    if (!pb_is_file_word(name))
        WRONG(load, node,
              "input.stream: '%.80s' cannot be a stream's name; use letters, digits, '_', '-' and "
              "'.', at most 63",
              name);
}

void pb_check_stream(struct pb_load *load, const struct pb_yaml *owner, const struct pb_yaml *node,
                     const struct pb_input_config *input)
{
    static const char *const of_files[] = {
        "match", "pages", "sources", "scene",   "archives", "group",    "by",       "order",
        "list",  "files", "grid",    "quality", "complete", "metadata", "sidecars", "complex",
    };
    const struct pb_yaml *stream = find(node, "stream"), *lines = find(node, "lines");
    const struct pb_yaml *at = stream ? stream : node ? node : owner;
    if (input->stream == NULL) {
        if (lines != NULL)
            WRONG(load, lines, "input.lines is about a stream; name it with input.stream: swir");
        return;
    }
    check_name(load, at, input->stream);
    for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++) {
        const struct pb_yaml *value = find(node, of_files[i]);
        if (value != NULL)
            WRONG(load, value,
                  "input.%s is about files, and input.stream takes lines of a sensor; leave one of "
                  "them out",
                  of_files[i]);
    }
    if (input->valid == PB_VALID_MASK)
        WRONG(load, find(node, "valid"),
              "input.valid: mask is about a mask in a file, and lines of a stream lack it");
}

const struct pb_pipeline_config *pb_config_stream(const struct pb_config *config,
                                                  const char *stream)
{
    for (size_t i = 0; i < config->n_pipelines; i++)
        if (config->pipelines[i].input.stream != NULL &&
            strcmp(config->pipelines[i].input.stream, stream) == 0)
            return &config->pipelines[i];
    return NULL;
}

void pb_check_streams(struct pb_load *load, const struct pb_yaml *pipelines,
                      const struct pb_config *config)
{
    for (size_t i = 1; i < config->n_pipelines; i++)
        for (size_t k = 0; k < i; k++) {
            const char *a = config->pipelines[i].input.stream;
            const char *b = config->pipelines[k].input.stream;
            if (a == NULL || b == NULL || strcmp(a, b) != 0)
                continue;
            const struct pb_yaml *input = find(pipelines->items[i], "input");
            const struct pb_yaml *node = find(input, "stream");
            WRONG(load, node ? node : pipelines->keys[i],
                  "input.stream: '%.63s' is the stream of pipeline '%.63s' already; a pipeline has "
                  "any number of products, or write to two streams",
                  a, config->pipelines[k].name);
            break;
        }
}
