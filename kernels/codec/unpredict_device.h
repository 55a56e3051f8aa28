/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_UNPREDICT_DEVICE_H
#define PB_UNPREDICT_DEVICE_H
/* From decoded TIFF blocks to planes of native samples, on a GPU: predictor 2 or 3 undone, host
 * byte order, samples of a pixel apart; pipeline/codec/unpredict.h for a batch of blocks, in one
 * pass over memory. Calls queue work on a stream and return 0, -EINVAL or -EIO. Thread: any, with
 * the device current. CUDA builds only. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PB_UNPREDICT_PLANES 64

/* Samples that are written. */
enum pb_unpredict_as {
    PB_UNPREDICT_SAMPLES, /* those of the blocks */
    /* One plane of bytes of a mask: of samples of `type` (mask_pixel.h), or 255 and 0 of blocks
     * with a bit a pixel, whose rows begin with a byte and whose first pixel is the highest bit. */
    PB_UNPREDICT_MASK,
    PB_UNPREDICT_BITS
};

/* What all blocks of a batch have in common. */
struct pb_unpredict_form {
    uint32_t as;           /* enum pb_unpredict_as */
    uint32_t type;         /* enum pb_type; with PB_UNPREDICT_MASK */
    uint32_t sample_bytes; /* 1, 2, 4, 8; unused for bits, like all but block_w */
    uint32_t predictor;    /* 1, 2, or 3 (4 and 8 bytes) */
    uint32_t swap;         /* 1: the file has the other byte order; not for predictor 3 */
    uint32_t n_samples;    /* of a pixel in a block; 1 where each band has blocks of its own */
    uint32_t block_w;      /* pixels of a row, those outside of the image included */
    uint32_t n_planes;     /* that are wanted, <= PB_UNPREDICT_PLANES */
    uint16_t sample[PB_UNPREDICT_PLANES]; /* of a pixel, that plane p is */
};

/* One block. Its pixel (x, y) goes to plane p at out + p * plane_bytes + (y - top) * row_bytes +
 * (x - left) * the bytes of a written sample for left <= x < left + w, top <= y < top + h: part of
 * a tile's window, or of planes that hold a whole scene. */
struct pb_unpredict_block {
    const void *in; /* decoded, aligned to 16 */
    void *out;      /* aligned to sample_bytes; rows and planes aligned to 16 are faster */
    size_t row_bytes, plane_bytes;
    uint32_t left, top, w, h; /* pixels wanted: left + w <= block_w */
};

/* blocks: n of them, in device memory. rows_most: the largest h. */
int pb_unpredict_cuda(const struct pb_unpredict_form *form, const struct pb_unpredict_block *blocks,
                      uint32_t n, uint32_t rows_most, void *stream);

/* A rectangle of bytes, for what is assembled from planes: h rows of w bytes. */
struct pb_rect_copy {
    const void *from;
    void *to;
    size_t from_row_bytes, to_row_bytes;
    uint32_t w, h;
};

/* copies: n of them, in device memory; rows_most: the largest h. */
int pb_copy_rects_cuda(const struct pb_rect_copy *copies, uint32_t n, uint32_t rows_most,
                       void *stream);

#ifdef __cplusplus
}
#endif
#endif
