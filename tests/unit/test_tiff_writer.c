/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * The TIFF is read back here by a parser of its own, byte by byte. */
#include "pipeline/cog/tiff_writer.h"
#include "pipeline/cog/block_store.h"
#include "pipeline/io/file_out.h"

#include "run_suite.h"
#include "scratch_files.h"

#include <unistd.h>

static uint8_t *file;
static size_t file_bytes;

static uint64_t get(uint64_t at, unsigned bytes)
{
    uint64_t value = 0;
    ck_assert_uint_le(at + bytes, file_bytes);
    memcpy(&value, file + at, bytes);
    return value;
}

struct field {
    uint64_t type, count, at; /* at: of the value in the file */
};

static bool big(void)
{
    return get(2, 2) == 43;
}

/* Finds a tag and checks on the way that tags ascend. Returns the offset of the next directory. */
static uint64_t find(uint64_t ifd, uint64_t tag, struct field *out)
{
    static const unsigned sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
    unsigned word = big() ? 8 : 4, entry = big() ? 20 : 12, head = big() ? 8 : 2;
    uint64_t n = get(ifd, head), last = 0;
    *out = (struct field){0, 0, 0};
    ck_assert_uint_eq(ifd % 2, 0);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = ifd + head + i * entry, own = get(at, 2);
        ck_assert_uint_gt(own, last);
        last = own;
        if (own != tag)
            continue;
        *out = (struct field){get(at + 2, 2), get(at + 4, word), at + 4 + word};
        if (sizes[out->type] * out->count > word)
            out->at = get(out->at, word);
    }
    return get(ifd + head + n * entry, word);
}

static uint64_t number(uint64_t ifd, uint64_t tag)
{
    struct field field;
    find(ifd, tag, &field);
    ck_assert_msg(field.count == 1, "tag %d has %d values", (int)tag, (int)field.count);
    return get(field.at, field.type == 3 ? 2 : field.type == 4 ? 4 : 8);
}

static uint8_t content(uint64_t level, uint64_t block, uint64_t i)
{
    return (uint8_t)(level * 101 + block * 7 + i);
}

struct sample {
    struct pb_tiff_level level[3];
    struct pb_tiff_block block[3][6];
    struct pb_tiff_image image;
};

/* Reads like pb_tiff_blocks.read: blocks as content() has them. */
static int read_block(void *user, uint32_t level, uint64_t block, uint64_t from, void *data,
                      size_t bytes, struct pb_err *err)
{
    const struct sample *sample = user;
    uint64_t length = sample->block[level][block].bytes;
    (void)err;
    for (size_t i = 0; i < bytes; i++) {
        uint64_t at = from + i;
        ((uint8_t *)data)[i] = at < 4            ? (uint8_t)(length >> 8 * at)
                               : at < 4 + length ? content(level, block, at - 4)
                                                 : content(level, block, at - 8);
    }
    return 0;
}

static uint64_t block_bytes(uint32_t level, uint64_t block)
{
    return 5 + level * 3 + block * 1000;
}

static void make(struct sample *sample)
{
    static const uint64_t n[3] = {6, 2, 1};
    memset(sample, 0, sizeof *sample);
    for (uint32_t k = 0; k < 3; k++) {
        for (uint64_t i = 0; i < n[k]; i++)
            sample->block[k][i].bytes = block_bytes(k, i);
        sample->level[k] = (struct pb_tiff_level){180 >> k, 120 >> k, n[k], sample->block[k]};
    }
    sample->image = (struct pb_tiff_image){.level = sample->level,
                                           .n_levels = 3,
                                           .block_px = 64,
                                           .n_bands = 3,
                                           .type = PB_I16,
                                           .compression = 8,
                                           .predictor = 2,
                                           .software = "test 1.0"};
}

/* Checks that the reported sum is the one of the file. */

static void write_and_load(const struct sample *sample)
{
    struct pb_tiff_blocks blocks = {.read = read_block, .user = (void *)(uintptr_t)sample};
    struct pb_tiff_layout *layout;
    struct pb_gap_file *out;
    struct pb_err err = {0};
    char path[128], sum[PB_CHECKSUM_TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/t.tif", directory);
    ck_assert_int_eq(pb_tiff_layout_create(&sample->image, &err, &layout), 0);
    uint64_t total = pb_tiff_layout_total(layout);
    ck_assert_int_eq(pb_gap_file_create(path, total, &err, &out), 0);
    ck_assert_int_eq(pb_gap_file_sum(out, PB_CHECKSUM_SHA2_256, &err), 0);
    ck_assert_msg(pb_tiff_write(layout, &blocks, out, &err) == 0, "%s", err.msg);
    ck_assert_int_eq(pb_gap_file_finish(out, total, NULL, 0, &err, sum), 0);
    pb_gap_file_destroy(out);
    pb_tiff_layout_destroy(layout);
    check_sum(path, sum);
    FILE *in = fopen(path, "rb");
    free(file);
    file = malloc(total + 1);
    file_bytes = fread(file, 1, total + 1, in);
    fclose(in);
    unlink(path);
    ck_assert_uint_eq(file_bytes, total);
}

static void check_blocks(uint64_t ifd, uint32_t level, uint64_t n, uint64_t *at)
{
    struct field offsets, counts;
    find(ifd, 324, &offsets);
    find(ifd, 325, &counts);
    ck_assert_uint_eq(offsets.count, n);
    ck_assert_uint_eq(offsets.type, big() ? 16 : 4);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t offset = get(offsets.at + i * (big() ? 8 : 4), big() ? 8 : 4);
        uint64_t bytes = get(counts.at + 4 * i, 4);
        ck_assert_uint_eq(bytes, block_bytes(level, i));
        ck_assert_uint_eq(offset, *at + 4);
        ck_assert_uint_eq(get(*at, 4), bytes);
        for (uint64_t j = 0; j < bytes; j++)
            ck_assert_uint_eq(get(offset + j, 1), content(level, i, j));
        ck_assert_uint_eq(get(offset + bytes, 4), get(offset + bytes - 4, 4));
        *at = offset + bytes + 4;
    }
}

static void check_file(const struct sample *sample)
{
    static const char ghost[] =
        "GDAL_STRUCTURAL_METADATA_SIZE=000140 bytes\nLAYOUT=IFDS_BEFORE_DATA"
        "\nBLOCK_ORDER=ROW_MAJOR\nBLOCK_LEADER=SIZE_AS_UINT4\nBLOCK_TRAILER="
        "LAST_4_BYTES_REPEATED\nKNOWN_INCOMPATIBLE_EDITION=NO\n ";
    struct field field;
    uint64_t ifd[4], at = 0;
    ck_assert(memcmp(file, "II", 2) == 0);
    ck_assert(memcmp(file + (big() ? 16 : 8), ghost, sizeof ghost - 1) == 0);
    ifd[0] = big() ? get(8, 8) : get(4, 4);
    for (uint32_t k = 0; k < 3; k++) {
        ifd[k + 1] = find(ifd[k], 254, &field);
        ck_assert_uint_eq(field.count, k > 0);
        ck_assert_uint_eq(number(ifd[k], 256), (uint64_t)sample->level[k].width);
        ck_assert_uint_eq(number(ifd[k], 257), (uint64_t)sample->level[k].height);
        ck_assert_uint_eq(number(ifd[k], 259), 8);
        ck_assert_uint_eq(number(ifd[k], 277), 3);
        ck_assert_uint_eq(number(ifd[k], 317), 2);
        ck_assert_uint_eq(number(ifd[k], 322), 64);
        ck_assert(ifd[k + 1] == 0 || ifd[k + 1] > ifd[k]);
        find(ifd[k], 339, &field);
        ck_assert_uint_eq(field.count, 3);
        ck_assert_uint_eq(get(field.at + 4, 2), 2);
        find(ifd[k], 338, &field);
        ck_assert_uint_eq(field.count, 2);
    }
    ck_assert_uint_eq(ifd[3], 0);
    find(ifd[2], 324, &field);
    at = get(field.at, big() ? 8 : 4) - 4; /* one block: inline */
    ck_assert_uint_gt(at, ifd[2]);
    check_blocks(ifd[2], 2, 1, &at);
    check_blocks(ifd[1], 1, 2, &at);
    at = (at + 4095) / 4096 * 4096;
    check_blocks(ifd[0], 0, 6, &at);
    ck_assert_uint_eq(at, file_bytes);
}

START_TEST(puts_everything_where_a_cog_has_it)
{
    struct sample sample;
    make(&sample);
    write_and_load(&sample);
    ck_assert(!big());
    check_file(&sample);
    sample.image.force_big = true;
    write_and_load(&sample);
    ck_assert(big());
    check_file(&sample);
}
END_TEST

START_TEST(given_tags_are_in_first_directory_nodata_in_all)
{
    struct sample sample;
    double scale[3] = {10, 20, 0};
    uint16_t width = 77;
    struct pb_tiff_tag tag[] = {{256, 3, 1, &width}, {33550, 12, 3, scale}, {42113, 2, 4, "nan"}};
    struct pb_tiff_tags tags = {tag, 3};
    struct field field;
    make(&sample);
    sample.image.tags = &tags;
    write_and_load(&sample);
    check_file(&sample); /* so the false width was left out */
    uint64_t ifd = get(4, 4), next = find(ifd, 33550, &field);
    ck_assert_uint_eq(field.count, 3);
    ck_assert(memcmp(file + field.at, scale, sizeof scale) == 0);
    find(ifd, 42113, &field);
    ck_assert(memcmp(file + field.at, "nan", 4) == 0);
    find(next, 33550, &field);
    ck_assert_uint_eq(field.count, 0);
    find(next, 42113, &field);
    ck_assert_uint_eq(field.count, 4);
}
END_TEST

/* The layout needs sizes only, so a file of 4 GiB can be laid out without one. */
START_TEST(becomes_bigtiff_when_a_byte_over_4_gib)
{
    struct sample sample;
    struct pb_tiff_layout *layout;
    make(&sample);
    ck_assert_int_eq(pb_tiff_layout_create(&sample.image, NULL, &layout), 0);
    uint64_t room = UINT32_MAX - pb_tiff_layout_total(layout);
    pb_tiff_layout_destroy(layout);
    for (int over = 0; over < 2; over++) {
        sample.block[0][5].bytes += over == 0 ? room : 1;
        ck_assert_int_eq(pb_tiff_layout_create(&sample.image, NULL, &layout), 0);
        ck_assert_int_eq(pb_tiff_layout_big(layout), over);
        ck_assert_uint_ge(pb_tiff_layout_total(layout), UINT32_MAX);
        pb_tiff_layout_destroy(layout);
    }
}
END_TEST

/* Blocks of one size: first read at the end, then placed; the bytes of the file are the same. */
START_TEST(placed_blocks_make_the_file_that_waiting_ones_make)
{
    enum { BYTES = 700001 }; /* several parts of the buffer, and no multiple of anything */
    static uint8_t data[BYTES];
    struct sample sample;
    struct pb_err err = {0};
    char path[128], sum[2][PB_CHECKSUM_TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/p.tif", directory);
    make(&sample);
    for (uint32_t k = 0; k < 3; k++)
        for (uint64_t i = 0; i < sample.level[k].n_blocks; i++)
            sample.block[k][i].bytes = BYTES;
    for (int placed = 0; placed < 2; placed++) {
        struct pb_tiff_blocks blocks = {
            .placed = placed ? UINT64_MAX : 0, .read = read_block, .user = &sample};
        struct pb_tiff_layout *layout;
        struct pb_gap_file *out;
        struct pb_file_progress progress = {0};
        sample.image.block_bytes = placed ? BYTES : 0;
        ck_assert_int_eq(pb_tiff_layout_create(&sample.image, &err, &layout), 0);
        uint64_t total = pb_tiff_layout_total(layout);
        ck_assert_int_eq(pb_gap_file_create(path, 0, &err, &out), 0);
        pb_gap_file_watch(out, &progress);
        for (uint32_t k = 0; placed == 1 && k < 3; k++)
            for (uint64_t i = sample.level[k].n_blocks; i-- > 0;) {
                for (uint64_t j = 0; j < BYTES; j++)
                    data[j] = content(k, i, j);
                ck_assert_int_eq(pb_tiff_place_even(layout, k, i, data, out, &err), 0);
            }
        ck_assert_int_eq(pb_gap_file_sum(out, PB_CHECKSUM_SHA2_256, &err), 0);
        ck_assert_int_eq(pb_tiff_write(layout, &blocks, out, &err), 0);
        ck_assert_int_eq(pb_gap_file_finish(out, total, NULL, 0, &err, sum[placed]), 0);
        ck_assert_uint_eq(atomic_load(&progress.bytes), total);
        pb_gap_file_destroy(out);
        pb_tiff_layout_destroy(layout);
        check_sum(path, sum[placed]);
    }
    ck_assert_str_eq(sum[0], sum[1]);
    unlink(path);
}
END_TEST

/* Blocks that stay are found where they are; those in the pool in pieces; others are to be read. */
static void check_where_they_lie(struct pb_block_store *store, struct pb_tiff_block block[2][60],
                                 uint64_t placed, uint8_t *stays[2][60])
{
    for (uint32_t k = 0; k < 2; k++)
        for (uint64_t i = 0; i < 60 && !(placed >> k & 1); i++) {
            const void *at;
            const uint64_t end = block[k][i].bytes + 8;
            ck_assert_uint_eq(pb_block_store_at(store, k, i, 1, &at), 3);
            ck_assert_ptr_null(at);
            ck_assert_uint_eq(pb_block_store_at(store, k, i, end - 4, &at), 4);
            ck_assert_ptr_null(at);
            for (uint64_t from = 4; from < end - 4;) {
                size_t n = pb_block_store_at(store, k, i, from, &at);
                ck_assert(n > 0 && from + n <= end - 4);
                if (i % 4 == 1)
                    ck_assert_ptr_eq(at, stays[k][i] + from - 4);
                for (size_t j = 0; at != NULL && j < n; j++)
                    ck_assert_uint_eq(((const uint8_t *)at)[j], content(k, i, from - 4 + j));
                from += n;
            }
        }
}

/* Blocks of every size around the chunks of memory and around the frame, in a mixed order. */
START_TEST(waiting_and_direct_blocks_reach_the_same_place)
{
    enum { N = 60, MOST = 200000 };
    static uint8_t data[MOST], back[MOST + 8];
    static uint8_t *stays[2][N];
    for (int pool = 0; pool < 3; pool++) {
        struct pb_tiff_block block[2][N] = {0}, *const blocks[2] = {block[0], block[1]};
        const uint64_t n_blocks[2] = {N, N};
        struct pb_block_store_options options = {
            .block = blocks,
            .n_blocks = n_blocks,
            .directory = directory,
            .workers = 2,
            .pool_bytes = pool == 0   ? 1
                          : pool == 1 ? 1 << 20
                                      : 64 << 20,
            .run = {{0, 4096 * 7}},
            .n_runs = 1,
        };
        struct pb_block_store *store;
        struct pb_err err = {0};
        uint64_t placed = 9, at = 4096 * 7;
        char path[128];
        (void)snprintf(path, sizeof path, "%s/blocks", directory);
        ck_assert_int_eq(pb_gap_file_create(path, 0, &err, &options.file), 0);
        ck_assert_int_eq(pb_block_store_create(&options, &err, &store), 0);
        for (uint64_t i = 0; i < N; i++)
            for (uint32_t k = 0; k < 2; k++) {
                uint64_t own = i < 50 ? (i * 7 + k) % 50 : N - 1 - (i - 50);
                size_t bytes = own % 5 == 0 ? 32768 - own / 5 : 5 + own * 3300;
                for (size_t j = 0; j < bytes; j++)
                    data[j] = content(k, own, j);
                struct pb_block_bytes block_of_bytes = {data, bytes, own % 4 == 1};
                if (block_of_bytes.stays) {
                    stays[k][own] = realloc(stays[k][own], bytes); /* none but these bytes */
                    block_of_bytes.data = memcpy(stays[k][own], data, bytes);
                }
                ck_assert_int_eq(pb_block_store_add(store, k, own, &block_of_bytes, i % 2, &err),
                                 0);
            }
        ck_assert_int_eq(pb_block_store_settle(store, &err, &placed), 0);
        ck_assert_uint_eq(placed, pool == 2 ? 0 : 1);
        FILE *in = fopen(path, "rb");
        for (uint32_t k = 0; k < 2; k++)
            for (uint64_t i = 0; i < N; i++) {
                size_t bytes = block[k][i].bytes, part = bytes / 3;
                if (placed >> k & 1) {
                    ck_assert_int_eq(fseek(in, (long)at, SEEK_SET), 0);
                    ck_assert_uint_eq(fread(back, 1, bytes + 8, in), bytes + 8);
                    at += bytes + 8;
                } else { /* in two parts */
                    int rc = pb_block_store_read(store, k, i, 0, back, part, &err);
                    rc = rc ? rc
                            : pb_block_store_read(store, k, i, part, back + part, bytes + 8 - part,
                                                  &err);
                    ck_assert_int_eq(rc, 0);
                }
                for (size_t j = 0; j < bytes; j++)
                    data[j] = content(k, i, j);
                ck_assert_int_eq(memcmp(back, &block[k][i].bytes, 4), 0);
                ck_assert_int_eq(memcmp(back + 4, data, bytes), 0);
                ck_assert_int_eq(memcmp(back + 4 + bytes, data + bytes - 4, 4), 0);
            }
        fclose(in);
        check_where_they_lie(store, block, placed, stays);
        pb_block_store_destroy(store);
        pb_gap_file_destroy(options.file);
    }
}
END_TEST

static void add_block(struct pb_block_store *store, uint64_t i, size_t bytes, int expected)
{
    static uint8_t data[3000];
    struct pb_err err = {0};
    for (size_t j = 0; j < bytes; j++)
        data[j] = content(0, i, j);
    const struct pb_block_bytes block = {data, bytes, false};
    const int rc = pb_block_store_add(store, 0, i, &block, 0, &err);
    ck_assert_msg(rc == expected, "block %d: %d %s", (int)i, rc, err.msg);
}

/* The store has memory for one block, and no disk for others. first: blocks that are added before
 * any is announced, which make it write to the file; with 0 the second added one does. */
START_TEST(announced_blocks_are_written_in_any_order)
{
    enum { N = 20 };
    const uint64_t first = _i == 0 ? 2 : 0;
    struct pb_tiff_block block[N] = {{0}}, *const blocks[1] = {block};
    const uint64_t n_blocks[1] = {N};
    struct pb_block_store_options options = {.block = blocks,
                                             .n_blocks = n_blocks,
                                             .directory = "/nonexistent",
                                             .workers = 1,
                                             .pool_bytes = 1,
                                             .run = {{0, 4096}},
                                             .n_runs = 1};
    struct pb_block_store *store;
    struct pb_err err = {0};
    uint64_t placed = 0;
    char path[128], back[3008];
    (void)snprintf(path, sizeof path, "%s/announced", directory);
    ck_assert_int_eq(pb_gap_file_create(path, 0, &err, &options.file), 0);
    ck_assert_int_eq(pb_block_store_create(&options, &err, &store), 0);
    for (uint64_t i = 0; i < first; i++)
        add_block(store, i, 1000 + i, 0);
    for (uint64_t i = N; i-- > first;)
        pb_block_store_expect(store, 0, i, 1000 + i);
    ck_assert_int_lt(pb_block_store_settle(store, &err, &placed), 0);
    for (uint64_t i = N - 1; i > 2; i--)
        add_block(store, i, 1000 + i, 0);
    add_block(store, 2, 7, pb_code_errno(PB_E_SYSTEM)); /* another size */
    for (uint64_t i = first; i < 3; i++)
        add_block(store, i, 1000 + i, 0);
    add_block(store, 2, 1002, pb_code_errno(PB_E_SYSTEM)); /* twice */
    pb_block_store_expect(store, 0, 2, 5);                 /* too late: no effect */
    ck_assert_int_eq(pb_block_store_settle(store, &err, &placed), 0);
    ck_assert_uint_eq(placed, 1);
    FILE *in = fopen(path, "rb");
    ck_assert_int_eq(fseek(in, 4096, SEEK_SET), 0);
    for (uint64_t i = 0; i < N; i++) {
        ck_assert_uint_eq(fread(back, 1, 1008 + i, in), 1008 + i);
        for (size_t j = 0; j < 1000 + i; j++)
            ck_assert_int_eq((uint8_t)back[4 + j], content(0, i, j));
    }
    fclose(in);
    pb_block_store_destroy(store);
    pb_gap_file_destroy(options.file);
}
END_TEST

int main(void)
{
    if (mkdtemp(directory) == NULL)
        return 77;
    Suite *suite = suite_create("tiff_writer");
    TCase *tc = tcase_create("tiff_writer");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, puts_everything_where_a_cog_has_it);
    tcase_add_test(tc, given_tags_are_in_first_directory_nodata_in_all);
    tcase_add_test(tc, becomes_bigtiff_when_a_byte_over_4_gib);
    tcase_add_test(tc, placed_blocks_make_the_file_that_waiting_ones_make);
    tcase_add_loop_test(tc, announced_blocks_are_written_in_any_order, 0, 2);
    tcase_add_test(tc, waiting_and_direct_blocks_reach_the_same_place);
    suite_add_tcase(suite, tc);
    int status = run_suite(suite);
    (void)rmdir(directory);
    free(file);
    return status;
}
