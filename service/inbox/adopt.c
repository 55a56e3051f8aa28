/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The directory name work/<id>/ is the id of the job. An entry that cannot be handled is logged
 * and left; the sweep continues with the others. */
#include "service/inbox/adopt.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/base/base_name.h"
#include "pipeline/io/nameless.h"
#include "pipeline/io/path.h"
#include "pipeline/lines/segment.h"

#include "pipeline/scene/sidecars.h"
#include "pipeline/scene/single.h"
#include "service/inbox/staging.h"
#include "service/inbox/input_store.h"
#include "service/jobs/kept.h"
#include "service/jobs/set_parts.h"
#include "service/base/log.h"
#include "service/inbox/writers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sweep {
    struct pb_intake *intake;
    const char *work; /* the swept directory */
    /* directory of claims without an origin; NULL: the only inbox */
    const char *inbox;
    bool at_start;
    struct pb_adopted *out;
};

/* Returns true for the work/ of this service, not of another node. */
static bool is_own(const struct sweep *sweep)
{
    return sweep->work == sweep->intake->dirs->work;
}

static void leave(struct sweep *sweep, const char *id, const struct pb_err *err)
{
    char text[sizeof err->msg];
    (void)snprintf(text, sizeof text, "%s", err->msg);
    if (sweep->out->left++ == 0)
        (void)pb_fail(&sweep->out->first, err->code ? err->code : PB_E_SYSTEM, "%s/%s: %s",
                      is_own(sweep) ? "work" : sweep->work, id, text);
}

/* Sets the pipeline of a folder that no input.scene matches: the folder may be a set of loose
 * files. Returns 1 if found, 0 if not, or a fault of the machine. The start of the job reports
 * errors of the folder itself. */
static int find_group(struct pb_intake *intake, struct pb_job *job, const char *path,
                      struct pb_err *err)
{
    struct pb_config *config = pb_intake_hold_config(intake, NULL);
    const struct pb_pipeline_config *pipeline = NULL;
    struct pb_err why = {0};
    int rc = pb_set_folder_pipeline(config, path, job->name, &why, &pipeline);
    if (rc < 0)
        rc = pb_code_class(why.code) != PB_CLASS_INPUT ? pb_fail(err, why.code, "%s", why.msg) : 0;
    if (pipeline != NULL)
        (void)snprintf(job->pipeline, sizeof job->pipeline, "%s", pipeline->name);
    pb_config_destroy(config);
    return rc < 0 ? rc : pipeline != NULL;
}

/* Fetches the companion of an input if it was not moved yet; not if a new file with the input's
 * name has arrived since, because the companion then belongs to that file. The directory may
 * belong to a sender, therefore no link in it is followed. */
static bool fetch_companion(const struct pb_intake *intake, const struct pb_companion_rule *rule,
                            const struct pb_job *job, const char *claim, const char *from,
                            char out[PB_FILES_PATH_BYTES])
{
    char name[PB_FILES_PATH_BYTES], directory[64];
    int fd = -1, rc = -ENOENT;
    const size_t i = pb_dirs_inbox_of(intake->dirs, from);
    if (i < intake->dirs->n_inboxes) {
        const size_t n = strlen(intake->dirs->inbox[i]);
        fd = pb_files_open_below(intake->dirs->inbox[i], from + n + (from[n] == '/'));
    }
    if (fd < 0)
        return false;
    (void)snprintf(directory, sizeof directory, "/proc/self/fd/%d", fd);
    if (faccessat(fd, job->name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
        pb_companion_of(rule, job->name, name))
        rc = pb_companion_take(directory, name, claim, out);
    (void)close(fd);
    return rc == 0;
}

static int adopt_place(struct pb_intake *intake, struct pb_job *job, const char *claim,
                       const char *from, bool is_set)
{
    struct pb_companion_rule rule;
    char companion[PB_FILES_PATH_BYTES], expected[PB_FILES_PATH_BYTES];
    int rc = pb_intake_describe_place(intake, job, from, &rule);
    if (rc != 0 || rule.kind == PB_COMPANION_NONE || is_set) /* a set has no companion */
        return rc;
    const bool found = pb_companion_find(claim, companion) ||
                       fetch_companion(intake, &rule, job, claim, from, companion);
    if (!pb_companion_of(&rule, job->name, expected))
        (void)snprintf(expected, sizeof expected, "%s", job->name);
    rc = pb_job_expect_companion(job, from, found ? pb_base_name(companion) : expected,
                                 rule.kind == PB_COMPANION_CHECKSUM);
    return rc || !found ? rc : pb_job_set_companion(job, companion);
}

/* Finds the directory that the input was claimed from. A claim without an origin link is from the
 * only inbox (claim.c). */
static bool find_origin(const struct sweep *sweep, const char *claim, char out[PB_FILES_PATH_BYTES])
{
    if (pb_origin_read(claim, out) == 0)
        return true;
    if (sweep->inbox != NULL)
        (void)snprintf(out, PB_FILES_PATH_BYTES, "%s", sweep->inbox);
    return sweep->inbox != NULL;
}

/* Returns true if this sweep handles what was claimed from the directory: of the claims of another
 * node those from inboxes that this one watches now. */
static bool is_taken_over(const struct sweep *sweep, const char *from)
{
    const struct pb_dirs *dirs = sweep->intake->dirs;
    const size_t i = pb_dirs_inbox_of(dirs, from);
    return is_own(sweep) || (i < dirs->n_inboxes && pb_intake_may_take(sweep->intake, i));
}

/* Adds the entry at `path` to the manifest with `from`, the directory of its delivery. Its ctime is
 * that of the claim; the ctime at delivery is unknown. */
static int note_file(struct pb_job *job, const char *from, const char *path)
{
    struct stat st;
    const bool is_there = lstat(path, &st) == 0, is_plain = is_there && S_ISREG(st.st_mode);
    const struct pb_manifest_entry file = {.path = (char *)pb_base_name(path),
                                           .is_folder = is_there && S_ISDIR(st.st_mode),
                                           .inode = is_there ? st.st_ino : 0,
                                           .bytes = is_plain ? (int64_t)st.st_size : -1,
                                           .mtime_ns = is_plain ? pb_clock_ns(&st.st_mtim) : 0};
    return pb_job_add_delivered(job, from, &file, NULL);
}

static int is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Does the same for the files of a folder, which were delivered as single files. */
static int note_folder(struct pb_job *job, const char *from, const char *folder)
{
    char path[PB_FILES_PATH_BYTES];
    struct dirent **entry = NULL;
    int n = scandir(folder, &entry, is_name, alphasort);
    int rc = n < 0 && errno == ENOMEM ? -ENOMEM : 0;
    for (int i = 0; i < n; i++) {
        if (rc == 0 && pb_files_join(path, folder, entry[i]->d_name) == 0)
            rc = note_file(job, from, path);
        free(entry[i]);
    }
    free(entry);
    return rc;
}

/* Describes the job of a claim. Returns 1, or a negative errno and *err. Returns 0 if no pipeline
 * here matches the claim of another node: it stays for that node. */
static int describe_claim(struct sweep *sweep, struct pb_job *job, const char *path,
                          bool is_directory, struct pb_err *err)
{
    char claim[PATH_MAX], main[PATH_MAX], from[PB_FILES_PATH_BYTES];
    struct pb_intake *intake = sweep->intake;
    const bool is_beside = is_directory && pb_sidecar_main(path, main);
    const bool is_folder = is_directory && !is_beside;
    pb_intake_describe(intake, job, pb_base_name(path), is_folder);
    const bool may_be_set = is_folder && job->pipeline[0] == '\0';
    const int found = may_be_set ? find_group(intake, job, path, err) : 0;
    const bool is_set = found == 1;
    if (found >= 0 && job->pipeline[0] == '\0' && !is_own(sweep))
        return 0;
    int rc = found < 0 ? found : pb_scene_manifest_set_input(&job->manifest, path);
    pb_path_parent(path, claim);
    const bool is_known = find_origin(sweep, claim, from);
    if (rc == 0 && is_known && pb_origin_stream(from) != NULL)
        return pb_intake_describe_lines(intake, job, pb_origin_stream(from), path, true) == 0
                   ? 1
                   : pb_fail(err, PB_E_MEMORY, "out of memory");
    if (rc == 0 && is_known)
        rc = adopt_place(intake, job, claim, from, is_set);
    if (rc == 0 && is_known)
        rc = is_set || is_beside ? note_folder(job, from, path) : note_file(job, from, path);
    if (rc == 0 && is_set)
        rc = pb_intake_join_set(intake, job, err);
    return rc ? rc : 1;
}

/* Adopts a file without a job: it was claimed when the service died, or could not be moved back to
 * the inbox. */
static int adopt_file(struct sweep *sweep, const char *id, const char *path, struct pb_err *err)
{
    struct pb_job job;
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || (!S_ISDIR(st.st_mode) && pb_writers_look(fd) == -EBUSY)) {
        int rc = fd < 0 ? pb_fail(err, PB_E_SYSTEM, "cannot open %s: %s", path, strerror(errno))
                        : pb_fail(err, PB_E_SYSTEM, "%s is open for writing", path);
        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    pb_job_init(&job);
    job.owned = true;
    job.uid = st.st_uid;
    (void)snprintf(job.id, sizeof job.id, "%.*s", (int)sizeof job.id - 1, id);
    const int described = describe_claim(sweep, &job, path, S_ISDIR(st.st_mode), err);
    int rc = described > 0 ? pb_store_offer(sweep->intake->store, &job, err) : described;
    (void)close(fd);
    if (described > 0 && rc == 0) {
        pb_log(PB_LOG_NOTICE, "work: %s belonged to no job and is job %s now", path, id);
        sweep->out->adopted++;
    }
    if (described > 0 && rc == -EEXIST)
        rc = 0; /* another node has adopted it at the same time */
    pb_job_fini(&job);
    return rc;
}

static enum pb_on_success on_success(struct pb_intake *intake)
{
    (void)pthread_rwlock_rdlock(&intake->lock);
    enum pb_on_success what = intake->config->service.on_success;
    (void)pthread_rwlock_unlock(&intake->lock);
    return what;
}

/* Returns 1 if a running job of the same set reads the files of this job, at the paths that they
 * had when that job started. */
static int is_read(struct sweep *sweep, const struct pb_job *job, struct pb_err *err)
{
    int rc =
        job->set_id[0] != '\0' ? pb_set_parts_in_use(sweep->intake->store, job->set_id, err) : 0;
    if (rc == 1)
        atomic_store(&sweep->intake->left, true);
    return rc;
}

static int put_away(struct pb_intake *intake, struct pb_job *job, struct pb_input_lists *lists,
                    struct pb_err *err)
{
    if (lists->input.n == 0) { /* the job was stored by an earlier version */
        pb_input_lists_fini(lists);
        pb_input_lists_make(job, lists);
    }
    (void)pb_input_store_find(job, intake->dirs, lists); /* finds the companion, moved before it */
    int rc = pb_input_store_put(job, intake->dirs, on_success(intake), err);
    if (rc != 0)
        return rc;
    pb_input_lists_moved(lists, job);
    return pb_kept_update(intake->store, job, lists, err);
}

static int settle_job(struct sweep *sweep, struct pb_job *job, const char *path, struct pb_err *err)
{
    struct pb_intake *intake = sweep->intake;
    bool finished = (PB_JOB_MASK(job->status) & PB_JOB_MASK_FINISHED) != 0;
    if (!finished && (!sweep->at_start ||
                      (job->manifest.input != NULL && strcmp(job->manifest.input, path) == 0)))
        return 0;
    int rc = finished ? is_read(sweep, job, err) : 0;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    struct pb_input_lists lists = {.is_deleted = false};
    if (finished) /* finds the lists by the path that is stored with them */
        rc = pb_kept_lists(intake->store, job, err, &lists);
    if (rc == 0 && pb_scene_manifest_set_input(&job->manifest, path) != 0)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    if (rc == 0 && finished)
        rc = put_away(intake, job, &lists, err);
    else if (rc == 0)
        rc = pb_store_finish(intake->store, job, err);
    pb_input_lists_fini(&lists);
    return rc;
}

/* Finds the input of a finished job whose stored path is in work/<id>/ but absent: the service
 * died after it moved the input and before it stored the new path. The stored list of files
 * identifies the input. */
static int find_unmoved(struct pb_intake *intake, const struct pb_kept *kept, struct pb_err *err)
{
    struct pb_job job;
    struct pb_input_lists lists;
    struct pb_err unknown = {0};
    if (access(kept->path, F_OK) == 0)
        return 0; /* the trouble "work" reports the reason */
    if (pb_job_store_find(intake->store, kept->job, &unknown, &job) != 0)
        return unknown.code == PB_E_JOB_UNKNOWN ? pb_kept_forget(intake->store, kept, err)
                                                : pb_fail(err, unknown.code, "%s", unknown.msg);
    int rc = pb_kept_lists(intake->store, &job, err, &lists);
    if (rc == 0 && pb_input_store_find(&job, intake->dirs, &lists)) {
        pb_input_lists_moved(&lists, &job);
        rc = pb_kept_update(intake->store, &job, &lists, err);
        if (rc == 0)
            pb_log(PB_LOG_NOTICE,
                   "job %s: the input is at %s; the service was killed before it stored that",
                   job.id, job.manifest.input);
    } else if (rc == 0) {
        rc = pb_kept_forget(intake->store, kept, err); /* deleted by on_success, or gone */
    }
    pb_input_lists_fini(&lists);
    pb_job_fini(&job);
    return rc;
}

static void find_all_unmoved(struct sweep *sweep)
{
    struct pb_intake *intake = sweep->intake;
    struct pb_err err = {0};
    struct pb_kept *after = calloc(2, sizeof *after), *kept = after + 1;
    int rc = after != NULL ? 1 : pb_fail(&err, PB_E_MEMORY, "out of memory");
    while (rc == 1 &&
           (rc = pb_kept_unmoved(intake->store, intake->dirs->work, after, &err, kept)) == 1) {
        *after = *kept;
        rc = find_unmoved(intake, kept, &err) == 0 ? 1 : -EIO;
    }
    if (rc < 0)
        leave(sweep, kept != NULL && after != NULL ? kept->job : "", &err);
    free(after);
}

/* Closes the segment of a scene of a stream whose writer, a service, is dead. Returns 1 if it is a
 * scene; 0 if it has no line or is being written, and stays or is removed; or *err. */
static int close_lines(const struct sweep *sweep, const char *claim, const char *stream,
                       const char *path, struct pb_err *err)
{
    struct pb_segment *segment = NULL;
    struct pb_err why = {0};
    int rc = pb_segment_recover(path, &why, &segment);
    if (rc == -EALREADY || rc == -EBUSY)
        return rc == -EALREADY;
    if (rc != 0)
        return pb_fail(err, why.code, "%s", why.msg);
    const int32_t lines = pb_segment_lines(segment);
    if (lines > 0) {
        rc = pb_segment_close(segment, err);
        rc = rc ? rc : pb_segment_sync(segment, err);
    }
    pb_segment_destroy(segment);
    if (lines == 0) {
        (void)unlink(path);
        pb_origin_end(claim);
        return 0;
    }
    if (rc == 0 && sweep->at_start)
        pb_log(PB_LOG_WARNING,
               "stream %s: the service ended while it wrote %s; the scene has the %d lines that "
               "were complete, and later ones are lost",
               stream, pb_base_name(path), (int)lines);
    return rc ? rc : 1;
}

static int adopt(struct sweep *sweep, const char *id, struct pb_err *err)
{
    char claim[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES], from[PB_FILES_PATH_BYTES];
    struct pb_job job;
    struct pb_err unknown = {0};
    if (!is_own(sweep) && (pb_files_join(claim, sweep->work, id) != 0 ||
                           !find_origin(sweep, claim, from) || !is_taken_over(sweep, from)))
        return 0;
    int rc = pb_input_store_claimed(sweep->work, id, path);
    if (rc < 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot read it: %s", strerror(-rc));
    if (rc == 0 && !is_own(sweep))
        return 0;
    if (rc == 0) {
        /* Removes an empty directory that a crash left. A directory with other content is foreign
         * and stays. */
        if (pb_files_join(claim, sweep->intake->dirs->work, id) != 0)
            return 0;
        pb_origin_end(claim);
        if (access(claim, F_OK) == 0 && sweep->at_start)
            pb_log(PB_LOG_WARNING, "work: %s holds no input and stays; remove it", claim);
        return 0;
    }
    if (is_own(sweep) && pb_files_join(claim, sweep->work, id) == 0 &&
        pb_origin_read(claim, from) == 0 && pb_origin_stream(from) != NULL &&
        (rc = close_lines(sweep, claim, pb_origin_stream(from), path, err)) <= 0)
        return rc;
    if (pb_job_store_find(sweep->intake->store, id, &unknown, &job) != 0) {
        if (unknown.code != PB_E_JOB_UNKNOWN)
            return pb_fail(err, unknown.code, "%s", unknown.msg);
        return adopt_file(sweep, id, path, err);
    }
    rc = is_own(sweep) ? settle_job(sweep, &job, path, err) : 0;
    pb_job_fini(&job);
    return rc;
}

void pb_adopt_report(const struct pb_adopted *adopted, struct pb_troubles *troubles)
{
    char text[sizeof adopted->first.msg + 64];
    if (adopted->left == 0) {
        pb_trouble_clear(troubles, "work");
        return;
    }
    (void)snprintf(text, sizeof text, "%d input%s in work/ cannot be put away: %s", adopted->left,
                   adopted->left == 1 ? "" : "s", adopted->first.msg);
    pb_trouble_raise(troubles, "work", adopted->first.code, text);
}

bool pb_adopt_has_left(const struct pb_intake *intake, const struct pb_troubles *troubles)
{
    return atomic_load(&intake->left) || pb_trouble_find(troubles, "work") != NULL;
}

static int recover(struct sweep *sweep, const char *name, struct pb_err *err)
{
    char path[PB_FILES_PATH_BYTES], from[PB_FILES_PATH_BYTES];
    if (!is_own(sweep) && (pb_files_join(path, sweep->work, name) != 0 ||
                           pb_origin_read(path, from) != 0 || !is_taken_over(sweep, from)))
        return 0;
    return pb_staging_recover(sweep->work, name, err);
}

/* Calls the function for each entry of work/ whose name fits. */
static void sweep_entries(struct sweep *sweep, bool (*fits)(const char *name),
                          int (*act)(struct sweep *sweep, const char *name, struct pb_err *err))
{
    struct pb_intake *intake = sweep->intake;
    struct pb_err err = {0};
    DIR *directory = opendir(sweep->work);
    if (directory == NULL) {
        (void)pb_fail(&err, PB_E_SYSTEM, "cannot read it: %s", strerror(errno));
        leave(sweep, "", &err);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (!fits(entry->d_name))
            continue;
        err = (struct pb_err){0};
        (void)pthread_rwlock_wrlock(&intake->moves);
        if (act(sweep, entry->d_name, &err) != 0)
            leave(sweep, entry->d_name, &err);
        (void)pthread_rwlock_unlock(&intake->moves);
    }
    (void)closedir(directory);
}

void pb_adopt_work(struct pb_intake *intake, bool at_start, struct pb_adopted *out)
{
    const struct pb_dirs *dirs = intake->dirs;
    struct sweep sweep = {.intake = intake,
                          .work = dirs->work,
                          .inbox = dirs->n_inboxes == 1 ? dirs->inbox[0] : NULL,
                          .at_start = at_start,
                          .out = out};
    *out = (struct pb_adopted){0};
    atomic_store(&intake->left, false);
    int left = at_start ? pb_nameless_sweep(dirs->work) : 0;
    if (left > 0)
        pb_log(PB_LOG_NOTICE, "work: removed %d temporary file%s of a service that was killed",
               left, left == 1 ? "" : "s");
    /* The files that this leaves may be adopted afterwards. */
    sweep_entries(&sweep, pb_staging_is, recover);
    sweep_entries(&sweep, pb_job_is_id, adopt);
    if (at_start)
        find_all_unmoved(&sweep);
}

void pb_adopt_claims(struct pb_intake *intake, const char *work, size_t inbox,
                     struct pb_adopted *out)
{
    const struct pb_dirs *dirs = intake->dirs;
    struct sweep sweep = {.intake = intake,
                          .work = work,
                          .inbox = inbox < dirs->n_inboxes ? dirs->inbox[inbox] : NULL,
                          .out = out};
    *out = (struct pb_adopted){0};
    sweep_entries(&sweep, pb_staging_is, recover);
    sweep_entries(&sweep, pb_job_is_id, adopt);
}

/* Handles the input of one job. A listed input that is not there is being moved, or gone. */
static void settle_finished(struct sweep *sweep, const struct pb_kept *kept)
{
    struct pb_intake *intake = sweep->intake;
    struct pb_err err = {0};
    struct pb_job job;
    (void)pthread_rwlock_wrlock(&intake->moves);
    if (access(kept->path, F_OK) == 0) {
        int rc = pb_job_store_find(intake->store, kept->job, &err, &job);
        if (rc == 0) { /* a companion is moved with its input */
            const bool is_input =
                job.manifest.input != NULL && strcmp(job.manifest.input, kept->path) == 0;
            if (is_input && (PB_JOB_MASK(job.status) & PB_JOB_MASK_FINISHED) != 0)
                rc = settle_job(sweep, &job, kept->path, &err);
            pb_job_fini(&job);
        }
        if (rc != 0)
            leave(sweep, kept->job, &err);
    }
    (void)pthread_rwlock_unlock(&intake->moves);
}

void pb_adopt_finished(struct pb_intake *intake, struct pb_adopted *out)
{
    struct sweep sweep = {.intake = intake, .work = intake->dirs->work, .out = out};
    struct pb_err err = {0};
    struct pb_kept *after = calloc(2, sizeof *after), *kept = after + 1;
    *out = (struct pb_adopted){0};
    int rc = after != NULL ? 1 : pb_fail(&err, PB_E_MEMORY, "out of memory");
    while (rc == 1 &&
           (rc = pb_kept_unmoved(intake->store, intake->dirs->work, after, &err, kept)) == 1) {
        *after = *kept;
        settle_finished(&sweep, kept);
    }
    if (rc < 0)
        leave(&sweep, "", &err);
    free(after);
}
