/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/tile_exchange.h"

#include "wic/wic.h"

#include <errno.h>

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
    return rc < 0
               ? pb_fail(err, rc == -ENOMEM ? PB_E_MEMORY : PB_E_CONFIG_VALUE, "exchange: %s", text)
               : 0;
}

void pb_tile_exchange_fini(struct pb_tile_exchange *walk)
{
    wic_schedule_fini(&walk->schedule);
}

static int refuse(const struct pb_tile_exchange *walk, struct pb_err *err, const char *why)
{
    return pb_fail(err, PB_E_CONFIG_VALUE, "exchange: the pattern '%s' %s",
                   walk->schedule.pattern->name, why);
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
        return refuse(walk, err, "ends before the last tile");
    if (step.access == WIC_SCATTER_GATHER || step.access == WIC_RANDOM)
        return refuse(walk, err, "takes tiles in another order than products need them in");
    uint64_t end = step.first + step.count;
    if (step.from == 0)
        walk->sent = end;
    else if (end > walk->sent)
        return refuse(walk, err, "wants results of tiles before they are sent");
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
