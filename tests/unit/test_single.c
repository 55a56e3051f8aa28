/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/single.h"

#include "config/base/arena.h"
#include "config/base/err.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

static void make_file(const char *folder, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert(file != NULL && fclose(file) == 0);
}

/* Makes folders below each other, more than a scene may have. */
static void make_deep(const char *folder)
{
    char path[128];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", folder);
    for (int i = 0; i < 9; i++) {
        n += (size_t)snprintf(path + n, sizeof path - n, "/d");
        ck_assert_int_eq(mkdir(path, 0755), 0);
    }
}

/* A fault of the machine is no reason to reject the folder. */
START_TEST(set_folder_reports_why_it_has_no_pipeline)
{
    char folder[] = "/tmp/pb-single-XXXXXX", command[64];
    const struct pb_pipeline_config *found = NULL;
    struct pb_err_list errors = {0};
    struct pb_config *config = NULL;
    struct pb_err err = {0};
    struct rlimit was;
    ck_assert_int_eq(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config), 0);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    make_file(folder, "s1_R.tif");
    ck_assert_int_eq(pb_set_folder_pipeline(config, folder, "s1", &err, &found), 0);
    ck_assert_str_eq(found->name, "set");
    ck_assert_int_eq(pb_set_folder_pipeline(config, folder, "s2", &err, &found), 0);
    ck_assert_ptr_null(found);

    pb_arena_fail_after(0);
    ck_assert_int_eq(pb_set_folder_pipeline(config, folder, "s1", &err, &found), -ENOMEM);
    pb_arena_fail_after(-1);
    ck_assert_int_eq(err.code, PB_E_MEMORY);

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    const struct rlimit none = {0, was.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    err = (struct pb_err){0};
    int rc = pb_set_folder_pipeline(config, folder, "s1", &err, &found);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
    ck_assert(rc < 0 && err.code == PB_E_SYSTEM_FILES);

    make_deep(folder);
    err = (struct pb_err){0};
    ck_assert_int_lt(pb_set_folder_pipeline(config, folder, "s1", &err, &found), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_LIMIT);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    pb_config_destroy(config);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("single");
    TCase *tests = tcase_create("single");
    tcase_add_test(tests, one_name_has_one_purpose);
    tcase_add_test(tests, set_folder_reports_why_it_has_no_pipeline);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
