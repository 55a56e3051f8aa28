/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_GUEST_H
#define PB_EMULATE_GUEST_H
/* Guests at a link (wic/depend/guest.cuh): each block is a thread of the host, like the Monitor and
 * the producer. Slots are plain memory, so that the thread sanitizer sees an order that is missing.
 */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct emulate_guest {
    uint32_t blocks, slots, frames;
    bool each_frame; /* blocks that exist for one frame each, in order */
    uint32_t abort;  /* number of frames after which the Monitor aborts; 0: never */
};

/* Runs all frames; returns the number of right results. *left: number of blocks that ended by the
 * end of the stream or, with abort, by that. */
uint32_t emulate_guest_frames(const struct emulate_guest *how, uint32_t *left);

/* The enum wic_guest_end of a guest that waits for a tile that is there; that is done, and whose
 * entry has a later one; after the end; of an aborted link; that is never posted. */
void emulate_guest_ends(uint32_t ends[5]);

#ifdef __cplusplus
}
#endif
#endif
