/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/exchange.h"

#include "wic/wic.h"

#include <errno.h>
#include <string.h>

static int refuse(const struct wic_schedule *schedule, struct pb_err *err, const char *why)
{
    return pb_fail(err, PB_E_CONFIG_VALUE, "exchange: the pattern '%s' %s", schedule->pattern->name,
                   why);
}

/* Result of making a schedule. text: why the pattern refuses. */
static int made(int rc, const char *text, struct pb_err *err)
{
    return rc < 0
               ? pb_fail(err, rc == -ENOMEM ? PB_E_MEMORY : PB_E_CONFIG_VALUE, "exchange: %s", text)
               : 0;
}

static int init_schedule(struct wic_schedule *schedule, const struct wic_pattern *pattern,
                         struct wic_pattern_params *params, uint64_t results, char *text)
{
    params->chunks[1][0] = results;
    return wic_schedule_init(schedule, pattern, params, text, WIC_TEXT_BYTES);
}

int pb_tile_exchange_init(struct pb_tile_exchange *walk, const struct pb_exchange_config *exchange,
                          uint32_t units, uint32_t window, uint64_t unit_bytes, struct pb_err *err)
{
    const struct wic_pattern *pattern =
        exchange->of == PB_EXCHANGE_PARTS ? NULL : exchange->pattern;
    char text[WIC_TEXT_BYTES] = "";
    struct wic_pattern_params params = {
        .parties = 2,
        .slots = window < WIC_SLOTS_MAX ? window : WIC_SLOTS_MAX,
        .chunk_bytes = unit_bytes,
        .args = pattern != NULL ? exchange->args : NULL,
        .chunks[0][1] = units,
    };
    *walk = (struct pb_tile_exchange){.units = units};
    if (pattern == NULL)
        pattern = &wic_pattern_unidirectional;
    int rc = init_schedule(&walk->schedule, pattern, &params, units, text);
    if (rc == -EINVAL) /* a pattern without steps up */
        rc = init_schedule(&walk->schedule, pattern, &params, 0, text);
    return made(rc, text, err);
}

void pb_tile_exchange_fini(struct pb_tile_exchange *walk)
{
    wic_schedule_fini(&walk->schedule);
}

/* Takes the next step. */
static int advance(struct pb_tile_exchange *walk, struct pb_err *err)
{
    struct wic_step step;
    char text[WIC_TEXT_BYTES] = "";
    int rc = wic_schedule_next(&walk->schedule, &step, text, sizeof text);
    if (rc == 1 && (step.flags & WIC_STEP_TOLD)) { /* the totals are known: full count, no value */
        struct wic_outcome all = {step.count, 0};
        int told = wic_schedule_tell(&walk->schedule, &all, text, sizeof text);
        rc = told < 0 ? told : 1;
    }
    if (rc < 0)
        return pb_fail(err, PB_E_CONFIG_VALUE, "exchange: %s", text);
    if (rc == 0)
        return refuse(&walk->schedule, err, "ends before the last tile");
    if (step.access == WIC_SCATTER_GATHER || step.access == WIC_RANDOM)
        return refuse(&walk->schedule, err,
                      "takes tiles in another order than products need them in");
    uint64_t end = step.first + step.count;
    if (step.from == 0)
        walk->sent = end;
    else if (end > walk->sent)
        return refuse(&walk->schedule, err, "wants results of tiles before they are sent");
    else
        walk->results = end;
    return 0;
}

int pb_tile_exchange_permits(struct pb_tile_exchange *walk, uint32_t unit, uint64_t back,
                             struct pb_err *err)
{
    while (unit >= walk->sent) {
        if (back < walk->results)
            return 0;
        int rc = advance(walk, err);
        if (rc < 0)
            return rc;
    }
    return 1;
}

int pb_tile_exchange_check(struct pb_tile_exchange *walk, struct pb_err *err)
{
    int rc = 1;
    while (rc == 1 && walk->sent < walk->units)
        rc = pb_tile_exchange_permits(walk, (uint32_t)walk->sent, walk->units, err);
    pb_tile_exchange_fini(walk);
    return rc < 0 ? rc : 0;
}

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
    return made(rc, text, err);
}

void pb_part_exchange_fini(struct pb_part_exchange *walk)
{
    wic_schedule_fini(&walk->schedule);
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
static int advance_part(struct pb_part_exchange *walk, bool enough, struct pb_err *err)
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
        return refuse(&walk->schedule, err, "ends before the last tile");
    walk->left = step.count;
    if (step.from == READER)
        return enough || step.count > walk->parts - walk->sent
                   ? refuse(&walk->schedule, err, "sends more parts than the tile has")
                   : 1;
    if (!enough)
        return refuse(&walk->schedule, err, "wants a tile's result before its parts are there");
    return step.count > 1 ? refuse(&walk->schedule, err, "wants several results of one tile") : 0;
}

int pb_part_exchange_next(struct pb_part_exchange *walk, bool enough, uint32_t *out_part,
                          struct pb_err *err)
{
    enough = enough || walk->sent == walk->parts;
    int rc = 1;
    if (walk->schedule.pattern == NULL)
        rc = !enough;
    else if (walk->left == 0)
        rc = advance_part(walk, enough, err);
    else if (enough)
        rc = refuse(&walk->schedule, err, "sends parts that the tile does not need");
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

uint64_t pb_plan_unit_bytes(const struct pb_plan *plan)
{
    return pb_order_unit_max(&plan->layout.grid, plan->layout.order) *
           (uint64_t)plan->layout.in_slot_bytes;
}

int pb_plan_exchange(const struct pb_plan *plan, struct pb_err *err,
                     struct pb_tile_exchange *out_walk)
{
    return pb_tile_exchange_init(out_walk, &plan->layout.exchange,
                                 pb_order_units(&plan->layout.grid, plan->layout.order),
                                 plan->layout.window_units, pb_plan_unit_bytes(plan), err);
}

uint32_t pb_plan_tile_parts(const struct pb_plan *plan)
{
    return (uint32_t)plan->work.n_sources + (plan->layout.gate.chain != NULL);
}

int pb_plan_part_exchange(const struct pb_plan *plan, struct pb_err *err,
                          struct pb_part_exchange *out_walk)
{
    return pb_part_exchange_init(out_walk, &plan->layout.exchange, pb_plan_tile_parts(plan),
                                 plan->layout.in_slot_bytes, err);
}
