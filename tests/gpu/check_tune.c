/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Compares tuning with an exhaustive search: of each shape the plan that pb_tune chose and the best
 * of all candidates, measured for longer. Exits 1 when a choice is more than 2 % slower, or tuning
 * took more than 3 s. */
#include "config/base/clock.h"
#include "pipeline/tune/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PB_HAVE_CUDA
int main(void)
{
    (void)puts("skipped: this build has no CUDA");
    return 77;
}
#else
#include "pipeline/tune/tune_rig.h"

enum { FINALISTS = 6, FINALS = 4 };

#define SECONDS_MOST 3.0
#define BEHIND_MOST  0.02
#define ALL_NS       UINT64_C(8000000)  /* time of each candidate */
#define FINAL_NS     UINT64_C(25000000) /* time of a finalist, in each of the finals */

static struct pb_tune_result chosen[PB_TUNE_SHAPES];
static int n_chosen;

static void must(int rc, const struct pb_err *err)
{
    if (rc < 0) {
        (void)fprintf(stderr, "check_tune: %s\n", err->msg);
        exit(1);
    }
}

static void note(void *user, const struct pb_tune_result *result)
{
    (void)user;
    chosen[n_chosen++] = *result;
}

static double measure(struct pb_tune_rig *rig, const struct wic_transfer_plan *plan, uint64_t ns)
{
    struct pb_err err = {0};
    double rate = 0;
    if (pb_tune_rig_measure(rig, plan, ns, &err, &rate) < 0 && pb_device_left_behind())
        must(-1, &err);
    return rate;
}

static int faster_first(const void *a, const void *b)
{
    double x = ((const struct wic_tune_trial *)a)->rate,
           y = ((const struct wic_tune_trial *)b)->rate;
    return (x < y) - (x > y);
}

/* Measures the mean over the finals of each finalist and of the chosen plan, in turn. */
static double finals(struct pb_tune_rig *rig, const struct wic_transfer_plan *plan, double *out_own)
{
    double sum[FINALISTS + 1] = {0}, best = 0;
    for (int f = 0; f < FINALS; f++)
        for (int i = 0; i <= FINALISTS; i++)
            sum[i] += measure(rig, i < FINALISTS ? &rig->trials[i].plan : plan, FINAL_NS);
    for (int i = 0; i <= FINALISTS; i++)
        best = sum[i] > best ? sum[i] : best;
    *out_own = sum[FINALISTS] / FINALS;
    return best / FINALS;
}

static int check_shape(struct pb_tune_rig *rig, const struct pb_tune_result *own)
{
    struct pb_err err = {0};
    double rate;
    must(pb_tune_rig_set(rig, &own->shape, NULL, 0, &err), &err);
    for (size_t i = 0; i < rig->n_trials; i++)
        rig->trials[i].rate = measure(rig, &rig->trials[i].plan, ALL_NS);
    struct wic_transfer_plan table = rig->trials[0].plan;
    qsort(rig->trials, rig->n_trials, sizeof rig->trials[0], faster_first);
    double best = finals(rig, &own->plan, &rate), built_in = measure(rig, &table, FINAL_NS);
    int good = rate >= (1 - BEHIND_MOST) * best;
    (void)printf("  %4d px x %d: chosen %.2f (%zu plans measured), best of %zu %.2f, ratio %.4f, "
                 "table %.2f, copies %.2f GB/s, limit %s%s\n"
                 "    chosen: pieces %u x %u, %u blocks, %u pulls, backlog %zu; best: pieces %u x "
                 "%u, %u blocks, %u pulls, backlog %zu\n",
                 own->shape.side_px, own->shape.bands, rate * 1e-9, own->trials, rig->n_trials,
                 best * 1e-9, rate / best, built_in * 1e-9, (double)own->row.copies * 1e-9,
                 own->limit, good ? "" : "  FAIL", own->plan.in_piece, own->plan.depth,
                 own->plan.blocks, own->plan.pulls, own->plan.engine_backlog,
                 rig->trials[0].plan.in_piece, rig->trials[0].plan.depth,
                 rig->trials[0].plan.blocks, rig->trials[0].plan.pulls,
                 rig->trials[0].plan.engine_backlog);
    (void)fflush(stdout);
    return good;
}

int main(void)
{
    static struct pb_tune_rig rig;
    struct pb_tuning tuning;
    struct pb_err err = {0};
    int good = 1;
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    must(pb_tune_rig_open(&rig, 0, &err), &err); /* also makes the context, which is not counted */
    pb_tune_rig_close(&rig);
    uint64_t start = pb_clock_mono_ns();
    must(pb_tune(0, PB_TUNE_SECONDS, note, NULL, &err, &tuning), &err);
    double seconds = (double)(pb_clock_mono_ns() - start) * 1e-9;
    good = seconds <= SECONDS_MOST && n_chosen == PB_TUNE_SHAPES;
    (void)printf("tuned %d shapes in %.2f s%s\n", n_chosen, seconds, good ? "" : "  FAIL");
    memset(&rig, 0, sizeof rig);
    must(pb_tune_rig_open(&rig, 0, &err), &err);
    for (int i = 0; i < n_chosen; i++)
        good = check_shape(&rig, &chosen[i]) && good;
    pb_tune_rig_close(&rig);
    (void)printf("%s\n", good ? "ok" : "FAIL");
    return good ? 0 : 1;
}
#endif
