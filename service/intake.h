/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INTAKE_H
#define PB_INTAKE_H
/* How files become jobs. A file of the inbox is claimed by renaming it to work/<job id>/<name>,
 * then its job is stored: whatever happens in between, the file lies in work/ under the id of its
 * job, and the next start adopts it. A submitted file stays where it is. Thread: loop. */
#include "config/config.h"
#include "service/dirs.h"
#include "service/job_store.h"
#include "service/settle.h"
#include "service/troubles.h"

struct pb_writer_events;

struct pb_intake {
    struct pb_job_store *store;
    const struct pb_dirs *dirs;
    const struct pb_config *config;  /* follows reloads */
    int writers;                     /* what can be told of them: see pb_writers_probe */
    struct pb_writer_events *events; /* where leases are not given; NULL = not; the daemon's */
    bool left;                       /* a claimed file lies in work/ without a job */
};

/* Takes a settled file (claim.c). *out_job is the caller's to fini. -EAGAIN: it changed under our
 * hands, is gone or somebody has it open for writing, which is no error. Else *err says why not:
 * with a code of PB_CLASS_INPUT it is this file's matter, else nothing can be taken now. Whatever
 * fails, the file lies in the inbox again, or in work/ where pb_intake_adopt finds it. */
int pb_intake_claim(struct pb_intake *intake, const struct pb_settle_file *file, struct pb_err *err,
                    struct pb_job *out_job);
/* path is absolute and was looked at (service/checker.h); pipeline NULL = the first that fits the
 * name. uid: who asks; identity: of the file that this user could read, "" = not known. */
int pb_intake_submit(const struct pb_intake *intake, const char *path, const char *pipeline,
                     int64_t uid, const char *identity, struct pb_err *err, struct pb_job *out_job);
/* Files in work/ that belong to no job become jobs again, unless somebody still writes them, and
 * inputs of jobs that are over are put where they belong (adopt.c). At the start (at_start: no job
 * runs yet) the stored paths of the others are mended, too. What cannot be done now stays, is a
 * trouble ("work") and is done by a later call. Returns how many became jobs. */
int pb_intake_adopt(struct pb_intake *intake, bool at_start, struct pb_troubles *troubles);
/* Whether something stays in work/ that another pb_intake_adopt may put away. */
bool pb_intake_has_left(const struct pb_intake *intake, const struct pb_troubles *troubles);

/* Shared by the parts of the intake: a new id; names, pipeline and times of a new job. */
void pb_intake_make_id(char out[PB_JOB_ID_BYTES]);
void pb_intake_describe(const struct pb_intake *intake, struct pb_job *job, const char *name);
#endif
