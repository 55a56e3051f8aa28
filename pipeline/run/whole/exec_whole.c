/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Executor for blocks that readers send as their files store them: it decodes them on the
 * device, into planes of the scene's pixels there; tiles are parts of these planes. Therefore
 * pixels that tiles share are sent and decoded once, and the neighbours of a tile are adjacent in
 * memory. Everything is allocated here, before the first tile. */
#include "pipeline/run/whole/whole_inside.h"
#include "pipeline/plan/staged.h"
#include "pipeline/plan/exchange.h"

#include "config/base/clock.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/layout.h"
#include "wic/device/pause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define HANG_NS   (60 * SECOND_NS)

enum { NAP_NS = 10000, STEPS = 256, THROUGH = 4, FLIGHTS_A_LANE = 8, SLOT_BYTES = 64 };

/* --- events ---------------------------------------------------------------------------------- */

/* Numbers the events; returns their count. */
static uint32_t number_events(struct pb_exec_whole *e)
{
    const uint32_t count[WHOLE_EVENTS] = {[EVENT_SHARED] = 1,
                                          [EVENT_GATE] = 1,
                                          [EVENT_PLANES] = PB_WHOLE_PAGE_EVENTS,
                                          [EVENT_SLOT] = e->map.plan->layout.in_slots,
                                          [EVENT_BEGUN] = e->n_flights,
                                          [EVENT_FLIGHT] = e->n_flights,
                                          [EVENT_LANE] = e->n_lanes,
                                          [EVENT_STRIP] = e->map.plan->engine.out.strips,
                                          [EVENT_ENCODING] = PB_OUT_BATCHES,
                                          [EVENT_BATCH] = PB_OUT_BATCHES,
                                          [EVENT_DOWN] = WHOLE_DOWNS,
                                          [EVENT_SENT] = e->map.n_groups,
                                          [EVENT_DECODING] = e->map.n_groups,
                                          [EVENT_DECODED] = e->map.n_groups};
    uint32_t n = 0;
    for (int kind = 0; kind < WHOLE_EVENTS; kind++) {
        e->event_at[kind] = n;
        n += count[kind];
    }
    return n;
}

void whole_waited(struct pb_exec_whole *e, enum pb_device_wait wait, uint64_t since_ns)
{
    atomic_fetch_add(&e->clock.waited_ns[wait], pb_clock_mono_ns() - since_ns);
}

int whole_take_result(struct pb_exec_whole *e, int64_t timeout_ns, struct wic_slot *out)
{
    const int rc = wic_acquire(e->stream->out, timeout_ns, out);
    return rc == -EPIPE ? -EPROTO : rc;
}

int whole_send_result(struct pb_exec_whole *e, const struct wic_slot *slot, size_t bytes)
{
    const int rc = wic_publish(e->stream->out, slot, bytes);
    return rc == -EPIPE ? -EPROTO : rc;
}

int whole_wait_event(struct pb_exec_whole *e, uint32_t event, enum pb_device_wait wait,
                     const char *what, struct pb_err *err)
{
    struct wic_gpu_wait poll = {{0, 0}, 0, false};
    const struct timespec nap = {.tv_nsec = NAP_NS};
    uint64_t since = pb_clock_mono_ns();
    int rc;
    while ((rc = e->ops->happened(e->device, event, what, err)) == 0) {
        if (wic_gpu_hangs(&poll, pb_clock_mono_ns(), HANG_NS))
            break;
        nanosleep(&nap, NULL);
    }
    wic_gpu_waited(&poll);
    whole_waited(e, wait, since);
    if (rc == 0)
        return pb_fail(err, PB_E_DEVICE_LOST,
                       "GPU timeout: %s took over %d s; the process must be restarted", what,
                       (int)(HANG_NS / SECOND_NS));
    return rc < 0 ? rc : 0;
}

int whole_note_work(struct pb_exec_whole *e, enum pb_device_work work, uint32_t from, uint32_t to,
                    struct pb_err *err)
{
    uint64_t begin = 0, end = 0;
    int rc = e->ops->when(e->device, from, &begin, err);
    rc = rc ? rc : e->ops->when(e->device, to, &end, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&e->clock.lock);
    pb_spans_add(&e->clock.worked[work], begin, end);
    pb_spans_add(&e->clock.occupied, begin, end);
    pthread_mutex_unlock(&e->clock.lock);
    return 0;
}

void whole_note_decoded(struct pb_exec_whole *e, uint32_t group)
{
    pthread_mutex_lock(&e->clock.lock);
    e->clock.progress = (struct whole_progress){
        pb_clock_mono_ns(), pb_spans_covered(&e->clock.worked[PB_DEVICE_DECODE]), group + 1};
    pthread_mutex_unlock(&e->clock.lock);
}

/* --- making ---------------------------------------------------------------------------------- */

static int open_link(struct pb_exec_whole *e, uint32_t link, uint32_t slots, size_t slot_bytes,
                     struct pb_err *err)
{
    struct wic_options options = {.slots = slots, .slot_bytes = slot_bytes};
    size_t bytes = (wic_channel_bytes(&options) + 63) / 64 * 64;
    void *memory = e->link_memory[link] = aligned_alloc(64, bytes);
    if (memory == NULL || wic_channel_init(memory, &options, &e->link[link]) < 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    return 0;
}

static int open_links(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan_layout *layout = &e->map.plan->layout;
    const size_t head_bytes = layout->format.head_bytes;
    const uint32_t slots[WHOLE_LINKS] = {[WHOLE_COPIES] = layout->in_slots,
                                         [WHOLE_STEPS] = STEPS,
                                         [WHOLE_FLIGHTS] = e->n_flights,
                                         [WHOLE_THROUGH] = THROUGH,
                                         [WHOLE_LOTS] = THROUGH,
                                         [WHOLE_BATCHES] = PB_OUT_BATCHES};
    int rc = 0;
    for (uint32_t i = 0; i < WHOLE_LINKS && rc == 0; i++)
        rc = open_link(e, i, slots[i],
                       i == WHOLE_STEPS && head_bytes > SLOT_BYTES ? head_bytes : SLOT_BYTES, err);
    return rc;
}

static int make_map(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan *plan = e->stream->plan;
    struct pb_raw_blocks blocks[PB_FILES_MAX] = {{.n = 0}};
    const uint64_t all = plan->engine.whole.device_bytes;
    const uint64_t out = plan->engine.out.device_bytes + pb_plan_gate_device_bytes(plan);
    int rc = 0;
    for (size_t i = 0; i < plan->work.n_sources && rc == 0; i++) {
        if (e->stream->whole_blocks != NULL)
            e->source[i].blocks = e->stream->whole_blocks[i];
        else if (plan->work.source[i].n_bands > 0)
            rc = pb_raw_blocks_open(&e->source[i].blocks, e->stream->raster[i],
                                    &plan->engine.whole.how[i], err);
        blocks[i] = e->source[i].blocks;
    }
    rc = rc ? rc : pb_whole_kept_map(e, blocks, all > out ? all - out : 0, err);
    e->map.blocks = NULL; /* the sources have copies */
    if (rc == 0 && ((e->finish.left = calloc(e->map.n_bands, sizeof *e->finish.left)) == NULL ||
                    (e->read.given = calloc(e->map.n_groups + 1, sizeof *e->read.given)) == NULL ||
                    (e->feed.held = calloc(plan->layout.in_slots, sizeof *e->feed.held)) == NULL))
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    pb_whole_share_init(&e->read.share, plan->engine.whole.core_rate,
                        plan->engine.whole.device_rate, plan->engine.whole.link_rate);
    for (uint32_t b = 0; b < e->map.n_bands && rc == 0; b++)
        e->finish.left[b] = e->map.band[b].end - e->map.band[b].first + 1;
    return rc;
}

static int open_device(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_whole_counts counts = {.queues = QUEUE_LANE + e->n_lanes,
                                           .events = number_events(e),
                                           .lanes = e->n_lanes,
                                           .first_lane = QUEUE_LANE,
                                           .first_slow = QUEUE_DECODE,
                                           .n_slow = DECODE_QUEUES};
    return e->ops->open(e->map.plan, &counts, err, &e->device);
}

static int take_memory(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_whole_map *map = &e->map;
    bool in_place = map->plan->engine.whole.in_place && pb_plan_out_has_planes(map->plan);
    const bool managed = map->plan->engine.whole.managed; /* a lot has one memory then */
    int rc = 0;
    for (uint32_t i = 0; i < pb_whole_map_rooms(map) && rc == 0; i++) {
        void *memory[3] = {NULL};
        if (!managed)
            rc = e->ops->memory(e->device, map->pixel_bytes, err, &memory[0]);
        rc = rc ? rc : e->ops->memory(e->device, map->stored_bytes, err, &memory[1]);
        if (!managed)
            rc = rc ? rc : e->ops->memory(e->device, map->decoded_bytes, err, &memory[2]);
        e->room[i] = (struct whole_room){memory[0], memory[1], managed ? memory[1] : memory[2]};
        if (e->taken.in_place)
            e->room[i].pixels = e->stream->kept->pixels;
    }
    e->dispatch.lane_out = calloc(e->n_lanes, sizeof *e->dispatch.lane_out);
    if (e->dispatch.lane_out == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    for (uint32_t i = 0; i < e->n_lanes && rc == 0 && map->plan->engine.out.n == 0; i++) {
        void *memory = NULL;
        rc = e->ops->memory(e->device, in_place ? 0 : e->map.plan->layout.out_slot_bytes, err,
                            &memory);
        e->dispatch.lane_out[i] = memory;
    }
    return rc;
}

void whole_close(struct pb_exec_whole *e)
{
    if (e == NULL)
        return;
    if (e->ops != NULL)
        e->ops->close(e->device);
    whole_out_close(e);
    whole_reduce_close(e);
    whole_valid_close(e);
    whole_planes_close(e);
    pb_part_exchange_fini(&e->dispatch.parts);
    for (size_t i = 0; i < PB_FILES_MAX; i++) {
        if (e->stream->whole_blocks == NULL)
            pb_raw_blocks_free(&e->source[i].blocks);
        pb_raster_close(e->dispatch.repair[i]);
    }
    pb_whole_map_fini(&e->map);
    for (uint32_t i = 0; i < WHOLE_LINKS; i++) {
        wic_channel_fini(e->link[i]);
        free(e->link_memory[i]);
    }
    free(e->dispatch.lane_out);
    free(e->tables.decode);
    free(e->tables.by_core);
    free(e->feed.held);
    free(e->read.given);
    free(e->finish.left);
    pthread_mutex_destroy(&e->read.lock);
    pthread_mutex_destroy(&e->clock.lock);
    pthread_mutex_destroy(&e->read.share_lock);
    free(e);
}

int whole_open(struct pb_stream *stream, struct pb_err *err, struct pb_exec_whole **out)
{
    struct pb_exec_whole *e = calloc(1, sizeof *e);
    if (e == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    pthread_mutex_init(&e->read.lock, NULL);
    pthread_mutex_init(&e->clock.lock, NULL);
    pthread_mutex_init(&e->read.share_lock, NULL);
    e->stream = stream;
    e->n_lanes = stream->plan->layout.workers;
    e->n_flights = e->n_lanes * FLIGHTS_A_LANE; /* a lane's tiles follow each other in its queue */
    int rc = make_map(e, err);
    if (rc < 0) {
        whole_close(e);
        return rc;
    }
    *out = e;
    return 0;
}

static void exec_destroy(void *exec)
{
    struct pb_exec_whole *e = exec;
    if (e != NULL)
        pb_residency_part(&e->resident);
    whole_close(e);
}

static int exec_create(struct pb_stream *stream, struct pb_err *err, void **out_exec)
{
    struct pb_exec_whole *e = NULL;
    int rc = whole_open(stream, err, &e);
    if (rc < 0 || e == NULL)
        return rc;
    e->ops = stream->whole_device;
#ifdef PB_HAVE_CUDA
    if (e->ops == NULL)
        e->ops = &pb_whole_cuda;
#endif
    if (e->ops == NULL) {
        exec_destroy(e);
        return pb_fail(err, PB_E_DEVICE_MISSING, "this build has no CUDA");
    }
    rc = open_device(e, err);
    rc = rc ? rc : take_memory(e, err);
    rc = rc ? rc : whole_planes_open(e, err);
    rc = rc ? rc : whole_out_open(e, err);
    rc = rc ? rc : whole_tables_make(e, err);
    rc = rc ? rc : whole_reduce_open(e, err);
    rc = rc ? rc : whole_valid_open(e, err);
    rc = rc ? rc : whole_rounds_open(e, err);
    rc = rc ? rc : whole_gate_open(e, err);
    rc = rc ? rc : pb_plan_part_exchange(e->map.plan, err, &e->dispatch.parts);
    rc = rc ? rc : open_links(e, err);
    if (rc < 0) {
        exec_destroy(e);
        return rc;
    }
    pb_residency_join_launches(&e->resident, e->map.plan->work.priority);
    *out_exec = e;
    return 0;
}

/* --- running --------------------------------------------------------------------------------- */

static uint32_t exec_threads(const void *exec)
{
    (void)exec;
    return WHOLE_THREADS;
}

static void run(struct pb_exec_whole *e, uint32_t thread)
{
    static int (*const body[WHOLE_THREADS])(struct pb_exec_whole *, struct pb_err *) = {
        whole_feed, whole_release, whole_dispatch, whole_finish, whole_collect};
    struct pb_err err = {0};
    (void)prctl(PR_SET_TIMERSLACK, (unsigned long)NAP_NS / 4); /* naps are short */
    int rc = e->ops->use(e->device, &err);
    rc = rc ? rc : body[thread](e, &err);
    if (rc == 0)
        return;
    if (rc != -ECANCELED)
        (void)pb_fail(&err, PB_E_SYSTEM, "the channels between the stages failed: %s",
                      strerror(-rc));
    if (err.code != PB_OK)
        pb_stream_fail(e->stream, &err);
    for (uint32_t i = 0; i < WHOLE_LINKS; i++) /* wakes the threads that wait for each other */
        wic_abort(e->link[i]);
    pb_whole_pages_abort(e->planes.pages);
}

static void exec_run(void *exec, uint32_t thread)
{
    struct pb_exec_whole *e = exec;
    run(e, thread);
    if (atomic_fetch_add(&e->ended, 1) + 1 == WHOLE_THREADS)
        pb_residency_part(&e->resident);
}

void whole_count_blocks(const struct pb_exec_whole *e, struct pb_device_report *out)
{
    out->blocks = e->read.compressed;
    out->core_blocks = e->read.by_cores;
}

static void exec_link(const void *exec, struct pb_link_report *out)
{
    const struct pb_exec_whole *e = exec;
    *out =
        (struct pb_link_report){.used = true,
                                .to_device_bytes = e->feed.in_bytes,
                                .from_device_bytes = e->dispatch.out_bytes + e->collect.block_bytes,
                                .launches = e->finish.launched,
                                .device = {.used = true}};
    whole_count_blocks(e, &out->device);
    out->device.kept_bytes = e->taken.bytes;
    out->device.looked = e->valid.n > 0;
    out->device.has_valid = atomic_load(&e->valid.found);
    whole_planes_report(e, &out->device);
    out->device.occupied_ns = pb_spans_covered(&e->clock.occupied);
    for (int i = 0; i < PB_DEVICE_WORKS; i++)
        out->device.work_ns[i] = pb_spans_covered(&e->clock.worked[i]);
    for (int i = 0; i < PB_DEVICE_WAITS; i++)
        out->device.wait_ns[i] = atomic_load(&e->clock.waited_ns[i]);
}

static uint64_t exec_held(const void *exec)
{
    const struct pb_exec_whole *e = exec;
    const struct pb_whole_kept *kept = e->stream->kept;
    const bool leaves = kept != NULL && kept->pixels != NULL && kept->pixels == e->room[0].pixels;
    return pb_whole_map_bytes(&e->map) - (leaves ? e->map.pixel_bytes : 0) +
           e->map.plan->engine.out.device_bytes;
}

void whole_keep(struct pb_exec_whole *e)
{
    const struct pb_plan *plan = e->map.plan;
    if (e->stream->kept != NULL && plan->engine.whole.keeps && plan->is_earlier)
        pb_whole_kept_put(e->stream->kept, e);
}

static void exec_keep(void *exec)
{
    whole_keep(exec);
}

const struct pb_exec_type pb_exec_whole = {
    .sync = "stream",
    .create = exec_create,
    .run = exec_run,
    .threads = exec_threads,
    .destroy = exec_destroy,
    .link = exec_link,
    .held = exec_held,
    .keep = exec_keep,
    .read = whole_read,
};
