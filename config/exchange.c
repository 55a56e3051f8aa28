/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The key `exchange` of a pipeline, and the exchanges that operators choose for their steps. The
 * keys are those of the pattern that is named, so they are known only after its name. */
#include "config/exchange.h"

#include "config/base/arena.h"
#include "config/config_parts.h"
#include "config/patterns.h"
#include "config/pipeline_config.h"
#include "config/yaml/yaml_tree.h"

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
    room->section = (struct pb_section){
        "exchange", "Order in which tiles are sent to the device, and results returned.", room->key,
        1 + pattern->arg_count};
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
    out->of = PB_EXCHANGE_TILES;
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

const char *pb_exchange_of_name(enum pb_op_exchange_of of)
{
    static const char *const names[] = {"rounds", "tiles", "parts"};
    return names[of];
}

int pb_exchange_print(const struct pb_exchange_config *exchange, char *text, size_t bytes)
{
    const struct wic_pattern *pattern = exchange->pattern;
    int n = snprintf(text, bytes, "%s", pattern->name);
    for (size_t i = 0; i < pattern->arg_count; i++) {
        size_t at = (size_t)n < bytes ? (size_t)n : bytes;
        n += snprintf(text + at, bytes - at, "%s%s: %" PRIu64 "%s", i == 0 ? " (" : ", ",
                      pattern->args[i].name, exchange->args[i],
                      i + 1 == pattern->arg_count ? ")" : "");
    }
    return n;
}

/* What a step wants, with the pattern that goes by that name. */
struct wish {
    const struct pb_step_config *step; /* NULL: no step wants anything */
    struct pb_exchange_config exchange;
    bool by_data;
};

/* What a step chooses, into *out. files: that the pipeline reads. False after a mistake. */
static bool resolve(struct pb_load *load, const struct pb_step_config *step,
                    const struct pb_op_exchange *wanted, size_t files, struct wish *out)
{
    char text[WIC_TEXT_BYTES] = "";
    struct pb_exchange_config *x = &out->exchange;
    int rc = pb_pattern_find(wanted->pattern, &x->pattern, text, sizeof text);
    if (rc < 0) { /* which names the pattern, or its file */
        WRONG_STEP(load, step, "%s cannot exchange data: %s", step->op->name, text);
        return false;
    }
    wic_pattern_defaults(x->pattern, x->args);
    for (size_t i = 0; i < wanted->n_args && rc == 0; i++)
        rc = wic_pattern_set(x->pattern, x->args, wanted->arg[i].name,
                             wanted->arg[i].value == PB_OP_EXCHANGE_FILES ? files
                                                                          : wanted->arg[i].value,
                             text, sizeof text);
    if (rc < 0) {
        WRONG_STEP(load, step, "%s exchanges data by the pattern '%s': %s", step->op->name,
                   wanted->pattern, text);
        return false;
    }
    x->name = pb_arena_text(load->arena, wanted->pattern, strlen(wanted->pattern));
    x->of = wanted->of;
    out->step = step;
    out->by_data = wanted->by_data;
    return x->name != NULL;
}

static bool same(const struct pb_exchange_config *a, const struct pb_exchange_config *b)
{
    return a->pattern == b->pattern && memcmp(a->args, b->args, sizeof a->args) == 0;
}

/* Adds what a step wants for the tiles or their parts to what the steps before it want. */
static void join(struct pb_load *load, struct wish *all, const struct wish *one)
{
    bool parts = one->exchange.of == PB_EXCHANGE_PARTS && all->exchange.of == PB_EXCHANGE_PARTS;
    if (all->step == NULL || (parts && one->by_data && !all->by_data)) {
        *all = *one;
        return;
    }
    if ((parts && all->by_data && !one->by_data) ||
        (all->exchange.of == one->exchange.of && same(&all->exchange, &one->exchange)))
        return;
    WRONG_STEP(load, one->step,
               "%s needs the pattern '%s' for the %s, a step before it '%s'; "
               "make two pipelines of them",
               one->step->op->name, one->exchange.name, pb_exchange_of_name(one->exchange.of),
               all->exchange.name);
}

/* Returns true if the section only repeats the defaults. */
static bool is_default(const struct pb_exchange_config *exchange)
{
    uint64_t args[WIC_PATTERN_ARGS_MAX] = {0};
    wic_pattern_defaults(&wic_pattern_unidirectional, args);
    return exchange->pattern == &wic_pattern_unidirectional &&
           memcmp(args, exchange->args, sizeof args) == 0;
}

/* The pipeline follows what its steps want; the file may say the same and nothing else. */
static void settle(struct pb_load *load, const struct pb_yaml *map, const struct wish *all,
                   struct pb_pipeline_config *pipeline)
{
    char text[200];
    if (all->step == NULL || (map != NULL && pb_has_mistake(load, map)))
        return;
    if (map == NULL || is_default(&pipeline->exchange) ||
        same(&pipeline->exchange, &all->exchange)) {
        pipeline->exchange = all->exchange;
        return;
    }
    (void)pb_exchange_print(&all->exchange, text, sizeof text);
    WRONG(load, map, "exchange: the step '%s' needs the pattern '%s', as %s; leave 'exchange' out",
          all->step->op->name, all->exchange.name, text);
}

void pb_choose_exchanges(struct pb_load *load, const struct pb_yaml *map,
                         struct pb_pipeline_config *pipeline)
{
    struct wish all = {.step = NULL};
    for (size_t i = 0; i < pipeline->n_steps && !pb_arena_failed(load->arena); i++) {
        struct pb_step_config *step = &pipeline->steps[i];
        struct pb_op_exchange wanted = {.pattern = NULL};
        struct wish one = {.step = NULL};
        if (step->op->exchange != NULL)
            step->op->exchange(step->params, &wanted);
        if (wanted.pattern == NULL ||
            !resolve(load, step, &wanted, 1 + pipeline->input.n_sources, &one))
            continue;
        if (wanted.of == PB_EXCHANGE_ROUNDS)
            step->exchange = one.exchange;
        else
            join(load, &all, &one);
    }
    settle(load, map, &all, pipeline);
}
