/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Expressions: recursive descent straight into the builder, no tree in between. Loosest first:
 *
 *   choice       both { or both }
 *   both         negation { and negation }
 *   negation     not negation | comparison
 *   comparison   sum [ (< | <= | > | >= | == | !=) sum ]           does not chain
 *   sum          term { (+ | -) term }
 *   term         unary { (* | /) unary }
 *   unary        (- | +) unary | power
 *   power        value [ ** unary ]        to the right, tighter than unary minus: -x**2 = -(x**2)
 *   value        number | name | name ( choice {, choice} ) | ( choice )
 *
 * An unknown name or function is reported and is poison from there on; a mistake in the grammar
 * ends the parsing. The text comes from users; therefore text, nesting and number of values are
 * limited. A formula of 1000 terms is far below the limits: programs have no length of their own.
 * Without a builder the same code checks the grammar and collects names. x ** c with a small
 * constant c is compiled to multiplications and square roots (kernels/graph/graph.c). */
#include "kernels/expr/expr_parser.h"
#include "kernels/graph/builder_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX       65536
#define DEPTH_MAX      64
#define NAME_BYTES_MAX 63

static pb_value parse_choice(struct pb_expr_parser *p);
static pb_value parse_unary(struct pb_expr_parser *p);

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

static void advance(struct pb_expr_parser *p)
{
    pb_token_next(p->start, &p->at, &p->now);
    if (p->now.kind == PB_TOKEN_BAD)
        (void)pb_expr_fail(p, p->now.col, "%s", p->now.wrong);
}

/* Counts what the text makes, so that a short text cannot make a long program. */
static bool count_value(struct pb_expr_parser *p, int col)
{
    if (++p->values > PB_EXPR_VALUES_MAX)
        (void)pb_expr_fail(p, col,
                           "expression too long: more than %d numbers, names and operations",
                           PB_EXPR_VALUES_MAX);
    return !p->failed;
}

static bool enter(struct pb_expr_parser *p, int col)
{
    if (++p->depth > DEPTH_MAX)
        (void)pb_expr_fail(p, col, "nested more than %d deep", DEPTH_MAX);
    return !p->failed;
}

static pb_value emit(struct pb_expr_parser *p, int col, enum pb_vm_op op, pb_value x, pb_value y,
                     pb_value z)
{
    if (p->failed || !count_value(p, col))
        return -1;
    return p->b ? pb_builder_emit(p->b, op, x, y, z) : 0;
}

static void expect_close(struct pb_expr_parser *p, int open_col)
{
    char text[64];

    if (!p->failed && !pb_token_is(&p->now, ")"))
        (void)pb_expr_fail(p, p->now.col, "expected ')' to close the '(' at column %d but found %s",
                           open_col, shown(&p->now, text));
    advance(p);
}

/* Arguments and ')'; the '(' is behind us. Returns how many there are. */
static int parse_args(struct pb_expr_parser *p, int open_col, pb_value args[PB_EXPR_ARGS_MAX])
{
    int n = 0;

    if (!enter(p, open_col))
        return 0;
    if (!pb_token_is(&p->now, ")"))
        for (;;) {
            const int col = p->now.col;
            const pb_value v = parse_choice(p);

            if (p->failed)
                return 0;
            if (n == PB_EXPR_ARGS_MAX) {
                (void)pb_expr_fail(p, col, "more than %d values for one function",
                                   PB_EXPR_ARGS_MAX);
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

/* A call of a function with a fixed number of values. */
static pb_value emit_call(struct pb_expr_parser *p, int col, const struct pb_expr_function *f,
                          const pb_value args[PB_EXPR_ARGS_MAX])
{
    if (f->one_is_second) { /* atan(x) is atan2(x, 1) */
        const pb_value one = p->b ? pb_builder_constant(p->b, 1.0f) : 0;

        return emit(p, col, f->op, args[0], one, -1);
    }
    if (f->op == PB_VM_BITS && !pb_expr_bits_fit(p, col, args[1], args[2]))
        return PB_VALUE_POISON;
    return emit(p, col, f->op, args[0], f->args > 1 ? args[1] : -1, f->args > 2 ? args[2] : -1);
}

static pb_value parse_call(struct pb_expr_parser *p, const struct pb_token *name_token,
                           const char *name)
{
    const int open_col = p->now.col, col = name_token->col;
    const struct pb_expr_function *const f = pb_expr_function_called(p, name_token, name);
    pb_value args[PB_EXPR_ARGS_MAX] = {0};

    if (p->failed)
        return -1;
    advance(p);
    const int n = parse_args(p, open_col, args);
    if (p->failed)
        return -1;
    if (!f)
        return PB_VALUE_POISON;
    if (n < f->args || n > f->args_max)
        return pb_expr_mistake(p, col, "%s() takes %d value%s%s but %d %s given", name, f->args,
                               f->args == 1 ? "" : "s", f->args_max > f->args ? " or more" : "", n,
                               n == 1 ? "is" : "are");
    if (f->args_max == PB_EXPR_ARGS_MAX) {
        pb_value v = args[0];

        for (int i = 1; i < n; i++)
            v = emit(p, col, f->op, v, args[i], -1);
        return v;
    }
    return emit_call(p, col, f, args);
}

static pb_value parse_name(struct pb_expr_parser *p)
{
    const struct pb_token token = p->now;
    char name[NAME_BYTES_MAX + 1];

    if (token.len > NAME_BYTES_MAX)
        return pb_expr_fail(p, token.col, "a name longer than %d characters", NAME_BYTES_MAX);
    memcpy(name, token.text, token.len);
    name[token.len] = '\0';
    advance(p);
    if (p->failed || !count_value(p, token.col))
        return -1;
    if (pb_token_is(&p->now, "("))
        return parse_call(p, &token, name);
    /* A band may have the name of a function; without a builder it is taken for one. */
    if (p->b && pb_builder_find(p->b, name) < 0 && pb_expr_is_function(name))
        return pb_expr_fail(p, p->now.col, "expected '(' after the function '%s'", name);
    return pb_expr_name_value(p, &token, name);
}

static pb_value parse_value(struct pb_expr_parser *p)
{
    const struct pb_token token = p->now;
    char text[64];

    if (p->failed)
        return -1;
    if (token.kind == PB_TOKEN_NAME && !pb_token_is_operator(&token))
        return parse_name(p);
    if (token.kind == PB_TOKEN_NUMBER) {
        advance(p);
        if (p->failed || !count_value(p, token.col))
            return -1;
        return p->b ? pb_builder_constant(p->b, (float)token.number) : 0;
    }
    if (!pb_token_is(&token, "("))
        return pb_expr_fail(p, token.col, "expected a number, a band or '(' but found %s",
                            shown(&token, text));
    if (!enter(p, token.col))
        return -1;
    advance(p);
    const pb_value v = parse_choice(p);
    expect_close(p, token.col);
    p->depth--;
    return p->failed ? -1 : v;
}

static pb_value parse_power(struct pb_expr_parser *p)
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

static pb_value parse_unary(struct pb_expr_parser *p)
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

static pb_value parse_term(struct pb_expr_parser *p)
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

static pb_value parse_sum(struct pb_expr_parser *p)
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

/* Whether what was read since `first` is the word that stands for an invalid pixel. */
static bool is_invalid(const struct pb_expr_parser *p, const struct pb_token *first)
{
    const char *const end = first->text + first->len;

    return pb_token_is_word(first, "invalid") && end + strspn(end, " \t\r\n") == p->now.text &&
           p->b && pb_builder_find(p->b, "invalid") < 0;
}

static pb_value parse_comparison(struct pb_expr_parser *p)
{
    const struct pb_token first = p->now;
    const pb_value left = parse_sum(p);
    const enum pb_vm_op op = comparison(&p->now);
    const int col = p->now.col;
    bool asks = is_invalid(p, &first);

    if (p->failed || op == PB_VM_COUNT)
        return left;
    advance(p);
    const struct pb_token second = p->now;
    const pb_value right = parse_sum(p);
    asks = asks || is_invalid(p, &second);
    if (!p->failed && comparison(&p->now) != PB_VM_COUNT)
        return pb_expr_fail(p, p->now.col,
                            "comparisons do not chain; for 'a < b < c' write a < b and b < c");
    if (!p->failed && asks)
        return pb_expr_mistake(p, col,
                               "a comparison with 'invalid' is invalid everywhere; write "
                               "isvalid(x), or not isvalid(x)");
    return emit(p, col, op, left, right, -1);
}

static pb_value parse_negation(struct pb_expr_parser *p)
{
    const int col = p->now.col;

    if (!pb_token_is_word(&p->now, "not"))
        return parse_comparison(p);
    if (p->failed || !enter(p, col))
        return -1;
    advance(p);
    const pb_value v = parse_negation(p), zero = p->b ? pb_builder_constant(p->b, 0.0f) : 0;
    p->depth--;
    return emit(p, col, PB_VM_EQ, v, zero, -1);
}

/* Operands joined by `word`. */
static pb_value parse_joined(struct pb_expr_parser *p, const char *word, enum pb_vm_op op,
                             pb_value (*parse)(struct pb_expr_parser *p))
{
    pb_value left = parse(p);

    for (;;) {
        const int col = p->now.col;

        if (p->failed || !pb_token_is_word(&p->now, word))
            return p->failed ? -1 : left;
        advance(p);
        const pb_value right = parse(p);
        left = emit(p, col, op, left, right, -1);
    }
}

static pb_value parse_both(struct pb_expr_parser *p)
{
    return parse_joined(p, "and", PB_VM_AND, parse_negation);
}

static pb_value parse_choice(struct pb_expr_parser *p)
{
    return parse_joined(p, "or", PB_VM_OR, parse_both);
}

static pb_value parse_all(struct pb_expr_parser *p)
{
    char text[64];

    if (strnlen(p->start, TEXT_MAX + 1) > TEXT_MAX)
        return pb_expr_fail(p, TEXT_MAX + 1, "expression longer than %d bytes", TEXT_MAX);
    advance(p);
    if (!p->failed && p->now.kind == PB_TOKEN_END)
        return pb_expr_fail(p, 1, "the expression is empty");
    const pb_value v = parse_choice(p);
    if (!p->failed && pb_token_is(&p->now, ")"))
        return pb_expr_fail(p, p->now.col, "a ')' without a '('");
    if (!p->failed && p->now.kind != PB_TOKEN_END)
        return pb_expr_fail(p, p->now.col, "expected an operator but found %s",
                            shown(&p->now, text));
    return p->failed ? -1 : v;
}

pb_value pb_builder_expression(struct pb_builder *b, const struct pb_item *item, const char *text,
                               const struct pb_expr_constant *constants, size_t n_constants)
{
    struct pb_expr_parser p = {.b = b, .item = item, .start = text ? text : item->text};

    p.constants = constants;
    p.n_constants = n_constants;
    const pb_value v = b->error ? -1 : parse_all(&p);
    return p.failed ? PB_VALUE_POISON : v;
}

int pb_expression_names(const char *text, const char **names, size_t *lengths, size_t max,
                        struct pb_diag *diag)
{
    struct pb_expr_parser p = {.start = text, .diag = diag};

    (void)parse_all(&p);
    if (p.failed)
        return -EINVAL;
    for (size_t i = 0; i < p.n_names && i < max; i++) {
        names[i] = p.names[i].text;
        lengths[i] = p.names[i].len;
    }
    return (int)p.n_names;
}
