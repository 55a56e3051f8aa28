/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A running pattern. Every step is checked here, once, on the host, so that the back ends which
 * replay it need no checks: a step is within the chunks to be moved, begins where its way ended (so
 * no chunk is moved twice), moves at least one chunk, and depends on earlier steps only. Parties
 * that walk the steps in this order cannot wait for each other in a circle: of all steps that are
 * not finished, both parties of the first one have nothing else left to do. */
#include "wic/pattern/schedule.h"
#include "wic/pattern/text.h"
#include "wic/wic.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool totals_good(const struct wic_pattern_params *params)
{
    for (uint32_t from = 0; from < WIC_PARTIES_MAX; from++) {
        for (uint32_t to = 0; to < WIC_PARTIES_MAX; to++) {
            uint64_t chunks = params->chunks[from][to];
            bool is_way = from != to && from < params->parties && to < params->parties;
            if (is_way ? chunks > WIC_PATTERN_CHUNKS_MAX && chunks != WIC_OPEN : chunks != 0) {
                return false;
            }
        }
    }
    return true;
}

static bool params_good(const struct wic_pattern_params *params)
{
    return params->slots >= 1 && params->slots <= WIC_SLOTS_MAX && params->chunk_bytes >= 1 &&
           params->parties >= 2 && params->parties <= WIC_PARTIES_MAX && params->reserved == 0 &&
           totals_good(params);
}

/* The caller's values, or the defaults. */
static int set_args(const struct wic_pattern *pattern, const uint64_t *given, uint64_t *args,
                    char *text, size_t text_bytes)
{
    int rc = 0;
    wic_pattern_defaults(pattern, args);
    for (uint64_t i = 0; given != NULL && i < pattern->arg_count && rc == 0; i++) {
        rc = wic_pattern_set(pattern, args, pattern->args[i].name, given[i], text, text_bytes);
    }
    return rc;
}

int wic_schedule_init(struct wic_schedule *schedule, const struct wic_pattern *pattern,
                      const struct wic_pattern_params *params, char *text, size_t text_bytes)
{
    uint64_t args[WIC_PATTERN_ARGS_MAX] = {0};
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
    rc = set_args(pattern, params->args, args, text, text_bytes);
    if (rc != 0) {
        return rc;
    }
    schedule->params = *params;
    schedule->params.size = sizeof(*params);
    schedule->params.args = args;
    rc = pattern->create(&schedule->params, &schedule->state);
    schedule->params.args = NULL;
    if (rc != 0) {
        rc = rc < 0 ? rc : -EPROTO;
        return wic_fail(rc, text, text_bytes,
                        "pattern %s cannot do that: %s (parties %u, slots %u, chunks from D0 to "
                        "D1 %lld and back %lld; -1 is open)",
                        pattern->name, strerror(-rc), params->parties, params->slots,
                        (long long)params->chunks[0][1], (long long)params->chunks[1][0]);
    }
    schedule->pattern = pattern;
    schedule->ended = 0;
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

/* NULL, or what is wrong between the step and its way, whose total is not known. */
static const char *open_fault(const struct wic_schedule *schedule, const struct wic_step *step)
{
    if (step->count > WIC_PATTERN_CHUNKS_MAX - schedule->moved[step->from][step->to]) {
        return "it is beyond the last chunk";
    }
    if (!(step->flags & WIC_STEP_TOLD)) {
        return "its way is open, and its outcome is not reported";
    }
    if (step->count > 1 && (step->access == WIC_SCATTER_GATHER || step->access == WIC_RANDOM)) {
        return "its way is open, and it does not take its chunks as they arrive";
    }
    return NULL;
}

/* NULL, or what is wrong with how much the step moves. */
static const char *count_fault(const struct wic_schedule *schedule, const struct wic_step *step)
{
    const struct wic_pattern_params *params = &schedule->params;
    uint64_t moved = schedule->moved[step->from][step->to];
    uint64_t total = params->chunks[step->from][step->to];
    if (step->count < 1) {
        return "it moves nothing";
    }
    if (step->first != moved) {
        return "it does not begin where its way left off";
    }
    if (step->chunk_bytes < 1 || step->chunk_bytes > params->chunk_bytes) {
        return "a chunk is empty or does not fit a slot";
    }
    if (total == WIC_OPEN) {
        return open_fault(schedule, step);
    }
    return step->count > total - moved ? "it is beyond the last chunk" : NULL;
}

/* NULL, or what is wrong with the step. */
static const char *step_fault(const struct wic_schedule *schedule, const struct wic_step *step)
{
    const struct wic_pattern_params *params = &schedule->params;
    if (step->from >= params->parties || step->to >= params->parties || step->from == step->to) {
        return "it is not from one party to another";
    }
    const char *fault = count_fault(schedule, step);
    if (fault != NULL) {
        return fault;
    }
    if ((step->flags & ~WIC_STEP_TOLD) != 0 || step->reserved != 0) {
        return "it uses members that this version does not know";
    }
    if ((step->flags & WIC_STEP_TOLD) && schedule->pattern->told == NULL) {
        return "its outcome is to be reported, and the pattern has no function for that";
    }
    if (step->after_party >= params->parties ||
        step->after_steps > schedule->steps[step->after_party]) {
        return "it depends on a step that is not before it";
    }
    return access_fault(step, params->slots);
}

/* The pattern has no more steps. */
static int check_complete(const struct wic_schedule *schedule, char *text, size_t text_bytes)
{
    const struct wic_pattern_params *params = &schedule->params;
    for (uint32_t from = 0; from < params->parties; from++) {
        for (uint32_t to = 0; to < params->parties; to++) {
            uint64_t moved = schedule->moved[from][to];
            uint64_t total = params->chunks[from][to];
            if (total != WIC_OPEN && moved != total) {
                return wic_fail(-EPROTO, text, text_bytes,
                                "pattern %s ended after %llu of %llu chunks from D%u to D%u",
                                schedule->pattern->name, (unsigned long long)moved,
                                (unsigned long long)total, from, to);
            }
        }
    }
    return 0;
}

static int checked_next(struct wic_schedule *schedule, struct wic_step *step, char *text,
                        size_t text_bytes)
{
    const char *name = schedule->pattern->name;
    memset(step, 0, sizeof(*step));
    int rc = schedule->pattern->next(schedule->state, step);
    if (rc < 0) {
        return wic_fail(rc, text, text_bytes, "pattern %s failed: %s", name, strerror(-rc));
    }
    if (rc == 0) {
        return check_complete(schedule, text, text_bytes);
    }
    const char *fault = rc == 1 ? step_fault(schedule, step) : "next() returned neither 0 nor 1";
    if (fault != NULL) {
        return wic_fail(-EPROTO, text, text_bytes,
                        "pattern %s: bad step (D%u to D%u, access %u, first %llu, count %llu): %s",
                        name, step->from, step->to, step->access, (unsigned long long)step->first,
                        (unsigned long long)step->count, fault);
    }
    return 1;
}

int wic_schedule_next(struct wic_schedule *schedule, struct wic_step *out_step, char *text,
                      size_t text_bytes)
{
    if (schedule->ended != 0) {
        return schedule->ended < 0 ? wic_fail(schedule->ended, text, text_bytes, "it failed before")
                                   : 0;
    }
    if (schedule->untold.count != 0) {
        return wic_fail(-EAGAIN, text, text_bytes, "the outcome of the last step was not reported");
    }
    struct wic_step step;
    int rc = checked_next(schedule, &step, text, text_bytes);
    if (rc != 1) {
        schedule->ended = rc == 0 ? 1 : rc;
        return rc;
    }
    if (step.flags & WIC_STEP_TOLD) {
        schedule->untold = step;
    } else {
        schedule->moved[step.from][step.to] += step.count;
    }
    schedule->steps[step.from]++;
    schedule->steps[step.to]++;
    *out_step = step;
    return 1;
}

int wic_schedule_tell(struct wic_schedule *schedule, const struct wic_outcome *outcome, char *text,
                      size_t text_bytes)
{
    const struct wic_step step = schedule->untold;
    if (schedule->ended != 0 || step.count == 0) {
        return wic_fail(-EINVAL, text, text_bytes, "no step waits for its outcome");
    }
    uint64_t *total = &schedule->params.chunks[step.from][step.to];
    if (outcome->count > step.count || (outcome->count < step.count && *total != WIC_OPEN)) {
        return wic_fail(-EINVAL, text, text_bytes,
                        "pattern %s: %llu chunks arrived of a step of %llu from D%u to D%u",
                        schedule->pattern->name, (unsigned long long)outcome->count,
                        (unsigned long long)step.count, step.from, step.to);
    }
    schedule->untold.count = 0;
    schedule->moved[step.from][step.to] += outcome->count;
    if (outcome->count < step.count) {
        *total = schedule->moved[step.from][step.to];
    }
    int rc = schedule->pattern->told(schedule->state, &step, outcome);
    if (rc != 0) {
        schedule->ended = rc < 0 ? rc : -EPROTO;
        return wic_fail(schedule->ended, text, text_bytes, "pattern %s failed: %s",
                        schedule->pattern->name, strerror(-schedule->ended));
    }
    return 0;
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
        if (step.flags & WIC_STEP_TOLD) {
            rc = wic_fail(-ENOTSUP, text, text_bytes,
                          "the steps of pattern %s depend on what arrives", pattern->name);
            break;
        }
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
