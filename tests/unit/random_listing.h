/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_RANDOM_LISTING_H
#define PB_TEST_RANDOM_LISTING_H
/* Listings of files as providers name them, with sidecars, metadata, archives and folders, made
 * from a seed: the same on each machine. */
#include "pipeline/scene/entry.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LISTING_MAX     14
#define LISTING_WALL_MS INT64_C(1600000000000)

struct listing_family {
    const char *stem[6], *ending[18];
};

struct listing {
    uint64_t state; /* state of the generator */
    struct pb_entry entry[LISTING_MAX];
    char name[LISTING_MAX][220];
    size_t n;
    struct pb_described answer[LISTING_MAX]; /* answer for entry i */
    bool has_answer[LISTING_MAX];
    const struct listing_family *family[2];
};

static inline uint64_t listing_next(struct listing *l)
{
    l->state ^= l->state << 13;
    l->state ^= l->state >> 7;
    l->state ^= l->state << 17;
    return l->state * UINT64_C(0x2545f4914f6cdd1d) >> 33;
}

static inline size_t listing_below(struct listing *l, size_t n)
{
    return (size_t)(listing_next(l) % n);
}

static const struct listing_family listing_families[] = {
    {{"LC08_L2SP_193028_20200516_20200820_02_T1", "LC09_L2SR_193028_20220516_20220820_02_T1",
      "LT05_L2SP_193028_20050516_20200820_02_T1"},
     {"_SR_B1.TIF", "_SR_B2.TIF", "_SR_B3.TIF", "_SR_B4.TIF", "_SR_B5.TIF", "_SR_B6.TIF",
      "_SR_B7.TIF", "_QA_PIXEL.TIF", "_ST_B10.TIF", "_ST_B6.TIF", "_MTL.txt", "_MTL.json",
      "_ANG.txt", ".tar", ".tif", ""}},
    {{"LC08_L1TP_193028_20200516_20200820_01_T1", "LC08_L1GT_193028_20200517_20200820_02_RT"},
     {"_B1.TIF", "_B2.TIF", "_B3.TIF", "_B4.TIF", "_B5.TIF", "_MTL.txt", "_BQA.TIF", ".tar.gz",
      ""}},
    {{"T33UUP_20200516T100031", "T33UUQ_20200516T100031",
      "S2A_MSIL2A_20200516T100031_N0214_R122_T33UUP_20200516T134422",
      "S2B_MSIL1C_20200518T100031_N0209_R122_T33UUP_20200518T134422"},
     {"_B02_10m.jp2", "_B03_10m.jp2", "_B04_10m.jp2", "_B08_10m.jp2", "_SCL_20m.jp2", "_B02.jp2",
      "_B04.tif", "_TCI_10m.jp2", ".SAFE", ".zip", ".SAFE.zip", ".json", ".tif"}},
    {{"20200516_100031_1034", "20200516_100032_31_2277"},
     {"_3B_AnalyticMS_SR_8b.tif", "_3B_AnalyticMS_SR.tif", "_3B_AnalyticMS_SR_harmonized_clip.tif",
      "_3B_AnalyticMS_8b_metadata.xml", "_3B_AnalyticMS_metadata.xml", "_3B_AnalyticMS.tif",
      "_3B_AnalyticMS_clip.tif", "_3B_AnalyticMS_metadata_clip.xml", "_3B_udm2.tif",
      "_3B_udm2_clip.tif", "_metadata.json", ".json", ".zip"}},
    {{"T33UUP_20200516", "T33UUP_20200520T100031", "T33UUP_20200604", "a_20250601", "a_20250905",
      "T33UUP_20200540"},
     {".tif", ".json", ".tiff", ".TIF", ".tif"}},
    {{"19JUN01101530-P2AS-0510_P001", "19JUN01101530-M2AS-0510_P001", "IMG_PHR1A_P_001"},
     {".TIF", ".IMD", ".RPB", "_RPC.TXT", ".XML", ".TIL", ".ATT", ".tif", ".JP2"}},
    {{"S1A_IW_GRDH_1SDV_20200516T051200_20200516T051225_032600_03C6A2_1F2B"},
     {".SAFE", ".zip", "", ".tif", ".json"}},
    {{"m1", "m2", "x_1"}, {".img", ".json", "_a.img", "_b.img", ".img"}},
    {{"s_R.tif", "s1_R.tif", "s", "s1"}, {"_N.tif", "_R.tif", ".tif", "_SCL.tif", ""}},
    {{"s", "x", "x_1", "x_10", "m1", "s1"},
     {".tif", "_SCL.tif", "_R.tif", "_MS.tif", ".img", ".json", "_MTL.txt", "_metadata.xml", ".udm",
      ".zip", "_SR.tif", "_a.img", "_b.img", "_N.tif", ".txt", ".tif.ok"}},
};

static const char *const listing_sidecars[] = {".aux.xml", ".msk",     ".ovr", ".msk.ovr",
                                               ".tfw",     "_RPC.TXT", ".prj", ".ok"};

static inline size_t listing_count(const char *const *text, size_t most)
{
    size_t n = 0;
    while (n < most && text[n] != NULL)
        n++;
    return n;
}

static inline void listing_name(struct listing *l, const struct listing_family *family, char *out)
{
    static const char *const folders[] = {"", "", "", "", "in/", "in/x/"};
    const char *folder = folders[listing_below(l, 6)];
    const char *stem = family->stem[listing_below(l, listing_count(family->stem, 6))];
    const char *ending = family->ending[listing_below(l, listing_count(family->ending, 18))];
    const size_t sidecar = listing_below(l, 48);
    const bool replaces = listing_below(l, 2) == 0;
    char name[180];
    (void)snprintf(name, sizeof name, "%s%s", stem, ending);
    char *dot = strrchr(name, '.');
    if (sidecar < 8 && replaces && dot != NULL && dot != name)
        *dot = '\0';
    (void)snprintf(out, 220, "%s%s%s", folder, name, sidecar < 8 ? listing_sidecars[sidecar] : "");
    const size_t changed = listing_below(l, 24);
    for (char *p = out + strlen(folder); changed < 2 && *p != '\0'; p++)
        *p = (char)(changed ? toupper((unsigned char)*p) : tolower((unsigned char)*p));
}

static inline bool listing_has(const struct listing *l, const char *name)
{
    bool has = false;
    for (size_t i = 0; i < l->n && !has; i++)
        has = strcmp(l->name[i], name) == 0;
    return has;
}

static inline void listing_answer(struct listing *l, size_t i)
{
    static const char *const tiles[] = {"T33UUP", "T33UUQ"};
    const size_t kind = listing_below(l, 6);
    l->has_answer[i] = kind > 1;
    l->answer[i] = (struct pb_described){.code = PB_OK};
    if (kind == 2) {
        l->answer[i].code = PB_E_INPUT_METADATA_MISSING;
        return;
    }
    (void)snprintf(l->answer[i].facts.tile, sizeof l->answer[i].facts.tile, "%s",
                   tiles[listing_below(l, 2)]);
    (void)snprintf(l->answer[i].facts.date, sizeof l->answer[i].facts.date,
                   "2020-0%zu-16T10:00:31Z", 5 + listing_below(l, 2));
}

/* Adds a name at its place in the order. Returns the place; l->n if the listing has it. */
static inline size_t listing_add(struct listing *l)
{
    char name[220];
    listing_name(l, l->family[listing_below(l, 4) == 0], name);
    if (listing_has(l, name))
        return l->n;
    size_t at = l->n;
    for (; at > 0 && strcmp(l->name[at - 1], name) > 0; at--) {
        memcpy(l->name[at], l->name[at - 1], sizeof name);
        l->entry[at] = l->entry[at - 1];
        l->answer[at] = l->answer[at - 1];
        l->has_answer[at] = l->has_answer[at - 1];
    }
    memcpy(l->name[at], name, sizeof name);
    l->n++;
    return at;
}

/* Sets state and answer of an entry. */
static inline void listing_describe(struct listing *l, size_t i)
{
    static const int64_t ages_ms[] = {1, 5000, 60000, 3600000, 10000000, 90000000};
    const char *dot = strrchr(l->name[i], '.');
    const int64_t age_ms = ages_ms[listing_below(l, 6)];
    l->entry[i] = (struct pb_entry){.path = l->name[i],
                                    .bytes = 1 + listing_below(l, 1000),
                                    .inode = 100 + i,
                                    .mtime_ns = (LISTING_WALL_MS - age_ms) * 1000000,
                                    .ctime_ns = (LISTING_WALL_MS - age_ms) * 1000000,
                                    .is_folder = dot == NULL || strcmp(dot, ".SAFE") == 0 ||
                                                 listing_below(l, 30) == 0,
                                    .is_settled = listing_below(l, 8) != 0,
                                    .is_companion = dot != NULL && strcmp(dot, ".ok") == 0};
    listing_answer(l, i);
}

/* Files of one or two families. The order is that of the names, as in an inbox. */
static inline void listing_make(struct listing *l, uint64_t seed)
{
    const size_t n_families = sizeof listing_families / sizeof *listing_families;
    memset(l, 0, sizeof *l);
    l->state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    l->family[0] = &listing_families[listing_below(l, n_families)];
    l->family[1] = &listing_families[listing_below(l, n_families)];
    const size_t wanted = 2 + listing_below(l, LISTING_MAX - 1);
    for (size_t k = 0; k < 2 * wanted && l->n < wanted; k++)
        (void)listing_add(l);
    for (size_t i = 0; i < l->n; i++)
        listing_describe(l, i);
}

static inline void listing_remove(struct listing *l, size_t i)
{
    l->n--;
    memmove(l->name[i], l->name[i + 1], (l->n - i) * sizeof l->name[0]);
    memmove(&l->entry[i], &l->entry[i + 1], (l->n - i) * sizeof l->entry[0]);
    memmove(&l->answer[i], &l->answer[i + 1], (l->n - i) * sizeof l->answer[0]);
    memmove(&l->has_answer[i], &l->has_answer[i + 1], (l->n - i) * sizeof l->has_answer[0]);
}

/* Adds, changes and removes some entries. */
static inline void listing_change(struct listing *l)
{
    for (size_t k = listing_below(l, 4); k > 0; k--) {
        const size_t kind = listing_below(l, 4), i = l->n > 0 ? listing_below(l, l->n) : 0;
        const size_t n = l->n;
        if (kind == 0 && n > 0) {
            listing_remove(l, i);
        } else if (kind == 1 && n > 0) {
            listing_describe(l, i);
        } else if (kind == 2 && n > 0) {
            listing_answer(l, i);
        } else if (n < LISTING_MAX) {
            const size_t at = listing_add(l);
            if (l->n > n)
                listing_describe(l, at);
        }
    }
    for (size_t i = 0; i < l->n; i++)
        l->entry[i].path = l->name[i];
}

static inline const struct pb_described *listing_find(void *user, const char *path, uint64_t digest)
{
    const struct listing *l = user;
    (void)digest;
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->name[i], path) == 0)
            return l->has_answer[i] ? &l->answer[i] : NULL;
    return NULL;
}
#endif
