/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A reader of stored blocks: fills slots with chunks. Chunk and slot are taken together, so that
 * chunks come to the feeder in their order. What the host has to decode it decodes into the slot,
 * by files of its own. */
#include "pipeline/run/whole/whole_inside.h"

#include "config/base/clock.h"
#include "pipeline/profile/work.h"

#include <errno.h>
#include <string.h>

/* -EPIPE: there are no more. */
static int take_chunk(struct pb_exec_whole *e, struct wic_slot *slot, uint32_t *out_chunk)
{
    pthread_mutex_lock(&e->lock);
    int rc = e->next_chunk < e->map.n_chunks ? 0 : -EPIPE;
    rc = rc ? rc : wic_acquire(e->stream->in, WIC_FOREVER, slot);
    if (rc == 0)
        *out_chunk = e->next_chunk++;
    pthread_mutex_unlock(&e->lock);
    return rc;
}

struct reader {
    struct pb_exec_whole *e;
    struct pb_raster *file[PB_FILES_MAX]; /* NULL until it is needed */
};

/* Pixels of a cell that the host decodes, as many of its planes as follow in the chunk, and its
 * mask; *at is moved on. */
static int fill_cell(struct reader *r, uint32_t *at, uint32_t end, void *data, struct pb_err *err)
{
    const struct pb_stream *s = r->e->stream;
    const struct pb_whole_piece *first = &r->e->map.piece[*at], *piece = first;
    const struct pb_block_layout *l = r->e->source[first->source].blocks.layout;
    struct pb_window to = {
        .data = (char *)data + first->at, .row_bytes = (size_t)l->row_bytes, .rect = first->rect};
    int32_t bands[PB_BANDS_MAX];
    size_t n = 0;
    for (; *at < end && piece->by_host && piece->source == first->source &&
           memcmp(&piece->rect, &first->rect, sizeof piece->rect) == 0;
         ++*at, piece++) {
        if (n == 1 && !piece->is_mask)
            to.plane_bytes = (size_t)(piece->at - first->at);
        if (piece->is_mask)
            to.mask = (uint8_t *)data + piece->at;
        else
            bands[n++] = (int32_t)piece->plane + 1;
    }
    to.mask_row_bytes = to.mask != NULL ? l->block_w : 0;
    int rc = 0;
    if (r->file[first->source] == NULL)
        rc =
            pb_raster_open_again(s->raster[first->source], s->limits, err, &r->file[first->source]);
    return rc ? rc : pb_raster_read(r->file[first->source], bands, n, &to, err);
}

static int fill(struct reader *r, const struct pb_whole_chunk *chunk, void *data,
                struct pb_err *err)
{
    const struct pb_exec_whole *e = r->e;
    int rc = 0;
    for (uint32_t i = chunk->first; i < chunk->end && rc == 0;) {
        const struct pb_whole_piece *piece = &e->map.piece[i];
        if (piece->by_host) {
            rc = fill_cell(r, &i, chunk->end, data, err);
            continue;
        }
        const struct pb_raw_blocks *blocks = &e->source[piece->source].blocks;
        rc = pb_raster_fetch_block(e->stream->raster[piece->source], piece->block,
                                   &blocks->place[piece->block], piece->from,
                                   (char *)data + piece->at, (size_t)piece->bytes, err);
        i++;
    }
    return rc;
}

static int read_chunks(struct reader *r, struct pb_err *err)
{
    struct pb_exec_whole *e = r->e;
    struct pb_stream *s = e->stream;
    struct wic_slot slot;
    uint32_t number = 0;
    int rc;
    while ((rc = take_chunk(e, &slot, &number)) == 0) {
        const struct pb_whole_chunk *chunk = &e->map.chunk[number];
        uint64_t start = pb_clock_mono_ns();
        pb_work_begin(PB_WORK_FILL, number);
        rc = fill(r, chunk, slot.data, err);
        pb_work_end();
        if (rc < 0)
            break;
        atomic_fetch_add(&s->read.busy_ns, pb_clock_mono_ns() - start);
        atomic_fetch_add(&s->read.bytes, chunk->bytes);
        rc = wic_publish(s->in, &slot, (size_t)chunk->bytes);
        if (rc < 0)
            break;
    }
    return rc;
}

void whole_read(void *exec, uint32_t reader)
{
    struct reader own = {.e = exec};
    struct pb_err err = {0};
    (void)reader;
    int rc = read_chunks(&own, &err);
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        pb_raster_close(own.file[i]);
    bool over = rc == -EPIPE || rc == -ECANCELED;
    if (over && err.code == PB_OK)
        return;
    (void)pb_fail(&err, PB_E_SYSTEM, "the channels between the stages failed: %s", strerror(-rc));
    pb_stream_fail(own.e->stream, &err);
}
