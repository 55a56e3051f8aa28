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
 * sync of the inbox and of work/, and one commit. No lock is held while the files are checked: a
 * check reads all of a folder, and the checks after the rename find what changed meanwhile. The
 * renames are on the disk before the jobs are: a job that is stored has its input. */
#include "service/inbox/claim.h"

#include "config/base/base_name.h"
#include "config/base/clock.h"
#include "config/config.h"
#include "config/match.h"
#include "pipeline/io/path.h"
#include "pipeline/scene/assemble.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/scene_walk.h"
#include "service/base/log.h"
#include "service/inbox/staging.h"
#include "service/inbox/writers.h"
#include "service/jobs/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_TRIES 64

/* Error code for an errno that is the machine's fault, not the file's. */
static enum pb_code machine_code(int error)
{
    return error == EMFILE || error == ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM;
}

/* Opens a file of an inbox for reading. Returns its descriptor; -EAGAIN: not now; otherwise *err.
 */
static int open_file(const char *path, struct pb_err *err)
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

/* Returns 0 if no process has the file open for writing, or if that cannot be detected
 * (*out_leased: certainly no process); -EAGAIN if a process has. If writers cannot be detected, the
 * file must have been unchanged between two scans. Uses only name and by_age of the file. */
static int check_writers(struct pb_intake *intake, const struct pb_inbox *inbox, int fd,
                         const struct pb_settle_file *file, bool *out_leased)
{
    int rc = pb_writers_look(fd);
    *out_leased = rc == 0;
    if (rc == 0)
        return 0;
    if (rc != -EBUSY && pb_writers_events_is_open(inbox->events, file->name, pb_clock_mono_ms()))
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

/* --- places ----------------------------------------------------------------------------------- */

/* Directory that files are claimed from. A sub-folder of an inbox may belong to a sender, who
 * could put a link in its place while a file is claimed; therefore it is opened without following
 * links and used by its descriptor. */
struct place {
    int fd;                         /* descriptor of a sub-folder; -1 = the inbox itself */
    char path[PB_FILES_PATH_BYTES]; /* path for access to its entries */
    char real[PB_FILES_PATH_BYTES]; /* path for messages and for the job store */
};

/* Opens the directory that has the entry `name`, a path below the inbox. Returns 0, or -EAGAIN if
 * it is absent now. */
static int open_place(struct place *place, const struct pb_inbox *inbox, const char *name)
{
    char folder[PB_FILES_PATH_BYTES];
    size_t n = (size_t)(pb_base_name(name) - name);
    place->fd = -1;
    if (n == 0) {
        (void)snprintf(place->path, sizeof place->path, "%s", inbox->path);
        (void)snprintf(place->real, sizeof place->real, "%s", inbox->path);
        return 0;
    }
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(n - 1), name);
    if (pb_files_join(place->real, inbox->path, folder) != 0)
        return -EAGAIN;
    place->fd = pb_files_open_below(inbox->path, folder);
    (void)snprintf(place->path, sizeof place->path, "/proc/self/fd/%d", place->fd);
    return place->fd >= 0 ? 0 : -EAGAIN;
}

static void close_place(struct place *place)
{
    if (place->fd >= 0)
        (void)close(place->fd);
    place->fd = -1;
}

/* --- companions ------------------------------------------------------------------------------- */

/* Adds the companion to the job's manifest, before the files of the input, which may fill it.
 * Returns 0, also if the rule expects no companion; -EAGAIN: the rule does not fit; or *err. */
static int expect_companion(const struct pb_companion_rule *rule, const struct place *place,
                            const char *name, struct pb_job *job, struct pb_err *err)
{
    char beside[PB_FILES_PATH_BYTES];
    if (rule->kind == PB_COMPANION_NONE)
        return 0;
    if (!pb_companion_of(rule, pb_base_name(name), beside))
        return -EAGAIN;
    int rc = pb_job_expect_companion(job, place->real, beside, rule->kind == PB_COMPANION_CHECKSUM);
    if (rc == -ENOMEM)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    return rc ? pb_fail(err, PB_E_INPUT_LIMIT, "the path of %.200s is too long: %s", beside,
                        strerror(-rc))
              : 0;
}

/* Moves the companion into claim (work/<id>) after its input `name`: if the service dies in
 * between, the companion is still in the inbox, where pb_adopt_work finds it. Sets its place in the
 * job's manifest. Returns 0, also if the rule expects no companion; -EAGAIN: the companion is gone;
 * otherwise *err. */
static int take_companion(const struct pb_companion_rule *rule, const struct place *place,
                          const char *name, const char *claim, struct pb_job *job,
                          struct pb_err *err)
{
    char beside[PB_FILES_PATH_BYTES], moved[PB_FILES_PATH_BYTES];
    if (rule->kind == PB_COMPANION_NONE)
        return 0;
    if (!pb_companion_of(rule, pb_base_name(name), beside))
        return -EAGAIN;
    int rc = pb_companion_take(place->path, beside, claim, moved);
    if (rc == -ENOENT)
        return -EAGAIN;
    if (rc != 0)
        return pb_fail(err, rc == -EMFILE || rc == -ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM,
                       "cannot move %.200s to %s: %s", beside, claim, strerror(-rc));
    rc = pb_job_set_companion(job, moved);
    return rc ? pb_fail(err, PB_E_MEMORY, "out of memory") : 0;
}

/* Moves the companion back, before its input `name`: if the service dies in between, the next
 * start finds both. If another file has that name now, the companion would be assigned to that
 * file; then it stays in work/<id>, with the input, for pb_adopt_work. */
static void give_back_companion(const struct place *place, const char *name,
                                const struct pb_job *job)
{
    char input[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    const char *companion = pb_job_companion(job, path);
    if (companion != NULL && pb_files_join(input, place->path, pb_base_name(name)) == 0 &&
        faccessat(AT_FDCWD, input, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        (void)pb_companion_give_back(companion, place->path);
}

/* Claim of one input. */
struct claim {
    const struct pb_inbox *inbox;
    struct pb_claimed *of;
    struct place place;
    struct pb_companion_rule companion;
    struct pb_staging *staging; /* staging of a set */
    int fd;            /* descriptor of the file, for reading; holds the lease; -1 = closed */
    bool leased;       /* true if no process can write the file */
    bool moved;        /* true if the file is in work/ */
    bool is_uncertain; /* its job may be stored */
    char from[PB_FILES_PATH_BYTES], directory[PB_FILES_PATH_BYTES], to[PB_FILES_PATH_BYTES];
};

/* --- folders ---------------------------------------------------------------------------------- */

/* A folder is checked twice, before and after its rename into work/: a file that was written in
 * between has other times, and a file that is still open for writing has a writer. No leases are
 * held, because a scene may have more files than a process may have descriptors. */

static bool is_written(const struct pb_scene_walk *walk)
{
    bool written = false;
    for (size_t i = 0; i < walk->n && !written; i++) {
        int fd =
            walk->entry[i].is_link ? -1 : pb_scene_walk_open_file(walk, walk->entry[i].path, -1);
        if (fd < 0)
            continue; /* the job reports it if it needs the file */
        written = pb_writers_look(fd) == -EBUSY;
        (void)close(fd);
    }
    return written;
}

static bool is_folder_as_settled(const struct pb_settle_file *folder,
                                 const struct pb_scene_walk *walk, bool moved)
{
    struct pb_settle_file now = {.size = 0};
    pb_inbox_folder_facts(walk, &now);
    return now.size == folder->size && now.ctime_ns == folder->ctime_ns &&
           (moved || now.mtime_ns == folder->mtime_ns);
}

/* Returns -EAGAIN; if the folder lacks files, also *err and the end of its wait. */
static int wait_for(const struct pb_assembled *folder, struct pb_claimed *of, struct pb_err *err)
{
    if (folder->state != PB_SCENE_INCOMPLETE)
        return -EAGAIN;
    (void)pb_fail(err, PB_E_INPUT_INCOMPLETE, "%s", folder->missing);
    (void)snprintf(of->pipeline, sizeof of->pipeline, "%s", folder->pipeline);
    of->due_ms = folder->due_ms;
    return -EAGAIN;
}

/* Returns 0 also if the folder is incomplete but has waited for long enough; then the job reports
 * the missing files. -EAGAIN: the folder waits for the files that *err names. */
static int is_due(struct pb_intake *intake, const struct claim *claim,
                  const struct pb_scene_walk *walk, struct pb_err *err)
{
    char scene[256];
    const char *name = claim->of->file->name;
    int rc = 0;
    struct pb_assembly *assembly = pb_assembly_create();
    if (assembly == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", name);
    pb_scene_files_name(claim->from, scene, sizeof scene);
    struct pb_config *config = pb_intake_hold_config(intake, NULL);
    const struct pb_pipeline_config *pipeline = pb_config_match_folder(config, name);
    if (pipeline != NULL)
        rc = pb_assembly_folder(assembly, config, pipeline, walk, scene, pb_clock_wall_ms());
    if (rc != 0)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", name);
    else if (pipeline != NULL && pb_assembly_at(assembly, 0)->state != PB_SCENE_READY)
        rc = wait_for(pb_assembly_at(assembly, 0), claim->of, err);
    pb_assembly_destroy(assembly);
    pb_config_destroy(config);
    return rc;
}

/* Checks whether a folder of the inbox may become a job: it is unchanged since it settled, no
 * process writes a file in it, and it is complete or has waited for input.complete.expire; in the
 * latter case its job reports the missing files. moved: the folder is in work/, not in the inbox.
 * Returns 0; -EAGAIN: not now, with input.incomplete in *err if it lacks files; otherwise *err. */
static int check_folder(struct pb_intake *intake, const struct claim *claim, bool moved,
                        struct pb_err *err)
{
    struct pb_scene_walk walk;
    struct pb_err why = {0};
    int rc = pb_scene_walk_open(moved ? claim->to : claim->from, &why, &walk);
    if (rc < 0 && (why.code == PB_E_INPUT_LIMIT || why.code == PB_E_INPUT_DENIED))
        rc = pb_fail(err, why.code, "%s", why.msg);
    else if (rc < 0 && pb_code_class(why.code) != PB_CLASS_INPUT)
        rc = pb_fail(err, why.code, "%s", why.msg);
    else if (rc < 0 || !is_folder_as_settled(claim->of->file, &walk, moved) || is_written(&walk))
        rc = -EAGAIN;
    else if (walk.n_linked > 0)
        rc = pb_fail(err, PB_E_INPUT_LINK,
                     "%zu of its files have several names (hard links) and may be another user's; "
                     "copy them",
                     walk.n_linked);
    else if (!moved)
        rc = is_due(intake, claim, &walk, err);
    pb_scene_walk_close(&walk);
    return rc;
}

/* --- sets ------------------------------------------------------------------------------------- */

/* The files of a set move into a folder in work/, as if they had been delivered as one. They are
 * checked one by one before the move and again after it, as those of a folder. */

/* A rename changes ctime. */
static bool is_as_settled(const struct pb_settle_file *file, const struct stat *st, bool moved)
{
    return S_ISREG(st->st_mode) && st->st_nlink == 1 && (uint64_t)st->st_ino == file->inode &&
           (uint64_t)st->st_size == file->size && pb_clock_ns(&st->st_mtim) == file->mtime_ns &&
           (moved || pb_clock_ns(&st->st_ctim) == file->ctime_ns);
}

static int check_file(struct pb_intake *intake, const struct pb_inbox *inbox,
                      const struct pb_entry *file, const char *directory, bool moved,
                      struct stat *st, struct pb_err *err)
{
    char path[PB_FILES_PATH_BYTES];
    struct pb_err why = {0};
    const struct pb_settle_file settled = {.name = file->path,
                                           .size = file->bytes,
                                           .inode = file->inode,
                                           .mtime_ns = file->mtime_ns,
                                           .ctime_ns = file->ctime_ns};
    bool leased = false;
    const char *name = pb_base_name(file->path);
    if (pb_files_join(path, directory, name) != 0)
        return pb_fail(err, PB_E_INPUT_MISSING, "path too long: %s", name);
    int fd = open_file(path, &why);
    if (fd < 0)
        return fd == -EAGAIN ? fd : pb_fail(err, why.code, "%.100s: %s", name, why.msg);
    int rc = fstat(fd, st) == 0 && is_as_settled(&settled, st, moved) ? 0 : -EAGAIN;
    rc = rc ? rc : check_writers(intake, inbox, fd, &settled, &leased);
    (void)close(fd); /* releases the lease */
    return rc;
}

/* Checks that each file is as it settled and that no process writes it, in the directory where the
 * files are now: that of the inbox or, if `moved`, the folder that they were moved to. Returns 0
 * and their owner (-1: several owners); -EAGAIN: not ready now; otherwise *err, which names the
 * file. */
static int check_set(struct pb_intake *intake, const struct pb_inbox *inbox,
                     const struct pb_assembled *set, const char *directory, bool moved,
                     int64_t *out_uid, struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < set->n && rc == 0; i++) {
        struct stat st = {.st_uid = 0};
        rc = check_file(intake, inbox, pb_assembled_entry(set, i), directory, moved, &st, err);
        if (rc == 0)
            *out_uid = i == 0 || *out_uid == (int64_t)st.st_uid ? (int64_t)st.st_uid : -1;
    }
    return rc;
}

static int fail_to_move(const char *name, int rc, struct pb_err *err)
{
    if (rc == -ENOENT)
        return -EAGAIN;
    if (rc == -EPERM || rc == -EACCES)
        return pb_fail(err, PB_E_INPUT_DENIED,
                       "%s cannot be moved: %s; a sticky inbox must belong to user id %d", name,
                       strerror(-rc), (int)geteuid());
    return pb_fail(err, PB_E_SYSTEM, "%s cannot be moved: %s", name, strerror(-rc));
}

/* Moves the files from their place to the folder `to`, whose parent exists: all of them or no
 * file. -EAGAIN: a file is gone; otherwise *err. */
static int move_set(const struct pb_intake *intake, const struct pb_assembled *set,
                    const struct place *place, const struct pb_job *job, const char *to,
                    struct pb_staging *out_staging, struct pb_err *err)
{
    const char *name = "";
    int rc = pb_staging_open(out_staging, intake->dirs->work, job->id, job->name, place->real,
                             place->path, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < set->n && rc == 0; i++) {
        name = pb_base_name(pb_assembled_entry(set, i)->path);
        rc = pb_staging_take(out_staging, name);
    }
    rc = rc ? rc : pb_staging_commit(out_staging, to);
    return rc ? fail_to_move(name, rc, err) : 0;
}

/* --- claims ----------------------------------------------------------------------------------- */

/* Returns true if the opened file is the one that had settled. A rename changes ctime. */
static bool is_what_settled(const struct claim *claim, bool renamed)
{
    struct stat st;
    const struct pb_settle_file *file = claim->of->file;
    if (file->is_folder) /* check_folder checks its content */
        return fstat(claim->fd, &st) == 0 && S_ISDIR(st.st_mode) &&
               (uint64_t)st.st_ino == file->inode;
    return fstat(claim->fd, &st) == 0 && is_as_settled(file, &st, renamed);
}

/* Returns 1 if a job has the id and, unless NULL, that input; 0 if not; negative and err if the
 * store cannot be read. */
static int is_stored(const struct pb_intake *intake, const char *id, const char *input,
                     struct pb_err *err)
{
    struct pb_job job;
    struct pb_err why = {0};
    int rc = pb_job_store_find(intake->store, id, &why, &job);
    if (rc != 0 && why.code != PB_E_JOB_UNKNOWN) {
        *err = why;
        return rc;
    }
    if (rc != 0)
        return 0;
    const char *found = job.manifest.input;
    const bool is_it = input == NULL || (found != NULL && strcmp(found, input) == 0);
    pb_job_fini(&job);
    return is_it;
}

/* Returns true if the job may be stored in spite of the result: the connection was lost, or another
 * node took this one for dead, and made the job of the claimed input. */
static bool may_be_stored(const struct pb_intake *intake, const struct pb_job *job, int result)
{
    struct pb_err err = {0};
    return result != 0 && pb_store_is_shared(intake->store) &&
           (result != -EEXIST || is_stored(intake, job->id, job->manifest.input, &err) != 0);
}

/* Returns true if another node may have made the job of a claim that failed after its move: then
 * the file is the input of that job. A node that watches the inbox no longer cannot exclude it. */
static bool may_be_adopted(const struct pb_intake *intake, const struct claim *claim)
{
    struct pb_err err = {0};
    return pb_store_is_shared(intake->store) &&
           (!pb_intake_may_take(intake, claim->inbox->number) ||
            is_stored(intake, claim->of->job.id, claim->to, &err) != 0);
}

/* A claim without a link has the only inbox itself as its origin (adopt.c). Another node that
 * adopts a claim needs the link. */
static int note_origin(const struct pb_intake *intake, const struct claim *claim,
                       const struct pb_job *job)
{
    bool is_plain = !pb_store_is_shared(intake->store) && intake->dirs->n_inboxes == 1 &&
                    job->folder == NULL && job->priority == 0 &&
                    claim->companion.kind == PB_COMPANION_NONE;
    return is_plain ? 0 : pb_origin_write(claim->directory, claim->place.real);
}

/* Makes a new id and its directory in work/. */
static int open_directory(const struct pb_intake *intake, struct claim *claim, struct pb_job *job,
                          struct pb_err *err)
{
    for (int i = 0; i < ID_TRIES; i++) {
        pb_intake_make_id(job->id);
        int rc = is_stored(intake, job->id, NULL, err);
        if (rc < 0)
            return rc;
        if (rc > 0)
            continue;
        if (pb_files_join(claim->directory, intake->dirs->work, job->id) != 0 ||
            pb_files_join(claim->to, claim->directory, job->name) != 0)
            return pb_fail(err, PB_E_SYSTEM, "path too long: %s", intake->dirs->work);
        rc = mkdir(claim->directory, 0755) == 0 ? note_origin(intake, claim, job) : -errno;
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
    if (claim->of->file->is_folder && stat(claim->from, &st) == 0 &&
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

/* Opens the directory of the entry and checks that it may become a job, whose owner it sets. This
 * may take long, for a folder with many files or on slow storage. */
static int look(struct pb_intake *intake, struct claim *claim, struct pb_err *err)
{
    struct stat st;
    int64_t *const out_uid = &claim->of->job.uid;
    const char *name = claim->of->set != NULL ? pb_assembled_entry(claim->of->set, 0)->path
                                              : claim->of->file->name;
    if (open_place(&claim->place, claim->inbox, name) != 0)
        return -EAGAIN;
    if (claim->of->set != NULL)
        return check_set(intake, claim->inbox, claim->of->set, claim->place.path, false, out_uid,
                         err);
    if (pb_files_join(claim->from, claim->place.path, pb_base_name(claim->of->file->name)) != 0)
        return pb_fail(err, PB_E_INPUT_MISSING, "path too long: %s", claim->of->file->name);
    claim->fd = open_file(claim->from, err);
    int rc = claim->fd < 0 ? claim->fd : 0;
    if (rc == 0 && !is_what_settled(claim, false))
        rc = -EAGAIN;
    if (rc == 0 && claim->of->file->is_folder)
        rc = check_folder(intake, claim, false, err);
    else if (rc == 0)
        rc = check_writers(intake, claim->inbox, claim->fd, claim->of->file, &claim->leased);
    if (rc == 0)
        *out_uid = fstat(claim->fd, &st) == 0 ? (int64_t)st.st_uid : -1;
    return rc;
}

static int move_set_in(const struct pb_intake *intake, struct claim *claim, struct pb_err *err)
{
    claim->staging = calloc(1, sizeof *claim->staging);
    if (claim->staging == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    return move_set(intake, claim->of->set, &claim->place, &claim->of->job, claim->to,
                    claim->staging, err);
}

/* Moves the files of a set back; a file that cannot be moved back stays for pb_adopt_work. */
static void unmove_set(struct pb_intake *intake, struct claim *claim)
{
    if (claim->staging == NULL || pb_staging_undo(claim->staging, claim->moved ? claim->to : NULL))
        return;
    atomic_store(&intake->left, true);
    pb_log(PB_LOG_WARNING, "inbox: files of %s stay in %s", claim->of->file->name,
           claim->staging->path);
}

/* Returns true for loose files that become a folder of their scene. */
static bool is_group(const struct claim *claim)
{
    return claim->of->set != NULL && claim->of->set->form == PB_FORM_GROUP;
}

/* Adds the files to the manifest, with the state that had settled. */
static int note_delivered(const struct claim *claim)
{
    const struct pb_assembled *set = claim->of->set;
    const struct pb_settle_file *file = claim->of->file;
    int rc = 0;
    for (size_t i = 0; set != NULL && i < set->n && rc == 0; i++) {
        const struct pb_entry *one = pb_assembled_entry(set, i);
        const struct pb_manifest_entry of_set = {.path = (char *)pb_base_name(one->path),
                                                 .bytes = (int64_t)one->bytes,
                                                 .inode = one->inode,
                                                 .mtime_ns = one->mtime_ns,
                                                 .ctime_ns = one->ctime_ns};
        rc = pb_job_add_delivered(&claim->of->job, claim->place.real, &of_set, &set->member[i]);
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
    return pb_job_add_delivered(&claim->of->job, claim->place.real, &entry, NULL);
}

/* Arrival time of the last file of the input: ctime is also set by a rename and by a copy. */
static int64_t arrived_ms(const struct claim *claim)
{
    const struct pb_settle_file *file = claim->of->file;
    return (claim->of->set != NULL ? claim->of->set->youngest_ns
            : file->is_folder ? file->mtime_ns /* the youngest ctime in the folder, see inbox.h */
                              : file->ctime_ns) /
           1000000;
}

/* Moves the input into work/. Negative: it is still in the inbox, or (claim->moved) it must be
 * moved back. */
static int bring_in(struct pb_intake *intake, struct claim *claim, struct pb_err *err)
{
    struct pb_job *job = &claim->of->job;
    int rc = pb_intake_describe_place(intake, job, claim->place.real, &claim->companion);
    if (rc != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    job->owned = true;
    job->delivered_ms = arrived_ms(claim);
    if (is_group(claim))
        pb_intake_describe_set(job, claim->of->set->name, claim->of->set->pipeline);
    else
        pb_intake_describe(intake, job, pb_base_name(claim->of->file->name),
                           claim->of->file->is_folder);
    if (claim->of->error != NULL)
        pb_job_fail_words(job, pb_code_id(claim->of->error->code), claim->of->error->message,
                          pb_code_hint(claim->of->error->code));
    if (!is_group(claim))
        rc = expect_companion(&claim->companion, &claim->place, claim->of->file->name, job, err);
    if (rc == 0 && note_delivered(claim) != 0)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    rc = rc ? rc : open_directory(intake, claim, job, err);
    if (rc != 0)
        return rc;
    rc = pb_scene_manifest_set_input(&job->manifest, claim->to)
             ? pb_fail(err, PB_E_MEMORY, "out of memory")
             : 0;
    if (rc == 0 && is_group(claim))
        rc = pb_intake_join_set(intake, job, err);
    if (rc == 0)
        rc = claim->of->set != NULL ? move_set_in(intake, claim, err) : move_in(claim, err);
    claim->moved = rc == 0;
    if (rc != 0 && claim->of->set != NULL)
        unmove_set(intake, claim);
    if (rc != 0)
        pb_origin_end(claim->directory);
    if (rc == 0 && !is_group(claim))
        rc = take_companion(&claim->companion, &claim->place, claim->of->file->name,
                            claim->directory, job, err);
    return rc;
}

/* Moves the input back to the inbox. If a file with its name has arrived meanwhile, the input
 * stays for pb_adopt_work. */
static void bring_back(struct pb_intake *intake, struct claim *claim)
{
    give_back_companion(&claim->place, claim->of->file->name, &claim->of->job);
    if (claim->of->set != NULL) {
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
    pb_log(PB_LOG_WARNING, "inbox: %s stays at %s: %s", claim->of->file->name, claim->to,
           strerror(errno));
}

static void sync_moves(const struct pb_intake *intake, const struct claim *claims, size_t n)
{
    const struct place *last = NULL;
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

/* Returns true if the file that was moved is the opened one, not another that got its name. */
static bool is_the_opened(const struct claim *claim)
{
    struct stat opened, moved;
    return fstat(claim->fd, &opened) == 0 && lstat(claim->to, &moved) == 0 &&
           opened.st_dev == moved.st_dev && opened.st_ino == moved.st_ino;
}

static bool is_untouched(struct pb_intake *intake, const struct claim *claim)
{
    int64_t uid;
    if (claim->of->set != NULL)
        return check_set(intake, claim->inbox, claim->of->set, claim->to, true, &uid, NULL) == 0;
    if (claim->of->file->is_folder)
        return is_what_settled(claim, true) && check_folder(intake, claim, true, NULL) == 0;
    return is_the_opened(claim) && is_what_settled(claim, true) &&
           (claim->leased ? pb_writers_still_none(claim->fd)
                          : pb_writers_look(claim->fd) != -EBUSY);
}

/* Stores the jobs of all files that are in work/ and were not written meanwhile. */
static void store_jobs(struct pb_intake *intake, struct claim *claims, size_t n)
{
    struct pb_job *jobs[PB_CLAIM_BATCH] = {NULL};
    int results[PB_CLAIM_BATCH] = {0};
    struct pb_err err = {0};
    size_t n_jobs = 0;
    for (size_t i = 0; i < n; i++) {
        const struct claim *claim = &claims[i];
        if (claim->moved && claim->of->rc == 0 && !is_untouched(intake, claim))
            claim->of->rc = -EAGAIN;
        if (claim->moved && claim->of->rc == 0)
            jobs[n_jobs++] = &claim->of->job;
    }
    int rc = pb_store_offer_all(intake->store, jobs, n_jobs, results, &err);
    for (size_t i = 0, at = 0; i < n; i++) {
        struct pb_claimed *of = claims[i].of;
        if (!claims[i].moved || of->rc != 0)
            continue;
        /* an id that exists already: the next try makes another */
        of->rc = rc ? rc : results[at] ? -EAGAIN : 0;
        of->err = err;
        claims[i].is_uncertain = may_be_stored(intake, &of->job, rc ? rc : results[at]);
        at++;
    }
}

static void end_claims(struct pb_intake *intake, struct claim *claims, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct claim *claim = &claims[i];
        const bool is_taken = claim->of->rc == 0 && claim->moved;
        if (!is_taken && claim->moved && !claim->is_uncertain)
            claim->is_uncertain = may_be_adopted(intake, claim);
        const bool stays = is_taken || claim->is_uncertain;
        if (claim->is_uncertain) /* pb_adopt_work finds its job in the store, or makes it */
            atomic_store(&intake->left, true);
        else if (!is_taken && claim->moved)
            bring_back(intake, claim);
        if (!is_taken)
            pb_job_fini(&claim->of->job);
        if (claim->fd >= 0)
            (void)close(claim->fd); /* releases the lease */
        close_place(&claim->place);
        if (stays && claim->staging != NULL)
            pb_staging_close(claim->staging);
        free(claim->staging);
    }
}

/* Returns true if no other file can be taken either. */
static bool is_fault(const struct pb_claimed *of)
{
    return of->rc != 0 && of->rc != -EAGAIN && pb_code_class(of->err.code) != PB_CLASS_INPUT;
}

size_t pb_claim_files(struct pb_intake *intake, const struct pb_inbox *inbox,
                      struct pb_claimed *files, size_t n)
{
    size_t n_looked = 0, tried = 0;
    bool fault = false;
    struct claim *claims = calloc(PB_CLAIM_BATCH, sizeof *claims);
    if (claims == NULL) {
        files[0].rc = pb_fail(&files[0].err, PB_E_MEMORY, "out of memory");
        return 1;
    }
    if (pb_intake_check_space(intake, &files[0].err) != 0) {
        files[0].rc = -ENOSPC;
        free(claims);
        return 1;
    }
    for (; n_looked < n && n_looked < PB_CLAIM_BATCH && !fault; n_looked++) {
        struct pb_claimed *of = &files[n_looked];
        claims[n_looked] = (struct claim){.inbox = inbox, .of = of, .place = {.fd = -1}, .fd = -1};
        pb_job_init(&of->job);
        of->err = (struct pb_err){0};
        of->rc = look(intake, &claims[n_looked], &of->err);
        fault = is_fault(of);
    }
    (void)pthread_rwlock_rdlock(&intake->moves);
    for (fault = false; tried < n_looked && !fault; tried++) {
        struct pb_claimed *of = claims[tried].of;
        if (of->rc == 0 && !pb_intake_may_take(intake, inbox->number))
            of->rc = -EAGAIN; /* another node may watch the inbox now */
        if (of->rc == 0)
            of->rc = bring_in(intake, &claims[tried], &of->err);
        fault = is_fault(of);
    }
    sync_moves(intake, claims, tried);
    store_jobs(intake, claims, tried);
    end_claims(intake, claims, n_looked);
    (void)pthread_rwlock_unlock(&intake->moves);
    free(claims);
    return tried;
}
