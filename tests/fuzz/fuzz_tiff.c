/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the directory reader and the block decoders: a file is looked at as pb_raster_open does,
 * then its pixels are read, twice, into memory that holds something else each time. The pixels must
 * not depend on that. */
#include "config/limits_config.h"
#include "pipeline/raster/block_reader.h"
#include "pipeline/raster/tiff_header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { BYTES_MAX = 1 << 22 };

static const struct pb_limits limits = {
    .max_pixels = 1 << 20,
    .max_block_bytes = 1 << 20,
    .max_side_px = 1 << 16,
    .max_bands = 16,
    .max_directories = 8,
};

/* by_windows: reads as the cache of blocks does. */
static int read_all(struct pb_block_reader *reader, unsigned char *out, int fill, bool by_windows)
{
    static const enum pb_type types[] = {PB_U8, PB_U16, PB_U32, PB_U32, PB_F64};
    static const struct pb_block_fill nodata;
    const struct pb_block_layout *l = pb_block_reader_layout(reader);
    const struct pb_rect rect = {0, 0, l->width, l->height};
    struct pb_read_result result = {0};
    int32_t bands[PB_BANDS_MAX];
    size_t row = (size_t)l->width * l->bits / 8, plane = row * (size_t)l->height;
    for (int32_t i = 0; i < l->bands; i++)
        bands[i] = i + 1;
    struct pb_window to = {out, row, plane, out + plane * (size_t)l->bands, (size_t)l->width, rect};
    const struct pb_block_target target = {.layout = l,
                                           .rect = &rect,
                                           .bands = bands,
                                           .n_bands = (size_t)l->bands,
                                           .sample_bytes = l->bits / 8,
                                           .type = types[l->bits / 16],
                                           .alpha_band = l->bands,
                                           .fill = &nodata,
                                           .to = &to};
    memset(out, fill, BYTES_MAX);
    if (by_windows)
        pb_block_reader_read_two(reader, &target, 1, &result);
    else
        result.rc = pb_block_reader_read(reader, &target, &result.err);
    if ((result.rc < 0) != (result.err.code != PB_OK))
        abort();
    return result.rc;
}

static void read_pixels(struct pb_block_reader *reader)
{
    static unsigned char first[BYTES_MAX], second[BYTES_MAX];
    const struct pb_block_layout *l = pb_block_reader_layout(reader);
    uint64_t px = (uint64_t)l->width * (uint64_t)l->height * (uint64_t)l->bands;
    if (l->bands > PB_BANDS_MAX || px > BYTES_MAX / 16)
        return;
    size_t bytes = (size_t)px * l->bits / 8 + (size_t)l->width * (size_t)l->height;
    int rc = read_all(reader, first, 0x5a, false);
    if (rc != read_all(reader, second, 0xc3, false) ||
        (rc == 0 && memcmp(first, second, bytes) != 0))
        abort();
    if (pb_block_reader_is_ahead(reader) && (rc != read_all(reader, second, 0xa5, true) ||
                                             (rc == 0 && memcmp(first, second, bytes) != 0)))
        abort();
}

static void read_image(const struct pb_file_part *part, bool mask)
{
    struct pb_err err = {0};
    struct pb_block_reader *reader = NULL;
    uint64_t directory = 0;
    if (pb_block_layout_find(part, "fuzz", mask, limits.max_directories, &err, &directory) < 0 ||
        directory == 0 || pb_block_reader_create(part, "fuzz", directory, &err, &reader) < 0 ||
        reader == NULL)
        return;
    const struct pb_block_layout *l = pb_block_reader_layout(reader);
    const struct pb_rect rect = {0, 0, l->width, l->height};
    bool small = l->block_bytes <= limits.max_block_bytes &&
                 (uint64_t)l->across * l->down * (uint64_t)l->bands <= 4096;
    if (small)
        (void)pb_block_reader_check(reader, &rect, &err);
    if (small && pb_block_reader_decodes(reader))
        read_pixels(reader);
    pb_block_reader_destroy(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct pb_tiff_header header;
    struct pb_err err = {0};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
        abort();
    const struct pb_file_part part = {.fd = fd, .bytes = bytes};
    int rc = pb_tiff_header_read(&part, "fuzz", &limits, &err, &header);
    if ((rc < 0) != (err.code != PB_OK))
        abort();
    if (rc == 0) {
        read_image(&part, false);
        read_image(&part, true);
    }
    (void)close(fd);
    return 0;
}
