/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Writes the layout of tiff_layout.c from front to back. Tables of blocks are made while they are
 * written, from the sizes in the index: no memory here grows with the image. */
#include "pipeline/cog/tiff_layout.h"

#include <errno.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "values are written as they lie in memory");

struct writer {
    const struct pb_tiff_layout *layout;
    const struct pb_spool *spool;
    struct pb_file_out *file;
    struct pb_err *err;
};

static int put(const struct writer *w, const void *data, size_t bytes)
{
    return pb_file_out_add(w->file, data, bytes, w->err);
}

static int put_number(const struct writer *w, uint64_t number, size_t bytes)
{
    return put(w, &number, bytes);
}

static int pad_to(const struct writer *w, uint64_t offset)
{
    static const char zero[8];
    return put(w, zero, (size_t)(offset - pb_file_out_at(w->file)));
}

static int put_header(const struct writer *w)
{
    bool big = w->layout->big;
    int rc = put(w, big ? "II\x2b\0\x08\0\0\0" : "II\x2a\0", big ? 8 : 4);
    if (rc == 0)
        rc = put_number(w, w->layout->directory[0].offset, big ? 8 : 4);
    if (rc == 0)
        rc = put(w, pb_tiff_ghost, pb_tiff_ghost_bytes());
    return rc;
}

/* The table of a directory's blocks: where each one starts, or how long it is. */
static int put_table(const struct writer *w, uint32_t k, const struct pb_tiff_entry *entry)
{
    const struct pb_tiff_image *image = &w->layout->image;
    uint64_t at = w->layout->directory[k].data;
    size_t width = entry->type == PB_TIFF_LONG8 ? 8 : 4;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < image->level[k].n_blocks; i++) {
        uint64_t bytes = pb_tiff_block_bytes(image, k, i);
        at += PB_TIFF_LEADER;
        rc = put_number(w, entry->source == PB_TIFF_OFFSETS ? at : bytes, width);
        at += bytes + PB_TIFF_TRAILER;
    }
    return rc;
}

static int put_value(const struct writer *w, uint32_t k, const struct pb_tiff_entry *entry)
{
    if (entry->source != PB_TIFF_VALUE)
        return put_table(w, k, entry);
    return put(w, entry->value, (size_t)entry->bytes);
}

static int put_entry(const struct writer *w, uint32_t k, const struct pb_tiff_entry *entry)
{
    size_t word = (size_t)pb_tiff_inline_bytes(w->layout->big);
    int rc = put_number(w, entry->tag, 2);
    if (rc == 0)
        rc = put_number(w, entry->type, 2);
    if (rc == 0)
        rc = put_number(w, entry->count, word);
    if (rc != 0)
        return rc;
    if (entry->offset != 0)
        return put_number(w, entry->offset, word);
    rc = put_value(w, k, entry);
    return rc != 0 ? rc : put_number(w, 0, word - (size_t)entry->bytes);
}

static int put_directory(const struct writer *w, uint32_t k)
{
    const struct pb_tiff_directory *d = &w->layout->directory[k];
    bool big = w->layout->big, last = k + 1 == w->layout->image.n_levels;
    int rc = pad_to(w, d->offset);
    if (rc == 0)
        rc = put_number(w, d->n, big ? 8 : 2);
    for (uint32_t i = 0; rc == 0 && i < d->n; i++)
        rc = put_entry(w, k, &d->entry[i]);
    if (rc == 0)
        rc = put_number(w, last ? 0 : d[1].offset, big ? 8 : 4);
    return rc;
}

/* Values that did not fit into their entries: the small ones, or the tables of blocks. */
static int put_values(const struct writer *w, uint32_t k, bool tables)
{
    const struct pb_tiff_directory *d = &w->layout->directory[k];
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < d->n; i++) {
        const struct pb_tiff_entry *entry = &d->entry[i];
        if (entry->offset == 0 || (entry->source != PB_TIFF_VALUE) != tables)
            continue;
        rc = pad_to(w, entry->offset);
        if (rc == 0)
            rc = put_value(w, k, entry);
    }
    return rc;
}

/* Copies a block from the spool straight into the file's buffer. */
static int put_block(const struct writer *w, const struct pb_spool_extent *extent)
{
    char tail[PB_TIFF_TRAILER] = {0};
    int rc = put_number(w, extent->bytes, PB_TIFF_LEADER);
    for (uint64_t done = 0; rc == 0 && done < extent->bytes;) {
        void *room;
        size_t n;
        rc = pb_file_out_room(w->file, w->err, &room, &n);
        if (rc != 0)
            break;
        n = extent->bytes - done < n ? (size_t)(extent->bytes - done) : n;
        rc = pb_spool_read(w->spool, extent->offset + done, room, n, w->err);
        if (rc != 0)
            break;
        /* The last four bytes may come in two reads. */
        size_t keep = n < sizeof tail ? n : sizeof tail;
        memmove(tail, tail + keep, sizeof tail - keep);
        memcpy(tail + sizeof tail - keep, (const char *)room + n - keep, keep);
        pb_file_out_commit(w->file, n);
        done += n;
    }
    return rc != 0 ? rc : put(w, tail, sizeof tail);
}

static int put_blocks(const struct writer *w)
{
    const struct pb_tiff_image *image = &w->layout->image;
    int rc = 0;
    for (uint32_t k = image->n_levels; rc == 0 && k-- > 0;)
        for (uint64_t i = 0; rc == 0 && i < image->level[k].n_blocks; i++)
            rc = put_block(w, &image->level[k].extent[i]);
    return rc;
}

int pb_tiff_place_block(const struct pb_tiff_layout *layout, uint32_t level, uint64_t block,
                        const void *data, struct pb_file_out *file, struct pb_err *err)
{
    uint64_t bytes = pb_tiff_even_bytes(&layout->image, level);
    uint64_t at =
        layout->directory[level].data + block * (PB_TIFF_LEADER + bytes + PB_TIFF_TRAILER);
    char *body = (char *)(uintptr_t)data; /* an iovec knows no const */
    struct iovec parts[] = {
        {&bytes, PB_TIFF_LEADER},
        {body, (size_t)bytes},
        {body + bytes - PB_TIFF_TRAILER, PB_TIFF_TRAILER},
    };
    return pb_file_out_place(file, at, parts, 3, err);
}

int pb_tiff_write(const struct pb_tiff_layout *layout, const struct pb_spool *spool,
                  struct pb_file_out *file, struct pb_err *err)
{
    struct writer w = {layout, spool, file, err};
    uint32_t n_levels = layout->image.n_levels;
    int rc = put_header(&w);
    for (uint32_t k = 0; rc == 0 && k < n_levels; k++) {
        rc = put_directory(&w, k);
        if (rc == 0)
            rc = put_values(&w, k, false);
    }
    for (uint32_t k = 0; rc == 0 && k < n_levels; k++)
        rc = put_values(&w, k, true);
    if (rc == 0 && spool != NULL)
        rc = put_blocks(&w);
    else if (rc == 0)
        rc = pb_file_out_add_placed(file, layout->total - layout->data, err);
    if (rc == 0 && pb_file_out_at(file) != layout->total)
        rc = pb_fail(err, PB_E_SYSTEM, "a product has %llu bytes where %llu were laid out",
                     (unsigned long long)pb_file_out_at(file), (unsigned long long)layout->total);
    return rc;
}
