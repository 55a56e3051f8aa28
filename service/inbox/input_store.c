/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The error record is written before the input moves: an input in quarantine/ always has its
 * record. A crash between the two leaves a record that names the job; the next attempt recognizes
 * it by that name and uses the same file name again. */
#include "service/inbox/input_store.h"
#include "config/base/base_name.h"
#include "service/inbox/inbox.h"
#include "service/inbox/staging.h"

#include "config/base/json_writer.h"
#include "pipeline/io/path.h"
#include "config/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAME_NAMES_MAX 100000

/* Returns true for a file, and for a folder, which is a scene. */
static bool is_input(const struct stat *st)
{
    return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode);
}

/* input: path that the input will have when the record is read. */
static int write_record(const struct pb_job *job, const char *path, const char *input,
                        struct pb_err *err)
{
    char when[PB_CLOCK_TEXT_BYTES], companion[PB_FILES_PATH_BYTES];
    pb_clock_text(job->finished_ms, when);
    struct pb_json *json = pb_json_create(true);
    pb_json_object(json, NULL);
    pb_json_string(json, "code", job->error.code);
    pb_json_string(json, "message", job->error.message);
    pb_json_string(json, "hint", job->error.hint);
    pb_json_string(json, "job", job->id);
    pb_json_string(json, "status", pb_job_status_name(job->status));
    pb_json_string(json, "pipeline", job->pipeline[0] ? job->pipeline : NULL);
    pb_json_int(json, "attempts", job->attempts);
    pb_json_string(json, "input", input);
    pb_job_print_delivered(json, "delivered", job);
    if (pb_job_companion(job, companion) != NULL)
        pb_json_string(json, "companion", companion);
    pb_json_string(json, "time", when);
    pb_json_end(json);
    size_t bytes = 0;
    const char *text = pb_json_document(json, &bytes);
    int rc =
        text ? pb_files_write(path, text, bytes, err) : pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_json_destroy(json);
    return rc;
}

/* Returns 1 if the record at path is this job's, 0 if it is another job's, -ENOENT if absent. */
static int record_is_of(const char *path, const struct pb_job *job)
{
    char text[8192], mark[64];
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ENOENT : 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    (void)snprintf(mark, sizeof mark, "\"%s\"", job->id);
    return strstr(text, mark) != NULL;
}

/* Finds the directory of the job's input in the archive or the quarantine. It contains the path of
 * the sub-folder, therefore equal names from two sub-folders of an inbox do not collide. */
static int place_in(const char *directory, const struct pb_job *job, char out[PB_FILES_PATH_BYTES])
{
    if (job->folder != NULL)
        return pb_files_join(out, directory, job->folder);
    (void)snprintf(out, PB_FILES_PATH_BYTES, "%s", directory);
    return 0;
}

/* Chooses the first of name, name.1, ... for which the directory has neither a file nor a record
 * of another job. */
static int choose_name(const struct pb_job *job, const char *directory, char out_name[256],
                       char out_record[PB_FILES_PATH_BYTES], bool *out_is_there)
{
    char path[PB_FILES_PATH_BYTES], record_name[300];
    struct stat st;
    for (int i = 0; i < SAME_NAMES_MAX; i++) {
        if (i == 0)
            (void)snprintf(out_name, 256, "%s", job->name);
        else
            (void)snprintf(out_name, 256, "%.240s.%d", job->name, i);
        (void)snprintf(record_name, sizeof record_name, "%s.error.json", out_name);
        if (pb_files_join(path, directory, out_name) != 0 ||
            pb_files_join(out_record, directory, record_name) != 0)
            return -ENAMETOOLONG;
        int mine = record_is_of(out_record, job);
        if (mine == 0 || (mine < 0 && lstat(path, &st) == 0))
            continue;
        *out_is_there = mine > 0;
        return 0;
    }
    return -EEXIST;
}

static bool lies_in(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    return path != NULL && strncmp(path, directory, n) == 0 && path[n] == '/';
}

/* Returns true if the input is still where the claim put it. (The archive may be in work/ as
 * well.) */
static bool is_claimed(const struct pb_job *job, const struct pb_dirs *dirs)
{
    char claim[PB_FILES_PATH_BYTES];
    return job->owned && pb_files_join(claim, dirs->work, job->id) == 0 &&
           lies_in(job->manifest.input, claim);
}

/* Removes the empty work/<id>; its removal marks the end. */
static void remove_claim(const struct pb_job *job, const struct pb_dirs *dirs)
{
    char path[PB_FILES_PATH_BYTES];
    if (pb_files_join(path, dirs->work, job->id) == 0)
        pb_origin_end(path);
}

static int make_place(const char *root, const struct pb_job *job, const char *what,
                      char out[PB_FILES_PATH_BYTES], struct pb_err *err)
{
    if (place_in(root, job, out) != 0)
        return pb_fail(err, PB_E_SYSTEM, "path too long: %s/%s", root, job->folder);
    return job->folder != NULL ? pb_files_make_directory(out, what, err) : 0;
}

/* Called before the input moves, so that no companion is left in work/<id> without its input. */
static int put_companion(struct pb_job *job, const struct pb_dirs *dirs, const char *directory,
                         struct pb_err *err)
{
    char claim[PB_FILES_PATH_BYTES], moved[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    const char *companion = pb_job_companion(job, path);
    if (companion == NULL || pb_files_join(claim, dirs->work, job->id) != 0 ||
        !lies_in(companion, claim) || access(companion, F_OK) != 0)
        return 0;
    if (directory == NULL) {
        (void)unlink(companion);
        return pb_job_set_companion(job, NULL);
    }
    int rc = pb_files_move(companion, directory, pb_base_name(companion), moved, err);
    return rc ? rc : pb_job_set_companion(job, moved);
}

static int quarantine(struct pb_job *job, const struct pb_dirs *dirs, struct pb_err *err)
{
    char name[256], record[PB_FILES_PATH_BYTES], moved[PB_FILES_PATH_BYTES];
    char directory[PB_FILES_PATH_BYTES];
    bool is_there = false;
    int rc = make_place(dirs->quarantine, job, "quarantine", directory, err);
    if (rc != 0)
        return rc;
    rc = choose_name(job, directory, name, record, &is_there);
    if (rc != 0)
        return pb_fail(err, PB_E_SYSTEM, "no free name for %s in %s: %s", job->name, directory,
                       strerror(-rc));
    bool moves = is_claimed(job, dirs) && access(job->manifest.input, F_OK) == 0;
    if (moves && pb_files_join(moved, directory, name) != 0)
        return pb_fail(err, PB_E_SYSTEM, "path too long: %s", directory);
    rc = put_companion(job, dirs, directory, err);
    rc = rc ? rc : write_record(job, record, moves ? moved : job->manifest.input, err);
    /* the input was not claimed and stays, or another program removed it */
    if (rc != 0 || !moves)
        return rc;
    rc = pb_files_move(job->manifest.input, directory, name, moved, err);
    return rc ? rc : pb_scene_manifest_set_input(&job->manifest, moved);
}

int pb_input_store_put(struct pb_job *job, const struct pb_dirs *dirs,
                       enum pb_on_success on_success, struct pb_err *err)
{
    char moved[PB_FILES_PATH_BYTES], directory[PB_FILES_PATH_BYTES];
    int rc = 0;
    if ((PB_JOB_MASK(job->status) & PB_JOB_MASK_FINISHED) == 0)
        return -EINVAL;
    if (job->status != PB_JOB_SUCCESSFUL && !pb_job_is_skipped(job)) {
        rc = quarantine(job, dirs, err);
    } else if (is_claimed(job, dirs) && access(job->manifest.input, F_OK) == 0) {
        if (on_success == PB_INPUT_DELETE) {
            (void)put_companion(job, dirs, NULL, err);
            int error = -pb_files_remove(job->manifest.input);
            if (error != 0)
                rc = pb_fail(err, PB_E_SYSTEM, "cannot delete %s: %s", job->manifest.input,
                             strerror(error));
        } else {
            rc = make_place(dirs->archive, job, "archive", directory, err);
            rc = rc ? rc : put_companion(job, dirs, directory, err);
            rc = rc ? rc : pb_files_move(job->manifest.input, directory, job->name, moved, err);
            rc = rc ? rc : pb_scene_manifest_set_input(&job->manifest, moved);
        }
    }
    if (rc == 0 && job->owned)
        remove_claim(job, dirs);
    return rc;
}

int pb_input_store_claimed(const char *work, const char *id, char out_path[PB_FILES_PATH_BYTES])
{
    char claim[PB_FILES_PATH_BYTES];
    struct stat st;
    if (pb_files_join(claim, work, id) != 0)
        return -ENAMETOOLONG;
    DIR *directory = opendir(claim);
    if (directory == NULL)
        return errno == ENOTDIR || errno == ENOENT ? 0 : -errno;
    int found = 0;
    while (found == 0) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) {
            found = -errno;
            break;
        }
        if (entry->d_name[0] == '.')
            continue; /* not a name of an input */
        if (pb_files_join(out_path, claim, entry->d_name) == 0 && lstat(out_path, &st) == 0 &&
            is_input(&st))
            found = 1;
    }
    (void)closedir(directory);
    return found;
}

static bool is_plain(const char *path)
{
    struct stat st;
    return path != NULL && lstat(path, &st) == 0 && is_input(&st);
}

/* Finds a file of the list in the directory if it is not at `path` any more. */
static bool find_moved(const char *path, const char *directory, const struct pb_file_list *files,
                       char found[PB_FILES_PATH_BYTES])
{
    char name[256];
    struct stat st;
    return path != NULL && lstat(path, &st) != 0 && pb_file_list_find(files, directory, name) &&
           pb_files_join(found, directory, name) == 0;
}

bool pb_input_store_find(struct pb_job *job, const struct pb_dirs *dirs,
                         const struct pb_input_lists *lists)
{
    char directory[PB_FILES_PATH_BYTES], found[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    const bool archived = job->status == PB_JOB_SUCCESSFUL || pb_job_is_skipped(job);
    if (!job->owned || place_in(archived ? dirs->archive : dirs->quarantine, job, directory) != 0)
        return false;
    bool any = find_moved(job->manifest.input, directory, &lists->input, found) &&
               pb_scene_manifest_set_input(&job->manifest, found) == 0;
    if (find_moved(pb_job_companion(job, path), directory, &lists->companion, found))
        any = pb_job_set_companion(job, found) == 0 || any;
    return any;
}

/* Makes the manifest name the input again. */
static int find_input(struct pb_job *job, const struct pb_dirs *dirs, struct pb_err *err)
{
    char name[256], record[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    char directory[PB_FILES_PATH_BYTES];
    bool is_there = false;
    struct stat st;
    /* A submitted file was checked already, by a separate process because its storage may hang. */
    if (job->manifest.input != NULL && !job->owned && job->identity[0] != '\0')
        return 0;
    if (job->manifest.input != NULL && stat(job->manifest.input, &st) == 0 && is_input(&st))
        return 0;
    bool found = job->owned && pb_input_store_claimed(dirs->work, job->id, path) > 0;
    if (job->owned && !found)
        found = place_in(dirs->quarantine, job, directory) == 0 &&
                choose_name(job, directory, name, record, &is_there) == 0 && is_there &&
                pb_files_join(path, directory, name) == 0 && is_plain(path);
    if (!found && !job->owned)
        return pb_fail(err, PB_E_INPUT_MISSING, "%s: the input of job %s is not there any more",
                       job->manifest.input ? job->manifest.input : job->name, job->id);
    if (!found && job->manifest.input == NULL)
        return pb_fail(err, PB_E_INPUT_MISSING,
                       "the input of job %s was removed ('pushbroom quarantine drop', or "
                       "service.retention); deliver %.200s again",
                       job->id, job->name);
    if (!found)
        return pb_fail(err, PB_E_INPUT_MISSING,
                       "the input of job %s is gone: %.200s is neither at %.300s, where it was "
                       "last, nor in %.200s/%s, nor in %.200s with a record of the job; put it "
                       "back there, or deliver it again",
                       job->id, job->name, job->manifest.input, dirs->work, job->id,
                       dirs->quarantine);
    return pb_scene_manifest_set_input(&job->manifest, path) == 0
               ? 0
               : pb_fail(err, PB_E_MEMORY, "out of memory");
}

/* Returns true if the path is where a finished job left it. (work/ itself may contain the
 * archive.) */
static bool is_put_away(const char *path, const struct pb_dirs *dirs)
{
    return lies_in(path, dirs->quarantine) || lies_in(path, dirs->archive);
}

/* A companion that is gone stays absent; the job reports a missing checksum. */
static int restore_companion(struct pb_job *job, const struct pb_dirs *dirs, const char *claim,
                             struct pb_err *err)
{
    char room[PB_FILES_PATH_BYTES], moved[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    const char *companion = pb_job_companion(job, path);
    if (companion == NULL || !is_put_away(companion, dirs) || !is_plain(companion))
        return 0;
    if (pb_companion_room(claim, room) != 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot create %s/.with: %s", claim, strerror(errno));
    int rc = pb_files_move(companion, room, pb_base_name(companion), moved, err);
    return rc ? rc : pb_job_set_companion(job, moved);
}

int pb_input_store_restore(struct pb_job *job, const struct pb_dirs *dirs, struct pb_err *err)
{
    char name[256], record[PB_FILES_PATH_BYTES], claim[PB_FILES_PATH_BYTES];
    char moved[PB_FILES_PATH_BYTES], directory[PB_FILES_PATH_BYTES];
    bool is_there = false;
    int rc = find_input(job, dirs, err);
    if (rc != 0)
        return rc;
    if (place_in(dirs->quarantine, job, directory) == 0 &&
        choose_name(job, directory, name, record, &is_there) == 0 && is_there)
        (void)unlink(record);
    if (!job->owned || !is_put_away(job->manifest.input, dirs))
        return 0;
    if (pb_files_join(claim, dirs->work, job->id) != 0)
        return pb_fail(err, PB_E_SYSTEM, "path too long: %s", dirs->work);
    if (mkdir(claim, 0755) != 0 && errno != EEXIST)
        return pb_fail(err, PB_E_SYSTEM, "cannot create %s: %s", claim, strerror(errno));
    rc = pb_files_move(job->manifest.input, claim, job->name, moved, err);
    (void)pb_path_sync(dirs->work);
    rc = rc ? rc : pb_scene_manifest_set_input(&job->manifest, moved);
    return rc ? rc : restore_companion(job, dirs, claim, err);
}

/* Removes a quarantined input. No link below quarantine/ is followed. */
static int remove_quarantined(const struct pb_dirs *dirs, const char *path,
                              const struct pb_file_list *list, struct pb_err *err)
{
    char other[PB_FILES_PATH_BYTES] = "";
    char folder[PB_FILES_PATH_BYTES];
    const char *below = path + strlen(dirs->quarantine) + 1;
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(pb_base_name(below) - below), below);
    int directory = pb_files_open_below(dirs->quarantine, folder);
    int rc = directory < 0 ? directory
                           : pb_file_list_remove(list, INT64_MAX / 1000000, directory,
                                                 pb_base_name(path), other);
    if (directory >= 0) {
        (void)fsync(directory);
        (void)close(directory);
    }
    if (rc > 0)
        return pb_fail(
            err, PB_E_JOB_STATE,
            "%s stays: %.300s%s changed since it was put there; move your files away, or "
            "remove it yourself",
            path, other[0] ? other : "it",
            other[0] ? " in it was not delivered with it, or was" : " was");
    return rc == 0 || rc == -ENOENT
               ? 0
               : pb_fail(err, PB_E_SYSTEM, "cannot remove %s: %s", path, strerror(-rc));
}

int pb_input_store_drop(struct pb_job *job, const struct pb_dirs *dirs,
                        const struct pb_input_lists *lists, struct pb_err *err)
{
    char name[256], record[PB_FILES_PATH_BYTES], directory[PB_FILES_PATH_BYTES];
    char parent[PATH_MAX] = "", path[PB_FILES_PATH_BYTES];
    const char *companion = pb_job_companion(job, path);
    bool is_there = false;
    if (job->owned && job->manifest.input == NULL)
        return pb_fail(err, PB_E_JOB_STATE, "the input of job %s was removed already", job->id);
    if (job->owned && !lies_in(job->manifest.input, dirs->quarantine))
        return pb_fail(err, PB_E_JOB_STATE, "the input of job %s is not in %s", job->id,
                       dirs->quarantine);
    if (place_in(dirs->quarantine, job, directory) != 0)
        return pb_fail(err, PB_E_SYSTEM, "path too long: %s/%s", dirs->quarantine, job->folder);
    bool recorded = choose_name(job, directory, name, record, &is_there) == 0 && is_there;
    if (job->owned)
        pb_path_parent(job->manifest.input, parent);
    if (job->owned && strcmp(parent, directory) != 0)
        return pb_fail(err, PB_E_JOB_STATE, "%s is not in %s itself", job->manifest.input,
                       directory);
    int rc = job->owned ? remove_quarantined(dirs, job->manifest.input, &lists->input, err) : 0;
    if (rc == 0 && job->owned && lies_in(companion, directory))
        rc = remove_quarantined(dirs, companion, &lists->companion, err);
    if (rc == 0 && job->owned)
        rc = pb_job_set_companion(job, NULL);
    if (rc == 0 && recorded && unlink(record) != 0 && errno != ENOENT)
        rc = pb_fail(err, PB_E_SYSTEM, "cannot remove %s: %s", record, strerror(errno));
    return rc == 0 && job->owned ? pb_scene_manifest_set_input(&job->manifest, NULL) : rc;
}
