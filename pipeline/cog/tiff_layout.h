/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_LAYOUT_H
#define PB_TIFF_LAYOUT_H
/* Layout that tiff_layout.c makes and tiff_writer.c writes. Private to the two. */
#include "pipeline/cog/tiff_writer.h"

enum {
    PB_TIFF_ASCII = 2,
    PB_TIFF_SHORT = 3,
    PB_TIFF_LONG = 4,
    PB_TIFF_RATIONAL = 5,
    PB_TIFF_UNDEFINED = 7,
    PB_TIFF_LONG8 = 16
};

enum pb_tiff_source { PB_TIFF_VALUE, PB_TIFF_OFFSETS, PB_TIFF_COUNTS };

struct pb_tiff_entry {
    uint16_t tag, type;
    enum pb_tiff_source source;
    uint64_t count;
    const void *value; /* PB_TIFF_VALUE; may point at `number` */
    uint32_t number;
    uint64_t bytes;  /* count x size of type */
    uint64_t offset; /* offset of a value that does not fit into the entry, else 0 */
};

struct pb_tiff_directory {
    struct pb_tiff_entry *entry; /* ascending by tag */
    uint32_t n;
    uint64_t offset;
    uint64_t data; /* offset of the first block's leader */
    uint64_t end;  /* after the last block's trailer */
};

struct pb_tiff_layout {
    struct pb_tiff_image image;
    bool big;
    uint64_t total;
    struct pb_tiff_directory *directory;
    uint16_t bits[PB_BANDS_MAX], format[PB_BANDS_MAX], extra[PB_BANDS_MAX];
    uint16_t one; /* value 1: bits of a mask sample */
};

static inline bool pb_tiff_is_mask(const struct pb_tiff_image *image, uint32_t level)
{
    return image->masks && level % 2 == 1;
}

/* Bytes of every block of the level; 0 = sizes differ. */
static inline uint64_t pb_tiff_even_bytes(const struct pb_tiff_image *image, uint32_t level)
{
    return pb_tiff_is_mask(image, level) ? image->mask_block_bytes : image->block_bytes;
}

static inline uint64_t pb_tiff_block_bytes(const struct pb_tiff_image *image, uint32_t level,
                                           uint64_t block)
{
    uint64_t even = pb_tiff_even_bytes(image, level);
    return even != 0 ? even : image->level[level].block[block].bytes;
}

extern const char pb_tiff_ghost[]; /* right after the header */
size_t pb_tiff_ghost_bytes(void);
/* Largest size of a value inside its entry, in bytes. */
static inline uint64_t pb_tiff_inline_bytes(bool big)
{
    return big ? 8 : 4;
}
#endif
