/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INPUT_SUM_H
#define PB_INPUT_SUM_H
/* The checksum of an input's bytes, computed by a thread of its own while the run reads the same
 * files: name, size and mtime alone do not identify an input. They are read through copies of the
 * descriptors that the run uses. Of an input of several files it is the checksum of the lines that
 * sha256sum(1) or b3sum(1) prints for them; files that are read beside the input have a sum alone.
 * One kind of checksum is the input's; another one is computed where something is to be compared
 * with that. One thread an object, besides its own. */
#include "pipeline/io/checksum.h"
#include "pipeline/raster/input_files.h"
#include "pipeline/raster/raster_file.h"

struct pb_input_sum;

/* A file that is read. */
struct pb_input_part {
    const struct pb_raster_file *file;
    const char *name; /* inside the input; NULL = the file is the whole input */
    enum pb_input_role role;
    bool beside; /* it has a checksum of its own, and is no part of the input's */
};
/* parts: 1 or more, in the order of the lines; borrowed for the call, as their files. kind: not
 * NONE. */
int pb_input_sum_create(const struct pb_input_part *part, size_t n, enum pb_checksum kind,
                        struct pb_err *err, struct pb_input_sum **out_sum);
enum pb_checksum pb_input_sum_kind(const struct pb_input_sum *sum);
/* That kind, too, is computed when the files are first read: who knows that it will be asked for
 * saves a second time. Before start. */
void pb_input_sum_want(struct pb_input_sum *sum, enum pb_checksum kind);
/* Starts the thread, unless it was. A process that forks does so before. */
int pb_input_sum_start(struct pb_input_sum *sum, struct pb_err *err);
/* The last so many bytes may wait for cores that are idle, until get is called: as many as are
 * hashed while the products are finished. 0 before the first call. */
void pb_input_sum_leave(struct pb_input_sum *sum, uint64_t bytes);
/* While get waits, it calls alive(user, bytes read so far) twice a second; may be NULL. */
void pb_input_sum_on_wait(struct pb_input_sum *sum, void (*alive)(void *user, uint64_t bytes),
                          void *user);
/* Starts if need be, waits for the end; reads the files once more for a kind that was not computed.
 * 0 and the checksum of that kind, of the files that lie at their paths now, unchanged since they
 * were opened; else what pb_raster_file_fail says, or input.changed. */
int pb_input_sum_get(struct pb_input_sum *sum, enum pb_checksum kind, struct pb_err *err,
                     char out_checksum[PB_CHECKSUM_TEXT_BYTES]);
/* Whether it is of one file, and nothing is read beside that. */
bool pb_input_sum_is_of_one(const struct pb_input_sum *sum);
/* How many files of pixels there are; from create on. */
size_t pb_input_sum_pixels(const struct pb_input_sum *sum);
/* The file of that name (as in struct pb_input_file) of the input as it is known so far: its size,
 * and its checksum of a kind after a get of that kind that returned 0. False: it is not among them.
 * From create on. */
struct pb_input_sum_file {
    uint64_t bytes;
    char checksum[PB_CHECKSUM_TEXT_BYTES]; /* "" = not known */
};
bool pb_input_sum_find(const struct pb_input_sum *sum, const char *name, enum pb_checksum kind,
                       struct pb_input_sum_file *out);
/* The files as they were read, with checksums of the input's kind, in the order of create, after a
 * get of that kind that returned 0. Leaves out->folder, and the name of a whole input, empty. */
void pb_input_sum_files(const struct pb_input_sum *sum, struct pb_input_files *out);
/* Ends the thread; waits for the read that it is in. NULL is fine. */
void pb_input_sum_destroy(struct pb_input_sum *sum);
#endif
