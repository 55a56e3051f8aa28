/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a JPEG 2000 file: its boxes and markers are refused with a code of their own and
 * clean words, or are within the limits and within the file, which may be a part of another one:
 * the same answer then. */
#include "config/limits_config.h"
#include "fuzz_check.h"
#include "pipeline/raster/jp2_header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define BEFORE 100u /* bytes of the file before the part */

static const struct pb_limits limits = {.max_pixels = 1u << 24,
                                        .max_block_bytes = 1u << 24,
                                        .max_ratio = 10000,
                                        .max_side_px = 100000,
                                        .max_bands = 8,
                                        .max_directories = 8};

static void check_code(const struct pb_err *err)
{
    require(err->code == PB_E_INPUT_TRUNCATED || err->code == PB_E_INPUT_DAMAGED ||
                err->code == PB_E_INPUT_UNSUPPORTED || err->code == PB_E_INPUT_LIMIT,
            "the code");
    check_err(err);
}

static void check_header(const struct pb_tiff_header *h, size_t bytes)
{
    require(h->width >= 1 && h->width <= limits.max_side_px, "width");
    require(h->height >= 1 && h->height <= limits.max_side_px, "height");
    require((uint64_t)h->width * (uint64_t)h->height <= limits.max_pixels, "pixels");
    require(h->bands >= 1 && h->bands <= limits.max_bands, "bands");
    require(h->bits >= 1 && h->bits <= 32, "bits");
    require(h->block_w >= 1 && h->block_w <= (uint32_t)h->width, "the width of a tile");
    require(h->block_h >= 1 && h->block_h <= (uint32_t)h->height, "the height of a tile");
    require(h->n_blocks >= 1, "tiles");
    require(h->stored_block_max <= bytes, "a tile larger than the file");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char around[BEFORE];
    struct pb_tiff_header whole, inside;
    struct pb_err err = {0}, other = {0};
    bool is = false, is_inside = false;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, around, BEFORE) == BEFORE &&
                write(fd, data, bytes) == (ssize_t)bytes && write(fd, data, bytes) >= 0,
            "no memory file");
    int own = memfd_create("own", MFD_CLOEXEC);
    require(own >= 0 && write(own, data, bytes) == (ssize_t)bytes, "no memory file");
    const struct pb_file_part file = {.fd = own, .bytes = bytes},
                              part = {.fd = fd, .base = BEFORE, .bytes = bytes};
    require(pb_jp2_look(&file, "fuzz", &err, &is) == 0, "the first bytes");
    require(pb_jp2_look(&part, "fuzz", &err, &is_inside) == 0 && is == is_inside, "in a part");
    memset(&whole, 0, sizeof whole);
    memset(&inside, 0, sizeof inside);
    int rc = pb_jp2_header_read(&file, "fuzz", &limits, &err, &whole);
    require(pb_jp2_header_read(&part, "fuzz", &limits, &other, &inside) == rc, "in a part");
    require(err.code == other.code && strcmp(err.msg, other.msg) == 0, "another error in a part");
    if (rc < 0)
        check_code(&err);
    else
        check_header(&whole, bytes);
    (void)close(own);
    (void)close(fd);
    return 0;
}
