/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_EXCHANGE_H
#define WIC_EXCHANGE_H
/* An exchange among threads: a channel for each way of a pattern, and one thread for each party,
 * which walks the schedule and moves its chunks. Whoever waits is parked.
 *
 *   wic_exchange_create(pattern, &params, &x, text, sizeof(text));
 *   wic_exchange_run(x, &party, text, sizeof(text));       in a thread of each party, once
 *   wic_exchange_destroy(x);
 *
 * Both ends keep to `reach`: a receiver holds the chunks that one is worked on with, and a sender
 * goes on as far as the ring has room. What a sender tells reaches every party, also those that do
 * not take part in the step. */
#include "wic/pattern/replay.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct wic_exchange;

/* Chunks that one is worked on with; all of them belong to the same step and lie in their slots. */
struct wic_neighbours {
    const void *const *data; /* step->chunk_bytes each, in their order */
    uint32_t count;
    uint32_t middle; /* the chunk itself */
};

/* What a party does with its chunks. Functions return 0 or a negative errno, which ends the
 * exchange for all parties. */
struct wic_party {
    uint32_t number;
    /* Fills a chunk of step->chunk_bytes. 1: there is none, and the open way ends here. */
    int (*send)(void *context, const struct wic_step *step, uint64_t chunk, void *data);
    /* Works on a chunk. */
    int (*receive)(void *context, const struct wic_step *step, uint64_t chunk,
                   const struct wic_neighbours *with);
    /* The value to be told of a step that the party has sent. NULL: 0. */
    uint64_t (*value)(void *context, const struct wic_step *step, uint64_t count);
    void *context;
};

/* -EINVAL: params are no good for the pattern; -ENOMEM. Thread: init. */
int wic_exchange_create(const struct wic_pattern *pattern, const struct wic_pattern_params *params,
                        struct wic_exchange **out_exchange, char *text, size_t text_bytes);

/* The party's part, until the end of the schedule. Every party must run. 0; -ECANCELED: aborted, or
 * another party failed; else what a function of the party returned, or the schedule's errno (with
 * the reason in text). Thread: one of each party. */
int wic_exchange_run(struct wic_exchange *exchange, const struct wic_party *party, char *text,
                     size_t text_bytes);

/* Ends it for all parties, wherever they wait. Thread: any. */
void wic_exchange_abort(struct wic_exchange *exchange);

/* No party may run. NULL is fine. */
void wic_exchange_destroy(struct wic_exchange *exchange);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
