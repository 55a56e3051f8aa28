/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SETS_H
#define PB_SETS_H
/* Groups loose files of the inbox into scenes (input.group) and selects the sets that are due. The
 * sets are made again by every scan, from the present names and the present configuration, without
 * a memory; therefore a restart or a reload in the middle of a delivery changes nothing. No I/O,
 * no clock of its own. Thread: any, one at a time.
 *
 * A set is due when no file of it arrived or changed for service.settle, and either all files of a
 * complete scene are present or the last change is input.complete.expire ago: then its job reports
 * the missing files. A single file with its metadata and sidecars is such a set as well. Files
 * that join a processed set (input.complete.reopen) are judged with those of its earlier jobs, and
 * wait while one of its jobs is not over, so that all files that arrive meanwhile become one job.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_config;

struct pb_set_file {
    const char *name; /* path below the inbox; borrowed from the caller until the next begin */
    uint64_t size, inode;
    int64_t mtime_ns, ctime_ns; /* wall clock */
    bool is_still;              /* it did not change for service.settle */
    size_t number;              /* number chosen by the caller */
};

/* Earlier jobs of this set. All-zero: no earlier jobs. */
struct pb_set_earlier {
    char **name; /* names of its files; array and names are malloc'd */
    size_t n;
    char busy[24]; /* id of a waiting or running job of the set; "" = no such job */
};

struct pb_set {
    char scene[256], pipeline[256];
    bool is_beside; /* a single file, whose name is `scene`, with the files that belong to it */
    const struct pb_set_file *file; /* sorted by name */
    size_t n;
    uint64_t bytes;
    int64_t youngest_ns; /* latest ctime of the files */
    int64_t expires_ms;  /* wall clock */
    /* period after its last job in which files may join it; 0 = they may not join */
    int64_t reopen_ms;
    size_t pipeline_number;
    struct pb_set_earlier earlier; /* set by pb_sets_know */
    bool is_due;
    bool is_incomplete;
    char missing[512]; /* description of the missing files of an incomplete set */
};

/* Clocks at the start of the scan. */
struct pb_sets_now {
    int64_t wall_ms;
    bool wall_is_trusted; /* the wall clock may be compared with ctimes */
};

struct pb_sets;

struct pb_sets *pb_sets_create(void);       /* NULL = out of memory */
void pb_sets_destroy(struct pb_sets *sets); /* NULL is allowed */
void pb_sets_begin(struct pb_sets *sets);
/* Adds a file. pipeline: its number in the configuration. scene: scene of a group; with is_beside,
 * name of the main file. -ENOMEM. */
int pb_sets_add(struct pb_sets *sets, size_t pipeline, const char *scene, bool is_beside,
                const struct pb_set_file *file);
/* Registers a file that arrived at that time (ctime) and whose set of the pipeline is not known
 * yet. Sets of the pipeline wait for it if their last file is newer, or if they lack files and
 * expire later. -ENOMEM. */
int pb_sets_await(struct pb_sets *sets, size_t pipeline, int64_t ctime_ns);
/* Forms the sets; config: configuration of the pipelines' numbers. -ENOMEM: there are no sets. */
int pb_sets_end(struct pb_sets *sets, const struct pb_config *config);
/* After end: sets the earlier jobs of set i; takes ownership of the content. */
void pb_sets_know(struct pb_sets *sets, size_t i, const struct pb_set_earlier *earlier);
/* Call after that: decides which sets are due. config: the same as for end. */
void pb_sets_judge(struct pb_sets *sets, const struct pb_config *config,
                   const struct pb_sets_now *now);
void pb_set_earlier_fini(struct pb_set_earlier *earlier); /* all-zero is allowed */
/* After end, until the next begin: */
size_t pb_sets_count(const struct pb_sets *sets);
const struct pb_set *pb_sets_at(const struct pb_sets *sets, size_t i);
/* Milliseconds until the first set that is not due expires; -1 if no set expires. Sets whose files
 * still change count when they are still. */
int64_t pb_sets_due_ms(const struct pb_sets *sets, int64_t wall_ms);
#endif
