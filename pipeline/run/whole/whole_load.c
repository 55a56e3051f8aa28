/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a group have the same distances in a slot as in the room of their band, so that one
 * copy transfers all of them. Pieces that a gate leaves out are in no load. */
#include "pipeline/run/stream/gate_answers.h"
#include "pipeline/run/whole/whole_map.h"

static bool is_of_gate(const struct pb_whole_map *map, const struct pb_whole_piece *piece)
{
    return map->plan->layout.gate.chain != NULL && piece->part == 0;
}

static bool touches(const struct pb_rect *a, const struct pb_rect *b)
{
    return a->w > 0 && a->h > 0 && a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h &&
           b->y < a->y + a->h;
}

bool pb_whole_is_left_out(const struct pb_whole_map *map, uint32_t number,
                          const struct pb_gate_answers *answers)
{
    const struct pb_whole_piece *piece = &map->piece[number];
    const uint32_t window = map->plan->work.source[piece->source].window;
    if (answers == NULL || is_of_gate(map, piece))
        return false;
    for (uint32_t t = piece->first; t <= piece->last; t++) {
        if (!pb_gate_answers_passes(answers, t))
            continue;
        const struct pb_tile tile = pb_plan_tile(map->plan, t, t);
        if (touches(&tile.read[window], &piece->rect))
            return false;
    }
    return true;
}

static bool is_known(const struct pb_whole_map *map, uint32_t number,
                     const struct pb_gate_answers *answers)
{
    const struct pb_whole_piece *piece = &map->piece[number];
    return answers == NULL || is_of_gate(map, piece) ||
           pb_gate_answers_known(answers) > piece->last;
}

/* Finds the first piece from *piece on that is sent. */
static enum pb_whole_next find_next(const struct pb_whole_map *map, uint32_t *piece,
                                    const struct pb_gate_answers *answers)
{
    for (; *piece < map->n_pieces; ++*piece) {
        if (map->piece[*piece].bytes == 0)
            continue;
        if (!is_known(map, *piece, answers))
            return PB_WHOLE_UNKNOWN;
        if (!pb_whole_is_left_out(map, *piece, answers))
            return PB_WHOLE_LOAD;
    }
    return PB_WHOLE_END;
}

uint64_t pb_whole_load_bytes(const struct pb_whole_map *map, const struct pb_whole_load *load)
{
    const struct pb_whole_piece *first = &map->piece[load->first],
                                *last = &map->piece[load->end - 1];
    return load->is_decoded ? first->decoded_bytes
                            : last->stored_at - first->stored_at + last->bytes;
}

enum pb_whole_next pb_whole_map_load(const struct pb_whole_map *map, uint32_t first,
                                     uint64_t slot_bytes, const struct pb_gate_answers *answers,
                                     struct pb_whole_load *out)
{
    const enum pb_whole_next next = find_next(map, &first, answers);
    struct pb_whole_load load = {first, first + 1, false};
    *out = load;
    if (next != PB_WHOLE_LOAD)
        return next;
    const struct pb_whole_group *group = &map->group[map->piece[first].group];
    while (load.end < group->stored_end && is_known(map, load.end, answers) &&
           !pb_whole_is_left_out(map, load.end, answers)) {
        struct pb_whole_load more = {first, load.end + 1, false};
        if (pb_whole_load_bytes(map, &more) > slot_bytes)
            break;
        load = more;
    }
    *out = load;
    return PB_WHOLE_LOAD;
}

bool pb_whole_load_is_next(const struct pb_whole_map *map, uint32_t first,
                           const struct pb_whole_load *load, uint64_t slot_bytes,
                           const struct pb_gate_answers *answers)
{
    if (find_next(map, &first, answers) != PB_WHOLE_LOAD || load->first != first ||
        load->end <= first || load->end > map->group[map->piece[first].group].stored_end)
        return false;
    if (load->is_decoded && (load->end != first + 1 || map->piece[first].decoded_bytes == 0))
        return false;
    for (uint32_t i = first + 1; i < load->end; i++)
        if (!is_known(map, i, answers) || pb_whole_is_left_out(map, i, answers))
            return false;
    return pb_whole_load_bytes(map, load) <= slot_bytes;
}
