/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * Faults below a raster: reads that fail, descriptors that run out, files that change while they
 * are read. pread is this program's own, so every read can be made to fail in turn. Works on real
 * files below PB_SHARED_DATA; without them it is skipped with a message. */
#include "pipeline/raster/raster.h"
#include "config/limits_config.h"
#include "pipeline/raster/raster_file.h"

#include "run_suite.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define DERIVED(name) PB_SHARED_DATA "/derived/" name

static const struct pb_limits limits = {
    .max_pixels = UINT64_C(200000000000),
    .max_block_bytes = UINT64_C(256) << 20,
    .max_side_px = 1000000,
    .max_bands = 64,
    .max_directories = 64,
};

/* --- a pread that fails on demand ------------------------------------------------------------ */

static atomic_long reads;      /* since the last arm */
static atomic_long failing_at; /* the read that fails; -1 = none */
static atomic_int failing_errno;

static void arm(long at, int error)
{
    atomic_store(&reads, 0);
    atomic_store(&failing_errno, error);
    atomic_store(&failing_at, at);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t at)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "pread");
    if (atomic_fetch_add(&reads, 1) == atomic_load(&failing_at)) {
        errno = atomic_load(&failing_errno);
        return -1;
    }
    return real(fd, to, bytes, at);
}

/* --- what a run does with a raster ------------------------------------------------------------*/

/* *out: the pixels and then the mask, the caller's; NULL = of no interest. */
static int read_into(struct pb_raster *raster, struct pb_err *err, char **out, size_t *out_bytes)
{
    const struct pb_raster_info *info = pb_raster_info(raster);
    const struct pb_rect all = {0, 0, info->width, info->height};
    size_t row = (size_t)all.w * 8, plane = row * (size_t)all.h;
    int32_t bands[PB_BANDS_MAX];
    for (int32_t i = 0; i < info->n_bands; i++)
        bands[i] = i + 1;
    size_t bytes = plane * (size_t)info->n_bands, mask_bytes = (size_t)all.w * (size_t)all.h;
    char *data = calloc(1, bytes + mask_bytes);
    uint8_t *mask = (uint8_t *)data + bytes;
    int rc = pb_raster_read(raster, bands, (size_t)info->n_bands,
                            &(struct pb_window){data, row, plane, mask, (size_t)all.w, all}, err);
    if (out != NULL)
        *out = data;
    else
        free(data);
    if (out_bytes != NULL)
        *out_bytes = bytes + mask_bytes;
    return rc;
}

static int read_whole(struct pb_raster *raster, struct pb_err *err)
{
    return read_into(raster, err, NULL, NULL);
}

static int use(const char *path, struct pb_err *err)
{
    static const struct pb_geo_extra extra = {.n_bands = 1, .type = PB_F32};
    struct pb_raster *raster = NULL, *again = NULL;
    struct pb_tiff_tags tags = {NULL, 0};
    int rc = pb_raster_open(path, &limits, err, &raster);
    if (rc == 0)
        rc = pb_raster_geo_tags(raster, &extra, err, &tags);
    pb_tiff_tags_free(&tags);
    if (rc == 0)
        rc = pb_raster_open_again(raster, &limits, err, &again);
    if (rc == 0)
        rc = read_whole(again, err);
    pb_raster_close(again);
    pb_raster_close(raster);
    return rc;
}

static const char *const files[] = {
    DERIVED("l7_nodata255.tif"),     DERIVED("l7_cog.tif"),
    DERIVED("l7_one_strip.tif"),     DERIVED("l7_bigtiff_be_deflate.tif"),
    DERIVED("l7_none_pixel.tif"),    DERIVED("l7_zstd_p2_band.tif"),
    DERIVED("l7_mask_internal.tif"),
};

static void every_read_fails_with(int error, enum pb_code code)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct pb_err err = {0};
        arm(-1, 0);
        ck_assert_msg(use(files[i], &err) == 0, "%s: %s", files[i], err.msg);
        long n = atomic_load(&reads), step = n / 60 + 1;
        ck_assert_int_gt(n, 5);
        for (long at = 0; at < n; at += at < 30 ? 1 : step) {
            err = (struct pb_err){0};
            arm(at, error);
            int rc = use(files[i], &err);
            ck_assert_msg(rc < 0, "%s: read %ld of %ld failed and nobody noticed", files[i], at, n);
            ck_assert_msg(err.code == code, "%s: read %ld: %s, %s", files[i], at,
                          pb_code_id(err.code), err.msg);
            ck_assert_ptr_nonnull(strstr(err.msg, strerror(error)));
        }
    }
    arm(-1, 0);
}

START_TEST(takes_no_failed_read_for_a_damaged_file)
{
    every_read_fails_with(EIO, PB_E_INPUT_IO);
}
END_TEST

START_TEST(takes_no_lack_of_memory_for_a_damaged_file)
{
    every_read_fails_with(ENOMEM, PB_E_MEMORY);
}
END_TEST

START_TEST(takes_no_lack_of_descriptors_for_a_missing_file)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    struct rlimit was, none;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = (struct rlimit){0, was.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int rc = pb_raster_open(files[0], &limits, &err, &raster);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
    ck_assert_int_eq(rc, pb_code_errno(PB_E_SYSTEM_FILES));
    ck_assert_int_eq(err.code, PB_E_SYSTEM_FILES);
    ck_assert_int_eq(pb_code_class(err.code), PB_CLASS_MACHINE);
}
END_TEST

START_TEST(reads_the_same_through_a_raster_opened_again)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct pb_err err = {0};
        struct pb_raster *first = NULL, *again = NULL;
        char *one = NULL, *other = NULL;
        size_t bytes = 0, other_bytes = 0;
        ck_assert_int_eq(pb_raster_open(files[i], &limits, &err, &first), 0);
        ck_assert_int_eq(pb_raster_open_again(first, &limits, &err, &again), 0);
        ck_assert_int_eq(read_into(again, &err, &other, &other_bytes), 0);
        ck_assert_int_eq(pb_raster_unchanged(again, &err), 0);
        pb_raster_close(again);
        ck_assert_int_eq(read_into(first, &err, &one, &bytes), 0);
        ck_assert_uint_eq(bytes, other_bytes);
        ck_assert_msg(memcmp(one, other, bytes) == 0, "%s", files[i]);
        pb_raster_close(first);
        free(one);
        free(other);
    }
}
END_TEST

/* --- files that change ------------------------------------------------------------------------*/

static char *copied(const char *path)
{
    static char name[64];
    static char buffer[1 << 20];
    (void)snprintf(name, sizeof name, "/tmp/pb_test_file_XXXXXX");
    int to = mkstemp(name), from = open(path, O_RDONLY);
    ssize_t n = read(from, buffer, sizeof buffer);
    ck_assert(to >= 0 && n > 0 && write(to, buffer, (size_t)n) == n);
    close(from);
    close(to);
    return name;
}

START_TEST(notices_a_rewrite_that_restores_the_mtime)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    struct stat st;
    char *name = copied(files[0]);
    ck_assert_int_eq(pb_raster_open(name, &limits, &err, &raster), 0);
    ck_assert_int_eq(pb_raster_unchanged(raster, &err), 0);
    ck_assert_int_eq(stat(name, &st), 0);
    int fd = open(name, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "x", 1, st.st_size - 1), 1);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
    ck_assert_int_eq(pb_raster_unchanged(raster, &err), -EAGAIN);
    ck_assert_int_eq(err.code, PB_E_INPUT_CHANGED);
    ck_assert_ptr_nonnull(strstr(err.msg, "ctime"));
    pb_raster_close(raster);
    unlink(name);
}
END_TEST

START_TEST(reads_the_file_whose_header_it_checked)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL, *again = NULL;
    char *name = copied(files[0]);
    ck_assert_int_eq(pb_raster_open(name, &limits, &err, &raster), 0);
    ck_assert_int_eq(pb_raster_open_again(raster, &limits, &err, &again), 0);
    ck_assert_int_eq(unlink(name), 0); /* its pixels are still those that were opened */
    ck_assert_int_eq(read_whole(raster, &err), 0);
    ck_assert_int_eq(read_whole(again, &err), 0);
    ck_assert_int_eq(pb_raster_unchanged(raster, &err), -EAGAIN);
    pb_raster_close(again);
    ck_assert_int_eq(pb_raster_open_again(raster, &limits, NULL, &again), -EAGAIN);
    pb_raster_close(raster);
}
END_TEST

/* The pixels of `path`, and those of the same bytes between others in a file with holes. */
static void is_the_same_inside(const char *path)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    char *plain = NULL, *inside = NULL, name[] = "/tmp/pb_part_XXXXXX", chunk[4096];
    size_t plain_bytes = 0, inside_bytes = 0;
    struct pb_raster_file whole, part = {.fd = mkstemp(name)};
    ck_assert_int_eq(pb_raster_open(path, &limits, &err, &raster), 0);
    ck_assert_int_eq(read_into(raster, &err, &plain, &plain_bytes), 0);
    pb_raster_close(raster);
    ck_assert_int_eq(pb_raster_file_open(&whole, path, &err), 0);
    part.base = 1000003; /* after a hole */
    part.bytes = whole.bytes;
    for (uint64_t at = 0; at < whole.bytes; at += sizeof chunk) {
        ssize_t n = pb_raster_file_read(&whole, at, chunk, sizeof chunk);
        ck_assert_int_eq(pwrite(part.fd, chunk, (size_t)n, (off_t)(part.base + at)), n);
    }
    ck_assert_int_eq(ftruncate(part.fd, (off_t)(part.base + part.bytes + 5000000)), 0);
    ck_assert_int_eq(fstat(part.fd, &part.stat), 0);
    part.path = strdup("archive.tar/part.tif");
    pb_raster_file_hand_open(0, &part);
    int rc = pb_raster_open(part.path, &limits, &err, &raster);
    ck_assert_msg(rc == 0, "%s inside another file: %s", path, err.msg);
    ck_assert_uint_eq(pb_raster_info(raster)->file_bytes, whole.bytes);
    ck_assert_int_eq(read_into(raster, &err, &inside, &inside_bytes), 0);
    ck_assert_uint_eq(inside_bytes, plain_bytes);
    ck_assert_msg(memcmp(inside, plain, plain_bytes) == 0, "%s: other pixels", path);
    pb_raster_close(raster);
    part.bytes /= 2; /* the following bytes are not its own */
    pb_raster_file_hand_open(0, &part);
    rc = pb_raster_open(part.path, &limits, &err, &raster);
    ck_assert_int_lt(rc, 0); /* its blocks end after it */
    ck_assert_int_eq(err.code, PB_E_INPUT_TRUNCATED);
    pb_raster_file_hand_open(0, NULL);
    pb_raster_file_close(&whole);
    pb_raster_file_close(&part);
    ck_assert_int_eq(unlink(name), 0);
    free(plain);
    free(inside);
}

START_TEST(reads_a_part_of_a_file_as_a_file)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        is_the_same_inside(files[i]);
}
END_TEST

int main(void)
{
    if (access(files[0], R_OK) != 0) {
        printf("skipped: no sample files below %s\n", PB_SHARED_DATA);
        return 77;
    }
    arm(-1, 0);
    pb_raster_init();
    Suite *suite = suite_create("raster_file");
    TCase *faults = tcase_create("faults"), *changes = tcase_create("changes");
    tcase_add_test(faults, takes_no_failed_read_for_a_damaged_file);
    tcase_add_test(faults, takes_no_lack_of_memory_for_a_damaged_file);
    tcase_add_test(faults, takes_no_lack_of_descriptors_for_a_missing_file);
    tcase_add_test(faults, reads_the_same_through_a_raster_opened_again);
    tcase_add_test(changes, notices_a_rewrite_that_restores_the_mtime);
    tcase_add_test(changes, reads_the_file_whose_header_it_checked);
    tcase_set_timeout(faults, 60);
    tcase_add_test(changes, reads_a_part_of_a_file_as_a_file);
    suite_add_tcase(suite, faults);
    suite_add_tcase(suite, changes);
    return run_suite(suite);
}
