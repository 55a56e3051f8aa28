/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/block_decode.h"

#include "pipeline/device/mem.h"

#include <errno.h>
#include <stdio.h>

/* Limits of decoding two blocks at a time: larger blocks would need too much memory, and with
 * fewer compressed bytes there is no gain. */
enum {
    COMPRESSION_NONE = 1,
    RUN_BYTES = 1 << 20,
    PAIR_BYTES = 8 << 20,
    PAIR_STORED = 4096,
    WINDOW_ALIGN = 64
};

int pb_block_damaged(const struct pb_block_decoder *decoder, const struct pb_tiff_file *file,
                     const struct pb_block *block, const char *why)
{
    const struct pb_block_layout *l = decoder->layout;
    char plane[24] = "";
    if (l->planar)
        (void)snprintf(plane, sizeof plane, "band %lu, ", (unsigned long)block->plane + 1);
    return PB_TIFF_FAIL(
        file, PB_E_INPUT_DAMAGED,
        "%s%s %llu (column %lu, row %lu; %llu bytes at byte %llu) does not decode: %s: %s", plane,
        l->tiled ? "tile" : "strip", (unsigned long long)block->index, (unsigned long)block->col,
        (unsigned long)block->row, (unsigned long long)block->place.bytes,
        (unsigned long long)block->place.offset,
        decoder->decode != NULL ? decoder->decode->name : "uncompressed", why);
}

int pb_block_read_bytes(const struct pb_block_decoder *decoder, const struct pb_tiff_file *file,
                        const struct pb_block *block, uint64_t offset, void *out, uint64_t bytes)
{
    char what[80];
    (void)snprintf(what, sizeof what, "%s %llu of the image",
                   decoder->layout->tiled ? "tile" : "strip", (unsigned long long)block->index);
    return pb_tiff_read_at(file, offset, out, (size_t)bytes, what);
}

/* --- life ------------------------------------------------------------------------------------ */

/* Bytes of `decoded` without the row that follows it. */
static uint64_t scratch_bytes(const struct pb_block_decoder *d)
{
    const struct pb_block_layout *l = d->layout;
    if (d->decode != NULL && d->decode->verifies_only)
        return 0;
    if (d->decode != NULL || l->block_bytes <= RUN_BYTES)
        return l->block_bytes;
    return l->row_bytes < RUN_BYTES ? RUN_BYTES : l->row_bytes;
}

static uint64_t first_bytes(const struct pb_block_decoder *d)
{
    return scratch_bytes(d) + d->layout->row_bytes;
}

static uint64_t stored_bytes(const struct pb_block_decoder *d)
{
    return d->decode != NULL ? d->layout->stored_max : 0;
}

static size_t window_bytes(const struct pb_block_decoder *d)
{
    const size_t bytes = d->decode->window_bytes((size_t)d->layout->row_bytes);
    return bytes < d->layout->block_bytes ? bytes : (size_t)d->layout->block_bytes;
}

static size_t align_up(size_t bytes)
{
    return (bytes + WINDOW_ALIGN - 1) / WINDOW_ALIGN * WINDOW_ALIGN;
}

static uint64_t windows_bytes(const struct pb_block_decoder *d)
{
    return d->has_windows ? d->n_buffers * align_up(window_bytes(d)) +
                                2 * align_up((size_t)d->layout->row_bytes)
                          : 0;
}

void pb_block_decoder_fini(struct pb_block_decoder *d)
{
    if (d->decode != NULL)
        d->decode->destroy(d->context);
    for (unsigned i = 0; i < d->n_buffers; i++) {
        pb_mem_free(PB_MEM_HOST, d->buffer[i].decoded, i == 0 ? first_bytes(d) : scratch_bytes(d));
        pb_mem_free(PB_MEM_HOST, d->buffer[i].stored, stored_bytes(d));
    }
    pb_mem_free(PB_MEM_HOST, d->windows, windows_bytes(d));
}

static uint64_t whole_bytes(const struct pb_block_decoder *d)
{
    return d->n_buffers * scratch_bytes(d) + d->layout->row_bytes;
}

int pb_block_decoder_init(struct pb_block_decoder *d, const struct pb_block_layout *l,
                          struct pb_err *err)
{
    d->layout = l;
    d->n_buffers = 1;
    d->decode = pb_decode_of(l->compression);
    if (d->decode == NULL)
        return l->compression == COMPRESSION_NONE ? 0 : -ENOTSUP;
    if (l->block_bytes > UINT32_MAX)
        return -ENOTSUP;
    bool several = (uint64_t)l->across * l->down > 1 || (l->planar && l->bands > 1);
    d->has_windows = d->decode->start_window != NULL && l->block_bytes <= PAIR_BYTES;
    if (d->has_windows && several)
        d->n_buffers = 2;
    else if (d->has_windows && windows_bytes(d) >= whole_bytes(d))
        d->has_windows = false;
    if (d->decode->create(&d->context) < 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for a decoder");
    return 0;
}

uint64_t pb_block_decoder_bytes(const struct pb_block_decoder *d)
{
    const uint64_t whole = whole_bytes(d), windows = windows_bytes(d);
    uint64_t bytes = whole > windows ? whole : windows; /* a reader uses one of the two */
    if (d->decode != NULL)
        bytes += d->n_buffers * d->layout->stored_max + d->decode->context_bytes;
    return bytes;
}

uint64_t pb_block_decoder_spared_bytes(const struct pb_block_decoder *d)
{
    const uint64_t whole = whole_bytes(d), windows = windows_bytes(d);
    return d->n_buffers == 2 && windows < whole ? whole - windows : 0;
}

/* Allocates memory, whose pages are zeros, unless *memory is allocated. */
static int take(unsigned char **memory, uint64_t bytes, struct pb_err *err)
{
    void *taken = NULL;
    if (*memory != NULL || bytes == 0)
        return 0;
    int rc = pb_mem_alloc(PB_MEM_HOST, bytes, err, &taken);
    *memory = taken;
    return rc;
}

static int take_stored(struct pb_block_decoder *d, struct pb_err *err)
{
    int rc = 0;
    d->stored_bytes = stored_bytes(d);
    for (unsigned i = 0; i < d->n_buffers && rc == 0; i++)
        rc = take(&d->buffer[i].stored, d->stored_bytes, err);
    return rc;
}

int pb_block_decoder_take_memory(struct pb_block_decoder *d, struct pb_err *err)
{
    int rc = take_stored(d, err);
    if (d->n_buffers == 1 && d->windows != NULL) { /* the first read used it */
        pb_mem_free(PB_MEM_HOST, d->windows, windows_bytes(d));
        d->windows = NULL;
    }
    d->decoded_bytes = scratch_bytes(d);
    for (unsigned i = 0; i < d->n_buffers && rc == 0; i++)
        rc = take(&d->buffer[i].decoded, i == 0 ? first_bytes(d) : d->decoded_bytes, err);
    if (rc == 0)
        d->row = d->buffer[0].decoded + d->decoded_bytes;
    return rc;
}

/* Ends the use of a buffer; a block that is being decoded is stopped. */
static void release(struct pb_block_decoder *d, struct pb_block_buffer *b)
{
    if (b->state == PB_BLOCK_STARTED)
        d->decode->stop(d->context, (unsigned)(b - d->buffer));
    b->state = PB_BLOCK_NONE;
}

int pb_block_decoder_take_windows(struct pb_block_decoder *d, struct pb_err *err)
{
    /* Both lanes decode at once: a block started ahead in one must not continue. */
    for (unsigned i = 0; i < d->n_buffers; i++)
        release(d, &d->buffer[i]);
    int rc = take_stored(d, err);
    d->window_bytes = window_bytes(d);
    return rc ? rc : take(&d->windows, windows_bytes(d), err);
}

/* --- a block --------------------------------------------------------------------------------- */

/* The buffer that has the block, or NULL. */
static struct pb_block_buffer *find(struct pb_block_decoder *d, const struct pb_block *block)
{
    for (unsigned i = 0; block != NULL && i < d->n_buffers; i++)
        if (d->buffer[i].state != PB_BLOCK_NONE && d->buffer[i].index == block->index)
            return &d->buffer[i];
    return NULL;
}

/* Returns a buffer other than `keep` for a new block: the first one if both are free. */
static struct pb_block_buffer *take_buffer(struct pb_block_decoder *d,
                                           const struct pb_block_buffer *keep)
{
    struct pb_block_buffer *b = &d->buffer[keep == &d->buffer[0] && d->n_buffers > 1];
    release(d, b);
    return b;
}

static uint64_t stored_of(const struct pb_block_decoder *d, const struct pb_block *block)
{
    /* Bytes beyond the most that a block of this size can need are not read. */
    return block->place.bytes < d->stored_bytes ? block->place.bytes : d->stored_bytes;
}

static bool pays(const struct pb_block_decoder *d, const struct pb_block *block)
{
    return d->n_buffers == 2 && block != NULL && block->place.bytes >= PAIR_STORED;
}

static int start(struct pb_block_decoder *d, const struct pb_tiff_file *file,
                 const struct pb_block *block, struct pb_block_buffer *b)
{
    uint64_t bytes = stored_of(d, block);
    int rc = pb_block_read_bytes(d, file, block, block->place.offset, b->stored, bytes);
    if (rc < 0)
        return rc;
    d->decode->start(d->context, (unsigned)(b - d->buffer), b->stored, (size_t)bytes, b->decoded,
                     (size_t)pb_block_layout_need(d->layout, block->row),
                     (size_t)d->layout->block_bytes);
    b->index = block->index;
    b->state = PB_BLOCK_STARTED;
    return 0;
}

/* Starts decoding the next block while the block in `keep` is in use. */
static void start_ahead(struct pb_block_decoder *d, const struct pb_tiff_file *file,
                        const struct pb_block *next, const struct pb_block_buffer *keep)
{
    if (find(d, next) != NULL)
        return;
    struct pb_block_buffer *b = take_buffer(d, keep);
    struct pb_tiff_file quiet = *file;
    b->err = (struct pb_err){0}; /* reported when the block is requested */
    quiet.err = &b->err;
    b->rc = start(d, &quiet, next, b);
    if (b->rc < 0) {
        b->index = next->index;
        b->state = PB_BLOCK_UNREAD;
    }
}

/* Decodes until a started block is complete or refused. */
static void finish_one(struct pb_block_decoder *d)
{
    unsigned lane = 0;
    const char *why = "";
    int rc = d->decode->next(d->context, &lane, &why);
    d->buffer[lane].state = rc == 0 ? PB_BLOCK_DECODED : PB_BLOCK_REFUSED;
    d->buffer[lane].why = why;
}

static int decode_alone(struct pb_block_decoder *d, const struct pb_tiff_file *file,
                        const struct pb_block *block, struct pb_block_buffer *b)
{
    uint64_t bytes = stored_of(d, block);
    const char *why = "";
    int rc = pb_block_read_bytes(d, file, block, block->place.offset, b->stored, bytes);
    if (rc < 0)
        return rc;
    rc = d->decode->run(d->context, b->stored, (size_t)bytes, b->decoded,
                        (size_t)pb_block_layout_need(d->layout, block->row),
                        (size_t)d->layout->block_bytes, &why);
    b->index = block->index;
    b->state = rc == 0 ? PB_BLOCK_DECODED : PB_BLOCK_REFUSED;
    b->why = why;
    return 0;
}

/* Reports the error of a block that was started ahead, once; the next request tries again. */
static int refused(struct pb_block_decoder *d, const struct pb_tiff_file *file,
                   const struct pb_block *block, struct pb_block_buffer *b)
{
    bool unread = b->state == PB_BLOCK_UNREAD;
    b->state = PB_BLOCK_NONE;
    if (!unread)
        return pb_block_damaged(d, file, block, b->why);
    if (file->err != NULL && file->err->code == PB_OK)
        *file->err = b->err;
    return b->rc;
}

int pb_block_decode(struct pb_block_decoder *d, const struct pb_tiff_file *file,
                    const struct pb_block *block, const struct pb_block *next,
                    struct pb_block_buffer **out_buffer)
{
    int rc = 0;
    struct pb_block_buffer *b = find(d, block);
    bool two = pays(d, block) && pays(d, next) && next->index != block->index;
    if (b == NULL) {
        b = take_buffer(d, find(d, next));
        rc = two ? start(d, file, block, b) : decode_alone(d, file, block, b);
    }
    if (rc == 0 && two && b->state == PB_BLOCK_STARTED)
        start_ahead(d, file, next, b);
    while (b->state == PB_BLOCK_STARTED)
        finish_one(d);
    *out_buffer = b;
    if (rc == 0 && (b->state == PB_BLOCK_REFUSED || b->state == PB_BLOCK_UNREAD))
        rc = refused(d, file, block, b);
    return rc;
}

/* --- blocks through windows ------------------------------------------------------------------- */

unsigned char *pb_block_window(const struct pb_block_decoder *d, unsigned lane)
{
    return d->windows + lane * align_up(d->window_bytes);
}

unsigned char *pb_block_window_row(const struct pb_block_decoder *d, unsigned i)
{
    return pb_block_window(d, d->n_buffers) + i * align_up((size_t)d->layout->row_bytes);
}

int pb_block_start_window(struct pb_block_decoder *d, const struct pb_tiff_file *file,
                          const struct pb_block *block, unsigned lane)
{
    struct pb_block_buffer *b = &d->buffer[lane];
    const struct pb_decode_limits limits = {(size_t)pb_block_layout_need(d->layout, block->row),
                                            (size_t)d->layout->block_bytes};
    const uint64_t bytes = stored_of(d, block);
    int rc = pb_block_read_bytes(d, file, block, block->place.offset, b->stored, bytes);
    if (rc == 0)
        d->decode->start_window(d->context, lane, b->stored, (size_t)bytes,
                                pb_block_window(d, lane), d->window_bytes, &limits);
    return rc;
}
