/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A resident child may open no files: those of its job come as descriptors with the command. */
#include "service/worker/child_files.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/raster/raster_file.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char CONFIG[] = "pipelines:\n"
                             "  p:\n"
                             "    input:\n"
                             "      match: [\"*\"]\n"
                             "      bands: {A: 1}\n"
                             "      sources:\n"
                             "        ONE: {file: /nowhere/one.tif, bands: {B: 1}}\n"
                             "        TWO: {file: /nowhere/two.tif, bands: {C: 1}}\n"
                             "    products:\n"
                             "      - cog: {bands: [A]}\n";

static struct pb_config *config;
static struct pb_line_reader reader;
static int ends[2];
static struct pb_child_files files;

static void begin(void)
{
    static struct pb_err_list errors;
    ck_assert_msg(
        pb_config_parse(CONFIG, strlen(CONFIG), "c.yaml", &pb_products, &errors, &config) == 0,
        "%s", errors.err[0].msg);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    reader = (struct pb_line_reader){.fd = ends[1], .passes = true};
    files = (struct pb_child_files){.input = -1};
}

static void finish(void)
{
    pb_line_reader_fini(&reader);
    (void)close(ends[0]);
    (void)close(ends[1]);
    pb_config_destroy(config);
}

/* What the child makes of a command with so many descriptors, of files of its own. */
static int hand(const char *sources, size_t n_files, struct pb_err *err)
{
    static const char *const paths[] = {"/proc/self/stat", "/proc/self/status", "/proc/self/maps"};
    struct pb_json_value *command = NULL;
    char text[300];
    size_t bytes;
    int fd[3];
    for (size_t i = 0; i < n_files; i++)
        ck_assert_int_ge(fd[i] = open(paths[i], O_RDONLY | O_CLOEXEC), 0);
    (void)snprintf(
        text, sizeof text,
        "{\"cmd\":\"run\",\"pipeline\":\"p\",\"scene\":\"s\",\"input\":\"/nowhere/s.tif\"%s}",
        sources);
    ck_assert(pb_line_send(ends[0], text, strlen(text), fd, n_files));
    for (size_t i = 0; i < n_files; i++)
        (void)close(fd[i]);
    char *line = NULL;
    while ((line = pb_line_reader_next(&reader, &bytes)) == NULL)
        ck_assert(pb_line_reader_fill(&reader));
    ck_assert_int_eq(pb_json_parse(line, bytes, sizeof text, &command), 0);
    int rc = pb_child_files_take(&files, &reader, command, config, err);
    pb_json_release(command);
    return rc;
}

/* errno of an attempt to open it; 0: it is the file at `same`. */
static int open_error(const char *path, const char *same)
{
    struct pb_raster_file file;
    struct stat st;
    struct pb_err err = {0};
    errno = 0;
    int rc = pb_raster_file_open(&file, path, &err);
    int error = rc == 0 ? 0 : err.code == PB_E_INPUT_MISSING ? ENOENT : EIO;
    if (rc == 0) {
        ck_assert_int_eq(stat(same, &st), 0);
        ck_assert_uint_eq(st.st_ino, file.stat.st_ino);
    }
    pb_raster_file_close(&file);
    return error;
}

START_TEST(files_are_found_by_their_paths_until_the_job_is_over)
{
    struct pb_err err = {0};
    ck_assert_int_eq(hand(",\"sources\":[{\"error\":0},{\"error\":0}]", 3, &err), 0);
    ck_assert_int_eq(open_error("/nowhere/s.tif", "/proc/self/stat"), 0);
    ck_assert_int_eq(open_error("/nowhere/one.tif", "/proc/self/status"), 0);
    ck_assert_int_eq(open_error("/nowhere/two.tif", "/proc/self/maps"), 0);
    int input = files.input;
    pb_child_files_forget(&files);
    ck_assert_int_eq(fcntl(input, F_GETFD), -1);
    ck_assert_int_eq(open_error("/nowhere/s.tif", ""), ENOENT);
    ck_assert_int_eq(open_error("/nowhere/two.tif", ""), ENOENT);
}
END_TEST

START_TEST(what_could_not_be_opened_has_no_descriptor)
{
    struct pb_err err = {0};
    ck_assert_int_eq(hand(",\"sources\":[{\"error\":5},{\"error\":0}]", 2, &err), 0);
    ck_assert_int_eq(open_error("/nowhere/one.tif", ""), EIO);
    ck_assert_int_eq(open_error("/nowhere/two.tif", "/proc/self/status"), 0);
    pb_child_files_forget(&files);
    ck_assert_int_eq(hand("", 1, &err), 0); /* the next job reads no sources */
    ck_assert_int_eq(open_error("/nowhere/two.tif", ""), ENOENT);
    pb_child_files_forget(&files);
}
END_TEST

#define MISSING_4 "{\"error\":2},{\"error\":2},{\"error\":2},{\"error\":2}"

START_TEST(a_command_with_other_descriptors_is_refused)
{
    static const struct {
        const char *sources;
        size_t n_files;
    } cases[] = {{"", 2},
                 {",\"sources\":[{\"error\":0}]", 1},
                 {",\"sources\":[{\"error\":2}]", 2},
                 {",\"sources\":[{\"error\":-1}]", 1},
                 {",\"sources\":[{}]", 2},
                 {",\"sources\":[" MISSING_4 "," MISSING_4 "," MISSING_4 "," MISSING_4 "]",
                  1}, /* one too many */
                 {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_err err = {0};
        ck_assert_int_lt(hand(cases[i].sources, cases[i].n_files, &err), 0);
        ck_assert_int_eq(err.code, PB_E_SERVICE_PROTOCOL);
        ck_assert_int_eq(files.input, -1);
        ck_assert_uint_eq(files.sources.n, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("child_files");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, begin, finish);
    tcase_add_test(tests, files_are_found_by_their_paths_until_the_job_is_over);
    tcase_add_test(tests, what_could_not_be_opened_has_no_descriptor);
    tcase_add_test(tests, a_command_with_other_descriptors_is_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
