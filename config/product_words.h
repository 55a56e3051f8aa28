/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_WORDS_H
#define PB_PRODUCT_WORDS_H
/* Words of product keys, and of types of pixels. Pure; any thread. */
#include "kernels/view.h"

enum pb_compress {
    PB_COMPRESS_NONE,
    PB_COMPRESS_DEFLATE,
    PB_COMPRESS_ZSTD,
    PB_COMPRESS_LZW,
    PB_COMPRESS_JPEG,
    PB_COMPRESS_WEBP,
    PB_COMPRESS_COUNT
};

enum pb_overviews {
    PB_OVERVIEWS_AUTO,
    PB_OVERVIEWS_AVERAGE,
    PB_OVERVIEWS_NEAREST,
    PB_OVERVIEWS_NONE
};

/* Enum words, both ways, for messages and products: "deflate", "uint16", ... Static strings. */
const char *pb_type_name(enum pb_type type);
const char *pb_compress_name(enum pb_compress compress);
#endif
