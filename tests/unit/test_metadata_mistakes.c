/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/metadata/meta_time.h"
#include "tests/unit/metadata_fixture.h"

#include <math.h>
#include <unistd.h>

START_TEST(a_lying_mtl_is_a_conflict)
{
    assert_refused(changed(load_metadata(MTL_C1), "RADIANCE_MULT_BAND_4 = 9.7350E-03",
                           "RADIANCE_MULT_BAND_4 = 9.7350E-02"),
                   PB_E_INPUT_METADATA_CONFLICT, "RADIANCE of band 4 contradicts itself");
    assert_refused(changed(load_metadata(MTL_C1), "REFLECTANCE_ADD_BAND_5 = -0.100000",
                           "REFLECTANCE_ADD_BAND_5 = 0.100000"),
                   PB_E_INPUT_METADATA_CONFLICT, "REFLECTANCE of band 5");
    assert_refused(changed(load_metadata(MTL_C2), "TEMPERATURE_ADD_BAND_ST_B10 = 149.0",
                           "TEMPERATURE_ADD_BAND_ST_B10 = 273.0"),
                   PB_E_INPUT_METADATA_CONFLICT, "TEMPERATURE of band ST_B10");
    assert_refused(
        changed(load_metadata(MTL_C1), "DATE_ACQUIRED = 2017-08-13", "DATE_ACQUIRED = 2017-08-14"),
        PB_E_INPUT_METADATA_CONFLICT, "DATE_ACQUIRED");
    assert_refused(changed(load_metadata(MTL_C1), "SPACECRAFT_ID = \"LANDSAT_8\"",
                           "SPACECRAFT_ID = \"LANDSAT_9\""),
                   PB_E_INPUT_METADATA_CONFLICT, "SPACECRAFT_ID");
}
END_TEST

START_TEST(impossible_and_missing_values_are_named)
{
    assert_refused(changed(load_metadata(MTL_C1), "SUN_ELEVATION = 62.17310472",
                           "SUN_ELEVATION = 162.17310472"),
                   PB_E_INPUT_METADATA_VALUE, "SUN_ELEVATION is 162");
    assert_refused(
        changed(load_metadata(MTL_C1), "SUN_ELEVATION = 62.17310472", "SUN_ELEVATION = nan"),
        PB_E_INPUT_METADATA_VALUE, "which is no number");
    assert_refused(changed(load_metadata(MTL_C1), "SCENE_CENTER_TIME", "SCENE_CENTRE_TIME"),
                   PB_E_INPUT_METADATA_VALUE, "it has no SCENE_CENTER_TIME");
    assert_refused(changed(load_metadata(MTL_C1), "15:54:15.7884640Z", "25:54:15.7884640Z"),
                   PB_E_INPUT_METADATA_VALUE, "is no time");
    assert_refused(changed(load_metadata(MTL_C1), "RADIANCE_MULT_BAND_4 = 9.7350E-03",
                           "RADIANCE_MULT_BAND_4 = -9.7350E-03"),
                   PB_E_INPUT_METADATA_VALUE, "no positive MULT");
    assert_refused(
        changed(load_metadata(MTL_C1), "K1_CONSTANT_BAND_10 = 774.8853", "K1_CONSTANT_BAND_10 = 0"),
        PB_E_INPUT_METADATA_VALUE, "K1 or K2 of band 10");
    assert_refused(changed(load_metadata(S2_OFFSET), "band_id=\"5\"", "band_id=\"25\""),
                   PB_E_INPUT_METADATA_VALUE, "@band_id is 25");
    assert_refused(
        cut(load_metadata(S2_OFFSET), "<BOA_ADD_OFFSET band_id=\"5\">", "</BOA_ADD_OFFSET>"),
        PB_E_INPUT_METADATA_VALUE, "12 of 13 bands");
    assert_refused(changed(load_metadata(S2_OFFSET), "BASELINE>04.00<", "BASELINE>4<"),
                   PB_E_INPUT_METADATA_VALUE, "baseline is '4'");
}
END_TEST

START_TEST(a_night_scene_has_no_reflectance_but_radiance)
{
    struct pb_metadata f;
    struct pb_err err;
    char *text =
        changed(load_metadata(MTL_C1), "SUN_ELEVATION = 62.17310472", "SUN_ELEVATION = -12.5");
    ck_assert_int_eq(parse(text, &f, &err), 0);
    ck_assert(!band_of(&f, "4")->to[PB_QUANTITY_TOA].known);
    ck_assert_ptr_nonnull(strstr(f.why_not[PB_QUANTITY_TOA], "above the horizon"));
    assert_scale(&f, "10", PB_QUANTITY_RADIANCE, 3.3420e-4, 0.1);
}
END_TEST

START_TEST(baselines_that_contradict_are_refused)
{
    struct pb_metadata f;
    struct pb_err err;
    assert_refused(changed(load_metadata(S2_OFFSET), "BASELINE>04.00<", "BASELINE>02.12<"),
                   PB_E_INPUT_METADATA_CONFLICT, "baseline 02.12 has no offset");
    assert_refused(changed(load_metadata(S2_OLD), "BASELINE>02.12<", "BASELINE>05.09<"),
                   PB_E_INPUT_METADATA_CONFLICT, "baseline 05.09 has an offset");
    int rc = parse_two(load_metadata(S2_OLD), load_metadata(S2_TILE), &f, &err);
    ck_assert_int_lt(rc, 0); /* the tile is of 04.00 */
    ck_assert_int_eq(err.code, PB_E_INPUT_METADATA_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.msg, "processing baseline"));
    ck_assert_str_eq(err.file, "b.txt");
    ck_assert_int_lt(parse_two(load_metadata(S2_OLD), load_metadata(MTL_C1), &f, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_METADATA_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.msg, "of the family landsat-c2"));
}
END_TEST

START_TEST(text_that_does_not_parse_says_where)
{
    char *text = load_metadata(MTL_C1);
    strstr(text, "WRS_ROW")[0] = '\0';
    assert_refused(text, PB_E_INPUT_METADATA_INVALID, "not complete");
    assert_refused(changed(load_metadata(MTL_C1), "ORIGIN =", "ORIGIN "),
                   PB_E_INPUT_METADATA_INVALID, "without '='");
    assert_refused(
        changed(load_metadata(MTL_C1), "END_GROUP = PRODUCT_METADATA", "END_GROUP = OTHER"),
        PB_E_INPUT_METADATA_INVALID, "END_GROUP = OTHER");
    assert_refused(changed(load_metadata(MTL_C1), "WRS_ROW = 37", "WRS_PATH = 16"),
                   PB_E_INPUT_METADATA_INVALID, "WRS_PATH occurs twice");
    assert_refused(strdup("\x7f"
                          "ELF"),
                   PB_E_INPUT_METADATA_INVALID, "no text");
    assert_refused(strdup(" \n"), PB_E_INPUT_METADATA_INVALID, "empty");
    assert_refused(strdup("{\"a\": }"), PB_E_INPUT_METADATA_INVALID, "JSON");
    assert_refused(strdup("{\"a\": 1}"), PB_E_INPUT_METADATA_UNKNOWN, "known");
    assert_refused(strdup("<a><b/></a>"), PB_E_INPUT_METADATA_UNKNOWN, "known");
    assert_refused(changed(load_metadata(PLANET), "</ps:EarthObservation>", ""),
                   PB_E_INPUT_METADATA_INVALID, "well-formed");
}
END_TEST

static char *nested(const char *open, const char *close, int n)
{
    char *text = calloc(1, (size_t)n * (strlen(open) + strlen(close)) + 64);
    for (int i = 0; i < n; i++)
        strcat(text, open);
    for (int i = 0; i < n; i++)
        strcat(text, close);
    return text;
}

START_TEST(hostile_documents_are_refused_before_they_cost)
{
    assert_refused(strdup("<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"),
                   PB_E_INPUT_METADATA_INVALID, "not allowed");
    assert_refused(strdup("<?xml version='1.0'?><!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>"),
                   PB_E_INPUT_METADATA_INVALID, "not allowed");
    assert_refused(strdup("<a>&undefined;</a>"), PB_E_INPUT_METADATA_INVALID, "");
    assert_refused(strdup("<?xml version='1.0' encoding='EBCDIC-US'?><a/>"),
                   PB_E_INPUT_METADATA_INVALID, "encoding");
    assert_refused(nested("<a>", "</a>", 41), PB_E_INPUT_METADATA_INVALID, "40 deep");
    assert_refused(nested("GROUP = A\n", "END_GROUP = A\n", 41), PB_E_INPUT_METADATA_INVALID,
                   "40 deep");
    assert_refused(nested("{\"a\":", "}", 41), PB_E_INPUT_METADATA_INVALID, "JSON");
    char *many = calloc(1, 5 << 20);
    size_t n = (size_t)sprintf(many, "<a>");
    for (int i = 0; i < 400001; i++)
        n += (size_t)sprintf(many + n, "<b/>");
    (void)sprintf(many + n, "</a>");
    assert_refused(many, PB_E_INPUT_METADATA_INVALID, "400000 entries");
    many = calloc(1, 1 << 20);
    n = (size_t)sprintf(many, "GROUP = A\n");
    for (int i = 0; i < 4100; i++)
        n += (size_t)sprintf(many + n, "K%d = 1\nGROUP = B\nEND_GROUP = B\n", i);
    (void)sprintf(many + n, "END_GROUP = A\nEND\n");
    assert_refused(many, PB_E_INPUT_METADATA_INVALID, "4096 keys");
}
END_TEST

/* An element with n attributes after a part that a reader of tags must skip. */
static char *with_attributes(const char *before, const char *name, int n)
{
    char *text = calloc(1, (size_t)n * 40 + 200);
    size_t used = (size_t)sprintf(text, "<?xml version='1.0'?><r>%s\n<a", before);
    for (int i = 0; i < n; i++)
        used += (size_t)sprintf(text + used, " %s%d='%s'", name, i, name[0] == 'x' ? "u" : ">");
    (void)sprintf(text + used, "/></r>");
    return text;
}

START_TEST(elements_with_many_attributes_are_refused)
{
    static const char *const before[] = {
        "", "<!-- <a ' -->", "<![CDATA[ ' <a \" ]]>", "<?a '?>", "<b x='>' y=\"'\"/>'",
    };
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        assert_refused(with_attributes(before[i], "k", 501), PB_E_INPUT_METADATA_INVALID,
                       "more than 500 attributes");
        assert_refused(with_attributes(before[i], "xmlns:k", 33), PB_E_INPUT_METADATA_INVALID,
                       "more than 32 namespaces");
        assert_refused(with_attributes(before[i], "k", 500), PB_E_INPUT_METADATA_UNKNOWN, "known");
        assert_refused(with_attributes(before[i], "xmlns:k", 32), PB_E_INPUT_METADATA_UNKNOWN,
                       "known");
    }
}
END_TEST

/* Asserts that two files of one scene contradict, as delivered or with one changed text. */
static void assert_contradiction(const char *from, const char *to, const char *first,
                                 const char *second)
{
    for (int swapped = 0; swapped < 2; swapped++) {
        struct pb_metadata f;
        struct pb_err err = {0};
        char *product = load_metadata(S2_OFFSET), *tile = changed(load_metadata(S2_TILE), from, to);
        int rc = parse_two(swapped ? tile : product, swapped ? product : tile, &f, &err);
        ck_assert_int_lt(rc, 0);
        ck_assert_int_eq(err.code, PB_E_INPUT_METADATA_CONFLICT);
        const char *parts[] = {first, second, "by a.txt"}; /* the other file is the error's */
        ck_assert_str_eq(err.file, "b.txt");
        for (int i = 0; i < 3; i++)
            ck_assert_msg(strstr(err.msg, parts[i]) != NULL, "no '%s' in %s", parts[i], err.msg);
        ck_assert(f.family == NULL);
    }
}

START_TEST(two_files_that_contradict_are_both_named)
{
    assert_contradiction("_A026649_T33XWJ_N04.00</TILE_ID>", "_A026649_T32XNQ_N04.00</TILE_ID>",
                         "T33XWJ", "T32XNQ");
    assert_contradiction("_A026649_T33XWJ_N04.00</TILE_ID>", "_A026649_T33XWJ_N02.09</TILE_ID>",
                         "04.00", "02.09");
    assert_contradiction("<TILE_ID metadataLevel=\"Brief\">S2B", "<TILE_ID>S2A", "sentinel-2a",
                         "sentinel-2b");
    assert_contradiction("2022-04-13T15:08:07.846358Z", "2022-04-14T15:08:07.846358Z", "2022-04-13",
                         "2022-04-14");
}
END_TEST

START_TEST(two_tiles_of_other_times_contradict_by_the_sun)
{
    struct pb_metadata f;
    struct pb_err err = {0};
    char *other = changed(load_metadata(S2_TILE), "<ZENITH_ANGLE unit=\"deg\">76.5286190227361",
                          "<ZENITH_ANGLE unit=\"deg\">56.5");
    ck_assert_int_lt(parse_two(load_metadata(S2_TILE), other, &f, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "the sun's height is 33.5 here, but 13.4714 by a.txt"));
}
END_TEST

static void assert_time(const char *text, const char *expected)
{
    char out[40] = "";
    int rc = pb_meta_time(text, out, sizeof out);
    ck_assert_msg((rc == 0) == (expected != NULL), "%s: %d", text, rc);
    if (expected != NULL)
        ck_assert_str_eq(out, expected);
}

START_TEST(times_are_brought_to_utc)
{
    assert_time("2017-08-31T17:27:54+00:00", "2017-08-31T17:27:54Z");
    assert_time("2020-01-01T00:30:00.250+02:00", "2019-12-31T22:30:00.25Z");
    assert_time("2020-02-29T14:31:47.8083990Z", "2020-02-29T14:31:47.808399Z");
    assert_time("2021-02-29T14:31:47Z", NULL);
    assert_time("2020-01-01T24:00:00Z", NULL);
    assert_time("2020-01-01", NULL);
    assert_time("2020-01-01T00:00:00 CET", NULL);
}
END_TEST

static void assert_name(const char *pattern, const char *name, int rc, const char *start,
                        const char *end)
{
    char first[32] = "", last[32] = "";
    ck_assert_msg(pb_meta_name_time(pattern, name, first, last) == rc, "%s in %s", pattern, name);
    if (rc == 1) {
        ck_assert_str_eq(first, start);
        ck_assert_str_eq(last, end);
    }
}

START_TEST(times_in_names_are_found_once_or_not_at_all)
{
    static const char s2[] = "S2A_MSIL2A_20200219T112111_N0214_R037_T29RKH_20200219T123947";
    static const char when[] = "2020-02-19T11:21:11Z";
    assert_name("%Y%m%dT%H%M%S", s2, 2, NULL, NULL); /* two times */
    assert_name("MSIL??_%Y%m%dT%H%M%S", s2, 1, when, when);
    assert_name("S2?_*_%Y%m%dT%H%M%S_N", s2, 1, when, when);
    assert_name("%Y%m%d_%H%M%S", "20170831_172754_101c_3B", 1, "2017-08-31T17:27:54Z",
                "2017-08-31T17:27:54Z");
    assert_name("_??????_%Y%m%d_", "LC08_L2SP_001062_20201031_20201106_02_T2", 1,
                "2020-10-31T00:00:00Z", "2020-10-31T23:59:59Z");
    assert_name("%y%j", "x17225y", 1, "2017-08-13T00:00:00Z", "2017-08-13T23:59:59Z");
    assert_name("%Y%m%d", "x20171331", 0, NULL, NULL);
    assert_name("%Y%m%d", "scene", 0, NULL, NULL);
    assert_name("%H%M%S", "112111", -22, NULL, NULL);
    assert_name("%Y%m%q", "112111", -22, NULL, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metadata_mistakes");
    TCase *tc = tcase_create("mistakes");
    tcase_add_test(tc, a_lying_mtl_is_a_conflict);
    tcase_add_test(tc, impossible_and_missing_values_are_named);
    tcase_add_test(tc, a_night_scene_has_no_reflectance_but_radiance);
    tcase_add_test(tc, baselines_that_contradict_are_refused);
    tcase_add_test(tc, text_that_does_not_parse_says_where);
    tcase_add_test(tc, hostile_documents_are_refused_before_they_cost);
    tcase_add_test(tc, elements_with_many_attributes_are_refused);
    tcase_add_test(tc, two_files_that_contradict_are_both_named);
    tcase_add_test(tc, two_tiles_of_other_times_contradict_by_the_sun);
    tcase_add_test(tc, times_are_brought_to_utc);
    tcase_add_test(tc, times_in_names_are_found_once_or_not_at_all);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
