/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/config_parts.h"

#include "config/base/arena.h"
#include "config/pipeline_config.h"
#include "config/yaml/yaml_tree.h"
#include "kernels/op.h"

#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)
#define STEPS_MAX 64
#define OPS_MAX   128

static const struct pb_op *find_op(struct pb_load *load, const struct pb_yaml *name)
{
    const char *names[OPS_MAX];
    char suggestion[400];
    const struct pb_op *op = pb_op_find(name->text);
    if (op)
        return op;
    size_t n = pb_op_count() < OPS_MAX ? pb_op_count() : OPS_MAX;
    for (size_t i = 0; i < n; i++)
        names[i] = pb_op_at(i)->name;
    WRONG(load, name, "there is no operator '%.80s'%s", name->text,
          pb_suggest(name->text, names, n, suggestion, sizeof suggestion));
    return NULL;
}

/* body: the parameters, or NULL. */
static void read_params(struct pb_load *load, const struct pb_yaml *name,
                        const struct pb_yaml *body, struct pb_step_config *step)
{
    const struct pb_section section = pb_op_section(step->op);
    step->params = pb_arena_alloc(load->arena, 1, step->op->params_bytes);
    if (step->params == NULL)
        return;
    pb_schema_read(load, &section, body, step->params);
    pb_schema_need(load, &section, name, body);
}

/* False when the list is none that can be taken apart. */
static bool check_list(struct pb_load *load, const struct pb_yaml *list)
{
    char found[80];
    if (list->kind != PB_YAML_LIST) {
        WRONG(load, list, "'steps' must be a list of operators, not %s; start each with '- '",
              pb_yaml_what(list, found, sizeof found));
        return false;
    }
    if (list->n > STEPS_MAX)
        WRONG(load, list, "%zu steps; at most %d are allowed", list->n, STEPS_MAX);
    return list->n <= STEPS_MAX;
}

void pb_read_steps(struct pb_load *load, const struct pb_yaml *list,
                   struct pb_pipeline_config *pipeline, struct pb_pipeline_notes *notes)
{
    if (list == NULL || pb_yaml_is_null(list))
        return;
    bool good = check_list(load, list);
    notes->steps = pb_arena_alloc(load->arena, good ? list->n : 1, sizeof *notes->steps);
    if (notes->steps && !good)
        notes->steps[notes->n_steps++] = (struct pb_step_note){list, PB_STEP_NONE, false};
    if (notes->steps == NULL || !good)
        return;
    pipeline->steps = pb_arena_alloc(load->arena, list->n, sizeof *pipeline->steps);
    for (size_t i = 0; pipeline->steps && i < list->n; i++) {
        const struct pb_yaml *name = NULL, *body = NULL;
        struct pb_step_note *note = &notes->steps[notes->n_steps++];
        *note = (struct pb_step_note){list->items[i], PB_STEP_NONE, false};
        struct pb_step_config step = {.line = list->items[i]->line, .col = list->items[i]->col};
        if (!pb_read_entry(load, list->items[i], "step", "- index: {names: [NDVI]}", &name, &body))
            continue;
        step.op = find_op(load, name);
        if (step.op == NULL)
            continue;
        size_t before = pb_report_count(&load->report);
        read_params(load, name, body, &step);
        if (step.params == NULL)
            return;
        note->is_sound = pb_report_count(&load->report) == before;
        note->step = pipeline->n_steps;
        pipeline->steps[pipeline->n_steps++] = step;
    }
}
