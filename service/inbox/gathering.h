/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GATHERING_H
#define PB_GATHERING_H
/* The files of a scan that belong together (service/gather/sets.h), offered to the intake as one
 * input each, and the status of those that wait. Thread: pool and loop, one at a time. */
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
/* The set was not taken; stores the reason in *file. Its files have to settle again. */
void pb_gathering_again(struct pb_gathering *gathering, struct pb_intake *intake,
                        struct pb_settle *settle, const struct pb_claimed *file);
/* Number of unsettled or waiting files; sidecars without a scene are not counted. */
size_t pb_gathering_waiting(const struct pb_gathering *gathering, const struct pb_settle *settle);
/* Milliseconds until the first incomplete set expires; -1: no set expires. */
int64_t pb_gathering_due_ms(const struct pb_gathering *gathering, int64_t wall_ms);
/* Copies the report of the last sort and the notes of settle; shown returns that copy, until the
 * next one. Thread: loop; pb_gathering_show only while no scan runs on the pool. */
void pb_gathering_show(struct pb_gathering *gathering, const struct pb_settle *settle);
const struct pb_gathering_told *pb_gathering_shown(const struct pb_gathering *gathering);
/* Metadata queries; owned by gathering, with a lock of their own. */
struct pb_asked *pb_gathering_asked(const struct pb_gathering *gathering);
#endif
