/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a group have the same distances in a slot as in the room of their band, so that one
 * copy transfers all of them. */
#include "pipeline/run/whole/whole_map.h"

/* First stored piece from `piece` on; n_pieces if no more are stored. */
static uint32_t next_stored(const struct pb_whole_map *map, uint32_t piece)
{
    while (piece < map->n_pieces && map->piece[piece].bytes == 0)
        piece++;
    return piece;
}

uint64_t pb_whole_load_bytes(const struct pb_whole_map *map, const struct pb_whole_load *load)
{
    const struct pb_whole_piece *first = &map->piece[load->first],
                                *last = &map->piece[load->end - 1];
    return load->is_decoded ? first->decoded_bytes
                            : last->stored_at - first->stored_at + last->bytes;
}

bool pb_whole_map_load(const struct pb_whole_map *map, uint32_t first, uint64_t slot_bytes,
                       struct pb_whole_load *out)
{
    first = next_stored(map, first);
    if (first == map->n_pieces)
        return false;
    const struct pb_whole_group *group = &map->group[map->piece[first].group];
    struct pb_whole_load load = {first, first + 1, false};
    while (load.end < group->stored_end) {
        struct pb_whole_load more = {first, load.end + 1, false};
        if (pb_whole_load_bytes(map, &more) > slot_bytes)
            break;
        load = more;
    }
    *out = load;
    return true;
}

bool pb_whole_load_is_next(const struct pb_whole_map *map, uint32_t first,
                           const struct pb_whole_load *load, uint64_t slot_bytes)
{
    first = next_stored(map, first);
    if (first == map->n_pieces || load->first != first || load->end <= first ||
        load->end > map->group[map->piece[first].group].stored_end)
        return false;
    if (load->is_decoded && (load->end != first + 1 || map->piece[first].decoded_bytes == 0))
        return false;
    return pb_whole_load_bytes(map, load) <= slot_bytes;
}
