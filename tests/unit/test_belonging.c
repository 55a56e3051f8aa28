/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/belonging.h"

#include "config/base/arena.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/scene/scene_search.h"
#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const char text[] =
    "pipelines:\n"
    "  set:\n"
    "    input: {group: '(?<scene>s\\d)_R.tif', files: {R: '{scene}_R.tif'}}\n"
    "    products: [statistics: {}]\n"
    "  own:\n"
    "    input: {match: ['*_MS.tif'], metadata: '{scene}_MTL.txt', sidecars: [.udm, .msk]}\n"
    "    products: [statistics: {}]\n"
    "  planet:\n"
    "    input: {match: ['*_SR.tif'], metadata: '*_metadata.xml'}\n"
    "    products: [statistics: {}]\n"
    "  folders:\n"
    "    input: {scene: 'S2?_*', files: {R: 'B04.tif'}, metadata: '{scene}.json', sidecars: "
    "[.msk]}\n"
    "    products: [statistics: {}]\n"
    "  month:\n"
    "    input: {group: 'm\\d+(_.)?\\.(img|json)', by: meta.tile, metadata: '*.json', files: "
    "{R: '*.img'}}\n"
    "    products: [statistics: {}]\n"
    "  asked:\n"
    "    input: {group: '[a-oA-O]+\\.img', by: meta.tile, metadata: '*.json', files: {R: "
    "'*.img'}}\n"
    "    products: [statistics: {}]\n"
    "  rest:\n"
    "    input: {match: ['*.tif']}\n"
    "    products: [statistics: {}]\n";

static struct pb_config *config;
static struct pb_arena *arena;
static struct pb_entry entry[16];
static struct pb_belonging file[16];
static size_t n;

static void make(void)
{
    struct pb_err_list errors = {0};
    ck_assert_msg(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config) == 0,
                  "%s", errors.err[0].msg);
    arena = pb_arena_create();
    n = 0;
}

static void end(void)
{
    pb_arena_destroy(arena);
    pb_config_destroy(config);
}

static size_t add(const char *name)
{
    entry[n] = (struct pb_entry){.path = name};
    return n++;
}

/* Answer for every file of a query; NULL = unknown. */
static const struct pb_described *answer;

static const struct pb_described *find_answer(void *user, const char *name, uint64_t digest)
{
    (void)user;
    (void)name;
    (void)digest;
    return answer;
}

static const struct pb_entry_facts answers = {find_answer, NULL};

static void sort_by(const struct pb_config *of, const struct pb_entry_facts *facts)
{
    const struct pb_belonging_rules rules = {.config = of, .facts = facts, .arena = arena};
    ck_assert_int_eq(pb_belonging_sort(entry, n, &rules, file), 0);
}

static void sort(void)
{
    sort_by(config, &answers);
}

static void is(size_t i, enum pb_belongs belongs)
{
    ck_assert_msg(file[i].belongs == belongs, "%s: %d, not %d", entry[i].path, (int)file[i].belongs,
                  (int)belongs);
}

static void is_beside(size_t i, size_t main)
{
    is(i, PB_BELONGS_BESIDE);
    ck_assert_uint_eq(file[i].main, main);
}

START_TEST(sidecars_belong_to_the_file_whose_name_they_have)
{
    size_t mask = add("x.tif.msk"), overviews = add("x.tif.msk.ovr"), world = add("X.TFW");
    size_t main = add("x.tif"), other = add("xy.tif"), rpc = add("x_rpc.txt");
    size_t far = add("sub/x.tfw"), lost = add("z.tif.aux.xml"), mine = add("x.tif.aux.xml");
    sort();
    is(main, PB_BELONGS_MAIN);
    is(other, PB_BELONGS_ALONE);
    is_beside(mask, main);
    is_beside(overviews, main);
    is_beside(world, main);
    is_beside(rpc, main);
    is_beside(mine, main);
    is(far, PB_BELONGS_NOWHERE);
    is(lost, PB_BELONGS_NOWHERE);
}
END_TEST

START_TEST(sidecars_of_a_set_go_with_the_set)
{
    size_t main = add("s1_R.tif"), statistics = add("s1_R.tif.aux.xml"), world = add("s1_R.tfw");
    sort();
    is(main, PB_BELONGS_SET);
    ck_assert_str_eq(file[main].scene, "s1");
    is_beside(statistics, main);
    is_beside(world, main);
}
END_TEST

START_TEST(pipeline_sidecar_ending_works_like_a_built_in_one)
{
    size_t main = add("a_MS.tif"), mask = add("a_MS.udm"), odd = add("b.udm");
    sort();
    is(main, PB_BELONGS_MAIN);
    is_beside(mask, main);
    is(odd, PB_BELONGS_NOWHERE);
}
END_TEST

START_TEST(metadata_belong_to_their_own_scene)
{
    size_t a = add("2017_175_SR.tif"), b = add("2017_176_SR.tif"),
           own = add("2017_176_metadata.xml");
    size_t named = add("a_MS.tif"), mtl = add("A_MS_mtl.TXT"), early = add("b_MS_MTL.txt");
    sort();
    is(a, PB_BELONGS_MAIN); /* and waits */
    is(b, PB_BELONGS_MAIN);
    is_beside(own, b);
    is(named, PB_BELONGS_MAIN);
    is_beside(mtl, named);
    is(early, PB_BELONGS_AWAITS);
    ck_assert_str_eq(file[early].pipeline->name, "own");
}
END_TEST

START_TEST(an_archive_of_a_scene_waits_for_nothing_beside_it)
{
    size_t zip = add("S2A_1.zip"), json = add("S2A_1.json"), mask = add("S2A_1.zip.msk");
    sort();
    is(zip, PB_BELONGS_ALONE);
    ck_assert_str_eq(file[zip].pipeline->name, "folders");
    is(json, PB_BELONGS_AWAITS); /* metadata of some file, not of an archive */
    is(mask, PB_BELONGS_NOWHERE);
}
END_TEST

START_TEST(other_files_and_folders_are_left_alone)
{
    size_t plain = add("x.tif"), note = add("x.txt"), folder = add("x.tfw");
    entry[folder].is_folder = true;
    sort();
    is(plain, PB_BELONGS_ALONE);
    is(note, PB_BELONGS_ALONE);
    is(folder, PB_BELONGS_ALONE);
}
END_TEST

START_TEST(a_file_whose_metadata_tell_its_set_is_asked_for)
{
    size_t image = add("m1.img"), item = add("m1.json"), lone = add("m2.img"),
           mask = add("m1.img.msk");
    for (size_t i = 0; i < n; i++)
        entry[i].is_settled = true;
    sort();
    is(image, PB_BELONGS_ASKED);
    is_beside(item, image);
    ck_assert(file[image].may_be_asked && !file[image].lacks_metadata);
    ck_assert(file[lone].lacks_metadata);
    is_beside(mask, image);
    uint64_t before = file[image].digest, lone_before = file[lone].digest;
    entry[item].bytes++;
    entry[item].is_settled = false;
    sort();
    ck_assert_uint_ne(file[image].digest, before);
    ck_assert_uint_eq(file[lone].digest, lone_before);
    ck_assert(!file[image].may_be_asked);
}
END_TEST

START_TEST(what_metadata_say_makes_the_set)
{
    static const struct pb_described told = {.facts = {.tile = "T33XWJ"}},
                                     failed = {.code = PB_E_INPUT_TRUNCATED};
    size_t image = add("m1.img"), item = add("m1.json");
    answer = &told;
    sort();
    is(image, PB_BELONGS_SET);
    is_beside(item, image);
    ck_assert_str_eq(file[image].scene, "T33XWJ");
    answer = &failed;
    sort();
    is(image, PB_BELONGS_MAIN); /* it has its metadata with it */
    is_beside(item, image);
    ck_assert_ptr_eq(file[image].answer, &failed);
    answer = NULL;
}
END_TEST

/* Independent of the facts about others: their own file may arrive any time. */
START_TEST(metadata_without_their_file_are_of_no_set)
{
    static const struct pb_described told = {.facts = {.tile = "T33XWJ"}};
    size_t image = add("m1.img"), item = add("m1.json"), early = add("m2.json"),
           unfit = add("other.json");
    answer = &told;
    sort();
    is(image, PB_BELONGS_SET);
    is_beside(item, image);
    is(early, PB_BELONGS_AWAITS);
    is(unfit, PB_BELONGS_AWAITS); /* input.group does not fit it */
    answer = NULL;
}
END_TEST

/* One answer by name; the others are not known. */
static const struct pb_described *find_first(void *user, const char *name, uint64_t digest)
{
    (void)digest;
    return strcmp(name, "m1_a.img") == 0 ? user : NULL;
}

START_TEST(metadata_of_several_files_stay_until_all_are_known)
{
    static struct pb_described told = {.facts = {.tile = "T33XWJ"}};
    const struct pb_entry_facts some = {find_first, &told};
    size_t known = add("m1_a.img"), item = add("m1.json"), unknown = add("m1_b.img");
    sort_by(config, &some);
    is(known, PB_BELONGS_SET);
    is(unknown, PB_BELONGS_ASKED);
    is_beside(item, unknown);
    answer = &told;
    sort();
    is_beside(item, known);
    answer = NULL;
}
END_TEST

START_TEST(a_star_stands_for_the_begin_of_the_files_own_name)
{
    ck_assert(pb_metadata_is_of("*_m.xml", "a_SR", "a_SR.tif", "a_m.xml"));
    ck_assert(!pb_metadata_is_of("*_m.xml", "a_SR", "a_SR.tif", "b_m.xml"));
    ck_assert(!pb_metadata_is_of("*_m.xml", "a_SR", "a_SR.tif", "ab_m.xml"));
    ck_assert(pb_metadata_is_of("*_m.xml", "a_10", "a_10.tif", "a_10_m.xml"));
    ck_assert(!pb_metadata_is_of("*_m.xml", "a_10", "a_10.tif", "a_1_m.xml"));
    ck_assert(pb_metadata_is_of("m.xml", "a", "a.tif", "M.XML"));
    ck_assert(!pb_metadata_is_of("*", "a", "a.tif", "a.tif"));
    ck_assert(pb_metadata_is_of("{scene}*.xml", NULL, NULL, "b_m.xml"));
    ck_assert(!pb_metadata_is_of("{scene}*.xml", "a[1]", "a[1].tif", "a1.xml"));
}
END_TEST

START_TEST(files_have_roles)
{
    size_t image = add("a_MS.tif"), item = add("a_MS_MTL.txt"), mask = add("a_MS.msk"),
           band = add("s1_R.tif"), lone = add("b_MS_MTL.txt");
    sort();
    ck_assert_int_eq(file[image].role, PB_ROLE_IMAGE);
    ck_assert_int_eq(file[item].role, PB_ROLE_METADATA);
    ck_assert_int_eq(file[mask].role, PB_ROLE_SIDECAR);
    ck_assert_int_eq(file[band].role, PB_ROLE_BAND);
    ck_assert_int_eq(file[lone].role, PB_ROLE_METADATA);
}
END_TEST

START_TEST(one_pipeline_may_take_all_files)
{
    size_t band = add("s1_R.tif"), image = add("x_SR.tif"), item = add("x_metadata.xml");
    const struct pb_belonging_rules rules = {
        .config = config, .only = &config->pipelines[2], .arena = arena};
    ck_assert_int_eq(pb_belonging_sort(entry, n, &rules, file), 0);
    is(band, PB_BELONGS_MAIN);
    ck_assert_str_eq(file[band].pipeline->name, "planet");
    is(image, PB_BELONGS_MAIN);
    is_beside(item, image);
}
END_TEST

/* A metadata pattern without the name of a scene: each file is a candidate of each. Comparing all
 * of them took minutes, and libcheck allows four seconds. */
START_TEST(many_files_are_sorted_at_once)
{
    enum { N = 4000 };
    static char names[N][80];
    static struct pb_entry files[N];
    static struct pb_belonging many[N];
    struct pb_config *wild = NULL;
    struct pb_err_list errors = {0};
    const char *of = "pipelines: {p: {input: {match: ['*.tif'], metadata: '*[mM]eta.xml'}, "
                     "products: [statistics: {}]}}";
    ck_assert_int_eq(pb_config_parse(of, strlen(of), "f", &pb_products, &errors, &wild), 0);
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof names[i], "20170831_172754_3B_AnalyticMS_%05zu%s", i / 2,
                       i < 2 && i % 2 ? "Meta.xml"
                       : i % 2        ? "b.tif"
                                      : ".tif");
        files[i].path = names[i];
    }
    const struct pb_belonging_rules rules = {.config = wild, .facts = &answers, .arena = arena};
    ck_assert_int_eq(pb_belonging_sort(files, N, &rules, many), 0);
    ck_assert_int_eq(many[1].belongs, PB_BELONGS_BESIDE);
    ck_assert_uint_eq(many[1].main, 0);
    ck_assert_int_eq(many[N - 1].belongs, PB_BELONGS_MAIN);
    pb_config_destroy(wild);
}
END_TEST

enum { LETTERS = 15, MANY = 2 << LETTERS };

/* A search for each name among all of them would take minutes. The second half of the names belongs
 * to the first file, which is `main`. */
static void sort_spellings(const char *first, const char *second, enum pb_belongs main)
{
    static char name[MANY][64];
    static struct pb_entry many[MANY];
    static struct pb_belonging out[MANY];
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(name[i], sizeof name[i], "abcdefghijklmno%s", i < MANY / 2 ? first : second);
        for (size_t k = 0; k < LETTERS; k++)
            name[i][k] = (char)(name[i][k] - ((i >> k & 1) != 0 ? 'a' - 'A' : 0));
        many[i] = (struct pb_entry){.path = name[i]};
    }
    const struct pb_belonging_rules rules = {.config = config, .arena = arena};
    ck_assert_int_eq(pb_belonging_sort(many, MANY, &rules, out), 0);
    ck_assert_int_eq(out[0].belongs, main);
    for (size_t i = MANY / 2; i < MANY; i++) {
        ck_assert_int_eq(out[i].belongs, PB_BELONGS_BESIDE);
        ck_assert_uint_eq(out[i].main, 0);
    }
}

START_TEST(test_sidecars_of_one_spelling_are_sorted_in_time)
{
    sort_spellings(".tif", ".prj", PB_BELONGS_MAIN);
}
END_TEST

START_TEST(test_metadata_of_one_spelling_are_sorted_in_time)
{
    sort_spellings("_SR.tif", "_metadata.xml", PB_BELONGS_MAIN);
}
END_TEST

START_TEST(test_asked_of_one_spelling_are_sorted_in_time)
{
    sort_spellings(".img", ".json", PB_BELONGS_ASKED);
}
END_TEST

/* The state of a file and of its metadata, with other spellings of its name and without them. */
START_TEST(test_asked_files_of_one_spelling_share_metadata)
{
    static const char *const names[] = {"Abc.img", "aBc.img", "abC.img", "abc.json", "ABC.json"};
    enum { N = sizeof names / sizeof *names, FILES = 3 };
    struct pb_entry all[N], few[N];
    struct pb_belonging out[N], alone[N];
    const struct pb_belonging_rules rules = {.config = config, .arena = arena};
    for (size_t i = 0; i < N; i++)
        all[i] =
            (struct pb_entry){.path = names[i], .inode = i + 1, .is_settled = i != N - 1 && i != 1};
    for (size_t settled = 0; settled < 2; settled++) {
        all[N - 1].is_settled = settled == 1;
        ck_assert_int_eq(pb_belonging_sort(all, N, &rules, out), 0);
        for (size_t i = 0; i < FILES; i++) {
            few[0] = all[i];
            memcpy(few + 1, all + FILES, (N - FILES) * sizeof *few);
            ck_assert_int_eq(pb_belonging_sort(few, 1 + N - FILES, &rules, alone), 0);
            ck_assert_int_eq(out[i].belongs, PB_BELONGS_ASKED);
            ck_assert_uint_eq(out[i].digest, alone[0].digest);
            ck_assert_int_eq(out[i].may_be_asked, alone[0].may_be_asked);
            ck_assert_int_eq(out[i].may_be_asked, settled == 1 && i != 1);
            ck_assert(!out[i].lacks_metadata);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("belonging");
    TCase *tests = tcase_create("belonging");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, sidecars_belong_to_the_file_whose_name_they_have);
    tcase_add_test(tests, sidecars_of_a_set_go_with_the_set);
    tcase_add_test(tests, pipeline_sidecar_ending_works_like_a_built_in_one);
    tcase_add_test(tests, metadata_belong_to_their_own_scene);
    tcase_add_test(tests, an_archive_of_a_scene_waits_for_nothing_beside_it);
    tcase_add_test(tests, other_files_and_folders_are_left_alone);
    tcase_add_test(tests, a_file_whose_metadata_tell_its_set_is_asked_for);
    tcase_add_test(tests, what_metadata_say_makes_the_set);
    tcase_add_test(tests, metadata_without_their_file_are_of_no_set);
    tcase_add_test(tests, metadata_of_several_files_stay_until_all_are_known);
    tcase_add_test(tests, a_star_stands_for_the_begin_of_the_files_own_name);
    tcase_add_test(tests, files_have_roles);
    tcase_add_test(tests, one_pipeline_may_take_all_files);
    tcase_add_test(tests, many_files_are_sorted_at_once);
    tcase_add_test(tests, test_sidecars_of_one_spelling_are_sorted_in_time);
    tcase_add_test(tests, test_metadata_of_one_spelling_are_sorted_in_time);
    tcase_add_test(tests, test_asked_of_one_spelling_are_sorted_in_time);
    tcase_add_test(tests, test_asked_files_of_one_spelling_share_metadata);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
