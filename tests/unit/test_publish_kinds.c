/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Inputs are told apart by checksums of two kinds; products of one kind are recognized by a run
 * that has the other one. */
#include "publish_fixture.h"

#include "run_suite.h"

static const enum pb_checksum both[] = {PB_CHECKSUM_SHA2_256, PB_CHECKSUM_BLAKE3};

/* A file of 100,000 bytes, all of them the digit, as the input of a run with that kind. */
static struct pb_publish_options reads(char digit, enum pb_checksum kind)
{
    enum { BYTES = 100000 };
    static char data[BYTES];
    struct pb_publish_options o = {.products = root, .scene = "scene", .pipeline = "p"};
    struct pb_raster_file file;
    struct pb_err err = {0};
    char name[64];
    snprintf(name, sizeof name, "input-%c.tif", digit);
    memset(data, digit, BYTES);
    if (!there(name)) {
        FILE *out = fopen(at(name), "wb");
        ck_assert(out != NULL && fwrite(data, 1, BYTES, out) == BYTES && fclose(out) == 0);
    }
    ck_assert_int_eq(pb_raster_file_open(&file, at(name), &err), 0);
    const struct pb_input_part part = {.file = &file};
    ck_assert_int_eq(pb_input_sum_create(&part, 1, kind, &err, &o.sum), 0);
    pb_raster_file_close(&file);
    pb_input_id_set(&o.input, name, BYTES, 1);
    return o;
}

static struct pb_publish *begin_reads(char digit, enum pb_checksum kind, const char *path,
                                      enum pb_existing existing)
{
    struct pb_publish_options o = reads(digit, kind);
    o.path = path;
    o.existing = existing;
    return begin(&o);
}

/* The words of the manifest's identity of the input. */
static void check_manifest(const char *directory, enum pb_checksum kind)
{
    struct pb_manifest m;
    int fd = open(at(directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pb_manifest_read(fd, &m), 0);
    ck_assert_str_ne(m.input.checksum[kind], "");
    pb_manifest_fini(&m);
    close(fd);
}

static void end(struct pb_publish *p, const char *text)
{
    char path[PATH_MAX];
    struct pb_err err = {0};
    ck_assert_msg(commit(p, text, &err, path) == 0, "%s", err.msg);
    ck_assert_str_eq(pb_publish_warning(p), "");
    pb_publish_close(p);
}

START_TEST(products_with_the_other_checksum_kind_are_replaced)
{
    static const char *const paths[] = {"{scene}/{pipeline}", "{scene}"};
    static const char *const inner[] = {"scene/p", "scene"};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            const enum pb_checksum first = both[k], second = both[!k];
            char name[PATH_MAX];
            snprintf(name, sizeof name, "%s/a.txt", inner[i]);
            end(begin_reads('1', first, paths[i], PB_EXISTING_REFUSE), "one");
            check_manifest(inner[i], first);
            end(begin_reads('1', second, paths[i], PB_EXISTING_REFUSE), "two");
            check_manifest(inner[i], second);
            ck_assert_str_eq(get(name), "two");
            /* Back again: the scene's directory names the first kind, the products' the second. */
            end(begin_reads('1', first, paths[i], PB_EXISTING_REFUSE), "three");
            ck_assert_str_eq(get(name), "three");
            ck_assert_int_eq(hidden(), 0);
            teardown();
            setup();
        }
}
END_TEST

START_TEST(output_exists_applies_to_other_inputs_of_that_size)
{
    for (int k = 0; k < 2; k++) {
        const enum pb_checksum first = both[k], second = both[!k];
        end(begin_reads('1', first, NULL, PB_EXISTING_REFUSE), "one");
        struct pb_publish_options other = reads('2', second);
        refuse(&other, PB_E_OUTPUT_EXISTS, "with other content");
        end(begin_reads('2', second, NULL, PB_EXISTING_VERSION), "version");
        ck_assert_str_eq(get("scene~2/p/a.txt"), "version");
        /* Both places have an input of that size, of different kinds. */
        end(begin_reads('2', first, NULL, PB_EXISTING_VERSION), "again");
        ck_assert_str_eq(get("scene~2/p/a.txt"), "again");
        ck_assert(!there("scene~3"));
        ck_assert_str_eq(get("scene/p/a.txt"), "one");
        end(begin_reads('2', second, NULL, PB_EXISTING_REPLACE), "two");
        ck_assert_str_eq(get("scene/p/a.txt"), "two");
        teardown();
        setup();
    }
}
END_TEST

/* The other kind is needed at the end only: nothing was there at the beginning. */
START_TEST(concurrent_products_are_recognized_by_kind)
{
    for (int k = 0; k < 2; k++) {
        struct pb_publish *a = begin_reads('1', both[k], NULL, PB_EXISTING_VERSION);
        struct pb_publish *b = begin_reads('1', both[!k], NULL, PB_EXISTING_VERSION);
        struct pb_publish *c = begin_reads('2', both[!k], NULL, PB_EXISTING_VERSION);
        struct pb_err err = {0};
        char path[PATH_MAX];
        end(a, "a");
        end(b, "b");
        ck_assert_str_eq(get("scene/p/a.txt"), "b");
        ck_assert_int_eq(commit(c, "c", &err, path), PB_PUBLISH_MOVED);
        ck_assert_str_eq(pb_publish_place(c), "scene~2");
        end(c, "c");
        ck_assert_str_eq(get("scene~2/p/a.txt"), "c");
        ck_assert_str_eq(get("scene/p/a.txt"), "b");
        ck_assert_int_eq(hidden(), 0);
        teardown();
        setup();
    }
}
END_TEST

START_TEST(first_mark_has_the_checksum_of_a_small_input)
{
    char path[PATH_MAX];
    struct pb_err err = {0};
    struct pb_publish *p = begin_reads('1', PB_CHECKSUM_BLAKE3, NULL, PB_EXISTING_REFUSE);
    char *end = strrchr(strcpy(path, pb_publish_directory(p)), '/');
    *end = '\0';
    check_manifest(path + strlen(root) + 1, PB_CHECKSUM_BLAKE3);
    /* The file is changed after that. */
    put(at("input-1.tif"), "other");
    ck_assert_int_lt(commit(p, "one", &err, path), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_CHANGED);
    pb_publish_close(p);
    ck_assert(!there("scene"));
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("publish_kinds");
    TCase *tc = tcase_create("publish_kinds");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, products_with_the_other_checksum_kind_are_replaced);
    tcase_add_test(tc, output_exists_applies_to_other_inputs_of_that_size);
    tcase_add_test(tc, concurrent_products_are_recognized_by_kind);
    tcase_add_test(tc, first_mark_has_the_checksum_of_a_small_input);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
