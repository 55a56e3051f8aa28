/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/served/served.h"
#include "pipeline/plan/choose.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/layout.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "pipeline/device/device.h"
#include "pipeline/device/mem.h"
#include "pipeline/run/served/said_blocks.h"
#include "pipeline/run/stream/engine.h"
#include "pipeline/run/served/tile_room.h"

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
    struct pb_engine engine;
    struct pb_tile_pool pool;
    bool on_gpu;      /* the pass is on a GPU; false in tests with another device */
    bool finds;       /* value of struct pb_remote_session */
    bool is_complete; /* all threads have ended, without a failure or an abort */
    atomic_bool is_aborted;
    struct own_user *users;      /* one for each input slot */
    struct pb_said_blocks *said; /* if input slots have blocks as files store them; else NULL */
};

/* Returns the strip that begins at that line and has that count of lines. */
static int take_strip(const struct pb_plan *pass, uint32_t first, uint32_t n, struct pb_tile *out)
{
    if (first >= (uint32_t)pass->layout.grid.image_h || n < 1 ||
        n > (uint32_t)pb_plan_strip_lines(pass, (int32_t)first))
        return -EPROTO;
    *out = pb_plan_strip(pass, 0, (int32_t)first, (int32_t)n);
    return 0;
}

static int take_whole_tile(const struct pb_plan *pass, uint32_t number, uint32_t unit,
                           struct pb_tile *out)
{
    if (number >= pb_grid_count(&pass->layout.grid))
        return -EPROTO;
    *out = pb_plan_tile(pass, number, unit);
    return 0;
}

/* From the other process' memory only number and unit are read, once; the unit is returned
 * unchanged. A tile whose pixels may be on the device already arrives as a head only. */
static int take_tile(void *context, struct wic_slot *slot)
{
    struct pb_served *s = context;
    const struct pb_plan *pass = s->pass;
    const volatile struct pb_tile *said = slot->user;
    uint32_t number = said->number, unit = said->unit;
    struct pb_tile *own = (struct pb_tile *)s->users[slot->index].bytes;
    const int rc = pass->layout.lines > 0 ? take_strip(pass, number, unit, own)
                                          : take_whole_tile(pass, number, unit, own);
    if (rc < 0)
        return rc;
    size_t bytes = pb_slot_tile_bytes(&pass->layout.format, own);
    if (bytes > pass->layout.in_slot_bytes ||
        pb_plan_out_bytes(pass, own) > pass->layout.out_slot_bytes)
        return -EPROTO;
    bool is_head = pass->layout.lines == 0 && number < s->engine.stream.n_stored &&
                   slot->bytes == pass->layout.format.head_bytes;
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
                                             p->layout.in_slot_bytes, p->layout.out_slot_bytes,
                                             pb_plan_spin_limit(p)};
    s->users = aligned_alloc(64, p->layout.in_slots * sizeof *s->users);
    if (s->users == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    memset(s->users, 0, p->layout.in_slots * sizeof *s->users);
    int rc = make_room(s, pb_tile_pool_room_bytes(&shape), room_bytes, err, room);
    rc = rc ? rc
            : pb_tile_pool_create(&shape, room, p->engine.whole.used ? take_load : take_tile, s,
                                  err, &s->pool, out_fd);
    s->engine.stream.in = s->pool.in;
    s->engine.stream.out = s->pool.out;
    return rc;
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
    s->engine.to_device_rate = rates.to_device;
    s->engine.from_device_rate = rates.from_device;
    (void)pthread_mutex_unlock(&rates.lock);
}

/* Resident kernels of other sessions keep running meanwhile. */
static int set_up(struct pb_served *s, uint64_t room_bytes, struct pb_err *err,
                  struct pb_tile_room *room, int *out_fd)
{
    uint64_t start = pb_clock_mono_ns();
    int rc = s->on_gpu ? pb_device_use(s->pass->engine.device_index, err) : 0;
    rc = rc ? rc : make_pool(s, room_bytes, err, room, out_fd);
    s->engine.pin_ns = pb_clock_mono_ns() - start;
    if (rc == 0 && s->on_gpu)
        measure_link(s);
    rc = rc ? rc : pb_engine_make(&s->engine, err);
    s->engine.set_up_ns = pb_clock_mono_ns() - start;
    return rc;
}

/* Makes what the request sends in addition to the plan, and the engine. */
static int make_engine(struct pb_served *s, const struct pb_served_request *said,
                       struct pb_served_tail *tail, struct pb_err *err)
{
    const struct pb_plan *pass = s->pass;
    int rc = 0;
    if (pass->engine.whole.used)
        rc = pb_said_blocks_take(pass, said, tail, err, &s->said);
    if (rc == 0 && tail->at != tail->bytes)
        rc = pb_fail(err, PB_E_SERVICE_PROTOCOL, "a request with more facts than its plan has");
    s->engine.stream.whole_blocks = s->said != NULL ? s->said->blocks : NULL;
    /* Readers that compute a gate do not report left-out tiles: nothing is checked then. */
    if (rc == 0 && (pass->layout.gate.chain == NULL || pass->engine.whole.used))
        rc = pb_engine_arrivals(&s->engine, false, pb_chain_rounds(pass->work.chain) > 1, err);
    return rc;
}

/* A pass that decodes on the device has the job's store for its pixels. It is emptied if the other
 * process does not expect its content, for example before another tile of a grid. */
static int take_kept(struct pb_served *s, const struct pb_served_request *said,
                     struct pb_served_job *job, struct pb_err *err)
{
    if (!s->pass->engine.whole.used || !said->finds)
        pb_whole_kept_drop(job->kept);
    s->finds = !pb_whole_kept_is_empty(job->kept);
    if (!s->pass->engine.whole.used)
        return 0;
    if (job->kept == NULL && s->pass->engine.whole.keeps && s->pass->is_earlier &&
        (job->kept = pb_whole_kept_create()) == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    s->engine.stream.kept = job->kept;
    return 0;
}

int pb_served_create(const struct pb_plan_request *base, const struct pb_served_request *said,
                     struct pb_served_tail *tail, struct pb_served_job *job, struct pb_err *err,
                     struct pb_served **out_served, int *out_fd)
{
    struct pb_served *s = calloc(1, sizeof *s);
    int fd = -1;
    if (s == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    int rc = pb_plan_serve(base, said, tail, err, &s->plan, &s->pass);
    if (rc < 0) {
        free(s);
        return rc;
    }
    pb_engine_init(&s->engine, s->pass, NULL);
    s->engine.stream.limits = &base->config->limits;
    s->engine.stream.whole_device = base->whole_device;
    s->on_gpu = s->pass->engine.cuda && base->whole_device == NULL;
    rc = make_engine(s, said, tail, err);
    rc = rc ? rc : take_kept(s, said, job, err);
    rc = rc ? rc : set_up(s, said->room_bytes, err, &job->room, &fd);
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
    return served->engine.type->sync;
}

uint32_t pb_served_threads(const struct pb_served *served)
{
    return served->engine.type->threads(served->engine.exec);
}

bool pb_served_finds(const struct pb_served *served)
{
    return served->finds;
}

uint32_t pb_served_stored(const struct pb_served *served)
{
    return served->engine.stream.n_stored;
}

int pb_served_start(struct pb_served *s, struct pb_err *err)
{
    return pb_engine_start(&s->engine, err);
}

int pb_served_wait(struct pb_served *s, int64_t timeout_ms, struct pb_err *err)
{
    int rc = pb_engine_wait(&s->engine, timeout_ms, err);
    s->is_complete = rc == 0 && !atomic_load(&s->is_aborted);
    return rc;
}

void pb_served_abort(struct pb_served *s)
{
    atomic_store(&s->is_aborted, true);
    pb_stream_abort(&s->engine.stream);
}

void pb_served_end(const struct pb_served *s, struct pb_remote_end *out)
{
    const struct pb_stage_counter *c = &s->engine.stream.compute;
    *out = (struct pb_remote_end){.tiles = atomic_load(&c->tiles),
                                  .bytes = atomic_load(&c->bytes),
                                  .busy_ns = atomic_load(&c->busy_ns),
                                  .parked_ns = pb_engine_parked_ns(&s->engine)};
    pb_engine_link(&s->engine, &out->link);
}

/* Does not abort a session that has ended: the other process may have results to take. Repeats the
 * wake-ups, because the other process may undo them. */
static void end_threads(struct pb_served *s)
{
    for (int64_t wait_ms = 0; pb_engine_join(&s->engine, wait_ms) == -ETIMEDOUT; wait_ms = AGAIN_MS)
        pb_stream_abort(&s->engine.stream);
}

/* Frees the memory of the device; called while no kernel is resident. */
static void take_down(void *served)
{
    struct pb_served *s = served;
    pb_engine_fini(&s->engine);
    if (!pb_device_left_behind())
        pb_tile_pool_close(&s->pool);
    pb_said_blocks_free(s->said);
    pb_plan_destroy(s->plan);
    free(s->users);
    free(s);
}

/* Device memory: copies of slots if a copy engine transfers them, and the executor's memory. */
static size_t device_bytes(const struct pb_served *s)
{
    const struct pb_plan *pass = s->pass;
    return pass->layout.in_slots * wic_slot_stride(pass->layout.in_slot_bytes) +
           pass->layout.out_slots * wic_slot_stride(pass->layout.out_slot_bytes) +
           (s->engine.type->held != NULL ? (size_t)s->engine.type->held(s->engine.exec) : 0);
}

void pb_served_destroy(struct pb_served *s)
{
    if (s == NULL)
        return;
    end_threads(s);
    if (s->is_complete && s->engine.type->keep != NULL)
        s->engine.type->keep(s->engine.exec);
    if (s->engine.exec != NULL && s->on_gpu)
        wic_gpu_free_later(take_down, s, device_bytes(s));
    else
        take_down(s);
}

void pb_served_job_waits(struct pb_served_job *job)
{
    pb_whole_kept_drop(job->kept);
}

void pb_served_job_end(struct pb_served_job *job)
{
    pb_tile_room_close(&job->room);
    pb_whole_kept_destroy(job->kept);
    job->kept = NULL;
}
