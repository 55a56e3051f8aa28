/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_SHARE_H
#define WIC_SHARE_H
/* How a resident kernel shares the multiprocessors of a GPU with other kernels.
 *
 *   WIC_SHARE_UNSHAPED   its blocks are on any multiprocessors, next to those of other kernels
 *   WIC_SHARE_PRIORITY   the same, in a stream of the highest priority: it starts before blocks
 *                        of other kernels that are pending. A block that runs is never displaced
 *   WIC_SHARE_PADDED     each block takes all shared memory of a multiprocessor, therefore no other
 *                        block is on it while the kernel stays; with the priority. Any driver
 *   WIC_SHARE_GREEN      a part of the multiprocessors that the driver reserves for its streams (a
 *                        green context, CUDA 12.5); with the priority. Kernels of other streams may
 *                        use that part, too, unless these streams are of the part's rest
 *
 * A driver without green contexts leaves the kernel unshaped, with as many blocks as the part was
 * to have multiprocessors; struct wic_shaped has the reason. */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum wic_share_way { WIC_SHARE_UNSHAPED, WIC_SHARE_PRIORITY, WIC_SHARE_PADDED, WIC_SHARE_GREEN };

struct CUstream_st; /* cudaStream_t and CUstream point to it */
struct wic_part;

struct wic_share {
    enum wic_share_way way;
    /* WIC_SHARE_PADDED and WIC_SHARE_GREEN: how many; 0: one for each block of the plan. A plan
     * with more blocks than fit on them gets fewer blocks. */
    uint32_t multiprocessors;
    /* WIC_SHARE_GREEN: instead of that number, a part that exists; borrowed until the kernel's
     * link or launch is destroyed. NULL: the kernel has one of its own. */
    struct wic_part *part;
};

/* The share that a kernel got. */
struct wic_shaped {
    enum wic_share_way way;
    uint32_t multiprocessors; /* its blocks are on these only */
    uint32_t blocks;          /* at most */
    char why[160];            /* why it is not the wanted way; "": it is */
};

/* Reserves a part of the current device's multiprocessors: the largest of at most that many, else
 * the smallest part there is. -EOPNOTSUPP: the driver cannot; -EINVAL: 0 of them, or all;
 * -ENOMEM, -EIO. wic_link_why() has the reason in words. Thread: init. */
int wic_part_create(uint32_t multiprocessors, struct wic_part **out_part);
/* Its streams are destroyed. NULL is fine. */
void wic_part_destroy(struct wic_part *part);
uint32_t wic_part_multiprocessors(const struct wic_part *part);
/* Makes a stream whose kernels run on the part, or on the rest of the GPU only. The caller ends it
 * by cudaStreamDestroy. priority: of cudaStreamCreateWithPriority. Copies and events need no such
 * stream. 0, -EOPNOTSUPP, -EIO. Thread: any, one at a time. */
int wic_part_stream(struct wic_part *part, bool rest, int priority,
                    struct CUstream_st **out_stream);

/* Room for a kernel. */
struct wic_share_room {
    uint32_t multiprocessors; /* count on the GPU */
    uint32_t part;            /* count in the green context; 0: absent */
    uint32_t blocks_each;     /* blocks of the kernel on a multiprocessor */
};

/* Decides the share of a kernel of this many blocks. out_shaped->why is the reason for room->part =
 * 0 if a part is wanted. Pure. */
void wic_share_settle(const struct wic_share *share, uint32_t blocks,
                      const struct wic_share_room *room, struct wic_shaped *out_shaped);

#ifdef __cplusplus
}
#endif
#endif
