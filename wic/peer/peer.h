/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_PEER_H
#define WIC_PEER_H
/* Channels between resident kernels: of GPUs that can access the memory of each other, or of one
 * GPU (loopback). Chunks, words and credits are sent from kernel to kernel; the host starts the
 * kernels and waits for their end.
 *
 *   sender                                 receiver
 *   ring (WIC_PEER_PULL)                   ring (the other transports)
 *   credit = number of chunks taken  <==   posted by one warp when a chunk is used
 *   posted by one warp               ==>   ready[slot] = number + 1 | value
 *
 * A word is stored by the other party and polled in local memory, by one warp of a block. The
 * working warps are parked at a named barrier until it has seen the word. The kernels' side is
 * wic/peer/peer.cuh.
 *
 * The parties walk the steps of a schedule (wic/pattern/schedule.h), so a ring of parties, fan-in
 * and fan-out are patterns. Each way between two parties has a ring for each lane. Lane b belongs
 * to block b of both kernels; the chunk at place p of its way takes lane p % lanes. A block makes
 * and uses the chunks of its lane in the order of the schedule. Blocks of a party do not wait for
 * each other.
 *
 * All blocks of all parties are resident together, which wic_peer_create proves: each takes so much
 * shared memory that at most plan.each of them fit on a multiprocessor, and a GPU has no more
 * blocks than that of all its parties. A kernel leaves at the end of its steps; when the host stops
 * it; when the heartbeat of the host stops; when a wait lasts longer than limit_ns; and when
 * another party leaves early.
 *
 * Functions return 0 or a negative errno; wic_link_why() (wic/device/link.h) has the reason in
 * words. Between start and the end of join no other CUDA call that waits for a kernel may be made.
 * Thread: one at a time, unless noted otherwise. */
#include "wic/pattern/step.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIC_PEER_SLOTS_MAX 16u
#define WIC_PEER_DEPTH_MAX 5u
#define WIC_PEER_LANES_MAX 1024u
#define WIC_PEER_SERVICE   2u                    /* warps of a block in front of the working ones */
#define WIC_PEER_HEAD      1024u                 /* bytes of shared memory in front of buffers */
#define WIC_PEER_LINE      128u                  /* distance between words of different lanes */
#define WIC_PEER_LIMIT_NS  UINT64_C(10000000000) /* longest wait for a chunk or a credit */
#define WIC_PEER_BEAT_NS   UINT64_C(5000000000)  /* longest time without a heartbeat */
#define WIC_PEER_START_NS  UINT64_C(500000000)   /* longest wait for room on the GPUs */

enum wic_peer_transport {
    WIC_PEER_STORES,  /* the work of the sender stores into the ring of the receiver */
    WIC_PEER_BULK,    /* it stores into shared memory; bulk stores bring the piece to that ring */
    WIC_PEER_PULL,    /* it stores into a ring of its own; bulk copies of the receiver bring the
                         piece to shared memory there */
    WIC_PEER_LETTERS, /* it stores into shared memory; a warp sends the chunk to that ring as
                         letters, and a warp there collects them in shared memory. For small
                         chunks: no ready word, no fence in front of one, half of the bytes */
};
#define WIC_PEER_TRANSPORTS 4u
#define WIC_PEER_LETTER     8u /* bytes of a chunk in 16 of its ring; a letter more for the value */

struct wic_peer_plan {
    enum wic_peer_transport transport;
    uint32_t lanes;       /* blocks of each party */
    uint32_t slots;       /* chunks in the ring of a lane; a power of two */
    uint32_t depth;       /* stages of a block, through which pieces pass */
    uint32_t warps;       /* working warps of a block */
    uint32_t each;        /* blocks of a multiprocessor, 1 or 2 */
    uint32_t chunk_bytes; /* a multiple of 16; 0: words only */
    uint32_t piece_bytes; /* a multiple of 16 that divides chunk_bytes; of letters, all of it */
};

/* Pinned, written by the host. */
struct wic_peer_control {
    uint64_t stop; /* nonzero: leave */
    uint64_t beat; /* changes while the host is alive */
};

enum wic_peer_end {
    WIC_PEER_STAYS,    /* not left yet */
    WIC_PEER_ENDED,    /* all chunks are made and used */
    WIC_PEER_STOPPED,  /* the host stopped it */
    WIC_PEER_SILENT,   /* the heartbeat of the host stopped */
    WIC_PEER_LATE,     /* a wait lasted longer than limit_ns */
    WIC_PEER_DESERTED, /* another block, or another party, left early */
};

/* Pinned, written by the kernel. */
struct wic_peer_report {
    uint64_t started; /* 1: all blocks are resident */
    uint64_t end;     /* enum wic_peer_end: of all blocks, or the first reason to leave early */
};

/* A way between two parties. The receiver's memory has `ready`, the sender's `credit`. */
struct wic_peer_way {
    unsigned char *data; /* chunk n of lane b: at (b * slots + n % slots) * chunk_bytes; of letters
                            chunk_bytes / WIC_PEER_LETTER + 1 times 16 */
    uint64_t *ready;     /* word n % slots of line b: that of chunk n of lane b */
    uint64_t *credit;    /* first word of line b */
};

/* The argument of a kernel, by value. All are device pointers. */
struct wic_peer_view {
    uint32_t party, parties;
    uint32_t near; /* bit p: party p is on the same GPU */
    struct wic_peer_plan plan;
    const struct wic_step *steps; /* in local memory */
    uint64_t step_count;
    struct wic_peer_way out[WIC_PARTIES_MAX], in[WIC_PARTIES_MAX]; /* index: the other party */
    uint64_t *stop[WIC_PARTIES_MAX];                               /* in the memory of each party */
    uint32_t *started, *ended;                                     /* blocks; in local memory */
    const struct wic_peer_control *control;
    struct wic_peer_report *report;
    uint64_t limit_ns, beat_ns;
};

struct wic_peer_party {
    int device;
    /* __global__ void kernel(struct wic_peer_view view, A argument); argument is borrowed until
     * destroy, NULL if the kernel takes only a view. */
    const void *kernel, *argument;
};

struct wic_peer_options {
    struct wic_peer_party party[WIC_PARTIES_MAX];
    uint32_t parties; /* 2 .. WIC_PARTIES_MAX */
    struct wic_peer_plan plan;
    const struct wic_step *steps; /* recorded by wic_schedule_record; copied */
    size_t step_count;
    uint64_t limit_ns, beat_ns; /* 0: WIC_PEER_LIMIT_NS, WIC_PEER_BEAT_NS */
};

struct wic_peer;

/* Lets each of these devices access the memory of the others. -EOPNOTSUPP: one cannot; -ENODEV,
 * -EIO. The current device of the thread stays. */
int wic_peer_access(const int *devices, uint32_t count);

/* A plan for chunks of this size between kernels of which `parties` are on each GPU. -EINVAL:
 * chunk_bytes is no multiple of 16; -ENODEV, -EIO. */
int wic_peer_plan_choose(int device, uint32_t parties, uint32_t chunk_bytes,
                         enum wic_peer_transport transport, struct wic_peer_plan *out_plan);

/* A measured plan: GB/s between two devices. */
struct wic_peer_rate {
    struct wic_peer_plan plan;
    double gb_s; /* 0: the plan is not possible */
};
#define WIC_PEER_RATES_MAX (2 * WIC_PEER_TRANSPORTS)
/* Measures each transport, with one and two blocks of a multiprocessor, between two kernels that
 * only copy; from one device to another, or on one. Some 10 ms each. *out_plan is the fastest.
 * rates has WIC_PEER_RATES_MAX places, may be NULL. Errors as those of create, start and join. */
int wic_peer_tune(int from, int to, uint32_t chunk_bytes, struct wic_peer_plan *out_plan,
                  struct wic_peer_rate *rates);

/* Microseconds of a word from one device to another, or on one, one way: the median of some
 * ping-pongs between two blocks, each with as many parked warps as a chosen plan has. Errors as
 * those of wic_peer_tune. */
int wic_peer_tune_word(int from, int to, double *out_us);

/* "bulk stores, 132 lanes of 4 slots, pieces of 16384 bytes, 2 deep, 16 + 2 warps": for people.
 * Returns what snprintf would. Thread: any. */
int wic_peer_plan_print(const struct wic_peer_plan *plan, char *text, size_t bytes);
const char *wic_peer_transport_name(enum wic_peer_transport transport);
/* A sentence without a full stop. */
const char *wic_peer_end_text(enum wic_peer_end end);

/* -EINVAL: options; -EOPNOTSUPP: a device cannot access the memory of another, a device drives a
 * display, or a step needs what a channel does not have (an outcome, a dependency, neighbours);
 * -E2BIG: a block does not fit on a multiprocessor; -ENOSPC: the blocks of the parties on a GPU
 * cannot all be resident together; -ENOMEM, -ENODEV, -EIO. */
int wic_peer_create(const struct wic_peer_options *options, struct wic_peer **out_peer);
/* Clears all words, launches the kernels and waits until all blocks are resident. -EBUSY: there
 * was no room for them within WIC_PEER_START_NS; they leave when they start. After any failure
 * join must be called. */
int wic_peer_start(struct wic_peer *peer);
/* Gives heartbeats until all kernels have left. 0: all chunks of the schedule were made and used;
 * -ECANCELED: a party left early; -EIO: a kernel failed, its GPU is lost to this process;
 * -ETIMEDOUT: after timeout_ns a kernel is still there. Then join may be called again, or the
 * kernels are stopped first. */
int wic_peer_join(struct wic_peer *peer, int64_t timeout_ns);
/* All kernels leave as soon as they can. Thread: any. */
void wic_peer_stop(struct wic_peer *peer);
/* Why a party left, after join. */
enum wic_peer_end wic_peer_left(const struct wic_peer *peer, uint32_t party);
/* Time from the launch to the end of a party's kernel, after join. */
int wic_peer_seconds(const struct wic_peer *peer, uint32_t party, double *out_seconds);
/* The view that a party's kernel gets. */
const struct wic_peer_view *wic_peer_view_of(const struct wic_peer *peer, uint32_t party);
/* NULL is fine. 0, or -ETIMEDOUT: a kernel is still there 1 s after it was stopped; nothing was
 * freed, and the process must end by _exit or exec. */
int wic_peer_destroy(struct wic_peer *peer);

#ifdef __cplusplus
}
#endif
#endif
