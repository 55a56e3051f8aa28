/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_PAGES_H
#define PB_WHOLE_PAGES_H
/* Planes of a scene that is larger than the device memory it may use. They are managed memory, of
 * which chunks are moved to the device before work that reads or writes them, and back to the host
 * when others need the room. At no time are more chunks there than the two users may hold in all.
 *
 * Decoding does not evict chunks that a later visit of the same round reads while a visit is in
 * progress or can begin: those visits give chunks back, and nothing is moved twice.
 *
 * A user holds chunks from the time at which its work is queued until that work is done; a chunk
 * without a holder stays on the device until its room is needed. The chunk that is used last is
 * evicted first, by the order of the visits (tiles), which is known before the first one. The two
 * users wait for room of their own only, therefore neither waits for the other.
 *
 * Thread: any after the last note; a hold and its release may be of different threads. */
#include <stdbool.h>
#include <stdint.h>

struct pb_err;
struct pb_whole_device;

/* Bytes of the planes: n times `bytes`, `step` apart. */
struct pb_whole_range {
    uint64_t at, bytes, step;
    uint32_t n;
};
/* A list of them, which may overlap. */
struct pb_whole_ranges {
    struct pb_whole_range *range;
    uint32_t n;
};

enum pb_whole_user { PB_WHOLE_DECODING, PB_WHOLE_COMPUTING, PB_WHOLE_USERS };

enum { PB_WHOLE_PAGE_EVENTS = 64 };

struct pb_whole_pages_options {
    const struct pb_whole_device *ops;
    void *device;
    unsigned char *planes; /* managed memory of `bytes`, none of it on the device; borrowed */
    uint64_t bytes, chunk_bytes;
    uint32_t most[PB_WHOLE_USERS]; /* chunks that a user may hold at a time */
    uint32_t in, out;              /* queues for moves to the device and back */
    uint32_t first_event;          /* PB_WHOLE_PAGE_EVENTS from this one on */
    uint32_t visits;
    bool repeats; /* after the last visit the first one follows */
};

/* Bytes that were moved, and the most that were on the device. */
struct pb_whole_pages_report {
    uint64_t to_device_bytes, to_host_bytes, most_bytes;
};

struct pb_whole_pages;

int pb_whole_pages_create(const struct pb_whole_pages_options *options, struct pb_err *err,
                          struct pb_whole_pages **out);
void pb_whole_pages_destroy(struct pb_whole_pages *pages); /* NULL is fine */
/* Notes that a visit reads the ranges. Call it in the order of the visits, before the first hold.
 */
int pb_whole_pages_note(struct pb_whole_pages *pages, uint32_t visit,
                        const struct pb_whole_ranges *of, struct pb_err *err);
/* Begins a visit, whose chunks are held: until another round they have no use that is not a later
 * visit. */
void pb_whole_pages_visit(struct pb_whole_pages *pages, uint32_t visit);
/* Ends a visit: its work is done. */
void pb_whole_pages_leave(struct pb_whole_pages *pages);
/* Sets whether the next visit waits for the next chunks that are decoded, whose hold ends that. */
void pb_whole_pages_starve(struct pb_whole_pages *pages, bool is_starved);
/* Holds the chunks of the ranges for a user, and lets the queue wait until they are on the device.
 * Waits while the user holds too many others, or, to decode, for visits; without wait, returns
 * -EAGAIN then. -ECANCELED
 * after an abort; plan.memory if that many are too many for the user. */
int pb_whole_pages_hold(struct pb_whole_pages *pages, enum pb_whole_user user,
                        const struct pb_whole_ranges *of, uint32_t queue, bool wait,
                        struct pb_err *err);
/* Ends a hold of the same ranges, whose work is done. */
void pb_whole_pages_release(struct pb_whole_pages *pages, enum pb_whole_user user,
                            const struct pb_whole_ranges *of);
/* Moves chunks that a later visit will read to the device, as far as these were there before and
 * chunks that are used after that visit have room for them. visit: with `repeats` it may exceed
 * the count of visits. */
int pb_whole_pages_ahead(struct pb_whole_pages *pages, uint64_t visit,
                         const struct pb_whole_ranges *of, struct pb_err *err);
/* Ends all waits, present and later ones. */
void pb_whole_pages_abort(struct pb_whole_pages *pages);
struct pb_whole_pages_report pb_whole_pages_report(struct pb_whole_pages *pages);
#endif
