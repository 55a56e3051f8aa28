/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A settled file becomes a job: the file is opened, a read lease shows that nobody has it open for
 * writing and keeps out who comes, it is renamed into work/<id>/, the lease must still stand then
 * (else it goes back), and the job is stored. A descriptor for writing lives on across a rename, so
 * a claim without the lease could run a file that still grows. */
#include "service/intake.h"

#include "pipeline/path.h"
#include "service/clock.h"
#include "service/log.h"
#include "service/writer_events.h"
#include "service/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_TRIES 64

struct claim {
    const struct pb_settle_file *file;
    int fd;      /* of the file, for reading; holds the lease */
    bool leased; /* nobody can write */
    char from[PB_FILES_PATH_BYTES], directory[PB_FILES_PATH_BYTES], to[PB_FILES_PATH_BYTES];
};

/* The code of an errno that is the machine's fault, not the file's. */
static enum pb_code machine_code(int error)
{
    return error == EMFILE || error == ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM;
}

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Whether what we hold is the file that had settled. A rename changes ctime. */
static bool is_what_settled(const struct claim *claim, bool renamed)
{
    struct stat st;
    const struct pb_settle_file *file = claim->file;
    return fstat(claim->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
           (uint64_t)st.st_ino == file->inode && (uint64_t)st.st_size == file->size &&
           ns_of(&st.st_mtim) == file->mtime_ns &&
           (renamed || ns_of(&st.st_ctim) == file->ctime_ns);
}

static int open_file(struct claim *claim, struct pb_err *err)
{
    /* Not blocking: another's lease on the file, or a pipe that took its name. */
    claim->fd = open(claim->from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (claim->fd >= 0)
        return 0;
    int error = errno;
    if (error == ENOENT || error == ELOOP || error == EAGAIN || error == ENXIO)
        return -EAGAIN;
    if (error == EACCES || error == EPERM)
        return pb_fail(err, PB_E_INPUT_MISSING,
                       "it cannot be read (%s); give user id %d read "
                       "permission",
                       strerror(error), (int)geteuid());
    return pb_fail(err, machine_code(error), "cannot open it: %s", strerror(error));
}

/* Nobody may be writing. Where that cannot be told, two looks at the file must have. */
static int check_writers(struct pb_intake *intake, struct claim *claim)
{
    int rc = pb_writers_look(claim->fd);
    claim->leased = rc == 0;
    if (rc == 0)
        return 0;
    if (rc != -EBUSY &&
        pb_writer_events_is_open(intake->events, claim->file->name, pb_clock_mono_ms()))
        rc = -EBUSY;
    if (rc == -EBUSY) {
        pb_log(PB_LOG_DEBUG, "inbox: %s is open for writing and waits", claim->file->name);
        return -EAGAIN;
    }
    if (intake->writers != rc) {
        intake->writers = rc;
        pb_log(PB_LOG_WARNING,
               "inbox: files that are open for writing are %s; where nothing is told a file "
               "counts as complete when it held still for service.settle",
               pb_writers_word(rc));
    }
    return claim->file->by_age ? -EAGAIN : 0;
}

static bool is_stored(const struct pb_intake *intake, const char *id)
{
    struct pb_job job;
    struct pb_err err = {0};
    if (pb_job_store_find(intake->store, id, &err, &job) != 0)
        return err.code != PB_E_JOB_UNKNOWN;
    pb_job_fini(&job);
    return true;
}

/* A new id and its directory below work/. */
static int open_directory(const struct pb_intake *intake, struct claim *claim, struct pb_job *job,
                          struct pb_err *err)
{
    for (int i = 0; i < ID_TRIES; i++) {
        pb_intake_make_id(job->id);
        if (is_stored(intake, job->id))
            continue;
        if (pb_files_join(claim->directory, intake->dirs->work, job->id) != 0 ||
            pb_files_join(claim->to, claim->directory, job->name) != 0)
            return pb_fail(err, PB_E_SYSTEM, "path too long: %s", intake->dirs->work);
        if (mkdir(claim->directory, 0755) == 0)
            return 0;
        if (errno != EEXIST)
            return pb_fail(err, machine_code(errno), "cannot create %s: %s", claim->directory,
                           strerror(errno));
    }
    return pb_fail(err, PB_E_SERVICE_STATE, "no free job id; see the state directory");
}

static int move_in(const struct claim *claim, struct pb_err *err)
{
    if (rename(claim->from, claim->to) == 0)
        return 0;
    int error = errno;
    if (error == ENOENT)
        return -EAGAIN;
    if (error == EPERM || error == EACCES)
        return pb_fail(err, PB_E_INPUT_MISSING,
                       "cannot move it to %s: %s; a sticky inbox must "
                       "belong to user id %d",
                       claim->directory, strerror(error), (int)geteuid());
    return pb_fail(err, machine_code(error), "cannot move it to %s: %s", claim->directory,
                   strerror(error));
}

static int store_job(const struct pb_intake *intake, const struct claim *claim, struct pb_job *job,
                     struct pb_err *err)
{
    struct stat st;
    job->uid = fstat(claim->fd, &st) == 0 ? (int64_t)st.st_uid : -1;
    (void)pb_path_sync(claim->directory);
    (void)pb_path_sync(intake->dirs->work);
    (void)pb_path_sync(intake->dirs->inbox);
    if (pb_job_set(&job->input, claim->to) != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    return pb_job_store_insert(intake->store, job, err);
}

/* The file is in work/: it becomes the job's, or goes back to the inbox. When that cannot be, for a
 * file of that name came meanwhile, it stays for pb_intake_adopt. */
static int settle_claim(struct pb_intake *intake, const struct claim *claim, struct pb_job *job,
                        struct pb_err *err)
{
    bool untouched =
        is_what_settled(claim, true) &&
        (claim->leased ? pb_writers_still_none(claim->fd) : pb_writers_look(claim->fd) != -EBUSY);
    int rc = untouched ? store_job(intake, claim, job, err) : -EAGAIN;
    if (rc == 0)
        return 0;
    if (pb_files_rename_new(claim->to, claim->from, PB_FILES_LINK_ONLY) == 0)
        return rc;
    intake->left = true;
    pb_log(PB_LOG_WARNING, "inbox: %s stays at %s: %s", claim->file->name, claim->to,
           strerror(errno));
    return rc;
}

static int claim_open_file(struct pb_intake *intake, struct claim *claim, struct pb_job *job,
                           struct pb_err *err)
{
    if (!is_what_settled(claim, false))
        return -EAGAIN;
    int rc = check_writers(intake, claim);
    rc = rc ? rc : open_directory(intake, claim, job, err);
    if (rc != 0)
        return rc;
    rc = move_in(claim, err);
    rc = rc ? rc : settle_claim(intake, claim, job, err);
    if (rc != 0)
        (void)rmdir(claim->directory); /* unless the file is in it */
    return rc;
}

int pb_intake_claim(struct pb_intake *intake, const struct pb_settle_file *file, struct pb_err *err,
                    struct pb_job *out_job)
{
    struct claim claim = {.file = file, .fd = -1};
    struct pb_job job;
    if (pb_files_join(claim.from, intake->dirs->inbox, file->name) != 0)
        return pb_fail(err, PB_E_INPUT_MISSING, "path too long: %s", file->name);
    int rc = open_file(&claim, err);
    if (rc != 0)
        return rc;
    pb_job_init(&job);
    job.owned = true;
    pb_intake_describe(intake, &job, file->name);
    rc = claim_open_file(intake, &claim, &job, err);
    (void)close(claim.fd); /* gives the lease back */
    if (rc == 0)
        *out_job = job;
    else
        pb_job_fini(&job);
    return rc;
}
