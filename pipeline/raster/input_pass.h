/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INPUT_PASS_H
#define PB_INPUT_PASS_H
/* Reads the files of an input once and computes checksums of one or more kinds: of each file,
 * and of the input (input_sum.h defines it). A second thread may hash the data while the next
 * bytes are read. A pass may be interrupted and continued by another thread. One thread at a
 * time, in addition to the hashing thread. */
#include "pipeline/io/background.h"
#include "pipeline/io/checksum.h"
#include "pipeline/raster/raster_file.h"

#include <stdatomic.h>

struct pb_input_part;

struct pb_input_pass_file {
    struct pb_raster_file file; /* with its own copies of descriptor and path */
    char *name;                 /* NULL: the file is the whole input */
    bool is_growing; /* a segment that was open at init and is not looked at before it is closed */
    bool beside;
    uint64_t bytes; /* bytes of it that the pass has read; its size if its checksums are known */
    char checksum[PB_CHECKSUM_KINDS][PB_CHECKSUM_TEXT_BYTES]; /* "" = not known */
};

struct pb_input_pass {
    struct pb_input_pass_file *file;
    size_t n;
    uint64_t total;                /* bytes of all */
    bool kinds[PB_CHECKSUM_KINDS]; /* kinds that the pass computes */
    size_t next;                   /* index of the current file */
    struct pb_sum *own[PB_CHECKSUM_KINDS],
        *all[PB_CHECKSUM_KINDS]; /* sums of file[next] and of all lines */
    char checksum[PB_CHECKSUM_KINDS][PB_CHECKSUM_TEXT_BYTES]; /* input; "" = not computed */
    /* For other threads: count of bytes read so far; `stop` ends the pass with -ECANCELED. */
    _Atomic uint64_t bytes;
    atomic_bool stop;
    bool cached_only;          /* a read that would wait for the storage interrupts the pass */
    char *chunk;               /* PB_BACKGROUND_PARTS chunks */
    unsigned turn;             /* count of chunks read; selects the next chunk buffer */
    struct pb_background hash; /* the hashing thread */
};

enum pb_input_pass_way {
    PB_INPUT_PASS_ALONE,  /* one thread reads and hashes */
    PB_INPUT_PASS_BESIDE, /* a second thread hashes */
    PB_INPUT_PASS_LEAVE   /* the pass is interrupted */
};

/* pass: zeroed. Call fini also after a failure. */
int pb_input_pass_init(struct pb_input_pass *pass, const struct pb_input_part *part, size_t n,
                       struct pb_err *err);
/* Size of the files with a checksum that the pass needs and that is not known yet. */
uint64_t pb_input_pass_unread(const struct pb_input_pass *pass);
/* Waits until segments that grew are closed, and takes their state from then on. Returns 0;
 * -ETIMEDOUT: one is open, call again; or an error. */
int pb_input_pass_settle(struct pb_input_pass *pass, int64_t timeout_ms, struct pb_err *err);
/* Restarts at the first file; keeps the checksums of other kinds. */
void pb_input_pass_begin(struct pb_input_pass *pass, const bool kinds[PB_CHECKSUM_KINDS]);
/* Calls `way` before each chunk. Returns 0: the checksums are complete; 1: interrupted, the next
 * call continues; negative errno. */
int pb_input_pass_run(struct pb_input_pass *pass, enum pb_input_pass_way (*way)(void *user),
                      void *user);
void pb_input_pass_fini(struct pb_input_pass *pass);
#endif
