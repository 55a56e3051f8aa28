/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The expression language: random expressions against an evaluator of the test's own, and
 * random bytes. */
#include "kernels/graph/builder.h"
#include "tests/unit/chain_fixture.h"

#include <stdio.h>

/* A tree of the test's own: printed with as few parentheses as the grammar allows, and evaluated
 * directly. */
struct tree {
    char kind; /* v: variable, n: number, one of + - * / ~ (minus) p (power) < m M a s c w, | & !
                  (or, and, not), f (floor), i (isvalid), r (mod) */
    int variable;
    float number;
    struct tree *kid[3];
};

static struct tree pool[4096];
static size_t pool_used;

static struct tree *grow(uint32_t *random, int depth)
{
    static const char kinds[] = "++--**//~~p<<mMascw&|!fir";
    struct tree *const t = &pool[pool_used++];
    int kids;

    *t = (struct tree){0};
    if (depth == 0 || fx_random(random) % 6 == 0) {
        t->kind = fx_random(random) % 3 ? 'v' : 'n';
        t->variable = (int)(fx_random(random) % 4);
        t->number = (float)(fx_random(random) % 40) / 8.0f;
        return t;
    }
    t->kind = kinds[fx_random(random) % (sizeof kinds - 1)];
    kids = strchr("cw", t->kind) ? 3 : strchr("~asp!fi", t->kind) ? 1 : 2;
    t->number = (float)(2 + fx_random(random) % 3); /* the exponent of p */
    for (int k = 0; k < kids; k++)
        t->kid[k] = grow(random, depth - 1);
    return t;
}

static int rank(char kind)
{
    return kind == '|'          ? -3
           : kind == '&'        ? -2
           : kind == '!'        ? -1
           : kind == '<'        ? 0
           : strchr("+-", kind) ? 1
           : strchr("*/", kind) ? 2
           : kind == '~'        ? 3
           : kind == 'p'        ? 4
                                : 5;
}

static void print(const struct tree *t, int least, char *text)
{
    static const char *const names[] = {
        ['m'] = "min",   ['M'] = "max",   ['a'] = "abs",     ['s'] = "sqrt", ['c'] = "clamp",
        ['w'] = "where", ['f'] = "floor", ['i'] = "isvalid", ['r'] = "mod",
    };
    const int r = rank(t->kind);
    const bool wrapped = r < least;

    if (wrapped)
        strcat(text, "(");
    if (t->kind == 'v') {
        strncat(text, &"abcd"[t->variable], 1);
    } else if (t->kind == 'n') {
        sprintf(text + strlen(text), "%g", (double)t->number);
    } else if (t->kind == '~') {
        strcat(text, "-");
        print(t->kid[0], 3, text);
    } else if (t->kind == 'p') {
        print(t->kid[0], 5, text);
        sprintf(text + strlen(text), "**%g", (double)t->number);
    } else if (t->kind == '!') {
        strcat(text, "not ");
        print(t->kid[0], r, text);
    } else if (r < 3) {
        print(t->kid[0], r == 0 ? 1 : r, text);
        sprintf(text + strlen(text),
                t->kind == '&'   ? " and "
                : t->kind == '|' ? " or "
                                 : " %c ",
                t->kind);
        print(t->kid[1], r + 1, text);
    } else {
        strcat(strcat(text, names[(int)t->kind]), "(");
        for (int k = 0; k < 3 && t->kid[k]; k++) {
            strcat(text, k ? ", " : "");
            print(t->kid[k], -3, text);
        }
        strcat(text, ")");
    }
    if (wrapped)
        strcat(text, ")");
}

static float lesser(float x, float y)
{
    return isnan(x) || isnan(y) ? NAN : x < y ? x : y;
}

static float greater(float x, float y)
{
    return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
}

/* Equals Python's %. */
static float remainder_of(float x, float y)
{
    const float rest = fmodf(x, y);

    return rest != 0.0f && signbit(rest) != signbit(y) ? rest + y : rest;
}

static float evaluate(const struct tree *t, const float v[4])
{
    const float x = t->kid[0] ? evaluate(t->kid[0], v) : 0.0f;
    const float y = t->kid[1] ? evaluate(t->kid[1], v) : 0.0f;
    const float z = t->kid[2] ? evaluate(t->kid[2], v) : 0.0f;

    switch (t->kind) {
    case 'v':
        return v[t->variable];
    case 'n':
        return t->number;
    case '+':
        return x + y;
    case '-':
        return x - y;
    case '*':
        return x * y;
    case '/':
        return y == 0.0f ? NAN : x / y;
    case '~':
        return -x;
    case 'p':
        return t->number == 2.0f ? x * x : t->number == 3.0f ? x * x * x : (x * x) * (x * x);
    case '<':
        return isnan(x) || isnan(y) ? NAN : (float)(x < y);
    case 'm':
        return lesser(x, y);
    case 'M':
        return greater(x, y);
    case 'a':
        return fabsf(x);
    case 's':
        return sqrtf(x);
    case 'c':
        return lesser(greater(x, y), z);
    case '&':
        return x == 0.0f || y == 0.0f ? 0.0f : isnan(x) || isnan(y) ? NAN : 1.0f;
    case '|':
        return (!isnan(x) && x != 0.0f) || (!isnan(y) && y != 0.0f) ? 1.0f
               : isnan(x) || isnan(y)                               ? NAN
                                                                    : 0.0f;
    case '!':
        return isnan(x) ? NAN : (float)(x == 0.0f);
    case 'f':
        return floorf(x);
    case 'i':
        return (float)!isnan(x);
    case 'r':
        return remainder_of(x, y);
    default: /* w */
        return isnan(x) ? NAN : x != 0.0f ? y : z;
    }
}

START_TEST(random_expressions_match_an_independent_evaluator)
{
    enum { N = 700, TREES = 400 };
    static float planes[4][N], out[N];
    const float *const at[4] = {planes[0], planes[1], planes[2], planes[3]};
    uint32_t random = 12345;

    for (int i = 0; i < TREES; i++) {
        static char text[65536];
        struct pb_chain *chain = NULL;
        struct pb_diag diag;

        pool_used = 0;
        const struct tree *const t = grow(&random, 2 + i % 5);
        text[0] = '\0';
        print(t, -3, text);
        if (strlen(text) > 4096 || pool_used > 250)
            continue;
        for (int b = 0; b < 4; b++)
            for (int k = 0; k < N; k++)
                planes[b][k] = fx_random(&random) % 50 == 0  ? NAN
                               : fx_random(&random) % 8 == 0 ? (float)(k % 3) - 1.0f
                                                             : fx_uniform(&random, -3.0f, 3.0f);
        ck_assert_msg(fx_expression("abcd", text, &diag, &chain) == 0, "%s: %s", text, diag.msg);
        fx_run_row(chain, at, N, out);
        pb_chain_destroy(chain);
        for (int k = 0; k < N; k++) {
            const float v[4] = {planes[0][k], planes[1][k], planes[2][k], planes[3][k]};
            const float expected = evaluate(t, v);

            ck_assert_msg(fx_same(out[k], isfinite(expected) ? expected : NAN),
                          "%s with %g %g %g %g is %.9g, not %.9g", text, v[0], v[1], v[2], v[3],
                          out[k], expected);
        }
    }
}
END_TEST

START_TEST(random_bytes_never_crash)
{
    static const char *const pieces[] = {"a",  "b",     "(",     ")", "+",    "-",    "*",
                                         "**", "/",     ",",     "<", "==",   "min(", "where(",
                                         "1",  "2.5e3", "0",     " ", "log(", ".",    "e",
                                         "!",  "\x80",  "sqrt(", ")", "a",    "b"};
    uint32_t random = 7;
    size_t taken = 0;

    for (int i = 0; i < 20000; i++) {
        char text[256] = "";
        struct pb_chain *chain = NULL;
        struct pb_diag diag;

        for (uint32_t n = fx_random(&random) % 20; n > 0; n--)
            strcat(text, pieces[fx_random(&random) % (sizeof pieces / sizeof pieces[0])]);
        const int rc = fx_expression("ab", text, &diag, &chain);
        if (rc == 0) {
            taken++;
            pb_chain_destroy(chain);
        } else {
            ck_assert(diag.col >= 1 && diag.col <= (int)strlen(text) + 1 && diag.msg[0]);
        }
    }
    ck_assert_uint_gt(taken, 100);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("expression_random");
    TCase *const tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_expressions_match_an_independent_evaluator);
    tcase_add_test(tests, random_bytes_never_crash);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
