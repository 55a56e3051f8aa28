/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXPR_PARSER_H
#define PB_EXPR_PARSER_H
/* What the grammar of expressions (expr.c) and the meaning of their names (expr_names.c) share: the
 * state of one parse, and its mistakes. Internal to kernels/expr/; one thread. */
#include "kernels/expr/expr_lex.h"
#include "kernels/graph/builder.h"

#define PB_EXPR_VALUES_MAX 16384 /* numbers, names and operations of one expression */
#define PB_EXPR_NAMES_MAX  512   /* different names of one expression */
#define PB_EXPR_ARGS_MAX   16

struct pb_expr_parser {
    struct pb_builder *b; /* NULL: grammar only */
    const struct pb_item *item;
    const struct pb_expr_constant *constants;
    size_t n_constants;
    const char *start;
    size_t at;
    struct pb_token now;
    int depth, values;
    bool failed;
    struct pb_diag *diag; /* without a builder: of the first mistake */
    struct {
        const char *text;
        size_t len;
    } names[PB_EXPR_NAMES_MAX]; /* without a builder: each once */
    size_t n_names;
};

struct pb_expr_function {
    const char *name;
    enum pb_vm_op op;
    int args, args_max;
    bool one_is_second; /* the operation has one operand more, which is 1 */
};

/* Ends the parsing: everything after it is silent. Returns -1. */
pb_value pb_expr_fail(struct pb_expr_parser *p, int col, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A value that cannot be made in a text that can be read on: poison. Without a builder it ends the
 * parsing. */
pb_value pb_expr_mistake(struct pb_expr_parser *p, int col, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The value of a band or constant; reported and poison when there is none. Without a builder the
 * name is noted. */
pb_value pb_expr_name_value(struct pb_expr_parser *p, const struct pb_token *token,
                            const char *name);
bool pb_expr_is_function(const char *name);
/* Whether there are n bits behind bit `from`, where these are numbers; else that is reported. */
bool pb_expr_bits_fit(struct pb_expr_parser *p, int col, pb_value from, pb_value n);
/* The function that is called, p->now being the '('; NULL after a mistake. */
const struct pb_expr_function *
pb_expr_function_called(struct pb_expr_parser *p, const struct pb_token *token, const char *name);
#endif
