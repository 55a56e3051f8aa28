/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_PEER_INSIDE_H
#define WIC_PEER_INSIDE_H
/* The part of wic/peer without CUDA calls, for backend_peer.cu, tune_peer.cu and tests. */
#include "wic/peer/peer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parties between which the schedule has a way. */
struct wic_peer_ways {
    bool is_used[WIC_PARTIES_MAX][WIC_PARTIES_MAX]; /* index: sender, receiver */
};

/* 0, -EINVAL or -EOPNOTSUPP; sets the sentence. */
int wic_peer_check(const struct wic_peer_options *options, struct wic_peer_ways *out_ways);
/* Threads of a block, and the shared memory that its stages need. */
uint32_t wic_peer_threads(const struct wic_peer_plan *plan);
size_t wic_peer_shared_bytes(const struct wic_peer_plan *plan);
/* Bytes of the rings of a way, and of its words of all lanes. */
size_t wic_peer_ring_bytes(const struct wic_peer_plan *plan);
size_t wic_peer_words_bytes(const struct wic_peer_plan *plan);
/* A plan for GPUs of this many multiprocessors, with `parties` on each. */
int wic_peer_plan_make(uint32_t multiprocessors, uint32_t parties, uint32_t chunk_bytes,
                       enum wic_peer_transport transport, struct wic_peer_plan *out_plan);

#ifdef __cplusplus
}
#endif
#endif
