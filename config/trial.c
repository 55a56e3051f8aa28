/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/trial.h"

#include "config/base/arena.h"
#include "config/yaml_tree.h"
#include "kernels/graph/builder.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* --- stand-ins -------------------------------------------------------------------------------- */

/* Bands that are not there yet get the first input's value: a chain always has one. */
static int build_stand_ins(const struct pb_op_args *args, struct pb_builder *b,
                           struct pb_diag *diag)
{
    (void)diag;
    int rc = 0;
    pb_value value = pb_builder_find(b, pb_builder_band_name(b, 0));
    for (size_t i = 0; i < args->arg[0].n && rc == 0; i++)
        if (pb_builder_find(b, args->arg[0].items[i].text) < 0)
            rc = pb_builder_define(b, args->arg[0].items[i].text, value);
    return rc;
}

static const struct pb_op stand_in = {.name = "stand-in", .build = build_stand_ins};

static bool is_named(const struct pb_trial_step *step, size_t param)
{
    return step->config->op->params[param].makes_bands;
}

/* Makes room for n names. */
static bool open_stand_in(struct pb_trial *trial, size_t step, size_t n)
{
    struct pb_arg *arg = &trial->steps[step].args.arg[0];
    if (arg->items == NULL)
        arg->items = pb_arena_alloc(trial->arena, n + 1, sizeof *arg->items);
    return arg->items != NULL;
}

static void add_stand_in(struct pb_trial *trial, size_t step, const char *name)
{
    struct pb_arg *arg = &trial->steps[step].args.arg[0];
    struct pb_arg_item *items = pb_trial_items(trial, step, 0);
    items[arg->n++].text = name;
}

/* Every word in a node that may be a band's name, of maps the keys too unless they are the first
 * ones and those are the file's own. More than would have been made, which hides a mistake at
 * worst. */
static void collect(struct pb_trial *trial, size_t step, const struct pb_yaml *node, bool own_keys)
{
    if (node->kind == PB_YAML_SCALAR && pb_is_identifier(node->text))
        add_stand_in(trial, step, node->text);
    for (size_t i = 0; node->kind != PB_YAML_SCALAR && i < node->n; i++) {
        if (node->kind == PB_YAML_MAP && !own_keys && pb_is_identifier(node->keys[i]->text))
            add_stand_in(trial, step, node->keys[i]->text);
        collect(trial, step, node->items[i], false);
    }
}

/* A parameter that the operator has: what is sound in it the step makes itself, as far as it can.
 * Of a map the keys are names of bands made and of constants. */
static void collect_param(struct pb_trial *trial, size_t step, const struct pb_load *load,
                          const struct pb_yaml *value)
{
    if (!pb_has_mistake(load, value))
        return;
    if (value->kind != PB_YAML_MAP)
        collect(trial, step, value, false);
    for (size_t i = 0; value->kind == PB_YAML_MAP && i < value->n; i++)
        collect(trial, step, value->keys[i], false);
}

static bool is_param(const struct pb_op *op, const char *name)
{
    for (size_t i = 0; i < op->n_params; i++)
        if (strcmp(op->params[i].name, name) == 0)
            return true;
    return false;
}

/* An entry of the list: "name: {param: ...}", or what was meant to be one; then op is NULL. */
static bool collect_entry(struct pb_trial *trial, size_t step, const struct pb_load *load,
                          const struct pb_yaml *entry, const struct pb_op *op)
{
    if (!open_stand_in(trial, step, entry->nodes))
        return false;
    bool one = entry->kind == PB_YAML_MAP && entry->n == 1;
    const struct pb_yaml *body = one ? entry->items[0] : NULL;
    if (op == NULL || body == NULL || body->kind != PB_YAML_MAP) {
        for (size_t i = 0; entry->kind != PB_YAML_SCALAR && i < entry->n; i++)
            collect(trial, step, entry->items[i], one);
        return true;
    }
    for (size_t i = 0; i < body->n; i++) {
        if (is_param(op, body->keys[i]->text))
            collect_param(trial, step, load, body->items[i]);
        else
            collect(trial, step, body->items[i], false);
    }
    return true;
}

/* What an input with mistakes, or keys with a slip, may have meant. */
static bool collect_body(struct pb_trial *trial, const struct pb_yaml *body,
                         const struct pb_pipeline_notes *notes)
{
    for (size_t i = 0; i < body->n; i++) {
        const char *key = body->keys[i]->text;
        bool input = strcmp(key, "input") == 0;
        if (strcmp(key, "steps") == 0 || strcmp(key, "products") == 0 ||
            (input && notes->input_is_sound))
            continue;
        if (!open_stand_in(trial, 0, body->nodes))
            return false;
        collect(trial, 0, body->items[i], input);
    }
    return true;
}

/* --- the steps as they are -------------------------------------------------------------------- */

static void make_inputs(struct pb_trial *trial)
{
    const struct pb_input_config *input = &trial->pipeline->input;
    size_t n = input->n_bands ? input->n_bands : PB_BANDS_MAX;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(trial->names[i], sizeof trial->names[i], "B%zu", i + 1);
        trial->inputs[i] = (struct pb_chain_input){
            .name = input->n_bands ? input->bands[i].name : trial->names[i],
            .type = PB_U16,
            .has_nodata = input->has_nodata,
            .nodata = input->nodata,
            .scale = input->scale,
            .offset = input->offset,
        };
    }
    trial->spec.inputs = trial->inputs;
    trial->spec.n_inputs = n;
}

static bool copy_step(struct pb_trial *trial, size_t at, const struct pb_step_config *config,
                      bool doubtful)
{
    struct pb_trial_step *step = &trial->steps[at];
    *step = (struct pb_trial_step){config, config->args, doubtful};
    for (size_t p = 0; p < config->op->n_params; p++) {
        const struct pb_arg *arg = &config->args.arg[p];
        if (arg->n == 0)
            continue;
        struct pb_arg_item *items = pb_arena_alloc(trial->arena, arg->n, sizeof *items);
        if (items == NULL)
            return false;
        (void)memcpy(items, arg->items, arg->n * sizeof *items);
        step->args.arg[p].items = items;
    }
    trial->chain[at].op = config->op;
    return true;
}

/* Stand-in 0, then for each entry of the list stand-in, step, stand-in. */
bool pb_trial_init(struct pb_trial *trial, struct pb_arena *arena, const struct pb_load *load,
                   const struct pb_yaml *body, const struct pb_pipeline_config *pipeline,
                   const struct pb_pipeline_notes *notes)
{
    size_t n = 1 + 3 * notes->n_steps;
    trial->arena = arena;
    trial->pipeline = pipeline;
    trial->steps = pb_arena_alloc(arena, n, sizeof *trial->steps);
    trial->chain = pb_arena_alloc(arena, n, sizeof *trial->chain);
    if (trial->steps == NULL || trial->chain == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        trial->chain[i] = (struct pb_chain_step){&stand_in, &trial->steps[i].args};
    trial->spec.steps = trial->chain;
    trial->spec.n_steps = n;
    make_inputs(trial);
    if (!collect_body(trial, body, notes))
        return false;
    for (size_t i = 0; i < notes->n_steps; i++) {
        const struct pb_step_note *note = &notes->steps[i];
        size_t at = 1 + 3 * i;
        const struct pb_step_config *config =
            note->step == PB_STEP_NONE ? NULL : &pipeline->steps[note->step];
        if (!note->is_sound &&
            !collect_entry(trial, at, load, note->entry, config ? config->op : NULL))
            return false;
        if (config && !copy_step(trial, at + 1, config, !note->is_sound))
            return false;
    }
    return true;
}

/* --- repair ----------------------------------------------------------------------------------- */

struct pb_arg_item *pb_trial_items(struct pb_trial *trial, size_t step, size_t param)
{
    return (struct pb_arg_item *)trial->steps[step].args.arg[param].items; /* our copy */
}

void pb_trial_blank(struct pb_arg_item *item)
{
    item->text = "1";
}

/* The parameter that an item belongs to; n_params = none. */
static size_t param_of(const struct pb_trial_step *step, const struct pb_arg_item *item)
{
    size_t n = step->config->op->n_params;
    for (size_t p = 0; p < n; p++) {
        const struct pb_arg *arg = &step->args.arg[p];
        for (size_t i = 0; i < arg->n; i++)
            if (&arg->items[i] == item)
                return p;
    }
    return n;
}

bool pb_trial_is_consequence(const struct pb_trial *trial, size_t at, const struct pb_diag *diag)
{
    const struct pb_trial_step *step = &trial->steps[at];
    size_t param = param_of(step, diag->item);
    return step->doubtful && (diag->kind == PB_DIAG_CONSTANT ||
                              param == step->config->op->n_params || !is_named(step, param));
}

static void remove_item(struct pb_trial *trial, size_t at, size_t param, size_t i)
{
    struct pb_arg *arg = &trial->steps[at].args.arg[param];
    struct pb_arg_item *items = pb_trial_items(trial, at, param);
    arg->n--;
    (void)memmove(&items[i], &items[i + 1], (arg->n - i) * sizeof *items);
}

/* The whole step. */
static bool replace_step(struct pb_trial *trial, size_t at)
{
    struct pb_trial_step *step = &trial->steps[at];
    size_t n = 0;
    for (size_t p = 0; p < step->config->op->n_params; p++)
        n += step->args.arg[p].n;
    if (!open_stand_in(trial, at + 1, n))
        return false;
    for (size_t p = 0; p < step->config->op->n_params; p++)
        for (size_t i = 0; is_named(step, p) && i < step->args.arg[p].n; i++)
            add_stand_in(trial, at + 1, pb_item_band(&step->args.arg[p].items[i]));
    *step = (struct pb_trial_step){.config = NULL};
    trial->chain[at].op = &stand_in;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* An unknown name becomes a number of the same length, so that columns stay; everything else that
 * can be wrong takes the expression with it. */
static bool repair_expression(struct pb_trial *trial, struct pb_arg_item *item,
                              const struct pb_diag *diag)
{
    size_t bytes = strlen(item->text), begin = diag->col > 0 ? (size_t)diag->col - 1 : bytes;
    size_t end = begin;
    while (end < bytes && (is_letter(item->text[end]) ||
                           (end > begin && item->text[end] >= '0' && item->text[end] <= '9')))
        end++;
    size_t next = end + strspn(item->text + (end < bytes ? end : bytes), " \t\r\n");
    if (end == begin || (next < bytes && item->text[next] == '(')) {
        pb_trial_blank(item);
        return true;
    }
    char *text = pb_arena_text(trial->arena, item->text, bytes);
    if (text == NULL)
        return false;
    (void)memset(text + begin, ' ', end - begin);
    text[begin] = '1';
    item->text = text;
    return true;
}

bool pb_trial_repair(struct pb_trial *trial, size_t at, const struct pb_diag *diag)
{
    struct pb_trial_step *step = &trial->steps[at];
    size_t param = param_of(step, diag->item);
    if (param == step->config->op->n_params)
        return replace_step(trial, at);
    enum pb_param_type type = step->config->op->params[param].type;
    size_t i = (size_t)(diag->item - step->args.arg[param].items);
    struct pb_arg_item *item = &pb_trial_items(trial, at, param)[i];
    if (type == PB_PARAM_EXPRS && diag->kind == PB_DIAG_EXPRESSION && strcmp(item->text, "1") != 0)
        return repair_expression(trial, item, diag);
    if (type == PB_PARAM_EXPRS)
        return replace_step(trial, at);
    if (type == PB_PARAM_NAMES && diag->kind == PB_DIAG_BAND) {
        item->key = pb_item_band(item);
        item->text = trial->inputs[0].name;
        return true;
    }
    if (type == PB_PARAM_NAMES) {
        if (!open_stand_in(trial, at + 1, step->args.arg[param].n))
            return false;
        add_stand_in(trial, at + 1, pb_item_band(item));
        remove_item(trial, at, param, i);
        return true;
    }
    if (type == PB_PARAM_NUMBERS)
        remove_item(trial, at, param, i);
    else
        step->args.arg[param].n = 0; /* the operator's default */
    step->doubtful = step->doubtful || diag->kind != PB_DIAG_BAND;
    return true;
}
