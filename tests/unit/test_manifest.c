/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "find_job.h"
#include "pipeline/publish/manifest.h"

#include "run_suite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[PATH_MAX];

static void setup(void)
{
    char made[] = "/tmp/pb-manifest-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(made));
    ck_assert_ptr_nonnull(realpath(made, root));
}

static void teardown(void)
{
    char command[PATH_MAX + 16];
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static int open_directory(const char *name)
{
    char path[PATH_MAX + 600];
    snprintf(path, sizeof path, "%s/%s", root, name);
    (void)mkdir(path, 0755);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static void put(int directory, const char *name, const char *text)
{
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

#define DIGITS "0101010101010101010101010101010101010101010101010101010101010101"

static struct pb_manifest_file files[3] = {
    {"cog", "", "a.tif", "image/tiff", 3, "sha256:" DIGITS, 5},
    {"quicklook", "rgb", "a.rgb.png", "image/png", 4, "blake3:" DIGITS, 0},
    {"quicklook", "b", "a.b.png", "image/png", 2, "", INT64_C(1700000000123456789)},
};

static struct pb_manifest products_of(const char *job, const char *scene)
{
    struct pb_manifest m = {.pipeline = "p", .file = files, .n_files = 3, .epoch = 7};
    snprintf(m.job, sizeof m.job, "%s", job);
    snprintf(m.scene, sizeof m.scene, "%s", scene);
    pb_input_id_set(&m.input, "/in/a.tif", 77, INT64_C(1700000000123456789));
    snprintf(m.input.checksum[PB_CHECKSUM_SHA2_256], PB_CHECKSUM_TEXT_BYTES, "sha256:" DIGITS);
    return m;
}

/* <root>/<scene>/p, complete. */
static int publish(const char *job, const char *scene)
{
    char path[300];
    struct pb_err err = {0};
    struct pb_manifest m = products_of(job, scene);
    close(open_directory(scene));
    snprintf(path, sizeof path, "%.255s/p", scene);
    int fd = open_directory(path);
    put(fd, "a.tif", "abc");
    put(fd, "a.rgb.png", "abcd");
    put(fd, "a.b.png", "ab");
    ck_assert_msg(pb_manifest_write(fd, &m, 0644, path, &err) == 0, "%s", err.msg);
    return fd;
}

START_TEST(reads_back_what_was_written)
{
    struct pb_manifest read, wrote = products_of("20260101-000000-abcd", "a");
    int fd = publish("20260101-000000-abcd", "a");
    ck_assert_int_eq(pb_manifest_read(fd, &read), 0);
    ck_assert_str_eq(read.job, wrote.job);
    ck_assert_uint_eq(read.epoch, 7);
    ck_assert_str_eq(read.scene, "a");
    ck_assert_str_eq(read.pipeline, "p");
    ck_assert(pb_input_id_equal(&read.input, &wrote.input));
    ck_assert_uint_eq(read.n_files, 3);
    ck_assert_int_eq(memcmp(read.file, files, sizeof files), 0);
    ck_assert_int_eq(pb_manifest_check(fd, &read), 0);
    pb_manifest_fini(&read);
    close(fd);
}
END_TEST

START_TEST(a_scene_directory_has_an_input_and_no_files)
{
    struct pb_manifest read, m = {.scene = "a"};
    struct pb_err err = {0};
    int fd = open_directory("a");
    pb_input_id_set(&m.input, "a.tif", 1, 2);
    ck_assert_int_eq(pb_manifest_write(fd, &m, 0644, "a", &err), 0);
    ck_assert_int_eq(pb_manifest_read(fd, &read), 0);
    ck_assert_str_eq(read.pipeline, "");
    ck_assert(pb_input_id_alike(&read.input, &m.input));
    pb_manifest_fini(&read);
    close(fd);
}
END_TEST

START_TEST(checksums_of_both_kinds_are_kept)
{
    struct pb_manifest read, m = {.scene = "a"};
    struct pb_err err = {0};
    int fd = open_directory("a");
    pb_input_id_set(&m.input, "a.tif", 1, 2);
    snprintf(m.input.checksum[PB_CHECKSUM_SHA2_256], PB_CHECKSUM_TEXT_BYTES, "sha256:" DIGITS);
    for (int both = 0; both < 2; both++) {
        if (both)
            snprintf(m.input.checksum[PB_CHECKSUM_BLAKE3], PB_CHECKSUM_TEXT_BYTES,
                     "blake3:" DIGITS);
        ck_assert_int_eq(pb_manifest_write(fd, &m, 0644, "a", &err), 0);
        ck_assert_int_eq(pb_manifest_read(fd, &read), 0);
        ck_assert_int_eq(memcmp(read.input.checksum, m.input.checksum, sizeof m.input.checksum), 0);
        pb_manifest_fini(&read);
    }
    close(fd);
}
END_TEST

START_TEST(what_others_wrote_is_not_taken)
{
    static const char *const others[] = {
        "",
        "{}",
        "null",
        "[1]",
        "not json",
        "{\"manifest\":2,\"pushbroom\":\"1\",\"scene\":\"a\",\"input\":{\"name\":\"a\",\"bytes\":1,"
        "\"mtime_ns\":1}}",
        "{\"manifest\":1,\"pushbroom\":\"1\",\"scene\":\"../"
        "a\",\"input\":{\"name\":\"a\",\"bytes\":"
        "1,\"mtime_ns\":1}}",
        "{\"manifest\":1,\"pushbroom\":\"1\",\"scene\":\"a\",\"input\":{\"name\":\"a\",\"bytes\":1,"
        "\"mtime_ns\":1,\"blake3\":1}}",
        "{\"manifest\":1,\"pushbroom\":\"1\",\"scene\":\"a\",\"input\":{\"name\":\"a\",\"bytes\":-"
        "1,"
        "\"mtime_ns\":1}}",
        "{\"manifest\":1,\"pushbroom\":\"1\",\"scene\":\"a\",\"pipeline\":\"p\",\"job\":\"\","
        "\"input\":{\"name\":\"a\",\"bytes\":1,\"mtime_ns\":1}}",
        "{\"manifest\":1,\"pushbroom\":\"1\",\"scene\":\"a\",\"pipeline\":\"p\",\"job\":\"\","
        "\"epoch\":-1,\"input\":{\"name\":\"a\",\"bytes\":1,\"mtime_ns\":1},\"files\":[]}",
        "{\"manifest\":1,\"pushbroom\":\"1\",\"scene\":\"a\",\"pipeline\":\"p\",\"job\":\"\","
        "\"input\":{\"name\":\"a\",\"bytes\":1,\"mtime_ns\":1},\"files\":[{\"type\":\"cog\","
        "\"file\":\"../x\",\"bytes\":1,\"sha256\":\"0\",\"media_type\":\"t\"}]}",
    };
    struct pb_manifest read;
    int fd = open_directory("a");
    ck_assert_int_eq(pb_manifest_read(fd, &read), -ENOENT);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        put(fd, PB_MANIFEST_FILE, others[i]);
        ck_assert_msg(pb_manifest_read(fd, &read) == -EINVAL, "%s", others[i]);
    }
    ck_assert_int_eq(unlinkat(fd, PB_MANIFEST_FILE, 0), 0);
    close(publish("", "b"));
    ck_assert_int_eq(symlinkat("../b/p/" PB_MANIFEST_FILE, fd, PB_MANIFEST_FILE), 0);
    ck_assert_int_eq(pb_manifest_read(fd, &read), -EINVAL);
    ck_assert_int_eq(unlinkat(fd, PB_MANIFEST_FILE, 0), 0);
    ck_assert_int_eq(mkfifoat(fd, PB_MANIFEST_FILE, 0644), 0);
    ck_assert_int_eq(pb_manifest_read(fd, &read), -EINVAL); /* and does not wait for a writer */
    close(fd);
}
END_TEST

START_TEST(names_that_are_no_utf8_stay_different)
{
    struct pb_input_id a, b;
    pb_input_id_set(&a, "/x/a\xff.tif", 1, 1);
    pb_input_id_set(&b, "/x/a\xfe.tif", 1, 1);
    ck_assert_str_ne(a.name, b.name);
    ck_assert_str_eq(a.name, "bytes:a%FF.tif");
    pb_input_id_set(&b, "/y/a\xff.tif", 1, 1);
    ck_assert_str_eq(a.name, b.name);
    char flood[256];
    memset(flood, 0xff, 255);
    flood[255] = '\0';
    pb_input_id_set(&a, flood, 1, 1);
    ck_assert_uint_eq(strlen(a.name), 6 + 3 * 255);
}
END_TEST

START_TEST(inputs_are_equal_only_by_a_checksum_that_both_have)
{
    struct pb_input_id a, b;
    pb_input_id_set(&a, "a.tif", 1, 1);
    pb_input_id_set(&b, "a.tif", 1, 1);
    ck_assert(pb_input_id_alike(&a, &b));
    ck_assert(!pb_input_id_equal(&a, &b));
    for (int kind = 0; kind < PB_CHECKSUM_KINDS; kind++) {
        char *of_a = a.checksum[kind], *of_b = b.checksum[kind];
        strcpy(of_a, "x:1");
        ck_assert(!pb_input_id_equal(&a, &b) && !pb_input_id_equal(&b, &a));
        ck_assert(!pb_input_id_comparable(&a, &b));
        strcpy(of_b, "x:1");
        ck_assert(pb_input_id_comparable(&a, &b));
        ck_assert(pb_input_id_equal(&a, &b));
        strcpy(of_b, "x:2");
        ck_assert(!pb_input_id_equal(&a, &b));
        ck_assert(pb_input_id_comparable(&a, &b));
        of_a[0] = of_b[0] = '\0';
    }
    /* Different kinds cannot be compared; a second kind that is known of both decides. */
    strcpy(a.checksum[PB_CHECKSUM_SHA2_256], "x:1");
    strcpy(b.checksum[PB_CHECKSUM_BLAKE3], "x:1");
    ck_assert(!pb_input_id_comparable(&a, &b) && !pb_input_id_equal(&a, &b));
    strcpy(b.checksum[PB_CHECKSUM_SHA2_256], "x:1");
    ck_assert(pb_input_id_comparable(&a, &b) && pb_input_id_equal(&a, &b));
}
END_TEST

static int find(const char *job, char *directory)
{
    return find_job(root, "a", "p", job, directory, NULL);
}

START_TEST(products_of_a_job_are_found_anywhere_in_its_scene)
{
    char directory[PATH_MAX], expected[PATH_MAX + 32];
    struct pb_manifest m;
    ck_assert_int_eq(find("j2", directory), -ENOENT);
    close(publish("j1", "a"));
    close(publish("j2", "a~2"));
    close(publish("j3", "ab"));
    ck_assert_int_eq(find("j2", directory), 0);
    snprintf(expected, sizeof expected, "%s/a~2/p", root);
    ck_assert_str_eq(directory, expected);
    ck_assert_int_eq(find("j1", directory), 0);
    ck_assert_int_eq(find("j3", directory), -ENOENT); /* job of another scene */
    ck_assert_int_eq(find("", directory), -ENOENT);
    ck_assert_int_eq(find_job(root, "a", "q", "j1", directory, NULL), -ENOENT);
    ck_assert_int_eq(find_job(root, "a", "p", "j1", directory, &m), 0);
    ck_assert_str_eq(m.file[1].name, "rgb");
    pb_manifest_fini(&m);
}
END_TEST

START_TEST(products_that_are_not_all_there_are_not_found)
{
    char directory[PATH_MAX];
    int fd = publish("j", "a");
    put(fd, "a.tif", "longer");
    ck_assert_int_eq(find("j", directory), -ENOENT);
    ck_assert_int_eq(unlinkat(fd, "a.tif", 0), 0);
    ck_assert_int_eq(find("j", directory), -ENOENT);
    put(fd, "x", "abc");
    ck_assert_int_eq(symlinkat("x", fd, "a.tif"), 0);
    ck_assert_int_eq(find("j", directory), -ENOENT);
    ck_assert_int_eq(unlinkat(fd, "a.tif", 0), 0);
    put(fd, "a.tif", "abc");
    ck_assert_int_eq(find("j", directory), 0);
    close(fd);
}
END_TEST

START_TEST(says_when_it_could_not_look)
{
    char directory[PATH_MAX], none[PATH_MAX + 8];
    snprintf(none, sizeof none, "%s/none/", root);
    ck_assert_int_eq(find_job(none, "a", "p", "j", directory, NULL), -ENOENT);
    put(open_directory("."), "file", "x");
    snprintf(none, sizeof none, "%s/file", root);
    ck_assert_int_eq(find_job(none, "a", "p", "j", directory, NULL), -ENOTDIR);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("manifest");
    TCase *tc = tcase_create("manifest");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, reads_back_what_was_written);
    tcase_add_test(tc, a_scene_directory_has_an_input_and_no_files);
    tcase_add_test(tc, checksums_of_both_kinds_are_kept);
    tcase_add_test(tc, what_others_wrote_is_not_taken);
    tcase_add_test(tc, names_that_are_no_utf8_stay_different);
    tcase_add_test(tc, inputs_are_equal_only_by_a_checksum_that_both_have);
    tcase_add_test(tc, products_of_a_job_are_found_anywhere_in_its_scene);
    tcase_add_test(tc, products_that_are_not_all_there_are_not_found);
    tcase_add_test(tc, says_when_it_could_not_look);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
