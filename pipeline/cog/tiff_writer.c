/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Writes the layout of tiff_layout.c from the beginning to the end, and skips placed levels. Blocks
 * in memory are written from there, all other data through one buffer. Tables of blocks are made
 * while they are written, from the sizes in the index: no memory here grows with the image. */
#include "pipeline/cog/tiff_layout.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "values are written in the byte order of memory");

#define BUFFER_BYTES ((size_t)128 << 10)
#define BATCH_BYTES  ((size_t)8 << 20) /* written at once */

/* Next data to be written: parts in the buffer, and blocks in place. */
struct writer {
    const struct pb_tiff_layout *layout;
    const struct pb_tiff_blocks *source;
    struct pb_gap_file *file;
    struct pb_err *err;
    uint64_t at;  /* offset of the parts in the finished file */
    size_t bytes; /* size of the parts */
    int n_parts;
    size_t held; /* bytes in the buffer */
    struct iovec part[PB_GAP_PARTS_MAX];
    char buffer[BUFFER_BYTES];
};
_Static_assert(sizeof(struct writer) <= PB_TIFF_WRITE_BYTES, "the plan counts it");

static int flush(struct writer *w)
{
    uint64_t at = pb_gap_before(w->source->gaps, w->source->n_gaps, w->at);
    int rc = w->bytes > 0 ? pb_gap_file_write(w->file, at, w->part, w->n_parts, w->err) : 0;
    w->at += w->bytes;
    w->bytes = 0;
    w->n_parts = 0;
    w->held = 0;
    return rc;
}

/* Makes room for a part, also in the buffer; out_bytes: free bytes of the buffer, at least 1. */
static int room(struct writer *w, size_t *out_bytes)
{
    bool full =
        w->held == BUFFER_BYTES || w->n_parts == PB_GAP_PARTS_MAX || w->bytes >= BATCH_BYTES;
    int rc = full ? flush(w) : 0;
    *out_bytes = BUFFER_BYTES - w->held;
    return rc;
}

/* Call it after room(). */
static void add_part(struct writer *w, const void *data, size_t bytes)
{
    char *from = (char *)(uintptr_t)data; /* an iovec has no const */
    struct iovec *last = w->n_parts > 0 ? &w->part[w->n_parts - 1] : NULL;
    if (last != NULL && (char *)last->iov_base + last->iov_len == from)
        last->iov_len += bytes;
    else
        w->part[w->n_parts++] = (struct iovec){from, bytes};
    w->bytes += bytes;
}

/* Adds the bytes that were appended to the buffer. */
static void add_held(struct writer *w, size_t bytes)
{
    add_part(w, w->buffer + w->held, bytes);
    w->held += bytes;
}

static int put(struct writer *w, const void *data, size_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        size_t n;
        int rc = room(w, &n);
        if (rc != 0)
            return rc;
        n = bytes < n ? bytes : n;
        memcpy(w->buffer + w->held, from, n);
        add_held(w, n);
        from += n;
        bytes -= n;
    }
    return 0;
}

static int put_number(struct writer *w, uint64_t number, size_t bytes)
{
    return put(w, &number, bytes);
}

static int pad_to(struct writer *w, uint64_t offset)
{
    static const char zero[PB_TIFF_PAGE_BYTES];
    return put(w, zero, (size_t)(offset - w->at - w->bytes));
}

static int put_header(struct writer *w)
{
    bool big = w->layout->big;
    int rc = put(w, big ? "II\x2b\0\x08\0\0\0" : "II\x2a\0", big ? 8 : 4);
    if (rc == 0)
        rc = put_number(w, w->layout->directory[0].offset, big ? 8 : 4);
    if (rc == 0)
        rc = put(w, pb_tiff_ghost, pb_tiff_ghost_bytes());
    return rc;
}

/* Writes the table of a directory's blocks: their offsets, or their sizes. */
static int put_table(struct writer *w, uint32_t k, const struct pb_tiff_entry *entry)
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

static int put_value(struct writer *w, uint32_t k, const struct pb_tiff_entry *entry)
{
    if (entry->source != PB_TIFF_VALUE)
        return put_table(w, k, entry);
    return put(w, entry->value, (size_t)entry->bytes);
}

static int put_entry(struct writer *w, uint32_t k, const struct pb_tiff_entry *entry)
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

static int put_directory(struct writer *w, uint32_t k)
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

/* Writes values that did not fit into their entries: the small ones, or the tables of blocks. */
static int put_values(struct writer *w, uint32_t k, bool tables)
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

/* Writes a block with its frame: bytes that are not in memory are read into the buffer. */
static int put_block(struct writer *w, uint32_t k, uint64_t i)
{
    const struct pb_tiff_blocks *source = w->source;
    uint64_t bytes = pb_tiff_block_bytes(&w->layout->image, k, i) + PB_TIFF_FRAME;
    int rc = 0;
    for (uint64_t done = 0; rc == 0 && done < bytes;) {
        const void *data = NULL;
        size_t most, n = (size_t)(bytes - done);
        rc = room(w, &most);
        if (source->at != NULL)
            n = source->at(source->user, k, i, done, &data);
        if (data == NULL)
            n = n < most ? n : most;
        if (rc == 0 && data == NULL)
            rc = source->read(source->user, k, i, done, w->buffer + w->held, n, w->err);
        if (data != NULL)
            add_part(w, data, n);
        else
            add_held(w, n);
        done += n;
    }
    return rc;
}

/* Skips the blocks of a level that are in the file. */
static int pass_over(struct writer *w, const struct pb_tiff_directory *d)
{
    uint64_t at = pb_gap_before(w->source->gaps, w->source->n_gaps, d->data);
    w->at = d->end;
    return pb_gap_file_take(w->file, at, d->end - d->data, w->err);
}

static int put_blocks(struct writer *w)
{
    const struct pb_tiff_image *image = &w->layout->image;
    int rc = 0;
    for (uint32_t k = image->n_levels; rc == 0 && k-- > 0;) {
        const struct pb_tiff_directory *d = &w->layout->directory[k];
        rc = pad_to(w, d->data);
        if (rc == 0)
            rc = flush(w); /* a gap may be here */
        if (w->source->placed >> k & 1)
            rc = rc ? rc : pass_over(w, d);
        else
            for (uint64_t i = 0; rc == 0 && i < image->level[k].n_blocks; i++)
                rc = put_block(w, k, i);
    }
    return rc != 0 ? rc : flush(w);
}

int pb_tiff_place_block(struct pb_gap_file *file, uint64_t at, const void *data, uint64_t bytes,
                        struct pb_err *err)
{
    char *body = (char *)(uintptr_t)data; /* an iovec has no const */
    char last[PB_TIFF_TRAILER] = {0};
    size_t n = bytes < sizeof last ? (size_t)bytes : sizeof last;
    memcpy(last + sizeof last - n, body + bytes - n, n);
    struct iovec parts[] = {
        {&bytes, PB_TIFF_LEADER},
        {body, (size_t)bytes},
        {last, sizeof last},
    };
    return pb_gap_file_write(file, at, parts, 3, err);
}

int pb_tiff_place_even(const struct pb_tiff_layout *layout, uint32_t level, uint64_t block,
                       const void *data, struct pb_gap_file *file, struct pb_err *err)
{
    uint64_t bytes = pb_tiff_even_bytes(&layout->image, level);
    uint64_t at = layout->directory[level].data + block * (bytes + PB_TIFF_FRAME);
    return pb_tiff_place_block(file, at, data, bytes, err);
}

static int write_all(struct writer *w)
{
    uint32_t n_levels = w->layout->image.n_levels;
    int rc = put_header(w);
    for (uint32_t k = 0; rc == 0 && k < n_levels; k++) {
        rc = put_directory(w, k);
        if (rc == 0)
            rc = put_values(w, k, false);
    }
    for (uint32_t k = 0; rc == 0 && k < n_levels; k++)
        rc = put_values(w, k, true);
    return rc != 0 ? rc : put_blocks(w);
}

int pb_tiff_write(const struct pb_tiff_layout *layout, const struct pb_tiff_blocks *source,
                  struct pb_gap_file *file, struct pb_err *err)
{
    struct writer *w = malloc(sizeof *w);
    if (w == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to write a product");
    w->layout = layout;
    w->source = source;
    w->file = file;
    w->err = err;
    w->at = w->bytes = w->held = 0;
    w->n_parts = 0;
    int rc = write_all(w);
    if (rc == 0 && w->at != layout->total)
        rc = pb_fail(err, PB_E_SYSTEM, "a product has %llu bytes where %llu were laid out",
                     (unsigned long long)w->at, (unsigned long long)layout->total);
    free(w);
    return rc;
}
