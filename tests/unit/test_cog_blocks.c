/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Blocks addressed by their place: those of a file that was made of tiles, in another order, give
 * the same file. The blocks are found by the file's directories. */
#include "pipeline/cog/cog_writer.h"
#include "pipeline/cog/device_blocks.h"
#include "pipeline/io/file_out.h"
#include "pipeline/io/checksum.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <libdeflate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SIDE = 64, DIRECTORIES_MAX = 32 };

static char directory[64] = "/tmp/pb-cogblocks-XXXXXX", tiles_path[128], blocks_path[128];
static struct pb_grid grid;
static unsigned char raw[SIDE * SIDE * 2 * sizeof(double)];

/* Faults of the disk. */
static int fails_at = -1, n_writes; /* the call of pwritev that fails */
static int fails_with;
static bool writes_parts; /* each call writes some of what it was given */

/* Instead of the C library's. */
ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t at)
{
    struct iovec first = {parts->iov_base, 1 + parts->iov_len / 2};
    bool one = writes_parts && n_writes % 3 > 0;
    if (n_writes++ == fails_at) {
        errno = fails_with;
        return -1;
    }
    if (one)
        first.iov_len = first.iov_len < parts->iov_len ? first.iov_len : parts->iov_len;
    int several = writes_parts && n > 7 ? 7 : n;
    return syscall(SYS_pwritev, fd, one ? &first : parts, one ? 1 : several, at, 0);
}

struct file {
    unsigned char *data;
    size_t bytes;
};

/* A directory of a little-endian TIFF of either kind. */
struct level {
    uint32_t cols, n;
    uint64_t offset[1024], bytes[1024];
};

static struct pb_cog_options defaults(int32_t w, int32_t h)
{
    ck_assert_int_eq(pb_grid_init(&grid, w, h, 128), 0);
    return (struct pb_cog_options){.grid = &grid,
                                   .order = PB_ORDER_ROWS,
                                   .tiles_in_flight = 4,
                                   .workers = 2,
                                   .directory = directory,
                                   .path = tiles_path,
                                   .n_bands = 2,
                                   .type = PB_F32,
                                   .compress = PB_COMPRESS_DEFLATE,
                                   .overviews = PB_OVERVIEWS_AVERAGE,
                                   .block_px = SIDE};
}

static void make_of_tiles(const struct pb_cog_options *options, struct pb_cog_summary *out)
{
    struct pb_cog_writer *writer;
    float *pixels = malloc(128 * 128 * 2 * sizeof *pixels);
    ck_assert_int_eq(pb_cog_writer_create(options, NULL, &writer), 0);
    for (uint32_t i = 0; i < pb_grid_count(&grid); i++) {
        struct pb_rect core = pb_grid_core(&grid, i);
        size_t px = (size_t)core.w * (size_t)core.h;
        for (size_t p = 0; p < 2 * px; p++)
            pixels[p] = p % 31 == 7 ? NAN : (float)(p * (i + 3) % 977) * 0.25f;
        const float *planes[2] = {pixels, pixels + px};
        ck_assert_int_eq(pb_cog_writer_tile(writer, &core, planes, i % 2, NULL), 0);
    }
    ck_assert_int_eq(pb_cog_writer_finish(writer, NULL, out), 0);
    pb_cog_writer_destroy(writer);
    free(pixels);
}

static struct file read_file(const char *path)
{
    struct file file = {NULL, 0};
    FILE *in = fopen(path, "rb");
    ck_assert_ptr_nonnull(in);
    ck_assert_int_eq(fseek(in, 0, SEEK_END), 0);
    file.bytes = (size_t)ftell(in);
    rewind(in);
    file.data = malloc(file.bytes);
    ck_assert_uint_eq(fread(file.data, 1, file.bytes, in), file.bytes);
    fclose(in);
    return file;
}

static uint64_t number(const struct file *file, uint64_t at, size_t bytes)
{
    uint64_t n = 0;
    ck_assert_uint_le(at + bytes, file->bytes);
    memcpy(&n, file->data + at, bytes);
    return n;
}

/* The tables of the directory at `at`; returns where the next one is. */
static uint64_t read_directory(const struct file *file, uint64_t at, struct level *out)
{
    bool big = number(file, 2, 2) == 43;
    size_t word = big ? 8 : 4, head = big ? 8 : 2, entry = big ? 20 : 12;
    uint64_t n = number(file, at, head), width = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t e = at + head + i * entry, tag = number(file, e, 2), type = number(file, e + 2, 2);
        uint64_t count = number(file, e + 4, word), value = e + 4 + word;
        size_t each = type == 3 ? 2 : type == 16 ? 8 : 4;
        if (count * each > word)
            value = number(file, value, word);
        if (tag == 256)
            width = number(file, value, each);
        if (tag != 324 && tag != 325)
            continue;
        ck_assert_uint_le(count, 1024);
        out->n = (uint32_t)count;
        for (uint64_t b = 0; b < count; b++)
            (tag == 324 ? out->offset : out->bytes)[b] = number(file, value + b * each, each);
    }
    out->cols = (uint32_t)((width + SIDE - 1) / SIDE);
    return number(file, at + head + n * entry, word);
}

static uint32_t read_levels(const struct file *file, struct level *out)
{
    uint32_t n = 0;
    bool big = number(file, 2, 2) == 43;
    for (uint64_t at = number(file, big ? 8 : 4, big ? 8 : 4); at != 0; n++) {
        ck_assert_uint_lt(n, DIRECTORIES_MAX);
        at = read_directory(file, at, &out[n]);
    }
    return n;
}

/* Block i of a directory; raw: as it is before compression. */
static struct pb_cog_block block_of(const struct pb_cog_options *options, const struct file *file,
                                    const struct level *level, uint32_t k, uint32_t i, bool is_raw)
{
    struct pb_cog_block block = {
        .level = options->mask ? k / 2 : k,
        .mask = options->mask && k % 2 == 1,
        .col = i % level[k].cols,
        .row = i / level[k].cols,
        .data = file->data + level[k].offset[i],
        .bytes = level[k].bytes[i],
        .raw = is_raw,
        .stays = i % 5 != 0 || options->pool_bytes == 0, /* the file is in memory */
    };
    if (is_raw && options->compress != PB_COMPRESS_NONE) {
        struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
        size_t n;
        ck_assert_int_eq(
            libdeflate_zlib_decompress(d, block.data, block.bytes, raw, sizeof raw, &n), 0);
        libdeflate_free_decompressor(d);
        block.data = raw;
        block.bytes = n;
    }
    return block;
}

/* The blocks of all directories but one, the smaller images last and from both ends in turn. */
static int add_all(struct pb_cog_writer *writer, const struct pb_cog_options *options,
                   const struct file *file, const struct level *level, uint32_t n,
                   struct pb_err *err)
{
    int rc = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < level[k].n && rc == 0; j++) {
            uint32_t i = j % 2 ? level[k].n - 1 - j / 2 : j / 2;
            bool is_raw = options->parts == PB_COG_BLOCKS && j % 3 == 0;
            struct pb_cog_block block = block_of(options, file, level, k, i, is_raw);
            block.moved = 1;
            rc = pb_cog_writer_block(writer, &block, j % 2, err);
        }
    return rc;
}

static void check_sum(const struct file *file, const char *said)
{
    char text[PB_CHECKSUM_TEXT_BYTES];
    struct pb_sum *sum = pb_sum_create(PB_CHECKSUM_BLAKE3);
    pb_sum_add(sum, file->data, file->bytes);
    ck_assert_int_eq(pb_sum_text(sum, text), 0);
    pb_sum_destroy(sum);
    ck_assert_str_eq(said, text);
}

static void compare(const struct pb_cog_options *of_tiles, enum pb_cog_parts parts)
{
    struct pb_cog_summary made, again;
    struct pb_cog_options options = *of_tiles;
    struct pb_cog_writer *writer;
    struct pb_err err = {0};
    static struct level level[DIRECTORIES_MAX];
    make_of_tiles(of_tiles, &made);
    struct file file = read_file(tiles_path);
    uint32_t n = read_levels(&file, level);
    options.parts = parts;
    options.path = blocks_path;
    ck_assert_int_eq(pb_cog_writer_create(&options, &err, &writer), 0);
    ck_assert_uint_eq(pb_cog_writer_levels(writer), options.mask ? n / 2 : n);
    int rc = add_all(writer, &options, &file, level, n, &err);
    ck_assert_msg(rc == 0, "%d %s", rc, err.msg);
    ck_assert_int_eq(pb_cog_writer_finish(writer, &err, &again), 0);
    pb_cog_writer_destroy(writer);
    struct file second = read_file(blocks_path);
    ck_assert_uint_eq(file.bytes, second.bytes);
    ck_assert_int_eq(memcmp(file.data, second.data, file.bytes), 0);
    check_sum(&second, again.checksum);
    ck_assert_str_eq(made.checksum, again.checksum);
    ck_assert_uint_eq(again.moved, level[0].n);
    free(file.data);
    free(second.data);
    ck_assert_int_eq(unlink(tiles_path), 0);
    ck_assert_int_eq(unlink(blocks_path), 0);
}

START_TEST(blocks_give_the_file_that_tiles_give)
{
    static const enum pb_compress how[] = {PB_COMPRESS_NONE, PB_COMPRESS_DEFLATE};
    for (int i = 0; i < 16; i++) {
        struct pb_cog_options options = defaults(400, 330);
        options.compress = how[i % 2];
        options.mask = i / 2 % 2 == 1;
        options.type = options.mask ? PB_I16 : PB_F32;
        options.pool_bytes = i / 4 % 2 == 1 ? 1 : 0; /* all are written at once, or wait */
        compare(&options, i / 8 == 1 ? PB_COG_BLOCKS : PB_COG_FINISHED);
    }
    struct pb_cog_options options = defaults(60, 60);
    options.force_big = true;
    compare(&options, PB_COG_BLOCKS);
}
END_TEST

enum { STAY = 320, STAY_BYTES = SIDE * SIDE * 8 };
static char stay[STAY][STAY_BYTES];

static size_t stay_bytes(uint32_t i)
{
    return STAY_BYTES - 16 * i;
}

/* A file of blocks that stay, more than are written at once; they get their content at the very
 * end. */
static struct pb_cog_writer *make_of_blocks_that_stay(void)
{
    struct pb_cog_options options = defaults(1024, 1280);
    struct pb_cog_writer *writer;
    struct stat st;
    options.path = blocks_path;
    options.parts = PB_COG_FINISHED;
    options.overviews = PB_OVERVIEWS_NONE;
    options.pool_bytes = 1;
    ck_assert_int_eq(pb_cog_writer_create(&options, NULL, &writer), 0);
    for (uint32_t i = 0; i < STAY; i++) {
        struct pb_cog_block block = {
            .col = i % 16, .row = i / 16, .data = stay[i], .bytes = stay_bytes(i), .stays = true};
        ck_assert_int_eq(pb_cog_writer_block(writer, &block, 0, NULL), 0);
        memset(stay[i], (int)i + 1, STAY_BYTES);
    }
    ck_assert_int_eq(stat(blocks_path, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    return writer;
}

START_TEST(blocks_that_stay_are_written_at_the_end)
{
    static struct level level;
    struct pb_cog_summary summary;
    for (int turn = 0; turn < 2; turn++) {
        struct pb_cog_writer *writer = make_of_blocks_that_stay();
        writes_parts = turn == 1;
        ck_assert_int_eq(pb_cog_writer_finish(writer, NULL, &summary), 0);
        writes_parts = false;
        pb_cog_writer_destroy(writer);
        struct file file = read_file(blocks_path);
        ck_assert_uint_eq(read_levels(&file, &level), 1);
        for (uint32_t i = 0; i < STAY; i++) {
            ck_assert_uint_eq(level.bytes[i], stay_bytes(i));
            ck_assert_int_eq(memcmp(file.data + level.offset[i], stay[i], level.bytes[i]), 0);
        }
        check_sum(&file, summary.checksum);
        free(file.data);
        ck_assert_int_eq(unlink(blocks_path), 0);
    }
}
END_TEST

START_TEST(a_write_that_fails_leaves_no_file)
{
    static const struct {
        int with, code;
    } how[] = {{ENOSPC, PB_E_OUTPUT_FULL}, {EIO, PB_E_OUTPUT_WRITE}};
    struct pb_cog_summary summary;
    struct pb_cog_writer *writer = make_of_blocks_that_stay();
    n_writes = 0;
    ck_assert_int_eq(pb_cog_writer_finish(writer, NULL, &summary), 0);
    pb_cog_writer_destroy(writer);
    ck_assert_int_eq(unlink(blocks_path), 0);
    for (int at = 0, all = n_writes; at < all; at++)
        for (int i = 0; i < 2; i++) {
            struct pb_err err = {0};
            writer = make_of_blocks_that_stay();
            n_writes = 0;
            fails_at = at;
            fails_with = how[i].with;
            ck_assert_int_lt(pb_cog_writer_finish(writer, &err, &summary), 0);
            ck_assert_int_eq(n_writes, at + 1);
            fails_at = -1;
            ck_assert_int_eq((int)err.code, how[i].code);
            ck_assert_ptr_nonnull(strstr(err.msg, blocks_path));
            pb_cog_writer_destroy(writer);
            ck_assert_int_ne(access(blocks_path, F_OK), 0);
        }
}
END_TEST

START_TEST(a_run_that_is_given_up_stops_writing)
{
    struct pb_cog_options options = defaults(64, 64);
    struct pb_file_progress progress = {.bytes = 0};
    struct pb_cog_summary summary;
    struct pb_cog_writer *writer;
    struct pb_err err = {0};
    options.path = blocks_path;
    options.parts = PB_COG_FINISHED;
    options.progress = &progress;
    const struct pb_cog_block block = {.data = stay[0], .bytes = STAY_BYTES, .stays = true};
    ck_assert_int_eq(pb_cog_writer_create(&options, NULL, &writer), 0);
    ck_assert_int_eq(pb_cog_writer_block(writer, &block, 0, NULL), 0);
    atomic_store(&progress.stop, true);
    ck_assert_int_lt(pb_cog_writer_finish(writer, &err, &summary), 0);
    ck_assert_int_eq(err.code, PB_E_JOB_DISMISSED);
    pb_cog_writer_destroy(writer);
    ck_assert_int_ne(access(blocks_path, F_OK), 0);
}
END_TEST

START_TEST(finished_blocks_take_no_memory_for_encoders)
{
    struct pb_cog_options options = defaults(4000, 4000);
    options.workers = 16;
    uint64_t tiles = pb_cog_writer_bytes(&options);
    options.parts = PB_COG_BLOCKS;
    uint64_t blocks = pb_cog_writer_bytes(&options);
    options.parts = PB_COG_FINISHED;
    uint64_t finished = pb_cog_writer_bytes(&options);
    ck_assert_uint_lt(blocks, tiles);
    ck_assert_uint_lt(finished + 16 * (SIDE * SIDE * 8), blocks);
}
END_TEST

static void refuse(struct pb_cog_writer *writer, const struct pb_cog_block *block,
                   const char *words)
{
    struct pb_err err = {0};
    ck_assert_int_lt(pb_cog_writer_block(writer, block, 0, &err), 0);
    ck_assert_int_eq(err.code, PB_E_SYSTEM);
    ck_assert_msg(strstr(err.msg, words) != NULL, "'%s' does not say '%s'", err.msg, words);
}

START_TEST(a_block_that_cannot_be_is_refused_with_words)
{
    static const char data[SIDE * SIDE * 8] = {1};
    for (int i = 0; i < 3; i++) { /* blocks of one size, those that wait, those that do not */
        struct pb_cog_options options = defaults(150, 100);
        struct pb_cog_writer *writer;
        struct pb_err err = {0};
        struct pb_cog_summary summary;
        struct pb_cog_block block = {
            .level = 0, .col = 2, .row = 1, .data = data, .bytes = sizeof data};
        options.compress = i == 0 ? PB_COMPRESS_NONE : PB_COMPRESS_DEFLATE;
        options.pool_bytes = i == 2 ? 1 : 0;
        options.parts = PB_COG_FINISHED;
        options.path = blocks_path;
        ck_assert_int_eq(pb_cog_writer_create(&options, &err, &writer), 0);
        ck_assert_int_eq(pb_cog_writer_block(writer, &block, 1, &err), 0);
        refuse(writer, &block, "twice");
        block.col = 3;
        refuse(writer, &block, "3 x 2 blocks");
        block.col = 1;
        block.row = 2;
        refuse(writer, &block, "row 2");
        block.row = 0;
        block.level = 9;
        refuse(writer, &block, "level 9");
        block.level = 0;
        block.bytes = 0;
        refuse(writer, &block, "0 bytes");
        block.bytes = 10 * sizeof data;
        refuse(writer, &block, "there can be");
        block.bytes = sizeof data;
        block.mask = true;
        refuse(writer, &block, "no masks");
        block.mask = false;
        block.raw = true;
        refuse(writer, &block, "not compressed");
        ck_assert_int_lt(pb_cog_writer_finish(writer, &err, &summary), 0);
        ck_assert_int_eq(err.code, PB_E_SYSTEM);
        ck_assert_ptr_nonnull(strstr(err.msg, "never written"));
        pb_cog_writer_destroy(writer);
        ck_assert_int_ne(access(blocks_path, F_OK), 0);
    }
}
END_TEST

START_TEST(a_raw_block_of_another_size_is_refused)
{
    static const char data[SIDE * SIDE * 8] = {1};
    struct pb_cog_options options = defaults(150, 100);
    struct pb_cog_writer *writer;
    options.parts = PB_COG_BLOCKS;
    ck_assert_int_eq(pb_cog_writer_create(&options, NULL, &writer), 0);
    struct pb_cog_block block = {.raw = true, .data = data, .bytes = sizeof data - 1};
    refuse(writer, &block, "before compression");
    block.bytes++;
    ck_assert_int_eq(pb_cog_writer_block(writer, &block, 0, NULL), 0);
    pb_cog_writer_destroy(writer);
}
END_TEST

/* The device searches samples of two bytes or more; the host those of one, and masks. */
START_TEST(test_device_searches_samples_of_two_bytes)
{
    static const struct {
        enum pb_type type;
        int level;
        enum pb_encode_with with;
    } cases[] = {
        {PB_U8, 0, PB_ENCODE_INTEGERS}, {PB_U16, 0, PB_ENCODE_PAIRS}, {PB_I16, 0, PB_ENCODE_PAIRS},
        {PB_F32, 0, PB_ENCODE_RUNS},    {PB_U16, 6, PB_ENCODE_RAW},
    };
    static const uint32_t planes[] = {0, 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb_cog_options options = defaults(100, 100);
        struct pb_device_blocks blocks;
        options.type = cases[i].type;
        options.level = cases[i].level;
        options.mask = true;
        ck_assert_ptr_null(pb_device_blocks_of(&options, planes, NULL, &blocks));
        ck_assert_int_eq(blocks.format.with, cases[i].with);
        ck_assert_int_eq(blocks.mask_with, PB_ENCODE_INTEGERS);
    }
}
END_TEST

int main(void)
{
    if (mkdtemp(directory) == NULL)
        return 77;
    (void)snprintf(tiles_path, sizeof tiles_path, "%s/tiles.tif", directory);
    (void)snprintf(blocks_path, sizeof blocks_path, "%s/blocks.tif", directory);
    Suite *suite = suite_create("cog_blocks");
    TCase *tc = tcase_create("cog_blocks");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, blocks_give_the_file_that_tiles_give);
    tcase_add_test(tc, blocks_that_stay_are_written_at_the_end);
    tcase_add_test(tc, a_write_that_fails_leaves_no_file);
    tcase_add_test(tc, a_run_that_is_given_up_stops_writing);
    tcase_add_test(tc, finished_blocks_take_no_memory_for_encoders);
    tcase_add_test(tc, a_block_that_cannot_be_is_refused_with_words);
    tcase_add_test(tc, a_raw_block_of_another_size_is_refused);
    tcase_add_test(tc, test_device_searches_samples_of_two_bytes);
    suite_add_tcase(suite, tc);
    int status = run_suite(suite);
    (void)rmdir(directory);
    return status;
}
