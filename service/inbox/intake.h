/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INTAKE_H
#define PB_INTAKE_H
/* How files become jobs. A file of the inbox is claimed by renaming it to work/<job id>/<name>,
 * then its job is stored: whatever happens in between, the file lies in work/ under the id of its
 * job, and the next start adopts it. A submitted file stays where it is. All that waits for the
 * disk runs on libuv's pool, not on the loop. */
#include "config/config.h"
#include "service/inbox/companion.h"
#include "service/inbox/dirs.h"
#include "service/jobs/job_store.h"
#include "service/inbox/settle.h"
#include "service/base/troubles.h"

#include <pthread.h>
#include <stdatomic.h>

#define PB_INTAKE_BATCH 64 /* files that are claimed at a time */

struct pb_inbox;
struct pb_set;

/* What the configuration says of an inbox, but for its path. */
struct pb_inbox_rule {
    bool recurse;
    int priority;
    struct pb_companion_rule companion;
};

struct pb_intake {
    struct pb_job_store *store;
    const struct pb_dirs *dirs;
    /* config, inbox_rule. The loop reads them while a scan that reads them goes on. */
    pthread_rwlock_t lock;
    const struct pb_config *config; /* follows reloads: pb_intake_set_config */
    unsigned long config_number;    /* counts them */
    /* Of the inboxes of pb_dirs: their paths as configured at the start, and what holds for them
     * now. */
    char *inbox_path[PB_INBOXES_MAX];
    struct pb_inbox_rule inbox_rule[PB_INBOXES_MAX];
    size_t n_inboxes;
    atomic_int writers; /* which writers can be detected: see pb_writers_probe */
    atomic_bool left;   /* a claimed file lies in work/ without a job */
    /* Held for reading while an input is moved into or out of work/<id>/ and that is stored, for
     * writing by pb_intake_adopt while it handles one entry of work/. */
    pthread_rwlock_t moves;
};

/* A settled file, and the result of its claim. */
struct pb_claimed {
    const struct pb_settle_file *file;
    const struct pb_set *set;         /* the files that it stands for; NULL = itself */
    const struct pb_job_error *error; /* its job is to fail with that; NULL = none is known */
    /* 0: *job is there, for the caller to fini. -EAGAIN: it changed meanwhile, is gone, is open for
     * writing, or lacks files (input.incomplete in err), which is no error. Else *err: a code of
     * PB_CLASS_INPUT concerns this file only, any other means that no file can be taken now. */
    int rc;
    struct pb_err err;
    struct pb_job job;
};

/* store, dirs and writers are set by the caller, before. Thread: loop. */
void pb_intake_init(struct pb_intake *intake, const struct pb_config *config);
void pb_intake_fini(struct pb_intake *intake);
/* The config before may go when this returns. Inboxes keep their number; one that is not in the
 * config any more keeps its rule. Thread: loop. */
void pb_intake_set_config(struct pb_intake *intake, const struct pb_config *config);
/* Sets what the rules say of the inbox of that number. Thread: any. */
void pb_intake_set_up(struct pb_intake *intake, size_t number, struct pb_inbox *inbox);
/* Takes settled files of an inbox (claim.c), PB_INTAKE_BATCH at most, with one sync of each
 * directory and one transaction. Whatever fails, a file lies in the inbox again, or in work/ where
 * pb_intake_adopt finds it. Returns how many of them were tried: fewer than n after a fault of the
 * machine. Thread: pool, one at a time for an inbox. */
size_t pb_intake_claim(struct pb_intake *intake, const struct pb_inbox *inbox,
                       struct pb_claimed *files, size_t n);
/* Whether folders of that name become jobs: a pipeline fits, or in an inbox that does not recurse
 * service.unmatched quarantines them. Thread: any. */
bool pb_intake_takes_folder(struct pb_intake *intake, const char *name, bool recurse);
/* Whether service.ignore leaves what has that path below its inbox alone. Thread: any. */
bool pb_intake_ignores(struct pb_intake *intake, const char *path);
/* Whether a folder of the inbox may become a job (claim_folder.c): it is as it settled, no process
 * writes a file in it, and it is complete, or has waited for input.complete.expire: then its job
 * says what is missing. path: where it lies now, in the inbox or, `moved`, in work/. 0; -EAGAIN:
 * not now, with input.incomplete in *err if it lacks files; else *err. Thread: pool. */
int pb_intake_check_folder(struct pb_intake *intake, const struct pb_settle_file *folder,
                           const char *path, bool moved, struct pb_err *err);
/* The job of a submitted file or folder. path is absolute and was checked
 * (service/status/checker.h);
 * pipeline NULL = the first that fits the name. uid: of the client; identity: of the file that this
 * user could read, "" = not known. Thread: loop. */
int pb_intake_describe_submitted(struct pb_intake *intake, const char *path, bool is_folder,
                                 const char *pipeline, int64_t uid, const char *identity,
                                 struct pb_err *err, struct pb_job *out_job);
/* Gives it an id and stores it. Thread: pool. */
int pb_intake_store(struct pb_intake *intake, struct pb_job *job, struct pb_err *err);
/* Files in work/ that belong to no job become jobs again, unless a process still writes them, and
 * inputs of finished jobs are archived or quarantined (adopt.c). At the start (at_start: no job
 * runs yet) the stored paths of the others are mended, too. An entry that cannot be handled now
 * stays, is a trouble ("work", for pb_intake_report) and is handled by a later call; so are files
 * that a running job may read (set_parts.h), which is no trouble. Thread: pool, one at a time. */
struct pb_adopted {
    int adopted;         /* files that became jobs */
    int left;            /* entries that stay */
    struct pb_err first; /* the reason of the first one */
};
void pb_intake_adopt(struct pb_intake *intake, bool at_start, struct pb_adopted *out);
/* Raises or clears the trouble. Thread: loop. */
void pb_intake_report(const struct pb_adopted *adopted, struct pb_troubles *troubles);
/* Whether something stays in work/ that another pb_intake_adopt may put away. */
bool pb_intake_has_left(const struct pb_intake *intake, const struct pb_troubles *troubles);

/* --- shared by the parts of the intake --- */

/* 0 if the free space is at least service.retention.min_free; else service.space. */
int pb_intake_check_space(struct pb_intake *intake, struct pb_err *err);
/* Makes a new id of a job. */
void pb_intake_make_id(char out[PB_JOB_ID_BYTES]);
/* Sets name, pipeline and times of a new job. */
void pb_intake_describe(struct pb_intake *intake, struct pb_job *job, const char *name,
                        bool is_folder);
/* The same for a set of loose files. */
void pb_intake_describe_set(struct pb_job *job, const char *scene, const char *pipeline);
/* The inbox and the folder of a job whose input lies, or lay, in that directory, an inbox or one
 * below it, and its priority, which is the inbox's; what it expects beside an input. -ENOMEM. */
int pb_intake_describe_place(struct pb_intake *intake, struct pb_job *job, const char *directory,
                             struct pb_companion_rule *out_companion);
/* Opens a file of an inbox for reading: its descriptor; -EAGAIN: not now; else *err. */
int pb_intake_open(const char *path, struct pb_err *err);
/* 0: no process has it open for writing, or that cannot be known (*out_leased: no process can);
 * -EAGAIN: one has. Of the file name and by_age count. */
int pb_intake_check_writers(struct pb_intake *intake, const struct pb_inbox *inbox, int fd,
                            const struct pb_settle_file *file, bool *out_leased);
#endif
