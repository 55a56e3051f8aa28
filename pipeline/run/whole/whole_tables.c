/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The device's tables of pieces: the addresses of their stored bytes, of their decoded bytes
 * and of their pixels. Tables are made once; the part that a group's launches read is sent when the
 * group is complete, because only then it is known which of its blocks cores have decoded. */
#include "pipeline/run/whole/whole_inside.h"

#include "pipeline/codec/predictor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t room_of(const struct pb_exec_whole *e, const struct pb_whole_piece *piece)
{
    return e->map.group[piece->group].lot % 2;
}

/* --- sources --------------------------------------------------------------------------------- */

/* Fills a row of pixels of a block that is not stored, in host byte order. */
static void fill_row(const struct whole_source *source, uint32_t plane, unsigned char *row)
{
    const struct pb_block_layout *l = source->blocks.layout;
    size_t bytes = l->bits / 8, samples = source->form.n_samples;
    for (size_t x = 0; x < l->block_w; x++)
        for (size_t s = 0; s < samples; s++)
            memcpy(row + (x * samples + s) * bytes,
                   source->blocks.fill->sample[l->planar ? plane : s], bytes);
}

/* Layout of the blocks of which the piece is one. */
static const struct pb_block_layout *layout_of(const struct pb_exec_whole *e,
                                               const struct pb_whole_piece *piece)
{
    return pb_whole_layout(&e->source[piece->source].blocks, piece);
}

/* True if pieces of blocks of that layout are not stored. */
static bool has_holes(const struct pb_exec_whole *e, uint32_t source,
                      const struct pb_block_layout *layout)
{
    for (uint32_t i = 0; i < e->map.n_pieces; i++)
        if (e->map.piece[i].source == source && e->map.piece[i].bytes == 0 &&
            layout_of(e, &e->map.piece[i]) == layout)
            return true;
    return false;
}

/* Largest count of rows in a piece of blocks of that layout. */
static uint32_t rows_most(const struct pb_exec_whole *e, uint32_t source,
                          const struct pb_block_layout *layout)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < e->map.n_pieces; i++)
        if (e->map.piece[i].source == source && layout_of(e, &e->map.piece[i]) == layout &&
            (uint32_t)e->map.piece[i].rect.h > most)
            most = (uint32_t)e->map.piece[i].rect.h;
    return most;
}

/* Makes the pixels of pieces that are not stored, one for each plane of blocks. */
static int make_fill(struct pb_exec_whole *e, uint32_t i, struct pb_err *err)
{
    struct whole_source *source = &e->source[i];
    const struct pb_block_layout *l = source->blocks.layout;
    uint32_t planes = l->planar ? (uint32_t)l->bands : 1, rows = rows_most(e, i, l);
    void *table = NULL, *memory = NULL;
    if (!has_holes(e, i, l))
        return 0;
    source->fill_bytes = (rows * l->row_bytes + 15) / 16 * 16;
    int rc = e->ops->table(e->device, source->fill_bytes * planes, err, &table);
    rc = rc ? rc : e->ops->memory(e->device, source->fill_bytes * planes, err, &memory);
    for (uint32_t p = 0; p < planes && rc == 0; p++)
        for (uint32_t y = 0; y < rows; y++)
            fill_row(source, p, (unsigned char *)table + p * source->fill_bytes + y * l->row_bytes);
    source->fill = memory;
    return rc ? rc
              : e->ops->copy(e->device, QUEUE_SEND, memory, table, source->fill_bytes * planes,
                             err);
}

/* Makes the bytes of pieces of a mask that are not stored: no pixel is valid. */
static int make_mask_fill(struct pb_exec_whole *e, uint32_t i, struct pb_err *err)
{
    struct whole_source *source = &e->source[i];
    const struct pb_block_layout *l = source->blocks.mask;
    void *table = NULL, *memory = NULL;
    if (l == NULL || !has_holes(e, i, l))
        return 0;
    const size_t bytes = rows_most(e, i, l) * l->row_bytes;
    int rc = e->ops->table(e->device, bytes, err, &table);
    rc = rc ? rc : e->ops->memory(e->device, bytes, err, &memory);
    if (rc == 0)
        memset(table, 0, bytes);
    source->mask_fill = memory;
    return rc ? rc : e->ops->copy(e->device, QUEUE_SEND, memory, table, bytes, err);
}

/* --- pieces ---------------------------------------------------------------------------------- */

static unsigned char *stored_at(const struct pb_exec_whole *e, const struct pb_whole_piece *piece)
{
    return e->room[room_of(e, piece)].stored + piece->stored_at;
}

unsigned char *whole_decoded(const struct pb_exec_whole *e, const struct pb_whole_piece *piece)
{
    const struct pb_whole_lot *lot = &e->map.lot[e->map.group[piece->group].lot];
    return e->room[room_of(e, piece)].decoded + lot->decoded_from + piece->decoded_at;
}

/* True if the piece is decoded, and not only moved. */
static bool is_decoded(const struct pb_exec_whole *e, uint32_t i)
{
    const struct pb_whole_piece *piece = &e->map.piece[i];
    return piece->bytes > 0 && pb_whole_is_compressed(&e->source[piece->source].blocks, piece);
}

static void fill_piece(struct pb_exec_whole *e, uint32_t i)
{
    const struct pb_whole_piece *piece = &e->map.piece[i];
    const struct whole_source *source = &e->source[piece->source];
    const struct pb_block_layout *l = layout_of(e, piece);
    struct pb_unpredict_block *block = &e->tables.block[i];
    *block = whole_target(e, piece);
    e->tables.result[i] = (struct pb_decode_result){.status = PB_DECODE_UNDONE};
    if (piece->bytes == 0) {
        block->in = l == source->blocks.mask
                        ? source->mask_fill
                        : source->fill + (l->planar ? piece->plane * source->fill_bytes : 0);
        return;
    }
    block->in = stored_at(e, piece);
    if (!is_decoded(e, i))
        return;
    e->tables.decode[i] = (struct pb_decode_stream){
        .in = block->in,
        .out = whole_decoded(e, piece),
        .in_bytes = (uint32_t)piece->bytes,
        .least = (uint32_t)piece->least,
        .most = (uint32_t)l->block_bytes,
    };
    block->in = e->tables.decode[i].out;
}

/* Adds the same block again, for the alpha samples of its pixels. */
static void fill_alpha(struct pb_exec_whole *e, uint32_t i)
{
    const struct pb_whole_piece *piece = &e->map.piece[i];
    if (e->tables.alpha == NULL || e->source[piece->source].alpha_form.n_planes == 0)
        return;
    e->tables.alpha[i] = whole_alpha_target(e, piece);
    e->tables.alpha[i].in = e->tables.block[i].in;
}

void whole_tables_in_place(struct pb_exec_whole *e, const struct pb_whole_load *load,
                           unsigned char *at)
{
    for (uint32_t i = load->first; i < load->end; i++) {
        unsigned char *in = at + (e->map.piece[i].stored_at - e->map.piece[load->first].stored_at);
        if (is_decoded(e, i) && !load->is_decoded)
            e->tables.decode[i].in = in;
        else
            e->tables.block[i].in = in;
        if (e->tables.alpha != NULL)
            e->tables.alpha[i].in = e->tables.block[i].in;
    }
}

/* Allocates a list on the host, and its copy on the device. */
static int take_list(struct pb_exec_whole *e, size_t bytes, struct pb_err *err, void **out_host,
                     void **out_device)
{
    int rc = e->ops->table(e->device, bytes, err, out_host);
    return rc ? rc : e->ops->memory(e->device, bytes, err, out_device);
}

static int make_lists(struct pb_exec_whole *e, bool has_alpha, struct pb_err *err)
{
    size_t n = e->map.n_pieces;
    void *memory[7] = {NULL};
    int rc = take_list(e, n * sizeof *e->tables.list, err, &memory[0], &memory[1]);
    rc = rc ? rc : take_list(e, n * sizeof *e->tables.block, err, &memory[2], &memory[3]);
    rc = rc ? rc : e->ops->table(e->device, n * sizeof *e->tables.result, err, &memory[4]);
    if (has_alpha)
        rc = rc ? rc : take_list(e, n * sizeof *e->tables.alpha, err, &memory[5], &memory[6]);
    e->tables.list = memory[0];
    e->tables.device_list = memory[1];
    e->tables.block = memory[2];
    e->tables.device_block = memory[3];
    e->tables.result = memory[4];
    e->tables.alpha = memory[5];
    e->tables.device_alpha = memory[6];
    e->tables.decode = calloc(n + 1, sizeof *e->tables.decode);
    e->tables.by_core = calloc(n + 1, sizeof *e->tables.by_core);
    if (rc == 0 && (e->tables.decode == NULL || e->tables.by_core == NULL))
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    return rc;
}

int whole_tables_make(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan *plan = e->map.plan;
    bool has_alpha = false;
    for (uint32_t i = 0; i < plan->work.n_sources; i++)
        if (plan->work.source[i].n_bands > 0) {
            whole_forms(e, i);
            has_alpha = has_alpha || e->source[i].alpha_form.n_planes > 0;
        }
    int rc = make_lists(e, has_alpha, err);
    for (uint32_t i = 0; i < plan->work.n_sources && rc == 0; i++)
        if (plan->work.source[i].n_bands > 0)
            rc = make_fill(e, i, err);
    for (uint32_t i = 0; i < plan->work.n_sources && rc == 0; i++)
        if (plan->work.source[i].n_bands > 0)
            rc = make_mask_fill(e, i, err);
    for (uint32_t i = 0; i < e->map.n_pieces && rc == 0; i++) {
        fill_piece(e, i);
        fill_alpha(e, i);
    }
    return rc;
}

/* --- groups ---------------------------------------------------------------------------------- */

/* Pieces of one source and one layout that are all stored, or all not stored. */
struct run {
    uint32_t first, n;
    bool is_stored;
};

static bool are_alike(const struct pb_whole_piece *a, const struct pb_whole_piece *b)
{
    return a->source == b->source && a->is_apart == b->is_apart && (a->bytes > 0) == (b->bytes > 0);
}

/* Finds the run at *at and advances *at; false at the end. */
static bool next_run(const struct pb_exec_whole *e, const struct pb_whole_group *group,
                     uint32_t *at, struct run *out)
{
    const struct pb_whole_piece *piece = e->map.piece;
    uint32_t first = *at, i = first;
    if (first >= group->end)
        return false;
    while (i < group->end && are_alike(&piece[i], &piece[first]))
        i++;
    *out = (struct run){first, i - first, piece[first].bytes > 0};
    *at = i;
    return true;
}

static int unpredict(struct pb_exec_whole *e, uint32_t queue, const struct run *run,
                     struct pb_err *err)
{
    const struct pb_whole_piece *piece = &e->map.piece[run->first];
    const struct whole_source *source = &e->source[piece->source];
    const struct pb_unpredict_form *form =
        piece->is_apart ? (run->is_stored ? &source->mask_form : &source->mask_fill_form)
                        : (run->is_stored ? &source->form : &source->fill_form);
    const struct pb_unpredict_form *alpha =
        run->is_stored ? &source->alpha_form : &source->alpha_fill_form;
    uint32_t rows = 1;
    for (uint32_t i = run->first; i < run->first + run->n; i++)
        rows = e->tables.block[i].h > rows ? e->tables.block[i].h : rows;
    int rc = e->ops->unpredict(e->device, queue, form, e->tables.device_block + run->first, run->n,
                               rows, err);
    if (rc == 0 && alpha->n_planes > 0)
        rc = e->ops->unpredict(e->device, queue, alpha, e->tables.device_alpha + run->first, run->n,
                               rows, err);
    return rc;
}

static bool is_listed(const struct pb_exec_whole *e, uint32_t piece)
{
    return is_decoded(e, piece) && !e->tables.by_core[piece];
}

/* Fills the run's list of blocks to decode. */
static void list_run(struct pb_exec_whole *e, const struct run *run)
{
    uint32_t n = 0;
    for (uint32_t i = run->first; i < run->first + run->n; i++)
        if (is_listed(e, i))
            e->tables.list[run->first + n++] = e->tables.decode[i];
}

/* Returns the length of that list, which a copy to the device may be reading. */
static uint32_t count_run(const struct pb_exec_whole *e, const struct run *run)
{
    uint32_t n = 0;
    for (uint32_t i = run->first; i < run->first + run->n; i++)
        n += is_listed(e, i);
    return n;
}

/* Sends the tables that the launches of the group read. */
static int send_tables(struct pb_exec_whole *e, const struct pb_whole_group *group,
                       struct pb_err *err)
{
    uint32_t first = group->first, at = first;
    size_t n = group->end - first;
    struct run run;
    while (next_run(e, group, &at, &run))
        list_run(e, &run);
    int rc = e->ops->copy(e->device, QUEUE_SEND, e->tables.device_list + first,
                          e->tables.list + first, n * sizeof *e->tables.list, err);
    rc = rc ? rc
            : e->ops->copy(e->device, QUEUE_SEND, e->tables.device_block + first,
                           e->tables.block + first, n * sizeof *e->tables.block, err);
    if (rc == 0 && e->tables.alpha != NULL)
        rc = e->ops->copy(e->device, QUEUE_SEND, e->tables.device_alpha + first,
                          e->tables.alpha + first, n * sizeof *e->tables.alpha, err);
    return rc;
}

static int decode_run(struct pb_exec_whole *e, uint32_t queue, const struct run *run,
                      struct pb_err *err)
{
    const struct pb_decode_batch batch = {.streams = e->tables.device_list + run->first,
                                          .results = e->tables.result + run->first,
                                          .n = count_run(e, run)};
    const struct pb_whole_piece *piece = &e->map.piece[run->first];
    const struct whole_source *source = &e->source[piece->source];
    return batch.n == 0
               ? 0
               : e->ops->decode(e->device, queue,
                                piece->is_apart ? source->mask_codec : source->codec, &batch, err);
}

/* Takes the stored pieces out of a group that no tile needs. The answers for them are known,
 * because later pieces were sent. */
static void leave_out(struct pb_exec_whole *e, const struct pb_whole_group *group)
{
    for (uint32_t i = group->first; i < group->end && e->stream->answers != NULL; i++) {
        if (e->map.piece[i].bytes == 0 || !pb_whole_is_left_out(&e->map, i, e->stream->answers))
            continue;
        e->tables.by_core[i] = true;
        e->tables.block[i].h = 0;
        if (e->tables.alpha != NULL)
            e->tables.alpha[i].h = 0;
    }
}

int whole_tables_decode(struct pb_exec_whole *e, uint32_t number, struct pb_err *err)
{
    const struct pb_whole_group *group = &e->map.group[number];
    uint32_t queue = QUEUE_DECODE + number % DECODE_QUEUES, at = group->first;
    struct run run;
    leave_out(e, group);
    int rc = send_tables(e, group, err);
    rc = rc ? rc : e->ops->mark(e->device, QUEUE_SEND, whole_event(e, EVENT_SENT, number), err);
    rc = rc ? rc : e->ops->after(e->device, queue, whole_event(e, EVENT_SENT, number), err);
    rc = rc ? rc : e->ops->mark(e->device, queue, whole_event(e, EVENT_DECODING, number), err);
    while (rc == 0 && next_run(e, group, &at, &run))
        rc = decode_run(e, queue, &run, err);
    rc = rc ? rc : whole_planes_hold_group(e, number, queue, err);
    for (at = group->first; rc == 0 && next_run(e, group, &at, &run);)
        rc = unpredict(e, queue, &run, err);
    return rc ? rc : e->ops->mark(e->device, queue, whole_event(e, EVENT_DECODED, number), err);
}

/* --- blocks that the device has refused ------------------------------------------------------- */

/* Decodes the block on the host: gets its pixels, or the error of the block. */
static int repair(struct pb_exec_whole *e, uint32_t i, struct pb_err *err)
{
    const struct pb_whole_piece *piece = &e->map.piece[i];
    const struct pb_stream *s = e->stream;
    uint32_t queue = QUEUE_DECODE + piece->group % DECODE_QUEUES;
    const struct run run = {i, 1, true};
    const void *data = NULL;
    int rc = 0;
    if (s->whole_blocks != NULL)
        return pb_fail(err, PB_E_INPUT_DAMAGED, WHOLE_REFUSED, piece->source,
                       (unsigned long long)piece->block);
    if (e->dispatch.repair[piece->source] == NULL)
        rc = pb_raster_open_again(s->raster[piece->source], s->limits, err,
                                  &e->dispatch.repair[piece->source]);
    rc = rc ? rc
            : pb_raster_decode_block(e->dispatch.repair[piece->source], piece->block, err, &data);
    rc = rc ? rc
            : e->ops->copy(e->device, queue, e->tables.decode[i].out, data,
                           (size_t)layout_of(e, piece)->block_bytes, err);
    rc = rc ? rc : unpredict(e, queue, &run, err);
    rc = rc ? rc : e->ops->mark(e->device, queue, whole_event(e, EVENT_DECODED, piece->group), err);
    return rc ? rc
              : whole_wait_event(e, whole_event(e, EVENT_DECODED, piece->group),
                                 PB_DEVICE_WAIT_DISPATCH_DECODE, "repairing a block", err);
}

static int check_run(struct pb_exec_whole *e, const struct run *run, struct pb_err *err)
{
    const struct pb_decode_result *result = e->tables.result + run->first;
    int rc = 0;
    for (uint32_t i = run->first; i < run->first + run->n && rc == 0; i++)
        if (is_decoded(e, i) && !e->tables.by_core[i] && (result++)->status != PB_DECODED)
            rc = repair(e, i, err);
    return rc;
}

int whole_tables_check(struct pb_exec_whole *e, uint32_t number, struct pb_err *err)
{
    const struct pb_whole_group *group = &e->map.group[number];
    uint32_t at = group->first;
    struct run run;
    int rc = 0;
    while (rc == 0 && next_run(e, group, &at, &run))
        rc = check_run(e, &run, err);
    return rc;
}
