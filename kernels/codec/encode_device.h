/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ENCODE_DEVICE_H
#define PB_ENCODE_DEVICE_H
/* Blocks of a product on a device: float32 planes in, quantized, padded to the full block and
 * predicted as the CPU's block encoder does it (pipeline/cog/block_encoder.h), then compressed by
 * deflate without a search for strings, or with one for short strings of integers, planes of
 * float32 rows separately where that is smaller, in zlib's framing. The bytes are those of the
 * CPU's codec (pipeline/codec/codec_deflate.c) wherever the block is PB_ENCODED; which blocks those
 * are is found by the CPU's own rule. All other blocks stay in the workspace as they are before
 * compression, for the host to encode.
 *
 * A batch has blocks of one format. Everything is queued on a stream, nothing is allocated and
 * nothing is waited for. Errors: -EINVAL, -ENODEV, -EIO. Plain data, C11 and C++17; the functions
 * of CUDA are there in CUDA builds only. Thread: any, one batch a workspace. */
#include "kernels/codec/paint_pixel.h"
#include "kernels/codec/predictors.h"
#include "kernels/codec/quantizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PB_ENCODE_BANDS_MAX 64

/* What becomes of predicted blocks. */
enum pb_encode_with {
    PB_ENCODE_RAW,      /* nothing: the host encodes them, or stores them as they are */
    PB_ENCODE_RUNS,     /* deflate's default for floats: all blocks */
    PB_ENCODE_INTEGERS, /* deflate's default for integers and masks: blocks that have strings
                           (pipeline/codec/deflate_strings.h) are left to the host */
    PB_ENCODE_PAIRS     /* the same for samples of two bytes or more: only blocks that probably have
                           long strings are left to the host, others are searched by pairs of bytes
                           (deflate_pairs.cuh) */
};

struct pb_encode_format {
    int32_t block_px; /* side; a multiple of 8 */
    uint32_t n_bands; /* of the block, samples of a pixel side by side */
    uint16_t
        plane[PB_ENCODE_BANDS_MAX]; /* plane of the input, for each band; painted: for each value */
    struct pb_paint paint; /* makes the samples, of uint8; the quantizer has those outside */
    bool repeats; /* pixels outside have the samples of the nearest one inside; false: nodata */
    double scale, offset; /* stored = (value - offset) / scale; scale 0: stored = value */
    struct pb_quantizer quantizer;
    int32_t predictor; /* PB_PREDICTOR_*; NONE for masks */
    bool mask; /* not the values: a bit a pixel, 1 where all the bands are valid (not NaN), the
                  first pixel in the highest, 0 outside. The quantizer means nothing */
    bool any;  /* of a mask: 1 where one of the bands is valid */
    enum pb_encode_with with;
};

/* One block: planes of w x h pixels, 1 <= w, h <= block_px, invalid ones NaN. */
struct pb_encode_block {
    const float *data; /* plane p at data + p * plane_px, rows row_px apart; device memory. NULL: no
                          pixel is valid */
    uint64_t plane_px;
    uint32_t row_px;
    int32_t w, h;
};

enum pb_encode_state {
    PB_ENCODED = 0,
    PB_ENCODED_RAW = 1,     /* as asked for; the raw block lies in the workspace */
    PB_ENCODED_STRINGS = 2, /* the raw block has strings: the host has to encode it */
    PB_ENCODED_NO_ROOM = 3  /* the output was full: as ENCODED_RAW */
};

struct pb_encoded {
    uint64_t at;    /* of its first byte in the output; a multiple of 16, with 16 bytes free before
                       and 4 behind the block: room for the frame of a COG */
    uint32_t bytes; /* 0 unless ENCODED */
    uint32_t state; /* enum pb_encode_state */
    uint64_t moved; /* valid values that were moved off nodata; of masks 0 */
    uint32_t any;   /* 0: no plane of the block had a valid pixel */
    uint32_t adler; /* Adler-32 of the raw block, the last 4 bytes of an ENCODED one */
};

/* Where things lie in a batch's workspace, in bytes. */
struct pb_encode_needs {
    uint64_t bytes;  /* of the whole workspace */
    uint64_t raw_at; /* raw block i at raw_at + i * raw_stride, a multiple of 16 */
    uint64_t raw_stride, raw_bytes;
    uint64_t out_bytes; /* what a batch can take of the output at most */
};

/* Count of the planes that a format reads: one for each band, or those of values that are painted.
 */
static inline uint32_t pb_encode_planes(const struct pb_encode_format *format)
{
    return format->paint.n_planes > 0 ? pb_paint_planes(&format->paint) : format->n_bands;
}

/* 0; -EINVAL: a format that no product has, or a batch of 2^31 rows or more. Pure. */
int pb_encode_measure(const struct pb_encode_format *format, uint32_t n_blocks,
                      struct pb_encode_needs *out_needs);

/* A batch on the current device. Blocks lie in the output in the order of the batch. All memory is
 * the device's, but `blocks` may be mapped. */
struct pb_encode_batch {
    struct pb_encode_format format;
    uint32_t n_blocks;
    const struct pb_encode_block *blocks; /* n_blocks, device-readable, until the stream is done */
    const struct pb_paint_step *steps;    /* the format's, in device memory; NULL if not painted */
    void *workspace;                      /* as measured for n_blocks or more; 256-byte aligned */
    uint8_t *out;                         /* 16-byte aligned */
    uint64_t out_bytes;                   /* its size */
    struct pb_encoded *encoded;           /* n_blocks */
    uint64_t *used;                       /* one: bytes of the output that are taken */
};

/* Queues all kernels of the batch on `stream`, a cudaStream_t. */
int pb_encode_cuda(const struct pb_encode_batch *batch, void *stream);

#ifdef __cplusplus
}
#endif
#endif
