/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A pass that has ended is destroyed before the next one is made: only the slots of one pass are in
 * memory at a time. Its report is added to the totals first. The rounds of a pass share slots,
 * executor and threads, unless its chain was copied to a place that does not get the numbers of a
 * round. */
#include "pipeline/run/passes/run_passes.h"
#include "config/base/clock.h"
#include "pipeline/run/passes/reducing.h"
#include "pipeline/run/passes/run_images.h"
#include "pipeline/run/stream/tile_store.h"

#include <errno.h>
#include <stdlib.h>

struct pb_run_passes {
    struct pb_pass_request last;  /* the pass that makes the products */
    struct pb_reducing *reducing; /* reductions, if the pass is an earlier one */
    struct pb_tile_store *store;  /* tiles of the pass, if the plan keeps them */
    struct pb_whole_kept *kept;   /* pixels that passes leave on a device; NULL: unused */
    struct pb_run_images *images; /* NULL: the plan has no images */
    struct pb_sink sink[2];
    struct pb_run_report report; /* sum over the passes that have ended */
    atomic_bool stopped;
    struct pb_err failure; /* failure of making or starting a later pass */

    pthread_mutex_t lock; /* protects all below, for progress and abort */
    size_t number;        /* number of the pass: plan->n_earlier is the last */
    int round;
    struct pb_pass *pass; /* NULL between two, and after a failure to make one */
    uint64_t tiles_before, bytes_before;
    uint64_t tiles_counted;           /* tiles of the pass's rounds that have ended */
    struct pb_latency_counts latency; /* latencies of the last pass that has ended */
};

static const struct pb_plan *plan_of(const struct pb_run_passes *p)
{
    return p->number < p->last.plan->n_earlier ? p->last.plan->earlier[p->number] : p->last.plan;
}

static bool is_last(const struct pb_run_passes *p)
{
    return p->number == p->last.plan->n_earlier;
}

/* Returns true after pb_run_passes_end. */
static bool has_ended(const struct pb_run_passes *p)
{
    return p->number > p->last.plan->n_earlier;
}

/* Returns true if a pass made for one round can be used for the next. A chain that was copied to a
 * device or another process has the numbers of the round before, unless they are sent with the
 * tiles. */
static bool may_go_on(const struct pb_plan *plan, bool is_copied)
{
    const struct pb_chain_reduction *reduction;
    size_t n = pb_chain_reductions(plan->work.chain, &reduction);
    bool loops = false;
    for (size_t i = 0; i < n; i++)
        loops = loops || reduction[i].reduce.n_numbers > 0;
    bool numbers_arrive = !loops || !is_copied || plan->layout.sums.chain.n > 0;
    /* With plan->whole its readers end after all blocks are sent down: later rounds read nothing
     * if the pixels of the scene are there together. */
    return pb_chain_rounds(plan->work.chain) > 1 && numbers_arrive &&
           (!plan->engine.whole.used || plan->layout.sums.chain.n > 0);
}

/* Keeps tiles for the rounds after this first one, except those that the device keeps. */
static int keep_tiles(struct pb_run_passes *p, struct pb_pass *pass, struct pb_err *err)
{
    const struct pb_plan *plan = pass->plan;
    if (p->store != NULL || plan->memory.kept_bytes == 0 ||
        pass->engine.stream.n_stored >= pb_grid_count(&plan->layout.grid))
        return 0;
    int rc = pb_tile_store_create(plan, err, &p->store);
    pass->engine.stream.store = p->store;
    return rc;
}

/* Makes the pass of the current number and round. */
static int make_pass(struct pb_run_passes *p, struct pb_err *err)
{
    struct pb_pass_request request = p->last;
    struct pb_pass *pass = NULL;
    int rc = 0;
    request.plan = plan_of(p);
    request.last = p->last.plan;
    request.number = (uint32_t)p->number;
    request.kept = p->kept;
    if (!request.plan->engine.whole.used)
        pb_whole_kept_drop(p->kept);
    if (!is_last(p)) {
        if (p->reducing == NULL)
            rc = pb_reducing_create(request.plan, request.steps, err, &p->reducing);
        if (rc < 0)
            return rc;
        request.store = p->store;
        request.reducing = p->reducing;
        request.open = may_go_on(request.plan, request.plan->engine.cuda || request.remote != NULL);
        p->sink[0] = pb_reducing_sink(p->reducing);
        request.sinks = p->sink;
        request.n_sinks = 1;
        if (p->images != NULL && (rc = pb_run_images_begin(p->images, request.plan, err)) < 0)
            return rc;
        if (p->images != NULL && pb_run_images_sink(p->images, &p->sink[1]))
            request.n_sinks++;
    }
    rc = pb_pass_create(&request, err, &pass);
    rc = rc ? rc : keep_tiles(p, pass, err);
    pthread_mutex_lock(&p->lock);
    p->pass = pass;
    if (pass != NULL && atomic_load(&p->stopped))
        pb_pass_abort(pass);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

int pb_run_passes_create(const struct pb_pass_request *request, struct pb_err *err,
                         struct pb_run_passes **out_passes)
{
    struct pb_run_passes *p = calloc(1, sizeof *p);
    if (p == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the run");
    p->last = *request;
    pthread_mutex_init(&p->lock, NULL);
    int rc = 0;
    if (request->plan->n_earlier > 0 && (p->kept = pb_whole_kept_create()) == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the run");
    if (rc == 0 && request->plan->work.n_images > 0)
        rc = pb_run_images_create(request->plan, request->raster, request->directory, err,
                                  &p->images);
    if (p->images != NULL)
        p->last.raster = pb_run_images_rasters(p->images);
    rc = rc ? rc : make_pass(p, err);
    if (rc < 0) {
        pb_run_passes_destroy(p);
        return rc;
    }
    *out_passes = p;
    return 0;
}

int pb_run_passes_start(struct pb_run_passes *p, struct pb_err *err)
{
    return pb_pass_start(p->pass, err);
}

/* Checks that all tiles are there although nothing failed: a stage that ended early for an
 * unforeseen reason must not publish half a scene. */
static int check_complete(const struct pb_run_passes *p, struct pb_err *err)
{
    uint64_t done = atomic_load(&p->pass->engine.stream.write.tiles) - p->tiles_counted;
    uint32_t total = pb_grid_count(&p->pass->plan->layout.grid);
    if (done != total)
        return pb_fail(err, PB_E_SYSTEM,
                       "only %llu of %u tiles were finished; please report the input",
                       (unsigned long long)done, total);
    return 0;
}

/* Destroys the pass; `next`: the next one is another pass, else another round of this one. */
static void end_pass(struct pb_run_passes *p, bool next)
{
    struct pb_pass *ended = p->pass;
    pb_pass_report(ended, &p->report);
    pb_pass_keep(ended);
    pthread_mutex_lock(&p->lock);
    p->pass = NULL;
    p->tiles_before += atomic_load(&ended->engine.stream.write.tiles) - p->tiles_counted;
    p->tiles_counted = 0;
    p->bytes_before += atomic_load(&ended->engine.stream.read.bytes);
    pb_latency_counts(&ended->engine.stream.latency, &p->latency);
    /* Rounds that are not needed, because there was no valid pixel, count as done: the total stays.
     */
    for (p->round++; next && p->round < pb_chain_rounds(ended->plan->work.chain); p->round++)
        p->tiles_before += pb_grid_count(&ended->plan->layout.grid);
    p->round = next ? 0 : p->round;
    p->number += next;
    pthread_mutex_unlock(&p->lock);
    pb_pass_destroy(ended);
}

/* Frees the objects that the rounds of an earlier pass share. */
static void forget_pass(struct pb_run_passes *p)
{
    pb_reducing_destroy(p->reducing);
    pb_tile_store_destroy(p->store);
    p->reducing = NULL;
    p->store = NULL;
}

/* Starts the next round with the same pass. */
static int go_on(struct pb_run_passes *p, struct pb_err *err)
{
    pthread_mutex_lock(&p->lock);
    uint64_t tiles = atomic_load(&p->pass->engine.stream.write.tiles);
    p->tiles_before += tiles - p->tiles_counted;
    p->tiles_counted = tiles;
    p->round++;
    pthread_mutex_unlock(&p->lock);
    return pb_pass_again(p->pass, err);
}

/* Makes the round or pass after a complete one. */
static int make_next(struct pb_run_passes *p, struct pb_err *err)
{
    bool next = false;
    int rc = p->images != NULL ? pb_run_images_end(p->images, &p->stopped, err) : 0;
    rc = rc ? rc : pb_reducing_end(p->reducing, p->last.plan->work.chain, &next, err);
    if (rc == 0 && p->store != NULL)
        pb_tile_store_close(p->store);
    if (rc == 0 && p->pass->open && !next)
        return go_on(p, err);
    if (rc == 0 && p->pass->open) {
        pb_pass_end(p->pass);
        rc = pb_pass_wait(p->pass, -1, err);
    }
    if (rc < 0)
        return rc;
    end_pass(p, next);
    if (next)
        forget_pass(p);
    rc = make_pass(p, err);
    return rc ? rc : pb_pass_start(p->pass, err);
}

static int start_next(struct pb_run_passes *p, struct pb_err *err)
{
    int rc = make_next(p, &p->failure);
    if (rc < 0)
        pb_run_passes_abort(p, &p->failure); /* the error that another wait returns */
    if (rc < 0 && err != NULL && err->code == PB_OK)
        *err = p->failure;
    return rc;
}

static int64_t left_of(int64_t timeout_ms, int64_t until_ms)
{
    int64_t left = until_ms - pb_clock_mono_ms();
    return timeout_ms < 0 ? -1 : left > 0 ? left : 0;
}

int pb_run_passes_wait(struct pb_run_passes *p, int64_t timeout_ms, struct pb_err *err)
{
    int64_t until_ms = timeout_ms < 0 ? 0 : pb_clock_mono_ms() + timeout_ms;
    int rc = 0;
    while (rc == 0 && !has_ended(p)) {
        rc = p->pass != NULL ? pb_pass_wait(p->pass, left_of(timeout_ms, until_ms), err) : 0;
        if (rc == 0 && atomic_load(&p->stopped))
            return pb_fail(err, PB_E_JOB_DISMISSED, "cancelled while computing");
        if (p->pass == NULL)
            return pb_fail(err, p->failure.code, "%s", p->failure.msg);
        rc = rc ? rc : check_complete(p, err);
        if (rc == 0 && is_last(p))
            break;
        rc = rc ? rc : start_next(p, err);
    }
    return rc;
}

void pb_run_passes_end(struct pb_run_passes *p)
{
    if (p->pass != NULL && is_last(p))
        end_pass(p, true);
}

void pb_run_passes_abort(struct pb_run_passes *p, const struct pb_err *why)
{
    pthread_mutex_lock(&p->lock);
    if (why == NULL)
        atomic_store(&p->stopped, true);
    if (p->pass != NULL && why != NULL)
        pb_stream_fail(&p->pass->engine.stream, why);
    else if (p->pass != NULL)
        pb_pass_abort(p->pass);
    pthread_mutex_unlock(&p->lock);
}

/* Tiles of the current and later rounds. */
static uint64_t tiles_to_come(const struct pb_run_passes *p)
{
    const struct pb_plan *last = p->last.plan;
    uint64_t tiles = has_ended(p) ? 0 : pb_grid_count(&last->layout.grid);
    for (size_t i = p->number; i < last->n_earlier; i++) {
        int rounds = pb_chain_rounds(last->earlier[i]->work.chain);
        rounds -= i == p->number ? p->round : 0;
        tiles += (uint64_t)rounds * pb_grid_count(&last->earlier[i]->layout.grid);
    }
    return tiles;
}

void pb_run_passes_progress(struct pb_run_passes *p, struct pb_run_progress *out)
{
    pthread_mutex_lock(&p->lock);
    uint64_t tiles = p->tiles_before, bytes = p->bytes_before;
    uint64_t total = tiles + tiles_to_come(p);
    out->latency = p->latency;
    if (p->pass != NULL) {
        tiles += atomic_load(&p->pass->engine.stream.write.tiles) - p->tiles_counted;
        bytes += atomic_load(&p->pass->engine.stream.read.bytes);
        pb_latency_counts(&p->pass->engine.stream.latency, &out->latency);
    }
    pthread_mutex_unlock(&p->lock);
    if (p->images != NULL) {
        uint64_t sieved, all;
        pb_run_images_progress(p->images, &sieved, &all);
        tiles += sieved;
        total += all;
    }
    out->tiles_done = (uint32_t)tiles;
    out->tiles_total = (uint32_t)total;
    out->bytes_read = bytes;
}

void pb_run_passes_report(const struct pb_run_passes *p, struct pb_run_report *out)
{
    *out = p->report;
    if (p->pass != NULL)
        pb_pass_report(p->pass, out);
}

void pb_run_passes_destroy(struct pb_run_passes *p)
{
    if (p == NULL)
        return;
    pb_pass_destroy(p->pass);
    forget_pass(p);
    pb_whole_kept_destroy(p->kept);
    pb_run_images_destroy(p->images);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
