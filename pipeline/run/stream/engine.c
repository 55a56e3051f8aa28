/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/engine.h"
#include "config/base/clock.h"
#include "pipeline/io/thread.h"
#include "pipeline/plan/exchange.h"
#include "pipeline/run/stream/gate_answers.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* --- making ---------------------------------------------------------------------------------- */

void pb_engine_init(struct pb_engine *e, const struct pb_plan *plan,
                    const struct pb_exec_type *type)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr,
                              CLOCK_MONOTONIC); /* time limits do not depend on the wall clock */
    pthread_mutex_init(&e->lock, NULL);
    pthread_mutex_init(&e->stream.lock, NULL);
    pthread_cond_init(&e->ended, &attr);
    pthread_condattr_destroy(&attr);
    e->stream.plan = plan;
    e->type = type != NULL ? type : pb_exec_of(plan);
}

int pb_engine_arrivals(struct pb_engine *e, bool parts, bool repeats, struct pb_err *err)
{
    const struct pb_plan *plan = e->stream.plan;
    const struct pb_plan_layout *l = &plan->layout;
    struct pb_tile_exchange walk;
    struct pb_part_exchange exchange;
    int rc = pb_plan_exchange(plan, err, &walk);
    if (rc < 0)
        return rc;
    rc = parts ? pb_plan_part_exchange(plan, err, &exchange) : 0;
    if (rc < 0) {
        pb_tile_exchange_fini(&walk);
        return rc;
    }
    e->stream.arrivals =
        pb_arrivals_create(&l->grid, l->order, l->window_units, &walk, parts ? &exchange : NULL);
    if (e->stream.arrivals == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    if (repeats)
        pb_arrivals_repeat(e->stream.arrivals, &l->exchange, pb_plan_unit_bytes(plan));
    return 0;
}

int pb_engine_make(struct pb_engine *e, struct pb_err *err)
{
    const struct pb_plan *plan = e->stream.plan;
    if (plan->layout.gate.chain != NULL && plan->engine.whole.used &&
        (e->stream.answers = pb_gate_answers_create(pb_grid_count(&plan->layout.grid))) == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the gate");
    int rc = e->type->create(&e->stream, err, &e->exec);
    if (rc == 0 && e->type->stored != NULL)
        e->stream.n_stored = e->type->stored(e->exec);
    return rc;
}

void pb_engine_fini(struct pb_engine *e)
{
    pb_tile_workers_destroy(e->workers);
    if (e->exec != NULL)
        e->type->destroy(e->exec);
    pb_arrivals_destroy(e->stream.arrivals);
    pb_gate_answers_destroy(e->stream.answers);
    pthread_cond_destroy(&e->ended);
    pthread_mutex_destroy(&e->lock);
    pthread_mutex_destroy(&e->stream.lock);
}

/* --- threads --------------------------------------------------------------------------------- */

static void *body(void *arg)
{
    struct pb_engine_thread *self = arg;
    struct pb_engine *e = self->engine;
    static const char *const names[] = {"pb-read", "pb-compute", "pb-write", "pb-tile"};
    char name[16];
    (void)snprintf(name, sizeof name, "%s-%u", names[self->role], self->number % 100);
    (void)pthread_setname_np(pthread_self(), name);
    switch (self->role) {
    case PB_ENGINE_READ:
        if (e->type->read != NULL)
            e->type->read(e->exec, self->number);
        else
            pb_reader_run(&e->stream, self->number);
        if (atomic_fetch_sub(&e->readers_left, 1) == 1)
            wic_close(e->stream.in);
        break;
    case PB_ENGINE_COMPUTE:
        e->type->run(e->exec, self->number);
        if (atomic_fetch_sub(&e->workers_left, 1) == 1)
            wic_close(e->stream.out);
        break;
    case PB_ENGINE_WRITE:
        pb_writer_run(&e->stream, self->number);
        break;
    case PB_ENGINE_TILES:
        pb_tile_worker_run(e->workers, self->number);
        break;
    }
    pthread_mutex_lock(&e->lock);
    if (--e->running == 0)
        pthread_cond_broadcast(&e->ended);
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static int start_one(struct pb_engine *e, enum pb_engine_role role, uint32_t number)
{
    struct pb_engine_thread *thread = &e->thread[e->n];
    thread->engine = e;
    thread->role = role;
    thread->number = number;
    pthread_mutex_lock(&e->lock);
    e->running++;
    pthread_mutex_unlock(&e->lock);
    int rc = pb_thread_start(&thread->id, body, thread);
    if (rc == 0) {
        e->n++;
        return 0;
    }
    pthread_mutex_lock(&e->lock);
    e->running--;
    pthread_mutex_unlock(&e->lock);
    return rc;
}

static int start_all(struct pb_engine *e, enum pb_engine_role role, uint32_t count)
{
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = start_one(e, role, i);
    return rc;
}

/* Starts the threads of each stage. */
static int start_stages(struct pb_engine *e, struct pb_err *err)
{
    const bool by_strips = e->stream.strips != NULL; /* one more thread takes results */
    const uint32_t count[] = {e->stream.plan->layout.readers, e->type->threads(e->exec),
                              e->stream.plan->layout.writers + by_strips};
    atomic_store(&e->readers_left, count[PB_ENGINE_READ]);
    atomic_store(&e->workers_left, count[PB_ENGINE_COMPUTE]);
    int rc = 0;
    if ((uint64_t)count[0] + count[1] + count[2] > PB_ENGINE_THREADS_MAX)
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "compute.threads makes %u reading, %u computing and %u writing threads; at "
                       "most %d are run",
                       count[0], count[1], count[2], PB_ENGINE_THREADS_MAX);
    for (int role = PB_ENGINE_WRITE; role >= PB_ENGINE_READ && rc == 0; role--)
        rc = start_all(e, (enum pb_engine_role)role, count[role]);
    return rc;
}

static int start_workers(struct pb_engine *e, struct pb_err *err)
{
    const uint32_t count = e->type->threads(e->exec);
    if (count > PB_ENGINE_THREADS_MAX)
        return pb_fail(err, PB_E_CONFIG_VALUE, "compute.threads is %u; at most %d threads are run",
                       count, PB_ENGINE_THREADS_MAX);
    int rc = pb_tile_workers_create(&e->stream, e->exec, err, &e->workers);
    return rc ? rc : start_all(e, PB_ENGINE_TILES, count);
}

int pb_engine_start(struct pb_engine *e, struct pb_err *err)
{
    int rc = e->stream.in != NULL ? start_stages(e, err) : start_workers(e, err);
    if (rc < 0) {
        rc = pb_thread_fail(err, rc);
        pb_stream_abort(&e->stream);
    }
    return rc;
}

/* Waits; 0, or -ETIMEDOUT while threads are running. */
static int wait_for_end(struct pb_engine *e, int64_t timeout_ms)
{
    struct timespec until = pb_clock_mono_after(timeout_ms);
    int rc = 0;
    pthread_mutex_lock(&e->lock);
    while (e->running > 0 && rc == 0)
        rc = pthread_cond_timedwait(&e->ended, &e->lock, &until);
    rc = e->running > 0 ? -ETIMEDOUT : 0;
    pthread_mutex_unlock(&e->lock);
    return rc;
}

int pb_engine_join(struct pb_engine *e, int64_t timeout_ms)
{
    int rc = timeout_ms < 0 ? 0 : wait_for_end(e, timeout_ms);
    for (; rc == 0 && e->joined < e->n; e->joined++)
        (void)pthread_join(e->thread[e->joined].id, NULL);
    return rc;
}

int pb_engine_wait(struct pb_engine *e, int64_t timeout_ms, struct pb_err *err)
{
    int rc = pb_engine_join(e, timeout_ms);
    if (rc < 0 || !atomic_load(&e->stream.failed))
        return rc;
    if (err != NULL && err->code == PB_OK)
        *err = e->stream.failure;
    return pb_code_errno(e->stream.failure.code);
}

/* --- report ---------------------------------------------------------------------------------- */

uint64_t pb_engine_parked_ns(const struct pb_engine *e)
{
    const struct pb_stream *s = &e->stream;
    struct wic_stats in = {0}, out = {0};
    if (e->type->counts_parked)
        return atomic_load(&s->compute.parked_ns);
    if (s->in != NULL) {
        wic_stats_get(s->in, &in);
        wic_stats_get(s->out, &out);
    }
    return in.consumer_parked_ns + out.producer_parked_ns;
}

void pb_engine_link(const struct pb_engine *e, struct pb_link_report *out)
{
    struct pb_link_report own = {0};
    if (e->type->link == NULL)
        return;
    e->type->link(e->exec, &own);
    own.to_device_bytes += out->to_device_bytes;
    own.from_device_bytes += out->from_device_bytes;
    own.starved_ns += out->starved_ns;
    own.launches += out->launches;
    pb_device_report_add(&own.device, &out->device);
    if (e->stream.remote == NULL) {
        own.device.set_up_ns = e->set_up_ns;
        own.device.pin_ns = e->pin_ns;
        own.to_device_rate = e->to_device_rate;
        own.from_device_rate = e->from_device_rate;
    }
    *out = own;
}
