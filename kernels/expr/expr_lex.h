/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXPR_LEX_H
#define PB_EXPR_LEX_H
/* Tokens of the expression language. No allocation; the text is borrowed. */
#include <stddef.h>

enum pb_token_kind {
    PB_TOKEN_END,
    PB_TOKEN_NUMBER,
    PB_TOKEN_NAME,
    PB_TOKEN_SIGN, /* one of + - * / ( ) , < > or the pairs ** <= >= == != */
    PB_TOKEN_BAD   /* `wrong` says why */
};

struct pb_token {
    enum pb_token_kind kind;
    const char *text; /* in the expression */
    size_t len;
    int col;       /* 1-based */
    double number; /* NUMBER */
    char wrong[120];
};

/* The token at or after *at; *at moves behind it. `start` is the whole text. */
void pb_token_next(const char *start, size_t *at, struct pb_token *out);
/* Whether the token is this sign. */
/* Whether it is a word of the grammar: and, or, not. */
int pb_token_is_operator(const struct pb_token *token);
int pb_token_is_word(const struct pb_token *token, const char *word);
int pb_token_is(const struct pb_token *token, const char *sign);
#endif
