/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Tiles of producers' grids in the form of their metadata. */
#include "pipeline/metadata/meta_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void pb_meta_set_wrs(struct pb_meta_reader *r, double path, double row)
{
    char tile[16];
    if (isnan(path) || isnan(row))
        return;
    (void)snprintf(tile, sizeof tile, "%03d%03d", (int)path, (int)row);
    PB_META_SET(r, tile, tile, "the tile");
}

static bool is_name(const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        if (!isalnum((unsigned char)*p) && strchr("-_.", *p) == NULL)
            return false;
    return text[0] != '.';
}

/* Returns true if the text is exactly that many digits. */
static bool is_number(const char *text, size_t digits)
{
    return strlen(text) == digits && strspn(text, "0123456789") == digits;
}

/* Converts "33XWJ" or "5QKB" to the tile "T33XWJ", "T05QKB". */
static void set_mgrs(struct pb_meta_reader *r, const char *square)
{
    char tile[16];
    const size_t n = strspn(square, "0123456789");
    if (n < 1 || n > 2 || strlen(square) != n + 3 || !is_name(square))
        return;
    (void)snprintf(tile, sizeof tile, "T%s%s", n == 1 ? "0" : "", square);
    PB_META_SET(r, tile, tile, "the tile");
}

static void set_code(struct pb_meta_reader *r, const char *code)
{
    const bool is_wrs = strncmp(code, "WRS1-", 5) == 0 || strncmp(code, "WRS2-", 5) == 0;
    if (strncmp(code, "MGRS-", 5) == 0)
        set_mgrs(r, code + 5);
    else if (is_wrs && is_number(code + 5, 6))
        PB_META_SET(r, tile, code + 5, "the tile");
    else if (strlen(code) < sizeof r->out->tile && is_name(code))
        PB_META_SET(r, tile, code, "the tile");
}

void pb_meta_set_item_tile(struct pb_meta_reader *r, const struct pb_meta_node *properties)
{
    const char *code = pb_meta_text(properties, "grid:code");
    const char *square = pb_meta_text(properties, "s2:mgrs_tile");
    if (code != NULL)
        set_code(r, code);
    if (square != NULL)
        set_mgrs(r, square);
    pb_meta_set_wrs(r, pb_meta_number(r, properties, "landsat:wrs_path", 1, 999),
                    pb_meta_number(r, properties, "landsat:wrs_row", 1, 999));
}
