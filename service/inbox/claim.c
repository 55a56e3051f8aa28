/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Turns a settled file into a job: the file is opened, a read lease proves that no process has it
 * open for writing and blocks new writers, the file is renamed into work/<id>/, the lease must
 * still be held then (otherwise the file is moved back), and the job is stored. A descriptor for
 * writing stays valid across a rename, therefore without the lease a job could run on a file that
 * still grows.
 *
 * Each of these steps is done for a batch of files before the next one, so that a batch costs one
 * sync of the inbox and of work/, and one commit. The renames are on the disk before the jobs are:
 * a job that is stored has its input. */
#include "service/inbox/intake.h"

#include "config/base/base_name.h"
#include "pipeline/io/path.h"
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/inbox/claim_companion.h"
#include "service/inbox/claim_place.h"
#include "service/inbox/claim_set.h"
#include "service/inbox/earlier.h"
#include "service/inbox/inbox.h"
#include "service/inbox/origin.h"
#include "service/inbox/writer_events.h"
#include "service/inbox/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_TRIES 64

struct claim {
    const struct pb_inbox *inbox;
    const struct pb_settle_file *file;
    const struct pb_assembled *set;   /* the set that file represents; NULL if a single file */
    const struct pb_described *error; /* error of its job; NULL if no error is known */
    struct pb_claim_place place;
    struct pb_companion_rule companion;
    struct pb_staging *staging; /* staging of a set */
    struct pb_job *job;
    int fd;      /* descriptor of the file, for reading; holds the lease; -1 = closed */
    bool leased; /* true if no process can write the file */
    bool moved;  /* true if the file is in work/ */
    char from[PB_FILES_PATH_BYTES], directory[PB_FILES_PATH_BYTES], to[PB_FILES_PATH_BYTES];
};

/* Error code for an errno that is the machine's fault, not the file's. */
static enum pb_code machine_code(int error)
{
    return error == EMFILE || error == ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM;
}

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Returns true if the opened file is the one that had settled. A rename changes ctime. */
static bool is_what_settled(const struct claim *claim, bool renamed)
{
    struct stat st;
    const struct pb_settle_file *file = claim->file;
    if (file->is_folder) /* pb_intake_check_folder checks its content */
        return fstat(claim->fd, &st) == 0 && S_ISDIR(st.st_mode) &&
               (uint64_t)st.st_ino == file->inode;
    return fstat(claim->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
           (uint64_t)st.st_ino == file->inode && (uint64_t)st.st_size == file->size &&
           ns_of(&st.st_mtim) == file->mtime_ns &&
           (renamed || ns_of(&st.st_ctim) == file->ctime_ns);
}

int pb_intake_open(const char *path, struct pb_err *err)
{
    /* Does not block: another process may hold a lease on the file, or a pipe may have its name
     * now. */
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    int error = errno;
    if (error == ENOENT || error == ELOOP || error == EAGAIN || error == ENXIO)
        return -EAGAIN;
    if (error == EACCES || error == EPERM)
        return pb_fail(err, PB_E_INPUT_DENIED,
                       "the service (user id %d) has no right to read it: %s", (int)geteuid(),
                       strerror(error));
    return pb_fail(err, machine_code(error), "cannot open it: %s", strerror(error));
}

/* If writers cannot be detected, the file must have been unchanged between two scans. */
int pb_intake_check_writers(struct pb_intake *intake, const struct pb_inbox *inbox, int fd,
                            const struct pb_settle_file *file, bool *out_leased)
{
    int rc = pb_writers_look(fd);
    *out_leased = rc == 0;
    if (rc == 0)
        return 0;
    if (rc != -EBUSY && pb_writer_events_is_open(inbox->events, file->name, pb_clock_mono_ms()))
        rc = -EBUSY;
    if (rc == -EBUSY) {
        pb_log(PB_LOG_DEBUG, "inbox: %s is open for writing and waits", file->name);
        return -EAGAIN;
    }
    if (atomic_exchange(&intake->writers, rc) != rc) {
        pb_log(PB_LOG_WARNING,
               "inbox: files that are open for writing are %s; undetected ones count as complete "
               "after service.settle without change",
               pb_writers_word(rc));
    }
    return file->by_age ? -EAGAIN : 0;
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

/* A claim without a link has the only inbox itself as its origin (adopt.c). */
static int note_origin(const struct pb_intake *intake, const struct claim *claim,
                       const struct pb_job *job)
{
    bool is_plain = intake->dirs->n_inboxes == 1 && job->folder == NULL && job->priority == 0 &&
                    claim->companion.kind == PB_COMPANION_NONE;
    return is_plain ? 0 : pb_origin_write(claim->directory, claim->place.real);
}

/* Makes a new id and its directory in work/. */
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
        int rc = mkdir(claim->directory, 0755) == 0 ? note_origin(intake, claim, job) : -errno;
        if (rc == 0)
            return 0;
        if (rc != -EEXIST) {
            (void)rmdir(claim->directory);
            errno = -rc;
            return pb_fail(err, machine_code(errno), "cannot create %s: %s", claim->directory,
                           strerror(errno));
        }
    }
    return pb_fail(err, PB_E_SERVICE_STATE, "no free job id; see the state directory");
}

/* The rename changes "..", therefore a folder must be writable itself. */
static int fail_denied(const struct claim *claim, int error, struct pb_err *err)
{
    struct stat st;
    if (claim->file->is_folder && stat(claim->from, &st) == 0 &&
        faccessat(AT_FDCWD, claim->from, W_OK, AT_EACCESS) != 0)
        return pb_fail(err, PB_E_INPUT_DENIED,
                       "the service (user id %d) has no right to write in the folder, which moving "
                       "it needs; its mode is %04o, its owner user id %d, its group id %d",
                       (int)geteuid(), (unsigned)st.st_mode & 07777, (int)st.st_uid,
                       (int)st.st_gid);
    return pb_fail(err, PB_E_INPUT_DENIED,
                   "the service (user id %d) cannot move it to %s: %s; a sticky inbox must belong "
                   "to this user",
                   (int)geteuid(), claim->directory, strerror(error));
}

static int move_in(const struct claim *claim, struct pb_err *err)
{
    if (rename(claim->from, claim->to) == 0)
        return 0;
    int error = errno;
    if (error == ENOENT)
        return -EAGAIN;
    if (error == EPERM || error == EACCES)
        return fail_denied(claim, error, err);
    return pb_fail(err, machine_code(error), "cannot move it to %s: %s", claim->directory,
                   strerror(error));
}

/* Checks that the entry of the inbox may become a job, and returns its owner. */
static int look(struct pb_intake *intake, struct claim *claim, int64_t *out_uid, struct pb_err *err)
{
    struct stat st;
    if (claim->set != NULL)
        return pb_claim_set_check(intake, claim->inbox, claim->set, claim->place.path, false,
                                  out_uid, err);
    if (pb_files_join(claim->from, claim->place.path, pb_base_name(claim->file->name)) != 0)
        return pb_fail(err, PB_E_INPUT_MISSING, "path too long: %s", claim->file->name);
    claim->fd = pb_intake_open(claim->from, err);
    int rc = claim->fd < 0 ? claim->fd : 0;
    if (rc == 0 && !is_what_settled(claim, false))
        rc = -EAGAIN;
    if (rc == 0 && claim->file->is_folder)
        rc = pb_intake_check_folder(intake, claim->file, claim->from, false, err);
    else if (rc == 0)
        rc = pb_intake_check_writers(intake, claim->inbox, claim->fd, claim->file, &claim->leased);
    if (rc == 0)
        *out_uid = fstat(claim->fd, &st) == 0 ? (int64_t)st.st_uid : -1;
    return rc;
}

static int move_set_in(const struct pb_intake *intake, struct claim *claim, struct pb_err *err)
{
    claim->staging = calloc(1, sizeof *claim->staging);
    if (claim->staging == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    return pb_claim_set_move(intake, claim->set, &claim->place, claim->job, claim->to,
                             claim->staging, err);
}

/* Moves the files of a set back; a file that cannot be moved back stays for pb_intake_adopt. */
static void unmove_set(struct pb_intake *intake, struct claim *claim)
{
    if (claim->staging == NULL || pb_staging_undo(claim->staging, claim->moved ? claim->to : NULL))
        return;
    atomic_store(&intake->left, true);
    pb_log(PB_LOG_WARNING, "inbox: files of %s stay in %s", claim->file->name,
           claim->staging->path);
}

/* Returns true for loose files that become a folder of their scene. */
static bool is_group(const struct claim *claim)
{
    return claim->set != NULL && claim->set->form == PB_FORM_GROUP;
}

/* Adds the files to the manifest, with the state that had settled. */
static int note_delivered(const struct claim *claim)
{
    const struct pb_assembled *set = claim->set;
    const struct pb_settle_file *file = claim->file;
    int rc = 0;
    for (size_t i = 0; set != NULL && i < set->n && rc == 0; i++) {
        const struct pb_entry *one = pb_assembled_entry(set, i);
        const struct pb_manifest_entry of_set = {.path = (char *)pb_base_name(one->path),
                                                 .bytes = (int64_t)one->bytes,
                                                 .inode = one->inode,
                                                 .mtime_ns = one->mtime_ns,
                                                 .ctime_ns = one->ctime_ns};
        rc = pb_job_add_delivered(claim->job, claim->place.real, &of_set);
    }
    if (set != NULL)
        return rc;
    /* size and times of a folder are those of its content */
    struct pb_manifest_entry entry = {
        .path = (char *)pb_base_name(file->name), .is_folder = file->is_folder, .bytes = -1};
    entry.inode = file->inode;
    if (!file->is_folder) {
        entry.bytes = (int64_t)file->size;
        entry.mtime_ns = file->mtime_ns;
        entry.ctime_ns = file->ctime_ns;
    }
    return pb_job_add_delivered(claim->job, claim->place.real, &entry);
}

/* Arrival time of the last file of the input: ctime is also set by a rename and by a copy. */
static int64_t arrived_ms(const struct claim *claim)
{
    const struct pb_settle_file *file = claim->file;
    return (claim->set != NULL ? claim->set->youngest_ns
            : file->is_folder  ? file->mtime_ns /* the youngest ctime in the folder, see inbox.h */
                               : file->ctime_ns) /
           1000000;
}

/* Moves the input into work/. Negative: it is still in the inbox, or (claim->moved) it must be
 * moved back. */
static int bring_in(struct pb_intake *intake, struct claim *claim, struct pb_err *err)
{
    struct pb_job *job = claim->job;
    const char *name =
        claim->set != NULL ? pb_assembled_entry(claim->set, 0)->path : claim->file->name;
    int rc = pb_claim_place_open(&claim->place, claim->inbox, name);
    rc = rc ? rc : look(intake, claim, &job->uid, err);
    if (rc == 0 && pb_intake_describe_place(intake, job, claim->place.real, &claim->companion) != 0)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    if (rc != 0)
        return rc;
    job->owned = true;
    job->delivered_ms = arrived_ms(claim);
    if (is_group(claim))
        pb_intake_describe_set(job, claim->set->name, claim->set->pipeline);
    else
        pb_intake_describe(intake, job, pb_base_name(claim->file->name), claim->file->is_folder);
    if (claim->error != NULL)
        pb_job_fail_words(job, pb_code_id(claim->error->code), claim->error->message,
                          pb_code_hint(claim->error->code));
    if (!is_group(claim))
        rc = pb_claim_companion_expect(&claim->companion, &claim->place, claim->file->name, job,
                                       err);
    if (rc == 0 && note_delivered(claim) != 0)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    rc = rc ? rc : open_directory(intake, claim, job, err);
    if (rc != 0)
        return rc;
    rc = pb_job_set(&job->input, claim->to) ? pb_fail(err, PB_E_MEMORY, "out of memory") : 0;
    if (rc == 0 && is_group(claim))
        rc = pb_earlier_join(intake, job, err);
    if (rc == 0)
        rc = claim->set != NULL ? move_set_in(intake, claim, err) : move_in(claim, err);
    claim->moved = rc == 0;
    if (rc != 0 && claim->set != NULL)
        unmove_set(intake, claim);
    if (rc != 0)
        pb_origin_end(claim->directory);
    if (rc == 0 && !is_group(claim))
        rc = pb_claim_companion_take(&claim->companion, &claim->place, claim->file->name,
                                     claim->directory, job, err);
    return rc;
}

/* Moves the input back to the inbox. If a file with its name has arrived meanwhile, the input
 * stays for pb_intake_adopt. */
static void bring_back(struct pb_intake *intake, struct claim *claim)
{
    pb_claim_companion_give_back(&claim->place, claim->file->name, claim->job);
    if (claim->set != NULL) {
        unmove_set(intake, claim);
        claim->moved = false;
        pb_origin_end(claim->directory);
        return;
    }
    claim->moved = false;
    if (pb_files_rename_new(claim->to, claim->from, PB_FILES_LINK_ONLY) == 0) {
        pb_origin_end(claim->directory);
        return;
    }
    atomic_store(&intake->left, true);
    pb_log(PB_LOG_WARNING, "inbox: %s stays at %s: %s", claim->file->name, claim->to,
           strerror(errno));
}

static void sync_moves(const struct pb_intake *intake, const struct claim *claims, size_t n)
{
    const struct pb_claim_place *last = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct claim *claim = &claims[i];
        if (!claim->moved)
            continue;
        (void)pb_path_sync(claim->directory);
        if (last == NULL || strcmp(last->real, claim->place.real) != 0) /* sorted */
            (void)pb_path_sync(claim->place.path);
        last = &claim->place;
    }
    if (last != NULL)
        (void)pb_path_sync(intake->dirs->work);
}

static bool is_untouched(struct pb_intake *intake, const struct claim *claim)
{
    int64_t uid;
    if (claim->set != NULL)
        return pb_claim_set_check(intake, claim->inbox, claim->set, claim->to, true, &uid, NULL) ==
               0;
    if (claim->file->is_folder)
        return is_what_settled(claim, true) &&
               pb_intake_check_folder(intake, claim->file, claim->to, true, NULL) == 0;
    return is_what_settled(claim, true) && (claim->leased ? pb_writers_still_none(claim->fd)
                                                          : pb_writers_look(claim->fd) != -EBUSY);
}

/* Stores the jobs of all files that are in work/ and were not written meanwhile. */
static void store_jobs(struct pb_intake *intake, const struct claim *claims,
                       struct pb_claimed *files, size_t n)
{
    struct pb_job *jobs[PB_INTAKE_BATCH] = {NULL};
    int results[PB_INTAKE_BATCH] = {0};
    struct pb_err err = {0};
    size_t n_jobs = 0;
    for (size_t i = 0; i < n; i++) {
        const struct claim *claim = &claims[i];
        if (claim->moved && files[i].rc == 0 && !is_untouched(intake, claim))
            files[i].rc = -EAGAIN;
        if (claim->moved && files[i].rc == 0)
            jobs[n_jobs++] = claim->job;
    }
    int rc = pb_job_store_insert_all(intake->store, jobs, n_jobs, results, &err);
    for (size_t i = 0, at = 0; i < n; i++) {
        if (!claims[i].moved || files[i].rc != 0)
            continue;
        files[i].rc = rc            ? rc
                      : results[at] ? -EAGAIN
                                    : 0; /* an id that exists already: the next try makes another */
        files[i].err = err;
        at++;
    }
}

static void end_claims(struct pb_intake *intake, struct claim *claims, struct pb_claimed *files,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (files[i].rc != 0 && claims[i].moved)
            bring_back(intake, &claims[i]);
        if (files[i].rc != 0)
            pb_job_fini(&files[i].job);
        if (claims[i].fd >= 0)
            (void)close(claims[i].fd); /* releases the lease */
        pb_claim_place_close(&claims[i].place);
        if (files[i].rc == 0 && claims[i].staging != NULL)
            pb_staging_close(claims[i].staging);
        free(claims[i].staging);
    }
}

size_t pb_intake_claim(struct pb_intake *intake, const struct pb_inbox *inbox,
                       struct pb_claimed *files, size_t n)
{
    size_t tried = 0;
    bool fault = false;
    struct claim *claims = calloc(PB_INTAKE_BATCH, sizeof *claims);
    if (claims == NULL) {
        files[0].rc = pb_fail(&files[0].err, PB_E_MEMORY, "out of memory");
        return 1;
    }
    if (pb_intake_check_space(intake, &files[0].err) != 0) {
        files[0].rc = -ENOSPC;
        free(claims);
        return 1;
    }
    (void)pthread_rwlock_rdlock(&intake->moves);
    for (; tried < n && tried < PB_INTAKE_BATCH && !fault; tried++) {
        struct pb_claimed *file = &files[tried];
        claims[tried] = (struct claim){.inbox = inbox,
                                       .file = file->file,
                                       .set = file->set,
                                       .error = file->error,
                                       .job = &file->job,
                                       .fd = -1};
        claims[tried].place.fd = -1;
        pb_job_init(&file->job);
        file->err = (struct pb_err){0};
        file->rc = bring_in(intake, &claims[tried], &file->err);
        fault =
            file->rc != 0 && file->rc != -EAGAIN && pb_code_class(file->err.code) != PB_CLASS_INPUT;
    }
    sync_moves(intake, claims, tried);
    store_jobs(intake, claims, files, tried);
    end_claims(intake, claims, files, tried);
    (void)pthread_rwlock_unlock(&intake->moves);
    free(claims);
    return tried;
}
