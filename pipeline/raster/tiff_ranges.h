/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_RANGES_H
#define PB_TIFF_RANGES_H
/* Where a directory's blocks lie in the file: every byte range inside the file, and written.
 * Private to the TIFF checks. Thread: any. */
#include "pipeline/raster/tiff_directory.h"
#include "pipeline/raster/tiff_header.h"

/* Holds every block's byte range against the file's size and against its holes. Fills n_sparse and
 * stored_block_max of *header. input.truncated, input.damaged, input.limit, or input.empty when no
 * block holds a byte that was ever written. */
int pb_tiff_check_ranges(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                         struct pb_tiff_header *header);
#endif
