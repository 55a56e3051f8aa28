/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_RANGES_H
#define PB_TIFF_RANGES_H
/* Check of a directory's blocks: every byte range is inside the file, and was written. Private
 * to the TIFF checks. Thread: any. */
#include "pipeline/raster/tiff_directory.h"
#include "pipeline/raster/tiff_header.h"

/* Checks every block's byte range against the file's size and its holes. Fills n_sparse and
 * stored_block_max of *header. Returns input.truncated, input.damaged, input.limit, or
 * input.empty if no block has a byte that was ever written. */
int pb_tiff_check_ranges(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                         struct pb_tiff_header *header);
#endif
