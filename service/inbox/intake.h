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
#include "service/base/troubles.h"
#include "service/inbox/companion.h"
#include "service/inbox/dirs.h"
#include "service/inbox/settle.h"
#include "service/jobs/job_store.h"

#include <pthread.h>
#include <stdatomic.h>

struct pb_config;

#define PB_INTAKE_BATCH 64 /* files that are claimed at a time */

struct pb_inbox;

/* Settings of an inbox, without its path. */
struct pb_inbox_rule {
    bool recurse;
    int priority;
    struct pb_companion_rule companion;
};

struct pb_intake {
    struct pb_job_store *store;
    const struct pb_dirs *dirs;
    /* Protects config and inbox_rule. The loop reads them, and a scan on the pool may read them at
     * the same time. */
    pthread_rwlock_t lock;
    const struct pb_config *config; /* follows reloads: pb_intake_set_config */
    unsigned long config_number;    /* count of configurations */
    /* Paths of the inboxes of pb_dirs as configured at the start, and their current settings. */
    char *inbox_path[PB_INBOXES_MAX];
    struct pb_inbox_rule inbox_rule[PB_INBOXES_MAX];
    size_t n_inboxes;
    atomic_int writers; /* result of pb_writers_probe: writers that can be detected */
    atomic_bool left;   /* true if a claimed file is in work/ without a job */
    /* Read-locked while an input is moved into or out of work/<id>/ and the result is stored;
     * write-locked by pb_intake_adopt while it handles one entry of work/. */
    pthread_rwlock_t moves;
};

/* Settled file, and the result of its claim. */
struct pb_claimed {
    const struct pb_settle_file *file;
    const struct pb_assembled *set; /* the set that file represents; NULL if a single file */
    /* error that its job is to fail with; NULL if no error is known */
    const struct pb_described *error;
    /* 0: *job is set, and the caller must fini it. -EAGAIN: the file changed meanwhile, is gone,
     * is open for writing, or lacks other files (input.incomplete in err), which is no error.
     * Otherwise *err: a code of PB_CLASS_INPUT concerns this file only; with any other code no
     * file can be taken now. */
    int rc;
    struct pb_err err;
    struct pb_job job;
};

/* store, dirs and writers must be set by the caller before. Thread: loop. */
void pb_intake_init(struct pb_intake *intake, const struct pb_config *config);
void pb_intake_fini(struct pb_intake *intake);
/* The previous config may be freed when this returns. Inboxes keep their numbers; an inbox that is
 * not in the new config keeps its rule. Thread: loop. */
void pb_intake_set_config(struct pb_intake *intake, const struct pb_config *config);
/* Copies the settings of the inbox with that number. Thread: any. */
void pb_intake_set_up(struct pb_intake *intake, size_t number, struct pb_inbox *inbox);
/* Takes settled files of an inbox (claim.c), PB_INTAKE_BATCH at most, with one sync of each
 * directory and one transaction. After any failure a file is in the inbox again, or in work/ where
 * pb_intake_adopt finds it. Returns the count of files that were tried: fewer than n after a fault
 * of the machine. Thread: pool, one at a time for an inbox. */
size_t pb_intake_claim(struct pb_intake *intake, const struct pb_inbox *inbox,
                       struct pb_claimed *files, size_t n);
/* Returns true if folders of that name become jobs: a pipeline matches, or, in an inbox that does
 * not recurse, service.unmatched quarantines them. Thread: any. */
bool pb_intake_takes_folder(struct pb_intake *intake, const char *name, bool recurse);
/* Returns true if service.ignore matches the path, which is relative to its inbox. Thread: any. */
bool pb_intake_ignores(struct pb_intake *intake, const char *path);
/* Returns true if a file with that path stays because of its name alone: no pipeline takes it as an
 * input, as a file of a scene, as metadata or as a sidecar, and service.unmatched leaves files.
 * Thread: any. */
bool pb_intake_leaves(struct pb_intake *intake, const char *path);
/* Number of the configuration in use, which every pb_intake_set_config changes. Thread: any. */
unsigned long pb_intake_config_number(struct pb_intake *intake);
/* Checks whether a folder of the inbox may become a job (claim_folder.c): it is unchanged since it
 * settled, no process writes a file in it, and it is complete or has waited for
 * input.complete.expire; in the latter case its job reports the missing files. path: current path
 * of the folder, in the inbox or, if `moved`, in work/. Returns 0; -EAGAIN: not now, with
 * input.incomplete in *err if it lacks files; otherwise *err. Thread: pool. */
int pb_intake_check_folder(struct pb_intake *intake, const struct pb_settle_file *folder,
                           const char *path, bool moved, struct pb_err *err);
/* Describes the job of a submitted file or folder. path is absolute and was checked
 * (service/status/checker.h); pipeline NULL = the first that matches the name. uid: user of the
 * client; identity: of the file that this user could read, "" = unknown. Thread: loop. */
int pb_intake_describe_submitted(struct pb_intake *intake, const char *path, bool is_folder,
                                 const char *pipeline, int64_t uid, const char *identity,
                                 struct pb_err *err, struct pb_job *out_job);
/* Gives the job an id and stores it. Thread: pool. */
int pb_intake_store(struct pb_intake *intake, struct pb_job *job, struct pb_err *err);
struct pb_adopted {
    int adopted;         /* files that became jobs */
    int left;            /* entries that stay */
    struct pb_err first; /* reason of the first entry that stays */
};
/* Makes jobs again of the files in work/ that belong to no job, unless a process still writes
 * them, and archives or quarantines inputs of finished jobs (adopt.c). At the start (at_start: no
 * job runs yet) the stored paths of the other jobs are corrected as well. An entry that cannot be
 * handled now stays, is a trouble ("work", for pb_intake_report) and is handled by a later call;
 * files that a running job may read (set_parts.h) stay without a trouble. Thread: pool, one at a
 * time; at the start the main thread, before the loop runs. */
void pb_intake_adopt(struct pb_intake *intake, bool at_start, struct pb_adopted *out);
/* Raises or clears the trouble. Thread: loop. */
void pb_intake_report(const struct pb_adopted *adopted, struct pb_troubles *troubles);
/* Returns true if an entry stays in work/ that another pb_intake_adopt may handle. Thread: loop. */
bool pb_intake_has_left(const struct pb_intake *intake, const struct pb_troubles *troubles);

/* --- shared by the parts of the intake; Thread: as pb_intake_claim and pb_intake_adopt --- */

/* Returns 0 if the free space is at least service.retention.min_free; otherwise service.space. */
int pb_intake_check_space(struct pb_intake *intake, struct pb_err *err);
/* Makes a new id of a job. */
void pb_intake_make_id(char out[PB_JOB_ID_BYTES]);
/* Sets name, pipeline and times of a new job. */
void pb_intake_describe(struct pb_intake *intake, struct pb_job *job, const char *name,
                        bool is_folder);
/* Sets name, pipeline and times of the job of a set of loose files. */
void pb_intake_describe_set(struct pb_job *job, const char *scene, const char *pipeline);
/* Sets the inbox, folder and priority (the inbox's) of a job whose input is, or was, in that
 * directory, which is an inbox or below one; returns the companion rule of the inbox. -ENOMEM. */
int pb_intake_describe_place(struct pb_intake *intake, struct pb_job *job, const char *directory,
                             struct pb_companion_rule *out_companion);
/* Opens a file of an inbox for reading. Returns its descriptor; -EAGAIN: not now; otherwise *err.
 */
int pb_intake_open(const char *path, struct pb_err *err);
/* Returns 0 if no process has the file open for writing, or if that cannot be detected
 * (*out_leased: certainly no process); -EAGAIN if a process has. Uses only name and by_age of the
 * file. */
int pb_intake_check_writers(struct pb_intake *intake, const struct pb_inbox *inbox, int fd,
                            const struct pb_settle_file *file, bool *out_leased);
#endif
