/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/manifest.h"
#include "pipeline/scene/manifest_match.h"

#include "run_suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pb_scene_manifest manifest;

static void make(void)
{
    manifest = (struct pb_scene_manifest){.n_roots = 0};
}

static void end(void)
{
    pb_scene_manifest_fini(&manifest);
}

static int add(const char *root, const char *path)
{
    int number = pb_scene_manifest_root(&manifest, root);
    const struct pb_manifest_entry entry = {
        .path = (char *)path, .root = (uint16_t)number, .bytes = -1};
    return number < 0 ? number : pb_scene_manifest_add(&manifest, &entry);
}

static void assign(int entry, enum pb_role role, int source, int nth)
{
    const struct pb_member member = {(uint32_t)entry, role, (uint16_t)source, (uint16_t)nth};
    ck_assert_int_eq(pb_scene_manifest_assign(&manifest, &member), 0);
}

/* JSON form of a manifest, malloc'd. */
static char *text_of(const struct pb_scene_manifest *of)
{
    struct pb_json *json = pb_json_create(false);
    pb_scene_manifest_print(of, json, NULL);
    char *text = strdup(pb_json_text(json, NULL));
    pb_json_destroy(json);
    return text;
}

START_TEST(test_json_form_is_read_back)
{
    const char *want =
        "{\"version\":1,\"roots\":[{\"path\":\"/data/in\",\"files\":["
        "{\"path\":\"a/x_B4.tif\",\"bytes\":5,\"inode\":7,\"mtime_ns\":8,\"ctime_ns\":9,"
        "\"checksum\":\"sha256:0000000000000000000000000000000000000000000000000000000000000001\","
        "\"roles\":[[\"band\",0,3],[\"metadata\",65535,0]]},"
        "{\"path\":\"bytes:%FF\",\"folder\":true}]},"
        "{\"path\":\"/\",\"files\":[{\"path\":\"x.md5\",\"gone\":true,\"verifies\":true,"
        "\"roles\":[[\"companion\",0,0]]}]}]}";
    struct pb_scene_manifest read, copy;
    ck_assert_int_eq(pb_scene_manifest_parse(want, &read), 0);
    ck_assert_uint_eq(read.n_entries, 3);
    ck_assert_str_eq(read.entry[1].path, "\xff");
    ck_assert_int_eq(read.entry[0].bytes, 5);
    ck_assert_int_eq(read.entry[1].bytes, -1);
    ck_assert_int_eq(pb_scene_manifest_copy(&copy, &read), 0);
    pb_scene_manifest_fini(&read);
    char *text = text_of(&copy);
    ck_assert_str_eq(text, want);
    free(text);
    pb_scene_manifest_fini(&copy);
}
END_TEST

static const char *const refused[] = {
    "",
    "[]",
    "{}",
    "{\"version\":2,\"roots\":[]}",
    "{\"version\":1}",
    "{\"version\":1,\"roots\":{}}",
    "{\"version\":1,\"roots\":[],\"more\":0}",
    "{\"version\":1,\"roots\":[{\"path\":\"a\",\"files\":[]}]}",
    "{\"version\":1,\"roots\":[{\"path\":\"/a\"}]}",
    "{\"version\":1,\"roots\":[{\"path\":\"/a\",\"files\":[]},{\"path\":\"/a\",\"files\":[]}]}",
#define FILE_OF(members) "{\"version\":1,\"roots\":[{\"path\":\"/a\",\"files\":[{" members "}]}]}"
    FILE_OF(""),
    FILE_OF("\"path\":7"),
    FILE_OF("\"path\":\"\""),
    FILE_OF("\"path\":\"/b\""),
    FILE_OF("\"path\":\"..\""),
    FILE_OF("\"path\":\"b/../../c\""),
    FILE_OF("\"path\":\"b/./c\""),
    FILE_OF("\"path\":\"b//c\""),
    FILE_OF("\"path\":\"b/\""),
    FILE_OF("\"path\":\"bytes:%00\""),
    FILE_OF("\"path\":\"b\",\"size\":1"),
    FILE_OF("\"path\":\"b\",\"bytes\":\"1\""),
    FILE_OF("\"path\":\"b\",\"bytes\":-2"),
    FILE_OF("\"path\":\"b\",\"folder\":1"),
    FILE_OF("\"path\":\"b\",\"checksum\":\"sha256:0\""),
    FILE_OF("\"path\":\"b\",\"checksum\":null"),
    FILE_OF("\"path\":\"b\",\"roles\":\"band\""),
    FILE_OF("\"path\":\"b\",\"roles\":[\"band\"]"),
    FILE_OF("\"path\":\"b\",\"roles\":[[\"band\",0]]"),
    FILE_OF("\"path\":\"b\",\"roles\":[[\"strip\",0,0]]"),
    FILE_OF("\"path\":\"b\",\"roles\":[[\"band\",0.5,0]]"),
    FILE_OF("\"path\":\"b\",\"roles\":[[\"band\",0,65536]]"),
    FILE_OF("\"path\":\"b\",\"roles\":[[\"band\",-1,0]]"),
};

START_TEST(test_parse_refuses_what_print_never_writes)
{
    struct pb_scene_manifest read = {.n_roots = 77};
    ck_assert_msg(pb_scene_manifest_parse(refused[_i], &read) == -EINVAL, "%s", refused[_i]);
    ck_assert_uint_eq(read.n_roots, 77);
}
END_TEST

START_TEST(test_parse_refuses_too_long_a_path)
{
    char text[PB_SCENE_MANIFEST_PATH_BYTES + 200], path[PB_SCENE_MANIFEST_PATH_BYTES + 1];
    struct pb_scene_manifest read;
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    (void)snprintf(text, sizeof text, FILE_OF("\"path\":\"%s\""), path);
    ck_assert_int_eq(pb_scene_manifest_parse(text, &read), -EINVAL);
    path[sizeof path - 2] = '\0';
    (void)snprintf(text, sizeof text, FILE_OF("\"path\":\"%s\""), path);
    ck_assert_int_eq(pb_scene_manifest_parse(text, &read), 0);
    char joined[PB_SCENE_MANIFEST_PATH_BYTES];
    ck_assert_int_eq(pb_scene_manifest_path(&read, read.entry, joined), -ENAMETOOLONG);
    pb_scene_manifest_fini(&read);
}
END_TEST

START_TEST(test_counts_of_roots_and_files_are_limited)
{
    char root[32];
    for (int i = 0; i < PB_SCENE_MANIFEST_ROOTS_MAX; i++) {
        (void)snprintf(root, sizeof root, "/r%d", i);
        ck_assert_int_eq(pb_scene_manifest_root(&manifest, root), i);
    }
    ck_assert_int_eq(pb_scene_manifest_root(&manifest, "/more"), -E2BIG);
    ck_assert_int_eq(pb_scene_manifest_root(&manifest, "/r7"), 7);
    for (int i = 0; i < PB_SCENE_MANIFEST_ENTRIES_MAX; i++)
        ck_assert_int_eq(add("/r0", "f"), i);
    ck_assert_int_eq(add("/r0", "f"), -E2BIG);
}
END_TEST

START_TEST(test_form_is_never_longer_than_it_may_be)
{
    static const char *const names[] = {"\x01\x1f\x7f%%", "a\"\\b", "bytes:%", "\xff \"\\",
                                        "\u0416"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int root = pb_scene_manifest_root(&manifest, "/\x02\"");
        const struct pb_manifest_entry entry = {
            .path = (char *)names[i],
            .root = (uint16_t)root,
            .is_folder = true,
            .is_gone = true,
            .verifies = true,
            .bytes = INT64_MAX,
            .inode = (uint64_t)INT64_MIN,
            .mtime_ns = INT64_MIN,
            .ctime_ns = INT64_MIN,
            .checksum = "sha256:0000000000000000000000000000000000000000000000000000000000000001"};
        int at = pb_scene_manifest_add(&manifest, &entry);
        ck_assert_int_eq(at, (int)i);
        assign(at, PB_ROLE_COMPANION, 65535, 65535);
        assign(at, PB_ROLE_METADATA, 65535, 65535);
        char *text = text_of(&manifest);
        ck_assert_uint_le(strlen(text), manifest.json_bytes);
        free(text);
    }
    pb_scene_manifest_remove(&manifest, PB_ROLE_METADATA);
    ck_assert_uint_eq(manifest.n_entries, 0);
    const size_t empty = manifest.json_bytes;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ck_assert_int_eq(pb_scene_manifest_set_input(&manifest, names[i]), 0);
        ck_assert_uint_gt(manifest.json_bytes, empty);
    }
    ck_assert_int_eq(pb_scene_manifest_set_input(&manifest, NULL), 0);
    ck_assert_uint_eq(empty, manifest.json_bytes);
    pb_scene_manifest_fini(&manifest);
    ck_assert_int_eq(pb_scene_manifest_root(&manifest, "/\x02\""), 0);
    ck_assert_uint_eq(empty, manifest.json_bytes);
}
END_TEST

START_TEST(test_all_that_is_added_is_read_back)
{
    char path[1500];
    struct pb_scene_manifest read, copy;
    memset(path, 1, sizeof path - 1); /* six characters each in JSON */
    path[sizeof path - 1] = '\0';
    int n = 0;
    while ((n = add("/in", path)) >= 0)
        continue;
    ck_assert_int_eq(n, -E2BIG);
    ck_assert_uint_gt(manifest.n_entries, 500);
    memset(path, 'd', sizeof path - 1);
    path[0] = path[400] = '/';
    ck_assert_int_eq(pb_scene_manifest_move(&manifest, &manifest.entry[0], path), 0);
    char *text = text_of(&manifest);
    ck_assert_int_eq(pb_scene_manifest_parse(text, &read), 0);
    ck_assert_int_eq(pb_scene_manifest_copy(&copy, &read), 0);
    ck_assert_uint_eq(copy.n_entries, manifest.n_entries);
    ck_assert_uint_eq(copy.json_bytes, manifest.json_bytes);
    free(text);
    pb_scene_manifest_fini(&read);
    pb_scene_manifest_fini(&copy);
}
END_TEST

START_TEST(test_path_inside_a_folder_is_found)
{
    const struct pb_manifest_entry folder = {.path = "S", .is_folder = true, .bytes = -1};
    (void)add("/in", "x.md5");
    assign(0, PB_ROLE_COMPANION, 0, 0);
    (void)add("/in", "S/a.tif");
    ck_assert_str_eq(pb_scene_manifest_inner(&manifest, &manifest.entry[1]), "S/a.tif");
    ck_assert_int_eq(pb_scene_manifest_add(&manifest, &folder), 2);
    (void)add("/in", "S/d/b.tif");
    (void)add("/other", "S/c.tif");
    for (int i = 0; i < 2; i++) { /* with the companion and without it */
        const struct pb_manifest_entry *last = &manifest.entry[manifest.n_entries - 1];
        ck_assert_str_eq(pb_scene_manifest_inner(&manifest, last - 3), "a.tif");
        ck_assert_str_eq(pb_scene_manifest_inner(&manifest, last - 2), "S");
        ck_assert_str_eq(pb_scene_manifest_inner(&manifest, last - 1), "d/b.tif");
        ck_assert_str_eq(pb_scene_manifest_inner(&manifest, last), "S/c.tif");
        pb_scene_manifest_remove(&manifest, PB_ROLE_COMPANION);
    }
    assign(1, PB_ROLE_UNUSED, 0, 0);
    pb_scene_manifest_remove(&manifest, PB_ROLE_UNUSED);
    ck_assert_str_eq(pb_scene_manifest_inner(&manifest, &manifest.entry[0]), "S/a.tif");
}
END_TEST

START_TEST(test_present_place_of_the_input_is_kept)
{
    static const char *const paths[] = {"a.tif", "/work/1/a.tif", "/\xff \"\\\x01.tif"};
    struct pb_scene_manifest read, copy;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        ck_assert_int_eq(pb_scene_manifest_set_input(&manifest, paths[i]), 0);
        char *text = text_of(&manifest);
        ck_assert_uint_le(strlen(text), manifest.json_bytes);
        ck_assert_int_eq(pb_scene_manifest_parse(text, &read), 0);
        ck_assert_int_eq(pb_scene_manifest_copy(&copy, &read), 0);
        ck_assert_str_eq(copy.input, paths[i]);
        ck_assert_uint_eq(copy.json_bytes, manifest.json_bytes);
        free(text);
        pb_scene_manifest_fini(&read);
        pb_scene_manifest_fini(&copy);
    }
    ck_assert_int_eq(pb_scene_manifest_parse("{\"version\":1,\"input\":7,\"roots\":[]}", &read),
                     -EINVAL);
    ck_assert_int_eq(pb_scene_manifest_parse("{\"version\":1,\"roots\":[]}", &read), 0);
    ck_assert_ptr_null(read.input);
}
END_TEST

START_TEST(test_roles_are_sorted_by_their_files)
{
    int a = add("/in", "a"), b = add("/in", "b");
    assign(b, PB_ROLE_BAND, 2, 1);
    assign(a, PB_ROLE_IMAGE, 0, 0);
    assign(b, PB_ROLE_IMAGE, 0, 0);
    assign(a, PB_ROLE_BAND, 1, 0);
    char *text = text_of(&manifest);
    ck_assert_ptr_nonnull(strstr(text,
                                 "{\"path\":\"a\",\"roles\":[[\"image\",0,0],[\"band\",1,0]]},"
                                 "{\"path\":\"b\",\"roles\":[[\"band\",2,1],[\"image\",0,0]]}"));
    free(text);
}
END_TEST

START_TEST(test_move_takes_the_place_of_a_path)
{
    char path[PB_SCENE_MANIFEST_PATH_BYTES];
    int first = add("/in", "a.md5"), second = add("/other", "b");
    assign(first, PB_ROLE_COMPANION, 0, 0);
    struct pb_manifest_entry *companion = pb_scene_manifest_find(&manifest, PB_ROLE_COMPANION);
    ck_assert_int_eq(pb_scene_manifest_move(&manifest, companion, "/done/a.md5.1"), 0);
    ck_assert_uint_eq(manifest.n_roots, 2);
    ck_assert_int_eq(pb_scene_manifest_path(&manifest, companion, path), 0);
    ck_assert_str_eq(path, "/done/a.md5.1");
    ck_assert_int_eq(pb_scene_manifest_path(&manifest, &manifest.entry[second], path), 0);
    ck_assert_str_eq(path, "/other/b");
    ck_assert_int_eq(pb_scene_manifest_move(&manifest, companion, "/a"), 0);
    ck_assert_int_eq(pb_scene_manifest_path(&manifest, companion, path), 0);
    ck_assert_str_eq(path, "/a");
    ck_assert_int_eq(pb_scene_manifest_move(&manifest, companion, "/done/.."), -EINVAL);
}
END_TEST

START_TEST(test_remove_leaves_files_of_other_roles)
{
    int a = add("/in", "a"), b = add("/in", "b"), c = add("/in", "c");
    assign(a, PB_ROLE_COMPANION, 0, 0);
    assign(c, PB_ROLE_BAND, 2, 1);
    assign(b, PB_ROLE_IMAGE, 0, 0);
    ck_assert_ptr_null(pb_scene_manifest_find(&manifest, PB_ROLE_LIST));
    pb_scene_manifest_remove(&manifest, PB_ROLE_COMPANION);
    ck_assert_uint_eq(manifest.n_entries, 2);
    ck_assert_ptr_null(pb_scene_manifest_find(&manifest, PB_ROLE_COMPANION));
    ck_assert_str_eq(pb_scene_manifest_find(&manifest, PB_ROLE_BAND)->path, "c");
    ck_assert_str_eq(pb_scene_manifest_find(&manifest, PB_ROLE_IMAGE)->path, "b");
    ck_assert(pb_scene_manifest_is(&manifest, 1, PB_ROLE_BAND));
    ck_assert(!pb_scene_manifest_is(&manifest, 0, PB_ROLE_BAND));
}
END_TEST

START_TEST(test_add_refuses_what_is_not_below_a_root)
{
    const struct pb_manifest_entry no_root = {.path = "a", .root = 3, .bytes = -1};
    const struct pb_member no_entry = {.entry = 9, .role = PB_ROLE_BAND};
    ck_assert_int_eq(pb_scene_manifest_root(&manifest, "in"), -EINVAL);
    ck_assert_int_eq(pb_scene_manifest_add(&manifest, &no_root), -EINVAL);
    ck_assert_int_eq(pb_scene_manifest_assign(&manifest, &no_entry), -EINVAL);
    ck_assert_int_eq(add("/in", "../a"), -EINVAL);
    ck_assert_int_eq(add("/in", "/a"), -EINVAL);
    ck_assert_uint_eq(manifest.n_entries, 0);
}
END_TEST

/* --- comparison ------------------------------------------------------------------------------ */

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define TWOS  "2222222222222222222222222222222222222222222222222222222222222222"

/* Files as lines "role path bytes checksum", with the checksums "0" and "2" of SHA-256 and "b" of
 * BLAKE3, "-" = unknown. The role "folder" is a folder, "none" a file without a role. */
static void make_files(const char *lines, struct pb_scene_manifest *out)
{
    char role[16], path[64], sum[8];
    int bytes, n = 0;
    *out = (struct pb_scene_manifest){.n_roots = 0};
    ck_assert_int_eq(pb_scene_manifest_root(out, "/in"), 0);
    for (const char *at = lines; sscanf(at, "%15s %63s %d %7s%n", role, path, &bytes, sum, &n) == 4;
         at += n) {
        char text[400];
        struct pb_scene_manifest one;
        const bool is_folder = strcmp(role, "folder") == 0, is_none = strcmp(role, "none") == 0;
        for (char *c = path; *c != '\0'; c++)
            *c = *c == '^' ? '\x01' : *c;
        const struct pb_manifest_entry entry = {.path = path,
                                                .bytes = bytes,
                                                .is_folder = is_folder,
                                                .checksum = sum[0] == '0'   ? "sha256:" ZEROS
                                                            : sum[0] == '2' ? "sha256:" TWOS
                                                            : sum[0] == 'b' ? "blake3:" ZEROS
                                                                            : NULL};
        const int index = pb_scene_manifest_add(out, &entry);
        ck_assert_int_ge(index, 0);
        if (is_folder || is_none)
            continue;
        (void)snprintf(text, sizeof text, FILE_OF("\"path\":\"b\",\"roles\":[[\"%s\",0,0]]"), role);
        ck_assert_msg(pb_scene_manifest_parse(text, &one) == 0, "%s", role);
        const struct pb_member member = {.entry = (uint32_t)index, .role = one.member[0].role};
        pb_scene_manifest_fini(&one);
        ck_assert_int_eq(pb_scene_manifest_assign(out, &member), 0);
    }
}

#define SAME    PB_MANIFEST_SAME
#define NEWER   PB_MANIFEST_NEWER
#define FEWER   PB_MANIFEST_FEWER
#define OTHER   PB_MANIFEST_OTHER
#define UNKNOWN PB_MANIFEST_UNKNOWN

static const struct {
    const char *before, *now;
    enum pb_manifest_relation relation, at_best;
    const char *changed, *missing; /* "" = none */
} compared[] = {
    /* nothing in common */
    {"", "", OTHER, OTHER, "", ""},
    {"", "band a 1 0", OTHER, OTHER, "", ""},
    {"band a 1 0", "", OTHER, OTHER, "", "a"},
    {"band a 1 0", "band b 1 0", OTHER, OTHER, "", "a"},
    /* the same again, in any order and below any folder */
    {"band a 1 0", "band a 1 0", SAME, SAME, "", ""},
    {"band a 1 0 band b 2 2", "band b 2 2 band a 1 0", SAME, SAME, "", ""},
    {"band a 1 0", "image a 1 0", SAME, SAME, "", ""},
    {"band d/a 1 0", "band S.SAFE/d/a 1 0 folder S.SAFE -1 -", SAME, SAME, "", ""},
    {"band d/a 1 0", "folder S -1 - band S.SAFE/d/a 1 0", OTHER, OTHER, "", "d/a"},
    {"band a 1 0", "band d/a 1 0", OTHER, OTHER, "", "a"},
    {"band a 1 0 metadata m 1 2", "band a 1 0 metadata m 1 2", SAME, SAME, "", ""},
    {"band a 1 0 list l 1 2 sidecar s 1 0", "sidecar s 1 0 list l 1 2 band a 1 0", SAME, SAME, "",
     ""},
    {"band x?y 1 0", "band x\xffy 1 0", SAME, SAME, "", ""}, /* names as they are recorded */
    {"band d/x?y 1 0", "band d/x^y 1 0", OTHER, OTHER, "", "d/x?y"},
    /* one image is its content */
    {"image a 1 0", "image b 1 0", SAME, SAME, "", ""},
    {"image a 1 0", "image b 1 2", OTHER, OTHER, "a", ""},
    {"image a 1 0", "image b 2 0", OTHER, OTHER, "a", ""},
    {"image a 1 0", "image b 1 b", UNKNOWN, SAME, "", ""},
    {"image a 1 0", "band b 1 0", OTHER, OTHER, "", "a"},
    {"image a 1 0", "image b 1 0 sidecar s 1 0", OTHER, OTHER, "", "a"},
    {"image a 1 0", "image b 1 0 source d 1 0 companion c 1 0", SAME, SAME, "", ""},
    /* one more */
    {"band a 1 0", "band a 1 0 band b 1 0", NEWER, NEWER, "", ""},
    {"band a 1 0", "band a 1 0 metadata m 1 0", NEWER, NEWER, "", ""},
    {"band a 1 0 metadata m 1 0", "band a 1 0", NEWER, NEWER, "", ""},
    {"band a 1 0 metadata m 1 0", "band a 1 0 unused m 1 -", NEWER, NEWER, "", ""},
    {"band a 1 0", "band a 1 - band b 1 -", UNKNOWN, NEWER, "", ""},
    {"image a 1 0", "image a 1 0 sidecar s 1 0", NEWER, NEWER, "", ""},
    /* one fewer */
    {"band a 1 0 band b 1 0", "band b 1 0", FEWER, FEWER, "", "a"},
    {"band a 1 0 band b 1 0 band c 1 2", "band c 1 2 band d 1 0", FEWER, FEWER, "", "a"},
    {"band a 1 0 band b 1 0", "band b 1 -", UNKNOWN, FEWER, "", "a"},
    {"none a 1 0 band b 1 0", "band b 1 0", FEWER, FEWER, "", "a"},
    {"metadata a 1 0 band b 1 0 band c 1 0", "band b 1 0", FEWER, FEWER, "", "c"},
    /* a file that was delivered and is not read is there */
    {"band a 1 0 band b 1 0", "band b 1 0 unused a 1 -", NEWER, NEWER, "", ""},
    {"band a 1 0 band b 1 0", "band b 1 0 unused a 2 -", FEWER, FEWER, "", "a"},
    {"band a 1 0 band b 1 0", "band b 1 0 unused a -1 -", NEWER, NEWER, "", ""},
    {"band a 1 0", "unused a 1 0", OTHER, OTHER, "", ""},
    {"band a 1 0 unused b 1 0", "band a 1 0", SAME, SAME, "", ""},
    {"band a 1 0", "band a 1 0 unused b 1 0", SAME, SAME, "", ""},
    /* other content */
    {"band a 1 0", "band a 1 2", OTHER, OTHER, "a", ""},
    {"band a 1 0", "band a 2 0", OTHER, OTHER, "a", ""},
    {"band a 1 0", "band a 2 -", OTHER, OTHER, "a", ""},
    {"band a 1 0", "band a -1 0", SAME, SAME, "", ""},
    {"band a 1 -", "band a 1 0", OTHER, OTHER, "a", ""}, /* it cannot be proved */
    {"band a 1 0 band b 1 0", "band a 1 - band b 1 2", OTHER, OTHER, "b", ""},
    {"band a 1 0 band b 1 0 band c 1 0", "band b 1 2 band c 1 0", OTHER, OTHER, "b", "a"},
    {"band a 1 0 metadata m 1 0", "band a 1 0 metadata m 1 2", OTHER, OTHER, "m", ""},
    {"metadata a 1 0 band b 1 0", "metadata a 1 2 band b 1 2", OTHER, OTHER, "b", ""},
    /* a checksum decides */
    {"band a 1 0", "band a 1 -", UNKNOWN, SAME, "", ""},
    {"band a 1 b", "band a 1 0", UNKNOWN, SAME, "", ""},
    {"band a 1 0 band b 1 0", "band a 1 0 band b 1 -", UNKNOWN, SAME, "", ""},
    /* files that are not the scene's do not count */
    {"band a 1 0 source d 1 0", "band a 1 0 source d 1 2", SAME, SAME, "", ""},
    {"band a 1 0 companion c 1 0", "band a 1 0", SAME, SAME, "", ""},
    {"source d 1 0", "source d 1 0", OTHER, OTHER, "", ""},
};

static const char *name_of(const struct pb_manifest_entry *entry)
{
    return entry != NULL ? entry->path : "";
}

START_TEST(test_relation_of_two_manifests)
{
    struct pb_scene_manifest before, now;
    struct pb_manifest_comparison result;
    make_files(compared[_i].before, &before);
    make_files(compared[_i].now, &now);
    ck_assert_int_eq(pb_scene_manifest_compare(&before, &now, &result), 0);
    ck_assert_msg(result.relation == compared[_i].relation, "'%s' and '%s': %d",
                  compared[_i].before, compared[_i].now, (int)result.relation);
    ck_assert_msg(result.at_best == compared[_i].at_best, "'%s' and '%s': %d", compared[_i].before,
                  compared[_i].now, (int)result.at_best);
    ck_assert_str_eq(name_of(result.changed), compared[_i].changed);
    ck_assert_str_eq(name_of(result.missing), compared[_i].missing);
    pb_scene_manifest_fini(&before);
    pb_scene_manifest_fini(&now);
}
END_TEST

START_TEST(test_comparison_reports_the_kind_that_decides)
{
    static const char *const files[] = {"band a 1 0", "band a 1 b"};
    static const enum pb_checksum kinds[] = {PB_CHECKSUM_SHA2_256, PB_CHECKSUM_BLAKE3};
    for (size_t i = 0; i < 2; i++) {
        struct pb_scene_manifest before, now;
        struct pb_manifest_comparison result;
        make_files(files[i], &before);
        make_files(files[1 - i], &now);
        ck_assert_int_eq(pb_scene_manifest_compare(&before, &now, &result), 0);
        ck_assert_int_eq(result.relation, PB_MANIFEST_UNKNOWN);
        ck_assert_int_eq(result.kind, kinds[i]);
        pb_scene_manifest_fini(&before);
        pb_scene_manifest_fini(&now);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scene_manifest");
    TCase *tests = tcase_create("scene_manifest");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, test_json_form_is_read_back);
    tcase_add_loop_test(tests, test_parse_refuses_what_print_never_writes, 0,
                        sizeof refused / sizeof refused[0]);
    tcase_add_test(tests, test_parse_refuses_too_long_a_path);
    tcase_add_test(tests, test_counts_of_roots_and_files_are_limited);
    tcase_add_test(tests, test_form_is_never_longer_than_it_may_be);
    tcase_add_test(tests, test_all_that_is_added_is_read_back);
    tcase_add_test(tests, test_path_inside_a_folder_is_found);
    tcase_add_test(tests, test_present_place_of_the_input_is_kept);
    tcase_add_test(tests, test_roles_are_sorted_by_their_files);
    tcase_add_test(tests, test_move_takes_the_place_of_a_path);
    tcase_add_test(tests, test_remove_leaves_files_of_other_roles);
    tcase_add_test(tests, test_add_refuses_what_is_not_below_a_root);
    tcase_add_loop_test(tests, test_relation_of_two_manifests, 0,
                        sizeof compared / sizeof compared[0]);
    tcase_add_test(tests, test_comparison_reports_the_kind_that_decides);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
