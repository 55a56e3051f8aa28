/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The configuration takes its kinds of products from its caller: a kind that only this test knows
 * is read, checked, printed and documented like those of products.def. */
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/product_check.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
    struct pb_product_config product;
    int32_t most;
    bool has_most;
    double share;
};

static const struct pb_key keys[] = {
    PB_PRODUCT_KEY_NAME(struct tally, "count"),
    PB_PRODUCT_KEY_BANDS(struct tally, "[NDVI]", PB_PRODUCT_EVERY_BAND),
    {.name = "most",
     .type = PB_KEY_INT,
     .offset = offsetof(struct tally, most),
     .more = offsetof(struct tally, has_most),
     .min = 1,
     .max = 9,
     .example = "5",
     .doc = "Classes."},
    {.name = "share",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct tally, share),
     .max = 1,
     .def = "0.5",
     .doc = "Of the pixels."},
};

static void check_keys(struct pb_product_config *product, const struct pb_product_check *check)
{
    const struct tally *tally = (const struct tally *)product;
    if (pb_product_key_is_sound(check, "most") && tally->has_most && tally->most == 7)
        pb_product_key_wrong(check, "most", "tally.most: %s brings bad luck",
                             pb_product_key_text(check, "most"));
}

static const struct pb_product_kind tally = {
    .section = {"tally", "A count of classes.", keys, sizeof keys / sizeof keys[0]},
    .bytes = sizeof(struct tally),
    .check = check_keys,
};
static const struct pb_product_kind *const list[] = {&tally, &pb_kind_cog};
static const struct pb_product_kinds kinds = {.kinds = list, .n = 2};

static struct pb_err_list errors;

static int parse(const char *products, struct pb_config **out_config)
{
    char text[400];
    (void)snprintf(text, sizeof text, "pipelines:\n  p:\n    products:\n%s", products);
    return pb_config_parse(text, strlen(text), "f", &kinds, &errors, out_config);
}

START_TEST(a_kind_of_ones_own_is_read_and_printed)
{
    struct pb_config *config = NULL;
    ck_assert_msg(parse("      - tally: {most: 3}\n      - tally: {name: b}\n", &config) == 0, "%s",
                  errors.err[0].msg);
    const struct pb_pipeline_config *p = &config->pipelines[0];
    ck_assert_uint_eq(p->n_products, 2);
    ck_assert_ptr_eq(p->products[0]->kind, &tally);
    const struct tally *first = (const void *)p->products[0],
                       *second = (const void *)p->products[1];
    ck_assert(first->has_most && first->most == 3 && first->share == 0.5);
    ck_assert(!second->has_most);
    ck_assert_str_eq(second->product.name, "b");
    char *text = pb_config_print(config);
    ck_assert_ptr_nonnull(strstr(text,
                                 "      - tally:\n          most: 3\n          share: 0.5\n"
                                 "      - tally:\n          name: b\n          share: 0.5\n"));
    free(text);
    pb_config_destroy(config);
}
END_TEST

START_TEST(its_mistakes_are_told_at_their_places)
{
    static const struct {
        const char *product, *words;
        int col;
    } rows[] = {
        {"      - tally: {most: 7}\n", "brings bad luck", 23},
        {"      - tally: {most: 12}\n", "tally.most: 12 is out of range; allowed: 1 to 9", 23},
        {"      - tally: {mst: 7}\n", "unknown key 'mst' in tally; did you mean 'most'?", 17},
        {"      - taly: {}\n", "there is no product 'taly'; did you mean 'tally'?", 9},
        {"      - stac: {}\n", "there is no product 'stac'", 9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pb_config *config = NULL;
        ck_assert_int_eq(parse(rows[i].product, &config), -EINVAL);
        ck_assert_uint_eq(errors.n, 1);
        ck_assert_msg(strstr(errors.err[0].msg, rows[i].words) != NULL, "%s", errors.err[0].msg);
        ck_assert_int_eq(errors.err[0].line, 4);
        ck_assert_int_eq(errors.err[0].col, rows[i].col);
    }
}
END_TEST

START_TEST(the_default_file_shows_it)
{
    struct pb_config *config = NULL;
    char *text = pb_config_default_text(&kinds);
    ck_assert_ptr_nonnull(strstr(text, "      # A count of classes.\n      - tally:\n"));
    ck_assert_ptr_nonnull(strstr(text, "          # Classes. (1 to 9)\n          # most: 5\n"));
    ck_assert_ptr_null(strstr(text, "\n      - stac:"));
    ck_assert_msg(pb_config_parse(text, strlen(text), "f", &kinds, &errors, &config) == 0, "%s",
                  errors.err[0].msg);
    pb_config_destroy(config);
    free(text);
}
END_TEST

START_TEST(names_lead_to_kinds)
{
    for (size_t i = 0; i < pb_products.n; i++)
        ck_assert_ptr_eq(pb_product_kind_find(pb_products.kinds[i]->section.name),
                         pb_products.kinds[i]);
    ck_assert_ptr_eq(pb_product_kind_find("cog"), &pb_kind_cog);
    ck_assert_ptr_null(pb_product_kind_find("cogs"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("product_kinds");
    TCase *tc = tcase_create("product_kinds");
    tcase_add_test(tc, a_kind_of_ones_own_is_read_and_printed);
    tcase_add_test(tc, its_mistakes_are_told_at_their_places);
    tcase_add_test(tc, the_default_file_shows_it);
    tcase_add_test(tc, names_lead_to_kinds);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
