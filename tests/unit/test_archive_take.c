/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/archive/archive.h"
#include "config/limits_config.h"

#include <archive.h>
#include <archive_entry.h>
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MIB    (UINT64_C(1) << 20)
#define MEMBER (8 * MIB)

static void add(struct archive *a, const char *name, const void *data)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)MEMBER);
    ck_assert_int_eq(archive_write_header(a, entry), ARCHIVE_OK);
    ck_assert_int_eq(archive_write_data(a, data, MEMBER), (la_ssize_t)MEMBER);
    archive_entry_free(entry);
}

/* "packed" and "stored", of zeros. */
static int make_zip(void)
{
    int fd = memfd_create("zip", 0);
    struct archive *a = archive_write_new();
    void *zeros = calloc(1, MEMBER);
    ck_assert(fd >= 0 && a != NULL && zeros != NULL);
    ck_assert_int_eq(archive_write_set_format_zip(a), ARCHIVE_OK);
    ck_assert_int_eq(archive_write_open_fd(a, fd), ARCHIVE_OK);
    (void)archive_write_zip_set_compression_deflate(a);
    add(a, "packed", zeros);
    (void)archive_write_zip_set_compression_store(a);
    add(a, "stored", zeros);
    ck_assert_int_eq(archive_write_free(a), ARCHIVE_OK);
    free(zeros);
    return fd;
}

/* Takes the packed one twice, and the stored one; this many bytes may be used. */
static int take(int zip, uint64_t may_use, struct pb_err *err, struct pb_archive_wish wish[3])
{
    const struct pb_limits limits = {.archive_members = 10,
                                     .archive_depth = 2,
                                     .archive_bytes = 1024 * MIB,
                                     .archive_ratio = 1000};
    struct pb_archive archive = {.goes_on = NULL};
    struct statvfs fs;
    struct stat st;
    char path[] = "/dev/shm/test_archive_take.XXXXXX";
    int room = mkstemp(path);
    ck_assert(room >= 0 && unlink(path) == 0 && fstat(zip, &st) == 0);
    const struct pb_file_part part = {.fd = zip, .bytes = (uint64_t)st.st_size};
    ck_assert_int_eq(pb_archive_list(&archive, &part, "x.zip", &limits, err), 0);
    ck_assert_uint_eq(archive.n, 2);
    ck_assert_int_eq(fstatvfs(room, &fs), 0);
    const uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    ck_assert_uint_gt(free_bytes, 2 * MEMBER);
    for (size_t i = 0; i < 3; i++)
        wish[i] = (struct pb_archive_wish){.member = i == 1};
    *err = (struct pb_err){0};
    int rc = pb_archive_take(&archive, wish, 3, room, "/dev/shm", free_bytes - may_use, err);
    pb_archive_close(&archive);
    (void)close(room);
    return rc;
}

START_TEST(only_what_is_unpacked_needs_space)
{
    struct pb_archive_wish wish[3];
    struct pb_err err = {0};
    int zip = make_zip();
    /* Others may use /dev/shm between the look at it and the use of it. */
    for (int i = 0; i < 20 && take(zip, MEMBER + MEMBER / 2, &err, wish) != 0; i++)
        ck_assert_msg(i < 19 && err.code == PB_E_OUTPUT_FULL, "%s", err.msg);
    ck_assert(!wish[0].in_place && wish[1].in_place && !wish[2].in_place);
    ck_assert_uint_eq(wish[0].part.base, wish[2].part.base);
    for (int i = 0; i < 20 && take(zip, MEMBER / 2, &err, wish) == 0; i++)
        ck_assert_int_lt(i, 19);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_FULL);
    (void)close(zip);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("archive_take");
    TCase *all = tcase_create("all");
    tcase_add_test(all, only_what_is_unpacked_needs_space);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
