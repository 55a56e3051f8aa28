/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A running pattern. Every step is checked here, once, on the host, so that the back ends which
 * replay it need no checks: a step is within the chunks to be moved, begins where its direction
 * ended (so no chunk is moved twice and the schedule ends), and moves at least one chunk. */
#include "wic/pattern/schedule.h"
#include "wic/pattern/text.h"
#include "wic/wic.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool params_good(const struct wic_pattern_params *params)
{
    if (params->slots < 1 || params->slots > WIC_SLOTS_MAX || params->chunk_bytes < 1 ||
        params->chunks[0] > WIC_PATTERN_CHUNKS_MAX || params->chunks[1] > WIC_PATTERN_CHUNKS_MAX ||
        params->arg_count > WIC_PATTERN_ARGS_MAX ||
        (params->arg_count > 0 && params->args == NULL)) {
        return false;
    }
    for (uint64_t i = 0; i < params->arg_count; i++) {
        if (params->args[i].name == NULL) {
            return false;
        }
    }
    return true;
}

int wic_schedule_init(struct wic_schedule *schedule, const struct wic_pattern *pattern,
                      const struct wic_pattern_params *params, char *text, size_t text_bytes)
{
    memset(schedule, 0, sizeof(*schedule));
    schedule->ended = -EINVAL;
    int rc = wic_pattern_check(pattern, text, text_bytes);
    if (rc != 0) {
        return rc;
    }
    if (params == NULL || !params_good(params)) {
        return wic_fail(-EINVAL, text, text_bytes, "pattern %s: parameters out of range",
                        pattern->name);
    }
    struct wic_pattern_params given = *params;
    given.size = sizeof(given);
    void *state = NULL;
    rc = pattern->create(&given, &state);
    if (rc != 0) {
        rc = rc < 0 ? rc : -EPROTO;
        return wic_fail(rc, text, text_bytes,
                        "pattern %s cannot do that: %s (slots %u, chunks %llu to "
                        "D1 and %llu to D0)",
                        pattern->name, strerror(-rc), given.slots,
                        (unsigned long long)given.chunks[0], (unsigned long long)given.chunks[1]);
    }
    given.args = NULL;
    given.arg_count = 0;
    *schedule = (struct wic_schedule){.pattern = pattern, .state = state, .params = given};
    return 0;
}

/* NULL, or which member the step must not have. */
static const char *access_fault(const struct wic_step *step, uint32_t slots)
{
    if ((step->access != WIC_ADJACENT && step->reach != 0) ||
        (step->access != WIC_SCATTER_GATHER && step->stride != 0) ||
        (step->access != WIC_RANDOM && step->seed != 0)) {
        return "a member that its access pattern does not have is not 0";
    }
    switch (step->access) {
    case WIC_STREAMING:
    case WIC_RANDOM:
        return NULL;
    case WIC_ADJACENT:
        return step->reach < 1 || 2 * (uint64_t)step->reach + 1 > slots
                   ? "reach is 0, or needs more slots than the ring has"
                   : NULL;
    case WIC_SCATTER_GATHER:
        return step->stride < 1 || step->count % step->stride != 0
                   ? "count is no multiple of stride"
                   : NULL;
    default:
        return "unknown access pattern";
    }
}

/* NULL, or what is wrong with the step. */
static const char *step_fault(const struct wic_schedule *schedule, const struct wic_step *step)
{
    const struct wic_pattern_params *params = &schedule->params;
    if (step->direction > WIC_D1_TO_D0) {
        return "unknown direction";
    }
    uint64_t moved = schedule->moved[step->direction];
    if (step->count < 1) {
        return "it moves nothing";
    }
    if (step->first != moved) {
        return "it does not begin where its direction left off";
    }
    if (step->count > params->chunks[step->direction] - moved) {
        return "it goes beyond the last chunk";
    }
    if (step->chunk_bytes < 1 || step->chunk_bytes > params->chunk_bytes) {
        return "a chunk is empty or does not fit a slot";
    }
    for (size_t i = 0; i < sizeof(step->reserved) / sizeof(step->reserved[0]); i++) {
        if (step->reserved[i] != 0) {
            return "it uses members that this version does not know";
        }
    }
    return access_fault(step, params->slots);
}

static int checked_next(struct wic_schedule *schedule, struct wic_step *step, char *text,
                        size_t text_bytes)
{
    const char *name = schedule->pattern->name;
    const struct wic_pattern_params *params = &schedule->params;
    memset(step, 0, sizeof(*step));
    int rc = schedule->pattern->next(schedule->state, step);
    if (rc < 0) {
        return wic_fail(rc, text, text_bytes, "pattern %s failed: %s", name, strerror(-rc));
    }
    if (rc == 0) {
        for (int d = 0; d < 2; d++) {
            if (schedule->moved[d] != params->chunks[d]) {
                return wic_fail(-EPROTO, text, text_bytes,
                                "pattern %s ended after %llu of %llu chunks to D%d", name,
                                (unsigned long long)schedule->moved[d],
                                (unsigned long long)params->chunks[d], 1 - d);
            }
        }
        return 0;
    }
    const char *fault = rc == 1 ? step_fault(schedule, step) : "next() returned neither 0 nor 1";
    if (fault != NULL) {
        return wic_fail(
            -EPROTO, text, text_bytes,
            "pattern %s: bad step (direction %u, access %u, first %llu, count %llu): %s", name,
            step->direction, step->access, (unsigned long long)step->first,
            (unsigned long long)step->count, fault);
    }
    schedule->moved[step->direction] += step->count;
    return 1;
}

int wic_schedule_next(struct wic_schedule *schedule, struct wic_step *out_step, char *text,
                      size_t text_bytes)
{
    if (schedule->ended != 0) {
        return schedule->ended < 0 ? wic_fail(schedule->ended, text, text_bytes, "it failed before")
                                   : 0;
    }
    struct wic_step step;
    int rc = checked_next(schedule, &step, text, text_bytes);
    if (rc == 1) {
        *out_step = step;
    } else {
        schedule->ended = rc == 0 ? 1 : rc;
    }
    return rc;
}

void wic_schedule_fini(struct wic_schedule *schedule)
{
    if (schedule != NULL && schedule->pattern != NULL) {
        schedule->pattern->destroy(schedule->state);
        *schedule = (struct wic_schedule){.ended = -EINVAL};
    }
}

int wic_schedule_record(const struct wic_pattern *pattern, const struct wic_pattern_params *params,
                        struct wic_step *steps, size_t max, size_t *out_count, char *text,
                        size_t text_bytes)
{
    struct wic_schedule schedule;
    struct wic_step step;
    size_t count = 0;
    int rc = wic_schedule_init(&schedule, pattern, params, text, text_bytes);
    if (rc != 0) {
        return rc;
    }
    while ((rc = wic_schedule_next(&schedule, &step, text, text_bytes)) == 1) {
        if (count == max) {
            rc = wic_fail(-ENOSPC, text, text_bytes, "pattern %s has more than %zu steps",
                          pattern->name, max);
            break;
        }
        steps[count++] = step;
    }
    wic_schedule_fini(&schedule);
    if (rc == 0) {
        *out_count = count;
    }
    return rc;
}
