/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The measurement of one plan. The rate counts from one moment at which tiles came back to another,
 * so neither the beginning nor a batch that is half done falsifies it. */
#include "wic/device/tune.h"

#include "wic/futex.h"
#include "wic/spin.h"

#include <errno.h>

#define HANG_NS        INT64_C(2000000000) /* without a tile done */
#define WARM_BYTES     (UINT64_C(4) << 20) /* that are pulled before the rate counts, or a part of: */
#define WARM_SHARE     4                   /* the slots */
#define BATCHED_ROUNDS 2    /* of all slots count, as results come in bursts where copies batch */
#define TILES_MIN      2    /* that count */
#define LOOKS          1024 /* of the host, between two looks at the kernel */

struct flow {
    struct wic_link *link;
    struct wic_link_tile tile;
    uint64_t window, posted, done;
    bool by_engine;   /* once many are queued */
    int64_t event_ns; /* of the last tile that came back */
    uint64_t first;   /* the rate counts the tiles after these, ... */
    int64_t first_ns; /* ... from then; 0: not yet */
};

static int post_all(struct flow *flow)
{
    int rc = 0;
    while (rc == 0 && flow->posted - flow->done < flow->window) {
        flow->tile.number = flow->posted;
        rc = wic_link_post(flow->link, &flow->tile);
        flow->posted += rc == 0;
    }
    return rc;
}

static void collect(struct flow *flow)
{
    uint64_t before = flow->done;
    while (flow->done < flow->posted && wic_link_done(flow->link, flow->done)) {
        flow->done++;
    }
    if (flow->done > before) {
        flow->event_ns = wic_now_ns();
    } else {
        wic_cpu_relax();
    }
}

/* Copy engines take over after a while, and then batch; pulling is at its pace at once. */
static bool is_warm(const struct flow *flow)
{
    if (flow->by_engine) {
        return flow->done >= flow->window;
    }
    return flow->done * flow->tile.bytes >= WARM_BYTES || flow->done * WARM_SHARE >= flow->window;
}

static bool is_enough(const struct flow *flow, int64_t ns)
{
    uint64_t counted = flow->done - flow->first;
    uint64_t least = flow->by_engine ? BATCHED_ROUNDS * flow->window : 0;
    return flow->first_ns != 0 && flow->event_ns - flow->first_ns >= ns &&
           counted >= (least > TILES_MIN ? least : TILES_MIN);
}

static int look_after(struct flow *flow)
{
    wic_link_beat(flow->link);
    int running = wic_link_running(flow->link);
    if (running != 1) {
        return running < 0 ? running : -EIO;
    }
    return wic_now_ns() - flow->event_ns > HANG_NS ? -ETIMEDOUT : 0;
}

/* Until tiles were counted for so long. */
static int run(struct flow *flow, int64_t ns)
{
    int rc = 0;
    flow->event_ns = wic_now_ns();
    for (uint64_t looks = 1; rc == 0; looks++) {
        rc = post_all(flow);
        collect(flow);
        if (flow->first_ns == 0 && is_warm(flow)) {
            flow->first = flow->done;
            flow->first_ns = flow->event_ns;
        }
        if (is_enough(flow, ns)) {
            return 0;
        }
        if (rc == 0 && looks % LOOKS == 0) {
            rc = look_after(flow);
        }
    }
    return rc;
}

static int run_link(struct wic_link *link, const struct wic_tune_stream *stream, bool by_engine,
                    uint64_t ns, double *out_rate)
{
    const struct wic_link_options *o = &stream->link;
    struct flow flow = {.link = link, .tile = stream->tile, .by_engine = by_engine};
    flow.window = o->in_slots < o->out_slots ? o->in_slots : o->out_slots;
    int rc = wic_link_start(link, 0, 0);
    if (rc != 0) {
        return rc;
    }
    rc = run(&flow, ns > 0 ? (int64_t)ns : 1);
    wic_link_abort(link);
    int left = wic_link_join(link, (int64_t)WIC_LINK_BEAT_NS);
    if (rc != 0 || left != 0) {
        return rc != 0 ? rc : left;
    }
    *out_rate = (double)((flow.done - flow.first) * flow.tile.bytes) * 1e9 /
                (double)(flow.event_ns - flow.first_ns);
    return 0;
}

int wic_tune_measure(void *stream, const struct wic_transfer_plan *plan, uint64_t ns,
                     double *out_rate)
{
    const struct wic_tune_stream *s = (const struct wic_tune_stream *)stream;
    struct wic_link_options options = s->link;
    struct wic_link *link;
    options.plan = *plan;
    int rc = wic_link_create(&options, &link);
    if (rc != 0) {
        return rc;
    }
    bool by_engine = plan->transport == WIC_COPY || plan->engine_backlog > 0;
    rc = run_link(link, s, by_engine, ns, out_rate);
    int destroyed = wic_link_destroy(link);
    return destroyed != 0 ? destroyed : rc;
}
