/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_TEST_SCRIPTED_PATTERN_H
#define WIC_TEST_SCRIPTED_PATTERN_H
/* A pattern that yields the steps that a test writes into `script`, good or bad ones. */
#include "wic/pattern/pattern.h"

#include <check.h>
#include <errno.h>
#include <string.h>

struct script {
    const struct wic_step *steps;
    size_t count, at;
    int last; /* value that next returns after the steps */
};

static struct script script;
static int destroyed;

static inline int script_create(const struct wic_pattern_params *params, void **out_state)
{
    ck_assert_uint_eq(params->size, sizeof(*params));
    script.at = 0;
    *out_state = &script;
    return 0;
}

static inline int script_next(void *state, struct wic_step *out_step)
{
    struct script *self = state;
    static const struct wic_step zero;
    ck_assert_int_eq(memcmp(out_step, &zero, sizeof(zero)), 0);
    if (self->at == self->count) {
        return self->last;
    }
    *out_step = self->steps[self->at++];
    return 1;
}

static uint64_t told_value;

static inline int script_told(void *state, const struct wic_step *step,
                              const struct wic_outcome *outcome)
{
    ck_assert_ptr_eq(state, &script);
    ck_assert_uint_eq(step->flags, WIC_STEP_TOLD);
    told_value = outcome->value;
    return outcome->value == 13 ? -EDOM : 0;
}

static inline void script_destroy(void *state)
{
    ck_assert_ptr_eq(state, &script);
    destroyed++;
}

#define SCRIPTED                                                                                   \
    {                                                                                              \
        .abi = WIC_PATTERN_ABI, .size = sizeof(struct wic_pattern), .name = "scripted",            \
        .doc = "a test", .create = script_create, .next = script_next, .told = script_told,        \
        .destroy = script_destroy                                                                  \
    }

static const struct wic_pattern scripted = SCRIPTED;

static const struct wic_pattern_params one_way = {
    .parties = 2, .slots = 4, .chunk_bytes = 4096, .chunks[0][1] = 10};
static const struct wic_pattern_params both_ways = {
    .parties = 2, .slots = 4, .chunk_bytes = 4096, .chunks = {{0, 10}, {6}}};
#endif
