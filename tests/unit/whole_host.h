/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_WHOLE_HOST_H
#define PB_TEST_WHOLE_HOST_H
/* The host in place of a GPU for the executor that decodes there (run/whole): its memory is the
 * device's, what is queued is done at once, by the CPU's decoders and chain. Refuses a stream now
 * and then, as a GPU may. It checks that managed memory is on the device while it is used, and that
 * no more of it is there than the plan allows. */
#include "config/base/clock.h"
#include "pipeline/codec/decode.h"
#include "pipeline/codec/unpredict.h"
#include "kernels/codec/mask_pixel.h"
#include "kernels/reduce/cluster_sums.h"
#include "kernels/reduce/histogram.h"
#include "kernels/reduce/moments.h"
#include "kernels/reduce/percentiles.h"
#include "kernels/reduce/statistics_key.h"
#include "kernels/reduce/value_counts.h"
#include "pipeline/cog/halve.h"
#include "pipeline/numbers/value_tally.h"
#include "pipeline/plan/pages.h"
#include "pipeline/run/whole/whole_device.h"
#include "tests/encode_reference.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int refuse_each;    /* every n-th stream is refused, with garbage decoded; 0 = none */
    int fail_tile;      /* the tile that cannot be started, from 1; 0 = none */
    int fail_sums;      /* the tile that cannot be summed up, from 1; 0 = none */
    _Atomic int summed; /* tiles whose sums were made */
    _Atomic int parts, streams, tiles, refused, opened, blocks, seen, kept, counted, valued;
    _Atomic uint64_t managed_most; /* bytes of managed memory on a device at a time */
    _Atomic int moves;
} whole_host;

enum { WHOLE_HOST_MEMORIES = 400 };

struct whole_host_device {
    const struct pb_plan *plan;
    uint32_t lanes;
    void **scratch;
    uint64_t start;
    _Atomic uint64_t *marked; /* words of each event */
    pthread_mutex_t lock;
    void *memory[WHOLE_HOST_MEMORIES];
    int n;
    /* Managed memory, and its chunks that are on the device; NULL: none. lock protects them,
     * and round. */
    unsigned char *managed;
    bool *is_there;
    struct pb_plan_pages pages;
    uint64_t managed_bytes, there;
    uint32_t round; /* round whose numbers the chain has */
};

static int whole_host_memory(void *device, size_t bytes, struct pb_err *err, void **out)
{
    struct whole_host_device *d = device;
    (void)err;
    ck_assert_int_lt(d->n, WHOLE_HOST_MEMORIES);
    *out = d->memory[d->n++] = aligned_alloc(256, (bytes + 511) / 256 * 256);
    ck_assert_ptr_nonnull(*out);
    memset(*out, 0xa5, bytes);
    return 0;
}

static int whole_host_managed(void *device, size_t bytes, struct pb_err *err, void **out)
{
    struct whole_host_device *d = device;
    int rc = whole_host_memory(device, bytes, err, out);
    ck_assert_ptr_null(d->managed);
    d->pages = pb_plan_pages(d->plan);
    d->managed = *out;
    d->managed_bytes = bytes;
    d->is_there = calloc(bytes / d->pages.chunk_bytes + 1, sizeof *d->is_there);
    return rc;
}

static int whole_host_move(void *device, uint32_t queue, void *memory, size_t bytes, bool to_device,
                           struct pb_err *err)
{
    struct whole_host_device *d = device;
    const uint64_t chunk = d->pages.chunk_bytes;
    const uint64_t at = (uint64_t)((unsigned char *)memory - d->managed);
    (void)queue, (void)err;
    ck_assert_uint_eq(at % chunk, 0);
    ck_assert_uint_le(at + bytes, d->managed_bytes);
    pthread_mutex_lock(&d->lock);
    for (uint64_t c = at / chunk; c * chunk < at + bytes; c++) {
        ck_assert_int_ne(d->is_there[c], to_device);
        d->is_there[c] = to_device;
        d->there += to_device ? chunk : -chunk;
    }
    ck_assert_uint_le(d->there, ((uint64_t)d->pages.decoding + d->pages.computing) * chunk);
    if (d->there > whole_host.managed_most)
        whole_host.managed_most = d->there;
    whole_host.moves++;
    pthread_mutex_unlock(&d->lock);
    return 0;
}

/* Checks that these bytes are on the device. */
static void whole_host_check(struct whole_host_device *d, const void *memory, size_t bytes)
{
    const unsigned char *first = memory;
    if (d->managed == NULL || bytes == 0 || first < d->managed ||
        first >= d->managed + d->managed_bytes)
        return;
    const uint64_t at = (uint64_t)(first - d->managed), chunk = d->pages.chunk_bytes;
    pthread_mutex_lock(&d->lock);
    for (uint64_t c = at / chunk; c <= (at + bytes - 1) / chunk; c++)
        ck_assert_msg(d->is_there[c], "chunk %llu is not on the device", (unsigned long long)c);
    pthread_mutex_unlock(&d->lock);
}

/* Checks planes and mask of a window. */
static void whole_host_check_window(struct whole_host_device *d, const struct pb_window *window,
                                    const struct pb_source_format *form)
{
    for (int32_t y = 0; y < window->rect.h && window->data != NULL; y++) {
        for (uint32_t p = 0; p < form->n_planes; p++)
            whole_host_check(d,
                             (const char *)window->data + p * window->plane_bytes +
                                 (size_t)y * window->row_bytes,
                             (size_t)window->rect.w * form->sample_bytes);
        if (form->has_mask && window->mask != NULL)
            whole_host_check(d, window->mask + (size_t)y * window->mask_row_bytes,
                             (size_t)window->rect.w);
    }
}

static void whole_host_check_tile(struct whole_host_device *d, const struct pb_tile_in *in,
                                  const struct pb_slot_format *format)
{
    for (uint32_t w = 0; w < PB_SOURCES_MAX; w++)
        whole_host_check_window(d, &in->window[w], &format->source[w]);
}

static int whole_host_open(const struct pb_plan *plan, const struct pb_whole_counts *counts,
                           struct pb_err *err, void **out)
{
    struct whole_host_device *d = calloc(1, sizeof *d);
    d->plan = plan;
    d->lanes = counts->lanes;
    d->scratch = calloc(counts->lanes, sizeof *d->scratch);
    d->marked = calloc(counts->events, sizeof *d->marked);
    d->start = pb_clock_mono_ns();
    pthread_mutex_init(&d->lock, NULL);
    for (uint32_t i = 0; i < counts->lanes; i++)
        d->scratch[i] = aligned_alloc(64, (plan->layout.scratch_bytes + 127) / 64 * 64);
    (void)err;
    whole_host.opened++;
    *out = d;
    return 0;
}

static void whole_host_close(void *device)
{
    struct whole_host_device *d = device;
    if (d == NULL)
        return;
    for (int i = 0; i < d->n; i++)
        free(d->memory[i]);
    for (uint32_t i = 0; i < d->lanes; i++)
        free(d->scratch[i]);
    free(d->scratch);
    free(d->marked);
    free(d->is_there);
    pthread_mutex_destroy(&d->lock);
    free(d);
    whole_host.opened--;
}

static void whole_host_keep(void *device, void *memory)
{
    struct whole_host_device *d = device;
    int i = 0;
    while (i < d->n && d->memory[i] != memory)
        i++;
    ck_assert_int_lt(i, d->n);
    d->memory[i] = d->memory[--d->n];
    whole_host.kept++;
}

static void whole_host_drop(int32_t device_index, void *memory, uint64_t bytes)
{
    (void)device_index, (void)bytes;
    free(memory);
    whole_host.kept--;
}

static int whole_host_use(void *device, struct pb_err *err)
{
    (void)device, (void)err;
    return 0;
}

static int whole_host_seen(void *device, void *host, struct pb_err *err, void **out)
{
    (void)device, (void)err;
    whole_host.seen++;
    *out = host;
    return 0;
}

static int whole_host_copy(void *device, uint32_t queue, void *to, const void *from, size_t bytes,
                           struct pb_err *err)
{
    (void)device, (void)queue, (void)err;
    memcpy(to, from, bytes);
    return 0;
}

static int whole_host_decode(void *device, uint32_t queue, enum pb_device_codec codec,
                             const struct pb_decode_batch *batch, struct pb_err *err)
{
    const struct pb_decode *by = codec == PB_DEVICE_LZW ? &pb_decode_lzw : &pb_decode_deflate;
    void *context = NULL;
    const char *why;
    (void)device, (void)queue, (void)err;
    ck_assert_int_eq(by->create(&context), 0);
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct pb_decode_stream *s = &batch->streams[i];
        int n = atomic_fetch_add(&whole_host.streams, 1);
        batch->results[i].status = PB_DECODED;
        if (by->run(context, s->in, s->in_bytes, s->out, s->least, s->most, &why) < 0)
            batch->results[i].status = PB_DECODE_BAD;
        if (whole_host.refuse_each > 0 && n % whole_host.refuse_each == 0) {
            batch->results[i].status = PB_DECODE_HOST;
            memset(s->out, 0x5a, s->most);
            whole_host.refused++;
        }
    }
    by->destroy(context);
    return 0;
}

/* Bytes of a mask of the samples of a row, or of its bits. */
static void whole_host_mask(const struct pb_unpredict_form *f, const struct pb_unpredict_block *b,
                            const unsigned char *row, unsigned char *out)
{
    for (uint32_t x = b->left; x < b->left + b->w; x++) {
        uint64_t bits = 0;
        memcpy(&bits, row + ((size_t)x * f->n_samples + f->sample[0]) * f->sample_bytes,
               f->sample_bytes);
        out[x - b->left] = pb_mask_of_bits(f->type, bits);
    }
}

static void whole_host_bits(const struct pb_unpredict_form *f, const struct pb_unpredict_block *b,
                            uint32_t y)
{
    const unsigned char *row =
        (const unsigned char *)b->in + (b->top + y) * (size_t)((f->block_w + 7) / 8);
    for (uint32_t x = 0; x < b->w; x++)
        ((unsigned char *)b->out)[y * b->row_bytes + x] =
            (row[(b->left + x) / 8] << (b->left + x) % 8 & 128) != 0 ? 255 : 0;
}

static void whole_host_row(const struct pb_unpredict_form *f, const struct pb_unpredict_block *b,
                           uint32_t y, unsigned char *row, unsigned char *temp)
{
    size_t pixel = (size_t)f->n_samples * f->sample_bytes, bytes = pixel * f->block_w;
    if (f->as == PB_UNPREDICT_BITS) {
        whole_host_bits(f, b, y);
        return;
    }
    memcpy(row, (const char *)b->in + (b->top + y) * bytes, bytes);
    pb_unpredict_row((int)f->predictor, f->sample_bytes, f->swap != 0, row, f->block_w,
                     f->n_samples, temp);
    if (f->as == PB_UNPREDICT_MASK) {
        whole_host_mask(f, b, row, (unsigned char *)b->out + y * b->row_bytes);
        return;
    }
    for (uint32_t p = 0; p < f->n_planes; p++) {
        size_t sample = f->sample[p];
        pb_gather_samples(row + b->left * pixel + sample * f->sample_bytes, f->sample_bytes,
                          f->n_samples, b->w,
                          (char *)b->out + p * b->plane_bytes + y * b->row_bytes);
    }
}

static int whole_host_unpredict(void *device, uint32_t queue, const struct pb_unpredict_form *form,
                                const struct pb_unpredict_block *blocks, uint32_t n,
                                uint32_t rows_most, struct pb_err *err)
{
    size_t bytes = (size_t)form->n_samples * form->sample_bytes * form->block_w;
    unsigned char *row = malloc(2 * bytes);
    (void)queue, (void)err;
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_le(blocks[i].h, rows_most);
        for (uint32_t k = 0; k < form->n_planes && blocks[i].h > 0; k++)
            whole_host_check(device, (char *)blocks[i].out + k * blocks[i].plane_bytes,
                             (blocks[i].h - 1) * blocks[i].row_bytes +
                                 (size_t)blocks[i].w * form->sample_bytes);
        for (uint32_t y = 0; y < blocks[i].h; y++)
            whole_host_row(form, &blocks[i], y, row, row + bytes);
    }
    free(row);
    return 0;
}

static int whole_host_tile(void *device, uint32_t lane, const struct pb_tile_in *in,
                           const struct pb_tile_out *out, struct pb_err *err)
{
    struct whole_host_device *d = device;
    if (atomic_fetch_add(&whole_host.tiles, 1) + 1 == whole_host.fail_tile)
        return pb_fail(err, PB_E_DEVICE_LOST, "the device is lost, as the test wants it");
    whole_host_check_tile(d, in, &d->plan->layout.format);
    ck_assert_int_eq(pb_chain_run_cpu(d->plan->work.chain, in, out, d->scratch[lane]), 0);
    return 0;
}

/* Puts the numbers of a round into the chain. */
static void whole_host_round(struct whole_host_device *d, const struct pb_slot_head *head)
{
    const struct pb_chain_sums *sums = &d->plan->layout.sums.chain;
    const struct pb_chain_reduction *reduction;
    (void)pb_chain_reductions(d->plan->work.chain, &reduction);
    pthread_mutex_lock(&d->lock); /* lanes may have threads of their own (whole_late.h) */
    for (uint32_t i = 0; i < sums->n && d->round != head->round; i++)
        pb_chain_loop_again(d->plan->work.chain, &reduction[i],
                            (const float *)(head + 1) + sums->of[i].first_number);
    d->round = head->round;
    pthread_mutex_unlock(&d->lock);
}

/* Sums up the n pixels of a part whose outputs are planes of n floats. */
static void whole_host_sum_up(const struct pb_chain_sums_of *of, const float *planes, size_t n,
                              int32_t *sums)
{
    for (size_t p = 0; p < n; p++) {
        const float x = planes[of->output[0] * n + p];
        if (!(x >= 1 && x <= (float)of->classes))
            continue;
        const uint32_t c = (uint32_t)x - 1;
        sums[c]++;
        for (uint32_t b = 0; b < of->bands; b++) {
            const struct pb_cluster_digits d =
                pb_cluster_digits_of(planes[of->output[1 + b] * n + p]);
            for (uint32_t k = 0; k < 3 && d.limb + k < PB_CLUSTER_LIMBS; k++)
                sums[pb_cluster_sums_at(of->classes, of->bands, d.limb + k, b * of->classes + c)] +=
                    d.digit[k];
        }
    }
}

static int whole_host_sums(void *device, uint32_t lane, const struct pb_slot_head *head,
                           const struct pb_tile_in *in, int32_t *out, struct pb_err *err)
{
    struct whole_host_device *d = device;
    const struct pb_plan_sums *by = &d->plan->layout.sums;
    const struct pb_rect core = in->core;
    struct pb_tile_in part = *in;
    if (atomic_fetch_add(&whole_host.summed, 1) + 1 == whole_host.fail_sums)
        return pb_fail(err, PB_E_DEVICE_LOST, "the device is lost, as the test wants it");
    whole_host_round(d, head);
    whole_host_check_tile(d, in, &d->plan->layout.format);
    for (int32_t y = 0; y < core.h; y += by->part_h)
        for (int32_t x = 0; x < core.w; x += by->part_w, out += by->chain.words) {
            const int32_t w = core.w - x < by->part_w ? core.w - x : by->part_w;
            const int32_t h = core.h - y < by->part_h ? core.h - y : by->part_h;
            const size_t n = (size_t)w * (size_t)h;
            const struct pb_tile_out made = {calloc(n * d->plan->work.outputs.n, sizeof(float)), n};
            part.core = (struct pb_rect){core.x + x, core.y + y, w, h};
            ck_assert_int_eq(pb_chain_run_cpu(d->plan->work.chain, &part, &made, d->scratch[lane]),
                             0);
            memset(out, 0, by->chain.words * sizeof *out);
            for (uint32_t i = 0; i < by->chain.n; i++)
                whole_host_sum_up(&by->chain.of[i], made.data, n, out + by->chain.of[i].at);
            free(made.data);
        }
    return 0;
}

static int whole_host_gate(void *device, uint32_t queue, const struct pb_tile_in *in,
                           const struct pb_tile_out *out, struct pb_err *err)
{
    struct whole_host_device *d = device;
    const struct pb_plan_gate *gate = &d->plan->layout.gate;
    void *scratch = aligned_alloc(64, (gate->scratch_bytes + 127) / 64 * 64);
    (void)queue, (void)err;
    whole_host_check_tile(d, in, &gate->format);
    ck_assert_int_eq(pb_chain_run_cpu(gate->chain, in, out, scratch), 0);
    free(scratch);
    return 0;
}

static int whole_host_passing(void *device, uint32_t queue,
                              const struct pb_statistics_plane *planes, uint32_t n,
                              uint64_t most_px, uint32_t *counts, struct pb_err *err)
{
    (void)device, (void)queue, (void)err;
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_le((uint64_t)planes[i].w * (uint64_t)planes[i].h, most_px);
        counts[i] = 0;
        for (int32_t y = 0; y < planes[i].h; y++)
            for (int32_t x = 0; x < planes[i].w; x++)
                counts[i] +=
                    pb_pixel_passes(planes[i].data[(size_t)y * planes[i].row_px + (size_t)x]);
    }
    return 0;
}

static int whole_host_halve(void *device, uint32_t queue, const struct pb_halve_part *parts,
                            uint32_t n, uint32_t n_planes, int32_t most_rows, bool nearest,
                            struct pb_err *err)
{
    (void)device, (void)queue, (void)err;
    for (uint32_t i = 0; i < n; i++) {
        const struct pb_halve_part *p = &parts[i];
        ck_assert_int_le(p->h, most_rows);
        const float *plane[4 * PB_BANDS_MAX];
        ck_assert_uint_le(n_planes, 4 * PB_BANDS_MAX);
        for (uint32_t b = 0; b < n_planes; b++)
            plane[b] = p->from + b * p->from_plane_px;
        if (p->join.planes != 0 && !nearest) {
            pb_halve_average_joined(&p->join, plane, n_planes, p->from_row_px, p->w, p->h, p->to,
                                    p->to_plane_px, p->to_row_px);
            continue;
        }
        for (uint32_t b = 0; b < n_planes; b++)
            (nearest ? pb_halve_nearest
                     : pb_halve_average)(p->from + b * p->from_plane_px, p->from_row_px, p->w, p->h,
                                         p->to + b * p->to_plane_px, p->to_row_px);
    }
    return 0;
}

/* Reduces by the CPU's reductions, and takes the results apart again. */
static int whole_host_statistics(void *device, uint32_t queue,
                                 const struct pb_statistics_plane *planes, uint32_t n,
                                 uint64_t most_px, struct pb_statistics_part *parts,
                                 struct pb_err *err)
{
    struct pb_histogram_part *histogram = malloc(sizeof *histogram);
    (void)device, (void)queue, (void)err;
    for (uint32_t i = 0; i < n; i++) {
        const struct pb_statistics_plane *p = &planes[i];
        struct pb_moments moments;
        ck_assert_uint_le((uint64_t)p->w * (uint64_t)p->h, most_px);
        ck_assert_int_eq(p->w, (int32_t)p->row_px);
        memset(histogram, 0, sizeof *histogram);
        memset(&parts[i], 0, sizeof parts[i]);
        pb_moments_begin(&moments);
        pb_moments_add(&moments, p->data, p->w, p->h);
        parts[i].valid = moments.valid;
        whole_host.parts++;
        if (moments.valid == 0)
            continue;
        pb_histogram_part_begin(histogram, moments.min, moments.max);
        pb_histogram_part_add(histogram, p->data, (size_t)p->w * (size_t)p->h);
        parts[i].min = pb_statistics_key(moments.min);
        parts[i].max = pb_statistics_key(moments.max);
        memcpy(parts[i].sum, moments.sum.limb, sizeof parts[i].sum);
        memcpy(parts[i].squares, moments.squares.limb, sizeof parts[i].squares);
        for (size_t k = 0; k < PB_HISTOGRAM_BINS; k++)
            parts[i].bin[k] = histogram->lane[0][k] + histogram->lane[1][k];
    }
    free(histogram);
    return 0;
}

static int whole_host_percentiles(void *device, uint32_t queue, struct pb_percentiles *state,
                                  const struct pb_statistics_plane *planes, uint32_t n,
                                  uint64_t most_px, struct pb_err *err)
{
    (void)device, (void)queue, (void)err;
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_le((uint64_t)planes[i].w * (uint64_t)planes[i].h, most_px);
        for (int32_t y = 0; y < planes[i].h; y++)
            pb_percentiles_add(state, planes[i].data + (size_t)y * planes[i].row_px,
                               (size_t)planes[i].w);
        whole_host.counted++;
    }
    return 0;
}

static int whole_host_encode(void *device, uint32_t queue, const struct pb_encode_batch *batch,
                             struct pb_err *err)
{
    struct pb_encode_needs needs;
    uint64_t at = 16;
    (void)device, (void)queue, (void)err;
    ck_assert_int_eq(pb_encode_measure(&batch->format, batch->n_blocks, &needs), 0);
    for (uint32_t i = 0; i < batch->n_blocks; i++) {
        struct encode_reference made;
        struct pb_encoded *out = &batch->encoded[i];
        ck_assert(
            encode_reference_painted(&batch->format, batch->steps, NULL, &batch->blocks[i], &made));
        ck_assert_uint_eq(made.raw_bytes, needs.raw_bytes);
        memcpy((uint8_t *)batch->workspace + needs.raw_at + i * needs.raw_stride, made.raw,
               made.raw_bytes);
        *out = (struct pb_encoded){.at = at, .moved = made.moved};
        int n = atomic_fetch_add(&whole_host.blocks, 1);
        out->state = batch->format.with == PB_ENCODE_RAW ? PB_ENCODED_RAW
                     : made.has_strings                  ? PB_ENCODED_STRINGS
                     : n % 5 == 3                        ? PB_ENCODED_NO_ROOM
                                                         : PB_ENCODED;
        if (out->state == PB_ENCODED) {
            out->bytes = (uint32_t)made.encoded_bytes;
            memcpy(batch->out + at, made.encoded, made.encoded_bytes);
            at += (made.encoded_bytes + 20 + 15) / 16 * 16;
        }
        encode_reference_free(&made);
    }
    *batch->used = at;
    ck_assert(at == 16 || at <= batch->out_bytes);
    return 0;
}

/* A table has room for the host's own counts of values, which take its place. */
static int whole_host_values_begin(void *device, uint32_t queue, struct pb_value_table *table,
                                   uint32_t limit, struct pb_err *err)
{
    (void)device, (void)queue, (void)err;
    ck_assert_uint_le(pb_value_counts_bytes(limit), pb_value_table_bytes(limit));
    pb_value_counts_begin((struct pb_value_counts *)(void *)table, limit);
    return 0;
}

static int whole_host_values_add(void *device, uint32_t queue, struct pb_value_table *table,
                                 struct pb_value_table *spare, const struct pb_value_planes *planes,
                                 struct pb_err *err)
{
    enum { VALUES = 1 << 16 };
    struct pb_value_counts *part = malloc(pb_value_counts_bytes(VALUES)),
                           *all = (struct pb_value_counts *)(void *)table;
    uint64_t px = 0;
    (void)device, (void)queue, (void)spare, (void)err;
    pb_value_counts_begin(part, VALUES);
    for (uint32_t i = 0; i < planes->n; i++) {
        const struct pb_statistics_plane *p = &planes->plane[i * planes->step];
        const int32_t past = planes->row + planes->rows, end = p->h < past ? p->h : past;
        for (int32_t y = planes->row; y < end; y++) {
            const float *row = p->data + (size_t)y * p->row_px;
            pb_value_counts_take_level(part, all);
            for (size_t done = 0; done < (size_t)p->w;) {
                done += pb_value_counts_add(part, 0, row + done, (size_t)p->w - done);
                ck_assert(pb_value_counts_merge(all, part));
            }
            px += (uint64_t)p->w;
        }
    }
    ck_assert_uint_le(px, pb_value_table_px(PB_VALUE_TALLY_VALUES));
    whole_host.valued++;
    free(part);
    return 0;
}

static int whole_host_values_list(void *device, uint32_t queue, struct pb_value_table *table,
                                  uint32_t limit, struct pb_value_part *parts, struct pb_err *err)
{
    struct pb_value_counts *all = (struct pb_value_counts *)(void *)table;
    size_t n;
    (void)device, (void)queue, (void)err;
    pb_value_counts_sort(all);
    const struct pb_value_count *entry = pb_value_counts_of(all, 0, &n);
    for (uint32_t k = 0; k < pb_value_table_parts(limit); k++) {
        parts[k].level = pb_value_counts_level(all);
        parts[k].n = 0;
    }
    for (size_t i = 0; i < n; i++) {
        struct pb_value_part *part = &parts[i / PB_VALUE_PART_ENTRIES];
        part->key[part->n] = entry[i].key;
        part->count[part->n++] = entry[i].n;
    }
    return 0;
}

static int whole_host_mark(void *device, uint32_t queue, uint32_t event, struct pb_err *err)
{
    struct whole_host_device *d = device;
    (void)queue, (void)err;
    atomic_store(&d->marked[event], pb_clock_mono_ns() - d->start);
    return 0;
}

static int whole_host_after(void *device, uint32_t queue, uint32_t event, struct pb_err *err)
{
    (void)device, (void)queue, (void)event, (void)err;
    return 0;
}

static int whole_host_when(void *device, uint32_t event, uint64_t *out_ns, struct pb_err *err)
{
    struct whole_host_device *d = device;
    (void)err;
    *out_ns = atomic_load(&d->marked[event]);
    return 0;
}

static int whole_host_happened(void *device, uint32_t event, const char *what, struct pb_err *err)
{
    (void)device, (void)event, (void)what, (void)err;
    return 1;
}

static const struct pb_whole_device whole_host_device = {
    .open = whole_host_open,
    .close = whole_host_close,
    .use = whole_host_use,
    .memory = whole_host_memory,
    .table = whole_host_memory,
    .managed = whole_host_managed,
    .move = whole_host_move,
    .keep = whole_host_keep,
    .drop = whole_host_drop,
    .seen = whole_host_seen,
    .copy = whole_host_copy,
    .decode = whole_host_decode,
    .unpredict = whole_host_unpredict,
    .tile = whole_host_tile,
    .sums = whole_host_sums,
    .gate = whole_host_gate,
    .passing = whole_host_passing,
    .halve = whole_host_halve,
    .encode = whole_host_encode,
    .statistics = whole_host_statistics,
    .percentiles = whole_host_percentiles,
    .values_begin = whole_host_values_begin,
    .values_add = whole_host_values_add,
    .values_list = whole_host_values_list,
    .mark = whole_host_mark,
    .after = whole_host_after,
    .happened = whole_host_happened,
    .when = whole_host_when,
};
#endif
