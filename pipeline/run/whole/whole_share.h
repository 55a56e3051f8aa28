/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_SHARE_H
#define PB_WHOLE_SHARE_H
/* Selects the side that decodes the next block, the device or the core that would read it: the one
 * that would finish it first, at the speeds measured so far. A core that reads one block after the
 * other finds the device busy with its earlier blocks, and therefore takes as many blocks as keep
 * both sides busy until the end. The link counts for both: a decoded block takes longer on it.
 *
 * Arithmetic on times that the caller gives, in ns of one clock. Thread: one at a time. */
#include <stdbool.h>
#include <stdint.h>

struct pb_whole_share {
    double core, device, link; /* bytes/s: decoded by a core, by the device; sent */
    uint64_t given;            /* decoded bytes of the device's blocks so far */
    /* Part of `given` that was decoded at the time done_ns; 0: unknown. */
    uint64_t done, done_ns;
    uint64_t busy_ns;        /* decoding time of the device until then */
    uint64_t device_free_ns; /* time at which the device will have decoded all of `given` */
    uint64_t link_free_ns;   /* time at which all bytes will be sent */
};

/* core, device, link: estimates, until speeds are measured; all above 0. */
void pb_whole_share_init(struct pb_whole_share *share, double core, double device, double link);
/* Returns true if a core decodes the block, which must then do so. stored, decoded: sizes of the
 * block in bytes; the core sends the decoded bytes. */
bool pb_whole_share_is_cores(struct pb_whole_share *share, uint64_t now_ns, uint64_t stored,
                             uint64_t decoded);
/* Leaves the block to the device, which decodes it when it is sent. decoded 0: it is only sent. */
void pb_whole_share_give(struct pb_whole_share *share, uint64_t now_ns, uint64_t stored,
                         uint64_t decoded);
/* Measurement: a core has decoded that many bytes in ns. */
void pb_whole_share_core_did(struct pb_whole_share *share, uint64_t decoded, uint64_t ns);
/* Measurement: at at_ns the device had decoded `done` bytes of those given to it, and had been busy
 * for busy_ns. waiting: bytes that are complete on the device but not decoded, without the newest
 * group, which is decoded while the next one is filled. Ignored if older than the last measurement,
 * or if `done` is more than was given. */
void pb_whole_share_device_did(struct pb_whole_share *share, uint64_t at_ns, uint64_t done,
                               uint64_t busy_ns, uint64_t waiting);
#endif
