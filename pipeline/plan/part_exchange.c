/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/part_exchange.h"

#include <errno.h>
#include <string.h>

enum { READER, COMPUTE, PARTIES, SLOTS = 2, UP = 1 };

int pb_part_exchange_init(struct pb_part_exchange *walk, const struct pb_exchange_config *exchange,
                          uint32_t parts, uint64_t part_bytes, struct pb_err *err)
{
    char text[WIC_TEXT_BYTES] = "";
    memset(walk, 0, sizeof *walk);
    walk->parts = parts;
    if (exchange->pattern == NULL || exchange->of != PB_EXCHANGE_PARTS)
        return 0;
    struct wic_pattern_params params = {
        .parties = PARTIES, .slots = SLOTS, .chunk_bytes = part_bytes, .args = exchange->args};
    params.chunks[READER][COMPUTE] = params.chunks[COMPUTE][READER] = WIC_OPEN;
    int rc = wic_schedule_init(&walk->schedule, exchange->pattern, &params, text, sizeof text);
    return rc < 0
               ? pb_fail(err, rc == -ENOMEM ? PB_E_MEMORY : PB_E_CONFIG_VALUE, "exchange: %s", text)
               : 0;
}

void pb_part_exchange_fini(struct pb_part_exchange *walk)
{
    wic_schedule_fini(&walk->schedule);
}

static int refuse(const struct pb_part_exchange *walk, struct pb_err *err, const char *why)
{
    return pb_fail(err, PB_E_CONFIG_VALUE, "exchange: the pattern '%s' %s",
                   walk->schedule.pattern->name, why);
}

/* Reports the outcome of the last step, unless it was reported before. */
static int tell(struct pb_part_exchange *walk, uint64_t value, struct pb_err *err)
{
    const struct wic_outcome all = {walk->schedule.untold.count, value};
    char text[WIC_TEXT_BYTES] = "";
    if (all.count == 0)
        return 0;
    int rc = wic_schedule_tell(&walk->schedule, &all, text, sizeof text);
    return rc < 0 ? pb_fail(err, PB_E_CONFIG_VALUE, "exchange: %s", text) : 0;
}

/* Begins the next step. 1: parts; 0: the result. */
static int advance(struct pb_part_exchange *walk, bool enough, struct pb_err *err)
{
    const uint64_t wanted = enough ? 2 + UP : 2 * (uint64_t)(walk->parts - walk->sent);
    char text[WIC_TEXT_BYTES] = "";
    struct wic_step step;
    int rc = tell(walk, walk->sent > 0 ? wanted : 0, err);
    if (rc < 0)
        return rc;
    rc = wic_schedule_next(&walk->schedule, &step, text, sizeof text);
    if (rc < 0)
        return pb_fail(err, PB_E_CONFIG_VALUE, "exchange: %s", text);
    if (rc == 0)
        return refuse(walk, err, "ends before the last tile");
    walk->left = step.count;
    if (step.from == READER)
        return enough || step.count > walk->parts - walk->sent
                   ? refuse(walk, err, "sends more parts than the tile has")
                   : 1;
    if (!enough)
        return refuse(walk, err, "wants a tile's result before its parts are there");
    return step.count > 1 ? refuse(walk, err, "wants several results of one tile") : 0;
}

int pb_part_exchange_next(struct pb_part_exchange *walk, bool enough, uint32_t *out_part,
                          struct pb_err *err)
{
    enough = enough || walk->sent == walk->parts;
    int rc = 1;
    if (walk->schedule.pattern == NULL)
        rc = !enough;
    else if (walk->left == 0)
        rc = advance(walk, enough, err);
    else if (enough)
        rc = refuse(walk, err, "sends parts that the tile does not need");
    if (rc < 0)
        return rc;
    walk->left -= walk->left > 0;
    if (rc > 0)
        *out_part = walk->sent++;
    else
        walk->sent = 0;
    return rc;
}

int pb_part_exchange_tile(struct pb_part_exchange *walk, uint32_t parts, struct pb_err *err)
{
    uint32_t part, n = 0;
    int rc;
    while ((rc = pb_part_exchange_next(walk, n == parts, &part, err)) == 1)
        n++;
    return rc < 0 || n == parts ? rc : -EPROTO;
}

int pb_part_exchange_check(struct pb_part_exchange *walk, bool has_gate, struct pb_err *err)
{
    int rc = pb_part_exchange_tile(walk, walk->parts, err);
    if (rc == 0 && has_gate)
        rc = pb_part_exchange_tile(walk, 1, err);
    pb_part_exchange_fini(walk);
    return rc;
}
