/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Successive halving. All rounds get the same time, so each survivor is measured for about twice as
 * long as in the round before; of its measurements the last one counts, as short ones err most. The
 * first round may take half of the budget: making a link takes as long as a short measurement, and
 * a candidate that is not measured at all is lost. */
#include "wic/device/tune.h"

#include "wic/futex.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024u
#define MIB (1024 * KIB)

/* --- candidates ----------------------------------------------------------------------------- */

static const uint32_t piece_sizes[] = {8 * KIB, 16 * KIB, 32 * KIB};
static const uint32_t depths[] = {2, 4};
static const uint32_t block_percents[] = {39, 60, 100};
static const uint32_t link_sizes[] = {256 * KIB, 512 * KIB, 4 * MIB};
static const uint32_t backlogs[] = {1 * MIB, 4 * MIB, 16 * MIB};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct list {
    const struct wic_gpu *gpu;
    const struct wic_tile_shape *shape;
    const struct wic_work *work;
    struct wic_tune_trial *trials;
    size_t n;
};

/* Blocks and shared memory are not others' any more, and the sooner tiles queue for the engines,
 * the later they come back. */
static double handicap(const struct wic_gpu *gpu, const struct wic_transfer_plan *plan)
{
    double blocks = (double)plan->blocks / gpu->multiprocessors;
    double shared = (double)wic_transfer_plan_shared_bytes(plan) / gpu->shared_block_bytes;
    double queue = plan->engine_backlog > 0 ? 0.1 + 0.1 * MIB / (double)plan->engine_backlog : 0;
    double taken = 0.5 * (blocks < 1 ? blocks : 1) + 0.3 * (shared < 1 ? shared : 1) +
                   (queue < 0.2 ? queue : 0.2);
    return WIC_TUNE_PREFERENCE * taken;
}

static bool is_same(const struct wic_transfer_plan *a, const struct wic_transfer_plan *b)
{
    return a->in_piece == b->in_piece && a->depth == b->depth && a->blocks == b->blocks &&
           a->pulls == b->pulls && a->results == b->results &&
           a->engine_backlog == b->engine_backlog && a->transport == b->transport &&
           a->order == b->order && a->batch == b->batch;
}

/* A trial whose row and plan are set. */
static void add_trial(struct list *list, struct wic_tune_trial trial)
{
    for (size_t i = 0; i < list->n; i++) {
        if (is_same(&list->trials[i].plan, &trial.plan)) {
            return;
        }
    }
    if (list->n < WIC_TUNE_TRIALS_MAX) {
        trial.number = (uint32_t)list->n;
        trial.handicap = handicap(list->gpu, &trial.plan);
        list->trials[list->n++] = trial;
    }
}

static void add(struct list *list, const struct wic_transfer_row *row)
{
    struct wic_tune_trial trial = {.row = *row};
    if (wic_transfer_plan_by(list->gpu, list->shape, list->work, row, &trial.plan) == 0) {
        add_trial(list, trial);
    }
}

/* By copy engine: how the few tiles are pulled that come before the backlog matters less. */
static void add_engine(struct list *list, const struct wic_transfer_row *table)
{
    for (size_t b = 0; b < COUNT(backlogs); b++) {
        struct wic_transfer_row row = *table;
        row.backlog = backlogs[b];
        add(list, &row);
    }
    for (size_t k = 0; k < COUNT(block_percents); k++) {
        struct wic_transfer_row row = *table;
        row.blocks = block_percents[k];
        add(list, &row);
    }
}

static void add_pulled(struct list *list, struct wic_transfer_row row)
{
    for (size_t d = 0; d < COUNT(depths); d++) {
        row.depth = depths[d];
        for (size_t k = 0; k < COUNT(block_percents); k++) {
            row.blocks = block_percents[k];
            for (size_t l = 0; l < COUNT(link_sizes); l++) {
                row.link_bytes = link_sizes[l];
                add(list, &row);
            }
        }
    }
}

/* The table's row, which is the first candidate; false: there is no plan. */
static bool begin(struct list *list, struct wic_transfer_row *out_table)
{
    if (list->gpu == NULL || list->shape == NULL ||
        wic_transfer_row_find(list->gpu, list->shape->slot_bytes, out_table) != 0) {
        return false;
    }
    add(list, out_table);
    return list->n > 0;
}

size_t wic_tune_enumerate(const struct wic_gpu *gpu, const struct wic_tile_shape *shape,
                          const struct wic_work *work, struct wic_tune_trial *trials)
{
    struct list list = {gpu, shape, work, trials, 0};
    struct wic_transfer_row row;
    if (!begin(&list, &row)) {
        return 0;
    }
    add_engine(&list, &row);
    row.backlog = 0;
    for (size_t p = 0; p < COUNT(piece_sizes); p++) {
        row.piece = piece_sizes[p];
        add_pulled(&list, row);
    }
    return list.n;
}

size_t wic_tune_rows(const struct wic_gpu *gpu, const struct wic_tile_shape *shape,
                     const struct wic_work *work, const struct wic_transfer_row *rows,
                     size_t n_rows, struct wic_tune_trial *trials)
{
    struct list list = {gpu, shape, work, trials, 0};
    struct wic_transfer_row table;
    if (!begin(&list, &table)) {
        return 0;
    }
    for (size_t i = 0; i < n_rows; i++) {
        add(&list, &rows[i]);
    }
    return list.n;
}

static void add_tiles(struct list *list, const struct wic_tile_grid *grid,
                      const struct wic_tile_way *way, uint32_t blocks)
{
    static const struct wic_work no_work = {0};
    struct wic_work work = list->work != NULL ? *list->work : no_work;
    struct wic_tune_trial trial = {.number = 0};
    work.blocks = blocks > 0 ? blocks : work.blocks;
    if (wic_transfer_plan_tiles(list->gpu, way, grid, &work, &trial.plan) == 0) {
        add_trial(list, trial);
    }
}

size_t wic_tune_tiles(const struct wic_gpu *gpu, const struct wic_tile_grid *grid,
                      const struct wic_work *work, struct wic_tune_trial *trials)
{
    static const enum wic_transport by_workers[] = {WIC_PULL_LOADS, WIC_IN_PLACE};
    struct list list = {gpu, NULL, work, trials, 0};
    if (gpu == NULL || grid == NULL) {
        return 0;
    }
    const uint32_t tiles = grid->rows * grid->cols, line = grid->cols;
    const uint32_t batches[] = {line, 4 * line, 16 * line, tiles, 4, 1};
    for (uint32_t order = 0; order < WIC_ORDERS; order++) {
        struct wic_tile_way way = {WIC_COPY, (enum wic_tile_order)order, 0};
        for (size_t i = 0; i < COUNT(batches); i++) {
            way.batch = batches[i] < tiles ? batches[i] : tiles;
            add_tiles(&list, grid, &way, 0);
        }
        for (size_t i = 0; i < COUNT(by_workers); i++) {
            way = (struct wic_tile_way){by_workers[i], (enum wic_tile_order)order, 0};
            add_tiles(&list, grid, &way, 1);
            add_tiles(&list, grid, &way, 2);
        }
    }
    return list.n;
}

/* --- halving -------------------------------------------------------------------------------- */

struct race {
    struct wic_tune_trial *trials; /* best first */
    size_t n;                      /* that are left */
    const struct wic_tune_meter *meter;
    uint64_t end_ns;
    uint64_t around_ns; /* what a measurement takes beside its own time, on average */
};

static uint64_t now(const struct race *race)
{
    const struct wic_tune_meter *m = race->meter;
    return m->now_ns != NULL ? m->now_ns(m->context) : (uint64_t)wic_now_ns();
}

static bool ends_all(int rc)
{
    return rc != 0 && rc != -E2BIG && rc != -ENOSPC && rc != -ENOMEM && rc != -EINVAL;
}

static int measure(struct race *race, struct wic_tune_trial *trial, uint64_t ns)
{
    double rate = 0;
    uint64_t start = now(race);
    int rc = race->meter->measure(race->meter->context, &trial->plan, ns, &rate);
    uint64_t took = now(race) - start, around = took > ns ? took - ns : 0;
    race->around_ns = race->around_ns > 0 ? (7 * race->around_ns + around) / 8 : around;
    trial->error = rc;
    if (rc == 0) {
        trial->rate = rate;
        trial->ns = ns;
    }
    return ends_all(rc) ? rc : 0;
}

static double score(const struct wic_tune_trial *trial)
{
    return trial->error == 0 && trial->ns > 0 ? trial->rate * (1 - trial->handicap) : 0;
}

/* What was not measured in this round is worse than what was. */
static bool is_better(const struct wic_tune_trial *a, const struct wic_tune_trial *b)
{
    if (a->error != 0 || b->error != 0) {
        return a->error == 0 && b->error != 0;
    }
    return a->rounds != b->rounds ? a->rounds > b->rounds : score(a) > score(b);
}

/* Insertion sort: stable, and for some dozens. */
static void sort(struct race *race)
{
    for (size_t i = 1; i < race->n; i++) {
        const struct wic_tune_trial moved = race->trials[i];
        size_t at = i;
        for (; at > 0 && is_better(&moved, &race->trials[at - 1]); at--) {
            race->trials[at] = race->trials[at - 1];
        }
        race->trials[at] = moved;
    }
}

/* How long the next measurement of a round is, with `left` to come until `until`; 0: there is no
 * time. */
static uint64_t length_of(const struct race *race, size_t left, uint64_t until)
{
    uint64_t start = now(race);
    if (start + race->around_ns + WIC_TUNE_LEAST_NS > race->end_ns) {
        return 0;
    }
    uint64_t fair = until > start ? (until - start) / left : 0;
    fair = fair > race->around_ns ? fair - race->around_ns : 0;
    return fair > WIC_TUNE_LEAST_NS ? fair : WIC_TUNE_LEAST_NS;
}

/* A round ends at `until`, but for measurements of the least length, which may go on until `late`.
 */
static int run_round(struct race *race, uint64_t until, uint64_t late)
{
    int rc = 0;
    for (size_t i = 0; i < race->n && rc == 0; i++) {
        struct wic_tune_trial *trial = &race->trials[i];
        uint64_t ns = length_of(race, race->n - i, until);
        if (ns == 0 || now(race) + race->around_ns + ns > late) {
            break;
        }
        rc = measure(race, trial, ns);
        trial->rounds += trial->error == 0;
    }
    sort(race);
    return rc;
}

static uint32_t rounds_for(size_t n)
{
    uint32_t rounds = 1;
    for (; n > 2; n = (n + 1) / 2) {
        rounds++;
    }
    return rounds;
}

static int run_race(struct race *race, uint64_t budget_ns)
{
    struct wic_tune_trial warm_up = {.plan = race->trials[0].plan};
    uint64_t start = now(race);
    race->end_ns = start + budget_ns;
    int rc = measure(race, &warm_up, WIC_TUNE_LEAST_NS);
    for (uint32_t rounds = rounds_for(race->n), round = 0; round < rounds && rc == 0; round++) {
        uint64_t at = now(race), left = race->end_ns > at ? race->end_ns - at : 0;
        uint64_t until = at + left / (rounds - round);
        rc = run_round(race, until, round == 0 ? start + budget_ns / 2 : race->end_ns);
        race->n = race->n > 2 ? (race->n + 1) / 2 : race->n;
    }
    return rc;
}

int wic_tune_halve(struct wic_tune_trial *trials, size_t n, const struct wic_tune_meter *meter,
                   uint64_t budget_ns)
{
    struct race race = {.trials = trials, .n = n, .meter = meter};
    if (trials == NULL || n == 0 || n > WIC_TUNE_TRIALS_MAX || meter == NULL ||
        meter->measure == NULL) {
        return -EINVAL;
    }
    int rc = run_race(&race, budget_ns);
    if (rc == 0 && score(&trials[0]) <= 0) {
        rc = trials[0].error != 0 ? -ENODEV : -ETIME;
    }
    return rc;
}
