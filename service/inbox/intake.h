/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INTAKE_H
#define PB_INTAKE_H
/* Turns files into jobs. A file of the inbox is claimed by renaming it to work/<job id>/<name>,
 * then its job is stored: after a crash at any point the file is in work/ under the id of its job,
 * and the next start adopts it. A submitted file stays where it is. All operations that wait for
 * the disk run on libuv's pool, not on the loop. */
#include "config/service_config.h"
#include "pipeline/scene/assemble.h"
#include "service/inbox/dirs.h"
#include "service/inbox/inbox.h"
#include "service/jobs/job_store.h"

#include <pthread.h>
#include <stdatomic.h>

struct pb_config;

/* Settings of an inbox, without its path. */
struct pb_inbox_rule {
    bool recurse;
    int priority;
    struct pb_companion_rule companion;
};

struct pb_intake {
    struct pb_job_store *store;
    const struct pb_dirs *dirs;
    /* Protects config and inbox_rule, for moments: the loop waits for it. */
    pthread_rwlock_t lock;
    const struct pb_config *config; /* follows reloads: pb_intake_set_config */
    unsigned long config_number;    /* count of configurations */
    /* Paths of the inboxes of pb_dirs as configured at the start, and their current settings. */
    char *inbox_path[PB_INBOXES_MAX];
    struct pb_inbox_rule inbox_rule[PB_INBOXES_MAX];
    size_t n_inboxes;
    /* Time (pb_clock_boot_ms) until which files may be taken from an inbox, because this node
     * watches it; takes in progress. */
    atomic_int_fast64_t take_until_ms[PB_INBOXES_MAX];
    atomic_int takes[PB_INBOXES_MAX];
    atomic_int writers; /* result of pb_writers_probe: writers that can be detected */
    atomic_bool paused; /* the job store cannot be reached: nothing is taken in */
    atomic_bool drains; /* the service drains: files stay in the inboxes */
    atomic_bool left;   /* true if a claimed file is in work/ without a job */
    /* Read-locked while an input is moved into or out of work/<id>/ and the result is stored;
     * write-locked by pb_adopt_work while it handles one entry of work/, and by retention while it
     * removes one input. */
    pthread_rwlock_t moves;
};

/* store, dirs and writers must be set by the caller before. Thread: loop. */
void pb_intake_init(struct pb_intake *intake, const struct pb_config *config);
void pb_intake_fini(struct pb_intake *intake);
/* The previous config may be freed when this returns. Inboxes keep their numbers; an inbox that is
 * not in the new config keeps its rule. Thread: loop. */
void pb_intake_set_config(struct pb_intake *intake, const struct pb_config *config);
/* Copies the settings of the inbox with that number. Thread: any. */
void pb_intake_set_up(struct pb_intake *intake, size_t number, struct pb_inbox *inbox);
/* Files of the inbox with that number may be taken until this time (pb_clock_boot_ms); 0: not
 * any more; without a call: always. Thread: any. */
void pb_intake_allow(struct pb_intake *intake, size_t number, int64_t until_ms);
bool pb_intake_may_take(const struct pb_intake *intake, size_t number);
/* Begins to take files of the inbox, until pb_intake_end_take. False: they may not be taken. */
bool pb_intake_begin_take(struct pb_intake *intake, size_t number);
void pb_intake_end_take(struct pb_intake *intake, size_t number);
/* Returns true if files of the inbox are being taken, or may be. */
bool pb_intake_is_taking(const struct pb_intake *intake, size_t number);
/* Returns true if folders of that name become jobs: a pipeline matches, or, in an inbox that does
 * not recurse, service.unmatched quarantines them. Thread: any. */
bool pb_intake_takes_folder(struct pb_intake *intake, size_t number, const char *name,
                            bool recurse);
/* Returns true if service.ignore matches the path, which is relative to its inbox. Thread: any. */
bool pb_intake_ignores(struct pb_intake *intake, const char *path);
/* Returns true if a file with that path stays because of its name alone: no pipeline takes it as an
 * input, as a file of a scene, as metadata or as a sidecar, and service.unmatched leaves files, or
 * the inbox with that number is of another node, which decides about it. Thread: any. */
bool pb_intake_leaves(struct pb_intake *intake, size_t number, const char *path);
/* Number of the configuration in use, which every pb_intake_set_config changes. Thread: any. */
unsigned long pb_intake_config_number(struct pb_intake *intake);
/* Holds the configuration in use (pb_config_hold), for work that takes long: a reload does not wait
 * for it. *out_number: its number; NULL is allowed. Thread: any. */
struct pb_config *pb_intake_hold_config(struct pb_intake *intake, unsigned long *out_number);
/* Describes the job of a submitted file or folder. path is absolute and was checked
 * (service/status/checker.h); pipeline NULL = the first that matches the name. uid: user of the
 * client; identity: of the file that this user could read, "" = unknown. Thread: loop. */
int pb_intake_describe_submitted(struct pb_intake *intake, const char *path, bool is_folder,
                                 const char *pipeline, int64_t uid, const char *identity,
                                 struct pb_err *err, struct pb_job *out_job);
/* Gives the job an id and stores it. Thread: pool. */
int pb_intake_store(struct pb_intake *intake, struct pb_job *job, struct pb_err *err);

/* --- parts of a claim; Thread: as pb_claim_files and pb_adopt_work --- */

/* Returns 0 if the free space is at least service.retention.min_free; otherwise service.space.
 * Fails with service.state while `paused`. */
int pb_intake_check_space(struct pb_intake *intake, struct pb_err *err);
/* Makes a new id of a job. */
void pb_intake_make_id(char out[PB_JOB_ID_BYTES]);
/* Sets name, pipeline and times of a new job. */
void pb_intake_describe(struct pb_intake *intake, struct pb_job *job, const char *name,
                        bool is_folder);
/* Describes the job of a scene of a stream: name, the stream's pipeline and the manifest. path:
 * file of the scene in work/<id>/. is_complete: its lines are complete; false: the manifest has the
 * size -1, unknown. Returns 0 or -ENOMEM. */
int pb_intake_describe_lines(struct pb_intake *intake, struct pb_job *job, const char *stream,
                             const char *path, bool is_complete);
/* Sets name, pipeline and times of the job of a set of loose files. */
void pb_intake_describe_set(struct pb_job *job, const char *scene, const char *pipeline);
/* Sets the inbox, folder and priority (the inbox's) of a job whose input is, or was, in that
 * directory, which is an inbox or below one; returns the companion rule of the inbox. -ENOMEM. */
int pb_intake_describe_place(struct pb_intake *intake, struct pb_job *job, const char *directory,
                             struct pb_companion_rule *out_companion);

/* Finds the earlier jobs of a set of the inbox whose reopen_ms is not 0, which further files may
 * join (input.complete.reopen, service/jobs/set_parts.h). The caller must fini *out. Returns 0;
 * -ENOMEM; or *err if the store cannot be read. */
int pb_intake_find_earlier(struct pb_intake *intake, const struct pb_inbox *inbox,
                           const struct pb_assembled *set, struct pb_err *err,
                           struct pb_scene_earlier *out);
/* Sets the set of a new job of loose files, whose id, scene, folder and pipeline are set: the set
 * of the job that it replaces, otherwise a new one. */
int pb_intake_join_set(struct pb_intake *intake, struct pb_job *job, struct pb_err *err);
/* Forgets the sets that no file may join any more; retention may remove their files from then on.
 * Sets of a pipeline that was removed from the configuration keep its last `reopen`. Returns 0 or
 * *err. Thread: pool, one at a time. */
int pb_intake_trim_sets(struct pb_intake *intake, struct pb_err *err);
#endif
