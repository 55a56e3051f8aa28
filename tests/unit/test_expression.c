/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * The expression language: grammar, every error with its column, limits. */
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
        {"a == invalid", 3, "write isvalid(x)"},
        {"invalid < a + b", 9, "write isvalid(x)"},
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
    check_limit("a", "+a", 20000, "", "too long");
    check_limit("a", "+b", 8191, "", NULL);
    check_limit("a", "+b", 8192, "", "more than 16384 numbers, names and operations");
    check_limit("", " ", 70000, "a", "longer than 65536 bytes");
    check_limit("", " ", 65535, "a", NULL);
    check_limit("", "x", 64, "", "name longer than 63");
    check_limit("min(a", ",b", 15, ")", NULL);
    check_limit("min(a", ",b", 16, ")", "more than 16 values");
}
END_TEST

/* A formula of that many terms, or a chain of steps that adds STEP_TERMS of them each. */
enum { STEP_TERMS = 16, STEPS_MAX = 1000 / STEP_TERMS + 1, TERM_BYTES = 40 };

static char *terms(int from, int to)
{
    char *const text = malloc((size_t)(to - from) * TERM_BYTES + 8);
    size_t at = 0;

    ck_assert_ptr_nonnull(text);
    for (int k = from; k < to; k++)
        at += (size_t)sprintf(text + at, "%s(a - b * %d) / (a + b + %d.5)",
                              k > 0 || from > 0 ? " + " : "", k + 1, k);
    return text;
}

static struct pb_chain *in_steps(int n)
{
    static struct fx_step steps[STEPS_MAX];
    static struct pb_item items[STEPS_MAX];
    static char texts[STEPS_MAX][STEP_TERMS * TERM_BYTES + 8];
    const char *const output = "X";
    struct pb_chain *chain = NULL;
    struct pb_diag diag = {0};
    size_t n_steps = 0, at;

    for (int k = 0; k < n; k += STEP_TERMS, n_steps++) {
        char *const text = terms(k, k + STEP_TERMS < n ? k + STEP_TERMS : n);

        (void)snprintf(texts[n_steps], sizeof texts[0], "%s%s", k > 0 ? "X" : "", text);
        items[n_steps] = (struct pb_item){.key = "X", .text = texts[n_steps]};
        fx_op(&steps[n_steps], "math");
        fx_arg(&steps[n_steps], "bands", &items[n_steps], 1);
        free(text);
    }
    ck_assert_msg(fx_create("ab", steps, n_steps, &output, 1, &diag, &at, &chain) == 0, "%s",
                  diag.msg);
    return chain;
}

START_TEST(long_formulas_equal_their_sum_in_steps)
{
    static const int counts[] = {64, 200, 1000};
    enum { PX = 777 };
    float a[PX], b[PX], whole[PX], sum[PX];
    const float *const planes[] = {a, b};
    char *const text = terms(0, counts[_i]);
    struct pb_chain *formula = NULL, *const steps = in_steps(counts[_i]);
    struct pb_diag diag = {0};
    uint32_t state = 5;

    for (int i = 0; i < PX; i++) {
        a[i] = i % 50 == 0 ? NAN : fx_uniform(&state, 1, 4000);
        b[i] = fx_uniform(&state, 1, 4000);
    }
    ck_assert_msg(fx_expression("ab", text, &diag, &formula) == 0, "%s", diag.msg);
    fx_run_row(formula, planes, PX, whole);
    fx_run_row(steps, planes, PX, sum);
    ck_assert_mem_eq(whole, sum, sizeof whole);
    ck_assert(isnan(whole[0]) && isfinite(whole[1]));
    pb_chain_destroy(formula);
    pb_chain_destroy(steps);
    free(text);
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

int main(void)
{
    Suite *const suite = suite_create("expression");
    TCase *const tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, grammar_follows_python);
    tcase_add_test(tests, invalid_operands_make_invalid_results);
    tcase_add_test(tests, errors_name_their_column);
    tcase_add_test(tests, limits_refuse_hostile_texts);
    tcase_add_loop_test(tests, long_formulas_equal_their_sum_in_steps, 0, 3);
    tcase_add_test(tests, names_are_listed_once_in_order);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
