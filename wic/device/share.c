/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "wic/device/share.h"

static uint32_t less(uint64_t a, uint32_t b)
{
    return a < b ? (uint32_t)a : b;
}

void wic_share_settle(const struct wic_share *share, uint32_t blocks,
                      const struct wic_share_room *room, struct wic_shaped *out_shaped)
{
    const uint32_t wanted = share->multiprocessors > 0 ? share->multiprocessors : blocks;
    const bool is_green = share->way == WIC_SHARE_GREEN;
    out_shaped->way = is_green && room->part == 0 ? WIC_SHARE_UNSHAPED : share->way;
    out_shaped->multiprocessors = room->multiprocessors;
    out_shaped->blocks = blocks;
    switch (out_shaped->way) {
    case WIC_SHARE_GREEN:
        out_shaped->multiprocessors = room->part;
        out_shaped->blocks = less((uint64_t)room->part * room->blocks_each, blocks);
        break;
    case WIC_SHARE_PADDED: /* a block has a multiprocessor */
        out_shaped->multiprocessors = less(wanted, room->multiprocessors);
        out_shaped->blocks = less(out_shaped->multiprocessors, blocks);
        break;
    default:
        if (is_green) {
            out_shaped->blocks = less(wanted, blocks);
        }
    }
    if (!is_green || room->part > 0) {
        out_shaped->why[0] = '\0';
    }
}
