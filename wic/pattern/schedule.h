/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_SCHEDULE_H
#define WIC_SCHEDULE_H
/* The host's side of wic/pattern/pattern.h: the registered patterns, their arguments, and a
 * schedule, the checked steps of one pattern. Functions return 0 or a negative errno; those with
 * `text` write the reason of a failure there, cut to text_bytes (may be NULL and 0). */
#include "wic/pattern/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define WIC_PATTERNS_MAX 32 /* built in and registered */
#define WIC_TEXT_BYTES   256

/* Whether this pattern can be called: 0; -EPROTO: of another ABI or size; -EINVAL: name, doc, an
 * argument or a function is missing or invalid. Thread: any. */
int wic_pattern_check(const struct wic_pattern *pattern, char *text, size_t text_bytes);

/* Values of a pattern's arguments, for wic_pattern_params.args: all defaults, then by name. `args`
 * has WIC_PATTERN_ARGS_MAX places. -ENOENT: the pattern has no such argument; -ERANGE: not within
 * its limits. Thread: any. */
void wic_pattern_defaults(const struct wic_pattern *pattern, uint64_t *args);
int wic_pattern_set(const struct wic_pattern *pattern, uint64_t *args, const char *name,
                    uint64_t value, char *text, size_t text_bytes);

/* Adds a checked pattern, borrowed for ever. -EEXIST: there is another one of this name; -ENOSPC.
 * The same one again is fine. Thread: any. */
int wic_pattern_register(const struct wic_pattern *pattern, char *text, size_t text_bytes);

/* NULL when there is none. Thread: any. */
const struct wic_pattern *wic_pattern_find(const char *name);

/* The i-th, built-in ones first; NULL after the last. Thread: any. */
const struct wic_pattern *wic_pattern_at(size_t i);

/* A running pattern. */
struct wic_schedule {
    const struct wic_pattern *pattern;
    void *state;
    struct wic_pattern_params params;                 /* without args, which are gone after init */
    uint64_t moved[WIC_PARTIES_MAX][WIC_PARTIES_MAX]; /* chunks so far, by from and to */
    uint64_t steps[WIC_PARTIES_MAX];                  /* so far that each party takes part in */
    struct wic_step untold; /* the step whose outcome is awaited; count 0: none */
    int ended;              /* 1: all steps were given; negative: what next failed with */
};

/* params.args may be NULL: the defaults. -EINVAL: parameters out of range, or the pattern cannot do
 * that; -ERANGE: an argument is; another errno of the pattern's. params.size is filled in here.
 * Thread: any. */
int wic_schedule_init(struct wic_schedule *schedule, const struct wic_pattern *pattern,
                      const struct wic_pattern_params *params, char *text, size_t text_bytes);

/* 1 and a checked step; 0 when every way is moved or, if open, has moved what the pattern wants;
 * -EPROTO when the pattern yields an invalid step (text has the reason), or its own errno. After a
 * failure always the same. -EAGAIN: the outcome of the last step was not told. Thread: one at a
 * time. */
int wic_schedule_next(struct wic_schedule *schedule, struct wic_step *out_step, char *text,
                      size_t text_bytes);

/* What came of the last step, which has WIC_STEP_TOLD. -EINVAL: no step waits for that, or its way
 * cannot have moved so many chunks; or the pattern's errno, which is final. Thread: one at a
 * time. */
int wic_schedule_tell(struct wic_schedule *schedule, const struct wic_outcome *outcome, char *text,
                      size_t text_bytes);

/* NULL is fine, as is a schedule of which init failed. */
void wic_schedule_fini(struct wic_schedule *schedule);

/* All steps of a schedule at once, for a back end that cannot call a pattern (a kernel). -ENOSPC:
 * more than `max`; -ENOTSUP: a step must be told, so the schedule is not known beforehand. Thread:
 * any. */
int wic_schedule_record(const struct wic_pattern *pattern, const struct wic_pattern_params *params,
                        struct wic_step *steps, size_t max, size_t *out_count, char *text,
                        size_t text_bytes);

extern const struct wic_pattern wic_pattern_unidirectional;

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
