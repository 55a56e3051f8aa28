/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Baseline JPEG in the form for TIFF (TIFF Technical Note 2): the tables of quantization and of
 * codes are in the file once, in the tag JPEGTables, and each block is an abbreviated stream
 * without them. Therefore the codes are the standard ones, not made for each block. Three bands
 * become YCbCr whose chroma has half the rows and columns (4:2:0), like GDAL's default; one band is
 * grey.
 *
 * Uses libjpeg-turbo. It reports errors by longjmp: everything that must survive one lives in
 * struct jpeg_context. Its working memory for a block, some rows, is allocated while it encodes. */
#include "pipeline/codec/codec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

enum { ROWS_BYTES = 512 * 1024 }; /* memory of libjpeg and its rows, for blocks up to 4096 px */

struct jpeg_context {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr to;
    jmp_buf failed;
    int level;
    int32_t side_px;
    uint32_t n_bands;
};

static void on_error(j_common_ptr jpeg)
{
    struct jpeg_context *own = jpeg->client_data;
    longjmp(own->failed, 1);
}

static void on_message(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void on_begin(j_compress_ptr jpeg)
{
    (void)jpeg;
}

/* The output buffer is full. */
static boolean on_full(j_compress_ptr jpeg)
{
    struct jpeg_context *own = jpeg->client_data;
    longjmp(own->failed, 1);
}

static size_t jpeg_bound(size_t bytes)
{
    return 2 * bytes + 4096; /* libjpeg-turbo's tjBufSize() for grey; RGB with 4:2:0 needs less */
}

static uint64_t jpeg_context_bytes(int level, const struct pb_codec_blocks *blocks)
{
    (void)level;
    (void)blocks;
    return sizeof(struct jpeg_context) + ROWS_BYTES;
}

static void jpeg_destroy_context(void *context)
{
    struct jpeg_context *own = context;
    if (own != NULL)
        jpeg_destroy_compress(&own->jpeg);
    free(own);
}

static int jpeg_create(int level, const struct pb_codec_blocks *blocks, void **out_context)
{
    struct jpeg_context *own = calloc(1, sizeof *own);
    (void)blocks;
    if (own == NULL)
        return -ENOMEM;
    own->level = level;
    own->jpeg.err = jpeg_std_error(&own->errors);
    own->errors.error_exit = on_error;
    own->errors.output_message = on_message;
    own->jpeg.client_data = own;
    if (setjmp(own->failed) != 0) {
        free(own);
        return -ENOMEM;
    }
    jpeg_create_compress(&own->jpeg);
    own->to.init_destination = on_begin;
    own->to.empty_output_buffer = on_full;
    own->to.term_destination = on_begin;
    own->jpeg.dest = &own->to;
    *out_context = own;
    return 0;
}

static int jpeg_shape(void *context, int32_t side_px, uint32_t n_bands)
{
    struct jpeg_context *own = context;
    struct jpeg_compress_struct *jpeg = &own->jpeg;
    own->side_px = side_px;
    own->n_bands = n_bands;
    if (setjmp(own->failed) != 0)
        return -ENOMEM;
    jpeg->image_width = jpeg->image_height = (JDIMENSION)side_px;
    jpeg->input_components = (int)n_bands;
    jpeg->in_color_space = n_bands == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(jpeg); /* for RGB: YCbCr, 4:2:0 */
    jpeg_set_quality(jpeg, own->level, TRUE);
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->write_JFIF_header = FALSE; /* TIFF has its own tags for both */
    jpeg->write_Adobe_marker = FALSE;
    return 0;
}

static void aim(struct jpeg_context *own, void *out, size_t capacity)
{
    own->to.next_output_byte = out;
    own->to.free_in_buffer = capacity;
}

static int jpeg_encode(void *context, const void *in, size_t bytes, void *out, size_t capacity,
                       size_t *out_bytes)
{
    struct jpeg_context *own = context;
    struct jpeg_compress_struct *jpeg = &own->jpeg;
    const size_t row_bytes = (size_t)own->side_px * own->n_bands;
    if (bytes != row_bytes * (size_t)own->side_px)
        return -EIO;
    aim(own, out, capacity);
    if (setjmp(own->failed) != 0) {
        jpeg_abort_compress(jpeg);
        return -EIO;
    }
    jpeg_suppress_tables(jpeg, TRUE);
    jpeg_start_compress(jpeg, FALSE);
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)in + jpeg->next_scanline * row_bytes;
        (void)jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
    *out_bytes = capacity - own->to.free_in_buffer;
    return 0;
}

static int jpeg_tables(int level, uint32_t n_bands, void *out, size_t capacity, size_t *out_bytes)
{
    void *context = NULL;
    int rc = jpeg_create(level, 0, &context);
    struct jpeg_context *own = context;
    if (rc == 0)
        rc = jpeg_shape(context, 16, n_bands);
    if (rc == 0 && setjmp(own->failed) != 0)
        rc = -EIO;
    else if (rc == 0) {
        aim(own, out, capacity);
        jpeg_write_tables(&own->jpeg);
        *out_bytes = capacity - own->to.free_in_buffer;
    }
    jpeg_destroy_context(context);
    return rc;
}

const struct pb_codec pb_codec_jpeg = {
    .name = "jpeg",
    .tiff_compression = 7,
    .bands = 1u << 1 | 1u << 3,
    .min_level = 1,
    .max_level = 100,
    .default_level = 75, /* same as in GDAL */
    .bound = jpeg_bound,
    .context_bytes = jpeg_context_bytes,
    .create = jpeg_create,
    .shape = jpeg_shape,
    .tables = jpeg_tables,
    .encode = jpeg_encode,
    .destroy = jpeg_destroy_context,
};
