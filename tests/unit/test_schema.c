/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/schema.h"

#include "config/base/arena.h"
#include "config/base/text.h"
#include "config/compute_config.h"
#include "config/input_config.h"
#include "config/limits_config.h"
#include "config/notify_config.h"
#include "config/service_config.h"
#include "config/web_config.h"
#include "config/yaml/yaml_tree.h"
#include "pipeline/product/cog/cog.h"
#include "pipeline/product/product_kinds.h"

#include "run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct pb_err_list errors;
static struct pb_load load;

static const struct pb_section *const sections[] = {
    &pb_section_service,        &pb_section_compute,
    &pb_section_limits,         &pb_section_web,
    &pb_section_input,          &pb_kind_cog.section,
    &pb_kind_quicklook.section, &pb_kind_statistics.section,
    &pb_kind_stac.section,      &pb_section_exec,
    &pb_section_webhook,        &pb_section_mqtt,
    &pb_section_stac,
};
#define N_SECTIONS ((int)(sizeof sections / sizeof *sections))

/* Large enough for any of the structs. */
static union {
    struct pb_service_config service;
    struct pb_compute_config compute;
    struct pb_limits limits;
    struct pb_web_config web;
    struct pb_input_config input;
    struct pb_cog_config cog;
    struct pb_notify_config notify;
    unsigned char product[256];
} values;

static void setup(void)
{
    memset(&errors, 0, sizeof errors);
    memset(&values, 0, sizeof values);
    load = (struct pb_load){.arena = pb_arena_create(), .report = {.list = &errors, .file = "f"}};
}

static void teardown(void)
{
    pb_arena_destroy(load.arena);
}

START_TEST(every_key_is_documented_and_named_once)
{
    const struct pb_section *section = sections[_i];
    ck_assert_uint_gt(strlen(section->doc), 10);
    for (size_t i = 0; i < section->n; i++) {
        const struct pb_key *key = &section->keys[i];
        ck_assert_msg(key->doc[strlen(key->doc) - 1] == '.', "%s.%s", section->name, key->name);
        ck_assert_msg(key->def || key->example || key->sample, "%s.%s", section->name, key->name);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(key->name, section->keys[k].name);
    }
}
END_TEST

START_TEST(every_default_is_good)
{
    pb_schema_read(&load, sections[_i], NULL, &values);
    ck_assert_msg(errors.n == 0, "%s", errors.err[0].msg);
    ck_assert(!pb_arena_failed(load.arena));
}
END_TEST

/* An example that the schema itself would refuse would be a bad one. */
START_TEST(every_example_is_good)
{
    const struct pb_section *section = sections[_i];
    for (size_t i = 0; i < section->n; i++) {
        const struct pb_key *key = &section->keys[i];
        const char *const texts[] = {key->example, key->sample};
        for (int k = 0; k < 2; k++) {
            struct pb_text text = {.text = NULL};
            if (texts[k] == NULL)
                continue;
            pb_text_add(&text, "%s: %s\n", key->name, texts[k]);
            char *yaml = pb_text_take(&text);
            pb_schema_read(&load, section, pb_default_node(&load, yaml), &values);
            ck_assert_msg(errors.n == 0, "%s.%s: %s", section->name, key->name, errors.err[0].msg);
            free(yaml);
        }
    }
}
END_TEST

START_TEST(what_is_printed_reads_back)
{
    struct pb_text first = {.text = NULL}, second = {.text = NULL};
    pb_schema_read(&load, sections[_i], NULL, &values);
    pb_schema_print(&first, sections[_i], &values, 0);
    char *a = pb_text_take(&first);
    memset(&values, 0, sizeof values);
    if (a)
        pb_schema_read(&load, sections[_i], pb_default_node(&load, a), &values);
    ck_assert_uint_eq(errors.n, 0);
    pb_schema_print(&second, sections[_i], &values, 0);
    char *b = pb_text_take(&second);
    ck_assert(!a == !b);
    if (a)
        ck_assert_str_eq(a, b);
    free(a);
    free(b);
}
END_TEST

START_TEST(both_ends_of_every_range_are_allowed)
{
    const struct pb_section *section = sections[_i];
    for (size_t i = 0; i < section->n; i++) {
        const struct pb_key *key = &section->keys[i];
        for (int end = 0; end < 4 && key->min < key->max; end++) {
            struct pb_text text = {.text = NULL};
            double edge = end % 2 ? key->max : key->min;
            double step = end < 2 ? 0 : end == 2 ? -1 : 1; /* 2, 3: just outside */
            if (key->type == PB_KEY_NUMBER || (end == 2 && key->min == 0))
                continue;
            pb_text_add(&text, key->type == PB_KEY_WEIGHTS ? "%s: [%.0f%s]\n" : "%s: %.0f%s\n",
                        key->name, edge + step,
                        key->type == PB_KEY_DURATION  ? "ms"
                        : key->type == PB_KEY_PERCENT ? "%"
                                                      : "");
            char *yaml = pb_text_take(&text);
            memset(&errors, 0, sizeof errors);
            pb_schema_read(&load, section, pb_default_node(&load, yaml), &values);
            ck_assert_msg((errors.n == 0) == (end < 2), "%s.%s", section->name, yaml);
            free(yaml);
        }
    }
}
END_TEST

START_TEST(a_wrong_value_leaves_the_default)
{
    pb_schema_read(&load, &pb_section_compute, pb_default_node(&load, "{threads: x, tile: 256}"),
                   &values);
    ck_assert_uint_eq(errors.n, 1);
    ck_assert_int_eq(values.compute.threads, 0);
    ck_assert_int_eq(values.compute.tile_px, 256);
    ck_assert_uint_eq(values.compute.memory_bytes, 512u << 20);
}
END_TEST

START_TEST(enum_words_are_in_the_order_of_the_enums)
{
    static const char *const types[] = {"uint8",  "int16",   "uint16", "int32",
                                        "uint32", "float32", "float64"};
    for (int i = 0; i < PB_TYPE_COUNT; i++) {
        struct pb_text text = {.text = NULL};
        pb_text_add(&text, "{type: %s}", types[i]);
        char *yaml = pb_text_take(&text);
        pb_schema_read(&load, &pb_kind_cog.section, pb_default_node(&load, yaml), &values);
        ck_assert_int_eq((int)values.cog.type, i);
        ck_assert_str_eq(pb_type_name((enum pb_type)i), types[i]);
        free(yaml);
    }
    pb_schema_read(&load, &pb_kind_cog.section,
                   pb_default_node(&load, "{compress: lzw, predictor: float, overviews: none}"),
                   &values);
    ck_assert_int_eq(values.cog.compress, PB_COMPRESS_LZW);
    ck_assert_int_eq(values.cog.predictor, 3);
    ck_assert_int_eq(values.cog.overviews, PB_OVERVIEWS_NONE);
    ck_assert_str_eq(pb_compress_name(PB_COMPRESS_ZSTD), "zstd");
    pb_schema_read(&load, &pb_section_compute,
                   pb_default_node(&load, "{device: cuda, buffers: host, sync: stream}"), &values);
    ck_assert_int_eq(values.compute.device, PB_DEVICE_CUDA);
    ck_assert_int_eq(values.compute.device_index, -1);
    ck_assert_int_eq(values.compute.buffers, PB_BUFFERS_HOST);
    ck_assert_int_eq(values.compute.sync, PB_SYNC_STREAM);
    ck_assert_uint_eq(errors.n, 0);
}
END_TEST

START_TEST(names_for_bands_and_files)
{
    ck_assert(pb_is_identifier("B8A") && pb_is_identifier("_x"));
    ck_assert(!pb_is_identifier("8A") && !pb_is_identifier("") && !pb_is_identifier("a-b"));
    ck_assert(pb_is_file_word("s2-l2a.v1"));
    ck_assert(!pb_is_file_word("../x") && !pb_is_file_word("a b") && !pb_is_file_word("-p"));
    ck_assert(!pb_is_file_word("0123456789012345678901234567890123456789012345678901234567890123"));
}
END_TEST

START_TEST(yaml_texts_are_quoted_when_needed)
{
    static const struct {
        const char *value, *yaml;
    } rows[] = {
        {"/var/lib", "/var/lib"},   {"NDVI", "NDVI"},      {"N", "N"},
        {"true", "\"true\""},       {"null", "\"null\""},  {"*.tif", "\"*.tif\""},
        {"a b", "\"a b\""},         {"", "\"\""},          {"12", "\"12\""},
        {"a\"\\", "\"a\\\"\\\\\""}, {"x\ny", "\"x\\ny\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pb_text text = {.text = NULL};
        pb_text_yaml(&text, rows[i].value);
        char *yaml = pb_text_take(&text);
        ck_assert_str_eq(yaml, rows[i].yaml);
        ck_assert_str_eq(pb_default_node(&load, yaml)->text, rows[i].value);
        ck_assert(!pb_yaml_is_null(pb_default_node(&load, yaml)));
        free(yaml);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schema");
    TCase *tc = tcase_create("schema");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, every_key_is_documented_and_named_once, 0, N_SECTIONS);
    tcase_add_loop_test(tc, every_default_is_good, 0, N_SECTIONS);
    tcase_add_loop_test(tc, every_example_is_good, 0, N_SECTIONS);
    tcase_add_loop_test(tc, what_is_printed_reads_back, 0, N_SECTIONS);
    tcase_add_loop_test(tc, both_ends_of_every_range_are_allowed, 0, N_SECTIONS);
    tcase_add_test(tc, a_wrong_value_leaves_the_default);
    tcase_add_test(tc, enum_words_are_in_the_order_of_the_enums);
    tcase_add_test(tc, names_for_bands_and_files);
    tcase_add_test(tc, yaml_texts_are_quoted_when_needed);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
