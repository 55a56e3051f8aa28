/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_INSIDE_H
#define PB_WHOLE_INSIDE_H
/* State of the executor that decodes on a device (exec_whole.c), cut by thread. It is one header
 * because the parts that several threads use (tables, reductions, rounds) have their own sources.
 * Private to run/whole.
 *
 * readers == stream.in (loads) ==> feeder == copies ==> releaser
 *                                   feeder == steps ==> dispatcher == flights ==> finisher
 *                                       flights == strips == batches ==> collector
 *
 * The feeder sends loads and queues the decoding of groups; the releaser returns slots after they
 * are sent; the dispatcher queues tiles whose groups are decoded, and the products of their rows
 * (whole_out.h); the finisher hands results to the writers, and reports finished bands to the
 * feeder (`through`); the collector brings finished blocks to the writers. */
#include "pipeline/device/residency.h"
#include "pipeline/plan/exchange.h"
#include "pipeline/profile/spans.h"
#include "pipeline/run/base/remote.h"
#include "pipeline/run/stream/stream.h"
#include "pipeline/run/whole/whole_device.h"
#include "pipeline/run/whole/whole_kept.h"
#include "pipeline/run/whole/whole_map.h"
#include "pipeline/run/whole/whole_out.h"
#include "pipeline/run/whole/whole_pages.h"
#include "pipeline/run/whole/whole_share.h"

#include <stddef.h>

enum {
    WHOLE_FEEDER,
    WHOLE_RELEASER,
    WHOLE_DISPATCHER,
    WHOLE_FINISHER,
    WHOLE_COLLECTOR,
    WHOLE_THREADS
};

/* Channels between the threads. */
enum {
    WHOLE_COPIES,  /* feeder to releaser: slots whose copies are queued */
    WHOLE_STEPS,   /* feeder to dispatcher */
    WHOLE_FLIGHTS, /* dispatcher to finisher */
    WHOLE_THROUGH, /* finisher to feeder: a band's memory is free */
    WHOLE_LOTS,    /* with managed planes, dispatcher to feeder: a lot's memory is free */
    WHOLE_BATCHES, /* dispatcher to collector: encoded blocks */
    WHOLE_LINKS
};

/* Queues. */
enum {
    QUEUE_SEND,
    QUEUE_SHARE,
    QUEUE_OUT,  /* products of rows of tiles */
    QUEUE_DOWN, /* copies of blocks to the host */
    QUEUE_GATE,
    QUEUE_PLANES_IN, /* moves of managed planes to the device */
    QUEUE_PLANES_OUT,
    QUEUE_DECODE,
    DECODE_QUEUES = 4,
    QUEUE_LANE = QUEUE_DECODE + DECODE_QUEUES
};

/* Kinds of events. */
enum whole_event {
    EVENT_SHARED,
    EVENT_GATE,
    EVENT_PLANES, /* moves of managed planes (whole_pages.h) */
    EVENT_SLOT,   /* a slot of readers is sent */
    EVENT_BEGUN,
    EVENT_FLIGHT, /* a flight begins; ends */
    EVENT_LANE,
    EVENT_STRIP,
    EVENT_ENCODING,
    EVENT_BATCH, /* a batch begins; ends */
    EVENT_DOWN,
    EVENT_SENT,
    EVENT_DECODING,
    EVENT_DECODED, /* a group is sent, begins, ends */
    WHOLE_EVENTS
};

/* Decoding progress of the device; also in slots that return to the readers. */
struct whole_progress {
    /* at_ns: by the host's clock, which all processes share; busy_ns: time spent decoding until
     * then. */
    uint64_t at_ns, busy_ns;
    uint32_t groups;
};

/* Memory of a band's pixels and of a lot's blocks. */
struct whole_room {
    unsigned char *pixels, *stored, *decoded;
};

/* Managed planes (whole_planes.c); zero if planes are device memory. */
struct whole_planes {
    struct pb_whole_pages *pages;
    /* Memory for the ranges of a group, of the feeder and of the dispatcher. */
    struct pb_whole_range *of_feeder, *of_dispatcher;
};

/* A source that is read. */
struct whole_source {
    struct pb_raw_blocks blocks;
    struct pb_unpredict_form form, fill_form;
    /* n_planes 0: its blocks have no mask */
    struct pb_unpredict_form alpha_form, alpha_fill_form;
    struct pb_unpredict_form mask_form, mask_fill_form; /* forms of separate mask pieces */
    enum pb_device_codec codec, mask_codec;
    unsigned char *fill;      /* on the device: content of a piece that is not stored, ... */
    size_t fill_bytes;        /* ... one for each plane of blocks, fill_bytes apart, ... */
    unsigned char *mask_fill; /* ... and that of a mask with blocks of its own */
};

enum whole_step_kind {
    WHOLE_BAND,  /* a band has the pixels that it shares with the one before */
    WHOLE_GROUP, /* a group is queued */
    WHOLE_ROUND  /* a round after the first begins; its head is in the slot */
};
/* Message of the feeder to the dispatcher, in the order of the map. */
struct whole_step {
    enum whole_step_kind kind;
    uint32_t number;
};

#define WHOLE_ROUND_MARK UINT32_MAX /* not the number of any piece */
/* User bytes of an input slot that begins a round instead of bringing a load (whole_rounds.c). */
struct whole_round_note {
    uint32_t mark; /* WHOLE_ROUND_MARK */
    uint32_t round;
};
_Static_assert(offsetof(struct pb_whole_load, first) == offsetof(struct whole_round_note, mark),
               "loads and rounds are told apart by their first word");

/* Message of the dispatcher to the finisher: a tile, whose lane and event the slot's index
 * identifies, or that the band after `band` has copied the pixels that they share. */
struct whole_flight {
    /* bytes 0: none of its planes is sent to the host, and no slot is taken */
    struct wic_slot out;
    uint32_t band, tile;
    bool is_tile;
};
/* A slot that returns to the readers when the event has happened. */
struct whole_sent {
    struct wic_slot slot;
    uint32_t event;
};
_Static_assert(sizeof(struct whole_sent) <= WIC_USER_BYTES, "a slot fits the user bytes");
_Static_assert(sizeof(struct whole_flight) <= WIC_USER_BYTES, "a flight fits the user bytes");

struct pb_chain_reduction;
struct pb_histogram_part;
/* A reduction that the device computes (whole_reduce.c). */
struct whole_reduced {
    const struct pb_chain_reduction *reduction;
    void *state; /* state of the round, on the host; the finisher's */
    /* Percentiles: the state on the device, and its table; NULL: moments. */
    void *device, *told;
    size_t bytes; /* size of each */
};

/* Reductions of moments are first. By flight: a list of planes, and the moments of their pixels:
 * the dispatcher's until the flight is published, then the finisher's. */
struct whole_reduce {
    struct whole_reduced *of;
    uint32_t n;
    struct pb_statistics_plane *planes;      /* a table */
    struct pb_statistics_part *parts, *told; /* in device memory; a table */
};

/* Search for a valid pixel (whole_valid.c). Entries of a flight are the dispatcher's until the
 * flight is published, then the finisher's. */
struct whole_valid {
    uint32_t n;                         /* planes of a tile; 0: no search */
    struct pb_statistics_plane *planes; /* a table: those of each flight */
    struct pb_statistics_part *parts;   /* in device memory: n of each lane */
    uint64_t *told;                     /* a table: valid pixels of each flight's planes */
    bool *looked;                       /* for each flight: its pixels are counted */
    atomic_bool found;
};

/* Gate of a pass (whole_gate.c); zero without one. */
struct whole_gate {
    float *planes; /* in device memory: of a batch of tiles, plane_px each */
    size_t plane_px;
    struct pb_statistics_plane *list; /* a table */
    uint32_t *counts, *told;          /* in device memory; a table */
    float *nothing;                   /* in device memory: a plane of a tile without valid pixels */
    uint32_t asked;                   /* tiles whose answers are known */
};

/* Tables by piece (whole_tables.c). The feeder's until the step WHOLE_GROUP of the piece's group is
 * published, the dispatcher's from then on. */
struct whole_tables {
    struct pb_decode_stream *decode;
    struct pb_unpredict_block *block, *device_block;
    struct pb_unpredict_block *alpha, *device_alpha; /* NULL: no source has an alpha_form */
    bool *by_core; /* a core has decoded it, or no tile needs it */
    /* Decoding list of a run of pieces, from the index of the first one on: those that no core has
     * decoded; the device writes the results. */
    struct pb_decode_stream *list, *device_list;
    struct pb_decode_result *result;
};

/* The readers' state; they are several threads, of the process that has the files. */
struct whole_readers {
    /* Protects next_piece, and the order of slots; held while no slot is free. */
    pthread_mutex_t lock;
    uint32_t next_piece;
    pthread_mutex_t share_lock; /* taken after lock: protects the next members */
    struct pb_whole_share share;
    uint64_t *given; /* for each group: decoded bytes that are left to the device */
    uint32_t noted_groups;
    uint64_t noted_bytes;          /* sum of `given` over the groups that the device has finished */
    uint64_t compressed, by_cores; /* blocks to decode; those of them that cores decode */
};

/* The feeder's state. The releaser needs only its messages. */
struct whole_feeder {
    uint32_t entered; /* lots */
    uint32_t sent_pieces, queued_groups, sent_round;
    uint64_t in_bytes;
    struct wic_slot *held; /* if pieces are used in place: slots of the incomplete group */
    uint32_t n_held;
};

/* The dispatcher's state. */
struct whole_dispatcher {
    struct pb_part_exchange parts; /* the executor's end of the exchange of the parts of tiles */
    uint32_t shared_bands, decoded_groups;
    uint32_t round;            /* number of the round, from 1 */
    bool round_is_over;        /* all units of the round are dispatched */
    struct pb_slot_head *head; /* a table: numbers of the round; NULL: tiles are not summed up */
    float **lane_out;          /* device memory for results, by lane, if there are no strips */
    struct whole_out out;
    struct whole_gate gate;
    struct pb_raster *repair[PB_FILES_MAX]; /* file of each source; NULL until it is needed */
    uint64_t out_bytes; /* bytes of planes and sums that are copied to slots of results */
};

/* The finisher's state. */
struct whole_finisher {
    uint32_t launched; /* tiles */
    /* For each band: count of its unfinished tiles, and 1 for the band that shares pixels with it.
     */
    uint32_t *left;
    struct pb_histogram_part *scratch; /* for a merge of moments */
};

/* The collector's state: slots with copies of blocks in flight, the oldest first. */
struct whole_collector {
    struct wic_slot slot[WHOLE_DOWNS];
    uint64_t bytes[WHOLE_DOWNS];
    uint32_t first, n;
    uint64_t block_bytes; /* size of all blocks so far */
};

/* Times of all threads. */
struct whole_clock {
    _Atomic uint64_t waited_ns[PB_DEVICE_WAITS]; /* each kind is of one thread */
    pthread_mutex_t lock;                        /* protects the next members */
    struct pb_spans occupied, worked[PB_DEVICE_WORKS];
    struct whole_progress progress;
};

/* Each thread has its own state, and the threads meet in the links. They share `tables`, `batch`,
 * `reduce` and `valid`, whose entries pass from one thread to the next with a message, and `clock`.
 * The members before `read` do not change after exec_create. */
struct pb_exec_whole {
    struct pb_stream *stream;
    const struct pb_whole_device *ops;
    void *device;
    struct pb_whole_map map;
    struct whole_source source[PB_FILES_MAX];
    struct whole_room room[2]; /* for two bands, and two lots of blocks */
    struct whole_planes planes;
    struct pb_whole_held taken; /* planes of stream->kept that are used */
    uint32_t n_lanes, n_flights;
    struct wic_channel *link[WHOLE_LINKS];
    void *link_memory[WHOLE_LINKS];
    uint32_t event_at[WHOLE_EVENTS]; /* number of the first event of each kind */

    struct whole_readers read;
    struct whole_feeder feed;
    struct whole_dispatcher dispatch;
    struct whole_finisher finish;
    struct whole_collector collect;

    struct whole_tables tables;
    /* A batch for each slot of WHOLE_BATCHES: the dispatcher's until the slot is published, then
     * the collector's. */
    struct whole_batch batch[PB_OUT_BATCHES];
    struct whole_reduce reduce;
    struct whole_valid valid;
    struct whole_clock clock;
    struct pb_resident resident; /* until all threads have ended */
    atomic_uint ended;
};

/* Number of event `i` of a kind. */
static inline uint32_t whole_event(const struct pb_exec_whole *e, enum whole_event kind, uint32_t i)
{
    return e->event_at[kind] + i;
}
/* Waits, at most a minute in which no kernel of this process is resident: device.lost then. wait:
 * kind under which the time is counted. */
int whole_wait_event(struct pb_exec_whole *e, uint32_t event, enum pb_device_wait wait,
                     const char *what, struct pb_err *err);
/* Counts the time since since_ns as waiting for a channel. */
void whole_waited(struct pb_exec_whole *e, enum pb_device_wait wait, uint64_t since_ns);
/* wic_acquire() and wic_publish() of a slot for results. -EPROTO, which fails the pass: the process
 * that takes the results has closed their channel. */
int whole_take_result(struct pb_exec_whole *e, int64_t timeout_ns, struct wic_slot *out);
int whole_send_result(struct pb_exec_whole *e, const struct wic_slot *slot, size_t bytes);
/* Counts work on the device between two events that have happened. Thread: any. */
int whole_note_work(struct pb_exec_whole *e, enum pb_device_work work, uint32_t from, uint32_t to,
                    struct pb_err *err);

/* Message of the device owner about a block that the device refuses: its source and
 * number. The process that has the file decodes the block to get an error text. */
#define WHOLE_REFUSED "the GPU refuses a block: source %u, block %llu"

/* Records that a group is decoded and checked. Thread: dispatcher. */
void whole_note_decoded(struct pb_exec_whole *e, uint32_t group);
void whole_note_progress(struct pb_exec_whole *e, const struct wic_slot *slot);

/* After the readers' end: counts the decoded blocks of the device and of cores. */
void whole_count_blocks(const struct pb_exec_whole *e, struct pb_device_report *out);

/* Fills the device's tables of pieces (whole_tables.c). */
int whole_tables_make(struct pb_exec_whole *e, struct pb_err *err);
/* Sets the addresses of the load's pieces, in memory that device and host share. */
void whole_tables_in_place(struct pb_exec_whole *e, const struct pb_whole_load *load,
                           unsigned char *at);
/* Address of the decoded bytes of a piece. */
unsigned char *whole_decoded(const struct pb_exec_whole *e, const struct pb_whole_piece *piece);
/* Queues the decoding of a group after all of it is sent. */
int whole_tables_decode(struct pb_exec_whole *e, uint32_t group, struct pb_err *err);
/* Checks the results of a decoded group; decodes blocks that the device has refused. */
int whole_tables_check(struct pb_exec_whole *e, uint32_t group, struct pb_err *err);

/* Reductions of the pass that the device computes. open: memory and states. tile: queues the
 * reduction of a queued tile; take: by the finisher, for a flight that has ended; end: after all of
 * them. */
int whole_reduce_open(struct pb_exec_whole *e, struct pb_err *err);
void whole_reduce_close(struct pb_exec_whole *e);
int whole_reduce_tile(struct pb_exec_whole *e, uint32_t lane, uint32_t flight,
                      const struct pb_tile *tile, const struct pb_tile_out *out,
                      struct pb_err *err);
void whole_reduce_take(struct pb_exec_whole *e, uint32_t flight);
int whole_reduce_end(struct pb_exec_whole *e, struct pb_err *err);

/* Search for a valid pixel of a warped scene whose products the device makes. look: queues it for a
 * queued tile; take: by the finisher, for a flight that has ended. */
int whole_valid_open(struct pb_exec_whole *e, struct pb_err *err);
void whole_valid_close(struct pb_exec_whole *e);
int whole_valid_look(struct pb_exec_whole *e, uint32_t lane, uint32_t flight,
                     const struct pb_tile *tile, const struct pb_tile_out *out, struct pb_err *err);
void whole_valid_take(struct pb_exec_whole *e, uint32_t flight);

/* Gate of a pass. open: memory; nothing without a gate. answer: computes the gate of the next tiles
 * whose pixels are decoded, and puts their answers. leave_out: delivers a tile that does not pass.
 * Thread: dispatcher. */
int whole_gate_open(struct pb_exec_whole *e, struct pb_err *err);
int whole_gate_answer(struct pb_exec_whole *e, struct pb_err *err);
int whole_gate_leave_out(struct pb_exec_whole *e, const struct pb_tile *tile, struct pb_err *err);

/* Managed planes. open: their memory, none of it on the device; nothing if they are device memory.
 * hold: planes that the work queued next in `queue` reads or writes are on the device before it;
 * release: that work is done. A released group may complete its lot. Thread: feeder, and dispatcher
 * for the release, of groups; dispatcher, and finisher for the release, of tiles; dispatcher of
 * gates. hold_gate, without wait: -EAGAIN if it would wait. */
int whole_planes_open(struct pb_exec_whole *e, struct pb_err *err);
void whole_planes_close(struct pb_exec_whole *e);
void whole_planes_report(const struct pb_exec_whole *e, struct pb_device_report *out);
int whole_planes_hold_group(struct pb_exec_whole *e, uint32_t group, uint32_t queue,
                            struct pb_err *err);
int whole_planes_release_group(struct pb_exec_whole *e, uint32_t group);
int whole_planes_hold_tile(struct pb_exec_whole *e, const struct pb_tile *tile, uint32_t queue,
                           struct pb_err *err);
void whole_planes_release_tile(struct pb_exec_whole *e, uint32_t number);
void whole_planes_starve(struct pb_exec_whole *e, bool is_starved); /* the dispatcher waits */
int whole_planes_hold_gate(struct pb_exec_whole *e, const struct pb_tile *first, bool wait,
                           struct pb_err *err);
void whole_planes_release_gate(struct pb_exec_whole *e, const struct pb_tile *first);
/* Address of pixel `rect` of a window in a band's memory, and the distances there. */
struct pb_window whole_window(const struct pb_exec_whole *e, uint32_t window, uint32_t band,
                              const struct pb_rect *rect);

/* Rounds of a pass whose tiles are summed up. open: the numbers of the first round. send: for the
 * process that has the files, by one reader at the end of its loads: begins each later round in
 * the other process. take: by the feeder, for a slot of send. begin: by the dispatcher, before the
 * first tile of a round. */
int whole_rounds_open(struct pb_exec_whole *e, struct pb_err *err);
int whole_rounds_send(struct pb_exec_whole *e);
/* For the readers' end of another process: takes all units of a round at once, because the slots
 * for results limit the tiles in flight. */
int whole_rounds_take_units(struct pb_stream *s);
int whole_rounds_take(struct pb_exec_whole *e, const struct wic_slot *slot, struct pb_err *err);
void whole_rounds_begin(struct pb_exec_whole *e);

/* Returns the slot to the readers when the event has happened. Thread: feeder. */
int whole_hand_back(struct pb_exec_whole *e, const struct wic_slot *slot, uint32_t event);
/* Thread bodies. 0 at the end, -ECANCELED, or an error. */
int whole_feed(struct pb_exec_whole *e, struct pb_err *err);
int whole_release(struct pb_exec_whole *e, struct pb_err *err);
int whole_dispatch(struct pb_exec_whole *e, struct pb_err *err);
int whole_finish(struct pb_exec_whole *e, struct pb_err *err);
int whole_collect(struct pb_exec_whole *e, struct pb_err *err);
void whole_read(void *exec, uint32_t reader);
/* Destination of a piece's pixels, and their layout in the piece (whole_target.c). */
struct pb_unpredict_block whole_target(const struct pb_exec_whole *e,
                                       const struct pb_whole_piece *piece);
struct pb_unpredict_block whole_alpha_target(const struct pb_exec_whole *e,
                                             const struct pb_whole_piece *piece);
void whole_forms(struct pb_exec_whole *e, uint32_t source);
/* Makes the map and the sources of its pieces (exec_whole.c). */
int whole_open(struct pb_stream *stream, struct pb_err *err, struct pb_exec_whole **out);
void whole_close(struct pb_exec_whole *e); /* NULL is fine */
/* Leaves the planes of a complete pass to the passes after it, if the plan keeps them. */
void whole_keep(struct pb_exec_whole *e);
#endif
