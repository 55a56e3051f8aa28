/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PNG_H
#define PB_PNG_H
/* 8-bit PNG with alpha, row by row. Encoder and filter are fixed and there is no time stamp: the
 * same pixels give the same bytes. Memory depends only on the width. One thread per call. */
#include "config/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct pb_file_out;

struct pb_png_text {
    const char *key;  /* 1 to 79 characters of ASCII */
    const char *text; /* UTF-8; a tEXt chunk when ASCII, else iTXt */
};

struct pb_png_options {
    uint32_t width, height;
    int channels; /* 2 = grey and alpha, 4 = RGB and alpha */
    const struct pb_png_text *texts;
    size_t n_texts;
    /* Fills one row: width * channels bytes. */
    void (*row)(void *user, uint32_t y, uint8_t *out);
    void *user;
};

/* Adds the image to out. 0 or a negative errno with *err filled. */
int pb_png_write(struct pb_file_out *out, const struct pb_png_options *options, struct pb_err *err);
/* Bytes of memory of a call in addition to its arguments, for the plan. */
uint64_t pb_png_bytes(uint32_t width, int channels);
#endif
