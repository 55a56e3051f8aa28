/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GATHERING_H
#define PB_GATHERING_H
/* The files of a scan that belong together (service/gather/sets.h), offered to the intake as one
 * input each, and what status says about those that wait. Thread: pool and loop, one at a time. */
#include "service/gather/asked.h"
#include "service/gather/sets.h"
#include "service/inbox/intake.h"

#define PB_GATHERING_TOLD_MAX 100 /* sets that status names */

/* What clients are told of a set that is not complete. */
struct pb_gathering_set {
    char scene[256], pipeline[256], missing[512]; /* pipeline "": not known */
    size_t files;
    int64_t expires_ms; /* wall clock; 0 = never */
};

struct pb_gathering_told {
    size_t n, n_all; /* in set; all there are */
    struct pb_gathering_set set[PB_GATHERING_TOLD_MAX];
};

struct pb_gathering;

struct pb_gathering *pb_gathering_create(void); /* NULL = out of memory */
void pb_gathering_destroy(struct pb_gathering *gathering);
/* Behind pb_settle_end, of whose files it holds those of sets. Both clocks as of the scan's begin.
 */
void pb_gathering_sort(struct pb_gathering *gathering, const struct pb_inbox *inbox,
                       struct pb_intake *intake, struct pb_settle *settle, int64_t mono_ms,
                       int64_t wall_ms);
/* The next complete file, then set, each once a scan; false: there is none. Its pointers are
 * borrowed until the next scan. */
bool pb_gathering_next(struct pb_gathering *gathering, struct pb_settle *settle,
                       struct pb_claimed *out);
/* It was not taken, for the reason in *file, which is noted: its files have to settle once more. */
void pb_gathering_again(struct pb_gathering *gathering, struct pb_intake *intake,
                        struct pb_settle *settle, const struct pb_claimed *file);
/* Files that change still or wait for others, but for sidecars that lie there without a scene. */
size_t pb_gathering_waiting(const struct pb_gathering *gathering, const struct pb_settle *settle);
/* Milliseconds until the first incomplete set expires; -1: none does. */
int64_t pb_gathering_due_ms(const struct pb_gathering *gathering, int64_t wall_ms);
/* Copies what is told of the last sort and of the notes of settle, and gives that copy, until the
 * next one. Thread: loop, the first while the pool does not work on it. */
void pb_gathering_show(struct pb_gathering *gathering, const struct pb_settle *settle);
const struct pb_gathering_told *pb_gathering_shown(const struct pb_gathering *gathering);
/* What is to be asked of metadata. Its own, with a lock of its own. */
struct pb_asked *pb_gathering_asked(const struct pb_gathering *gathering);
#endif
