/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/passes/rounds.h"

#include "wic/pattern/schedule.h"

#include <stdlib.h>

enum { HOST, DEVICE, PARTIES, SLOTS = 2 };

struct pb_rounds {
    struct wic_schedule schedule;
    const char *name; /* name of the pattern */
};

static int fail(const struct pb_rounds *rounds, const char *why, struct pb_err *err)
{
    return pb_fail(err, PB_E_SYSTEM, "the rounds cannot follow the pattern '%s': %s", rounds->name,
                   why);
}

/* Sends one chunk from a party to the other, with `value`. 1; 0: the exchange is over. */
static int step(struct pb_rounds *rounds, uint16_t from, uint64_t value, struct pb_err *err)
{
    const struct wic_outcome outcome = {.count = 1, .value = value};
    char text[WIC_TEXT_BYTES] = "";
    struct wic_step next;
    int rc = wic_schedule_next(&rounds->schedule, &next, text, sizeof text);
    if (rc <= 0)
        return rc == 0 ? 0 : fail(rounds, text, err);
    if (next.from != from || next.count != 1 || (next.flags & WIC_STEP_TOLD) == 0)
        return fail(rounds, "it does not take turns", err);
    rc = wic_schedule_tell(&rounds->schedule, &outcome, text, sizeof text);
    return rc == 0 ? 1 : fail(rounds, text, err);
}

int pb_rounds_create(const struct pb_exchange_config *exchange, size_t bytes, struct pb_err *err,
                     struct pb_rounds **out_rounds)
{
    struct pb_rounds *rounds = calloc(1, sizeof *rounds);
    char text[WIC_TEXT_BYTES] = "";
    if (rounds == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the rounds");
    rounds->name = exchange->pattern->name;
    struct wic_pattern_params params = {
        .parties = PARTIES, .slots = SLOTS, .chunk_bytes = bytes, .args = exchange->args};
    params.chunks[HOST][DEVICE] = params.chunks[DEVICE][HOST] = WIC_OPEN;
    int rc = wic_schedule_init(&rounds->schedule, exchange->pattern, &params, text, sizeof text);
    rc = rc < 0 ? fail(rounds, text, err) : step(rounds, HOST, 0, err);
    if (rc <= 0) {
        rc = rc < 0 ? rc : fail(rounds, "it has no step", err);
        pb_rounds_destroy(rounds);
        return rc;
    }
    *out_rounds = rounds;
    return 0;
}

int pb_rounds_next(struct pb_rounds *rounds, uint32_t others, bool *out_more, struct pb_err *err)
{
    int rc = step(rounds, DEVICE, others, err);
    if (rc == 0)
        rc = fail(rounds, "it ends within a round", err);
    rc = rc < 0 ? rc : step(rounds, HOST, 0, err);
    if (rc < 0)
        return rc;
    *out_more = rc > 0;
    return 0;
}

void pb_rounds_destroy(struct pb_rounds *rounds)
{
    if (rounds == NULL)
        return;
    wic_schedule_fini(&rounds->schedule);
    free(rounds);
}
