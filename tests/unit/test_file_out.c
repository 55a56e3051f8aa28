/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Files of products: sums of what was written, gaps that are closed, disks that are full. */
#include "pipeline/io/file_out.h"
#include "pipeline/cog/spool.h"
#include "pipeline/io/gap_file.h"

#include "run_suite.h"
#include "scratch_files.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

START_TEST(writes_that_cannot_be_or_are_not_wanted_fail)
{
    struct pb_file_progress progress = {0};
    struct pb_err err = {0};
    struct pb_gap_file *out;
    char path[128], data[64] = {0}, sum[PB_CHECKSUM_TEXT_BYTES];
    struct iovec part[] = {{data, 10}, {data + 10, 54}};
    ck_assert_int_eq(pb_gap_file_create("/dev/full", 0, &err, &out), 0);
    ck_assert_int_eq(pb_gap_file_write(out, 5, part, 2, &err), -ENOSPC);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_FULL);
    ck_assert_ptr_nonnull(strstr(err.msg, "/dev/full"));
    pb_gap_file_destroy(out);
    ck_assert_int_eq(access("/dev/full", F_OK), 0); /* a device is never removed */

    (void)snprintf(path, sizeof path, "%s/short", directory);
    err = (struct pb_err){0};
    ck_assert_int_eq(pb_gap_file_create(path, 0, &err, &out), 0);
    ck_assert_int_eq(pb_gap_file_write(out, 0, part, 2, &err), 0);
    /* One more byte than there is. */
    ck_assert_int_eq(pb_gap_file_sum(out, PB_CHECKSUM_SHA2_256, &err), 0);
    ck_assert_int_lt(pb_gap_file_take(out, 0, 65, &err), 0);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
    pb_gap_file_destroy(out);
    ck_assert_int_ne(access(path, F_OK), 0);

    err = (struct pb_err){0};
    ck_assert_int_eq(pb_gap_file_create(path, 0, &err, &out), 0);
    pb_gap_file_watch(out, &progress);
    part[0] = (struct iovec){data, 64};
    ck_assert_int_eq(pb_gap_file_write(out, 0, part, 1, &err), 0);
    atomic_store(&progress.stop, true);
    ck_assert_int_eq(pb_gap_file_sum(out, PB_CHECKSUM_SHA2_256, &err), 0);
    ck_assert_int_eq(pb_gap_file_take(out, 0, 64, &err), -ECANCELED);
    err = (struct pb_err){0};
    ck_assert_int_eq(pb_gap_file_finish(out, 64, NULL, 0, &err, sum), -ECANCELED);
    ck_assert_int_eq(err.code, PB_E_JOB_DISMISSED);
    pb_gap_file_destroy(out);
    ck_assert_int_ne(access(path, F_OK), 0);

    err = (struct pb_err){0};
    (void)snprintf(path, sizeof path, "%s/none/x", directory);
    ck_assert_int_lt(pb_gap_file_create(path, 0, &err, &out), 0);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
}
END_TEST

/* Regions of 3, 300 and 700 pages and a bit, after gaps. tree: the checksum is a BLAKE3 by three
 * threads. */
static void check_gaps(const char *where, bool move, bool tree)
{
    enum { PAGE = 4096, A = 3 * PAGE, B = 303 * PAGE, TOTAL = 1003 * PAGE + 77 };
    static uint8_t data[TOTAL], back[TOTAL + 1];
    static const struct pb_gap gaps[3][2] = {
        {{A, 5 * PAGE}, {B, 2000 * PAGE}}, {{A, 0}, {B, PAGE}}, {{A, 4000 * PAGE}, {B, 0}}};
    for (int round = 0; round < 3; round++) {
        const struct pb_gap *gap = gaps[round];
        const struct pb_gap_file_tree threads = {
            .total = TOTAL, .ready = B, .gap = {gap[0], gap[1]}, .n_gaps = 2, .threads = 3};
        struct pb_gap_file *out;
        struct pb_err err = {0};
        struct stat st;
        char path[128], sum[PB_CHECKSUM_TEXT_BYTES];
        (void)snprintf(path, sizeof path, "%s/gaps", where);
        for (size_t i = 0; i < TOTAL; i++)
            data[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16);
        ck_assert_int_eq(pb_gap_file_create(path, 0, &err, &out), 0);
        if (move)
            pb_gap_file_move(out);
        ck_assert(pb_gap_file_may_reach(out, TOTAL + 4000 * PAGE));
        static const uint64_t ends[4] = {0, A, B, TOTAL};
        for (int r = 3; r-- > 0;) {
            struct iovec part = {data + ends[r], ends[r + 1] - ends[r]};
            ck_assert_int_eq(pb_gap_file_write(out, pb_gap_before(gap, 2, ends[r]), &part, 1, &err),
                             0);
        }
        int rc = tree ? pb_gap_file_tree(out, &threads, &err)
                      : pb_gap_file_sum(out, PB_CHECKSUM_SHA2_256, &err);
        for (int r = 0; r < 3 && rc == 0; r++)
            rc = pb_gap_file_take(out, pb_gap_before(gap, 2, ends[r]), ends[r + 1] - ends[r], &err);
        rc = rc ? rc : pb_gap_file_finish(out, TOTAL, gap, 2, &err, sum);
        ck_assert_msg(rc == 0, "%s: %s", where, err.msg);
        pb_gap_file_destroy(out);
        check_sum(path, sum);
        FILE *in = fopen(path, "rb");
        ck_assert_uint_eq(fread(back, 1, sizeof back, in), TOTAL);
        ck_assert_int_eq(fstat(fileno(in), &st), 0);
        fclose(in);
        ck_assert_int_eq(memcmp(back, data, TOTAL), 0);
        ck_assert_int_le(st.st_blocks, (TOTAL + 64 * PAGE) / 512); /* no gap is kept */
        unlink(path);
    }
}

START_TEST(gaps_are_closed_whatever_the_file_system_can)
{
    char where[] = "/dev/shm/pb-gaps-XXXXXX";
    for (int i = 0; i < 4; i++)
        check_gaps(directory, i & 1, i & 2);
    if (mkdtemp(where) == NULL) {
        printf("skipped: gaps on a tmpfs: /dev/shm cannot be written\n");
        return;
    }
    for (int i = 0; i < 4; i++)
        check_gaps(where, i & 1, i & 2);
    (void)rmdir(where);
}
END_TEST

enum { PIECES = 700, PIECE_MOST = 10007, EVEN_WRITERS = 3 };

struct even_writer {
    struct pb_gap_file *file;
    const uint8_t *data;
    size_t first, total;
};

/* Writes every EVEN_WRITERSth piece, from the last one to the first, in two buffers. */
static void *write_pieces(void *arg)
{
    const struct even_writer *w = arg;
    for (size_t i = PIECES; i-- > 0;) {
        const size_t at = w->total * i / PIECES, end = w->total * (i + 1) / PIECES;
        char *from = (char *)(uintptr_t)(w->data + at);
        struct iovec part[] = {{from, 4}, {from + 4, end - at - 4}};
        if (i % EVEN_WRITERS == w->first)
            ck_assert_int_eq(pb_gap_file_write(w->file, at, part, 2, NULL), 0);
    }
    return NULL;
}

/* A granule that threads complete is hashed by one of them; one that is in a buffer as well. */
START_TEST(file_is_hashed_while_it_is_written)
{
    static uint8_t data[PIECES * PIECE_MOST];
    const size_t totals[] = {sizeof data, 1000000, PIECES * 5};
    char path[128], sum[PB_CHECKSUM_TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/even", directory);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16);
    for (size_t k = 0; k < sizeof totals / sizeof *totals; k++) {
        struct even_writer writer[EVEN_WRITERS];
        pthread_t thread[EVEN_WRITERS];
        struct pb_gap_file *out;
        struct pb_err err = {0};
        ck_assert_int_eq(pb_gap_file_create(path, totals[k], &err, &out), 0);
        ck_assert_int_eq(pb_gap_file_tree_early(out, totals[k], &err), 0);
        for (size_t i = 0; i < EVEN_WRITERS; i++) {
            writer[i] = (struct even_writer){out, data, i, totals[k]};
            ck_assert_int_eq(pthread_create(&thread[i], NULL, write_pieces, &writer[i]), 0);
        }
        for (size_t i = 0; i < EVEN_WRITERS; i++)
            pthread_join(thread[i], NULL);
        ck_assert_int_eq(pb_gap_file_finish(out, totals[k], NULL, 0, &err, sum), 0);
        pb_gap_file_destroy(out);
        check_sum(path, sum);
        unlink(path);
    }
    struct pb_gap_file *out;
    struct iovec whole = {data, sizeof data};
    ck_assert_int_eq(pb_gap_file_create(path, 0, NULL, &out), 0);
    ck_assert_int_eq(pb_gap_file_tree_early(out, sizeof data, NULL), 0);
    ck_assert_int_eq(pb_gap_file_write(out, 0, &whole, 1, NULL), 0);
    ck_assert_int_eq(pb_gap_file_finish(out, sizeof data, NULL, 0, NULL, sum), 0);
    pb_gap_file_destroy(out);
    check_sum(path, sum);
    unlink(path);
}
END_TEST

/* Bytes that are gone, and a run that was cancelled, end all threads. */
START_TEST(threads_of_a_sum_end_with_the_first_error)
{
    enum { TOTAL = 20 << 20 };
    struct pb_file_progress progress = {0};
    struct pb_gap_file *out;
    char path[128], sum[PB_CHECKSUM_TEXT_BYTES], byte = 1;
    (void)snprintf(path, sizeof path, "%s/short", directory);
    for (int stop = 0; stop < 2; stop++) {
        const struct pb_gap_file_tree threads = {.total = TOTAL, .ready = TOTAL / 2, .threads = 4};
        struct iovec part = {&byte, 1};
        struct pb_err err = {0};
        ck_assert_int_eq(pb_gap_file_create(path, 0, &err, &out), 0);
        pb_gap_file_watch(out, &progress);
        ck_assert_int_eq(pb_gap_file_write(out, TOTAL - 2, &part, 1, &err), 0);
        ck_assert_int_eq(pb_gap_file_tree(out, &threads, &err), 0);
        atomic_store(&progress.stop, stop);
        ck_assert_int_lt(pb_gap_file_finish(out, TOTAL, NULL, 0, &err, sum), 0);
        ck_assert_int_eq(err.code, stop ? PB_E_JOB_DISMISSED : PB_E_OUTPUT_WRITE);
        pb_gap_file_destroy(out);
        ck_assert_int_ne(access(path, F_OK), 0);
    }
}
END_TEST

START_TEST(checks_the_room_and_reserves_no_huge_file)
{
    struct pb_err err = {0};
    struct pb_gap_file *out = NULL;
    struct statvfs disk;
    struct stat st;
    char path[] = "/tmp/pb_test_room_XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0 && fstatvfs(fd, &disk) == 0);
    close(fd);
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t all = (uint64_t)disk.f_blocks * disk.f_frsize;
    ck_assert_int_lt(pb_gap_file_create(path, all + 1, &err, &out), 0);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_LIMIT); /* waiting would not help */
    err = (struct pb_err){0};
    ck_assert_int_lt(pb_gap_file_create(path, room + (all - room) / 2, &err, &out), 0);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_FULL);
    err = (struct pb_err){0};
    ck_assert_int_eq(pb_gap_file_create(path, room / 2, &err, &out), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_lt(st.st_blocks, 64); /* not taken from others */
    pb_gap_file_destroy(out);
}
END_TEST

START_TEST(output_errors_are_named_and_leave_no_file)
{
    struct pb_file_out *out;
    struct pb_err err = {0};
    char sum[PB_CHECKSUM_TEXT_BYTES], path[128];
    ck_assert_int_eq(pb_file_out_create("/dev/full", PB_CHECKSUM_SHA2_256, &err, &out), 0);
    ck_assert_int_eq(pb_file_out_add(out, "abc", 3, &err), 0);
    ck_assert_int_eq(pb_file_out_finish(out, &err, sum), -ENOSPC);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_FULL);
    ck_assert_ptr_nonnull(strstr(err.msg, "/dev/full"));
    pb_file_out_destroy(out);
    ck_assert_int_eq(access("/dev/full", F_OK), 0); /* a device is never removed */
    err = (struct pb_err){0};
    (void)snprintf(path, sizeof path, "%s/none/x", directory);
    ck_assert_int_lt(pb_file_out_create(path, PB_CHECKSUM_SHA2_256, &err, &out), 0);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
    err = (struct pb_err){0};
    struct pb_spool *spool;
    uint64_t at;
    ck_assert_int_eq(pb_spool_create("/proc", &err, &spool), 0);
    ck_assert_int_lt(pb_spool_append(spool, "abc", 3, &err, &at), 0);
    ck_assert_int_ne(err.code, PB_OK);
    pb_spool_destroy(spool);
    (void)snprintf(path, sizeof path, "%s/half", directory);
    ck_assert_int_eq(pb_file_out_create(path, PB_CHECKSUM_SHA2_256, NULL, &out), 0);
    ck_assert_int_eq(access(path, F_OK), 0);
    pb_file_out_destroy(out);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* The first bytes of 0 .. 250, 0 .. 250, ... as in BLAKE3's published vectors, as b3sum has them.
 */
START_TEST(blake3_is_that_of_its_authors)
{
    static const struct {
        size_t bytes;
        const char *text;
    } cases[] = {
        {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
        {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
        {63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b"},
        {64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
        {65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee"},
        {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
        {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
        {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
        {2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
        {2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
        {4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969"},
        {8193, "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b"},
        {31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
        {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
    };
    static uint8_t data[102400];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i % 251);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t part = 1000; part <= 200000; part *= 200) {
            struct pb_sum *sum = pb_sum_create(PB_CHECKSUM_BLAKE3);
            char text[PB_CHECKSUM_TEXT_BYTES];
            enum pb_checksum kind;
            const char *digits;
            for (size_t at = 0; at < cases[i].bytes; at += part)
                pb_sum_add(sum, data + at, cases[i].bytes - at < part ? cases[i].bytes - at : part);
            ck_assert_int_eq(pb_sum_text(sum, text), 0);
            pb_sum_destroy(sum);
            ck_assert_int_eq(pb_checksum_parse(text, &kind, &digits), 0);
            ck_assert_int_eq(kind, PB_CHECKSUM_BLAKE3);
            ck_assert_str_eq(digits, cases[i].text);
        }
}
END_TEST

START_TEST(sums_what_it_writes)
{
    struct pb_file_out *out;
    char sum[PB_CHECKSUM_TEXT_BYTES], path[128], data[1000];
    (void)snprintf(path, sizeof path, "%s/sum", directory);
    memset(data, 'a', sizeof data);
    ck_assert_int_eq(pb_file_out_create(path, PB_CHECKSUM_SHA2_256, NULL, &out), 0);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(pb_file_out_add(out, data, sizeof data, NULL), 0);
    ck_assert_int_eq(pb_file_out_finish(out, NULL, sum), 0);
    pb_file_out_destroy(out);
    /* FIPS 180's third example: a million times "a". */
    ck_assert_str_eq(sum,
                     "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    unlink(path);
}
END_TEST

int main(void)
{
    if (mkdtemp(directory) == NULL)
        return 77;
    Suite *suite = suite_create("file_out");
    TCase *tc = tcase_create("file_out");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, writes_that_cannot_be_or_are_not_wanted_fail);
    tcase_add_test(tc, gaps_are_closed_whatever_the_file_system_can);
    tcase_add_test(tc, file_is_hashed_while_it_is_written);
    tcase_add_test(tc, threads_of_a_sum_end_with_the_first_error);
    tcase_add_test(tc, output_errors_are_named_and_leave_no_file);
    tcase_add_test(tc, checks_the_room_and_reserves_no_huge_file);
    tcase_add_test(tc, blake3_is_that_of_its_authors);
    tcase_add_test(tc, sums_what_it_writes);
    suite_add_tcase(suite, tc);
    int status = run_suite(suite);
    (void)rmdir(directory);
    return status;
}
