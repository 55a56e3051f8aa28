/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "pipeline/product/product.h"

#include "pipeline/io/io_fail.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"R", "NDVI", "EVI"};
static const struct pb_product_env env = {.scene = "S2A.x", .band_names = names, .n_bands = 3};

static const char *file_of(const struct pb_product_kind *kind, char *name)
{
    static char out[300];
    struct pb_product_config config = {.kind = kind, .name = name};
    pb_product_file(&env, &config, out, sizeof out);
    return out;
}

START_TEST(files_are_named_after_scene_name_and_kind)
{
    char name[] = "veg";
    ck_assert_str_eq(file_of(&pb_kind_cog, NULL), "S2A.x.tif");
    ck_assert_str_eq(file_of(&pb_kind_cog, name), "S2A.x.veg.tif");
    ck_assert_str_eq(file_of(&pb_kind_quicklook, name), "S2A.x.veg.png");
    ck_assert_str_eq(file_of(&pb_kind_quicklook, NULL), "S2A.x.png");
    ck_assert_str_eq(file_of(&pb_kind_statistics, NULL), "S2A.x.statistics.json");
    ck_assert_str_eq(file_of(&pb_kind_stac, NULL), "S2A.x.stac.json");
}
END_TEST

START_TEST(bands_are_found_by_name_in_the_products_order)
{
    char evi[] = "EVI", r[] = "R", typo[] = "NDVY", *bands[] = {evi, r, typo};
    struct pb_product_config config = {.kind = &pb_kind_cog};
    uint32_t out[PB_BANDS_MAX];
    struct pb_err err = {0};
    ck_assert_int_eq(pb_product_bands(&env, &config, out, &err), 3);
    ck_assert(out[0] == 0 && out[1] == 1 && out[2] == 2);
    config.bands = bands;
    config.n_bands = 2;
    ck_assert_int_eq(pb_product_bands(&env, &config, out, &err), 2);
    ck_assert(out[0] == 2 && out[1] == 0);
    config.n_bands = 3;
    ck_assert_int_eq(pb_product_bands(&env, &config, out, &err), -EINVAL);
    ck_assert_int_eq(err.code, PB_E_PIPELINE_PRODUCT);
    ck_assert_ptr_nonnull(strstr(err.msg, "'NDVY'"));
    ck_assert_ptr_nonnull(strstr(err.msg, "R, NDVI, EVI"));
}
END_TEST

START_TEST(io_errors_say_what_an_operator_can_do)
{
    static const struct {
        int error;
        enum pb_code code;
    } cases[] = {
        {ENOSPC, PB_E_OUTPUT_FULL},  {EDQUOT, PB_E_OUTPUT_FULL},      {EACCES, PB_E_OUTPUT_DENIED},
        {EROFS, PB_E_OUTPUT_DENIED}, {EPERM, PB_E_OUTPUT_DENIED},     {EIO, PB_E_OUTPUT_WRITE},
        {ENOENT, PB_E_OUTPUT_WRITE}, {EMFILE, PB_E_SYSTEM_FILES},     {ENFILE, PB_E_SYSTEM_FILES},
        {ENOMEM, PB_E_MEMORY},       {ENAMETOOLONG, PB_E_OUTPUT_NAME}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb_err err = {0};
        int rc = pb_io_fail(&err, cases[i].error, "cannot write", "/p/x.tif");
        ck_assert_int_eq(err.code, cases[i].code);
        ck_assert_int_eq(rc, pb_code_errno(cases[i].code));
        ck_assert_int_eq(strncmp(err.msg, "cannot write '/p/x.tif': ", 25), 0);
        ck_assert_uint_gt(strlen(err.msg), 28);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("product");
    TCase *tc = tcase_create("product");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, files_are_named_after_scene_name_and_kind);
    tcase_add_test(tc, bands_are_found_by_name_in_the_products_order);
    tcase_add_test(tc, io_errors_say_what_an_operator_can_do);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
