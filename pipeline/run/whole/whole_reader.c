/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A reader of stored blocks: fills slots with chunks. Chunk and slot are taken together, so that
 * chunks come to the feeder in their order. */
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

static int fill(const struct pb_exec_whole *e, const struct pb_whole_chunk *chunk, void *data,
                struct pb_err *err)
{
    const struct pb_stream *s = e->stream;
    int rc = 0;
    for (uint32_t i = chunk->first; i < chunk->end && rc == 0; i++) {
        const struct pb_whole_piece *piece = &e->map.piece[i];
        const struct pb_raw_blocks *blocks = &e->source[piece->source].blocks;
        rc = pb_raster_fetch_block(s->raster[piece->source], piece->block,
                                   &blocks->place[piece->block], piece->from,
                                   (char *)data + piece->at, (size_t)piece->bytes, err);
    }
    return rc;
}

static int read_chunks(struct pb_exec_whole *e, struct pb_err *err)
{
    struct pb_stream *s = e->stream;
    struct wic_slot slot;
    uint32_t number = 0;
    int rc;
    while ((rc = take_chunk(e, &slot, &number)) == 0) {
        const struct pb_whole_chunk *chunk = &e->map.chunk[number];
        uint64_t start = pb_clock_mono_ns();
        pb_work_begin(PB_WORK_FILL, number);
        rc = fill(e, chunk, slot.data, err);
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
    struct pb_exec_whole *e = exec;
    struct pb_err err = {0};
    (void)reader;
    int rc = read_chunks(e, &err);
    bool over = rc == -EPIPE || rc == -ECANCELED;
    if (over && err.code == PB_OK)
        return;
    (void)pb_fail(&err, PB_E_SYSTEM, "the channels between the stages failed: %s", strerror(-rc));
    pb_stream_fail(e->stream, &err);
}
