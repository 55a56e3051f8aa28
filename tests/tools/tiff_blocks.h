/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_BLOCKS_H
#define PB_TIFF_BLOCKS_H
/* The stored blocks of a TIFF's first image that a device may decode, for tests. */
#include "kernels/codec/decode_device.h"
#include "pipeline/raster/block_layout.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct tiff_block {
    uint8_t *bytes; /* stored bytes; free() */
    uint32_t n, least, most;
    enum pb_device_codec codec;
};

struct tiff_blocks {
    struct tiff_block *block;
    size_t n, room;
};

static inline void tiff_blocks_free(struct tiff_blocks *all)
{
    while (all->n > 0)
        free(all->block[--all->n].bytes);
    free(all->block);
    *all = (struct tiff_blocks){0};
}

static inline bool tiff_blocks_codec(uint16_t tiff, enum pb_device_codec *out)
{
    *out = tiff == 1 ? PB_DEVICE_STORED : tiff == 5 ? PB_DEVICE_LZW : PB_DEVICE_DEFLATE;
    return tiff == 1 || tiff == 5 || tiff == 8 || tiff == 32946;
}

static inline int tiff_blocks_read(const struct pb_tiff_file *file,
                                   const struct pb_block_layout *layout, uint64_t i,
                                   struct tiff_blocks *all)
{
    struct pb_block_place place;
    struct tiff_block block = {0};
    if (pb_block_layout_place(layout, file, i, &place) < 0)
        return -1;
    if (place.bytes == 0 || place.bytes >= 1 << 28 || layout->block_bytes >= 1 << 28)
        return 0;
    (void)tiff_blocks_codec(layout->compression, &block.codec);
    block.n = (uint32_t)place.bytes;
    block.most = (uint32_t)layout->block_bytes;
    block.least =
        (uint32_t)pb_block_layout_need(layout, (uint32_t)(i / layout->across % layout->down));
    block.bytes = malloc(block.n);
    if (all->n == all->room) {
        struct tiff_block *more = realloc(all->block, (2 * all->room + 64) * sizeof *more);
        if (more != NULL) {
            all->block = more;
            all->room = 2 * all->room + 64;
        }
    }
    if (block.bytes == NULL || all->n == all->room ||
        pb_file_part_read(&file->part, place.offset, block.bytes, block.n, NULL) !=
            (ssize_t)block.n) {
        free(block.bytes);
        return -1;
    }
    all->block[all->n++] = block;
    return 0;
}

/* Appends up to `most` blocks; out_layout may be NULL. How many; -1: it is no such file. */
static inline long tiff_blocks_add(const char *path, uint64_t most, struct tiff_blocks *all,
                                   struct pb_block_layout *out_layout)
{
    struct pb_err err = {0};
    struct stat st;
    struct pb_tiff_file file = {.name = path, .err = &err};
    struct pb_tiff_directory dir;
    struct pb_block_layout layout;
    enum pb_device_codec codec;
    uint64_t first = 0;
    size_t before = all->n;
    file.part.fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = file.part.fd < 0 || fstat(file.part.fd, &st) < 0 ? -1 : 0;
    if (rc == 0) {
        file.part.bytes = (uint64_t)st.st_size;
        rc = pb_tiff_read_magic(&file, &first);
    }
    if (rc == 0)
        rc = pb_tiff_read_directory(&file, first, 1, &dir);
    if (rc == 0)
        rc = pb_block_layout_read(&file, &dir, &layout);
    if (rc == 0 && !tiff_blocks_codec(layout.compression, &codec))
        rc = -1;
    if (rc == 0) {
        uint64_t n = (layout.planar ? (uint64_t)layout.bands : 1) * layout.across * layout.down;
        for (uint64_t i = 0; i < n && i < most && rc == 0; i++)
            rc = tiff_blocks_read(&file, &layout, i, all);
        if (out_layout != NULL)
            *out_layout = layout;
    }
    if (file.part.fd >= 0)
        (void)close(file.part.fd);
    return rc < 0 ? -1 : (long)(all->n - before);
}
#endif
