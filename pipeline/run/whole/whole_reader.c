/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A reader of stored blocks: fills slots with loads. Load and slot are taken together, so that
 * loads reach the feeder in their order. If the plan lets cores decode too, a reader
 * decodes the next block itself when the device would finish it later (whole_share.h). Returned
 * slots contain the progress of the device. Blocks that only the host can decode are decoded into
 * the slot, too, from the reader's own open files. */
#include "pipeline/run/whole/whole_inside.h"

#include "config/base/clock.h"
#include "pipeline/profile/work.h"
#include "pipeline/run/stream/gate_answers.h"

#include <errno.h>
#include <string.h>

struct reader {
    struct pb_exec_whole *e;
    struct pb_raster *file[PB_FILES_MAX]; /* its own files; NULL until needed */
};

/* Writes the progress to the first bytes of a slot that returns to the readers. Only the split
 * depends on it: in the reader the bytes may be from another process, or unset. */
void whole_note_progress(struct pb_exec_whole *e, const struct wic_slot *slot)
{
    pthread_mutex_lock(&e->clock.lock);
    memcpy(slot->data, &e->clock.progress, sizeof e->clock.progress);
    pthread_mutex_unlock(&e->clock.lock);
}

/* now: the group of the next piece. */
static void take_progress(struct pb_exec_whole *e, const struct wic_slot *slot, uint32_t now)
{
    struct whole_progress note;
    uint64_t waiting = 0;
    if (slot->ticket < e->map.plan->layout.in_slots) /* first use of the slot: no progress in it */
        return;
    memcpy(&note, slot->data, sizeof note);
    if (note.groups > now || note.at_ns > pb_clock_mono_ns())
        return;
    while (e->read.noted_groups < note.groups)
        e->read.noted_bytes += e->read.given[e->read.noted_groups++];
    for (uint32_t g = e->read.noted_groups; g + 1 < now; g++)
        waiting += e->read.given[g];
    if (note.groups == e->read.noted_groups)
        pb_whole_share_device_did(&e->read.share, note.at_ns, e->read.noted_bytes, note.busy_ns,
                                  waiting);
}

static void give(struct pb_exec_whole *e, uint32_t first, uint32_t end)
{
    uint64_t now = pb_clock_mono_ns();
    for (uint32_t i = first; i < end; i++) {
        const struct pb_whole_piece *piece = &e->map.piece[i];
        e->read.compressed += piece->decoded_bytes > 0;
        e->read.given[piece->group] += piece->decoded_bytes;
        pb_whole_share_give(&e->read.share, now, piece->bytes, piece->decoded_bytes);
    }
}

/* Selects who decodes the pieces of the load. Call it with share_lock held. */
static void choose(struct pb_exec_whole *e, const struct wic_slot *slot, struct pb_whole_load *load)
{
    const struct pb_whole_piece *piece = &e->map.piece[load->first];
    take_progress(e, slot, piece->group);
    if (e->map.plan->engine.whole.shares && piece->decoded_bytes > 0 &&
        piece->decoded_bytes <= slot->bytes &&
        pb_whole_share_is_cores(&e->read.share, pb_clock_mono_ns(), piece->bytes,
                                piece->decoded_bytes)) {
        load->end = load->first + 1;
        load->is_decoded = true;
        return;
    }
    give(e, load->first, load->end);
}

/* Finds the next load; waits for the answers of a gate that it depends on. -EPIPE: no more loads.
 */
static int find_load(struct pb_exec_whole *e, struct pb_whole_load *out)
{
    const uint64_t bytes = e->map.plan->layout.in_slot_bytes;
    enum pb_whole_next next;
    int rc = 0;
    while ((next = pb_whole_map_load(&e->map, e->read.next_piece, bytes, e->stream->answers,
                                     out)) == PB_WHOLE_UNKNOWN &&
           rc == 0) {
        e->read.next_piece = out->first;
        rc = pb_gate_answers_wait(e->stream->answers, e->map.piece[out->first].last);
    }
    return rc < 0 ? rc : next == PB_WHOLE_LOAD ? 0 : -EPIPE;
}

/* Takes the next load and a slot for it. -EPIPE: no more loads. */
static int take_load(struct pb_exec_whole *e, struct wic_slot *slot, struct pb_whole_load *out)
{
    pthread_mutex_lock(&e->read.lock);
    int rc = find_load(e, out);
    rc = rc ? rc : wic_acquire(e->stream->in, WIC_FOREVER, slot);
    if (rc == 0) {
        pthread_mutex_lock(&e->read.share_lock);
        choose(e, slot, out);
        pthread_mutex_unlock(&e->read.share_lock);
        e->read.next_piece = out->end;
    }
    pthread_mutex_unlock(&e->read.lock);
    return rc;
}

static int open_file(struct reader *r, uint32_t source, struct pb_err *err)
{
    const struct pb_stream *s = r->e->stream;
    return r->file[source] != NULL
               ? 0
               : pb_raster_open_again(s->raster[source], s->limits, err, &r->file[source]);
}

/* Reads the pixels of a cell that the host decodes, as many of its planes as follow in the load,
 * and its mask; advances *at. data: address of the piece *at. */
static int fill_cell(struct reader *r, uint32_t *at, uint32_t end, char *data, struct pb_err *err)
{
    const struct pb_whole_piece *first = &r->e->map.piece[*at], *piece = first;
    const struct pb_block_layout *l = r->e->source[first->source].blocks.layout;
    struct pb_window to = {.data = data, .row_bytes = (size_t)l->row_bytes, .rect = first->rect};
    int32_t bands[PB_BANDS_MAX];
    size_t n = 0;
    for (;
         *at < end && piece->by_host && piece->source == first->source &&
         piece->part == first->part && memcmp(&piece->rect, &first->rect, sizeof piece->rect) == 0;
         ++*at, piece++) {
        if (n == 1 && !piece->is_mask)
            to.plane_bytes = (size_t)(piece->stored_at - first->stored_at);
        if (piece->is_mask)
            to.mask = (uint8_t *)data + (piece->stored_at - first->stored_at);
        else
            bands[n++] = (int32_t)piece->plane + 1;
    }
    to.mask_row_bytes = to.mask != NULL ? l->block_w : 0;
    int rc = open_file(r, first->source, err);
    return rc ? rc : pb_raster_read(r->file[first->source], bands, n, &to, err);
}

static int fetch(struct reader *r, const struct pb_whole_load *load, char *data, struct pb_err *err)
{
    const struct pb_exec_whole *e = r->e;
    int rc = 0;
    for (uint32_t i = load->first; i < load->end && rc == 0;) {
        const struct pb_whole_piece *piece = &e->map.piece[i];
        const struct pb_raw_blocks *blocks = &e->source[piece->source].blocks;
        char *to = data + (piece->stored_at - e->map.piece[load->first].stored_at);
        if (piece->by_host) {
            rc = fill_cell(r, &i, load->end, to, err);
            continue;
        }
        rc = pb_raster_fetch_block(e->stream->raster[piece->source], piece->block,
                                   &blocks->place[piece->block], piece->from, to,
                                   (size_t)piece->bytes, err);
        i++;
    }
    return rc;
}

/* Decodes the block; false: it is damaged, or out of memory. */
static bool decode(struct reader *r, const struct pb_whole_load *load, void *data)
{
    struct pb_exec_whole *e = r->e;
    const struct pb_whole_piece *piece = &e->map.piece[load->first];
    struct pb_err own = {0};
    const void *decoded = NULL;
    uint64_t start = pb_clock_mono_ns();
    if (open_file(r, piece->source, &own) < 0 ||
        pb_raster_decode_block(r->file[piece->source], piece->block, &own, &decoded) < 0)
        return false;
    memcpy(data, decoded, (size_t)piece->decoded_bytes);
    pthread_mutex_lock(&e->read.share_lock);
    e->read.by_cores++;
    e->read.compressed++;
    pb_whole_share_core_did(&e->read.share, piece->decoded_bytes, pb_clock_mono_ns() - start);
    pthread_mutex_unlock(&e->read.share_lock);
    return true;
}

/* Sends a block that a core cannot decode as it is stored: the dispatcher reports the error when it
 * checks the result, and names the first damaged block that a tile needs. */
static int fill(struct reader *r, struct pb_whole_load *load, void *data, struct pb_err *err)
{
    struct pb_exec_whole *e = r->e;
    if (load->is_decoded && !decode(r, load, data)) {
        load->is_decoded = false;
        pthread_mutex_lock(&e->read.share_lock);
        give(e, load->first, load->end);
        pthread_mutex_unlock(&e->read.share_lock);
    }
    return load->is_decoded ? 0 : fetch(r, load, data, err);
}

static int read_loads(struct reader *r, struct pb_err *err)
{
    struct pb_exec_whole *e = r->e;
    struct pb_stream *s = e->stream;
    struct wic_slot slot;
    struct pb_whole_load load;
    int rc;
    while ((rc = take_load(e, &slot, &load)) == 0) {
        uint64_t start = pb_clock_mono_ns();
        pb_work_begin(PB_WORK_FILL, load.first);
        rc = fill(r, &load, slot.data, err);
        pb_work_end();
        if (rc < 0)
            break;
        uint64_t bytes = pb_whole_load_bytes(&e->map, &load);
        atomic_fetch_add(&s->read.busy_ns, pb_clock_mono_ns() - start);
        atomic_fetch_add(&s->read.bytes, bytes);
        memcpy(slot.user, &load, sizeof load);
        rc = wic_publish(s->in, &slot, (size_t)bytes);
        if (rc < 0)
            break;
    }
    return rc;
}

void whole_read(void *exec, uint32_t reader)
{
    struct reader r = {.e = exec};
    struct pb_err err = {0};
    int rc = read_loads(&r, &err);
    if (rc == -EPIPE && reader == 0 && r.e->stream->remote != NULL && r.e->stream->head != NULL)
        rc = whole_rounds_send(r.e);
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        pb_raster_close(r.file[i]);
    bool over = rc == -EPIPE || rc == -ECANCELED;
    if (over && err.code == PB_OK)
        return;
    (void)pb_fail(&err, PB_E_SYSTEM, "the channels between the stages failed: %s", strerror(-rc));
    pb_stream_fail(r.e->stream, &err);
}
