/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tune/tune.h"

#include "config/base/clock.h"
#include "pipeline/tune/tune_rig.h"

#include "pipeline/device/device.h"

#include "wic/device/link.h"
#include "wic/peer/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time of a shape in addition to the search: its chain, copies alone and the table's plan. */
#define AROUND_NS UINT64_C(25000000)
#define TABLE_NS  UINT64_C(5000000)

/* The first shape of a ratio tries all candidates and gets more of the time; the others begin with
 * its best ones. */
enum { FIRST_PARTS = 3, KEPT = 12, PEER_CHUNK = 16384 };

struct tuner {
    struct pb_tune_rig rig;
    uint64_t end_ns;
    void (*on_result)(void *user, const struct pb_tune_result *result);
    void *user;
    struct wic_transfer_row kept[KEPT];
    size_t n_kept;
    struct pb_tuning found;
};

static bool is_first(uint32_t number)
{
    return number == 0 || pb_tune_shapes[number].bands != pb_tune_shapes[number - 1].bands;
}

/* Share of the remaining time for the shape. */
static uint64_t share(const struct tuner *t, uint32_t number)
{
    uint64_t now = pb_clock_mono_ns(), left = t->end_ns > now ? t->end_ns - now : 0;
    uint64_t around = AROUND_NS * (PB_TUNE_SHAPES - 1 - number), parts = 0;
    for (uint32_t i = number; i < PB_TUNE_SHAPES; i++)
        parts += is_first(i) ? FIRST_PARTS : 1;
    return left > around ? (left - around) * (is_first(number) ? FIRST_PARTS : 1) / parts : 0;
}

static void keep(struct tuner *t)
{
    const struct pb_tune_rig *rig = &t->rig;
    t->n_kept = 0;
    for (size_t i = 0; i < rig->n_trials && t->n_kept < KEPT; i++)
        if (rig->trials[i].error == 0)
            t->kept[t->n_kept++] = rig->trials[i].row;
}

/* Measures the built-in table's plan, for as long as that is comparable. */
static int measure_table(struct tuner *t, struct pb_err *err, double *out_rate)
{
    struct pb_tune_rig *rig = &t->rig;
    size_t i = 0;
    while (i + 1 < rig->n_trials && rig->trials[i].number != 0)
        i++;
    *out_rate = rig->trials[i].rate;
    if (i == 0 || rig->trials[i].error != 0)
        return 0;
    return pb_tune_rig_measure(rig, &rig->trials[i].plan, TABLE_NS, err, out_rate);
}

static void tell(struct tuner *t, const struct pb_tune_shape *shape, double copies, double table)
{
    const struct pb_tune_rig *rig = &t->rig;
    const struct wic_tune_trial *won = &rig->trials[0];
    struct pb_tuning_row *row = &t->found.rows[t->found.n_rows++];
    *row = (struct pb_tuning_row){.in_bytes = rig->scene.posted.bytes,
                                  .out_bytes = rig->scene.posted.out_bytes,
                                  .plan = won->row,
                                  .rate = (uint64_t)won->rate,
                                  .copies = (uint64_t)copies};
    struct pb_tune_result result = {.shape = *shape,
                                    .row = *row,
                                    .plan = won->plan,
                                    .table_rate = (uint64_t)table,
                                    .limit = pb_tune_limit(row, rig->to_device, rig->from_device)};
    for (size_t i = 0; i < rig->n_trials; i++)
        result.trials += rig->trials[i].ns > 0;
    t->on_result(t->user, &result);
}

static int tune_shape(struct tuner *t, uint32_t number, struct pb_err *err)
{
    const struct pb_tune_shape *shape = &pb_tune_shapes[number];
    double copies = 0, table = 0;
    bool first = is_first(number);
    int rc = pb_tune_rig_set(&t->rig, shape, t->kept, first ? 0 : t->n_kept, err);
    if (rc == 0)
        rc = pb_tune_rig_copies(&t->rig, err, &copies);
    if (rc == 0)
        rc = pb_tune_rig_find(&t->rig, share(t, number), err);
    if (rc == 0)
        rc = measure_table(t, err, &table);
    if (rc < 0)
        return rc;
    tell(t, shape, copies, table);
    if (first)
        keep(t);
    return 0;
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

int pb_tune_peer(int32_t from, int32_t to, struct pb_err *err, struct pb_tune_peer *out_peer)
{
    struct wic_peer_rate rates[WIC_PEER_RATES_MAX];
    struct wic_peer_plan plan;
    double word_us = 0, best = 0;
    int rc = wic_peer_tune(from, to, PEER_CHUNK, &plan, rates);
    if (rc == 0)
        rc = wic_peer_tune_word(from, to, &word_us);
    if (rc == -ETIMEDOUT) /* a kernel that does not leave */
        pb_device_leave_behind();
    if (rc != 0)
        return pb_fail(err, rc == -ETIMEDOUT ? PB_E_DEVICE_LOST : PB_E_DEVICE_FAILED,
                       "channels from cuda:%d to cuda:%d cannot be measured: %s", from, to,
                       wic_link_why());
    for (size_t i = 0; i < WIC_PEER_RATES_MAX; i++)
        best = rates[i].gb_s > best ? rates[i].gb_s : best;
    (void)wic_peer_plan_print(&plan, out_peer->plan, sizeof out_peer->plan);
    out_peer->rate = (uint64_t)(best * 1e9);
    out_peer->word_ns = (uint32_t)(word_us * 1e3);
    return 0;
}
