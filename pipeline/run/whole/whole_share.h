/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_SHARE_H
#define PB_WHOLE_SHARE_H
/* Who decodes the next block, the device or the core that would read it: the side that is through
 * with it first, by the speeds that were measured so far. A core that reads one block after the
 * other finds the device busy with what it got before, and so takes as many blocks as keep both
 * sides busy until the end. The link counts for both: a decoded block takes longer on it.
 *
 * Arithmetic on times that the caller gives, in ns of one clock. Thread: one at a time. */
#include <stdbool.h>
#include <stdint.h>

struct pb_whole_share {
    double core, device, link; /* bytes/s: decoded by a core, by the device; sent */
    uint64_t given;            /* decoded bytes of the device's blocks so far */
    uint64_t done, done_ns;    /* of these at that time; 0: nothing is known yet */
    uint64_t busy_ns;          /* that the device was decoding until then */
    uint64_t device_free_ns;   /* when the device is through with what it was given */
    uint64_t link_free_ns;     /* when all is sent */
};

/* Estimates, until something is measured; all above 0. */
void pb_whole_share_init(struct pb_whole_share *share, double core, double device, double link);
/* Whether a core decodes the block, which it then does. stored, decoded: its bytes, of which the
 * core sends the latter. */
bool pb_whole_share_is_cores(struct pb_whole_share *share, uint64_t now_ns, uint64_t stored,
                             uint64_t decoded);
/* The device decodes the block, as soon as it is sent. decoded 0: it is only sent. */
void pb_whole_share_give(struct pb_whole_share *share, uint64_t now_ns, uint64_t stored,
                         uint64_t decoded);
/* A core has decoded so many bytes in that time. */
void pb_whole_share_core_did(struct pb_whole_share *share, uint64_t decoded, uint64_t ns);
/* At that time the device had decoded so many bytes of what it was given, for which it was busy for
 * so long; waiting: of the rest what it could decode already, as it is complete there, but for the
 * newest of these groups, which is decoded while the next one is filled. What is older than what is
 * known, or more than was given, is left out. */
void pb_whole_share_device_did(struct pb_whole_share *share, uint64_t at_ns, uint64_t done,
                               uint64_t busy_ns, uint64_t waiting);
#endif
