/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads arm64 */
/* Properties that the integration test cannot see: allocations and memory, refusals, missing tiles.
 * That test checks pixels and validity. */
#include "pipeline/cog/cog_writer.h"
#include "pipeline/io/sha256.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Every allocation of the process, those of the libraries too. */
static _Atomic size_t n_allocations;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
/* As in sanitizer/allocator_interface.h, which gcc does not bring. Not 0: they are in place. */
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                              void (*)(const volatile void *));

static void on_malloc(const volatile void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
    n_allocations++;
}

static void on_free(const volatile void *memory)
{
    (void)memory;
}
#else
#define SANITIZED 0
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

void *malloc(size_t bytes)
{
    n_allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    n_allocations++;
    return __libc_calloc(n, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    n_allocations++;
    return __libc_realloc(memory, bytes);
}
#endif

static char directory[64] = "/tmp/pb-cog-XXXXXX", path[128];
static struct pb_grid grid;

static struct pb_cog_options defaults(int32_t w, int32_t h)
{
    ck_assert_int_eq(pb_grid_init(&grid, w, h, 128), 0);
    return (struct pb_cog_options){.grid = &grid,
                                   .order = PB_ORDER_ROWS,
                                   .tiles_in_flight = 4,
                                   .workers = 2,
                                   .directory = directory,
                                   .path = path,
                                   .n_bands = 2,
                                   .type = PB_F32,
                                   .compress = PB_COMPRESS_DEFLATE,
                                   .block_px = 64};
}

/* Check allocates for every assertion, so there is one only. */
static int feed(struct pb_cog_writer *writer, uint32_t n, float *pixels)
{
    for (uint32_t i = 0; i < n; i++) {
        struct pb_rect core = pb_grid_core(&grid, i);
        size_t px = (size_t)core.w * (size_t)core.h;
        for (size_t p = 0; p < 2 * px; p++)
            pixels[p] = (float)(p % 977) * 0.25f;
        const float *planes[2] = {pixels, pixels + px};
        int rc = pb_cog_writer_tile(writer, &core, planes, i % 2, NULL);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void finish(struct pb_cog_writer *writer, int want, struct pb_err *err)
{
    struct pb_cog_summary summary;
    ck_assert_int_eq(pb_cog_writer_finish(writer, err, &summary), want);
    ck_assert_int_eq(access(path, F_OK) == 0, want == 0);
    (void)unlink(path);
}

START_TEST(tiles_allocate_nothing_beyond_the_declared_memory)
{
#if SANITIZED
    ck_assert_int_ne(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free), 0);
    printf("skipped: that memory is what was declared: a sanitizer's malloc does not say it\n");
#endif
    size_t counted = n_allocations;
    float *pixels = malloc(128 * 128 * 2 * sizeof *pixels);
    ck_assert_uint_gt(n_allocations, counted);
    pb_sha256_destroy(pb_sha256_create()); /* libcrypto takes some for itself, once */
    for (int compress = 0; compress <= PB_COMPRESS_LZW; compress++)
        for (int order = 0; order < 2; order++) {
            struct pb_cog_options options = defaults(1000, 900);
            struct pb_cog_writer *writer;
            options.compress = (enum pb_compress)compress;
            options.order = (enum pb_order)order;
            options.tiles_in_flight = pb_grid_count(&grid); /* fed row by row whatever the order */
#if !SANITIZED
            uint64_t declared = pb_cog_writer_bytes(&options);
            struct mallinfo2 before = mallinfo2();
#endif
            ck_assert_int_eq(pb_cog_writer_create(&options, NULL, &writer), 0);
#if !SANITIZED
            struct mallinfo2 after = mallinfo2();
            ck_assert_uint_le(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd,
                              declared + 65536);
#endif
            size_t count = n_allocations;
            int rc = feed(writer, pb_grid_count(&grid), pixels);
            count = n_allocations - count;
            ck_assert_uint_eq(count, 0);
            ck_assert_int_eq(rc, 0);
            finish(writer, 0, NULL);
            pb_cog_writer_destroy(writer);
        }
    free(pixels);
}
END_TEST

START_TEST(a_missing_tile_is_an_error_and_leaves_no_file)
{
    static const enum pb_compress how[] = {PB_COMPRESS_NONE, PB_COMPRESS_DEFLATE};
    float *pixels = malloc(128 * 128 * 2 * sizeof *pixels);
    for (int i = 0; i < 2; i++) {
        struct pb_cog_options options = defaults(300, 300);
        struct pb_cog_writer *writer;
        struct pb_err err = {0};
        options.compress = how[i];
        ck_assert_int_eq(pb_cog_writer_create(&options, NULL, &writer), 0);
        ck_assert_int_eq(feed(writer, pb_grid_count(&grid) - 1, pixels), 0);
        finish(writer, -EIO, &err);
        ck_assert_int_eq(err.code, PB_E_SYSTEM);
        pb_cog_writer_destroy(writer);
        pb_cog_writer_destroy(NULL);
    }
    free(pixels);
}
END_TEST

START_TEST(blocks_of_one_size_go_straight_into_the_file)
{
    struct pb_cog_options options = defaults(300, 300);
    struct pb_cog_writer *writer;
    struct stat made, done;
    float *pixels = malloc(128 * 128 * 2 * sizeof *pixels);
    options.compress = PB_COMPRESS_NONE;
    ck_assert_int_eq(pb_cog_writer_create(&options, NULL, &writer), 0);
    ck_assert_int_eq(feed(writer, pb_grid_count(&grid), pixels), 0);
    ck_assert_int_eq(stat(path, &made), 0);
    struct pb_cog_summary summary;
    ck_assert_int_eq(pb_cog_writer_finish(writer, NULL, &summary), 0);
    ck_assert_int_eq(stat(path, &done), 0);
    ck_assert_uint_eq(made.st_ino, done.st_ino);
    ck_assert_int_eq(made.st_size, done.st_size);
    ck_assert_uint_eq((uint64_t)done.st_size, summary.bytes);
    pb_cog_writer_destroy(writer);
    ck_assert_int_eq(unlink(path), 0);
    /* Given up before the end: nothing stays. */
    ck_assert_int_eq(pb_cog_writer_create(&options, NULL, &writer), 0);
    ck_assert_int_eq(feed(writer, 1, pixels), 0);
    pb_cog_writer_destroy(writer);
    ck_assert_int_ne(access(path, F_OK), 0);
    free(pixels);
}
END_TEST

/* Properties of the file system. */
static off_t longest = INT64_MAX; /* length limit of a file */
static bool holes = true;

/* Instead of the C library's. */
int ftruncate(int fd, off_t length)
{
    struct stat st;
    if (length > longest) {
        errno = EFBIG;
        return -1;
    }
    if (!holes && fstat(fd, &st) == 0 && length > st.st_size)
        return fallocate(fd, 0, 0, length);
    return (int)syscall(SYS_ftruncate, fd, length);
}

enum place { USUAL, PROCESS_LIMIT, SHORT_FILES, NO_HOLES, PLACES };

static int write_there(enum place place, const struct pb_cog_options *options, uint64_t bytes,
                       struct pb_err *err, struct pb_cog_summary *out_summary)
{
    struct pb_cog_writer *writer = NULL;
    struct rlimit was, limit;
    struct stat st = {0};
    float *pixels = malloc(128 * 128 * 2 * sizeof *pixels);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
    limit = was;
    limit.rlim_cur = bytes;
    longest = place == SHORT_FILES ? (off_t)bytes : INT64_MAX;
    holes = place != NO_HOLES;
    if (place == PROCESS_LIMIT)
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int rc = pb_cog_writer_create(options, err, &writer);
    rc = rc ? rc : feed(writer, pb_grid_count(&grid), pixels);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size > 0, place == USUAL); /* a gap is where it costs nothing */
    rc = rc ? rc : pb_cog_writer_finish(writer, err, out_summary);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
    pb_cog_writer_destroy(writer);
    free(pixels);
    return rc;
}

/* The gap in front of the full image may be longer than the file. */
START_TEST(a_place_that_holds_the_file_is_enough)
{
    struct pb_cog_options options = defaults(900, 900);
    struct pb_cog_summary summary[PLACES] = {{0}};
    options.overviews = PB_OVERVIEWS_AVERAGE;
    options.pool_bytes = 1; /* blocks do not wait in memory */
    (void)signal(SIGXFSZ, SIG_IGN);
    for (enum place place = USUAL; place < PLACES; place++) {
        struct pb_err err = {0};
        int rc = write_there(place, &options, summary[USUAL].bytes, &err, &summary[place]);
        ck_assert_msg(rc == 0, "place %d: %d %s", (int)place, rc, err.msg);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_uint_eq(summary[place].bytes, summary[USUAL].bytes);
        ck_assert_str_eq(summary[place].checksum, summary[USUAL].checksum);
    }
}
END_TEST

static void refuse(const struct pb_cog_options *options, const char *words)
{
    struct pb_err err = {0};
    struct pb_cog_writer *writer;
    ck_assert_uint_eq(pb_cog_writer_bytes(options), UINT64_MAX);
    ck_assert_int_eq(pb_cog_writer_create(options, &err, &writer), -EINVAL);
    ck_assert_int_eq(err.code, PB_E_PIPELINE_PRODUCT);
    ck_assert_msg(strstr(err.msg, words) != NULL, "'%s' does not say '%s'", err.msg, words);
}

START_TEST(options_that_cannot_be_are_refused_with_words)
{
    struct pb_cog_options o = defaults(300, 300);
    o.type = PB_U16;
    refuse(&o, "nodata");
    o.has_nodata = true;
    o.nodata = 70000;
    refuse(&o, "70000");
    o.nodata = 0;
    o.predictor = 3;
    refuse(&o, "predictor 3");
    o = defaults(300, 300);
    o.level = 30;
    refuse(&o, "levels 1 to 12");
    o = defaults(300, 300);
    o.block_px = 256; /* tiles of 128 */
    refuse(&o, "cannot be cut");
    o = defaults(100, 100); /* one tile: blocks may be larger */
    o.block_px = 4096;
    o.n_bands = 20;
    refuse(&o, "1 GiB");
    o.n_bands = 0;
    refuse(&o, "bands");
}
END_TEST

START_TEST(an_unwritable_directory_is_named)
{
    struct pb_cog_options options = defaults(300, 300);
    struct pb_cog_writer *writer;
    struct pb_err err = {0};
    options.path = "/nonexistent/place/x.tif";
    ck_assert_int_lt(pb_cog_writer_create(&options, &err, &writer), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "/nonexistent/place"));
}
END_TEST

START_TEST(nodata_is_reported_as_it_is_stored)
{
    struct pb_cog_options options = defaults(10, 10);
    ck_assert(isnan(pb_cog_writer_nodata(&options)));
    options.has_nodata = true;
    options.nodata = 0.1;
    ck_assert_double_eq(pb_cog_writer_nodata(&options), (double)0.1f);
    options.type = PB_F64;
    ck_assert_double_eq(pb_cog_writer_nodata(&options), 0.1);
}
END_TEST

int main(void)
{
    if (mkdtemp(directory) == NULL)
        return 77;
    (void)snprintf(path, sizeof path, "%s/x.tif", directory);
    Suite *suite = suite_create("cog_writer");
    TCase *tc = tcase_create("cog_writer");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, tiles_allocate_nothing_beyond_the_declared_memory);
    tcase_add_test(tc, a_missing_tile_is_an_error_and_leaves_no_file);
    tcase_add_test(tc, blocks_of_one_size_go_straight_into_the_file);
    tcase_add_test(tc, a_place_that_holds_the_file_is_enough);
    tcase_add_test(tc, options_that_cannot_be_are_refused_with_words);
    tcase_add_test(tc, an_unwritable_directory_is_named);
    tcase_add_test(tc, nodata_is_reported_as_it_is_stored);
    suite_add_tcase(suite, tc);
    int status = run_suite(suite);
    (void)rmdir(directory);
    return status;
}
