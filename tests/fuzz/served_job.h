/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_SERVED_JOB_H
#define FUZZ_SERVED_JOB_H
/* A job whose passes the process that owns a device computes, with both processes in this one, and
 * the host in place of the GPU. The job's process makes the map of a pass itself, and sends the
 * blocks of this map: both must find the same pixels of passes before. */
#include "fuzz_check.h"
#include "pipeline/codec/codec.h"
#include "pipeline/run/served/said_blocks.h"
#include "pipeline/run/served/served.h"
#include "pipeline/run/whole/whole_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Demands of the device (tests/unit/whole_host.h), which has those of unit tests. */
#define ck_assert(x)             require(x, #x)
#define ck_assert_msg(x, ...)    require(x, #x)
#define ck_assert_int_eq(a, b)   require((intmax_t)(a) == (intmax_t)(b), #a " == " #b)
#define ck_assert_int_ne(a, b)   require((intmax_t)(a) != (intmax_t)(b), #a " != " #b)
#define ck_assert_int_lt(a, b)   require((intmax_t)(a) < (intmax_t)(b), #a " < " #b)
#define ck_assert_int_le(a, b)   require((intmax_t)(a) <= (intmax_t)(b), #a " <= " #b)
#define ck_assert_uint_eq(a, b)  require((uintmax_t)(a) == (uintmax_t)(b), #a " == " #b)
#define ck_assert_uint_le(a, b)  require((uintmax_t)(a) <= (uintmax_t)(b), #a " <= " #b)
#define ck_assert_ptr_null(p)    require((p) == NULL, #p " is NULL")
#define ck_assert_ptr_nonnull(p) require((p) != NULL, #p " is not NULL")
#include "tests/unit/whole_host.h"

struct served_job {
    struct pb_served_job owner; /* memory of the owner between two passes */
    struct pb_whole_kept *own;  /* memory of the job's process, which has no pixels */
};

/* A request, and the plan that the job's process has made from it. All are borrowed. */
struct served_pass {
    const struct pb_plan_request *base;
    const struct pb_served_request *request;
    const struct pb_served_tail *tail; /* `at`: its end */
    const struct pb_plan *plan;
    const struct pb_said_blocks *said;
    bool is_aborted; /* the job's process ends the pass before its last block */
};

enum {
    SERVED_ROOM_MOST = 4 << 20, /* limits of a pass that is run: bytes of slots, */
    SERVED_LANES_MOST = 8,      /* lanes of the device, */
    SERVED_PRODUCTS_MOST = 4,   /* products, */
    SERVED_TILES_MOST = 16,     /* and tiles */
    SERVED_PAUSE_NS = 200000,
    SERVED_STREAM_MOST = 4096 /* bytes of a block as it is stored */
};

/* A zlib stream of `bytes` zeros. */
struct served_stream {
    uint64_t bytes;
    size_t n;
    unsigned char data[SERVED_STREAM_MOST];
};

static inline const struct served_stream *served_stream_of(uint64_t bytes)
{
    static struct served_stream streams[8];
    static unsigned next;
    for (int i = 0; i < 8; i++)
        if (streams[i].n > 0 && streams[i].bytes == bytes)
            return &streams[i];
    struct served_stream *s = &streams[next++ % 8];
    const size_t room = pb_codec_deflate.bound((size_t)bytes);
    const struct pb_codec_blocks blocks = {.bytes = (size_t)bytes};
    void *context = NULL, *zeros = calloc(1, (size_t)bytes), *made = malloc(room);
    require(zeros != NULL && made != NULL &&
                pb_codec_deflate.create(pb_codec_deflate.default_level, &blocks, &context) == 0 &&
                pb_codec_deflate.encode(context, zeros, (size_t)bytes, made, room, &s->n) == 0,
            "no memory");
    s->bytes = bytes;
    s->n = s->n < sizeof s->data ? s->n : sizeof s->data;
    memcpy(s->data, made, s->n);
    pb_codec_deflate.destroy(context);
    free(made);
    free(zeros);
    return s;
}

/* Writes a block of zeros as a file stores it, if it is long enough for that. */
static inline void served_store(const struct pb_whole_piece *piece, unsigned char *to)
{
    memset(to, 0, (size_t)piece->bytes);
    if (piece->decoded_bytes == 0 || piece->decoded_bytes > 1 << 20)
        return;
    const struct served_stream *s = served_stream_of(piece->decoded_bytes);
    memcpy(to, s->data, s->n < piece->bytes ? s->n : (size_t)piece->bytes);
}

/* Sends the next load, or the end. Returns false if no slot is free, and after the end. */
static inline bool served_send(struct pb_tile_pool *pool, const struct pb_whole_map *map,
                               struct pb_whole_load *load)
{
    const uint64_t most = map->plan->layout.in_slot_bytes;
    struct pb_whole_load next;
    struct wic_slot slot;
    if (pb_whole_map_load(map, load->end, most, NULL, &next) != PB_WHOLE_LOAD) {
        wic_close(pool->in);
        return false;
    }
    if (wic_acquire(pool->in, 0, &slot) != 0)
        return false;
    for (uint32_t i = next.first; i < next.end; i++)
        served_store(&map->piece[i], (unsigned char *)slot.data + map->piece[i].stored_at -
                                         map->piece[next.first].stored_at);
    memcpy(slot.user, &next, sizeof next);
    const int rc = wic_publish(pool->in, &slot, (size_t)pb_whole_load_bytes(map, &next));
    require(rc == 0 || rc == -ECANCELED, "a load that does not fit its slot");
    *load = next;
    return true;
}

/* Sends all blocks, and takes all results, until the owner ends the pass. */
static inline void served_exchange(struct pb_tile_pool *pool, const struct pb_whole_map *map)
{
    struct pb_whole_load load = {.end = 0};
    struct wic_slot slot;
    int rc = 0;
    while (rc == 0 || rc == -ETIMEDOUT) {
        const bool sent = served_send(pool, map, &load);
        rc = wic_wait(pool->out, sent ? 0 : SERVED_PAUSE_NS, &slot);
        if (rc == 0)
            rc = wic_release(pool->out, &slot);
    }
}

static inline struct pb_tile_pool_shape served_shape(const struct pb_plan *p)
{
    return (struct pb_tile_pool_shape){p->layout.in_slots, p->layout.out_slots,
                                       p->layout.in_slot_bytes, p->layout.out_slot_bytes, 0};
}

/* True if the pass takes a short time, and its client sends no answers of a gate or numbers of
 * rounds. */
static inline bool served_is_small(const struct served_pass *pass)
{
    const struct pb_plan *p = pass->plan;
    const struct pb_tile_pool_shape shape = served_shape(p);
    return pb_grid_count(&p->layout.grid) <= SERVED_TILES_MOST &&
           p->layout.workers <= SERVED_LANES_MOST && p->engine.out.n <= SERVED_PRODUCTS_MOST &&
           pb_tile_pool_room_bytes(&shape) <= SERVED_ROOM_MOST &&
           pass->request->room_bytes <= SERVED_ROOM_MOST && p->layout.gate.chain == NULL &&
           p->layout.sums.chain.n == 0 && p->work.warp != PB_CHAIN_WARP_AREAS;
}

/* Runs the pass; fd: the words of its channels. Returns true if it is complete. */
static inline bool served_run(struct served_job *job, const struct served_pass *pass,
                              struct pb_served *served, int fd, const struct pb_whole_map *map)
{
    const struct pb_tile_pool_shape shape = served_shape(pass->plan);
    struct pb_tile_room room = {.slots = NULL};
    struct pb_tile_pool pool = {.base = NULL};
    struct pb_err err = {0};
    int rc = pb_tile_room_open(job->owner.room.fd, pb_tile_pool_room_bytes(&shape), &err, &room);
    rc = rc ? rc : pb_tile_pool_open(&shape, &room, fd, &err, &pool);
    require(rc == 0, "both sides have different slots");
    rc = pb_served_start(served, &err);
    if (rc == 0 && pass->is_aborted)
        pb_served_abort(served);
    else if (rc == 0)
        served_exchange(&pool, map);
    rc = rc ? rc : pb_served_wait(served, -1, &err);
    if (rc < 0 && !pass->is_aborted)
        check_err(&err);
    require(err.code != PB_E_SYSTEM, err.msg); /* both sides keep to the protocol */
    pb_tile_pool_close(&pool);
    pb_tile_room_close(&room);
    return rc == 0 && !pass->is_aborted;
}

/* Serves a pass whose blocks are sent as they are stored, if it is small. Returns false if the job
 * ends with it. */
static inline bool served_serve(struct served_job *job, const struct served_pass *pass)
{
    struct pb_stream stream = {
        .plan = pass->plan, .whole_blocks = pass->said->blocks, .kept = job->own};
    struct pb_served_tail tail = {.data = NULL};
    struct pb_served *served = NULL;
    struct pb_exec_whole *e = NULL;
    struct pb_err err = {0};
    int fd = -1;
    if (!served_is_small(pass))
        return false;
    require(pb_served_tail_add(&tail, pass->tail->data, pass->tail->at, &err) == 0, err.msg);
    int rc = pb_served_create(pass->base, pass->request, &tail, &job->owner, &err, &served, &fd);
    pb_served_tail_free(&tail);
    if (rc < 0) {
        check_err(&err);
        return false;
    }
    require(pass->request->finds || !pb_served_finds(served), "pixels that the job has forgotten");
    if (!pb_served_finds(served))
        pb_whole_kept_drop(job->own);
    require(whole_open(&stream, &err, &e) == 0, "only the owner has a map");
    const bool complete = served_run(job, pass, served, fd, &e->map);
    (void)close(fd);
    if (complete)
        whole_keep(e);
    whole_close(e);
    pb_served_destroy(served);
    require(!complete ||
                pb_whole_kept_is_empty(job->own) == pb_whole_kept_is_empty(job->owner.kept),
            "one side has pixels of the pass");
    return complete;
}
#endif
