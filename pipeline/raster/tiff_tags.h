/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_TAGS_H
#define PB_TIFF_TAGS_H
/* Extracts selected tags from a TIFF in memory that was written on this machine: classic, in
 * host byte order, first directory only. Bounds are checked anyway. Thread: any. */
#include "pipeline/raster/raster.h"

#include <stddef.h>
#include <stdint.h>

/* wanted is ascending. Returns 0 with the tags found in *out_tags (free with pb_tiff_tags_free),
 * -EINVAL if the bytes are not such a TIFF, -ENOMEM; *out_tags untouched on failure. */
int pb_tiff_tags_take(const void *bytes, size_t n_bytes, const uint16_t *wanted, size_t n_wanted,
                      struct pb_tiff_tags *out_tags);
#endif
