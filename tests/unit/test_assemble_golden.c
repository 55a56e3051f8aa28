/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Scenes of random listings (random_listing.h), for all samples, as text: tests/golden/scenes.txt.
 * With PB_UPDATE=1 in the environment the file is written instead. */
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/scene/assemble.h"
#include "random_listing.h"
#include "run_suite.h"

#include <check.h>
#include <dirent.h>
#include <stdlib.h>

#define SEEDS          2000 /* listings that are tried for each configuration */
#define LISTINGS       7    /* listings with scenes of several files that a sample has here */
#define LISTINGS_MIXED 80   /* the same for the pipelines below */
#define CHAINS         20   /* sequences of listings for each sample */
#define CHAINS_MIXED   600
#define CHAIN_STEPS    12
#define GOLDEN         PB_SOURCE_DIR "/tests/golden/scenes.txt"

static const char mixed[] =
    "pipelines:\n"
    "  set:\n"
    "    input:\n"
    "      group: '(?<scene>s\\d?)_(R|N)\\.tif'\n"
    "      files: {R: '{scene}_R.tif', N: '{scene}_N.tif'}\n"
    "      complete: {reopen: 1h}\n"
    "    products: [statistics: {bands: [R, N]}]\n"
    "  dates:\n"
    "    input:\n"
    "      group: '(?<tile>T\\w{5})_(?<date>\\d{8})(T\\d{6})?\\.tif'\n"
    "      by: '{tile}_{date:%Y%m}'\n"
    "      files: {R: {match: '*.tif', nth: 1}, N: {match: '*.tif', nth: 2, optional: true}}\n"
    "      complete: {expire: 1h, reopen: 1h}\n"
    "    products: [statistics: {bands: [R, N]}]\n"
    "  own:\n"
    "    input: {match: ['*_MS.tif'], metadata: '{scene}_MTL.txt', sidecars: [.udm, .msk]}\n"
    "    products: [statistics: {}]\n"
    "  planet:\n"
    "    input: {match: ['*_SR.tif', '*_AnalyticMS.tif'], metadata: '*_metadata.xml',\n"
    "            sidecars: [.aux.xml], complete: {expire: 1h}}\n"
    "    products: [statistics: {}]\n"
    "  folders:\n"
    "    input: {scene: 'S2?_*', files: {R: 'B04.tif'}, metadata: '{scene}.json', sidecars: "
    "[.msk]}\n"
    "    products: [statistics: {}]\n"
    "  months:\n"
    "    input: {group: '(m|x)_?\\d+(_.)?\\.(img|json)', by: '{meta.tile}_{meta.date:%Y%m}',\n"
    "            metadata: '*.json', files: {R: '*.img'}, complete: {expire: 1h}}\n"
    "    products: [statistics: {}]\n"
    "  rest:\n"
    "    input: {match: ['x*.tif', '*.TIF']}\n"
    "    products: [statistics: {}]\n";

/* Earlier jobs of a set that files may join; they depend on its name alone. */
static void know(struct pb_assembly *assembly, size_t i)
{
    const struct pb_assembled *set = pb_assembly_at(assembly, i);
    struct pb_scene_earlier earlier = {.n = 0};
    const size_t kind = set->reopen_ms > 0 ? (strlen(set->name) + set->n) % 3 : 0;
    if (kind == 1) {
        (void)snprintf(earlier.busy, sizeof earlier.busy, "20200516-100031-aaaa");
    } else if (kind == 2) {
        earlier.name = calloc(1, sizeof *earlier.name);
        ck_assert_ptr_nonnull(earlier.name);
        earlier.name[earlier.n++] = strdup("T33UUP_20200501.tif");
    }
    pb_assembly_know(assembly, i, &earlier);
}

static void print_scene(const struct pb_assembled *scene, FILE *out)
{
    static const char *const forms[] = {"alone", "compound", "group", "unassigned", "orphan"};
    static const char *const states[] = {"ready", "unsettled", "incomplete", "needs-facts"};
    static const char *const roles[] = {"image", "band",      "metadata", "sidecar",
                                        "list",  "companion", "unused"};
    (void)fprintf(out, "  %s %s %s %s", forms[scene->form], states[scene->state],
                  scene->pipeline[0] ? scene->pipeline : "-", scene->name);
    if (scene->due_ms != 0)
        (void)fprintf(out, " due %+lld", (long long)(scene->due_ms - LISTING_WALL_MS));
    if (scene->answer != NULL)
        (void)fprintf(out, " %s", pb_code_id(scene->answer->code));
    if (scene->form == PB_FORM_UNASSIGNED)
        (void)fprintf(out, " may-be-asked %d", scene->may_be_asked);
    if (scene->missing[0] != '\0')
        (void)fprintf(out, " (%s)", scene->missing);
    for (size_t i = 0; i < scene->n; i++)
        if (scene->n > 1 || scene->form != PB_FORM_ALONE)
            (void)fprintf(out, "\n    %s %s", roles[scene->member[i].role],
                          pb_assembled_entry(scene, i)->path);
    (void)fprintf(out, "\n");
}

/* Returns true if some files of a listing belong together. */
static bool has_set(const struct pb_assembly *assembly)
{
    bool has = false;
    for (size_t i = 0; i < pb_assembly_count(assembly) && !has; i++)
        has = pb_assembly_at(assembly, i)->n > 1;
    return has;
}

static void assemble(struct pb_assembly *assembly, const struct pb_config *config,
                     struct listing *listing, bool is_trusted)
{
    const struct pb_entry_facts facts = {listing_find, listing};
    const struct pb_assembly_input input = {.config = config,
                                            .entry = listing->entry,
                                            .n = listing->n,
                                            .facts = &facts,
                                            .wall_ms = LISTING_WALL_MS,
                                            .wall_is_trusted = is_trusted};
    ck_assert_int_eq(pb_assembly_group(assembly, &input), 0);
    for (size_t i = 0; i < pb_assembly_count(assembly); i++)
        know(assembly, i);
    ck_assert_int_eq(pb_assembly_judge(assembly, config), 0);
}

/* Returns false, without a line, for a listing of single files. */
static bool print_listing(const struct pb_config *config, const char *name, uint64_t seed,
                          FILE *out)
{
    struct listing listing;
    struct pb_assembly *assembly = pb_assembly_create();
    listing_make(&listing, seed);
    assemble(assembly, config, &listing, seed % 8 != 0);
    const bool has = has_set(assembly);
    if (has)
        (void)fprintf(out, "%s %llu\n", name, (unsigned long long)seed);
    for (size_t i = 0; has && i < pb_assembly_count(assembly); i++)
        print_scene(pb_assembly_at(assembly, i), out);
    pb_assembly_destroy(assembly);
    return has;
}

static void print_listings(const struct pb_config *config, const char *name, FILE *out)
{
    int most = strcmp(name, "mixed") == 0 ? LISTINGS_MIXED : LISTINGS;
    for (uint64_t seed = 0; seed < SEEDS && most > 0; seed++)
        most -= print_listing(config, name, seed, out);
}

static int is_sample(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".yaml") == 0;
}

/* Calls the function for the configuration of each sample, and for the pipelines above. */
static void
for_each_config(void (*act)(const struct pb_config *config, const char *name, FILE *out), FILE *out)
{
    struct pb_err_list errors = {0};
    struct pb_config *config = NULL;
    struct dirent **sample = NULL;
    const int n = scandir(PB_SOURCE_DIR "/samples", &sample, is_sample, alphasort);
    ck_assert_int_gt(n, 20);
    for (int i = 0; i < n; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/samples/%s", PB_SOURCE_DIR, sample[i]->d_name);
        ck_assert_msg(pb_config_load(path, &pb_products, &errors, &config) == 0, "%s: %s", path,
                      errors.err[0].msg);
        act(config, sample[i]->d_name, out);
        pb_config_destroy(config);
        free(sample[i]);
    }
    free(sample);
    ck_assert_msg(pb_config_parse(mixed, strlen(mixed), "mixed", &pb_products, &errors, &config) ==
                      0,
                  "%s", errors.err[0].msg);
    act(config, "mixed", out);
    pb_config_destroy(config);
}

START_TEST(scenes_of_random_listings_are_as_recorded)
{
    char *text = NULL, *golden = NULL;
    size_t bytes = 0, golden_bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    for_each_config(print_listings, out);
    (void)fclose(out);
    FILE *file = fopen(GOLDEN, getenv("PB_UPDATE") ? "we" : "re");
    ck_assert_ptr_nonnull(file);
    if (getenv("PB_UPDATE") != NULL) {
        ck_assert_uint_eq(fwrite(text, 1, bytes, file), bytes);
        ck_assert_int_eq(fclose(file), 0);
        free(text);
        return;
    }
    ck_assert_int_ge(getdelim(&golden, &golden_bytes, -1, file), 0);
    (void)fclose(file);
    size_t same = 0, line = 1;
    for (; text[same] != '\0' && text[same] == golden[same]; same++)
        line += text[same] == '\n';
    ck_assert_msg(text[same] == golden[same],
                  "%s:%zu differs; PB_UPDATE=1 test_assemble_golden writes it", GOLDEN, line);
    free(text);
    free(golden);
}
END_TEST

/* --- listings one after the other ------------------------------------------------------------ */

/* All about the scenes as text, which the caller frees. */
static char *text_of(const struct pb_assembly *assembly)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    for (size_t i = 0; i < pb_assembly_count(assembly); i++) {
        const struct pb_assembled *scene = pb_assembly_at(assembly, i);
        print_scene(scene, out);
        (void)fprintf(out, "    %zu %zu %llx %llu %lld %lld\n", scene->n, scene->pipeline_number,
                      (unsigned long long)scene->digest, (unsigned long long)scene->bytes,
                      (long long)scene->youngest_ns, (long long)scene->reopen_ms);
    }
    (void)fprintf(out, "due %lld\n", (long long)pb_assembly_due_ms(assembly, LISTING_WALL_MS));
    (void)fclose(out);
    return text;
}

/* Each listing is gone before the next is assembled. */
static void compare_listings(const struct pb_config *config, const char *name, FILE *out)
{
    const uint64_t most = strcmp(name, "mixed") == 0 ? CHAINS_MIXED : CHAINS;
    (void)out;
    for (uint64_t seed = 0; seed < most; seed++) {
        struct pb_assembly *again = pb_assembly_create();
        struct listing *listing = malloc(sizeof *listing);
        listing_make(listing, seed);
        for (int step = 0; step < CHAIN_STEPS; step++) {
            struct listing *next = malloc(sizeof *next);
            *next = *listing;
            memset(listing, 0x5a, sizeof *listing);
            free(listing);
            listing = next;
            listing_change(listing);
            struct pb_assembly *fresh = pb_assembly_create();
            assemble(again, config, listing, seed % 8 != 0);
            assemble(fresh, config, listing, seed % 8 != 0);
            char *text = text_of(again), *wanted = text_of(fresh);
            ck_assert_msg(strcmp(text, wanted) == 0, "%s %llu step %d:\n%sin place of\n%s", name,
                          (unsigned long long)seed, step, text, wanted);
            for (size_t i = 0; i < listing->n; i++) {
                const struct pb_assembled *a = pb_assembly_of(again, i);
                const struct pb_assembled *b = pb_assembly_of(fresh, i);
                ck_assert(a == NULL ? b == NULL : strcmp(a->name, b->name) == 0);
            }
            free(text);
            free(wanted);
            pb_assembly_destroy(fresh);
        }
        free(listing);
        pb_assembly_destroy(again);
    }
}

START_TEST(a_later_listing_is_assembled_like_the_first)
{
    for_each_config(compare_listings, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("assemble_golden");
    TCase *tests = tcase_create("assemble_golden");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, scenes_of_random_listings_are_as_recorded);
    tcase_add_test(tests, a_later_listing_is_assembled_like_the_first);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
