/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/quicklook/quicklook_sheet.h"
#include "pipeline/paint/label_font.h"

#include <stdbool.h>
#include <string.h>

static uint32_t columns_of(uint32_t n)
{
    uint32_t columns = 1;
    while (columns * columns < n)
        columns++;
    return columns;
}

struct pb_sheet pb_sheet_of(uint32_t n, int32_t w, int32_t h)
{
    const uint32_t columns = columns_of(n);
    return (struct pb_sheet){n, columns, (n + columns - 1) / columns, w, h};
}

int32_t pb_sheet_side(uint32_t n, int32_t size_px)
{
    const int32_t columns = (int32_t)columns_of(n);
    const int32_t side =
        (size_px + PB_SHEET_GAP_PX) / columns - PB_SHEET_GAP_PX - PB_SHEET_LABEL_PX;
    return side < PB_SHEET_SIDE_MIN ? PB_SHEET_SIDE_MIN : side;
}

int32_t pb_sheet_width(const struct pb_sheet *sheet)
{
    return (int32_t)sheet->columns * (sheet->w + PB_SHEET_GAP_PX) - PB_SHEET_GAP_PX;
}

int32_t pb_sheet_height(const struct pb_sheet *sheet)
{
    return (int32_t)sheet->rows * (sheet->h + PB_SHEET_LABEL_PX + PB_SHEET_GAP_PX) -
           PB_SHEET_GAP_PX;
}

/* Returns true if a pixel of the line with the name is part of a letter; margin of one pixel
 * above and to the left. */
static bool is_ink(const char *name, int32_t w, int32_t x, int32_t y)
{
    const int32_t at = x - 1, row = y - 1, letter = at / PB_LABEL_GLYPH_W;
    if (at < 0 || row < 0 || row >= PB_LABEL_GLYPH_H || (size_t)letter >= strlen(name) ||
        (letter + 1) * PB_LABEL_GLYPH_W + 1 > w)
        return false;
    const unsigned char c = (unsigned char)name[letter];
    const bool known = c >= PB_LABEL_FIRST && c < PB_LABEL_FIRST + PB_LABEL_GLYPHS;
    const uint8_t *glyph = pb_label_font[known ? c - PB_LABEL_FIRST : '?' - PB_LABEL_FIRST];
    return (glyph[row] << at % PB_LABEL_GLYPH_W & 0x80) != 0;
}

static void fill_label(const char *name, int32_t w, int32_t y, uint32_t channels, uint8_t *out)
{
    for (int32_t x = 0; x < w; x++, out += channels) {
        memset(out, is_ink(name, w, x, y) ? UINT8_MAX : 0, channels);
        out[channels - 1] = UINT8_MAX;
    }
}

void pb_sheet_row(const struct pb_sheet *sheet, int32_t y, uint32_t channels,
                  const char *const *names, pb_sheet_picture *picture, void *user, uint8_t *out)
{
    const int32_t pitch = sheet->h + PB_SHEET_LABEL_PX + PB_SHEET_GAP_PX;
    const int32_t row = y / pitch, at = y % pitch;
    memset(out, 0, (size_t)pb_sheet_width(sheet) * channels);
    for (uint32_t column = 0; column < sheet->columns; column++) {
        const uint32_t i = (uint32_t)row * sheet->columns + column;
        uint8_t *to = out + (size_t)column * (size_t)(sheet->w + PB_SHEET_GAP_PX) * channels;
        if (i < sheet->n && at < PB_SHEET_LABEL_PX)
            fill_label(names[i], sheet->w, at, channels, to);
        else if (i < sheet->n && at < PB_SHEET_LABEL_PX + sheet->h)
            picture(user, i, at - PB_SHEET_LABEL_PX, to);
    }
}
