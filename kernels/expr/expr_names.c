/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a name in an expression stands for, and what is said when it stands for nothing. */
#include "kernels/expr/expr_parser.h"
#include "kernels/graph/builder_state.h"
#include "kernels/nearest.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct pb_expr_function functions[] = {
    {"min", PB_VM_MIN, 2, PB_EXPR_ARGS_MAX, false},
    {"max", PB_VM_MAX, 2, PB_EXPR_ARGS_MAX, false},
    {"abs", PB_VM_ABS, 1, 1, false},
    {"floor", PB_VM_FLOOR, 1, 1, false},
    {"mod", PB_VM_MOD, 2, 2, false},
    {"bits", PB_VM_BITS, 3, 3, false},
    {"sqrt", PB_VM_SQRT, 1, 1, false},
    {"log", PB_VM_LOG, 1, 1, false},
    {"exp", PB_VM_EXP, 1, 1, false},
    {"pow", PB_VM_POW, 2, 2, false},
    {"sin", PB_VM_SIN, 1, 1, false},
    {"cos", PB_VM_COS, 1, 1, false},
    {"atan", PB_VM_ATAN2, 1, 1, true},
    {"atan2", PB_VM_ATAN2, 2, 2, false},
    {"clamp", PB_VM_CLAMP, 3, 3, false},
    {"where", PB_VM_WHERE, 3, 3, false},
    {"isvalid", PB_VM_VALID, 1, 1, false},
    {"valid", PB_VM_VALID, 1, 1, false}, /* the same */
};
#define N_FUNCTIONS (sizeof functions / sizeof functions[0])

static void tell(struct pb_expr_parser *p, int col, const char *format, va_list list)
{
    char text[300];

    (void)vsnprintf(text, sizeof text, format, list);
    if (!p->b)
        (void)pb_diag_set(p->diag, PB_DIAG_EXPRESSION, NULL, col, "%s", text);
    else /* a column of a text that the user never wrote helps nobody */
        (void)pb_builder_mistake(p->b, PB_DIAG_EXPRESSION, p->item,
                                 p->start == p->item->text ? col : 0, "%s", text);
}

pb_value pb_expr_fail(struct pb_expr_parser *p, int col, const char *format, ...)
{
    va_list list;

    if (p->failed)
        return -1;
    va_start(list, format);
    tell(p, col, format, list);
    va_end(list);
    p->failed = true;
    return -1;
}

pb_value pb_expr_mistake(struct pb_expr_parser *p, int col, const char *format, ...)
{
    va_list list;

    if (p->failed)
        return -1;
    va_start(list, format);
    tell(p, col, format, list);
    va_end(list);
    p->failed = !p->b;
    return p->b ? PB_VALUE_POISON : -1;
}

static pb_value unknown_name(struct pb_expr_parser *p, const struct pb_token *token,
                             const char *name)
{
    const char *near = pb_builder_nearest(p->b, name);
    char list[160];

    for (size_t i = 0; i < p->n_constants; i++) {
        const char *const pair[2] = {near, p->constants[i].name};

        near = pb_nearest(name, pair, 2);
    }
    if (near)
        return pb_expr_mistake(p, token->col, "unknown name '%s'; did you mean '%s'?", name, near);
    return pb_expr_mistake(p, token->col, "unknown name '%s'; bands here: %s", name,
                           pb_builder_list(p->b, list, sizeof list));
}

pb_value pb_expr_name_value(struct pb_expr_parser *p, const struct pb_token *token,
                            const char *name)
{
    if (!p->b) {
        size_t i = 0;

        while (i < p->n_names && (p->names[i].len != token->len ||
                                  memcmp(p->names[i].text, token->text, token->len) != 0))
            i++;
        if (i == PB_EXPR_NAMES_MAX)
            return pb_expr_fail(p, token->col, "expression too long: more than %d different names",
                                PB_EXPR_NAMES_MAX);
        if (i == p->n_names) {
            p->names[i].text = token->text;
            p->names[i].len = token->len;
            p->n_names++;
        }
        return 0;
    }
    const pb_value band = pb_builder_find(p->b, name);
    if (band >= 0)
        return band;
    for (size_t i = 0; i < p->n_constants; i++)
        if (strcmp(p->constants[i].name, name) == 0)
            return pb_builder_constant(p->b, (float)p->constants[i].value);
    if (strcmp(name, "invalid") == 0)
        return pb_builder_constant(p->b, NAN);
    return unknown_name(p, token, name);
}

bool pb_expr_is_function(const char *name)
{
    bool is = false;

    for (size_t i = 0; i < N_FUNCTIONS && !is; i++)
        is = strcmp(functions[i].name, name) == 0;
    return is;
}

const struct pb_expr_function *
pb_expr_function_called(struct pb_expr_parser *p, const struct pb_token *token, const char *name)
{
    const char *names[N_FUNCTIONS];

    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        names[i] = functions[i].name;
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    }
    if (p->b && pb_builder_find(p->b, name) >= 0) {
        (void)pb_expr_mistake(p, p->now.col, "'%s' is a band and not a function; '*' multiplies",
                              name);
        return NULL;
    }
    const char *const near = pb_nearest(name, names, N_FUNCTIONS);
    char known[200] = "";

    for (size_t i = 0, at = 0; i < N_FUNCTIONS && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", names[i]);
    (void)pb_expr_mistake(p, token->col, "unknown function '%s'; %s%s%s", name,
                          near ? "did you mean '" : "known: ", near ? near : known,
                          near ? "'?" : "");
    return NULL;
}

bool pb_expr_bits_fit(struct pb_expr_parser *p, int col, pb_value from, pb_value n)
{
    float first = 0.0f, width = 1.0f;

    if (!p->b)
        return true;
    (void)pb_builder_is_number(p->b, from, &first);
    (void)pb_builder_is_number(p->b, n, &width);
    if (first >= 0.0f && width >= 1.0f && width <= 24.0f && first + width <= 32.0f &&
        first == rintf(first) && width == rintf(width))
        return true;
    (void)pb_expr_mistake(p, col,
                          "bits(x, from, n) takes 1 to 24 bits, the lowest being bit 0 and the "
                          "highest bit 31; from is %g and n %g",
                          (double)first, (double)width);
    return false;
}
