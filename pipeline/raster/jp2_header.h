/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JP2_HEADER_H
#define PB_JP2_HEADER_H
/* Structure of a JPEG 2000 file (ISO/IEC 15444-1: boxes in annex I, the codestream in annex A):
 * checks its declarations against the limits, and that its tile-parts follow one another up to
 * the end of the codestream, before a decoder reads it; OpenJPEG accepts a truncated codestream
 * as valid. Thread: any. */
#include "pipeline/raster/tiff_header.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_limits;

/* Checks if the file begins as a JP2 file or as a codestream. name: for messages. input.io: it
 * cannot be read. */
int pb_jp2_look(const struct pb_file_part *part, const char *name, struct pb_err *err,
                bool *out_is);
/* Reads the structure as a TIFF header: its blocks are the tiles. name: for messages. On failure
 * *err is input.truncated, input.damaged, input.unsupported, input.limit or input.io. */
int pb_jp2_header_read(const struct pb_file_part *part, const char *name,
                       const struct pb_limits *limits, struct pb_err *err,
                       struct pb_tiff_header *out_header);
#endif
