/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEFLATE_PLANES_H
#define PB_DEFLATE_PLANES_H
/* Deflate for rows of float32 samples after TIFF's predictor 3, whose four planes of bytes have
 * very different entropies (kernels/codec/planes_format.h). One code is made for a block; each row
 * is a block of deflate with the codes of its upper planes and a stored one with its lower planes.
 * Rows whose lower planes are flat are coded as a whole and share a block of deflate with the next
 * row. This is smaller than one code for all planes, and faster, because half of the bytes are
 * copied. Makes raw deflate blocks (RFC 1951); any inflater reads them. Allocates nothing. Thread:
 * any, one workspace each. */
#include "kernels/codec/planes_format.h"
#include "pipeline/codec/deflate_runs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_DEFLATE_PLANES_HEAD_BYTES 528 /* a table, and the bytes of a word after it */

/* The code of a block; its symbols' codes are in the workspace of runs. */
struct pb_deflate_planes {
    uint8_t head[PB_DEFLATE_PLANES_HEAD_BYTES]; /* head of a deflate block, with the table */
    unsigned head_bits;
    uint64_t code[PB_DEFLATE_LITLEN]; /* as in struct pb_deflate_runs */
};

/* Makes the code for a block of rows that pb_planes_fit(). Returns false if the encoder of runs is
 * estimated to make the block as small, or nearly so. */
bool pb_deflate_planes_plan(struct pb_deflate_planes *planes, struct pb_deflate_runs *work,
                            const uint8_t *in, uint32_t row_bytes, size_t rows);
/* Encodes rows with the code of the last plan, which was made for them or for rows among which they
 * are. Returns the size, or 0 if it exceeds pb_planes_limit(); out holds that and 3 * row_bytes. */
size_t pb_deflate_planes(const struct pb_deflate_planes *planes, struct pb_deflate_runs *work,
                         const uint8_t *in, uint32_t row_bytes, size_t rows, uint8_t *out);
#endif
