/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The workspace: raw blocks, the results of the estimate of strings, sums and codes of chunks, then
 * sums, codes and rows of blocks of planes, or matches of blocks of pairs. */
#include "kernels/codec/encode_batch.h"

#include <errno.h>

enum { ALIGN = 256, BLOCK_ALIGN = 16, FRAME_BEFORE = 16, FRAME_BEHIND = 4, ZLIB_FRAME = 6 };

static uint64_t aligned(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

static bool is_painted(const struct pb_encode_format *format)
{
    const struct pb_paint *paint = &format->paint;
    return (paint->n_planes == 1 || (paint->n_planes == PB_PAINT_PLANES_MAX && !paint->has_ramp)) &&
           paint->n_steps >= 1 && paint->n_steps <= PB_PAINT_STEPS_MAX &&
           format->n_bands == pb_paint_channels(paint) && format->quantizer.type == PB_U8;
}

static bool is_valid(const struct pb_encode_format *format)
{
    const enum pb_type type = format->quantizer.type;
    if (format->block_px < 8 || format->block_px % 8 != 0 || format->n_bands < 1 ||
        format->n_bands > PB_ENCODE_BANDS_MAX || format->with > PB_ENCODE_PAIRS)
        return false;
    if (format->with == PB_ENCODE_PAIRS && (format->mask || pb_type_bytes(type) < 2))
        return false;
    if (format->mask)
        return format->predictor == PB_PREDICTOR_NONE && format->paint.n_planes == 0;
    if (format->paint.n_planes > 0 && !is_painted(format))
        return false;
    if (format->predictor == PB_PREDICTOR_FLOAT)
        return type == PB_F32 || type == PB_F64;
    return type < PB_TYPE_COUNT &&
           (format->predictor == PB_PREDICTOR_NONE || format->predictor == PB_PREDICTOR_HORIZONTAL);
}

static uint64_t raw_bytes(const struct pb_encode_format *format)
{
    const uint64_t px = (uint64_t)format->block_px * (uint64_t)format->block_px;
    return format->mask ? px / 8 : px * format->n_bands * pb_type_bytes(format->quantizer.type);
}

/* As pb_deflate_runs_bound, with zlib's framing. */
static uint64_t encoded_bound(uint64_t bytes)
{
    return bytes + (bytes / PB_DEFLATE_RUNS_CHUNK + 1) * 6 + 16 + ZLIB_FRAME;
}

/* Bytes of a row whose planes may be encoded separately; 0 = another format. */
static uint32_t planes_row_bytes(const struct pb_encode_format *format)
{
    const uint64_t type_bytes = pb_type_bytes(format->quantizer.type);
    const uint64_t row_bytes = (uint64_t)format->block_px * format->n_bands * type_bytes;
    const bool fits = format->with == PB_ENCODE_RUNS && format->predictor == PB_PREDICTOR_FLOAT &&
                      pb_planes_fit((uint32_t)type_bytes, row_bytes);
    return fits ? (uint32_t)row_bytes : 0;
}

/* Groups of a block of pairs: each chunk begins one. */
static uint64_t groups_of(uint64_t raw)
{
    const uint64_t rest = raw % PB_DEFLATE_RUNS_CHUNK / 2;
    return raw / PB_DEFLATE_RUNS_CHUNK * PB_PAIRS_CHUNK_GROUPS +
           (rest + PB_PAIRS_GROUP - 1) / PB_PAIRS_GROUP;
}

static bool is_estimated(const struct pb_encode_format *format)
{
    return format->with == PB_ENCODE_INTEGERS || format->with == PB_ENCODE_PAIRS;
}

struct layout {
    uint64_t raw_stride, chunks, groups, strings_at, sums_at, code_at;
    uint64_t planes_sums_at, planes_at, planes_rows_at, pairs_groups_at, pairs_back_at;
    uint64_t distances_at, bytes;
};

static struct layout lay_out(const struct pb_encode_format *format, uint32_t n_blocks)
{
    const bool deflated = format->with != PB_ENCODE_RAW;
    const uint64_t raw = raw_bytes(format);
    struct layout l = {.raw_stride = aligned(raw, BLOCK_ALIGN)};
    l.chunks = deflated ? (raw + PB_DEFLATE_RUNS_CHUNK - 1) / PB_DEFLATE_RUNS_CHUNK : 0;
    l.strings_at = aligned(l.raw_stride * n_blocks, ALIGN);
    l.sums_at = l.strings_at;
    if (is_estimated(format))
        l.sums_at += aligned(n_blocks * sizeof(struct pb_strings_sizes), ALIGN);
    l.code_at = l.sums_at + aligned(n_blocks * l.chunks * sizeof(struct pb_deflate_sums), ALIGN);
    l.bytes = l.code_at + aligned(n_blocks * l.chunks * sizeof(struct pb_deflate_code), ALIGN);
    l.planes_sums_at = l.planes_at = l.planes_rows_at = l.bytes;
    if (planes_row_bytes(format) > 0) {
        const uint64_t rows = (uint64_t)n_blocks * (uint64_t)format->block_px;
        l.planes_at += aligned(n_blocks * sizeof(struct pb_planes_sums), ALIGN);
        l.planes_rows_at = l.planes_at + aligned(n_blocks * sizeof(struct pb_planes_block), ALIGN);
        l.bytes = l.planes_rows_at + aligned(rows * sizeof(struct pb_planes_row), ALIGN);
    }
    l.pairs_groups_at = l.pairs_back_at = l.distances_at = l.bytes;
    if (format->with == PB_ENCODE_PAIRS) {
        l.groups = groups_of(raw);
        l.pairs_back_at += aligned(n_blocks * l.groups * sizeof(struct pb_pairs_group), ALIGN);
        l.distances_at = l.pairs_back_at + aligned(n_blocks * l.raw_stride, ALIGN);
        l.bytes = l.distances_at +
                  aligned(n_blocks * l.chunks * sizeof(struct pb_pairs_distances), ALIGN);
    }
    return l;
}

int pb_encode_measure(const struct pb_encode_format *format, uint32_t n_blocks,
                      struct pb_encode_needs *out_needs)
{
    if (!is_valid(format) || n_blocks < 1 || raw_bytes(format) > INT32_MAX)
        return -EINVAL;
    const struct layout l = lay_out(format, n_blocks);
    const uint64_t rows = (uint64_t)n_blocks * (uint64_t)format->block_px;
    if (n_blocks * l.chunks > INT32_MAX || rows > INT32_MAX)
        return -EINVAL;
    const uint64_t block = FRAME_BEFORE + encoded_bound(raw_bytes(format)) + FRAME_BEHIND;
    *out_needs = (struct pb_encode_needs){
        .bytes = l.bytes,
        .raw_stride = l.raw_stride,
        .raw_bytes = raw_bytes(format),
        .out_bytes = l.chunks > 0 ? n_blocks * aligned(block, BLOCK_ALIGN) : 0,
    };
    return 0;
}

int pb_encode_view_of(const struct pb_encode_batch *batch, struct pb_encode_view *out_view)
{
    struct pb_encode_needs needs;
    const int rc = pb_encode_measure(&batch->format, batch->n_blocks, &needs);
    if (rc < 0)
        return rc;
    if ((uintptr_t)batch->workspace % ALIGN != 0 || (uintptr_t)batch->out % BLOCK_ALIGN != 0)
        return -EINVAL;
    const struct layout l = lay_out(&batch->format, batch->n_blocks);
    uint8_t *const base = batch->workspace;
    struct pb_encode_view view = {
        .batch = *batch,
        .raw = base + needs.raw_at,
        .raw_stride = l.raw_stride,
        .raw_bytes = (uint32_t)needs.raw_bytes,
        .chunks = (uint32_t)l.chunks,
        .strings = (struct pb_strings_sizes *)(base + l.strings_at),
        .sums = (struct pb_deflate_sums *)(base + l.sums_at),
        .code = (struct pb_deflate_code *)(base + l.code_at),
        .row_bytes = planes_row_bytes(&batch->format),
        .every =
            pb_planes_every(planes_row_bytes(&batch->format), (uint32_t)batch->format.block_px),
        .planes_sums = (struct pb_planes_sums *)(base + l.planes_sums_at),
        .planes = (struct pb_planes_block *)(base + l.planes_at),
        .planes_rows = (struct pb_planes_row *)(base + l.planes_rows_at),
        .groups = (uint32_t)l.groups,
        .pairs_groups = (struct pb_pairs_group *)(base + l.pairs_groups_at),
        .pairs_back = (uint16_t *)(base + l.pairs_back_at),
        .distances = (struct pb_pairs_distances *)(base + l.distances_at),
    };
    if (is_estimated(&batch->format))
        view.windows = pb_strings_windows(view.raw_bytes, &view.window_bytes);
    *out_view = view;
    return 0;
}
