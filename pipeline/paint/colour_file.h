/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COLOUR_FILE_H
#define PB_COLOUR_FILE_H
/* Colour files as gdaldem color-relief takes them: a line has a value, or a percentage of the
 * range, or "nv" (invalid pixels) or "default" (values that no line names, with
 * PB_RAMP_EXACT), then red, green, blue and perhaps alpha from 0 to 255, or a colour's name;
 * separated by blanks, tabs, commas or colons; # begins a comment. Other than gdaldem it takes
 * nothing that it does not understand. Pure; any thread. */
#include "pipeline/paint/ramp.h"

#define PB_COLOUR_FILE_BYTES_MAX (1 << 20)

/* Lines of text, an upper bound of the stops. */
size_t pb_colour_file_lines(const char *text, size_t bytes);
/* Fills *out but for `between`; stops is room for one a line, borrowed by *out. 0, or the line of
 * the first mistake with its words in `mistake`. */
int pb_colour_file_parse(const char *text, size_t bytes, struct pb_ramp_stop *stops,
                         struct pb_ramp *out, char *mistake, size_t mistake_bytes);
#endif
