/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INPUT_PASS_H
#define PB_INPUT_PASS_H
/* Goes through the files of an input once, and takes checksums of one or more kinds on the way: of
 * each file, and of the input (input_sum.h says what that is). A thread of its own may hash what
 * was read while the next bytes are read. A pass may be left in the middle and continued by another
 * thread. One thread at a time, besides its own. */
#include "pipeline/io/background.h"
#include "pipeline/io/checksum.h"
#include "pipeline/raster/input_files.h"
#include "pipeline/raster/raster_file.h"

#include <stdatomic.h>

struct pb_input_part;

struct pb_input_pass_file {
    struct pb_raster_file file; /* its descriptor and path are own copies */
    char *name;                 /* NULL: the file is the whole input */
    enum pb_input_role role;
    bool beside;
    uint64_t bytes;                                           /* that the pass has read of it */
    char checksum[PB_CHECKSUM_KINDS][PB_CHECKSUM_TEXT_BYTES]; /* "" = not taken */
};

struct pb_input_pass {
    struct pb_input_pass_file *file;
    size_t n;
    uint64_t total;                /* bytes of all */
    bool kinds[PB_CHECKSUM_KINDS]; /* that the pass takes */
    size_t next;                   /* the file that it is in */
    struct pb_sum *own[PB_CHECKSUM_KINDS],
        *all[PB_CHECKSUM_KINDS];                              /* of file[next], of all lines */
    char checksum[PB_CHECKSUM_KINDS][PB_CHECKSUM_TEXT_BYTES]; /* of the input; "" = not taken */
    /* For other threads: bytes read so far; ends it with -ECANCELED. */
    _Atomic uint64_t bytes;
    atomic_bool stop;
    char *chunk;               /* as many as the thread beside takes */
    unsigned turn;             /* which of them is next */
    struct pb_background hash; /* beside */
};

enum pb_input_pass_way {
    PB_INPUT_PASS_ALONE,  /* one thread reads and hashes */
    PB_INPUT_PASS_BESIDE, /* another one hashes */
    PB_INPUT_PASS_LEAVE   /* the rest is left */
};

/* pass: zeroed. To be fini'd, also after a failure. */
int pb_input_pass_init(struct pb_input_pass *pass, const struct pb_input_part *part, size_t n,
                       struct pb_err *err);
/* Goes to the beginning; the checksums of other kinds stay. */
void pb_input_pass_begin(struct pb_input_pass *pass, const bool kinds[PB_CHECKSUM_KINDS]);
/* Before each chunk it asks for the way. 0: the checksums are there; 1: the rest was left, and the
 * next call continues; negative errno. */
int pb_input_pass_run(struct pb_input_pass *pass, enum pb_input_pass_way (*way)(void *user),
                      void *user);
void pb_input_pass_fini(struct pb_input_pass *pass);
#endif
