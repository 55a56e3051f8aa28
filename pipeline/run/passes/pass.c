/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* create() makes everything, in this order: slots, channels, limiter, block caches, executor;
 * destroy() releases them in reverse. */
#include "pipeline/run/passes/pass.h"
#include "pipeline/plan/staged.h"
#include "pipeline/plan/exchange.h"
#include "config/base/clock.h"
#include "config/product_words.h"
#include "pipeline/device/device.h"
#include "pipeline/device/mem.h"
#include "pipeline/plan/cache.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/layout.h"
#include "pipeline/run/stream/gate.h"
#include "pipeline/run/stream/infinities.h"
#include "pipeline/run/stream/rests.h"
#include "pipeline/run/stream/strips.h"
#include "pipeline/run/served/said_blocks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { RATE_BYTES = 4 << 20 }; /* moved each way to measure the link: 0.1 ms */

static int make_channel(const struct wic_options *options, void **out_memory,
                        struct wic_channel **out_channel, struct pb_err *err)
{
    size_t bytes = (wic_channel_bytes(options) + 63) / 64 * 64;
    if (bytes == 0 || (*out_memory = aligned_alloc(64, bytes)) == NULL ||
        wic_channel_init(*out_memory, options, out_channel) < 0)
        return pb_fail(err, PB_E_MEMORY, "cannot make a channel of %u slots of %zu bytes",
                       options->slots, options->slot_bytes);
    return 0;
}

/* Makes slots, and their channels if a device computes. */
static int make_channels(struct pb_pass *pass, struct pb_err *err)
{
    const struct pb_plan *plan = pass->plan;
    pass->in_bytes = plan->layout.in_slots * wic_slot_stride(plan->layout.in_slot_bytes);
    pass->out_bytes = plan->layout.out_slots * wic_slot_stride(plan->layout.out_slot_bytes);
    uint64_t start = pb_clock_mono_ns();
    int rc = pb_mem_alloc(plan->engine.mem, pass->in_bytes, err, &pass->in_memory);
    if (rc == 0)
        rc = pb_mem_alloc(plan->engine.mem, pass->out_bytes, err, &pass->out_memory);
    pass->engine.pin_ns = pb_clock_mono_ns() - start;
    if (rc < 0)
        return rc;
    if (plan->layout.by_workers) {
        pass->engine.stream.own_in = pass->in_memory;
        pass->engine.stream.own_out = pass->out_memory;
        return 0;
    }
    const uint32_t spin = pb_plan_spin_limit(plan);
    struct wic_options in = {.slots = plan->layout.in_slots,
                             .slot_bytes = plan->layout.in_slot_bytes,
                             .payload = pass->in_memory,
                             .spin_limit = spin};
    struct wic_options out = {.slots = plan->layout.out_slots,
                              .slot_bytes = plan->layout.out_slot_bytes,
                              .payload = pass->out_memory,
                              .spin_limit = spin};
    rc = make_channel(&in, &pass->in_channel, &pass->engine.stream.in, err);
    return rc ? rc : make_channel(&out, &pass->out_channel, &pass->engine.stream.out, err);
}

/* Opens a session, which has the slots and channels. */
static int open_session(struct pb_pass *pass, const struct pb_pass_request *request,
                        struct pb_err *err)
{
    const struct pb_remote *remote = request->remote;
    struct pb_stream *s = &pass->engine.stream;
    struct pb_served_request *said = malloc(sizeof *said);
    struct pb_served_tail tail = {.data = NULL};
    int rc = said == NULL ? pb_fail(err, PB_E_MEMORY, "out of memory for the stream") : 0;
    rc = rc ? rc
            : pb_served_request_make(request->facts, request->last, request->number, err, said,
                                     &tail);
    if (rc == 0 && pass->plan->engine.whole.used)
        rc = pb_said_blocks_make(pass->plan, request->raster, said, &tail, err);
    if (rc == 0)
        said->finds = !pb_whole_kept_is_empty(request->kept);
    rc = rc ? rc : remote->open(remote->user, pass->plan, said, &tail, err, &pass->session);
    if (rc == 0 && !pass->session.finds)
        pb_whole_kept_drop(request->kept);
    pb_served_tail_free(&tail);
    free(said);
    if (rc < 0)
        return rc;
    s->remote = remote;
    s->session = &pass->session;
    s->in = pass->session.in;
    s->out = pass->session.out;
    return 0;
}

static int make_caches(const struct pb_plan *plan, size_t source, struct pb_block_cache **caches,
                       struct pb_err *err)
{
    int rc = 0;
    for (int part = 0; part < PB_PLAN_PARTS && rc == 0; part++) {
        struct pb_block_cache_options cells =
            pb_plan_cache_options(plan, source, (enum pb_plan_part)part);
        if (cells.count > 0)
            rc = pb_block_cache_create(&cells, err, &caches[part]);
    }
    return rc;
}

/* Makes both ends of the pass's exchange of tiles, each with its own walk; with a remote only its
 * readers' end. */
static int make_exchange(struct pb_pass *pass, struct pb_err *err)
{
    const struct pb_plan *plan = pass->plan;
    struct pb_tile_exchange sending;
    int rc = pb_plan_exchange(plan, err, &sending);
    if (rc < 0)
        return rc;
    /* If another process dispatches tiles, its slots for results limit the tiles in flight; and
     * products that get no tiles hold no memory for them. */
    bool others = plan->engine.whole.used &&
                  (pass->engine.stream.remote != NULL || !pb_plan_out_has_planes(plan));
    uint32_t units = pb_order_units(&plan->layout.grid, plan->layout.order);
    pass->engine.stream.in_flight =
        pb_in_flight_create(&plan->layout.grid, plan->layout.order,
                            others ? units : plan->layout.window_units, &sending);
    if (pass->engine.stream.in_flight == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    return pass->engine.stream.remote != NULL
               ? 0
               : pb_engine_arrivals(&pass->engine, true, pass->open, err);
}

/* Begins the next round, and sets its numbers for the tiles. */
static int make_head(struct pb_pass *pass, struct pb_err *err)
{
    struct pb_stream *s = &pass->engine.stream;
    const size_t bytes = pass->plan->layout.format.head_bytes;
    const uint32_t round = atomic_load(&s->round) + 1;
    if (bytes > 0 && s->head == NULL && (s->head = malloc(bytes)) == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    if (bytes > 0)
        pb_plan_sums_head(pass->plan, round, s->head);
    atomic_store(&s->round, round);
    return 0;
}

static int make_stream(struct pb_pass *pass, const struct pb_pass_request *request,
                       struct pb_err *err)
{
    const struct pb_plan *plan = pass->plan;
    struct pb_stream *s = &pass->engine.stream;
    int rc = request->remote != NULL ? open_session(pass, request, err) : make_channels(pass, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < plan->work.n_sources; i++)
        s->raster[i] = request->raster[i];
    s->limits = request->limits;
    s->whole_device = request->whole_device;
    s->kept = request->kept;
    s->reducing = request->reducing;
    s->store = request->store;
    s->sinks = request->sinks;
    s->n_sinks = request->n_sinks;
    rc = make_exchange(pass, err);
    rc = rc ? rc : make_head(pass, err);
    for (size_t i = 0; i < plan->work.n_sources && rc == 0; i++)
        rc = make_caches(plan, i, s->cache[i], err);
    if (rc == 0 && plan->work.n_wide > 0)
        rc = pb_rests_create(plan, err, &s->rests);
    if (rc == 0 && plan->work.n_floats > 0 && !plan->engine.whole.used)
        rc = pb_infinities_create(plan, err, &s->infinities);
    if (rc == 0 && plan->layout.gate.chain != NULL)
        rc = pb_gate_create(plan, request->raster, err, &s->gate);
    if (rc == 0 && plan->layout.lines > 0)
        rc = pb_strips_create(s, err, &s->strips);
    return rc;
}

int pb_pass_create(const struct pb_pass_request *request, struct pb_err *err,
                   struct pb_pass **out_pass)
{
    struct pb_pass *pass = calloc(1, sizeof *pass);
    if (pass == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    pass->plan = request->plan;
    pass->open = request->open;
    pb_engine_init(&pass->engine, pass->plan, request->remote != NULL ? &pb_exec_remote : NULL);
    pb_raster_cache_reserve((int64_t)pass->plan->layout.decoding.cache_bytes);
    int rc = make_stream(pass, request, err);
    if (rc == 0)
        pb_in_flight_open(pass->engine.stream.in_flight, pass->open);
    if (rc == 0 && pass->plan->engine.cuda &&
        request->remote == NULL) /* before a kernel may be resident */
        pb_device_link(pass->plan->engine.device_index, RATE_BYTES, &pass->engine.to_device_rate,
                       &pass->engine.from_device_rate);
    uint64_t start = pb_clock_mono_ns();
    rc = rc ? rc : pb_engine_make(&pass->engine, err);
    pass->engine.set_up_ns = pass->engine.pin_ns + pb_clock_mono_ns() - start;
    if (rc < 0) {
        pb_pass_destroy(pass);
        return rc;
    }
    *out_pass = pass;
    return 0;
}

int pb_pass_start(struct pb_pass *pass, struct pb_err *err)
{
    return pb_engine_start(&pass->engine, err);
}

int pb_pass_again(struct pb_pass *pass, struct pb_err *err)
{
    struct pb_stream *s = &pass->engine.stream;
    struct pb_tile_exchange walk;
    int rc = make_head(pass, err);
    if (rc == 0 && (rc = pb_plan_exchange(pass->plan, err, &walk)) == 0)
        pb_in_flight_again(s->in_flight, &walk);
    return rc;
}

void pb_pass_keep(struct pb_pass *pass)
{
    if (pass->engine.type->keep != NULL)
        pass->engine.type->keep(pass->engine.exec);
}

void pb_pass_end(struct pb_pass *pass)
{
    pass->open = false;
    pb_in_flight_open(pass->engine.stream.in_flight, false);
}

int pb_pass_wait(struct pb_pass *pass, int64_t timeout_ms, struct pb_err *err)
{
    int through =
        pass->open ? pb_in_flight_wait(pass->engine.stream.in_flight, timeout_ms) : -ECANCELED;
    if (through != -ECANCELED)
        return through;
    return pb_engine_wait(&pass->engine, timeout_ms, err);
}

void pb_pass_abort(struct pb_pass *pass)
{
    pb_stream_abort(&pass->engine.stream);
}

static void add_gate(const struct pb_gate *gate, struct pb_gate_report *out)
{
    struct pb_gate_report own;
    pb_gate_count(gate, &own);
    out->tiles += own.tiles;
    out->left_out += own.left_out;
    out->blocks += own.blocks;
}

static void add_digits(const struct pb_rests *rests, const struct pb_plan *plan,
                       struct pb_run_report *out)
{
    for (size_t i = 0; i < plan->work.n_wide && out->n_digits < PB_BANDS_MAX; i++) {
        const struct pb_plan_wide *band = &plan->work.wide[i];
        struct pb_digits_report *own = &out->digits[out->n_digits];
        *own = (struct pb_digits_report){.type = pb_type_name(band->type),
                                         .kept = band->count == PB_WIDE_LOST,
                                         .pixels = pb_rests_counted(rests, i)};
        (void)snprintf(own->band, sizeof own->band, "%s", band->name);
        out->n_digits += own->pixels > 0;
    }
}

void pb_pass_report(const struct pb_pass *pass, struct pb_run_report *report)
{
    const struct pb_stream *s = &pass->engine.stream;
    const struct pb_stage_counter *counter[3] = {&s->read, &s->compute, &s->write};
    const char *const names[3] = {"read", "compute", "write"};
    bool is_remote = s->remote != NULL;
    const bool by_workers =
        pass->plan->layout.by_workers; /* each worker is a thread of all stages */
    const uint32_t threads[3] = {
        by_workers ? pass->plan->layout.workers : pass->plan->layout.readers,
        is_remote ? pass->session.threads : pass->engine.type->threads(pass->engine.exec),
        pass->plan->layout.writers};
    struct wic_stats in = {0}, out = {0};
    if (s->in != NULL) {
        wic_stats_get(s->in, &in);
        wic_stats_get(s->out, &out);
    }
    const uint64_t parked[3] = {in.producer_parked_ns + atomic_load(&s->read.parked_ns),
                                pb_engine_parked_ns(&pass->engine), out.consumer_parked_ns};
    (void)snprintf(report->sync, sizeof report->sync, "%s",
                   is_remote ? pass->session.sync : pass->engine.type->sync);
    for (int i = 0; i < 3; i++) {
        struct pb_stage_report *stage = &report->stage[i];
        stage->name = names[i];
        stage->threads = threads[i];
        stage->busy_ns += atomic_load(&counter[i]->busy_ns);
        stage->parked_ns += parked[i];
        stage->tiles += atomic_load(&counter[i]->tiles);
        stage->bytes += atomic_load(&counter[i]->bytes);
    }
    pb_latency_get(&s->latency, &report->latency);
    pb_engine_link(&pass->engine, &report->link);
    if (s->gate != NULL)
        add_gate(s->gate, &report->gate);
    if (s->rests != NULL)
        add_digits(s->rests, pass->plan, report);
    if (s->infinities != NULL)
        pb_infinities_note(s->infinities, &report->notes);
}

void pb_pass_destroy(struct pb_pass *pass)
{
    if (pass == NULL)
        return;
    struct pb_stream *s = &pass->engine.stream;
    if (s->in_flight != NULL)
        pb_stream_abort(s);
    (void)pb_engine_join(&pass->engine, -1);
    pb_engine_fini(&pass->engine);
    pb_in_flight_destroy(s->in_flight);
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        for (int part = 0; part < PB_PLAN_PARTS; part++)
            pb_block_cache_destroy(s->cache[i][part]);
    pb_gate_destroy(s->gate);
    pb_rests_destroy(s->rests);
    pb_strips_destroy(s->strips);
    pb_infinities_destroy(s->infinities);
    free(s->head);
    if (s->remote != NULL) {
        s->remote->close(s->remote->user, s->session);
    } else {
        wic_channel_fini(s->in);
        wic_channel_fini(s->out);
    }
    free(pass->in_channel);
    free(pass->out_channel);
    if (!pb_device_left_behind()) {
        pb_mem_free(pass->plan->engine.mem, pass->in_memory, pass->in_bytes);
        pb_mem_free(pass->plan->engine.mem, pass->out_memory, pass->out_bytes);
    }
    pb_raster_cache_reserve(-(int64_t)pass->plan->layout.decoding.cache_bytes);
    free(pass);
}
