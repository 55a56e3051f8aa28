/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_WAY_H
#define WIC_WAY_H
/* Which way the tiles of a link go whose plan has an engine_backlog: pulled by the kernel, or in
 * batches by copy engine; and when a batch is worth a copy. Pure arithmetic on bytes; one thread.
 *
 * Pulling has the lower latency, the engine the higher throughput. A backlog says that pulling does
 * not keep up, or that the host was held up for a moment. While the engine works, batches gather
 * and are a backlog themselves, so it does not say how fast tiles arrive: after a while pulling is
 * tried again, and the engine takes over again if the backlog grows or stays. Each trial in vain
 * makes the time to the next one longer. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIC_WAY_CALM     16u   /* a backlog under this part of the threshold is none */
#define WIC_WAY_TRIAL    16u   /* times the threshold: what is pulled on trial */
#define WIC_WAY_PATIENCE 16u   /* times the threshold: what goes by engine between two trials, */
#define WIC_WAY_LONGEST  1024u /* at least and at most */
#define WIC_WAY_FACTOR   8u    /* by which that grows and shrinks */

struct wic_way {
    size_t threshold; /* plan.engine_backlog; 0: the way does not change */
    bool engine;      /* the next tile goes by copy engine */
    bool trial;       /* it is pulled on trial */
    uint64_t bytes;   /* posted since the way changed */
    uint64_t patience;
};

static inline void wic_way_reset(struct wic_way *way, size_t threshold, bool engine)
{
    way->threshold = threshold;
    way->engine = engine;
    way->trial = false;
    way->bytes = 0;
    way->patience = (uint64_t)WIC_WAY_PATIENCE * threshold;
}

static inline void wic_way_change(struct wic_way *way, bool engine, bool trial)
{
    way->engine = engine;
    way->trial = trial;
    way->bytes = 0;
}

static inline void wic_way_end_trial(struct wic_way *way, bool in_vain)
{
    const uint64_t least = (uint64_t)WIC_WAY_PATIENCE * way->threshold;
    const uint64_t most = (uint64_t)WIC_WAY_LONGEST * way->threshold;
    uint64_t patience = way->patience / WIC_WAY_FACTOR;
    if (in_vain) {
        patience = way->patience * WIC_WAY_FACTOR;
        wic_way_change(way, true, false);
    }
    way->trial = false;
    way->patience = patience < least ? least : patience > most ? most : patience;
}

/* For the next tile, of so many bytes. backlog: input bytes of the `tiles` under way; waiting: some
 * of them wait for a batch. One tile alone is there sooner when it is pulled, and none is pulled
 * past one that waits. Returns way->engine. */
static inline bool wic_way_choose(struct wic_way *way, size_t bytes, size_t backlog, uint64_t tiles,
                                  bool waiting)
{
    const size_t threshold = way->threshold;
    if (threshold == 0) {
        return way->engine;
    }
    if (way->trial) {
        if (backlog >= 2 * threshold || way->bytes >= (uint64_t)WIC_WAY_TRIAL * threshold) {
            wic_way_end_trial(way, backlog >= threshold);
        }
    } else if (!way->engine) {
        if (tiles >= 2 && backlog >= threshold) {
            wic_way_change(way, true, false);
        }
    } else if (!waiting && backlog <= threshold / WIC_WAY_CALM) {
        wic_way_reset(way, threshold,
                      false); /* trials under another load say nothing of the next */
    } else if (!waiting && backlog < 2 * threshold && way->bytes >= way->patience) {
        wic_way_change(way, false, true);
    }
    way->bytes += bytes;
    return way->engine;
}

/* Bytes that one copy takes at most, of a ring of slots. Batches share the ring: it also has those
 * that are computed, that come back and that gather. */
static inline size_t wic_batch_most(uint64_t slots, size_t slot_bytes)
{
    const size_t part = (size_t)slots * slot_bytes / 6, most = (size_t)8 << 20;
    return part < most ? part : most;
}

/* Of one direction, from their copy to the end of the work on them (or their arrival at the host):
 * one that is copied, one that waits, one that is worked on. More of them only make each other
 * wait, as a copy costs some 3 us beside its bytes. */
#define WIC_BATCHES_MAX 3u

/* Whether the tiles that are ready for a copy get one. With none under way, they do; else those
 * that gather until one is through are as many as the load asks for. */
static inline bool wic_batch_is_due(uint32_t batches, size_t ready, size_t most)
{
    const size_t quarter = (size_t)1 << 18, worth = quarter < most / 2 ? quarter : most / 2;
    return batches == 0 || (batches < WIC_BATCHES_MAX && ready > 0 && ready >= worth);
}
#endif
