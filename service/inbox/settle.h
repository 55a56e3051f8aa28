/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SETTLE_H
#define PB_SETTLE_H
/* Finds the complete files of the inbox. Input: the files of each scan; output: the files that did
 * not change for long enough, and the time of the next check. Pure: no I/O, no clock of its own.
 * Thread: pool, one scan at a time (round.h).
 *
 * A file is complete when its size, mtime, ctime and inode did not change between two scans at
 * least `settle` apart on the monotonic clock. A file that is seen for the first time may be
 * complete by its age: when its mtime is older than `settle` (renamed in after it was written, or
 * there before the start). This depends on the wall clock; therefore such a file has by_age set,
 * and the caller checks that no process writes it; the rule is off for a while after a step of the
 * wall clock. An mtime in the future is ignored. A file whose rename the caller has seen may be
 * complete by its age as well, with any mtime: pb_settle_arrived. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_settle;

struct pb_settle_file {
    const char *name; /* path below the inbox; pb_settle_add copies it */
    uint64_t size, inode;
    int64_t mtime_ns, ctime_ns; /* wall clock; for those of a folder see inbox.h */
    bool is_folder;             /* true if size, mtime and ctime describe all its content */
    bool by_age;                /* output: complete only by its mtime or its rename */
    size_t n_files;             /* plain files in a folder; 0 for a file */
};

/* Why an entry stays in the inbox. */
enum pb_settle_reason {
    PB_SETTLE_LACKS,   /* waits for other files */
    PB_SETTLE_REFUSED, /* cannot be taken */
    PB_SETTLE_FOREIGN, /* no pipeline matches */
    PB_SETTLE_IGNORED  /* service.ignore matches */
};

struct pb_settle_note {
    enum pb_settle_reason reason;
    enum pb_code code;
    char pipeline[256]; /* set if files are missing; "" = not known */
    int64_t expires_ms; /* wall clock; 0 = never */
    char text[512];
};

struct pb_settle *pb_settle_create(void); /* NULL = out of memory */
void pb_settle_destroy(struct pb_settle *settle);

/* One scan: begin, add every file seen, end. Files not seen in it are forgotten. add: -ENOMEM. */
void pb_settle_begin(struct pb_settle *settle);
int pb_settle_add(struct pb_settle *settle, const struct pb_settle_file *file);
/* After begin: file i of the last scan, for a scan that examines a part of the inbox and adds the
 * other files as they were; NULL after the last one. *out_is_still: it is a file that was
 * unchanged for `settle` then; others must be examined by every scan. Borrowed until the next
 * begin. */
const struct pb_settle_file *pb_settle_last(const struct pb_settle *settle, size_t i,
                                            bool *out_is_still);
/* maximum drift of the clocks between two scans; a larger difference is a step */
#define PB_SETTLE_STEP_MS 1000
/* period after a step without use of mtimes; files seen first later were written later */
#define PB_SETTLE_DISTRUST_MS 60000
/* Both clocks as of pb_settle_begin; end_ms: the monotonic clock after the last add, because a file
 * that changed during the scan settles from then on. */
void pb_settle_end(struct pb_settle *settle, int64_t settle_ms, int64_t mono_ms, int64_t wall_ms,
                   int64_t end_ms);

/* After end, before the functions below: marks a file that was renamed in unchanged since this
 * scan; it is complete as long as it does not change. */
void pb_settle_arrived(struct pb_settle *settle, size_t i, int64_t mono_ms);
/* After end: all files of the scan, in the order of their names, borrowed until the next begin. */
size_t pb_settle_count(const struct pb_settle *settle);
const struct pb_settle_file *pb_settle_at(const struct pb_settle *settle, size_t i);
/* After end: excludes file i, which is one of a set, from pb_settle_next; it counts as waiting.
 * Returns true if it did not change between two scans at least `settle` apart, whatever its age. */
bool pb_settle_hold(struct pb_settle *settle, size_t i);
/* Returns true if pb_settle_hold was called for file i. */
bool pb_settle_is_held(const struct pb_settle *settle, size_t i);
/* Finds the file of that name; false if absent. */
bool pb_settle_find(const struct pb_settle *settle, const char *name, size_t *out_i);
/* After end, for files with a companion (inbox.h): TAKE: file i is complete, because its marker
 * exists. WAIT: incomplete, whatever its times. ASIDE: never taken, and not counted as waiting.
 * Returns true if it did not change between two scans at least `settle` apart. */
enum pb_settle_decision { PB_SETTLE_TAKE, PB_SETTLE_WAIT, PB_SETTLE_ASIDE };
bool pb_settle_decide(struct pb_settle *settle, size_t i, enum pb_settle_decision decision);
/* Makes file i complete only when `other` is complete, too. */
void pb_settle_wait_for(struct pb_settle *settle, size_t i, size_t other);
/* Returns true if the wall clock may be compared with the times of files. */
bool pb_settle_trusts_wall(const struct pb_settle *settle, int64_t mono_ms);
/* After end: the next complete file (borrowed until the next begin), each once a scan; or NULL. */
const struct pb_settle_file *pb_settle_next(struct pb_settle *settle);
/* After end: remembers (copies) why file i stays, in place of an earlier note, until the file
 * changes or is gone. NULL removes the note. Out of memory: no note. */
void pb_settle_set_note(struct pb_settle *settle, size_t i, const struct pb_settle_note *note);
/* The note of file i, borrowed until the next begin or set_note; NULL if absent. */
const struct pb_settle_note *pb_settle_note(const struct pb_settle *settle, size_t i);
/* Index of a file that pb_settle_next returned. */
size_t pb_settle_index(const struct pb_settle *settle, const struct pb_settle_file *file);
/* Call if the file was not taken: it must settle again. */
void pb_settle_again(struct pb_settle *settle, const struct pb_settle_file *file);
/* Call if file i was taken: it does not wait any more, and the next scan examines whether its name
 * exists. */
void pb_settle_taken(struct pb_settle *settle, size_t i);
/* Milliseconds until the first waiting file can be complete; -1 if no file waits. */
int64_t pb_settle_due_ms(const struct pb_settle *settle, int64_t mono_ms);
/* Number of files that settle, are held, or are complete but not returned by pb_settle_next. */
size_t pb_settle_waiting(const struct pb_settle *settle);
/* Number of files without a note that have to stay unchanged for some time yet. *out_due_ms: when
 * the last of them can be complete, on the monotonic clock. */
size_t pb_settle_settling(const struct pb_settle *settle, int64_t *out_due_ms);

/* Names that are never taken: dot-files, and .tmp .part .inprogress .filepart in any case. */
bool pb_settle_is_left_alone(const char *name);
#endif
