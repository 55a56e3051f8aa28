/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/served/served.h"
#include "pipeline/plan/choose.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/exchange.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "pipeline/device/device.h"
#include "pipeline/device/mem.h"
#include "pipeline/run/stream/gate_answers.h"
#include "pipeline/run/stream/run_threads.h"
#include "pipeline/run/served/said_blocks.h"
#include "pipeline/run/served/spare_room.h"
#include "pipeline/run/stream/stream.h"
#include "pipeline/run/served/tile_pool.h"

#include "wic/device/pause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RATE_BYTES = 4 << 20, AGAIN_MS = 50, PAGE = 4096 };

/* User bytes of a slot, in memory that the other process cannot write. */
struct own_user {
    _Alignas(64) unsigned char bytes[WIC_USER_BYTES];
};

struct pb_served {
    struct pb_plan *plan; /* owner of the chain */
    struct pb_plan *pass;
    struct pb_stream stream;
    struct pb_tile_pool pool;
    bool on_gpu;                 /* the pass is on a GPU; false in tests with another device */
    struct own_user *users;      /* one for each input slot */
    struct pb_said_blocks *said; /* if input slots have blocks as files store them; else NULL */
    const struct pb_exec_type *exec_type;
    void *exec;
    double to_device_rate, from_device_rate;
    uint64_t set_up_ns, pin_ns; /* as in pb_device_report */
    struct pb_run_threads threads;
};

/* From the other process' memory only number and unit are read, once; the unit is returned
 * unchanged. A tile whose pixels may be on the device already arrives as a head only. */
static int take_tile(void *context, struct wic_slot *slot)
{
    struct pb_served *s = context;
    const struct pb_plan *pass = s->pass;
    const volatile struct pb_tile *said = slot->user;
    uint32_t number = said->number, unit = said->unit;
    if (number >= pb_grid_count(&pass->layout.grid))
        return -EPROTO;
    struct pb_tile *own = (struct pb_tile *)s->users[slot->index].bytes;
    *own = pb_plan_tile(pass, number, unit);
    size_t bytes = pb_slot_tile_bytes(&pass->layout.format, own);
    if (bytes > pass->layout.in_slot_bytes ||
        pb_plan_out_bytes(pass, own) > pass->layout.out_slot_bytes)
        return -EPROTO;
    bool is_head = number < s->stream.n_stored && slot->bytes == pass->layout.format.head_bytes;
    /* In memory that the other process cannot write: with a head only, the device's slot still has
     * its earlier content, which may be of another job. */
    own->is_stored = is_head;
    slot->bytes = is_head ? pass->layout.format.head_bytes : bytes;
    slot->user = own;
    return 0;
}

/* Copies the load; the executor checks that it is the next one. */
static int take_load(void *context, struct wic_slot *slot)
{
    struct pb_served *s = context;
    unsigned char *own = s->users[slot->index].bytes;
    memcpy(own, slot->user, WIC_USER_BYTES);
    slot->user = own;
    slot->bytes = s->pass->layout.in_slot_bytes;
    return 0;
}

/* Uses the room of the pass before if it is large enough and not larger than the job may have. */
static int make_room(const struct pb_served *s, size_t needed, uint64_t wanted, struct pb_err *err,
                     struct pb_tile_room *room)
{
    size_t bytes = wanted > needed ? (size_t)wanted : needed;
    bool pin = s->pass->engine.mem == PB_MEM_PINNED && s->on_gpu;
    if (room->slots != NULL && room->bytes >= needed && room->bytes <= bytes && room->pinned == pin)
        return 0;
    pb_tile_room_close(room);
    if (pin && pb_spare_room_take(needed, bytes + PAGE - 1, pin, room)) /* whole pages */
        return 0;
    return pb_tile_room_make(bytes, pin, err, room);
}

static int make_pool(struct pb_served *s, uint64_t room_bytes, struct pb_err *err,
                     struct pb_tile_room *room, int *out_fd)
{
    const struct pb_plan *p = s->pass;
    const struct pb_tile_pool_shape shape = {p->layout.in_slots, p->layout.out_slots,
                                             p->layout.in_slot_bytes, p->layout.out_slot_bytes};
    s->users = aligned_alloc(64, p->layout.in_slots * sizeof *s->users);
    if (s->users == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    memset(s->users, 0, p->layout.in_slots * sizeof *s->users);
    int rc = make_room(s, pb_tile_pool_room_bytes(&shape), room_bytes, err, room);
    rc = rc ? rc
            : pb_tile_pool_create(&shape, room, p->engine.whole.used ? take_load : take_tile, s,
                                  err, &s->pool, out_fd);
    s->stream.in = s->pool.in;
    s->stream.out = s->pool.out;
    return rc;
}

/* Makes the executor's end of the exchange of tiles. Readers that compute a gate themselves do not
 * report left-out tiles, therefore nothing is checked then. */
static int make_arrivals(struct pb_served *s, struct pb_err *err)
{
    const struct pb_plan *p = s->pass;
    struct pb_tile_exchange walk;
    if (p->layout.gate.chain != NULL && !p->engine.whole.used)
        return 0;
    int rc = pb_plan_exchange(p, err, &walk);
    if (rc < 0)
        return rc;
    s->stream.arrivals =
        pb_arrivals_create(&p->layout.grid, p->layout.order, p->layout.window_units, &walk, NULL);
    if (s->stream.arrivals == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    if (pb_chain_rounds(p->work.chain) > 1)
        pb_arrivals_repeat(s->stream.arrivals, &p->layout.exchange, pb_plan_unit_bytes(p));
    return 0;
}

/* Rates of the link in bytes/s, measured by the first session of the process. */
static struct {
    pthread_mutex_t lock;
    bool known;
    double to_device, from_device;
} rates = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void measure_link(struct pb_served *s)
{
    (void)pthread_mutex_lock(&rates.lock);
    if (!rates.known) {
        (void)wic_gpu_pause(
            WIC_GPU_PAUSE_NS); /* the measurement also frees; other work distorts it */
        pb_device_link(s->pass->engine.device_index, RATE_BYTES, &rates.to_device,
                       &rates.from_device);
        wic_gpu_resume();
    }
    rates.known = true;
    s->to_device_rate = rates.to_device;
    s->from_device_rate = rates.from_device;
    (void)pthread_mutex_unlock(&rates.lock);
}

/* Resident kernels of other sessions keep running meanwhile. */
static int set_up(struct pb_served *s, uint64_t room_bytes, struct pb_err *err,
                  struct pb_tile_room *room, int *out_fd)
{
    uint64_t start = pb_clock_mono_ns();
    int rc = s->on_gpu ? pb_device_use(s->pass->engine.device_index, err) : 0;
    rc = rc ? rc : make_pool(s, room_bytes, err, room, out_fd);
    s->pin_ns = pb_clock_mono_ns() - start;
    if (rc == 0 && s->on_gpu)
        measure_link(s);
    rc = rc ? rc : s->exec_type->create(&s->stream, err, &s->exec);
    if (rc == 0 && s->exec_type->stored != NULL)
        s->stream.n_stored = s->exec_type->stored(s->exec);
    s->set_up_ns = pb_clock_mono_ns() - start;
    return rc;
}

int pb_served_create(const struct pb_plan_request *base, const struct pb_served_request *said,
                     struct pb_served_tail *tail, struct pb_tile_room *room, struct pb_err *err,
                     struct pb_served **out_served, int *out_fd)
{
    struct pb_served *s = calloc(1, sizeof *s);
    int fd = -1;
    if (s == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    pthread_mutex_init(&s->stream.lock, NULL);
    pb_run_threads_init(&s->threads);
    int rc = pb_plan_serve(base, said, tail, err, &s->plan, &s->pass);
    if (rc == 0) {
        s->stream.plan = s->pass;
        s->on_gpu = s->pass->engine.cuda && base->whole_device == NULL;
        s->exec_type = pb_exec_of(s->pass);
        s->stream.limits = &base->config->limits;
        s->stream.whole_device = base->whole_device;
        if (s->pass->engine.whole.used)
            rc = pb_said_blocks_take(s->pass, said, tail, err, &s->said);
        if (rc == 0 && tail->at != tail->bytes)
            rc = pb_fail(err, PB_E_SERVICE_PROTOCOL, "a request with more facts than its plan has");
        s->stream.whole_blocks = s->said != NULL ? s->said->blocks : NULL;
        rc = rc ? rc : make_arrivals(s, err);
        if (rc == 0 && s->pass->layout.gate.chain != NULL && s->pass->engine.whole.used &&
            (s->stream.answers = pb_gate_answers_create(pb_grid_count(&s->pass->layout.grid))) ==
                NULL)
            rc = pb_fail(err, PB_E_MEMORY, "out of memory for the gate");
        rc = rc ? rc : set_up(s, said->room_bytes, err, room, &fd);
    }
    if (rc < 0) {
        pb_served_destroy(s);
        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    *out_served = s;
    *out_fd = fd;
    return 0;
}

const struct pb_plan *pb_served_plan(const struct pb_served *served)
{
    return served->pass;
}

const char *pb_served_sync(const struct pb_served *served)
{
    return served->exec_type->sync;
}

uint32_t pb_served_threads(const struct pb_served *served)
{
    return served->exec_type->threads(served->exec);
}

uint32_t pb_served_stored(const struct pb_served *served)
{
    return served->stream.n_stored;
}

int pb_served_start(struct pb_served *s, struct pb_err *err)
{
    return pb_run_threads_start(&s->threads, &s->stream, s->exec_type, s->exec, err);
}

int pb_served_wait(struct pb_served *s, int64_t timeout_ms, struct pb_err *err)
{
    int rc = pb_run_threads_join(&s->threads, timeout_ms);
    if (rc < 0 || !atomic_load(&s->stream.failed))
        return rc;
    if (err != NULL && err->code == PB_OK)
        *err = s->stream.failure;
    return pb_code_errno(s->stream.failure.code);
}

void pb_served_abort(struct pb_served *s)
{
    pb_stream_abort(&s->stream);
}

void pb_served_end(const struct pb_served *s, struct pb_remote_end *out)
{
    const struct pb_stage_counter *c = &s->stream.compute;
    *out = (struct pb_remote_end){.tiles = atomic_load(&c->tiles),
                                  .bytes = atomic_load(&c->bytes),
                                  .busy_ns = atomic_load(&c->busy_ns),
                                  .parked_ns = atomic_load(&c->parked_ns)};
    if (!s->exec_type->counts_parked) {
        struct wic_stats in, to;
        wic_stats_get(s->stream.in, &in);
        wic_stats_get(s->stream.out, &to);
        out->parked_ns += in.consumer_parked_ns + to.producer_parked_ns;
    }
    if (s->exec_type->link == NULL)
        return;
    s->exec_type->link(s->exec, &out->link);
    out->link.to_device_rate = s->to_device_rate;
    out->link.from_device_rate = s->from_device_rate;
    out->link.device.set_up_ns = s->set_up_ns;
    out->link.device.pin_ns = s->pin_ns;
}

/* Does not abort a session that has ended: the other process may have results to take. Repeats the
 * wake-ups, because the other process may undo them. */
static void end_threads(struct pb_served *s)
{
    for (int64_t wait_ms = 0; pb_run_threads_join(&s->threads, wait_ms) == -ETIMEDOUT;
         wait_ms = AGAIN_MS)
        pb_stream_abort(&s->stream);
}

/* Frees the memory of the device; called while no kernel is resident. */
static void take_down(void *served)
{
    struct pb_served *s = served;
    if (s->exec != NULL)
        s->exec_type->destroy(s->exec);
    if (!pb_device_left_behind())
        pb_tile_pool_close(&s->pool);
    pb_arrivals_destroy(s->stream.arrivals);
    pb_gate_answers_destroy(s->stream.answers);
    pb_said_blocks_free(s->said);
    pb_plan_destroy(s->plan);
    free(s->users);
    pthread_mutex_destroy(&s->stream.lock);
    free(s);
}

/* Device memory: copies of slots if a copy engine transfers them, and the executor's memory. */
static size_t device_bytes(const struct pb_served *s)
{
    const struct pb_plan *pass = s->pass;
    return pass->layout.in_slots * wic_slot_stride(pass->layout.in_slot_bytes) +
           pass->layout.out_slots * wic_slot_stride(pass->layout.out_slot_bytes) +
           (s->exec_type->held != NULL ? (size_t)s->exec_type->held(s->exec) : 0);
}

void pb_served_destroy(struct pb_served *s)
{
    if (s == NULL)
        return;
    end_threads(s);
    pb_run_threads_fini(&s->threads);
    if (s->exec != NULL && s->on_gpu)
        wic_gpu_free_later(take_down, s, device_bytes(s));
    else
        take_down(s);
}
