/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
/* Meaning of configurations, and their printed form. */
#include "config/match.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "config_fixture.h"
#include "config/base/arena.h"
#include "kernels/op.h"
#include "pipeline/product/cog/cog.h"
#include "pipeline/product/quicklook/quicklook.h"
#include "pipeline/product/statistics/statistics.h"
#include "run_suite.h"
#include "wic/pattern/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

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
    ck_assert_int_eq(config->service.parallel_jobs, 0);
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
    ck_assert(quicklook->paint.stretch[1] == 98);
    ck_assert_int_eq(statistics->buckets, 256);
    ck_assert_ptr_eq(p->products[3]->kind, &pb_kind_stac);
    pb_config_destroy(config);
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

static const char *const samples[] = {"samples/vegetation.yaml",
                                      "samples/pictures.yaml",
                                      "samples/sentinel2.yaml",
                                      "samples/landsat8.yaml",
                                      "samples/edges.yaml",
                                      "samples/watermask.yaml",
                                      "config/pushbroom.yaml",
                                      "samples/landsat-c2-l1.yaml",
                                      "samples/planetscope.yaml",
                                      "samples/sentinel1-grd.yaml",
                                      "samples/sentinel2-l2a.yaml",
                                      "samples/vhr-pan.yaml",
                                      "samples/terrain.yaml",
                                      "samples/sentinel1-flood.yaml",
                                      "samples/landsat-temperature.yaml"};

/* The text of a configuration has its presets: a process that may open no file reads it. */
START_TEST(text_of_several_files_needs_none_of_them)
{
    struct pb_config *config = load("deploy/pushbroom.yaml"), *again = NULL;
    ck_assert_ptr_nonnull(strstr(config->text, "\n\fpreset "));
    ck_assert_int_eq(setenv("PUSHBROOM_PRESETS", "/nonexistent", 1), 0);
    int rc = pb_config_parse(config->text, strlen(config->text), config->path, &pb_products,
                             &errors, &again);
    ck_assert_int_eq(rc, 0);
    ck_assert_str_eq(again->text, config->text);
    char *first = pb_config_print(config), *second = pb_config_print(again);
    ck_assert_str_eq(first, second);
    int line = 0;
    const char *file = pb_config_place(again, again->pipelines[0].line, &line);
    ck_assert_str_eq(file, config->path);
    ck_assert_int_gt(line, 10);
    free(first);
    free(second);
    pb_config_destroy(again);
    /* The main file alone lacks the preset, and is refused without a search. */
    const size_t alone = (size_t)(strstr(config->text, "\n\f") - config->text);
    ck_assert_int_lt(
        pb_config_parse(config->text, alone, config->path, &pb_products, &errors, &again), 0);
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg, "there is no preset 'sentinel2-l2a'"));
    ck_assert_int_lt(pb_config_parse("a: b\n\fother x\n", 15, "f", &pb_products, &errors, &again),
                     0);
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg, "form feed"));
    for (long good = 0; good < 20000; good += 7) { /* each lack of memory is one error */
        pb_arena_fail_after(good);
        rc =
            pb_config_parse(config->text, strlen(config->text), "f", &pb_products, &errors, &again);
        pb_arena_fail_after(-1);
        if (rc == 0)
            break;
        ck_assert_int_eq(rc, -ENOMEM);
        ck_assert_uint_eq(errors.n, 1);
    }
    ck_assert_int_eq(rc, 0);
    pb_config_destroy(again);
    pb_config_destroy(config);
}
END_TEST

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
        {"S2A_31UFS_20220101_0_L2A.tif", NULL, 0}, /* without a baseline nothing is assumed */
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

START_TEST(a_pipeline_has_a_priority)
{
    struct pb_config *config = parse("pipelines:\n  a: {priority: -7, products: [cog: {}]}\n"
                                     "  b: {products: [cog: {}]}\n");
    ck_assert_int_eq(config->pipelines[0].priority, -7);
    ck_assert_int_eq(config->pipelines[1].priority, 0);
    char *text = pb_config_print(config);
    ck_assert_ptr_nonnull(strstr(text, "  a:\n    priority: -7\n    input:\n"));
    free(text);
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

START_TEST(pages_are_read_like_files_of_a_scene)
{
    struct pb_config *config =
        parse("pipelines: {p: {input: {pages: all, bands: {N: 4, R: 3}, scale: 0.5, nodata: "
              "0}, products: [cog: {}]}}\n");
    const struct pb_input_config *input = &config->pipelines[0].input;
    ck_assert_uint_eq(input->n_files, 0);
    ck_assert_ptr_null(input->file);
    ck_assert_int_eq(input->file_page, 4);
    ck_assert_uint_eq(input->n_bands, 1);
    ck_assert_str_eq(input->bands[0].name, "N");
    ck_assert_int_eq(input->bands[0].index, 1);
    ck_assert_uint_eq(input->n_sources, 1);
    ck_assert_int_eq(input->sources[0].page, 3);
    ck_assert_str_eq(input->sources[0].file, "page 3");
    ck_assert_uint_eq(input->sources[0].n_bands, 1);
    ck_assert_double_eq(input->sources[0].scale, 0.5);
    ck_assert(input->sources[0].has_nodata && input->sources[0].is_needed);
    round_trip(config);
}
END_TEST

/* worker_user: the service's own; notify_user: only administrators;
 * web_user: no user is restricted. */
START_TEST(an_empty_user_is_a_value)
{
    struct pb_config *config = parse("service: {worker_user: \"\", notify_user: '', web_user: ''}\n"
                                     "pipelines: {p: {products: [cog: {}]}}\n");
    ck_assert_str_eq(config->service.worker_user, "");
    ck_assert_str_eq(config->service.notify_user, "");
    ck_assert_str_eq(config->service.web_user, "");
    char *text = pb_config_print(config);
    struct pb_config *again = parse(text);
    ck_assert_str_eq(again->service.worker_user, "");
    ck_assert_str_eq(again->service.notify_user, "");
    ck_assert_str_eq(again->service.web_user, "");
    free(text);
    pb_config_destroy(again);
    pb_config_destroy(config);
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

/* The default file without its optional comments equals the design's file, except for the longer
 * settle, and for the time of acquisition, which has no default. */
START_TEST(default_file_means_the_design_file)
{
    struct pb_config *a = load("config/pushbroom.yaml"), *b = parse(design);
    ck_assert_int_eq(a->service.settle_ms, 10000);
    b->service.settle_ms = 10000;
    char *x = pb_config_print(a), *y = pb_config_print(b);
    char *time = strstr(x, "          datetime: file-time\n");
    ck_assert_ptr_nonnull(time);
    char *rest = strchr(time, '\n') + 1;
    (void)memmove(time, rest, strlen(rest) + 1);
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

START_TEST(archives_fit_the_pattern_of_their_folder)
{
    static const struct {
        const char *path, *pipeline;
    } cases[] = {{"/in/S2A_x_L2A.zip", "folders"},
                 {"s2b_x_l2a.TAR.GZ", "folders"},
                 {"S2A_x_L2A.tgz", "folders"},
                 {"S2A_x_L2A.tar.zst", "folders"},
                 {"S2A_MSI_x.SAFE.zip", "safe"},
                 {"S2A_MSI_x.zip", "safe"},
                 {"S2A_x_L2A", NULL},
                 {"S2A_x_L2A.7z", NULL},
                 {"S2A_x_L2A.tif", "files"},
                 {"other.zip", NULL},
                 {"/S2A_x_L2A.zip/.zip", NULL},
                 {"own.zip", "files"},
                 {"LC08_123.tar", "group"},
                 {"lc09_1.TGZ", "group"},
                 {"LC07_123.tar", NULL},
                 {"LC08_123_B4.TIF.zip", NULL},
                 {"LC08_123_x.tar", NULL}};
    struct pb_config *config =
        parse("pipelines:\n"
              "  folders: {input: {scene: 'S2?_*_L2A/', files: {R: a.tif}}, products: [cog: {}]}\n"
              "  safe: {input: {scene: 'S2?_MSI_*.SAFE', files: {R: a.tif}}, products: [cog: {}]}\n"
              "  files: {input: {match: ['*.tif', 'own.zip']}, products: [cog: {}]}\n"
              "  group: {input: {group: '(?<scene>LC0[89]_\\d+)_(B4|MTL)\\.(TIF|txt)', files: "
              "{R: '{scene}_B4.TIF'}}, products: [cog: {}]}\n");
    char why[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pb_pipeline_config *found = pb_config_match(config, cases[i].path);
        if (cases[i].pipeline == NULL)
            ck_assert_msg(found == NULL, "%s", cases[i].path);
        else
            ck_assert_msg(found != NULL && strcmp(found->name, cases[i].pipeline) == 0, "%s",
                          cases[i].path);
    }
    ck_assert(pb_config_match_why(pb_config_pipeline(config, "safe"), "S2A_MSI_x.zip",
                                  PB_INPUT_FILE, why, sizeof why));
    ck_assert_str_eq(why, "its name without the suffix fits input.scene 'S2?_MSI_*.SAFE'");
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

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *tc = tcase_create("config");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_design_file_loads_as_printed);
    tcase_add_test(tc, an_exchange_is_a_pattern_with_its_arguments);
    tcase_add_test(tc, text_of_several_files_needs_none_of_them);
    tcase_add_loop_test(tc, samples_load_and_print_round_trip, 0,
                        (int)(sizeof samples / sizeof *samples));
    tcase_add_test(tc, the_sentinel_2_sample_tells_baselines_apart);
    tcase_add_test(tc, a_pipeline_has_a_priority);
    tcase_add_test(tc, pages_are_read_like_files_of_a_scene);
    tcase_add_test(tc, unusual_values_print_round_trip);
    tcase_add_test(tc, an_empty_user_is_a_value);
    tcase_add_test(tc, literal_expressions_keep_their_place);
    tcase_add_test(tc, default_file_is_the_schema);
    tcase_add_test(tc, default_file_means_the_design_file);
    tcase_add_test(tc, match_takes_the_first_pipeline_that_fits);
    tcase_add_test(tc, archives_fit_the_pattern_of_their_folder);
    tcase_add_test(tc, aliases_stand_for_their_values);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
