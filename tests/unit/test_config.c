/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"
#include "pipeline/product/cog.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/product/quicklook.h"
#include "pipeline/product/statistics.h"

#include "bad_configs.h"
#include "wic/pattern/schedule.h"
#include "config/base/arena.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file of the design document, word for word. */
static const char design[] =
    "service:\n"
    "  inbox: /var/lib/pushbroom/inbox          # watched; files are claimed by rename\n"
    "  work: /var/lib/pushbroom/work\n"
    "  products: /var/lib/pushbroom/products    # products/<scene>/<files>\n"
    "  quarantine: /var/lib/pushbroom/quarantine\n"
    "  state: /var/lib/pushbroom/state          # job store\n"
    "  socket: /run/pushbroom/status.sock\n"
    "  settle: 2s                               # size and mtime unchanged = complete\n"
    "compute:\n"
    "  device: auto                             # auto | cpu | cuda | cuda:N\n"
    "  memory: 512MiB                           # all tile buffers together\n"
    "  buffers: auto                            # auto | pinned | managed | host\n"
    "  sync: wic                                # wic | stream\n"
    "  threads: 0                               # 0 = all cores\n"
    "pipelines:\n"
    "  vegetation:\n"
    "    input:\n"
    "      match: [\"*.tif\", \"*.tiff\"]\n"
    "      bands: {B: 1, G: 2, R: 3, N: 4}      # names by band number\n"
    "      scale: 0.0001                        # reflectance = DN * scale + offset\n"
    "      offset: 0.0\n"
    "    steps:\n"
    "      - index: {names: [NDVI, EVI]}\n"
    "      - math: {bands: {WATER: \"(G - N) / (G + N)\"}}\n"
    "    products:\n"
    "      - cog: {bands: [NDVI, EVI, WATER], type: float32, compress: deflate}\n"
    "      - quicklook: {bands: [R, G, B], size: 1024, stretch: [2, 98]}\n"
    "      - statistics: {}\n"
    "      - stac: {}\n";

static struct pb_err_list errors;

static struct pb_config *parse(const char *text)
{
    struct pb_config *config = NULL;
    int rc = pb_config_parse(text, strlen(text), "f.yaml", &pb_products, &errors, &config);
    if (rc) {
        char message[900];
        pb_err_text(&errors.err[0], message, sizeof message);
        ck_abort_msg("%s\n%s", message, text);
    }
    return config;
}

static struct pb_config *load(const char *name)
{
    char path[4096];
    struct pb_config *config = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", PB_SOURCE_DIR, name);
    if (pb_config_load(path, &pb_products, &errors, &config))
        ck_abort_msg("%s:%d:%d: %s", path, errors.err[0].line, errors.err[0].col,
                     errors.err[0].msg);
    return config;
}

START_TEST(an_exchange_is_a_pattern_with_its_arguments)
{
    struct pb_config *config = parse("pipelines:\n"
                                     "  plain: {products: [cog: {}]}\n"
                                     "  reach: {exchange: {reach: 2}, products: [cog: {}]}\n"
                                     "  many:\n"
                                     "    exchange: {pattern: multiple, n0: 7}\n"
                                     "    products: [cog: {}]\n");
    const struct pb_exchange_config *plain = &config->pipelines[0].exchange;
    const struct pb_exchange_config *reach = &config->pipelines[1].exchange;
    const struct pb_exchange_config *many = &config->pipelines[2].exchange;
    ck_assert_ptr_eq(plain->pattern, &wic_pattern_unidirectional);
    ck_assert_uint_eq(plain->args[0], 0);
    ck_assert_ptr_eq(reach->pattern, &wic_pattern_unidirectional);
    ck_assert_uint_eq(reach->args[0], 2);
    ck_assert_str_eq(many->pattern->name, "multiple");
    ck_assert_uint_eq(many->args[0], 7);
    ck_assert_uint_eq(many->args[1], 1);
    char *text = pb_config_print(config);
    ck_assert_ptr_nonnull(strstr(text, "    exchange:\n      pattern: multiple\n      n0: 7\n"));
    struct pb_config *again = parse(text);
    ck_assert_uint_eq(again->pipelines[2].exchange.args[0], 7);
    free(text);
    pb_config_destroy(again);
    pb_config_destroy(config);
}
END_TEST

START_TEST(the_design_file_loads_as_printed)
{
    struct pb_config *config = parse(design);
    ck_assert_str_eq(config->service.inbox, "/var/lib/pushbroom/inbox");
    ck_assert_str_eq(config->service.archive, "/var/lib/pushbroom/work/done");
    ck_assert_int_eq(config->service.settle_ms, 2000);
    ck_assert_int_eq(config->service.parallel_jobs, 1);
    ck_assert_int_eq(config->service.max_attempts, 2);
    ck_assert_int_eq(config->service.keep_jobs, 1000);
    ck_assert_int_eq(config->service.stall_ms, 600000);
    ck_assert_int_eq(config->compute.device, PB_DEVICE_AUTO);
    ck_assert_int_eq(config->compute.device_index, -1);
    ck_assert_uint_eq(config->compute.memory_bytes, 512u << 20);
    ck_assert_int_eq(config->compute.sync, PB_SYNC_WIC);
    ck_assert_uint_ge(config->limits.max_pixels, 200000000000u);
    ck_assert_uint_eq(config->n_pipelines, 1);
    const struct pb_pipeline_config *p = &config->pipelines[0];
    ck_assert_str_eq(p->name, "vegetation");
    ck_assert_int_eq(p->line, 16);
    ck_assert_uint_eq(p->input.n_match, 2);
    ck_assert_uint_eq(p->input.n_bands, 4);
    ck_assert_str_eq(p->input.bands[3].name, "N");
    ck_assert_int_eq(p->input.bands[3].index, 4);
    ck_assert(p->input.scale == 0.0001 && p->input.offset == 0);
    ck_assert(!p->input.has_nodata);
    ck_assert_uint_eq(p->n_steps, 2);
    ck_assert_str_eq(p->steps[0].op->name, "index");
    const struct pb_items *bands = pb_op_outputs(p->steps[0].op, p->steps[0].params);
    ck_assert_uint_eq(bands->n, 2);
    ck_assert_str_eq(bands->items[1].text, "EVI");
    bands = pb_op_outputs(p->steps[1].op, p->steps[1].params);
    ck_assert_str_eq(bands->items[0].key, "WATER");
    ck_assert_str_eq(bands->items[0].text, "(G - N) / (G + N)");
    ck_assert_int_eq(bands->items[0].line, 24);
    ck_assert_int_eq(bands->items[0].col, 32);
    ck_assert_uint_eq(p->n_products, 4);
    const struct pb_cog_config *cog = (const struct pb_cog_config *)p->products[0];
    const struct pb_quicklook_config *quicklook = (const void *)p->products[1];
    const struct pb_statistics_config *statistics = (const void *)p->products[2];
    ck_assert_ptr_eq(p->products[0]->kind, &pb_kind_cog);
    ck_assert_int_eq(cog->type, PB_F32);
    ck_assert_int_eq(cog->compress, PB_COMPRESS_DEFLATE);
    ck_assert(isnan(cog->nodata));
    ck_assert_int_eq(quicklook->size_px, 1024);
    ck_assert(quicklook->stretch[1] == 98);
    ck_assert_int_eq(statistics->buckets, 256);
    ck_assert_ptr_eq(p->products[3]->kind, &pb_kind_stac);
    pb_config_destroy(config);
}
END_TEST

START_TEST(every_bad_config_is_refused_with_its_place_and_words)
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
     {"'4' is not an odd whole number; allowed: 3 to 15", "no band 'Q'", "'V'"}},
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

START_TEST(an_input_or_a_key_with_a_slip_hides_its_own_consequences_only)
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

START_TEST(a_list_of_bands_leaves_out_those_that_are_wrong_themselves)
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

static void round_trip(struct pb_config *config)
{
    char *first = pb_config_print(config);
    ck_assert_ptr_nonnull(first);
    struct pb_config *again = parse(first);
    char *second = pb_config_print(again);
    ck_assert_str_eq(first, second);
    ck_assert_uint_eq(again->n_pipelines, config->n_pipelines);
    for (size_t i = 0; i < config->n_pipelines; i++) {
        const struct pb_pipeline_config *a = &config->pipelines[i], *b = &again->pipelines[i];
        ck_assert_uint_eq(a->n_steps, b->n_steps);
        ck_assert_uint_eq(a->n_products, b->n_products);
        for (size_t k = 0; k < a->n_steps; k++)
            for (size_t m = 0; m < a->steps[k].op->n_keys; m++) {
                struct pb_key_value first_value, second_value;
                const struct pb_key *key = &a->steps[k].op->keys[m];
                struct pb_items x = pb_key_items(key, a->steps[k].params, &first_value);
                struct pb_items y = pb_key_items(key, b->steps[k].params, &second_value);
                ck_assert_uint_eq(x.n, y.n);
                for (size_t v = 0; v < x.n; v++) {
                    ck_assert(x.items[v].num == y.items[v].num);
                    ck_assert_pstr_eq(x.items[v].text, y.items[v].text);
                    ck_assert_pstr_eq(x.items[v].key, y.items[v].key);
                }
            }
    }
    free(first);
    free(second);
    pb_config_destroy(again);
    pb_config_destroy(config);
}

static const char *const samples[] = {"samples/vegetation.yaml", "samples/sentinel2.yaml",
                                      "samples/landsat8.yaml",   "samples/edges.yaml",
                                      "samples/watermask.yaml",  "config/pushbroom.yaml"};

START_TEST(samples_load_and_print_round_trip)
{
    round_trip(load(samples[_i]));
}
END_TEST

START_TEST(the_sentinel_2_sample_tells_baselines_apart)
{
    static const struct {
        const char *name, *pipeline;
        double offset;
    } cases[] = {
        {"S2A_MSIL2A_20220125T105321_N0400_R051_T31UFS_20220125T134212.tif", "sentinel2", -0.1},
        {"/in/S2C_MSIL2A_20251101T101234_N0511_R022_T33UUP_20251101T140000.tif", "sentinel2", -0.1},
        {"S2B_MSIL2A_20180501T103019_N0500_R108_T32UMU_20230901T000000.tif", "sentinel2", -0.1},
        {"S2B_MSIL2A_20280501T103019_N1000_R108_T32UMU_20280901T000000.tif", "sentinel2", -0.1},
        {"S2A_MSIL2A_20220124T105321_N0301_R051_T31UFS_20220124T134212.tif",
         "sentinel2-before-0400", 0},
        {"S2A_MSIL2A_20180501T103019_N0207_R108_T32UMU_20180501T000000.tif",
         "sentinel2-before-0400", 0},
        {"S2A_31UFS_20220101_0_L2A.tif", NULL, 0}, /* says nothing: nothing is assumed */
        {"S2A_MSIL2A_20180501.tif", NULL, 0},
    };
    struct pb_config *config = load("samples/sentinel2.yaml");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pb_pipeline_config *found = pb_config_match(config, cases[i].name);
        ck_assert_msg((found == NULL) == (cases[i].pipeline == NULL), "%s", cases[i].name);
        if (found == NULL)
            continue;
        ck_assert_str_eq(found->name, cases[i].pipeline);
        ck_assert_double_eq(found->input.offset, cases[i].offset);
        ck_assert_double_eq(found->input.scale, 0.0001);
    }
    pb_config_destroy(config);
}
END_TEST

START_TEST(unusual_values_print_round_trip)
{
    round_trip(
        parse("service: {inbox: \"/tmp/a b/\\\"q\\\" \\\\ #x\", settle: 1500ms, on_success: "
              "delete, archive: 'yes', socket: '@x: y'}\n"
              "compute: {device: 'cuda:3', memory: 1.5GiB, tile: 256, threads: 7}\n"
              "limits: {max_pixels: 2e11, max_block_bytes: 1MB}\n"
              "pipelines:\n"
              "  a.b-c:\n"
              "    input: {match: ['[a-c]?.tif', 'Köln*'], nodata: .nan, offset: -1e-7,\n"
              "            bands: {null: 3, y: 1},\n"
              "            sources: {A: {file: 'p/{scene} x.tif', bands: {q: 2}, nodata: .nan},\n"
              "                      B: {file: /b.tif, bands: {r: 1, s: 4}, scale: 0.5}}}\n"
              "    steps:\n"
              "      - math:\n"
              "          bands:\n"
              "            X: |\n"
              "              y +\n"
              "              1\n"
              "            Z: >-\n"
              "              y\n"
              "              * 2\n"
              "      - scale: {factor: {X: 0.1, y: 1e-30}}\n"
              "      - convolve: {weights: [0, 1, 0, 1, -4.25, 1, 0, 1, 0], bands: {E: X}}\n"
              "    products:\n"
              "      - cog: {name: one, bands: [y, 'null', X], type: int16, nodata: -1,\n"
              "              predictor: horizontal, level: 12}\n"
              "      - cog: {type: float64, nodata: .nan}\n"
              "      - stac: {datetime: '2026-05-04T10:30:00.25+02:00', platform: \"a: b\"}\n"
              "      - statistics\n"
              "      - quicklook:\n"));
}
END_TEST

START_TEST(literal_expressions_keep_their_place)
{
    struct pb_config *config = NULL;
    static const char text[] = "pipelines:\n"
                               "  p:\n"
                               "    steps:\n"
                               "      - math:\n"
                               "          bands:\n"
                               "            X: |\n"
                               "              B1 +\n"
                               "              1 + NOPE\n"
                               "    products: [cog: {}]\n";
    ck_assert_int_lt(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config), 0);
    ck_assert_int_eq(errors.err[0].line, 8);
    ck_assert_int_eq(errors.err[0].col, 19);
    ck_assert_int_eq(errors.err[0].code, PB_E_PIPELINE_EXPRESSION);
}
END_TEST

/* With PB_UPDATE=1 in the environment the file is written instead. */
START_TEST(default_file_is_the_schema)
{
    char path[4096];
    char *made = pb_config_default_text(&pb_products);
    (void)snprintf(path, sizeof path, "%s/config/pushbroom.yaml", PB_SOURCE_DIR);
    FILE *file = fopen(path, getenv("PB_UPDATE") ? "w+b" : "rb");
    ck_assert_ptr_nonnull(file);
    if (getenv("PB_UPDATE")) {
        (void)fputs(made, file);
        rewind(file);
    }
    static char text[65536];
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[bytes] = '\0';
    ck_assert_msg(
        strcmp(made, text) == 0,
        "config/pushbroom.yaml is not what the schema makes; PB_UPDATE=1 test_config writes "
        "it anew");
    free(made);
}
END_TEST

/* The default file without its optional comments equals the design's file, but for the longer
 * settle. */
START_TEST(default_file_means_the_design_file)
{
    struct pb_config *a = load("config/pushbroom.yaml"), *b = parse(design);
    ck_assert_int_eq(a->service.settle_ms, 10000);
    b->service.settle_ms = 10000;
    char *x = pb_config_print(a), *y = pb_config_print(b);
    ck_assert_str_eq(x, y);
    free(x);
    free(y);
    pb_config_destroy(a);
    pb_config_destroy(b);
}
END_TEST

START_TEST(match_takes_the_first_pipeline_that_fits)
{
    struct pb_config *config = parse("pipelines:\n"
                                     "  s2: {input: {match: ['S2?_*.tif']}, products: [cog: {}]}\n"
                                     "  rest: {products: [cog: {}]}\n");
    ck_assert_str_eq(pb_config_match(config, "/in/S2A_x.tif")->name, "s2");
    ck_assert_str_eq(pb_config_match(config, "s2b_X.TIF")->name, "s2");
    ck_assert_str_eq(pb_config_match(config, "/S2A_dir/other.Tiff")->name, "rest");
    ck_assert_ptr_null(pb_config_match(config, "x.png"));
    ck_assert_ptr_null(pb_config_match(config, ""));
    ck_assert_str_eq(pb_config_pipeline(config, "rest")->name, "rest");
    ck_assert_ptr_null(pb_config_pipeline(config, "REST"));
    pb_config_destroy(config);
}
END_TEST

START_TEST(aliases_stand_for_their_values)
{
    struct pb_config *config =
        parse("pipelines:\n"
              "  a: {input: &four {bands: {R: 1, N: 2}}, products: &all [cog: {bands: [R]}]}\n"
              "  b: {input: *four, products: *all}\n");
    ck_assert_uint_eq(config->pipelines[1].input.n_bands, 2);
    ck_assert_str_eq(config->pipelines[1].products[0]->bands[0], "R");
    pb_config_destroy(config);
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
    Suite *suite = suite_create("config");
    TCase *tc = tcase_create("config");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_design_file_loads_as_printed);
    tcase_add_test(tc, an_exchange_is_a_pattern_with_its_arguments);
    tcase_add_loop_test(tc, every_bad_config_is_refused_with_its_place_and_words, 0,
                        (int)(sizeof bad_configs / sizeof *bad_configs));
    tcase_add_test(tc, all_mistakes_are_reported_in_file_order);
    tcase_add_loop_test(tc, all_mistakes_of_a_pipeline_come_in_one_go, 0,
                        (int)(sizeof goes / sizeof *goes));
    tcase_add_test(tc, an_input_or_a_key_with_a_slip_hides_its_own_consequences_only);
    tcase_add_test(tc, a_list_of_bands_leaves_out_those_that_are_wrong_themselves);
    tcase_add_test(tc, steps_that_are_too_much_together_are_told_once);
    tcase_add_test(tc, at_most_twenty_are_kept_and_they_are_the_first);
    tcase_add_test(tc, mistakes_of_a_line_carry_their_own_advice);
    tcase_add_loop_test(tc, samples_load_and_print_round_trip, 0,
                        (int)(sizeof samples / sizeof *samples));
    tcase_add_test(tc, the_sentinel_2_sample_tells_baselines_apart);
    tcase_add_test(tc, unusual_values_print_round_trip);
    tcase_add_test(tc, literal_expressions_keep_their_place);
    tcase_add_test(tc, default_file_is_the_schema);
    tcase_add_test(tc, default_file_means_the_design_file);
    tcase_add_test(tc, match_takes_the_first_pipeline_that_fits);
    tcase_add_test(tc, aliases_stand_for_their_values);
    tcase_add_test(tc, running_out_of_memory_is_one_error);
    tcase_add_test(tc, files_that_cannot_be_read_are_said_so);
    tcase_add_test(tc, files_over_one_mebibyte_are_refused);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
