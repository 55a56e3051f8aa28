/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COLOUR_FILE_H
#define PB_COLOUR_FILE_H
/* Colour files in the format of gdaldem color-relief: a line has a value, or a percentage of the
 * range, or "nv" (invalid pixels) or "default" (values that no line names, with PB_RAMP_EXACT),
 * then red, green, blue and optionally alpha from 0 to 255, or a colour's name; separated by
 * blanks, tabs, commas or colons; # begins a comment. Unlike gdaldem it refuses everything that
 * it does not understand. Pure; any thread. */
#include "pipeline/paint/ramp.h"

#define PB_COLOUR_FILE_BYTES_MAX (1 << 20)

/* Count of lines of text, an upper bound of the stops. */
size_t pb_colour_file_lines(const char *text, size_t bytes);
/* Fills *out except `between`; stops has room for one per line, borrowed by *out. Returns 0, or
 * the line of the first error with its message in `mistake`. */
int pb_colour_file_parse(const char *text, size_t bytes, struct pb_ramp_stop *stops,
                         struct pb_ramp *out, char *mistake, size_t mistake_bytes);
#endif
