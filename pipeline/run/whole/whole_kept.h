/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_KEPT_H
#define PB_WHOLE_KEPT_H
/* Decoded pixels of a pass that stay on the device for the passes after it. They are the planes of
 * a band that has all of the scene (whole_map.h); the store owns the memory from
 * pb_whole_kept_put() on. A pass uses them in place if its tiles read them in that layout;
 * else it copies, on the device, the planes of files of which it needs no other planes, and reads
 * the other files. The pixels that a file has there form a rectangle.
 *
 * The process that owns the device has a store for each job, and the job's process has one without
 * pixels: both make the same maps in the same order, hence the job's process reads what the other
 * one lacks. The store does not trust the passes: windows, types, sizes and places of each are
 * compared with its own. Thread: one at a time. */
#include "pipeline/run/whole/whole_map.h"

struct pb_exec_whole;
struct pb_whole_device;

struct pb_whole_kept_source {
    /* n_bands; their planes follow each other from `plane` on */
    int32_t bands[PB_BANDS_MAX];
    size_t n_bands, plane;
    uint32_t window; /* index of its window */
    enum pb_type type;
    bool has_mask;
    struct pb_rect rect, mask_rect; /* available pixels, in the image; w 0: empty */
};

struct pb_whole_kept {
    const struct pb_whole_device *ops; /* NULL: another process has the pixels */
    int32_t device_index;
    unsigned char *pixels;                         /* device memory; NULL without ops */
    uint64_t bytes;                                /* 0: empty store */
    struct pb_whole_window window[PB_SOURCES_MAX]; /* `at` counts from pixels */
    int32_t y[PB_SOURCES_MAX]; /* row of the image that is the first one there */
    struct pb_whole_kept_source source[PB_FILES_MAX];
};

/* Content of the store that a pass uses. */
struct pb_whole_held {
    bool source[PB_FILES_MAX]; /* true: the source is not read */
    bool in_place;             /* all sources are used in place */
    uint64_t bytes;            /* bytes of the planes that are used */
};

/* Makes the executor's map, of `budget` bytes of device memory at most, and sets e->taken to the
 * content of stream.kept that the pass can use. The store is emptied if it does not fit in addition
 * to the rest, or if the pass can use none of it. */
int pb_whole_kept_map(struct pb_exec_whole *e, const struct pb_raw_blocks *blocks, uint64_t budget,
                      struct pb_err *err);
/* Queues the copies of held planes into the executor's planes, which have all of the scene. */
int pb_whole_kept_copy(struct pb_exec_whole *e, struct pb_err *err);
/* Keeps the planes of a complete pass, if it has all of the scene at once; frees the earlier
 * content then. Nothing changes if they are the store's already. */
void pb_whole_kept_put(struct pb_whole_kept *kept, struct pb_exec_whole *e);
#endif
