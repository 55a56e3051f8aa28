/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CCSDS_REORDER_H
#define PB_CCSDS_REORDER_H
/* Puts numbered pieces (frames of a channel, packets of an APID) in order. Their numbers wrap at
 * a modulus. A piece that is missing is given up when one arrives that is more than `window`
 * numbers later. All memory is allocated by init. One thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_REORDER_HISTORY 64 /* numbers before the next one whose delivery is known */

/* Receives pieces in order. data is valid for the call. continues: the piece with the number
 * before it was delivered just before. */
typedef void pb_reorder_deliver(void *user, const uint8_t *data, size_t bytes, bool continues);

struct pb_reorder {
    uint32_t modulus, window;
    size_t most_bytes; /* limit of a piece */
    pb_reorder_deliver *deliver;
    void *user;
    uint64_t *lost, *duplicate, *late, *jumps; /* counts that grow; borrowed */

    bool is_started, continues;
    uint64_t next; /* number of the next piece, without wrapping */
    uint64_t seen; /* bit k: the piece next - 1 - k was delivered */
    uint32_t n_held;
    uint32_t *held_bytes; /* bytes in each slot; 0 = empty */
    uint8_t *held;
};

/* Members before is_started are set by the caller; window <= PB_REORDER_HISTORY < modulus / 2.
 * 0 or -ENOMEM. */
int pb_reorder_init(struct pb_reorder *reorder);
/* All-zero memory is allowed. */
void pb_reorder_fini(struct pb_reorder *reorder);
/* Takes a piece with its number (below modulus), of 1 to most_bytes bytes. Delivers it and those
 * that it completes, or holds a copy. */
void pb_reorder_push(struct pb_reorder *reorder, uint32_t number, const uint8_t *data,
                     size_t bytes);
/* Delivers all pieces that are held, and gives up the missing ones between them. */
void pb_reorder_flush(struct pb_reorder *reorder);
#endif
