/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_QUICKLOOK_SHEET_H
#define PB_QUICKLOOK_SHEET_H
/* Contact sheet: pictures of one size in rows, a line with its name above each. The grid has as
 * many columns as rows, or one more. Pure; any thread. */
#include <stdint.h>

struct pb_sheet {
    uint32_t n, columns, rows;
    int32_t w, h; /* size of one picture */
};

enum { PB_SHEET_LABEL_PX = 12, PB_SHEET_GAP_PX = 4, PB_SHEET_SIDE_MIN = 16 };

/* n >= 1 pictures of w x h. */
struct pb_sheet pb_sheet_of(uint32_t n, int32_t w, int32_t h);
/* Longer side of one of n pictures on a sheet of size_px, at least PB_SHEET_SIDE_MIN. */
int32_t pb_sheet_side(uint32_t n, int32_t size_px);
/* Size of the whole sheet. */
int32_t pb_sheet_width(const struct pb_sheet *sheet);
int32_t pb_sheet_height(const struct pb_sheet *sheet);

/* Paints row y of picture i: w pixels. */
typedef void pb_sheet_picture(void *user, uint32_t i, int32_t y, uint8_t *out);
/* Fills row y of the sheet, pixels of `channels` bytes with alpha last (2 or 4). The space
 * between pictures is transparent, the lines with names are white on black, names are cut to the
 * width of their picture. names: n, borrowed. */
void pb_sheet_row(const struct pb_sheet *sheet, int32_t y, uint32_t channels,
                  const char *const *names, pb_sheet_picture *picture, void *user, uint8_t *out);
#endif
