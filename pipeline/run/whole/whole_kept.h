/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_KEPT_H
#define PB_WHOLE_KEPT_H
/* Decoded pixels of a pass that stay on the device for the passes after it. They are the planes of
 * a band that has all of the scene (whole_map.h); the memory is the store's from
 * pb_whole_kept_put() on. A pass takes them where they lie when that is how its tiles read them;
 * else the planes of files of which it needs no other ones are copied on the device, and the other
 * files are read. Which pixels a file has there is known as a rectangle. Thread: one at a time. */
#include "pipeline/run/whole/whole_map.h"

struct pb_exec_whole;
struct pb_whole_device;

struct pb_whole_kept_source {
    int32_t bands[PB_BANDS_MAX]; /* n_bands, of planes that follow each other from `plane` on */
    size_t n_bands, plane;
    bool has_mask;
    struct pb_rect rect, mask_rect; /* pixels that are there, of the image; w 0: none */
};

struct pb_whole_kept {
    const struct pb_whole_device *ops;
    int32_t device_index;
    unsigned char *pixels; /* of the device; NULL: nothing is kept */
    uint64_t bytes;
    struct pb_whole_window window[PB_SOURCES_MAX]; /* `at` counts from pixels */
    int32_t y[PB_SOURCES_MAX];                     /* row of the image that is the first there */
    struct pb_whole_kept_source source[PB_FILES_MAX];
};

/* What a pass takes of the store. */
struct pb_whole_held {
    bool source[PB_FILES_MAX]; /* it is not read */
    bool in_place;             /* of all sources, where they lie */
    uint64_t bytes;            /* of planes that are taken */
};

/* Makes the executor's map, of `budget` bytes of device memory at most: what the pass can take of
 * stream.kept is in e->taken. What is kept is dropped where it does not fit beside the rest, or the
 * pass can use none of it. */
int pb_whole_kept_map(struct pb_exec_whole *e, const struct pb_raw_blocks *blocks, uint64_t budget,
                      struct pb_err *err);
/* Queues the copies of held planes into the executor's, which are all of the scene. */
int pb_whole_kept_copy(struct pb_exec_whole *e, struct pb_err *err);
/* The planes of a pass that is complete, if it has all of the scene at once; what was kept before
 * is dropped then. Nothing changes where they are the store's already. */
void pb_whole_kept_put(struct pb_whole_kept *kept, struct pb_exec_whole *e);
#endif
