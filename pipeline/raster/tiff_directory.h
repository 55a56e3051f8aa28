/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_DIRECTORY_H
#define PB_TIFF_DIRECTORY_H
/* The bytes of a TIFF below tiff_header.c: magic, directories, values; every read is checked
 * against the file's size first. Private to the TIFF checks. Thread: any. */
#include "config/base/err.h"
#include "pipeline/io/file_part.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_limits;

#define PB_TIFF_ENTRIES_MAX 65535 /* entries of a directory in a classic TIFF */

struct pb_tiff_file {
    struct pb_file_part part;
    bool big_endian, big_tiff;
    const char *name;
    const struct pb_limits *limits;
    struct pb_err *err;
};

/* Array of unsigned integers as declared by a directory entry. */
struct pb_tiff_field {
    bool there;
    uint16_t type;
    uint64_t count;
    uint64_t at; /* offset of the values in the file; within the entry itself if they fit there */
};

struct pb_tiff_directory {
    uint64_t next;
    struct pb_tiff_field subfile, width, height, bits, compression, bands, rows, planar, tile_w,
        tile_h, offsets, counts, nodata, photometric, fill_order, predictor, format, subsampling,
        depth;
    /* fields of any type and count */
    struct pb_tiff_field tie_points, matrix, geo_keys, geo_doubles, geo_texts, metadata, rpc;
    /* First tag of another kind whose values extend past the end of the file. */
    uint16_t outside; /* 0 = none */
    uint64_t outside_count, outside_at;
};

#define PB_TIFF_FAIL(file, code, ...)                                                              \
    pb_fail_at((file)->err, (code), (file)->name, 0, 0, __VA_ARGS__)

/* Unsigned integer of that many bytes in the file's byte order. */
uint64_t pb_tiff_number(const struct pb_tiff_file *file, const unsigned char *p, unsigned bytes);
/* Bytes of one value of a TIFF field type; 0 = no such type. */
unsigned pb_tiff_type_bytes(unsigned type);

/* Reads required bytes; `what` names them in the message. */
int pb_tiff_read_at(const struct pb_tiff_file *file, uint64_t at, void *out, size_t bytes,
                    const char *what);
/* Reads the first value of a field, or `otherwise` if the field is absent. */
int pb_tiff_field_or(const struct pb_tiff_file *file, const struct pb_tiff_field *field,
                     uint64_t otherwise, const char *what, uint64_t *out_value);

/* Reads the magic bytes, sets the flavour in *file; *out_at is the offset of the first
 * directory. */
int pb_tiff_read_magic(struct pb_tiff_file *file, uint64_t *out_at);
/* Reads the directory at `at`; index (1-based) identifies it in messages. Values past the end of
 * the file fail at once if the layout needs them; see pb_tiff_check_outside for others. */
int pb_tiff_read_directory(const struct pb_tiff_file *file, uint64_t at, int index,
                           struct pb_tiff_directory *out);
/* Sides in pixels of a tile or strip of an image of width x height, as declared: they may be 0 or
 * too large. Strips are as wide as the image and at most as high. */
int pb_tiff_block_sides(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                        uint64_t width, uint64_t height, uint64_t *out_w, uint64_t *out_h);
/* Fails if values of a tag extend past the end of the file: input.georeference for tags that
 * place the image or define nodata, else input.truncated. */
int pb_tiff_check_outside(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir);
#endif
