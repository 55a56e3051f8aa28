/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INPUT_SUM_H
#define PB_INPUT_SUM_H
/* Checksum of an input's bytes, computed by a separate thread while the run reads the same
 * files: name, size and mtime alone do not identify an input. The thread reads copies of the
 * run's descriptors. The checksum of an input of several files is the checksum of the lines that
 * sha256sum(1) or b3sum(1) prints for them; files that are read in addition to the input only
 * have their own sum. One kind of checksum is the input's; another kind is computed if it is
 * needed for a comparison. A segment of lines that grows is read when it is complete, by get. One
 * thread per object, in addition to its own. */
#include "pipeline/io/checksum.h"
#include "pipeline/raster/raster_file.h"

struct pb_input_sum;

/* A file that is read. */
struct pb_input_part {
    const struct pb_raster_file *file;
    const char *name; /* inside the input; NULL = the file is the whole input */
    bool beside;      /* has its own checksum and is not part of the input's */
    /* checksum of its content, known of the file in its present state; NULL = unknown. For this
     * kind the file is not read. */
    const char *checksum;
};
/* parts: 1 or more, in the order of the lines; borrowed for the call, also their files. kind:
 * not NONE. */
int pb_input_sum_create(const struct pb_input_part *part, size_t n, enum pb_checksum kind,
                        struct pb_err *err, struct pb_input_sum **out_sum);
enum pb_checksum pb_input_sum_kind(const struct pb_input_sum *sum);
/* Also computes that kind during the first pass, which saves a second pass if the kind will be
 * requested. Call before start. */
void pb_input_sum_want(struct pb_input_sum *sum, enum pb_checksum kind);
/* Returns true if a file is a segment of lines that has not been closed. */
bool pb_input_sum_is_growing(const struct pb_input_sum *sum);
/* Computes the sum in the caller's thread if the input is small and in the page cache. Returns true
 * if the sum is complete: get does not wait. Otherwise start and get continue as without this call.
 */
bool pb_input_sum_at_once(struct pb_input_sum *sum);
/* Starts the thread unless it is running. A process that forks must do so before this call. */
int pb_input_sum_start(struct pb_input_sum *sum, struct pb_err *err);
/* Sets how many bytes at the end may wait for idle cores until get is called: the amount that is
 * hashed while the products are finished. Without effect on BLAKE3. 0 before the first call. */
void pb_input_sum_leave(struct pb_input_sum *sum, uint64_t bytes);
/* Sets a callback: while get waits, it calls alive(user, bytes read so far) twice a second; may
 * be NULL. */
void pb_input_sum_on_wait(struct pb_input_sum *sum, void (*alive)(void *user, uint64_t bytes),
                          void *user);
/* Starts the thread if necessary and waits for its end; reads the files again for a kind that
 * was not computed. Returns 0 and the checksum of that kind if the files at these paths are
 * unchanged since they were opened; else the error of pb_raster_file_fail, or input.changed. */
int pb_input_sum_get(struct pb_input_sum *sum, enum pb_checksum kind, struct pb_err *err,
                     char out_checksum[PB_CHECKSUM_TEXT_BYTES]);
/* Returns 0 if the files at their paths are still unchanged since they were opened; else the error
 * of get. */
int pb_input_sum_unchanged(const struct pb_input_sum *sum, struct pb_err *err);
/* State of a file: its size, and its checksum of a kind after a get of that kind that returned 0.
 */
struct pb_input_sum_file {
    uint64_t bytes;
    char checksum[PB_CHECKSUM_TEXT_BYTES]; /* "" = not known */
};
size_t pb_input_sum_count(const struct pb_input_sum *sum); /* count of its files */
/* Describes file i, in the order of create. */
void pb_input_sum_file(const struct pb_input_sum *sum, size_t i, enum pb_checksum kind,
                       struct pb_input_sum_file *out);
/* Ends the thread after its current read. NULL is allowed. */
void pb_input_sum_destroy(struct pb_input_sum *sum);
#endif
