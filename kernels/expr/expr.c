/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Expressions: recursive descent straight into the builder, no tree in between. Loosest first:
 *
 *   comparison   sum [ (< | <= | > | >= | == | !=) sum ]           does not chain
 *   sum          term { (+ | -) term }
 *   term         unary { (* | /) unary }
 *   unary        (- | +) unary | power
 *   power        value [ ** unary ]        to the right, tighter than unary minus: -x**2 = -(x**2)
 *   value        number | name | name ( comparison {, comparison} ) | ( comparison )
 *
 * The text comes from users, so text, nesting and number of values are limited. Without a builder
 * the same code checks the grammar and collects names. x ** c with a small constant c is compiled
 * to multiplications and square roots (kernels/graph/graph.c). */
#include "kernels/graph/builder_state.h"
#include "kernels/expr/expr_lex.h"
#include "kernels/nearest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX       4096
#define DEPTH_MAX      64
#define VALUES_MAX     512
#define NAME_BYTES_MAX 63
#define ARGS_MAX       16

struct name {
    const char *text;
    size_t len;
};

struct parser {
    struct pb_builder *b; /* NULL: grammar only */
    const struct pb_expr_constant *constants;
    size_t n_constants;
    const char *start;
    size_t at;
    struct pb_token now;
    int depth, values;
    bool failed;
    struct pb_diag *diag;
    struct name names[VALUES_MAX]; /* each once */
    size_t n_names;
};

struct function {
    const char *name;
    enum pb_vm_op op;
    int args, args_max;
};

static const struct function functions[] = {
    {"min", PB_VM_MIN, 2, ARGS_MAX}, {"max", PB_VM_MAX, 2, ARGS_MAX}, {"abs", PB_VM_ABS, 1, 1},
    {"sqrt", PB_VM_SQRT, 1, 1},      {"log", PB_VM_LOG, 1, 1},        {"exp", PB_VM_EXP, 1, 1},
    {"pow", PB_VM_POW, 2, 2},        {"clamp", PB_VM_CLAMP, 3, 3},    {"where", PB_VM_WHERE, 3, 3},
};
#define N_FUNCTIONS (sizeof functions / sizeof functions[0])

static pb_value parse_comparison(struct parser *p);
static pb_value parse_unary(struct parser *p);

/* The first error wins; everything after it returns -1. */
static pb_value fail(struct parser *p, int col, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static pb_value fail(struct parser *p, int col, const char *format, ...)
{
    char text[300];
    va_list list;

    if (p->failed)
        return -1;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    (void)pb_diag_set(p->diag, PB_DIAG_EXPRESSION, NULL, col, "%s", text);
    p->failed = true;
    return -1;
}

/* A token in words. */
static const char *shown(const struct pb_token *token, char text[64])
{
    if (token->kind == PB_TOKEN_END)
        (void)snprintf(text, 64, "the end");
    else
        (void)snprintf(text, 64, "'%.*s'%s", (int)(token->len > 40 ? 40 : token->len), token->text,
                       token->len > 40 ? "..." : "");
    return text;
}

static void advance(struct parser *p)
{
    pb_token_next(p->start, &p->at, &p->now);
    if (p->now.kind == PB_TOKEN_BAD)
        (void)fail(p, p->now.col, "%s", p->now.wrong);
}

/* Counts what the text makes, so that a short text cannot make a long program. */
static bool count_value(struct parser *p, int col)
{
    if (++p->values > VALUES_MAX)
        (void)fail(p, col, "expression too long: more than %d numbers, names and operations",
                   VALUES_MAX);
    return !p->failed;
}

static bool enter(struct parser *p, int col)
{
    if (++p->depth > DEPTH_MAX)
        (void)fail(p, col, "nested more than %d deep", DEPTH_MAX);
    return !p->failed;
}

static pb_value emit(struct parser *p, int col, enum pb_vm_op op, pb_value x, pb_value y,
                     pb_value z)
{
    if (p->failed || !count_value(p, col))
        return -1;
    return p->b ? pb_builder_emit(p->b, op, x, y, z) : 0;
}

static pb_value unknown_name(struct parser *p, const struct pb_token *token, const char *name)
{
    const char *near = pb_builder_nearest(p->b, name);
    char list[160];

    for (size_t i = 0; i < p->n_constants; i++) {
        const char *const pair[2] = {near, p->constants[i].name};

        near = pb_nearest(name, pair, 2);
    }
    if (near)
        return fail(p, token->col, "unknown name '%s'; did you mean '%s'?", name, near);
    return fail(p, token->col, "unknown name '%s'; bands here: %s", name,
                pb_builder_list(p->b, list, sizeof list));
}

static pb_value resolve(struct parser *p, const struct pb_token *token, const char *name)
{
    if (!p->b) {
        size_t i = 0;

        while (i < p->n_names && (p->names[i].len != token->len ||
                                  memcmp(p->names[i].text, token->text, token->len) != 0))
            i++;
        if (i == p->n_names)
            p->names[p->n_names++] = (struct name){token->text, token->len};
        return 0;
    }
    const pb_value band = pb_builder_find(p->b, name);
    if (band >= 0)
        return band;
    for (size_t i = 0; i < p->n_constants; i++)
        if (strcmp(p->constants[i].name, name) == 0)
            return pb_builder_constant(p->b, (float)p->constants[i].value);
    return p->b->error ? -1 : unknown_name(p, token, name);
}

static void expect_close(struct parser *p, int open_col)
{
    char text[64];

    if (!p->failed && !pb_token_is(&p->now, ")"))
        (void)fail(p, p->now.col, "expected ')' to close the '(' at column %d but found %s",
                   open_col, shown(&p->now, text));
    advance(p);
}

/* Arguments and ')'; the '(' is behind us. Returns how many there are. */
static int parse_args(struct parser *p, int open_col, pb_value args[ARGS_MAX])
{
    int n = 0;

    if (!enter(p, open_col))
        return 0;
    if (!pb_token_is(&p->now, ")"))
        for (;;) {
            const int col = p->now.col;
            const pb_value v = parse_comparison(p);

            if (p->failed)
                return 0;
            if (n == ARGS_MAX) {
                (void)fail(p, col, "more than %d values for one function", ARGS_MAX);
                return 0;
            }
            args[n++] = v;
            if (!pb_token_is(&p->now, ","))
                break;
            advance(p);
        }
    expect_close(p, open_col);
    p->depth--;
    return n;
}

static pb_value parse_call(struct parser *p, const struct pb_token *name_token, const char *name)
{
    const struct function *f = NULL;
    const char *names[N_FUNCTIONS];
    const int open_col = p->now.col, col = name_token->col;
    pb_value args[ARGS_MAX];

    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        names[i] = functions[i].name;
        if (strcmp(functions[i].name, name) == 0)
            f = &functions[i];
    }
    if (!f && p->b && pb_builder_find(p->b, name) >= 0)
        return fail(p, open_col, "'%s' is a band and not a function; '*' multiplies", name);
    if (!f) {
        const char *const near = pb_nearest(name, names, N_FUNCTIONS);

        return fail(
            p, col, "unknown function '%s'; %s%s%s", name, near ? "did you mean '" : "known: ",
            near ? near : "min, max, abs, sqrt, log, exp, pow, clamp, where", near ? "'?" : "");
    }
    advance(p);
    const int n = parse_args(p, open_col, args);
    if (p->failed)
        return -1;
    if (n < f->args || n > f->args_max)
        return fail(p, col, "%s() takes %d value%s%s but %d %s given", name, f->args,
                    f->args == 1 ? "" : "s", f->args_max > f->args ? " or more" : "", n,
                    n == 1 ? "is" : "are");
    if (f->args_max == ARGS_MAX) {
        pb_value v = args[0];

        for (int i = 1; i < n; i++)
            v = emit(p, col, f->op, v, args[i], -1);
        return v;
    }
    return emit(p, col, f->op, args[0], n > 1 ? args[1] : -1, n > 2 ? args[2] : -1);
}

static pb_value parse_name(struct parser *p)
{
    const struct pb_token token = p->now;
    char name[NAME_BYTES_MAX + 1];

    if (token.len > NAME_BYTES_MAX)
        return fail(p, token.col, "a name longer than %d characters", NAME_BYTES_MAX);
    memcpy(name, token.text, token.len);
    name[token.len] = '\0';
    advance(p);
    if (p->failed || !count_value(p, token.col))
        return -1;
    if (pb_token_is(&p->now, "("))
        return parse_call(p, &token, name);
    /* A band may have the name of a function; without a builder it is taken for one. */
    for (size_t i = 0; i < N_FUNCTIONS && p->b && pb_builder_find(p->b, name) < 0; i++)
        if (strcmp(functions[i].name, name) == 0)
            return fail(p, p->now.col, "expected '(' after the function '%s'", name);
    return resolve(p, &token, name);
}

static pb_value parse_value(struct parser *p)
{
    const struct pb_token token = p->now;
    char text[64];

    if (p->failed)
        return -1;
    if (token.kind == PB_TOKEN_NAME)
        return parse_name(p);
    if (token.kind == PB_TOKEN_NUMBER) {
        advance(p);
        if (p->failed || !count_value(p, token.col))
            return -1;
        return p->b ? pb_builder_constant(p->b, (float)token.number) : 0;
    }
    if (!pb_token_is(&token, "("))
        return fail(p, token.col, "expected a number, a band or '(' but found %s",
                    shown(&token, text));
    if (!enter(p, token.col))
        return -1;
    advance(p);
    const pb_value v = parse_comparison(p);
    expect_close(p, token.col);
    p->depth--;
    return p->failed ? -1 : v;
}

static pb_value parse_power(struct parser *p)
{
    const pb_value base = parse_value(p);
    const int col = p->now.col;

    if (p->failed || !pb_token_is(&p->now, "**"))
        return base;
    if (!enter(p, col))
        return -1;
    advance(p);
    const pb_value exponent = parse_unary(p);
    p->depth--;
    return emit(p, col, PB_VM_POW, base, exponent, -1);
}

static pb_value parse_unary(struct parser *p)
{
    const bool minus = pb_token_is(&p->now, "-");
    const int col = p->now.col;

    if (!minus && !pb_token_is(&p->now, "+"))
        return parse_power(p);
    if (p->failed || !enter(p, col))
        return -1;
    advance(p);
    const pb_value v = parse_unary(p);
    p->depth--;
    return minus ? emit(p, col, PB_VM_NEG, v, -1, -1) : v;
}

static pb_value parse_term(struct parser *p)
{
    pb_value left = parse_unary(p);

    for (;;) {
        const bool times = pb_token_is(&p->now, "*");
        const int col = p->now.col;

        if (p->failed || (!times && !pb_token_is(&p->now, "/")))
            return p->failed ? -1 : left;
        advance(p);
        const pb_value right = parse_unary(p);
        left = emit(p, col, times ? PB_VM_MUL : PB_VM_DIV, left, right, -1);
    }
}

static pb_value parse_sum(struct parser *p)
{
    pb_value left = parse_term(p);

    for (;;) {
        const bool plus = pb_token_is(&p->now, "+");
        const int col = p->now.col;

        if (p->failed || (!plus && !pb_token_is(&p->now, "-")))
            return p->failed ? -1 : left;
        advance(p);
        const pb_value right = parse_term(p);
        left = emit(p, col, plus ? PB_VM_ADD : PB_VM_SUB, left, right, -1);
    }
}

/* The comparison that the token is, or PB_VM_COUNT. */
static enum pb_vm_op comparison(const struct pb_token *token)
{
    static const struct {
        const char *sign;
        enum pb_vm_op op;
    } signs[] = {{"<", PB_VM_LT},  {"<=", PB_VM_LE}, {">", PB_VM_GT},
                 {">=", PB_VM_GE}, {"==", PB_VM_EQ}, {"!=", PB_VM_NE}};

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (pb_token_is(token, signs[i].sign))
            return signs[i].op;
    return PB_VM_COUNT;
}

static pb_value parse_comparison(struct parser *p)
{
    const pb_value left = parse_sum(p);
    const enum pb_vm_op op = comparison(&p->now);
    const int col = p->now.col;

    if (p->failed || op == PB_VM_COUNT)
        return left;
    advance(p);
    const pb_value right = parse_sum(p);
    if (!p->failed && comparison(&p->now) != PB_VM_COUNT)
        return fail(p, p->now.col,
                    "comparisons do not chain; for 'a < b < c' write (a < b) * (b < c)");
    return emit(p, col, op, left, right, -1);
}

static pb_value parse_all(struct parser *p)
{
    char text[64];

    if (strnlen(p->start, TEXT_MAX + 1) > TEXT_MAX)
        return fail(p, TEXT_MAX + 1, "expression longer than %d bytes", TEXT_MAX);
    advance(p);
    if (!p->failed && p->now.kind == PB_TOKEN_END)
        return fail(p, 1, "the expression is empty");
    const pb_value v = parse_comparison(p);
    if (!p->failed && pb_token_is(&p->now, ")"))
        return fail(p, p->now.col, "a ')' without a '('");
    if (!p->failed && p->now.kind != PB_TOKEN_END)
        return fail(p, p->now.col, "expected an operator but found %s", shown(&p->now, text));
    return p->failed ? -1 : v;
}

pb_value pb_builder_expression(struct pb_builder *b, const char *text,
                               const struct pb_expr_constant *constants, size_t n_constants,
                               struct pb_diag *diag)
{
    struct parser p = {.b = b, .start = text, .diag = diag};

    p.constants = constants;
    p.n_constants = n_constants;
    const pb_value v = b->error ? -1 : parse_all(&p);
    if (b->error) {
        *diag = b->diag;
        return -1;
    }
    return v;
}

int pb_expression_names(const char *text, const char **names, size_t *lengths, size_t max,
                        struct pb_diag *diag)
{
    struct parser p = {.start = text, .diag = diag};

    (void)parse_all(&p);
    if (p.failed)
        return -EINVAL;
    for (size_t i = 0; i < p.n_names && i < max; i++) {
        names[i] = p.names[i].text;
        lengths[i] = p.names[i].len;
    }
    return (int)p.n_names;
}
