/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The key `exchange` of a pipeline, and the exchanges that operators choose for their steps. The
 * keys are those of the pattern that is named, so they are known only after its name. */
#include "config/exchange.h"

#include "config/base/arena.h"
#include "config/config_parts.h"
#include "config/patterns.h"
#include "config/yaml_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WRONG_STEP(load, step, ...)                                                                \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (step)->line, (step)->col, __VA_ARGS__)
#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)

const struct pb_section *pb_exchange_section(const struct wic_pattern *pattern,
                                             struct pb_exchange_keys *room)
{
    room->key[0] = (struct pb_key){
        .name = "pattern",
        .type = PB_KEY_TEXT,
        .offset = offsetof(struct pb_exchange_config, name),
        .def = wic_pattern_unidirectional.name,
        .doc = "Communication pattern; the other keys are its arguments. 'pushbroom patterns' "
               "lists them all.",
    };
    for (size_t i = 0; i < pattern->arg_count; i++) {
        const struct wic_pattern_arg *arg = &pattern->args[i];
        (void)snprintf(room->def[i], sizeof room->def[i], "%" PRIu64, arg->def);
        room->key[1 + i] = (struct pb_key){
            .name = arg->name,
            .type = PB_KEY_COUNT,
            .offset = offsetof(struct pb_exchange_config, args) + i * sizeof(uint64_t),
            .min = (double)arg->min,
            .max = (double)arg->max,
            .def = room->def[i],
            .doc = arg->doc,
        };
    }
    room->section =
        (struct pb_section){"exchange", "In which order tiles go to the device, and results back.",
                            room->key, 1 + pattern->arg_count};
    return &room->section;
}

/* A pattern that cannot be had is a mistake at the node. */
static const struct wic_pattern *find_pattern(struct pb_load *load, const struct pb_yaml *node,
                                              const char *name)
{
    char all[WIC_PATTERNS_MAX][WIC_PATTERN_NAME_MAX], text[WIC_TEXT_BYTES] = "", suggestion[400];
    const char *names[WIC_PATTERNS_MAX];
    const struct wic_pattern *pattern = NULL;
    int rc = pb_pattern_find(name, &pattern, text, sizeof text);
    size_t n = rc == -ENOENT ? pb_pattern_names(all) : 0;
    for (size_t i = 0; i < n; i++)
        names[i] = all[i];
    if (rc == -ENOENT)
        WRONG(load, node, "exchange.pattern: there is no pattern '%.80s'%s", name,
              pb_suggest(name, names, n, suggestion, sizeof suggestion));
    else if (rc < 0)
        WRONG(load, node, "exchange.pattern: %s", text);
    return pattern;
}

static void read_exchange(struct pb_load *load, const struct wic_pattern *pattern,
                          const struct pb_yaml *map, struct pb_exchange_config *out)
{
    struct pb_exchange_keys room;
    pb_schema_read(load, pb_exchange_section(pattern, &room), map, out);
    out->pattern = pattern;
}

void pb_read_exchange(struct pb_load *load, const struct pb_yaml *map,
                      struct pb_pipeline_config *pipeline)
{
    const struct wic_pattern *pattern = &wic_pattern_unidirectional;
    const struct pb_yaml *name = NULL;
    if (map != NULL && map->kind == PB_YAML_MAP)
        name = pb_yaml_find(map, "pattern", NULL);
    if (name != NULL && !pb_need_scalar(load, name, "exchange.pattern", "a pattern's name"))
        map = name = NULL;
    if (name != NULL && (pattern = find_pattern(load, name, name->text)) == NULL) {
        pattern = &wic_pattern_unidirectional;
        map = NULL; /* whose keys they are is not known */
    }
    read_exchange(load, pattern, map, &pipeline->exchange);
}

/* What a step chooses, into *out. False after a mistake. */
static bool resolve(struct pb_load *load, const struct pb_step_config *step,
                    const struct pb_op_exchange *wanted, struct pb_exchange_config *out)
{
    char text[WIC_TEXT_BYTES] = "";
    int rc = pb_pattern_find(wanted->pattern, &out->pattern, text, sizeof text);
    if (rc == 0)
        wic_pattern_defaults(out->pattern, out->args);
    for (size_t i = 0; i < wanted->n_args && rc == 0; i++)
        rc = wic_pattern_set(out->pattern, out->args, wanted->arg[i].name, wanted->arg[i].value,
                             text, sizeof text);
    if (rc < 0) {
        WRONG_STEP(load, step, "%s exchanges data by the pattern '%s': %s", step->op->name,
                   wanted->pattern, text);
        return false;
    }
    out->name = pb_arena_text(load->arena, wanted->pattern, strlen(wanted->pattern));
    return out->name != NULL;
}

/* The tiles follow what the step chose, unless the file or a step before it says otherwise. */
static void join_tiles(struct pb_load *load, const struct pb_yaml *map,
                       const struct pb_step_config *step, const struct pb_exchange_config *chosen,
                       bool is_first, struct pb_pipeline_config *pipeline)
{
    const struct pb_exchange_config *now = &pipeline->exchange;
    bool same =
        now->pattern == chosen->pattern && memcmp(now->args, chosen->args, sizeof now->args) == 0;
    if (map != NULL && !pb_has_mistake(load, map) && !same)
        WRONG(load, map, "exchange: the step '%s' needs the pattern '%s'; leave 'exchange' out",
              step->op->name, chosen->name);
    else if (map == NULL && !is_first && !same)
        WRONG_STEP(load, step,
                   "%s needs the pattern '%s' for the tiles, a step before it '%s'; "
                   "make two pipelines of them",
                   step->op->name, chosen->name, now->name);
    else if (map == NULL)
        pipeline->exchange = *chosen;
}

void pb_choose_exchanges(struct pb_load *load, const struct pb_yaml *map,
                         struct pb_pipeline_config *pipeline)
{
    bool is_first = true;
    for (size_t i = 0; i < pipeline->n_steps && !pb_arena_failed(load->arena); i++) {
        struct pb_step_config *step = &pipeline->steps[i];
        struct pb_op_exchange wanted = {.pattern = NULL};
        struct pb_exchange_config chosen = {.name = NULL};
        if (step->op->exchange != NULL)
            step->op->exchange(step->params, &wanted);
        if (wanted.pattern == NULL || !resolve(load, step, &wanted, &chosen))
            continue;
        if (!wanted.of_tiles) {
            step->exchange = chosen;
            continue;
        }
        join_tiles(load, map, step, &chosen, is_first, pipeline);
        is_first = false;
    }
}
