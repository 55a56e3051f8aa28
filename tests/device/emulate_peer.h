/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_PEER_H
#define PB_EMULATE_PEER_H
/* The parties of wic/peer as threads of the host: each role of each block is a thread, a working
 * warp is a thread, too. */
#include "wic/peer/peer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum emulate_peer_fault {
    EMULATE_PEER_RIGHT,
    EMULATE_PEER_WRONG, /* the last chunk of each way has a wrong byte */
    EMULATE_PEER_LOST,  /* it is not stored */
    EMULATE_PEER_TWICE, /* it is the one before */
};

struct emulate_peer {
    struct wic_peer_plan plan;
    uint32_t parties;
    const struct wic_step *steps;
    size_t step_count;
    enum emulate_peer_fault fault;
    uint32_t absent;  /* bit p: party p never starts */
    uint32_t near;    /* as in the view */
    uint64_t stop_at; /* count of used chunks after which the host stops all; 0: it does not */
    uint64_t limit_ns, beat_ns;
    bool beats; /* the host gives heartbeats */
};

struct emulate_peer_result {
    enum wic_peer_end end[WIC_PARTIES_MAX];
    uint64_t used;  /* chunks */
    uint64_t bytes; /* count that was compared */
    uint64_t wrong; /* bytes, and values */
};

/* Returns when all parties have left. */
void emulate_peer_run(const struct emulate_peer *how, struct emulate_peer_result *out_result);

#ifdef __cplusplus
}
#endif
#endif
