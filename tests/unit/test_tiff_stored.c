/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * Files that declare more than they hold: absent tiles, holes, reserved space, tags whose values
 * are past the end. Each is a classic TIFF of square tiles built here, in a file on a disk where
 * holes can be made. */
#include "pipeline/raster/tiff_header.h"

#include "config/limits_config.h"
#include "run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PAGE     4096
#define TILE     (4 * PAGE) /* stored bytes of each tile */
#define TILES_AT (4 * PAGE)

enum { NONE = 1, LZW = 5, DEFLATE = 8, PACKBITS = 32773 };

static const struct pb_limits limits = {.max_pixels = UINT64_C(1) << 40,
                                        .max_block_bytes = 1u << 28,
                                        .max_ratio = 10000,
                                        .max_side_px = 1000000,
                                        .max_bands = 8,
                                        .max_directories = 4};

struct tiff {
    int fd;
    uint32_t side, tiles; /* side of the image; tiles in it */
    unsigned char head[TILES_AT];
    size_t entry; /* place of the next one */
    uint16_t n;
};

static void entry(struct tiff *tiff, uint16_t tag, uint16_t type, uint32_t count, uint32_t value)
{
    unsigned char *at = tiff->head + tiff->entry;
    memcpy(at, &tag, 2);
    memcpy(at + 2, &type, 2);
    memcpy(at + 4, &count, 4);
    memcpy(at + 8, &value, 4);
    tiff->entry += 12;
    tiff->n++;
    memcpy(tiff->head + 8, &tiff->n, 2);
}

/* A side of `tiles` tiles of `tile` pixels; the first `stored` of them have bytes in the file. */
static struct tiff begin(uint16_t compression, uint32_t tile, uint32_t tiles, uint32_t stored)
{
    struct tiff tiff = {.side = tile * tiles, .tiles = tiles * tiles, .entry = 10};
    char name[] = "/tmp/pb_test_stored_XXXXXX";
    uint32_t *offset = (uint32_t *)(void *)(tiff.head + 512);
    uint32_t *count = offset + tiff.tiles;
    ck_assert_uint_le(512 + 8 * (size_t)tiff.tiles, sizeof tiff.head);
    tiff.fd = mkstemp(name);
    ck_assert_int_ge(tiff.fd, 0);
    unlink(name);
    memcpy(tiff.head, "II\x2a\0\x08\0\0\0", 8);
    entry(&tiff, 256, 4, 1, tiff.side);
    entry(&tiff, 257, 4, 1, tiff.side);
    entry(&tiff, 258, 3, 1, 8);
    entry(&tiff, 259, 3, 1, compression);
    entry(&tiff, 262, 3, 1, 1);
    entry(&tiff, 322, 4, 1, tile);
    entry(&tiff, 323, 4, 1, tile);
    entry(&tiff, 324, 4, tiff.tiles, 512);
    entry(&tiff, 325, 4, tiff.tiles, 512 + 4 * tiff.tiles);
    for (uint32_t i = 0; i < stored; i++) {
        offset[i] = TILES_AT + i * TILE;
        count[i] = TILE;
    }
    return tiff;
}

static void put(const struct tiff *tiff, off_t at, size_t bytes, int value)
{
    char *data = malloc(bytes);
    memset(data, value, bytes);
    ck_assert_int_eq(pwrite(tiff->fd, data, bytes, at), (ssize_t)bytes);
    free(data);
}

/* The head, and the bytes of the first n tiles. */
static void store(const struct tiff *tiff, uint32_t n)
{
    ck_assert_int_eq(pwrite(tiff->fd, tiff->head, sizeof tiff->head, 0), sizeof tiff->head);
    if (n > 0)
        put(tiff, TILES_AT, (size_t)n * TILE, 0x5a);
}

static void hole(const struct tiff *tiff, off_t at, off_t bytes)
{
    ck_assert_int_eq(fallocate(tiff->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes), 0);
}

static int look(const struct tiff *tiff, const struct pb_limits *with, struct pb_err *err,
                struct pb_tiff_header *out)
{
    off_t bytes = lseek(tiff->fd, 0, SEEK_END);
    *err = (struct pb_err){0};
    return pb_tiff_header_read(&(struct pb_file_part){.fd = tiff->fd, .bytes = (uint64_t)bytes},
                               "x.tif", with, err, out);
}

static void taken(struct tiff *tiff)
{
    struct pb_err err;
    struct pb_tiff_header header;
    int rc = look(tiff, &limits, &err, &header);
    ck_assert_msg(rc == 0, "%s: %s", pb_code_id(err.code), err.msg);
    close(tiff->fd);
}

static void refused(struct tiff *tiff, enum pb_code code, const char *part)
{
    struct pb_err err;
    struct pb_tiff_header header;
    ck_assert_int_lt(look(tiff, &limits, &err, &header), 0);
    ck_assert_msg(err.code == code, "%s: %s", pb_code_id(err.code), err.msg);
    ck_assert_msg(strstr(err.msg, part) != NULL, "'%s' is not in '%s'", part, err.msg);
    close(tiff->fd);
}

/* --- tiles that are absent --------------------------------------------------------------------*/

START_TEST(refuses_an_image_of_absent_tiles_only)
{
    struct tiff tiff = begin(DEFLATE, 256, 2, 0);
    store(&tiff, 0);
    refused(&tiff, PB_E_INPUT_EMPTY, "none of its 4 blocks");
    tiff = begin(DEFLATE, 256, 2, 1); /* a sparse image with something in it */
    store(&tiff, 1);
    taken(&tiff);
}
END_TEST

START_TEST(refuses_more_pixels_than_its_bytes_can_hold)
{
    struct pb_limits any = limits;
    struct pb_err err;
    struct pb_tiff_header header;
    struct tiff tiff = begin(DEFLATE, 4096, 40, 1); /* 26.8 GB in 32 KiB */
    store(&tiff, 1);
    any.max_ratio = 1000000;
    ck_assert_int_eq(look(&tiff, &any, &err, &header), 0);
    any.max_ratio = 0;
    ck_assert_int_eq(look(&tiff, &any, &err, &header), 0);
    refused(&tiff, PB_E_INPUT_LIMIT, "limits.max_ratio");
    tiff = begin(DEFLATE, 4096, 16, 1); /* 4 GiB take seconds, whatever is stored */
    store(&tiff, 1);
    taken(&tiff);
}
END_TEST

START_TEST(counts_no_hole_as_stored)
{
    struct tiff tiff = begin(DEFLATE, 4096, 40, 1);
    store(&tiff, 1);
    ck_assert_int_eq(ftruncate(tiff.fd, (off_t)1 << 30), 0); /* a long file of nothing */
    refused(&tiff, PB_E_INPUT_LIMIT, "limits.max_ratio");
    tiff = begin(DEFLATE, 4096, 40, 1);
    store(&tiff, 1);
    put(&tiff, 1 << 20, 3 << 20, 0x5a);
    taken(&tiff);
}
END_TEST

/* --- holes ------------------------------------------------------------------------------------*/

START_TEST(refuses_compressed_tiles_that_were_never_written)
{
    static const uint16_t codecs[] = {LZW, DEFLATE, PACKBITS};
    for (size_t i = 0; i < 3; i++) {
        struct tiff tiff = begin(codecs[i], 256, 2, 4);
        store(&tiff, 2);
        ck_assert_int_eq(ftruncate(tiff.fd, TILES_AT + 4 * TILE), 0);
        refused(&tiff, PB_E_INPUT_TRUNCATED, "2 of 4 blocks were never written");
        tiff = begin(codecs[i], 256, 2, 4);
        store(&tiff, 4);
        hole(&tiff, TILES_AT, 4 * TILE);
        refused(&tiff, PB_E_INPUT_EMPTY, "4 are in holes");
        tiff = begin(codecs[i], 256, 2, 4);
        store(&tiff, 4);
        taken(&tiff);
    }
}
END_TEST

START_TEST(leaves_holes_within_a_tile_to_decoders_that_notice)
{
    struct tiff tiff = begin(LZW, 256, 2, 4);
    store(&tiff, 4);
    hole(&tiff, TILES_AT + TILE + PAGE, PAGE);
    refused(&tiff, PB_E_INPUT_TRUNCATED, "the first is block 1 at byte 32768");
    tiff = begin(DEFLATE, 256, 2, 4);
    store(&tiff, 4);
    hole(&tiff, TILES_AT + TILE + PAGE, PAGE);
    taken(&tiff);
}
END_TEST

START_TEST(takes_zeros_that_a_copy_stored_as_holes)
{
    struct tiff tiff = begin(NONE, 128, 2, 4); /* 128 x 128 bytes are one TILE */
    store(&tiff, 4);
    hole(&tiff, TILES_AT + TILE, 2 * TILE);
    taken(&tiff);
    tiff = begin(NONE, 128, 2, 4);
    store(&tiff, 0);
    ck_assert_int_eq(ftruncate(tiff.fd, TILES_AT + 4 * TILE), 0);
    refused(&tiff, PB_E_INPUT_EMPTY, "4 are in holes");
}
END_TEST

static bool has_fiemap(int fd)
{
    struct fiemap map = {.fm_length = PAGE};
    return ioctl(fd, FS_IOC_FIEMAP, &map) == 0;
}

START_TEST(refuses_uncompressed_tiles_of_reserved_space)
{
    struct tiff tiff = begin(NONE, 128, 2, 4);
    if (!has_fiemap(tiff.fd)) {
        printf("skipped: no FIEMAP below /tmp: reserved space cannot be told from holes there\n");
        close(tiff.fd);
        return;
    }
    ck_assert_int_eq(fallocate(tiff.fd, 0, 0, TILES_AT + 4 * TILE), 0);
    store(&tiff, 2);
    put(&tiff, TILES_AT + 2 * TILE, PAGE, 0x5a); /* the third is begun */
    refused(&tiff, PB_E_INPUT_TRUNCATED, "2 of 4 blocks were never written in full");
    tiff = begin(NONE, 128, 2, 4);
    ck_assert_int_eq(fallocate(tiff.fd, 0, 0, TILES_AT + 4 * TILE), 0);
    store(&tiff, 4); /* all there, if only in the page cache */
    taken(&tiff);
}
END_TEST

/* --- georeferencing ---------------------------------------------------------------------------*/

START_TEST(refuses_geo_tags_past_the_end)
{
    static const uint16_t tags[] = {33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113, 50844};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        struct tiff tiff = begin(LZW, 256, 1, 1);
        entry(&tiff, 305, 2, 100, 1u << 30); /* a lesser loss, named only without the other */
        entry(&tiff, tags[i], tags[i] == 34735 ? 3 : tags[i] == 42112 ? 2 : 12, 100, 1u << 30);
        store(&tiff, 1);
        refused(&tiff, PB_E_INPUT_GEOREFERENCE, "past the end");
    }
    struct tiff tiff = begin(LZW, 256, 1, 1);
    entry(&tiff, 305, 2, 100, 1u << 30);
    store(&tiff, 1);
    refused(&tiff, PB_E_INPUT_TRUNCATED, "tag 305");
}
END_TEST

START_TEST(tells_what_the_header_promises)
{
    static const uint16_t keys[] = {1, 1, 0, 2, 1025, 0, 1, 2, 3072, 0, 1, 32632};
    struct pb_err err;
    struct pb_tiff_header header;
    for (uint16_t n = 1; n <= 2; n++) { /* PixelIsPoint alone names no CRS */
        struct tiff tiff = begin(LZW, 256, 1, 1);
        uint16_t cut[12];
        memcpy(cut, keys, sizeof cut);
        cut[3] = n;
        memcpy(tiff.head + 2048, cut, sizeof cut);
        entry(&tiff, 34735, 3, 12, 2048);
        entry(&tiff, 42113, 2, 4, 0x00393939);
        store(&tiff, 1);
        ck_assert_int_eq(look(&tiff, &limits, &err, &header), 0);
        ck_assert(header.geo.crs == (n == 2) && !header.geo.place && !header.geo.rpc);
        ck_assert(header.geo.nodata);
        ck_assert_str_eq(header.nodata, "999");
        close(tiff.fd);
    }
    struct tiff tiff = begin(LZW, 256, 1, 1);
    entry(&tiff, 33922, 12, 6, 2048);
    entry(&tiff, 34735, 3, 3, 2048); /* too short to be a list of keys */
    store(&tiff, 1);
    ck_assert_int_eq(look(&tiff, &limits, &err, &header), 0);
    ck_assert(header.geo.crs && header.geo.place && !header.geo.nodata);
    close(tiff.fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tiff_stored");
    TCase *absent = tcase_create("absent"), *holes = tcase_create("holes"),
          *geo = tcase_create("geo");
    tcase_add_test(absent, refuses_an_image_of_absent_tiles_only);
    tcase_add_test(absent, refuses_more_pixels_than_its_bytes_can_hold);
    tcase_add_test(absent, counts_no_hole_as_stored);
    tcase_add_test(holes, refuses_compressed_tiles_that_were_never_written);
    tcase_add_test(holes, leaves_holes_within_a_tile_to_decoders_that_notice);
    tcase_add_test(holes, takes_zeros_that_a_copy_stored_as_holes);
    tcase_add_test(holes, refuses_uncompressed_tiles_of_reserved_space);
    tcase_add_test(geo, refuses_geo_tags_past_the_end);
    tcase_add_test(geo, tells_what_the_header_promises);
    suite_add_tcase(suite, absent);
    suite_add_tcase(suite, holes);
    suite_add_tcase(suite, geo);
    return run_suite(suite);
}
