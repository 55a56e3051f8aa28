/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/single.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "run_suite.h"

#include <check.h>
#include <string.h>

static const char text[] =
    "pipelines:\n"
    "  set:\n"
    "    input: {group: '(?<scene>s\\d)_R.tif', files: {R: '{scene}_R.tif'}}\n"
    "    products: [statistics: {}]\n"
    "  own:\n"
    "    input: {match: ['*_MS.tif'], metadata: '{scene}_MTL.txt', sidecars: [.udm]}\n"
    "    products: [statistics: {}]\n"
    "  folders:\n"
    "    input: {scene: 'S2?_*', files: {R: 'B04.tif'}}\n"
    "    products: [statistics: {}]\n"
    "  month:\n"
    "    input: {group: 'm\\d+(_.)?\\.(img|json)', by: meta.tile, metadata: '*.json', files: "
    "{R: '*.img'}}\n"
    "    products: [statistics: {}]\n"
    "  rest:\n"
    "    input: {match: ['*_R.tif', 'm1.img']}\n"
    "    products: [statistics: {}]\n";

START_TEST(one_name_has_one_purpose)
{
    static const struct {
        const char *name;
        bool is_folder;
        enum pb_single_kind kind;
        const char *pipeline, *scene;
    } cases[] = {
        {"in/s1_R.tif", false, PB_SINGLE_PART, "set", "s1"}, /* input.match of `rest` fits, too */
        {"t_R.tif", false, PB_SINGLE_INPUT, "rest", ""},
        {"A_ms.TIF", false, PB_SINGLE_INPUT, "own", ""},
        {"a_MTL.txt", false, PB_SINGLE_METADATA, "own", ""},
        {"m1.img", false, PB_SINGLE_PART, "month", ""},
        {"m1.json", false, PB_SINGLE_METADATA, "month", ""},
        {"a.udm", false, PB_SINGLE_SIDECAR, NULL, ""},
        {"a_MS.tif.aux.xml", false, PB_SINGLE_SIDECAR, NULL, ""},
        {"a.txt", false, PB_SINGLE_FOREIGN, NULL, ""},
        {"S2A_1.zip", false, PB_SINGLE_INPUT, "folders", ""},
        {"S2A_1", true, PB_SINGLE_INPUT, "folders", ""},
        {"S2A_1", false, PB_SINGLE_FOREIGN, NULL, ""},
        {"t_R.tif", true, PB_SINGLE_FOREIGN, NULL, ""},
    };
    struct pb_err_list errors = {0};
    struct pb_config *config = NULL;
    ck_assert_msg(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config) == 0,
                  "%s", errors.err[0].msg);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb_single single;
        pb_single_find(config, cases[i].name, cases[i].is_folder, &single);
        ck_assert_msg(single.kind == cases[i].kind, "%s: %d", cases[i].name, (int)single.kind);
        ck_assert_pstr_eq(single.pipeline ? single.pipeline->name : NULL, cases[i].pipeline);
        ck_assert_str_eq(single.scene, cases[i].scene);
    }
    pb_config_destroy(config);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("single");
    TCase *tests = tcase_create("single");
    tcase_add_test(tests, one_name_has_one_purpose);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
