/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_METADATA_FIXTURE_H
#define PB_TEST_METADATA_FIXTURE_H
/* Files of tests/data/metadata, unchanged or with one text replaced by another. */
#include "pipeline/metadata/metadata.h"
#include "tests/unit/run_suite.h"

#include <stdio.h>
#include <string.h>

#define MTL_C2    "LC08_L2SP_001062_20201031_20201106_02_T2_MTL.txt"
#define MTL_C1    "../real/landsat8_c1_016037/LC08_L1TP_016037_20170813_20170814_01_RT_MTL.txt"
#define S2_L1C    "S2A_N0301_MTD_MSIL1C.xml"
#define S2_OFFSET "S2B_N0400_MTD_MSIL2A.xml"
#define S2_TILE   "S2B_N0400_MTD_TL.xml"
#define S2_OLD    "S2A_N0212_MTD_MSIL2A.xml"
#define S2_ITEM   "S2A_29RKH_20200219_0_L2A.json"
#define PLANET    "20170831_172754_101c_3B_AnalyticMS_metadata.xml"
#define IMD       "09DEC06145803-P1BS-052869858050_01_P002.IMD"
#define DIMAP     "DIM_PHR1B_made.XML"
#define S1        "s1c-s4-grd-hh-short.xml"

static inline char *load_metadata(const char *name)
{
    char path[500];
    (void)snprintf(path, sizeof path, "%s/tests/data/metadata/%s", PB_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, file);
    ck_assert(n > 0);
    (void)fclose(file);
    return text;
}

/* The text with the first `from` replaced; it must be there. */
static inline char *changed(char *text, const char *from, const char *to)
{
    char *at = strstr(text, from);
    ck_assert_msg(at != NULL, "no '%s'", from);
    size_t bytes = strlen(text) + strlen(to) + 1;
    char *out = malloc(bytes);
    (void)snprintf(out, bytes, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    return out;
}

/* The text without what is between the two marks, and they. */
static inline char *cut(char *text, const char *from, const char *to)
{
    char *at = strstr(text, from), *end = at != NULL ? strstr(at, to) : NULL;
    ck_assert_msg(end != NULL, "no '%s' .. '%s'", from, to);
    end += strlen(to);
    memmove(at, end, strlen(end) + 1);
    return text;
}

/* Parses texts (freed), called a.txt, b.txt. */
static inline int parse_two(char *a, char *b, struct pb_metadata *out, struct pb_err *err)
{
    const struct pb_metadata_text texts[] = {{"a.txt", a, strlen(a)},
                                             {"b.txt", b, b ? strlen(b) : 0}};
    *err = (struct pb_err){0};
    int rc = pb_metadata_parse(texts, b != NULL ? 2 : 1, out, err);
    free(a);
    free(b);
    return rc;
}

static inline int parse(char *text, struct pb_metadata *out, struct pb_err *err)
{
    return parse_two(text, NULL, out, err);
}

static inline struct pb_metadata facts_of(const char *name)
{
    struct pb_metadata facts;
    struct pb_err err;
    int rc = parse(load_metadata(name), &facts, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err.msg);
    return facts;
}

static inline const struct pb_meta_band *band_of(const struct pb_metadata *facts, const char *id)
{
    for (size_t i = 0; i < facts->n_bands; i++)
        if (strcmp(facts->band[i].id, id) == 0)
            return &facts->band[i];
    ck_abort_msg("no band %s", id);
    return NULL;
}

static inline void assert_scale(const struct pb_metadata *facts, const char *id,
                                enum pb_quantity to, double gain, double offset)
{
    const struct pb_meta_scale *scale = &band_of(facts, id)->to[to];
    ck_assert_msg(scale->known, "band %s has no %s", id, pb_quantity_name(to));
    ck_assert_double_eq_tol(scale->gain, gain, 1e-12 + 1e-9 * (gain < 0 ? -gain : gain));
    ck_assert_double_eq_tol(scale->offset, offset, 1e-12 + 1e-9 * (offset < 0 ? -offset : offset));
}

static inline void assert_refused(char *text, enum pb_code code, const char *words)
{
    struct pb_metadata facts;
    struct pb_err err;
    int rc = parse(text, &facts, &err);
    ck_assert_msg(rc < 0, "accepted, but should say: %s", words);
    ck_assert_msg(err.code == code, "%s: %s", pb_code_id(err.code), err.msg);
    ck_assert_msg(strstr(err.msg, words) != NULL, "no '%s' in: %s", words, err.msg);
    ck_assert_str_eq(err.file, "a.txt");
    ck_assert_ptr_null(facts.family);
}
#endif
