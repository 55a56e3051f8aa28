/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The expression language: grammar, every error with its column, and random expressions against an
 * evaluator of the test's own. */
#include "kernels/graph/builder.h"
#include "kernels/graph/graph.h"
#include "tests/unit/chain_fixture.h"

#include <errno.h>
#include <stdio.h>

/* X over bands a b c d, which are 3, 2, 0.5 and invalid. */
static float value_of(const char *text)
{
    const float a = 3.0f, b = 2.0f, c = 0.5f, d = NAN;
    const float *const planes[] = {&a, &b, &c, &d};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    float x = -1.0f;

    ck_assert_msg(fx_expression("abcd", text, &diag, &chain) == 0, "'%s': %s", text, diag.msg);
    fx_run_row(chain, planes, 1, &x);
    pb_chain_destroy(chain);
    return x;
}

START_TEST(grammar_follows_python)
{
    static const struct {
        const char *text;
        float value;
    } cases[] = {
        {"a", 3},
        {" a ", 3},
        {"a+b*c", 4},
        {"(a+b)*c", 2.5f},
        {"a-b-c", 0.5f},
        {"a/b/c", 3},
        {"a-b+c", 1.5f},
        {"a/b*c", 0.75f},
        {"-a**2", -9},
        {"(-a)**2", 9},
        {"b**a**b", 512},
        {"(b**a)**b", 64},
        {"b**-a", 0.125f},
        {"b**-c*b", 1.41421354f},
        {"-b**-a", -0.125f},
        {"2**-1", 0.5f},
        {"--a", 3},
        {"-+-a", 3},
        {"a*-b", -6},
        {"a - -b", 5},
        {"1.5", 1.5f},
        {".5", 0.5f},
        {"5.", 5},
        {"1e3", 1000},
        {"1E-2", 0.01f},
        {"1.5e+2", 150},
        {"0.0001", 0.0001f},
        {"123456789012345678901234567890", 1.2345679e29f},
        {"0.00000000000000000000000000000000000001", 1e-38f},
        {"a < b", 0},
        {"a > b", 1},
        {"a <= 3", 1},
        {"a >= 3.5", 0},
        {"a == 3", 1},
        {"a != 3", 0},
        {"a + 1 < b * 3", 1},
        {"(a > b) + (a > c)", 2},
        {"min(a, b)", 2},
        {"min(a, b, c)", 0.5f},
        {"max(c, b, a)", 3},
        {"abs(-a)", 3},
        {"abs(b - a)", 1},
        {"sqrt(a * 3)", 3},
        {"exp(0)", 1},
        {"log(1)", 0},
        {"pow(a, 2)", 9},
        {"pow(a, b)", 9},
        {"clamp(a, 0, 1)", 1},
        {"clamp(-a, 0, 1)", 0},
        {"clamp(c, 0, 1)", 0.5f},
        {"where(a > b, b, c)", 2},
        {"where(a < b, b, c)", 0.5f},
        {"where(1, b, d)", 2},
        {"where(a, b, d)", 2},
        {"where(a - 3, d, c)", 0.5f},
        {"a**0", 1},
        {"a**1", 3},
        {"a**3", 27},
        {"a**4", 81},
        {"a**-2", 0.111111112f},
        {"b**0.5", 1.41421354f},
        {"b**1.5", 2.82842708f},
        {"b**-0.5", 0.707106769f},
        {"b**5", 32},
        {"(a\n+\tb)", 5},
        {"a > b and b > c", 1},
        {"a > b and b < c", 0},
        {"a < b or b > c", 1},
        {"a and c or 0", 1},
        {"0 and 1 or 1", 1},
        {"1 or 1 and 0", 1},
        {"not a", 0},
        {"not a == b", 1},
        {"not not a", 1},
        {"not a < b and b", 1},
        {"(a or b) + 1", 2},
        {"min(a < b or c, 2)", 1},
        {"d and 0", 0},
        {"0 and d", 0},
        {"d or a", 1},
        {"a or d", 1},
        {"isvalid(d) and d > 3", 0},
        {"not isvalid(d) or d > 3", 1},
        {"isvalid(d)", 0},
        {"isvalid(a)", 1},
        {"isvalid(invalid)", 0},
        {"where(a > b, a, invalid)", 3},
        {"floor(c + 1)", 1},
        {"floor(-c)", -1},
        {"mod(7, a)", 1},
        {"mod(-7, a)", 2},
        {"mod(7, -a)", -2},
        {"mod(-7, -a)", -1},
        {"mod(5.5, b)", 1.5f},
        {"mod(3e38, a)", 2},
        {"bits(22, 1, 2)", 3},
        {"bits(a + 253, 8, 1)", 1},
        {"bits(-a, 0, 16)", 65533},
        {"bits(-a + 2, 31, 1)", 1},
        {"bits(16777215 + 0 * a, 0, 24)", 16777215},
        {"sin(a - a)", 0},
        {"cos(a - a)", 1},
        {"atan(a - b)", 0.785398163f},
        {"atan2(a, -a)", 2.35619449f},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(fx_same(value_of(cases[i].text), cases[i].value), "'%s' is %.9g, not %.9g",
                      cases[i].text, value_of(cases[i].text), cases[i].value);
}
END_TEST

START_TEST(invalid_operands_make_invalid_results)
{
    static const char *const invalid[] = {
        "d",
        "a + d",
        "d - a",
        "a * d",
        "0 * d",
        "d / a",
        "a / 0",
        "0 / 0",
        "a / (b - 2)",
        "d ** 0",
        "1 ** d",
        "a ** d",
        "d ** 0.3",
        "0 ** -1",
        "(b - 2) ** -1",
        "(b - 2) ** -c",
        "min(a, d)",
        "min(d, a)",
        "max(a, d)",
        "max(d, a)",
        "clamp(d, 0, 1)",
        "clamp(a, d, 1)",
        "clamp(a, 0, d)",
        "where(d, a, b)",
        "where(a, d, b)",
        "where(a < b, a, d)",
        "d < a",
        "a < d",
        "d == d",
        "d != d",
        "a != d",
        "sqrt(-a)",
        "sqrt(d)",
        "log(0)",
        "log(-a)",
        "log(d)",
        "exp(d)",
        "exp(a * 100)",
        "-d",
        "abs(d)",
        "(-a) ** c",
        "(-a) ** 0.3",
        "1e38 * a * b",
        "log(b - 2)",
        "pow(d, 2)",
        "1e30 ** 4",
        "(a * 1e30) ** 2",
        "where(a / 0, a, b)",
        "a * exp(a * 100)",
        "d and a",
        "a and d",
        "d or 0",
        "c - c or d",
        "not d",
        "invalid",
        "where(a < b, a, invalid)",
        "floor(d)",
        "mod(a, 0)",
        "mod(d, a)",
        "mod(a, d)",
        "bits(c, 0, 1)",
        "bits(d, 0, 1)",
        "bits(a * 6000000, 0, 1)",
        "bits(a, c, 1)",
        "bits(a, 0, a * 9)",
        "bits(a, a * 10, a)",
        "sin(d)",
        "cos(d)",
        "sin(a * 2000000)",
        "cos(-a * 2000000)",
    };

    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        ck_assert_msg(isnan(value_of(invalid[i])), "'%s' is %g", invalid[i], value_of(invalid[i]));
}
END_TEST

START_TEST(errors_name_their_column)
{
    static const struct {
        const char *text;
        int col;
        const char *words;
    } cases[] = {
        {"", 1, "empty"},
        {"   ", 1, "empty"},
        {"a +", 4, "expected a number, a band or '(' but found the end"},
        {"a + * b", 5, "but found '*'"},
        {"a b", 3, "expected an operator but found 'b'"},
        {"2a", 2, "expected an operator but found 'a'"},
        {"(a + b", 7, "expected ')' to close the '(' at column 1 but found the end"},
        {"a * (b - (c)", 13, "the '(' at column 5"},
        {"a + b)", 6, "a ')' without a '('"},
        {"()", 2, "but found ')'"},
        {"min(a,)", 7, "but found ')'"},
        {"min(a b)", 7, "expected ')' to close the '(' at column 4"},
        {"a + min(b)", 5, "min() takes 2 values or more but 1 is given"},
        {"sqrt(a, b)", 1, "sqrt() takes 1 value but 2 are given"},
        {"clamp(a)", 1, "clamp() takes 3 values but 1 is given"},
        {"where()", 1, "where() takes 3 values but 0 are given"},
        {"1 + mim(a, b)", 5, "unknown function 'mim'; did you mean 'min'?"},
        {"1 + qqqqqq(a, b)", 5, "unknown function 'qqqqqq'; known: min, max"},
        {"a(b)", 2, "'a' is a band and not a function"},
        {"a + min", 8, "expected '(' after the function 'min'"},
        {"a + aa", 5, "unknown name 'aa'; did you mean 'a'?"},
        {"a + foobar", 5, "unknown name 'foobar'; bands here: a, b, c, d"},
        {"a < b < c", 7, "comparisons do not chain"},
        {"a = b", 3, "use '=='"},
        {"a ^ 2", 3, "powers are '**'"},
        {"a && b", 3, "unknown operator '&'"},
        {"!a", 1, "unknown operator '!'"},
        {"a % b", 3, "mod(x, y)"},
        {"a and", 6, "but found the end"},
        {"and a", 1, "but found 'and'"},
        {"a + not b", 5, "but found 'not'"},
        {"a or or b", 6, "but found 'or'"},
        {"a == invalid", 3, "ask with isvalid(x)"},
        {"invalid < a + b", 9, "ask with isvalid(x)"},
        {"1 + bits(a, 32, 1)", 5, "from is 32"},
        {"bits(a, 20, 13)", 1, "n 13"},
        {"bits(a, 0.5, 1)", 1, "from is 0.5"},
        {"bits(a, 1)", 1, "bits() takes 3 values but 2 are given"},
        {"a $ b", 3, "unexpected character '$'"},
        {"a + \xc3\xa4", 5, "unexpected byte 0xc3"},
        {"a + \x01", 5, "unexpected byte 0x01"},
        {"1.2.3", 1, "two points"},
        {"a * 1e39", 5, "too large"},
        {"a * 1e99999999999", 5, "too large"},
        {"a ** ", 6, "but found the end"},
        {".", 1, "unexpected character '.'"},
        {"a.b", 2, "unexpected character '.'"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_chain *chain = NULL;
        struct pb_diag diag;
        const int rc = fx_expression("abcd", cases[i].text, &diag, &chain);

        ck_assert_msg(rc == -EINVAL, "'%s' was taken", cases[i].text);
        ck_assert_int_eq(diag.kind, PB_DIAG_EXPRESSION);
        ck_assert_ptr_nonnull(diag.item);
        ck_assert_msg(diag.col == cases[i].col, "'%s': column %d, not %d (%s)", cases[i].text,
                      diag.col, cases[i].col, diag.msg);
        ck_assert_msg(strstr(diag.msg, cases[i].words), "'%s': %s", cases[i].text, diag.msg);
    }
}
END_TEST

/* prefix, n times unit, suffix */
static char *repeated(const char *prefix, const char *unit, size_t n, const char *suffix)
{
    const size_t len = strlen(unit);
    char *const text = malloc(strlen(prefix) + n * len + strlen(suffix) + 1);

    ck_assert_ptr_nonnull(text);
    strcpy(text, prefix);
    for (size_t i = 0; i < n; i++)
        strcat(text + strlen(prefix) + i * len, unit);
    strcat(text, suffix);
    return text;
}

static void check_limit(const char *prefix, const char *unit, size_t n, const char *suffix,
                        const char *words)
{
    char *const text = repeated(prefix, unit, n, suffix);
    struct pb_chain *chain = NULL;
    struct pb_diag diag = {0};
    const int rc = fx_expression("ab", text, &diag, &chain);

    if (words) {
        ck_assert_int_eq(rc, -EINVAL);
        ck_assert_msg(strstr(diag.msg, words), "%zu x '%s': %s", n, unit, diag.msg);
    } else {
        ck_assert_msg(rc == 0, "%zu x '%s': %s", n, unit, diag.msg);
        pb_chain_destroy(chain);
    }
    free(text);
}

START_TEST(limits_refuse_hostile_texts)
{
    check_limit("", "(", 4000, "", "nested more than 64");
    check_limit("", "-", 4000, "a", "nested more than 64");
    check_limit("", "a**", 1000, "a", "nested more than 64");
    check_limit("", "sqrt(", 700, "a", "nested more than 64");
    check_limit("", "-", 64, "a", NULL);
    check_limit("", "-", 65, "a", "nested");
    check_limit("a", "+a", 2000, "", "too long");
    check_limit("a", "+b", 255, "", NULL);
    check_limit("a", "+b", 256, "", "too long");
    check_limit("", " ", 5000, "a", "longer than 4096 bytes");
    check_limit("", " ", 4095, "a", NULL);
    check_limit("", "x", 64, "", "name longer than 63");
    check_limit("min(a", ",b", 15, ")", NULL);
    check_limit("min(a", ",b", 16, ")", "more than 16 values");
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

START_TEST(names_are_listed_once_in_order)
{
    const char *names[4];
    size_t lengths[4];
    struct pb_diag diag;
    const char *const text = "(N1 - R)/(N1 + R) + min(L, x_2) + Z9";

    ck_assert_int_eq(pb_expression_names(text, names, lengths, 4, &diag), 5);
    ck_assert(lengths[0] == 2 && memcmp(names[0], "N1", 2) == 0);
    ck_assert(lengths[1] == 1 && names[1][0] == 'R');
    ck_assert(lengths[2] == 1 && names[2][0] == 'L');
    ck_assert(lengths[3] == 3 && names[3] == strstr(text, "x_2"));
    ck_assert_int_eq(pb_expression_names("1 + 2", names, lengths, 4, &diag), 0);
    ck_assert_int_eq(pb_expression_names("1 + ", names, lengths, 4, &diag), -EINVAL);
    ck_assert_int_eq(diag.col, 5);
}
END_TEST

/* --- random expressions ---------------------------------------------------------------------- */

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

/* As Python's %. */
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

static double ulps(float a, double exact)
{
    const float near = (float)exact;
    const double ulp =
        fmax((double)nextafterf(fabsf(near), INFINITY) - (double)fabsf(near), 0x1p-149);

    return fabs((double)a - exact) / ulp;
}

START_TEST(log_exp_and_power_are_nearly_correctly_rounded)
{
    enum { N = 20000 };
    static float x[N], y[N], out[N];
    const float *const at[2] = {x, y};
    static const char *const texts[] = {"exp(a)", "log(a)", "a ** b"};
    uint32_t random = 99;

    for (int t = 0; t < 3; t++) {
        struct pb_chain *chain = NULL;
        struct pb_diag diag;
        double worst = 0.0;

        for (int k = 0; k < N; k++) {
            x[k] = t == 0 ? fx_uniform(&random, -103.0f, 88.0f)
                          : ldexpf(fx_uniform(&random, 1.0f, 2.0f),
                                   t == 1 ? (int)(fx_random(&random) % 270) - 145
                                          : (int)(fx_random(&random) % 8) - 4);
            y[k] = fx_uniform(&random, -20.0f, 20.0f);
            if (k % 3 == 0 && t == 1)
                x[k] = fx_uniform(&random, 0.99f, 1.01f);
        }
        ck_assert_int_eq(fx_expression("ab", texts[t], &diag, &chain), 0);
        fx_run_row(chain, at, N, out);
        pb_chain_destroy(chain);
        for (int k = 0; k < N; k++) {
            const double exact = t == 0   ? exp((double)x[k])
                                 : t == 1 ? log((double)x[k])
                                          : pow((double)x[k], (double)y[k]);

            ck_assert_msg(isfinite(out[k]), "%s of %g %g", texts[t], x[k], y[k]);
            worst = fmax(worst, ulps(out[k], exact));
        }
        ck_assert_msg(worst < 0.51, "%s: %.3f ULP", texts[t], worst);
    }
}
END_TEST

START_TEST(arc_tangent_is_nearly_correctly_rounded_in_every_quadrant)
{
    uint32_t random = 7;
    double worst = 0.0;

    for (int k = 0; k < 20000; k++) {
        const float y = ldexpf(fx_uniform(&random, -1.0f, 1.0f), (int)(fx_random(&random) % 9) - 4);
        const float x = fx_uniform(&random, -1.0f, 1.0f);

        worst = fmax(worst, ulps(pb_vm_eval(PB_VM_ATAN2, y, x, 0.0f), atan2((double)y, (double)x)));
    }
    ck_assert_msg(worst < 0.51, "%.3f ULP", worst);
    ck_assert(pb_vm_eval(PB_VM_ATAN2, 0.0f, -2.0f, 0.0f) == (float)M_PI);
    ck_assert(pb_vm_eval(PB_VM_ATAN2, 0.0f, 2.0f, 0.0f) == 0.0f);
    ck_assert(pb_vm_eval(PB_VM_ATAN2, -3.0f, 0.0f, 0.0f) == (float)-M_PI_2);
    ck_assert(isnan(pb_vm_eval(PB_VM_ATAN2, 0.0f, 0.0f, 0.0f)));
    ck_assert(isnan(pb_vm_eval(PB_VM_ATAN2, NAN, 1.0f, 0.0f)));
    ck_assert(isnan(pb_vm_eval(PB_VM_ATAN2, 1.0f, NAN, 0.0f)));
}
END_TEST

START_TEST(sine_and_cosine_are_nearly_correctly_rounded)
{
    uint32_t random = 5;
    double worst = 0.0;

    for (int k = 0; k < 200000; k++) {
        const int power = (int)(fx_random(&random) % 50) - 28;
        const float x = fminf(ldexpf(fx_uniform(&random, 1.0f, 2.0f), power), 4194304.0f);
        const float near = (float)((double)(k % 100000) * M_PI_2); /* next to a zero of one */

        worst = fmax(worst, ulps(pb_vm_eval(PB_VM_SIN, x, 0.0f, 0.0f), sin((double)x)));
        worst = fmax(worst, ulps(pb_vm_eval(PB_VM_COS, -x, 0.0f, 0.0f), cos((double)x)));
        worst = fmax(worst, ulps(pb_vm_eval(PB_VM_SIN, near, 0.0f, 0.0f), sin((double)near)));
        worst = fmax(worst, ulps(pb_vm_eval(PB_VM_COS, near, 0.0f, 0.0f), cos((double)near)));
    }
    ck_assert_msg(worst < 0.51, "%.3f ULP", worst);
}
END_TEST

/* Of random numbers, whole ones and halves, with the C library's definitions in float64. */
START_TEST(floor_mod_and_bits_are_exact)
{
    uint32_t random = 77;

    for (int k = 0; k < 100000; k++) {
        const int32_t whole = (int32_t)(fx_random(&random) % 33554433u) - 16777216;
        const uint32_t from = fx_random(&random) % 32u, most = 32u - from;
        const uint32_t n = 1u + fx_random(&random) % (most < 24u ? most : 24u);
        const double field = floor((double)(uint32_t)whole / ldexp(1.0, (int)from));
        const float x = ldexpf(fx_uniform(&random, -1.0f, 1.0f), (int)(fx_random(&random) % 40));
        const float y = k % 3 ? fx_uniform(&random, -9.0f, 9.0f) : (float)(1 + k % 50);
        const double rest = fmod((double)x, (double)y);
        const bool other = rest != 0.0 && (rest < 0.0) != (y < 0.0f);

        ck_assert(pb_vm_eval(PB_VM_BITS, (float)whole, (float)from, (float)n) ==
                  (float)fmod(field, ldexp(1.0, (int)n)));
        ck_assert(pb_vm_eval(PB_VM_FLOOR, x, 0.0f, 0.0f) == (float)floor((double)x));
        ck_assert(pb_vm_eval(PB_VM_MOD, x, y, 0.0f) == (float)(other ? rest + (double)y : rest));
    }
}
END_TEST

START_TEST(power_obeys_signs_and_poles)
{
    static const float x[] = {-2.0f, -2.0f, -2.0f, 0.0f, 0.0f,  0.0f,  5.0f,  -1.0f,
                              1.0f,  NAN,   2.0f,  2.0f, -3.0f, 1e30f, 1e-30f};
    static const float y[] = {5.0f,  6.0f, 0.3f, 2.0f,   -2.0f, 0.0f,  0.0f, 16777216.0f,
                              1e30f, 0.0f, NAN,  200.0f, -5.0f, -2.0f, 3.0f};
    static const float want[] = {-32.0f, 64.0f, NAN, 0.0f,           NAN,  1.0f, 1.0f, 1.0f, 1.0f,
                                 NAN,    NAN,   NAN, -1.0f / 243.0f, 0.0f, 0.0f};
    enum { N = sizeof x / sizeof x[0] };
    const float *const at[2] = {x, y};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    float out[N];

    ck_assert_int_eq(fx_expression("ab", "a ** b", &diag, &chain), 0);
    fx_run_row(chain, at, N, out);
    pb_chain_destroy(chain);
    for (int k = 0; k < N; k++)
        ck_assert_msg(fx_same(out[k], want[k]) || fabsf(want[k]) < 1e-38f, "%g ** %g is %g, not %g",
                      x[k], y[k], out[k], want[k]);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("expression");
    TCase *const tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, grammar_follows_python);
    tcase_add_test(tests, invalid_operands_make_invalid_results);
    tcase_add_test(tests, errors_name_their_column);
    tcase_add_test(tests, limits_refuse_hostile_texts);
    tcase_add_test(tests, random_bytes_never_crash);
    tcase_add_test(tests, names_are_listed_once_in_order);
    tcase_add_test(tests, random_expressions_match_an_independent_evaluator);
    tcase_add_test(tests, log_exp_and_power_are_nearly_correctly_rounded);
    tcase_add_test(tests, arc_tangent_is_nearly_correctly_rounded_in_every_quadrant);
    tcase_add_test(tests, sine_and_cosine_are_nearly_correctly_rounded);
    tcase_add_test(tests, floor_mod_and_bits_are_exact);
    tcase_add_test(tests, power_obeys_signs_and_poles);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
