/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Messages for configurations with mistakes, for files that cannot be read, and without memory. */
#include "bad_configs.h"
#include "config/base/arena.h"
#include "config/base/err.h"
#include "config/yaml/report.h"
#include "config/yaml/yaml_tree.h"
#include "config_fixture.h"
#include "run_suite.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

START_TEST(every_bad_config_is_refused_with_place_and_text)
{
    const struct bad_config *bad = &bad_configs[_i];
    struct pb_config *config = NULL;
    int rc =
        pb_config_parse(bad->text, strlen(bad->text), "f.yaml", &pb_products, &errors, &config);
    ck_assert_msg(rc < 0, "was accepted:\n%s", bad->text);
    const struct pb_err *err = &errors.err[0];
    char got[900];
    pb_err_text(err, got, sizeof got);
    ck_assert_msg(err->line == bad->line && err->col == bad->col, "expected %d:%d\n%s\n%s",
                  bad->line, bad->col, got, bad->text);
    ck_assert_msg(strstr(err->msg, bad->message) != NULL, "expected '%s'\n%s\n%s", bad->message,
                  got, bad->text);
    ck_assert_msg(errors.n == bad->n, "expected %zu mistakes, not %zu\n%s\n%s", bad->n, errors.n,
                  got, bad->text);
    ck_assert_int_eq(rc, pb_code_errno(err->code));
    ck_assert_ptr_null(config);
}
END_TEST

START_TEST(all_mistakes_are_reported_in_file_order)
{
    static const char text[] = "pipelines:\n"
                               "  a:\n"
                               "    steps: [{math: {bands: {X: \"B1 +\"}}}]\n"
                               "    products: [cog: {type: uint8}]\n"
                               "  b:\n"
                               "    products: [cgo: {}]\n"
                               "compute: {threads: x, memory: 1}\n"
                               "service: {settle: soon}\n";
    struct pb_config *config = NULL;
    ck_assert_int_lt(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config), 0);
    ck_assert_uint_eq(errors.n, 6);
    int lines[] = {3, 4, 6, 7, 7, 8};
    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(errors.err[i].line, lines[i]);
    ck_assert_int_lt(errors.err[3].col, errors.err[4].col);
}
END_TEST

/* Steps and products of a pipeline with the bands R and N, and a word of each mistake in order:
 * these and no others. */
static const struct {
    const char *steps, *products, *words[8];
} goes[] = {
    {"math: {bands: {X: \"(N - R\", Z: \"N - Q\"}}",
     "cog: {bands: [X, Z, Y]}",
     {"expected ')'", "'Q'", "'Y'"}},
    {"math: {bands: {X: \"N - Q1 * abs(PP)\", Z: \"X + Z\"}}",
     "cog: {bands: [X, Z]}",
     {"'Q1'", "'PP'", "'Z'"}},
    {"math: {bands: {X: \"ab(N) + Q\", Z: \"R(N)\", Y: \"min(N)\", W: \"X + Y + Z + V\"}}",
     "cog: {bands: [W]}",
     {"unknown function 'ab'", "'Q'", "'R' is a band and not a function", "min() takes", "'V'"}},
    {"math: {bands: {X: \"N * limit\", Z: \"N * Q\"}, constants: {limit: x}}",
     "cog: {bands: [X]}",
     {"'Q'", "math.constants: 'x' is not a number"}},
    {"math: {bands: {X: \"N * limit\"}, constant: {limit: 2}}",
     "cog: {bands: [X]}",
     {"unknown key 'constant'"}},
    {"math: {bands: {X: \"\", Z: \"X + Q\"}}", "cog: {bands: [X, Z]}", {"empty text", "'Q'"}},
    {"index: {names: [NDVY, SAVI, EVI]}\n      - math: {bands: {X: \"NDVY + EVI + QQ\"}}",
     "cog: {bands: [NDVY, SAVI, EVI, X, NONE]}",
     {"there is no index 'NDVY'", "EVI needs B", "'QQ'", "'NONE'"}},
    {"index: {names: [NDVY, NIRvP, SAVI], constants: {LL: 1}}",
     "cog: {bands: [SAVI, NIRvP]}",
     {"there is no index 'NDVY'", "constant 'LL'"}},
    {"index: {name: [NDVI]}\n      - math: {bands: {X: \"NDVI + Q\"}}",
     "cog: {bands: [NDVI, X, V]}",
     {"unknown key 'name'", "'Q'", "'V'"}},
    {"indx: {names: {A: NDVI, V: SAVI}}\n      - scale: {bands: [A, QQ], factor: {QQ: 2, ZZ: 2}}",
     "cog: {bands: [A, V, W]}",
     {"no operator 'indx'", "no band 'QQ'", "'ZZ', which is not", "'W'"}},
    {"index:\n        names: [NDVI]", "cog: {bands: [NDVI, V]}", {"one step has one key", "'V'"}},
    {"cast: {type: uint64, bands: [R, Q]}",
     "cog: {bands: [R]}",
     {"cast.type", "no band 'Q' here; known: R, N"}},
    {"cast:", "cog: {bands: [R, V]}", {"'cast' needs 'type'", "'V'"}},
    {"cast: {type: uint8, bands: {A: Q, C: A}}", "cog: {bands: [A, C]}", {"no band 'Q'"}},
    {"math: {bands: {X: R - N}}\n      - resample: {factor: 2, bands: {A: R}}",
     "cog: {}\n      - stac: {}",
     {"cog: 'X' and 'A' are on different grids"}},
    {"convolve: {size: 4, bands: {A: Q, C: R}}",
     "cog: {bands: [A, C, V]}",
     {"'4' is not an odd whole number; allowed: 3 to 31", "no band 'Q'", "'V'"}},
    {"convolve: {weights: [1, 2], bands: {A: Q}}",
     "cog: {bands: [A]}",
     {"2 weights do not fit", "no band 'Q'"}},
    {"convolve: {weights: [1, 0, 1, a, 1, 0, 0, 0, 1], bands: {A: R}}",
     "cog: {bands: [A]}",
     {"'a' is not a number"}},
    {"scale: {factor: {A: 2, C: x}, bands: {A: Q}}",
     "cog: {bands: [A]}",
     {"'x' is not a number", "no band 'Q'"}},
    {"index: {names: [NIRvP, NDVY]}",
     "cog: {bands: [NIRvP]}",
     {"NIRvP needs PAR", "there is no index 'NDVY'"}},
    {"cast: {type: int8}",
     "cog: {type: int8, bands: [V]}\n      - cog: {name: b, type: uint8, nodta: 0}",
     {"cast.type", "cog.type", "'V'", "unknown key 'nodta'"}},
    {"cast: {type: uint8}",
     "cog: {type: uint8, bands: 5, compress: none, level: x, predictor: 3}",
     {"uint8 cannot", "cog.bands must be", "level", "predictor"}},
    {"cast: {type: uint8}",
     "quicklook: {bands: [R, N, 'a b']}\n      - quicklook: {name: b, size: x, bands: [R, N]}",
     {"'a b'", "'x'", "has 2 bands"}},
    {"math: {bands: {X: \"PP + (N - Q\", Z: \"X * QQ\"}}",
     "cog: {bands: [X, Z]}",
     {"'PP'", "'Q'", "expected ')'", "'QQ'"}},
    {"roughness: {size: 4, bands: {A: Q}}\n      - math: {bands: {X: A + QQ}}",
     "cog: {bands: [A, X]}",
     {"'4' is not an odd whole number", "no band 'Q'", "'QQ'"}},
    {"convolve: {kernel: box, size: 6, sigma: 2, bands: [R, Q]}",
     "cog: {bands: [R]}",
     {"'6' is not an odd", "'sigma' belongs", "no band 'Q'"}},
    {"roughness: {size: 4, edge: clmp, bands: {A: Q}, sze: 3}",
     "cog: {bands: [A]}",
     {"'4' is not an odd", "'clmp' is not known", "no band 'Q'", "unknown key 'sze'"}},
    {"convolve: {kernel: box, sigma: 2, edge: clmp}",
     "cog: {bands: [R]}",
     {"'sigma' belongs", "'clmp' is not known"}},
    {"convolve: {edge: clmp, kernel: box, weights: [1, 0, 1, 0, 1, 0, 0, 0, 1]}",
     "cog: {bands: [R]}",
     {"'clmp' is not known", "exclude each other"}},
    {"convolve: {kernel: bx, sigma: 2, size: 5, weights: [1, 2]}",
     "cog: {bands: [R]}",
     {"'bx' is not known", "'sigma' belongs", "2 weights do not fit"}},
    {"scale: {factor: {ZZ: 2}, offset: x, bands: {A: R}}",
     "cog: {bands: [A]}",
     {"'ZZ', which is not among", "'x' is not a number"}},
    {"scale: {factor: {A: 2, C: 3}, bands: {A: R, C: []}}",
     "cog: {bands: [A, C]}",
     {"must be a name"}},
    {"scale: {factor: {A: 2}, band: {A: R}}", "cog: {bands: [A]}", {"unknown key 'band'"}},
    {"index: {names: [NDVI, NIRvP], constants: {LL: 1, PAR: x}, kernel: rbff}",
     "cog: {bands: [NDVI]}",
     {"no index has a constant 'LL'", "'x' is not a number", "'rbff' is not known"}},
    {"index: {names: [NIRvP], constants: 5}",
     "cog: {bands: [NIRvP]}",
     {"index.constants must be a map of names and numbers"}},
    {"index: {names: [NDVI, NDVI, EVI, NDVY], constants: {sigma: 0}}",
     "cog: {bands: [NDVI, EVI]}\n      - cog: {name: b, bands: [V]}\n      - cog: {name: c, bands: "
     "[V]}",
     {"'NDVI' is there twice", "EVI needs B", "no index 'NDVY'", "sigma is 0", "'V'", "'V'"}},
    {"math: {bands: {X: \"N + Q\"}}",
     "cgo: {}\n      - cog: {type: uint8, bands: [X, V, 'a b', W]}\n      - cog: {bands: [U], "
     "name: u}",
     {"'Q'", "no product 'cgo'", "uint8 cannot", "'V'", "'a b'", "'W'", "'U'"}},
};

START_TEST(all_mistakes_of_a_pipeline_come_in_one_go)
{
    char text[1000];
    struct pb_config *config = NULL;
    size_t n = 0;
    (void)snprintf(text, sizeof text,
                   "pipelines:\n  p:\n    input: {bands: {R: 1, N: 2}}\n    steps:\n      - %s\n"
                   "    products:\n      - %s\n",
                   goes[_i].steps, goes[_i].products);
    ck_assert_int_lt(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config), 0);
    while (n < 8 && goes[_i].words[n])
        n++;
    for (size_t i = 0; i < n && i < errors.n; i++)
        ck_assert_msg(strstr(errors.err[i].msg, goes[_i].words[i]) != NULL, "'%s' is not in '%s'",
                      goes[_i].words[i], errors.err[i].msg);
    ck_assert_msg(errors.n == n, "%zu mistakes, not %zu, the last one '%s'\n%s", errors.n, n,
                  errors.err[errors.n - 1].msg, text);
}
END_TEST

START_TEST(misspelt_input_or_key_hides_its_consequences_only)
{
    static const char text[] = "compute: {threads: 1}\n"
                               "compute: {threads: 2}\n"
                               "pipelines:\n"
                               "  a:\n"
                               "    input: {bands: {R: 1, N: x}}\n"
                               "    steps: [index: {names: [NDVI, EVI]}]\n"
                               "    products: [cog: {bands: [N, V]}]\n"
                               "  b:\n"
                               "    input: {band: {R: 1, N: 2}}\n"
                               "    steps: [math: {bands: {X: N - R - Q}}]\n"
                               "    products: [cog: {bands: [X]}]\n"
                               "  c:\n"
                               "    stps: [math: {bands: {X: B1 - B2}}]\n"
                               "    products: [cog: {bands: [X, V]}]\n"
                               "  d:\n"
                               "    steps: {math: {bands: {X: B1 - B2}}}\n"
                               "    products: [cog: {bands: [X, V]}]\n"
                               "  e:\n"
                               "    steps: [math: {bands: {X: B1, X: B2 - Q}}]\n"
                               "    products: [cog: {bands: [V]}]\n";
    const struct {
        int line;
        const char *words;
    } expected[] = {{2, "'compute' is here twice"},
                    {5, "'x' is not a band number"},
                    {6, "EVI needs B"},
                    {7, "'V'"},
                    {9, "unknown key 'band'"},
                    {10, "'Q'"},
                    {13, "unknown key 'stps'"},
                    {14, "'V'"},
                    {16, "must be a list"},
                    {17, "'V'"},
                    {19, "'X' is here twice"}};
    struct pb_config *config = NULL;
    size_t n = sizeof expected / sizeof *expected;
    ck_assert_int_lt(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config), 0);
    for (size_t i = 0; i < n && i < errors.n; i++) {
        ck_assert_msg(strstr(errors.err[i].msg, expected[i].words) != NULL, "'%s' is not in '%s'",
                      expected[i].words, errors.err[i].msg);
        ck_assert_int_eq(errors.err[i].line, expected[i].line);
    }
    ck_assert_uint_eq(errors.n, n);
}
END_TEST

START_TEST(band_list_in_a_message_omits_wrong_bands)
{
    static const char text[] = "pipelines:\n"
                               "  a:\n"
                               "    input: {bands: {R: 0, OK: 3}}\n"
                               "    steps: [math: {bands: {X: OK + QQQQQQ, Y: WWWWWW}}]\n"
                               "    products: [cog: {}]\n";
    static const char *const expected[] = {"math: unknown name 'QQQQQQ'; bands here: OK",
                                           "math: unknown name 'WWWWWW'; bands here: OK"};
    size_t found = 0;
    ck_assert_int_lt(
        pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &(struct pb_config *){0}),
        0);
    for (size_t i = 0; i < errors.n; i++)
        if (strstr(errors.err[i].msg, "unknown name") != NULL && found < 2)
            ck_assert_str_eq(errors.err[i].msg, expected[found++]);
    ck_assert_uint_eq(found, 2);
}
END_TEST

START_TEST(numbered_bands_are_told_as_a_range)
{
    static const char text[] =
        "pipelines:\n"
        "  a:\n"
        "    input: {match: [x]}\n"
        "    steps: [{math: {bands: {X: QQQQQQ}}}, {index: {names: [NDVI]}}]\n"
        "    products: [cog: {}]\n";
    ck_assert_int_lt(
        pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &(struct pb_config *){0}),
        0);
    ck_assert_str_eq(errors.err[0].msg, "math: unknown name 'QQQQQQ'; bands here: B1 to B64");
    ck_assert_ptr_nonnull(strstr(errors.err[1].msg, "(its bands: B1 to B64)"));
}
END_TEST

START_TEST(steps_that_are_too_much_together_are_told_once)
{
    char text[60000] = "pipelines:\n  p:\n    products: [cog: {bands: [B1]}]\n    steps:\n";
    size_t length = strlen(text);
    for (int i = 0; i < 4200; i++)
        length +=
            (size_t)sprintf(text + length, "%sX%d: B1%s", i % 70 ? "," : "    - math: {bands: {", i,
                            i % 70 == 69 ? "}}\n" : "");
    struct pb_config *config = NULL;
    ck_assert_int_lt(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config), 0);
    ck_assert_uint_eq(errors.n, 1);
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg, "4096 bands"));
}
END_TEST

START_TEST(at_most_twenty_are_kept_and_they_are_the_first)
{
    char text[2000] = "pipelines: {p: {products: [cog: {}]}}\nlimits:\n";
    for (int i = 0; i < 30; i++)
        (void)sprintf(text + strlen(text), "  zz%d: 1\n", i);
    strcat(text, "compute: {threads: x}\n");
    struct pb_config *config = NULL;
    ck_assert_int_lt(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config), 0);
    ck_assert_uint_eq(errors.n, PB_CONFIG_ERRORS_MAX);
    ck_assert_uint_eq(errors.n_more, 11);
    for (size_t i = 0; i < errors.n; i++)
        ck_assert_int_eq(errors.err[i].line, (int)i + 3);
}
END_TEST

START_TEST(mistakes_of_a_line_carry_their_own_advice)
{
    struct pb_config *config = NULL;
    static const char text[] = "compute: {memry: 1}\npipelines: {p: {products: [cog: {}]}}\n";
    ck_assert_int_lt(pb_config_parse(text, strlen(text), "f.yaml", &pb_products, &errors, &config),
                     0);
    char message[900];
    pb_err_text(&errors.err[0], message, sizeof message);
    ck_assert_str_eq(message,
                     "f.yaml:1:11: unknown key 'memry' in compute; did you mean 'memory'?");
}
END_TEST

START_TEST(running_out_of_memory_is_one_error)
{
    int succeeded = 0;
    for (long good = 0; good < 100000 && !succeeded; good++) {
        struct pb_config *config = NULL;
        pb_arena_fail_after(good);
        int rc = pb_config_parse(design, strlen(design), "f", &pb_products, &errors, &config);
        pb_arena_fail_after(-1);
        if (rc == 0) {
            succeeded = good > 100;
            pb_config_destroy(config);
            break;
        }
        ck_assert_int_eq(rc, -ENOMEM);
        ck_assert_uint_eq(errors.n, 1);
        ck_assert_ptr_nonnull(strstr(errors.err[0].msg, "out of memory"));
    }
    ck_assert(succeeded);
    for (size_t i = 0; i < sizeof bad_configs / sizeof *bad_configs; i += 7)
        for (long good = 0; good < 400; good += 3) {
            struct pb_config *config = NULL;
            pb_arena_fail_after(good);
            int rc = pb_config_parse(bad_configs[i].text, strlen(bad_configs[i].text), "f",
                                     &pb_products, &errors, &config);
            ck_assert_int_lt(rc, 0);
        }
    pb_arena_fail_after(-1);
}
END_TEST

START_TEST(files_that_cannot_be_read_are_said_so)
{
    struct pb_config *config = NULL;
    ck_assert_int_eq(pb_config_load("/nonexistent/x.yaml", &pb_products, &errors, &config),
                     -ENOENT);
    char message[900];
    pb_err_text(&errors.err[0], message, sizeof message);
    ck_assert_str_eq(message, "/nonexistent/x.yaml: cannot open it: No such file or directory; "
                              "check the path and its permissions");
    ck_assert_int_lt(pb_config_load("/", &pb_products, &errors, &config), 0);
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg, "cannot read it: Is a directory"));
}
END_TEST

START_TEST(files_over_one_mebibyte_are_refused)
{
    char path[] = "/tmp/pb_test_config_XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, PB_CONFIG_BYTES_MAX + 1), 0);
    (void)close(fd);
    struct pb_config *config = NULL;
    int rc = pb_config_load(path, &pb_products, &errors, &config);
    (void)unlink(path);
    ck_assert_int_eq(rc, -EFBIG);
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg, "at most 1048576 (1 MiB)"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config_mistakes");
    TCase *tc = tcase_create("config_mistakes");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, every_bad_config_is_refused_with_place_and_text, 0,
                        (int)(sizeof bad_configs / sizeof *bad_configs));
    tcase_add_test(tc, all_mistakes_are_reported_in_file_order);
    tcase_add_loop_test(tc, all_mistakes_of_a_pipeline_come_in_one_go, 0,
                        (int)(sizeof goes / sizeof *goes));
    tcase_add_test(tc, misspelt_input_or_key_hides_its_consequences_only);
    tcase_add_test(tc, band_list_in_a_message_omits_wrong_bands);
    tcase_add_test(tc, numbered_bands_are_told_as_a_range);
    tcase_add_test(tc, steps_that_are_too_much_together_are_told_once);
    tcase_add_test(tc, at_most_twenty_are_kept_and_they_are_the_first);
    tcase_add_test(tc, mistakes_of_a_line_carry_their_own_advice);
    tcase_add_test(tc, running_out_of_memory_is_one_error);
    tcase_add_test(tc, files_that_cannot_be_read_are_said_so);
    tcase_add_test(tc, files_over_one_mebibyte_are_refused);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
