/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers are read here and not by strtod, which would follow the locale. */
#include "kernels/expr/expr_lex.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* digits * 10^exponent. Exact rounding for up to 15 digits and |exponent| <= 22; else within a few
 * ULP of double, far below float32. */
static double decimal(uint64_t digits, int exponent)
{
    double v = (double)digits, power = 1.0;
    int n = exponent < 0 ? -exponent : exponent;

    if (digits == 0)
        return 0.0;
    if (n > 400)
        return exponent < 0 ? 0.0 : HUGE_VAL;
    for (; n >= 22; n -= 22)
        v = exponent < 0 ? v / 1e22 : v * 1e22;
    for (; n > 0; n--)
        power *= 10.0;
    return exponent < 0 ? v / power : v * power;
}

/* Length of the number at s, its value in *out_value. */
static size_t read_number(const char *s, double *out_value)
{
    uint64_t digits = 0;
    int exponent = 0, written = 0;
    size_t i = 0;
    bool point = false;

    for (; is_digit(s[i]) || (s[i] == '.' && !point); i++) {
        if (s[i] == '.') {
            point = true;
        } else if (digits < UINT64_MAX / 10 - 1) {
            digits = digits * 10 + (uint64_t)(s[i] - '0');
            exponent -= point;
        } else {
            exponent += !point;
        }
    }
    size_t e = i;
    if (s[e] == 'e' || s[e] == 'E') {
        const bool minus = s[e + 1] == '-';

        e += minus || s[e + 1] == '+' ? 2 : 1;
        if (is_digit(s[e])) {
            for (; is_digit(s[e]); e++)
                written = written < 10000 ? written * 10 + (s[e] - '0') : written;
            exponent += minus ? -written : written;
            i = e;
        }
    }
    *out_value = decimal(digits, exponent);
    return i;
}

static void bad_sign(struct pb_token *token)
{
    const unsigned char c = (unsigned char)token->text[0];

    token->kind = PB_TOKEN_BAD;
    if (c == '=')
        (void)snprintf(token->wrong, sizeof token->wrong, "'=' alone; use '==' to compare");
    else if (c == '^')
        (void)snprintf(token->wrong, sizeof token->wrong, "unknown operator '^'; powers are '**'");
    else if (c == '!' || c == '&' || c == '|')
        (void)snprintf(token->wrong, sizeof token->wrong,
                       "unknown operator '%c'; conditions are joined by 'and', 'or' and 'not', and "
                       "bits(x, from, n) takes bits",
                       c);
    else if (c == '%')
        (void)snprintf(token->wrong, sizeof token->wrong,
                       "unknown operator '%%'; remainders are mod(x, y)");
    else if (c == '?')
        (void)snprintf(token->wrong, sizeof token->wrong,
                       "unknown operator '%c'; choose with where(condition, a, b)", c);
    else if (c > 32 && c < 127)
        (void)snprintf(token->wrong, sizeof token->wrong, "unexpected character '%c'", c);
    else
        (void)snprintf(token->wrong, sizeof token->wrong, "unexpected byte 0x%02x", c);
}

static void read_sign(struct pb_token *token)
{
    static const char *const pairs[] = {"**", "<=", ">=", "==", "!="};

    token->kind = PB_TOKEN_SIGN;
    token->len = 1;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (memcmp(token->text, pairs[i], 1) == 0 && token->text[1] == pairs[i][1]) {
            token->len = 2;
            return;
        }
    if (!strchr("+-*/(),<>", token->text[0]))
        bad_sign(token);
}

void pb_token_next(const char *start, size_t *at, struct pb_token *out)
{
    const char *s = start + *at;

    while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r')
        s++;
    *out = (struct pb_token){.kind = PB_TOKEN_END, .text = s, .col = (int)(s - start) + 1};
    if (*s == '\0') {
        out->len = 0;
    } else if (is_digit(*s) || (*s == '.' && is_digit(s[1]))) {
        out->kind = PB_TOKEN_NUMBER;
        out->len = read_number(s, &out->number);
        if (!(out->number <= (double)FLT_MAX)) {
            out->kind = PB_TOKEN_BAD;
            (void)snprintf(out->wrong, sizeof out->wrong, "number too large for float32");
        } else if (s[out->len] == '.') {
            out->kind = PB_TOKEN_BAD;
            (void)snprintf(out->wrong, sizeof out->wrong, "a number with two points");
        }
    } else if (is_letter(*s)) {
        out->kind = PB_TOKEN_NAME;
        while (is_letter(s[out->len]) || is_digit(s[out->len]))
            out->len++;
    } else {
        read_sign(out);
    }
    *at = (size_t)(s - start) + out->len;
}

int pb_token_is(const struct pb_token *token, const char *sign)
{
    return token->kind == PB_TOKEN_SIGN && token->len == strlen(sign) &&
           memcmp(token->text, sign, token->len) == 0;
}

int pb_token_is_word(const struct pb_token *token, const char *word)
{
    return token->kind == PB_TOKEN_NAME && token->len == strlen(word) &&
           memcmp(token->text, word, token->len) == 0;
}

int pb_token_is_operator(const struct pb_token *token)
{
    return pb_token_is_word(token, "and") || pb_token_is_word(token, "or") ||
           pb_token_is_word(token, "not");
}
