/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * The look at a TIFF before GDAL: every case is a file built here, byte by byte, in all four
 * flavours (classic or BigTIFF, both byte orders), from one plain image of 32 x 16 pixels. */
#include "pipeline/raster/tiff_header.h"

#include "config/limits_config.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LITTLE_CLASSIC, BIG_CLASSIC, LITTLE_BIG_TIFF, BIG_BIG_TIFF, FLAVOURS };

static const struct pb_limits limits = {.max_pixels = 1u << 20,
                                        .max_block_bytes = 4096,
                                        .max_side_px = 5000,
                                        .max_bands = 8,
                                        .max_directories = 4};

#define ENTRIES_MAX 16
#define PAGES_MAX   8
#define PIXELS_AT   4096

struct entry {
    uint16_t tag, type;
    uint64_t value[8]; /* more than one: stored apart */
    uint64_t count;
};

struct page {
    struct entry entry[ENTRIES_MAX];
    size_t n;
    int64_t next; /* page index, -1 = none, else PAGES_MAX + an offset */
};

struct file {
    unsigned char bytes[16384];
    size_t n; /* size of the file */
    int flavour;
};

static void put(struct file *file, size_t at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        file->bytes[at + i] = (unsigned char)(value >> 8 * (file->flavour & 1 ? bytes - 1 - i : i));
}

static struct entry *entry_of(struct page *page, uint16_t tag)
{
    for (size_t i = 0; i < page->n; i++) {
        if (page->entry[i].tag == tag)
            return &page->entry[i];
    }
    page->entry[page->n] = (struct entry){.tag = tag, .type = 4, .count = 1};
    return &page->entry[page->n++];
}

static void set(struct page *page, uint16_t tag, uint64_t value)
{
    entry_of(page, tag)->value[0] = value;
}

static void drop(struct page *page, uint16_t tag)
{
    struct entry *entry = entry_of(page, tag);
    *entry = page->entry[--page->n];
}

/* 32 x 16 pixels of one byte in two strips of 8 rows. */
static struct page plain(void)
{
    struct page page = {.next = -1};
    set(&page, 256, 32);
    set(&page, 257, 16);
    set(&page, 258, 8);
    set(&page, 259, 5);
    set(&page, 273, PIXELS_AT);
    entry_of(&page, 273)->value[1] = PIXELS_AT + 256;
    entry_of(&page, 273)->count = 2;
    set(&page, 277, 1);
    set(&page, 278, 8);
    set(&page, 279, 256);
    entry_of(&page, 279)->value[1] = 256;
    entry_of(&page, 279)->count = 2;
    return page;
}

static size_t page_at(int i)
{
    return 64 + (size_t)i * 480;
}

static void put_page(struct file *file, const struct page *page, int index)
{
    static const unsigned bytes[17] = {0, 1, 1, 2, 4, [16] = 8};
    unsigned big = file->flavour >= LITTLE_BIG_TIFF, word = big ? 8 : 4;
    size_t at = page_at(index), apart = at + 340;
    put(file, at, page->n, big ? 8 : 2);
    at += big ? 8 : 2;
    for (size_t i = 0; i < page->n; i++) {
        const struct entry *e = &page->entry[i];
        unsigned each = e->type < 17 ? bytes[e->type] : 0;
        size_t to = at + 4 + word;
        put(file, at, e->tag, 2);
        put(file, at + 2, e->type, 2);
        put(file, at + 4, e->count, word);
        if (e->count * each > word) {
            put(file, to, apart, word);
            to = apart;
            apart += e->count < 8 ? e->count * each : 0;
        }
        for (size_t j = 0; each > 0 && j < e->count && j < 8; j++)
            put(file, to + j * each, e->value[j], each);
        at += 4 + 2 * word;
    }
    uint64_t next = page->next < 0           ? 0
                    : page->next < PAGES_MAX ? page_at((int)page->next)
                                             : (uint64_t)page->next - PAGES_MAX;
    put(file, at, next, word);
}

static void build(struct file *file, int flavour, const struct page *page, int n_pages)
{
    unsigned big = flavour >= LITTLE_BIG_TIFF;
    memset(file, 0, sizeof *file);
    file->flavour = flavour;
    file->n = PIXELS_AT + 512;
    memcpy(file->bytes, flavour & 1 ? "MM" : "II", 2);
    put(file, 2, big ? 43 : 42, 2);
    if (big) {
        put(file, 4, 8, 2);
        put(file, 8, page_at(0), 8);
    } else {
        put(file, 4, page_at(0), 4);
    }
    for (int i = 0; i < n_pages; i++)
        put_page(file, &page[i], i);
}

static int look(const struct file *file, struct pb_err *err, struct pb_tiff_header *out)
{
    int fd = memfd_create("tiff", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, file->bytes, file->n), (ssize_t)file->n);
    *err = (struct pb_err){0};
    int rc = pb_tiff_header_read(&(struct pb_file_part){.fd = fd, .bytes = file->n}, "x.tif",
                                 &limits, err, out);
    close(fd);
    return rc;
}

static void accepted(const struct page *page, int n_pages, struct pb_tiff_header *out)
{
    for (int flavour = 0; flavour < FLAVOURS; flavour++) {
        struct file file;
        struct pb_err err;
        build(&file, flavour, page, n_pages);
        int rc = look(&file, &err, out);
        ck_assert_msg(rc == 0, "flavour %d: %s", flavour, err.msg);
        ck_assert_int_eq(out->big_endian, flavour & 1);
        ck_assert_int_eq(out->big_tiff, flavour >= LITTLE_BIG_TIFF);
        ck_assert_int_eq(out->n_directories, n_pages);
    }
}

static void refused(const struct page *page, int n_pages, enum pb_code code, const char *part)
{
    for (int flavour = 0; flavour < FLAVOURS; flavour++) {
        struct file file;
        struct pb_err err;
        struct pb_tiff_header header;
        build(&file, flavour, page, n_pages);
        ck_assert_int_eq(look(&file, &err, &header), pb_code_errno(code));
        ck_assert_msg(err.code == code, "flavour %d: %s: %s", flavour, pb_code_id(err.code),
                      err.msg);
        ck_assert_msg(strstr(err.msg, part) != NULL, "'%s' is not in '%s'", part, err.msg);
        ck_assert_str_eq(err.file, "x.tif");
    }
}

START_TEST(takes_a_plain_image_in_all_flavours)
{
    struct page page = plain();
    struct pb_tiff_header header;
    accepted(&page, 1, &header);
    ck_assert(header.width == 32 && header.height == 16 && header.bands == 1 && header.bits == 8);
    ck_assert(header.block_w == 32 && header.block_h == 8 && !header.tiled && !header.planar);
    ck_assert(header.n_blocks == 2 && header.n_sparse == 0 && header.stored_block_max == 256);
    ck_assert(!header.one_strip && header.compression == 5 && header.nodata[0] == '\0');
}
END_TEST

START_TEST(takes_tiles_planes_and_sparse_blocks)
{
    struct page page = plain();
    struct pb_tiff_header header;
    drop(&page, 273);
    drop(&page, 279);
    set(&page, 277, 2);
    set(&page, 284, 2);
    set(&page, 322, 16);
    set(&page, 323, 16);
    set(&page, 324, PIXELS_AT);
    set(&page, 325, 100);
    entry_of(&page, 324)->count = entry_of(&page, 325)->count = 4;
    accepted(&page, 1, &header);
    ck_assert(header.tiled && header.planar && header.n_blocks == 4 && header.n_sparse == 3);
    ck_assert(header.block_w == 16 && header.block_h == 16);
}
END_TEST

START_TEST(knows_a_strip_that_decodes_from_the_top_only)
{
    struct page page = plain();
    struct pb_tiff_header header;
    drop(&page, 278);
    accepted(&page, 1, &header);
    ck_assert(header.one_strip && header.block_h == 16 && header.n_blocks == 1);
}
END_TEST

START_TEST(reads_the_text_of_nodata_and_cleans_it)
{
    struct page page = plain();
    struct pb_tiff_header header;
    struct entry *entry = entry_of(&page, 42113);
    const char text[] = "-99\n";
    entry->type = 2;
    entry->count = 4;
    for (int i = 0; i < 4; i++)
        entry->value[i] = (unsigned char)text[i];
    accepted(&page, 1, &header);
    ck_assert_str_eq(header.nodata, "-99");
}
END_TEST

START_TEST(refuses_what_is_no_tiff)
{
    static const char *const begins[] = {"GIF89a..........", "II\x29\0............",
                                         "MM\x2a\0............", "IM*............."};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        struct file file = {.n = 16};
        struct pb_err err;
        struct pb_tiff_header header;
        memcpy(file.bytes, begins[i], 16);
        ck_assert_int_lt(look(&file, &err, &header), 0);
        ck_assert_int_eq(err.code, PB_E_INPUT_NOT_TIFF);
    }
}
END_TEST

START_TEST(every_cut_is_truncated_and_never_read_past_the_end)
{
    struct page page[2] = {plain(), plain()};
    page[0].next = 1;
    for (int flavour = 0; flavour < FLAVOURS; flavour++) {
        struct file file;
        build(&file, flavour, page, 2);
        size_t whole = file.n;
        for (file.n = 2; file.n < whole; file.n++) {
            struct pb_err err;
            struct pb_tiff_header header;
            ck_assert_int_eq(look(&file, &err, &header), -EIO);
            ck_assert_msg(err.code == PB_E_INPUT_TRUNCATED, "%zu bytes: %s", file.n, err.msg);
        }
    }
}
END_TEST

START_TEST(says_how_much_is_missing)
{
    struct page page = plain();
    entry_of(&page, 279)->value[1] = 300;
    refused(&page, 1, PB_E_INPUT_TRUNCATED, "44 bytes are missing (at least 1 of 2 blocks)");
    drop(&page, 279); /* offsets alone suffice, too */
    entry_of(&page, 273)->value[1] = 100000;
    refused(&page, 1, PB_E_INPUT_TRUNCATED, "missing");
}
END_TEST

START_TEST(refuses_impossible_numbers)
{
    struct page page = plain();
    set(&page, 256, 0);
    refused(&page, 1, PB_E_INPUT_DAMAGED, "width");
    page = plain();
    drop(&page, 257);
    refused(&page, 1, PB_E_INPUT_DAMAGED, "height");
    page = plain();
    set(&page, 277, 0);
    refused(&page, 1, PB_E_INPUT_DAMAGED, "bands");
    page = plain();
    set(&page, 278, 0);
    refused(&page, 1, PB_E_INPUT_DAMAGED, "32 x 0");
    page = plain();
    set(&page, 278, 4);
    refused(&page, 1, PB_E_INPUT_DAMAGED, "4 blocks of pixels but lists the place of 2");
    page = plain();
    drop(&page, 273);
    refused(&page, 1, PB_E_INPUT_DAMAGED, "no addresses of its pixels");
    page = plain();
    set(&page, 273, 0);
    refused(&page, 1, PB_E_INPUT_DAMAGED, "impossible place");
    page = plain();
    page.n = 0;
    refused(&page, 1, PB_E_INPUT_DAMAGED, "0 entries");
    page = plain();
    entry_of(&page, 273)->count = 1u << 30;
    refused(&page, 1, PB_E_INPUT_TRUNCATED, "1073741824 values of tag 273");
}
END_TEST

START_TEST(holds_what_is_declared_against_the_limits)
{
    struct page page = plain();
    set(&page, 256, 5001);
    refused(&page, 1, PB_E_INPUT_LIMIT, "width 5001; the limit is 5000 (limits.max_side_px)");
    page = plain();
    set(&page, 257, UINT32_MAX);
    refused(&page, 1, PB_E_INPUT_LIMIT, "the limit is 5000 (limits.max_side_px)");
    page = plain();
    set(&page, 256, 5000);
    set(&page, 257, 5000);
    refused(&page, 1, PB_E_INPUT_LIMIT,
            "5000 x 5000 pixels; the limit is 1048576 pixels (limits.max_pixels)");
    page = plain();
    set(&page, 277, 9);
    refused(&page, 1, PB_E_INPUT_LIMIT, "bands 9; the limit is 8 (limits.max_bands)");
    page = plain();
    set(&page, 258, 128);
    set(&page, 277, 2);
    refused(&page, 1, PB_E_INPUT_LIMIT,
            "strip of the file is 32 x 8 pixels, more than the limit of 4096 bytes "
            "(limits.max_block_bytes)");
    page = plain();
    set(&page, 322, 65536);
    set(&page, 323, 65536);
    refused(&page, 1, PB_E_INPUT_LIMIT, "tile");
    page = plain();
    set(&page, 322, UINT32_MAX);
    set(&page, 323, UINT32_MAX);
    refused(&page, 1, PB_E_INPUT_UNSUPPORTED, "at most 2147483647 a side");
}
END_TEST

START_TEST(refuses_more_blocks_than_can_be_walked)
{
    struct pb_limits wide = limits;
    struct page page = plain();
    struct file file;
    struct pb_tiff_header header;
    wide.max_side_px = 1000000;
    wide.max_pixels = UINT64_C(200000000000);
    set(&page, 256, 400000);
    set(&page, 257, 400000);
    set(&page, 322, 1);
    set(&page, 323, 1);
    build(&file, LITTLE_CLASSIC, &page, 1);
    struct pb_err err = {0};
    int fd = memfd_create("tiff", MFD_CLOEXEC);
    ck_assert_int_eq(write(fd, file.bytes, file.n), (ssize_t)file.n);
    ck_assert_int_eq(pb_tiff_header_read(&(struct pb_file_part){.fd = fd, .bytes = file.n}, "x.tif",
                                         &wide, &err, &header),
                     -ENOTSUP);
    ck_assert_ptr_nonnull(strstr(err.msg, "160000000000 blocks of 1 x 1"));
    close(fd);
}
END_TEST

START_TEST(walks_the_chain_of_directories)
{
    struct page page[5] = {plain(), plain(), plain(), plain(), plain()};
    struct pb_tiff_header header;
    for (int i = 0; i < 4; i++)
        page[i].next = i + 1;
    page[3].next = -1;
    accepted(page, 4, &header);
    ck_assert_int_eq(header.n_pages_more, 3);
    page[3].next = 4;
    refused(page, 5, PB_E_INPUT_LIMIT, "more than 4 image directories (limits.max_directories)");
    page[2].next = 1;
    refused(page, 4, PB_E_INPUT_DAMAGED, "loops: 3 is followed by 2");
    page[0].next = 0;
    refused(page, 1, PB_E_INPUT_DAMAGED, "loops: 1 is followed by 1");
    page[0].next = PAGES_MAX + 4;
    refused(page, 1, PB_E_INPUT_DAMAGED, "inside the header");
    page[0].next = PAGES_MAX + 1000000;
    refused(page, 1, PB_E_INPUT_TRUNCATED, "past the end");
}
END_TEST

START_TEST(checks_full_size_masks_but_no_overviews)
{
    struct page page[2] = {plain(), plain()};
    struct pb_tiff_header header;
    page[0].next = 1;
    set(&page[1], 279, 100000);
    accepted(page, 2, &header); /* a page of its own */
    ck_assert_int_eq(header.n_pages_more, 1);
    set(&page[1], 254, 2);
    accepted(page, 2, &header); /* a page by its tag */
    ck_assert_int_eq(header.n_pages_more, 1);
    set(&page[1], 254, 1);
    accepted(page, 2, &header); /* an overview */
    ck_assert_int_eq(header.n_pages_more, 0);
    set(&page[1], 254, 5);
    accepted(page, 2, &header); /* mask of an overview */
    ck_assert_int_eq(header.n_pages_more, 0);
    set(&page[1], 254, 4);
    refused(page, 2, PB_E_INPUT_TRUNCATED, "missing");
}
END_TEST

START_TEST(survives_random_bytes)
{
    unsigned state = 1;
    struct page page[2] = {plain(), plain()};
    page[0].next = 1;
    for (int round = 0; round < 20000; round++) {
        struct file file;
        struct pb_err err;
        struct pb_tiff_header header;
        build(&file, round % FLAVOURS, page, 2);
        for (int i = 0; i < 4; i++) {
            state = state * 1664525u + 1013904223u;
            file.bytes[(state >> 8) % 1000] = (unsigned char)(state >> 24);
        }
        int rc = look(&file, &err, &header);
        ck_assert(rc == 0 ? err.code == PB_OK : err.code != PB_OK && err.code != PB_E_SYSTEM);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tiff_header");
    TCase *all = tcase_create("all");
    tcase_add_test(all, takes_a_plain_image_in_all_flavours);
    tcase_add_test(all, takes_tiles_planes_and_sparse_blocks);
    tcase_add_test(all, knows_a_strip_that_decodes_from_the_top_only);
    tcase_add_test(all, reads_the_text_of_nodata_and_cleans_it);
    tcase_add_test(all, refuses_what_is_no_tiff);
    tcase_add_test(all, every_cut_is_truncated_and_never_read_past_the_end);
    tcase_add_test(all, says_how_much_is_missing);
    tcase_add_test(all, refuses_impossible_numbers);
    tcase_add_test(all, holds_what_is_declared_against_the_limits);
    tcase_add_test(all, refuses_more_blocks_than_can_be_walked);
    tcase_add_test(all, walks_the_chain_of_directories);
    tcase_add_test(all, checks_full_size_masks_but_no_overviews);
    tcase_add_test(all, survives_random_bytes);
    tcase_set_timeout(all, 60);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
