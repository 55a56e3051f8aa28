/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/codec/decode.h"

const char pb_decode_short[] = "it ends before the block is full";
const char pb_decode_long[] = "it holds more than the block";
const char pb_decode_bad[] = "it is not a valid stream";

const struct pb_decode *pb_decode_of(uint16_t tiff_compression)
{
    switch (tiff_compression) {
    case 5:
        return &pb_decode_lzw;
    case 7:
        return &pb_decode_jpeg;
    case 8:
    case 32946:
        return &pb_decode_deflate;
    case 32773:
        return &pb_decode_packbits;
    case 34925:
        return &pb_decode_lzma;
    case 50000:
        return &pb_decode_zstd;
    case 50001:
        return &pb_decode_webp;
    default:
        return NULL;
    }
}
