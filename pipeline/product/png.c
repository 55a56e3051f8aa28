/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* libpng reports errors by longjmp: everything that must survive one lives in struct encode,
 * outside the function that calls setjmp. The filter is always Paeth: it suits pictures, and the
 * result does not depend on a heuristic. */
#include "pipeline/product/png.h"

#include "pipeline/io/file_out.h"

#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL = 6, MEM_LEVEL = 8, WINDOW_BITS = 15, STRATEGY_FILTERED = 1, DEPTH = 8 };
enum { LIBPNG_BYTES = 512 * 1024 }; /* deflate state, its buffers and libpng's own, rounded up */

struct encode {
    png_structp png;
    png_infop info;
    uint8_t *row;
    struct pb_file_out *out;
    struct pb_err *err; /* of writing the file: the first error stays */
    int rc;
    char message[128];
};

static void on_error(png_structp png, png_const_charp message)
{
    struct encode *encode = png_get_error_ptr(png);
    (void)snprintf(encode->message, sizeof encode->message, "%s", message);
    longjmp(png_jmpbuf(png), 1);
}

/* libpng's warnings (an unknown chunk order and the like) do not affect the image. */
static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void on_write(png_structp png, png_bytep data, size_t bytes)
{
    struct encode *encode = png_get_io_ptr(png);
    encode->rc = pb_file_out_add(encode->out, data, bytes, encode->err);
    if (encode->rc < 0)
        png_error(png, "file");
}

static void on_flush(png_structp png)
{
    (void)png;
}

static bool is_ascii(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80)
            return false;
    return true;
}

static void set_texts(struct encode *encode, const struct pb_png_options *options)
{
    png_text text[PB_PNG_TEXTS_MAX];
    size_t n = options->n_texts < PB_PNG_TEXTS_MAX ? options->n_texts : PB_PNG_TEXTS_MAX;
    memset(text, 0, sizeof text);
    for (size_t i = 0; i < n; i++) {
        bool ascii = is_ascii(options->texts[i].text);
        text[i].compression = ascii ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE;
        text[i].key = (png_charp)(uintptr_t)options->texts[i].key; /* libpng copies both */
        text[i].text = (png_charp)(uintptr_t)options->texts[i].text;
        if (ascii)
            text[i].text_length = strlen(options->texts[i].text);
        else
            text[i].itxt_length = strlen(options->texts[i].text);
    }
    if (n > 0)
        png_set_text(encode->png, encode->info, text, (int)n);
}

/* Between setjmp and here no local variable changes: nothing is lost by a longjmp. */
static int encode_rows(struct encode *encode, const struct pb_png_options *options)
{
    if (setjmp(png_jmpbuf(encode->png)))
        return -1;
    png_set_write_fn(encode->png, encode, on_write, on_flush);
    png_set_IHDR(encode->png, encode->info, options->width, options->height, DEPTH,
                 options->channels == 2 ? PNG_COLOR_TYPE_GRAY_ALPHA : PNG_COLOR_TYPE_RGB_ALPHA,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_filter(encode->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_PAETH);
    png_set_compression_level(encode->png, LEVEL);
    png_set_compression_strategy(encode->png, STRATEGY_FILTERED);
    png_set_compression_mem_level(encode->png, MEM_LEVEL);
    png_set_compression_window_bits(encode->png, WINDOW_BITS);
    set_texts(encode, options);
    png_write_info(encode->png, encode->info);
    for (uint32_t y = 0; y < options->height; y++) {
        options->row(options->user, y, encode->row);
        png_write_row(encode->png, encode->row);
    }
    png_write_end(encode->png, NULL);
    return 0;
}

int pb_png_write(struct pb_file_out *out, const struct pb_png_options *options, struct pb_err *err)
{
    struct encode encode = {.out = out, .err = err};
    int rc = 0;
    if (options->channels != 2 && options->channels != 4)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "a PNG has 2 or 4 channels, not %d",
                       options->channels);
    encode.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &encode, on_error, on_warning);
    if (encode.png != NULL)
        encode.info = png_create_info_struct(encode.png);
    encode.row = malloc((size_t)options->width * (size_t)options->channels + 1);
    if (encode.png == NULL || encode.info == NULL || encode.row == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "no memory to write a PNG");
    else if (encode_rows(&encode, options) != 0)
        rc = encode.rc < 0
                 ? encode.rc
                 : pb_fail(err, PB_E_PIPELINE_PRODUCT, "a PNG of %u x %u cannot be written: %s",
                           options->width, options->height, encode.message);
    free(encode.row);
    png_destroy_write_struct(&encode.png, &encode.info);
    return rc;
}

uint64_t pb_png_bytes(uint32_t width, int channels)
{
    /* our row and libpng's: the row, the one before and the filtered one */
    return (uint64_t)LIBPNG_BYTES + 4 * ((uint64_t)width * (uint64_t)channels + 1);
}
