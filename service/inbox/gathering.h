/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GATHERING_H
#define PB_GATHERING_H
/* Scenes of a scan: assembles the files of the inbox (pipeline/scene/assemble.h), offers each scene
 * to the intake as one input, and reports the scenes that wait. Thread: pool, one scan at a
 * time, except pb_gathering_asked. */
#include "service/inbox/asked.h"
#include "service/inbox/intake.h"

#define PB_GATHERING_TOLD_MAX 100 /* sets in the status */

/* Status of an incomplete set. */
struct pb_gathering_set {
    char scene[256], pipeline[256], missing[512]; /* pipeline "" = unknown */
    size_t files;
    int64_t expires_ms; /* wall clock; 0 = never */
};

struct pb_gathering_told {
    size_t n, n_all; /* sets in `set`; all incomplete sets */
    struct pb_gathering_set set[PB_GATHERING_TOLD_MAX];
};

struct pb_gathering;

struct pb_gathering *pb_gathering_create(void); /* NULL = out of memory */
void pb_gathering_destroy(struct pb_gathering *gathering);
/* Call after pb_settle_end: groups the files of settle and excludes those of sets from
 * pb_settle_next. Both clocks as of the start of the scan. */
void pb_gathering_sort(struct pb_gathering *gathering, const struct pb_inbox *inbox,
                       struct pb_intake *intake, struct pb_settle *settle, int64_t mono_ms,
                       int64_t wall_ms);
/* Returns the next complete input, each once a scan: first the files, then the sets; false at the
 * end. Its pointers are borrowed until the next scan. */
bool pb_gathering_next(struct pb_gathering *gathering, struct pb_settle *settle,
                       struct pb_claimed *out);
/* Call after the claim of the file or set. If it was not taken (rc), the reason is remembered as a
 * note of settle, and its files must settle again. */
void pb_gathering_claimed(struct pb_intake *intake, struct pb_settle *settle,
                          const struct pb_claimed *file);
/* Number of unsettled or waiting files; sidecars without a scene are not counted. */
size_t pb_gathering_waiting(const struct pb_gathering *gathering, const struct pb_settle *settle);
/* Milliseconds until the first incomplete set expires; -1: no set expires. */
int64_t pb_gathering_due_ms(const struct pb_gathering *gathering, int64_t wall_ms);
/* Writes the report of the last sort, with the notes of settle. */
void pb_gathering_show(const struct pb_gathering *gathering, const struct pb_settle *settle,
                       struct pb_gathering_told *out);
/* Metadata queries; owned by gathering, with a lock of their own. Thread: any. */
struct pb_asked *pb_gathering_asked(const struct pb_gathering *gathering);
#endif
