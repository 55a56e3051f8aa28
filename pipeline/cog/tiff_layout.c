/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Makes the layout of a COG. All directories and their small values are first, so that a remote
 * reader has the whole pyramid in its first request; the tables of blocks, which grow with the
 * image, follow them. Sizes of blocks are known, therefore classic or BigTIFF depends on the real
 * length of the file: the classic layout is made, and made again as BigTIFF if it is too long.
 *
 * Levels that begin at a page can be written before the data before them are known: the gap
 * there consists of whole blocks of the file system. */
#include "pipeline/cog/tiff_layout.h"
#include "pipeline/codec/predictor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OWN_ENTRIES       20 /* structural tags of a directory at most */
#define PAGE_BLOCKS_LEAST 16 /* for an overview; a smaller one is cheap to write at the end */

/* GDAL's structural metadata, for its own reader: with it one range request fetches a block and its
 * size. The length in the first line is that of the following lines; the blank reserves space for
 * "YES". */
const char pb_tiff_ghost[] = "GDAL_STRUCTURAL_METADATA_SIZE=000140 bytes\n"
                             "LAYOUT=IFDS_BEFORE_DATA\n"
                             "BLOCK_ORDER=ROW_MAJOR\n"
                             "BLOCK_LEADER=SIZE_AS_UINT4\n"
                             "BLOCK_TRAILER=LAST_4_BYTES_REPEATED\n"
                             "KNOWN_INCOMPATIBLE_EDITION=NO\n"
                             " ";
_Static_assert(sizeof pb_tiff_ghost - 1 == 43 + 140, "the ghost area must contain its own size");

size_t pb_tiff_ghost_bytes(void)
{
    return sizeof pb_tiff_ghost - 1;
}

static uint64_t type_bytes(uint16_t type)
{
    static const uint8_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

static struct pb_tiff_entry *add(struct pb_tiff_directory *directory, uint16_t tag, uint16_t type,
                                 uint64_t count, const void *value)
{
    struct pb_tiff_entry *entry = &directory->entry[directory->n++];
    *entry = (struct pb_tiff_entry){.tag = tag, .type = type, .count = count, .value = value};
    entry->bytes = count * type_bytes(type);
    return entry;
}

static void add_number(struct pb_tiff_directory *directory, uint16_t tag, uint16_t type,
                       uint32_t number)
{
    /* Little-endian: the low half of `number` is the SHORT. */
    add(directory, tag, type, 1, NULL)->number = number;
}

static int by_tag(const void *a, const void *b)
{
    const struct pb_tiff_entry *x = a, *y = b;
    return (x->tag > y->tag) - (x->tag < y->tag);
}

static bool has(const struct pb_tiff_directory *directory, uint32_t own, uint16_t tag)
{
    for (uint32_t i = 0; i < own; i++)
        if (directory->entry[i].tag == tag)
            return true;
    return false;
}

static void add_given(struct pb_tiff_directory *directory, const struct pb_tiff_tags *tags,
                      bool overview)
{
    enum { COLOR_MAP = 320, GDAL_NODATA = 42113 };
    uint32_t own = directory->n;
    for (size_t i = 0; tags != NULL && i < tags->n; i++) {
        const struct pb_tiff_tag *tag = &tags->tag[i];
        if ((overview && tag->tag != GDAL_NODATA && tag->tag != COLOR_MAP) ||
            has(directory, own, tag->tag) || type_bytes(tag->type) == 0 || tag->count == 0)
            continue;
        add(directory, tag->tag, tag->type, tag->count, tag->value);
    }
}

/* Adds size and blocks, which directories of images and of masks have in common. */
static void fill_blocks(const struct pb_tiff_layout *layout, uint32_t k,
                        struct pb_tiff_directory *d)
{
    const struct pb_tiff_image *image = &layout->image;
    const struct pb_tiff_level *level = &image->level[k];
    uint16_t offsets = layout->big ? PB_TIFF_LONG8 : PB_TIFF_LONG;
    uint32_t reduced = k > (image->masks ? 1 : 0), mask = pb_tiff_is_mask(image, k) ? 4 : 0;
    if (reduced || mask)
        add_number(d, 254, PB_TIFF_LONG, reduced | mask); /* NewSubfileType */
    add_number(d, 256, PB_TIFF_LONG, (uint32_t)level->width);
    add_number(d, 257, PB_TIFF_LONG, (uint32_t)level->height);
    add_number(d, 284, PB_TIFF_SHORT, 1); /* PlanarConfig: chunky */
    add_number(d, 322, PB_TIFF_LONG, (uint32_t)image->block_px);
    add_number(d, 323, PB_TIFF_LONG, (uint32_t)image->block_px);
    add(d, 324, offsets, level->n_blocks, NULL)->source = PB_TIFF_OFFSETS;
    add(d, 325, PB_TIFF_LONG, level->n_blocks, NULL)->source = PB_TIFF_COUNTS;
}

static uint32_t colors_of(const struct pb_tiff_image *image)
{
    return image->photometric == PB_PHOTOMETRIC_RGB || image->photometric == PB_PHOTOMETRIC_YCBCR
               ? 3
               : 1;
}

static void fill_jpeg(const struct pb_tiff_image *image, struct pb_tiff_directory *d)
{
    static const uint16_t half[2] = {2, 2};
    static const uint32_t levels[12] = {0, 1, 255, 1, 128, 1, 255, 1, 128, 1, 255, 1};
    if (image->tables != NULL)
        add(d, 347, PB_TIFF_UNDEFINED, image->tables_bytes, image->tables);
    if (image->photometric == PB_PHOTOMETRIC_YCBCR) {
        add(d, 530, PB_TIFF_SHORT, 2, half);      /* YCbCrSubSampling */
        add(d, 532, PB_TIFF_RATIONAL, 6, levels); /* ReferenceBlackWhite */
    }
}

static void fill_image(const struct pb_tiff_layout *layout, uint32_t k, struct pb_tiff_directory *d)
{
    const struct pb_tiff_image *image = &layout->image;
    uint32_t colors = colors_of(image);
    add(d, 258, PB_TIFF_SHORT, image->n_bands, layout->bits);
    add_number(d, 259, PB_TIFF_SHORT, image->compression);
    add_number(d, 262, PB_TIFF_SHORT,
               image->photometric != 0 ? image->photometric : PB_PHOTOMETRIC_GRAY);
    add_number(d, 277, PB_TIFF_SHORT, image->n_bands);
    if (k == 0 && image->software != NULL)
        add(d, 305, PB_TIFF_ASCII, strlen(image->software) + 1, image->software);
    if (image->predictor > 1)
        add_number(d, 317, PB_TIFF_SHORT, image->predictor);
    if (image->n_bands > colors) /* ExtraSamples: unspecified, or alpha */
        add(d, 338, PB_TIFF_SHORT, image->n_bands - colors, layout->extra);
    add(d, 339, PB_TIFF_SHORT, image->n_bands, layout->format);
    fill_jpeg(image, d);
    add_given(d, image->tags, k > 0);
}

static void fill_mask(const struct pb_tiff_layout *layout, struct pb_tiff_directory *d)
{
    add(d, 258, PB_TIFF_SHORT, 1, &layout->one);
    add_number(d, 259, PB_TIFF_SHORT, layout->image.mask_compression);
    add_number(d, 262, PB_TIFF_SHORT, 4); /* Photometric: transparency mask */
    add_number(d, 277, PB_TIFF_SHORT, 1);
}

static void fill(struct pb_tiff_layout *layout, uint32_t k)
{
    struct pb_tiff_directory *d = &layout->directory[k];
    d->n = 0;
    fill_blocks(layout, k, d);
    if (pb_tiff_is_mask(&layout->image, k))
        fill_mask(layout, d);
    else
        fill_image(layout, k, d);
    qsort(d->entry, d->n, sizeof *d->entry, by_tag);
    for (uint32_t i = 0; i < d->n; i++)
        if (d->entry[i].source == PB_TIFF_VALUE && d->entry[i].value == NULL)
            d->entry[i].value = &d->entry[i].number;
}

static uint64_t aligned(uint64_t offset, bool big)
{
    uint64_t to = big ? 8 : 2;
    return (offset + to - 1) / to * to;
}

static uint64_t place_values(struct pb_tiff_layout *layout, uint32_t k, bool tables, uint64_t at)
{
    struct pb_tiff_directory *d = &layout->directory[k];
    for (uint32_t i = 0; i < d->n; i++) {
        struct pb_tiff_entry *entry = &d->entry[i];
        if ((entry->source != PB_TIFF_VALUE) != tables ||
            entry->bytes <= pb_tiff_inline_bytes(layout->big))
            continue;
        entry->offset = aligned(at, layout->big);
        at = entry->offset + entry->bytes;
    }
    return at;
}

bool pb_tiff_begins_page(const struct pb_tiff_image *image, uint32_t level)
{
    uint32_t of_image = image->masks ? level / 2 : level;
    if (pb_tiff_is_mask(image, level))
        return false;
    return of_image == 0 || (of_image == 1 && image->level[level].n_blocks >= PAGE_BLOCKS_LEAST);
}

static uint64_t sum_blocks(const struct pb_tiff_image *image, uint32_t k)
{
    const struct pb_tiff_level *level = &image->level[k];
    uint64_t even = pb_tiff_even_bytes(image, k), sum = level->n_blocks * PB_TIFF_FRAME;
    if (even != 0)
        return sum + level->n_blocks * even;
    for (uint64_t i = 0; i < level->n_blocks; i++)
        sum += level->block[i].bytes;
    return sum;
}

static void place(struct pb_tiff_layout *layout)
{
    bool big = layout->big;
    uint64_t at = (big ? 16 : 8) + pb_tiff_ghost_bytes();
    for (uint32_t k = 0; k < layout->image.n_levels; k++) {
        fill(layout, k);
        struct pb_tiff_directory *d = &layout->directory[k];
        d->offset = aligned(at, big);
        at = d->offset + (big ? 8 + 20 * (uint64_t)d->n + 8 : 2 + 12 * (uint64_t)d->n + 4);
        at = place_values(layout, k, false, at);
    }
    for (uint32_t k = 0; k < layout->image.n_levels; k++)
        at = place_values(layout, k, true, at);
    for (uint32_t k = layout->image.n_levels; k-- > 0;) {
        struct pb_tiff_directory *d = &layout->directory[k];
        if (pb_tiff_begins_page(&layout->image, k))
            at = (at + PB_TIFF_PAGE_BYTES - 1) / PB_TIFF_PAGE_BYTES * PB_TIFF_PAGE_BYTES;
        d->data = at;
        at += sum_blocks(&layout->image, k);
        d->end = at;
    }
    layout->total = at;
}

uint64_t pb_tiff_layout_bytes(uint32_t n_levels, size_t n_tags)
{
    return sizeof(struct pb_tiff_layout) +
           n_levels * (sizeof(struct pb_tiff_directory) +
                       (OWN_ENTRIES + n_tags) * sizeof(struct pb_tiff_entry));
}

static uint16_t sample_format(enum pb_type type)
{
    if (pb_type_is_float(type))
        return 3;
    return type == PB_I16 || type == PB_I32 ? 2 : 1;
}

int pb_tiff_layout_create(const struct pb_tiff_image *image, struct pb_err *err,
                          struct pb_tiff_layout **out_layout)
{
    size_t n_tags = image->tags != NULL ? image->tags->n : 0;
    struct pb_tiff_layout *layout = calloc(1, sizeof *layout);
    struct pb_tiff_directory *directories = calloc(image->n_levels, sizeof *directories);
    struct pb_tiff_entry *entries =
        calloc(image->n_levels * (OWN_ENTRIES + n_tags), sizeof *entries);
    if (layout == NULL || directories == NULL || entries == NULL) {
        free(layout);
        free(directories);
        free(entries);
        return pb_fail(err, PB_E_MEMORY, "no memory for the directories of a product");
    }
    layout->image = *image;
    layout->directory = directories;
    for (uint32_t k = 0; k < image->n_levels; k++)
        directories[k].entry = entries + k * (OWN_ENTRIES + n_tags);
    for (uint32_t b = 0; b < image->n_bands; b++) {
        layout->bits[b] = (uint16_t)(8 * pb_type_bytes(image->type));
        layout->format[b] = sample_format(image->type);
    }
    layout->one = 1;
    uint32_t colors = colors_of(image);
    if (image->alpha && image->n_bands > colors)
        layout->extra[image->n_bands - colors - 1] = 2; /* unassociated alpha */
    layout->big = image->force_big;
    place(layout);
    if (!layout->big && layout->total > UINT32_MAX) {
        layout->big = true;
        place(layout);
    }
    *out_layout = layout;
    return 0;
}

uint64_t pb_tiff_layout_total(const struct pb_tiff_layout *layout)
{
    return layout->total;
}

uint64_t pb_tiff_layout_data(const struct pb_tiff_layout *layout, uint32_t level)
{
    return layout->directory[level].data;
}

bool pb_tiff_layout_big(const struct pb_tiff_layout *layout)
{
    return layout->big;
}

void pb_tiff_layout_destroy(struct pb_tiff_layout *layout)
{
    if (layout == NULL)
        return;
    free(layout->directory[0].entry); /* one allocation for all */
    free(layout->directory);
    free(layout);
}
