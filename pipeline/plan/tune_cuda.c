/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/tune.h"

#include "config/base/clock.h"
#include "pipeline/plan/tune_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a shape takes beside the search: its chain and the copies alone. */
#define AROUND_NS UINT64_C(20000000)

struct tuner {
    struct pb_tune_rig rig;
    uint64_t end_ns;
    void (*on_result)(void *user, const struct pb_tune_result *result);
    void *user;
    struct pb_tuning found;
};

/* The time that is left, in equal parts. */
static uint64_t share(const struct tuner *t, uint32_t shapes_left)
{
    uint64_t now = pb_clock_mono_ns(), left = t->end_ns > now ? t->end_ns - now : 0;
    uint64_t around = AROUND_NS * (shapes_left - 1);
    return left > around ? (left - around) / shapes_left : 0;
}

static void tell(struct tuner *t, const struct pb_tune_shape *shape, size_t best, double copies)
{
    const struct pb_tune_rig *rig = &t->rig;
    const struct wic_tune_trial *won = &rig->trials[best];
    struct pb_tuning_row *row = &t->found.rows[t->found.n_rows++];
    *row = (struct pb_tuning_row){.in_bytes = rig->scene.posted.bytes,
                                  .out_bytes = rig->scene.posted.out_bytes,
                                  .plan = won->row,
                                  .rate = (uint64_t)won->rate,
                                  .copies = (uint64_t)copies};
    struct pb_tune_result result = {.shape = *shape,
                                    .row = *row,
                                    .plan = won->plan,
                                    .table_rate = (uint64_t)rig->trials[0].rate,
                                    .limit = pb_tune_limit(row, rig->to_device, rig->from_device)};
    for (size_t i = 0; i < rig->n_trials; i++)
        result.trials += rig->trials[i].ns > 0;
    t->on_result(t->user, &result);
}

static int tune_shape(struct tuner *t, uint32_t number, struct pb_err *err)
{
    const struct pb_tune_shape *shape = &pb_tune_shapes[number];
    double copies = 0;
    size_t best = 0;
    int rc = pb_tune_rig_set(&t->rig, shape, err);
    if (rc == 0)
        rc = pb_tune_rig_copies(&t->rig, err, &copies);
    if (rc == 0)
        rc = pb_tune_rig_find(&t->rig, share(t, PB_TUNE_SHAPES - number), err, &best);
    if (rc == 0)
        tell(t, shape, best, copies);
    return rc;
}

int pb_tune(int32_t index, double seconds,
            void (*on_result)(void *user, const struct pb_tune_result *result), void *user,
            struct pb_err *err, struct pb_tuning *out_tuning)
{
    struct tuner *t = calloc(1, sizeof *t);
    char now[PB_CLOCK_TEXT_BYTES];
    if (t == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    t->end_ns = pb_clock_mono_ns() + (uint64_t)(seconds * 1e9);
    t->on_result = on_result;
    t->user = user;
    int rc = pb_tune_rig_open(&t->rig, index, err);
    for (uint32_t i = 0; i < PB_TUNE_SHAPES && rc == 0; i++)
        rc = tune_shape(t, i, err);
    pb_tune_rig_close(&t->rig);
    if (rc == 0) {
        pb_clock_text(pb_clock_wall_ms(), now);
        (void)snprintf(t->found.date, sizeof t->found.date, "%.16sZ", now);
        *out_tuning = t->found;
    }
    free(t);
    return rc;
}
