/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * work/<id>.gather/<scene>/<name> and work/<id>.gather/.from. Only the service may write in
 * work/, therefore the link is its own. */
#include "service/inbox/staging.h"

#include "pipeline/io/path.h"
#include "service/base/log.h"
#include "service/inbox/inbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char SUFFIX[] = ".gather";
static const char LINK[] = ".from";

static int name_parts(struct pb_staging *staging, const char *name)
{
    int rc = pb_files_join(staging->link, staging->path, LINK);
    return rc ? rc : pb_files_join(staging->folder, staging->path, name);
}

int pb_staging_open(struct pb_staging *staging, const char *work, const char *id, const char *name,
                    const char *from, const char *via, struct pb_err *err)
{
    char own[64];
    (void)snprintf(own, sizeof own, "%.40s%s", id, SUFFIX);
    (void)snprintf(staging->from, sizeof staging->from, "%s", via);
    if (pb_files_join(staging->path, work, own) != 0 || name_parts(staging, name) != 0) {
        staging->path[0] = '\0';
        return pb_fail(err, PB_E_SYSTEM, "path too long: %s", work);
    }
    if (mkdir(staging->path, 0755) == 0) {
        if (symlink(from, staging->link) == 0 && mkdir(staging->folder, 0755) == 0)
            return 0;
        int error = errno;
        pb_staging_close(staging);
        errno = error;
    }
    staging->path[0] = '\0';
    return pb_fail(err, errno == EMFILE || errno == ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM,
                   "cannot create %s/%s: %s", work, own, strerror(errno));
}

int pb_staging_take(const struct pb_staging *staging, const char *name)
{
    char before[PB_FILES_PATH_BYTES], after[PB_FILES_PATH_BYTES];
    int rc = pb_files_join(before, staging->from, name);
    rc = rc ? rc : pb_files_join(after, staging->folder, name);
    return rc ? rc : rename(before, after) == 0 ? 0 : -errno;
}

int pb_staging_commit(const struct pb_staging *staging, const char *to)
{
    (void)pb_path_sync(staging->folder);
    return rename(staging->folder, to) == 0 ? 0 : -errno;
}

void pb_staging_close(struct pb_staging *staging)
{
    if (staging->path[0] == '\0')
        return;
    (void)rmdir(staging->folder);
    (void)unlink(staging->link);
    (void)rmdir(staging->path);
    staging->path[0] = '\0';
}

/* Returns true if another node has moved the file already, which recovers this staging, too. */
static bool is_gone(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 && errno == ENOENT;
}

/* Moves all files of the folder back to their origin. Returns the number of files that stay,
 * because they cannot be moved now or ever; negative errno: another failure. */
static int give_back(const struct pb_staging *staging)
{
    char before[PB_FILES_PATH_BYTES], after[PB_FILES_PATH_BYTES];
    int stay = 0, rc = 0;
    DIR *directory = opendir(staging->folder);
    if (directory == NULL)
        return errno == ENOENT ? 0 : -errno;
    for (const struct dirent *e; rc == 0 && (e = readdir(directory)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        rc = pb_files_join(before, staging->folder, e->d_name);
        rc = rc ? rc : pb_files_join(after, staging->from, e->d_name);
        rc = rc ? rc : pb_files_rename_new(before, after, PB_FILES_LINK_ONLY);
        if (rc == -ENOENT && is_gone(before))
            rc = 0;
        if (rc == -EEXIST || rc == -ENOENT || rc == -ENOTDIR || rc == -EXDEV) {
            stay++;
            rc = 0;
        }
    }
    (void)closedir(directory);
    (void)pb_path_sync(staging->from);
    return rc ? rc : stay;
}

bool pb_staging_undo(struct pb_staging *staging, const char *to)
{
    if (to != NULL && rename(to, staging->folder) != 0)
        return false; /* the folder is complete at its place */
    int stay = give_back(staging);
    if (stay == 0)
        pb_staging_close(staging);
    return stay == 0;
}

bool pb_staging_is(const char *name)
{
    size_t n = strlen(name), m = sizeof SUFFIX - 1;
    return n > m && name[0] != '.' && strcmp(name + n - m, SUFFIX) == 0;
}

/* Finds the folder's name; "" = it is gone. */
static int find_folder(const char *path, char out[256])
{
    DIR *directory = opendir(path);
    out[0] = '\0';
    if (directory == NULL)
        return -errno;
    for (const struct dirent *e; (e = readdir(directory)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strcmp(e->d_name, LINK) != 0)
            (void)snprintf(out, 256, "%s", e->d_name);
    (void)closedir(directory);
    return 0;
}

/* Moves the files back to their directory. A sender may own a part of the directory's path; the
 * path contained no link when the files arrived. */
static int give_back_to(struct pb_staging *staging, const char *from)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, from, &how, sizeof how);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE ? -errno : 1;
    (void)snprintf(staging->from, sizeof staging->from, "/proc/self/fd/%d", fd);
    int stay = give_back(staging);
    (void)close(fd);
    return stay;
}

/* Makes the remaining files the input of the job whose id is in the directory's name. */
static int make_input(struct pb_staging *staging, const char *work, const char *id,
                      const char *name, struct pb_err *err)
{
    char directory[PB_FILES_PATH_BYTES], to[PB_FILES_PATH_BYTES];
    int rc = pb_files_join(directory, work, id);
    rc = rc ? rc : pb_files_join(to, directory, name);
    if (rc == 0 && mkdir(directory, 0755) != 0 && errno != EEXIST)
        rc = -errno;
    rc = rc ? rc : pb_staging_commit(staging, to);
    if (rc != 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot move %s to %s: %s", staging->folder, directory,
                       strerror(-rc));
    (void)pb_path_sync(directory);
    pb_staging_close(staging);
    return 0;
}

int pb_staging_recover(const char *work, const char *name, struct pb_err *err)
{
    struct pb_staging staging = {.path = ""};
    char id[64], folder[256];
    (void)snprintf(id, sizeof id, "%.*s", (int)(strlen(name) - (sizeof SUFFIX - 1)), name);
    int rc = pb_files_join(staging.path, work, name);
    rc = rc ? rc : find_folder(staging.path, folder);
    rc = rc ? rc : name_parts(&staging, folder);
    if (rc != 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot read it: %s", strerror(-rc));
    char from[PB_FILES_PATH_BYTES];
    ssize_t n = readlink(staging.link, from, sizeof from - 1);
    from[n > 0 ? n : 0] = '\0';
    int stay = 0;
    if (folder[0] != '\0')
        stay = n > 0 ? give_back_to(&staging, from) : rmdir(staging.folder) != 0;
    if (stay < 0)
        return pb_fail(err, PB_E_SYSTEM, "its files cannot be moved back to %s: %s", from,
                       strerror(-stay));
    if (stay > 0)
        return make_input(&staging, work, id, folder, err);
    pb_staging_close(&staging);
    if (folder[0] != '\0')
        pb_log(PB_LOG_NOTICE, "work: the files of %s are back in %s, to be gathered again", folder,
               from);
    return 0;
}

/* --- origin of a claim ------------------------------------------------------------------------ */

int pb_origin_write(const char *claim, const char *from)
{
    char link[PB_FILES_PATH_BYTES];
    int rc = pb_files_join(link, claim, LINK);
    return rc ? rc : symlink(from, link) == 0 ? 0 : -errno;
}

int pb_origin_read(const char *claim, char out_from[PB_FILES_PATH_BYTES])
{
    char link[PB_FILES_PATH_BYTES];
    int rc = pb_files_join(link, claim, LINK);
    ssize_t n = rc == 0 ? readlink(link, out_from, PB_FILES_PATH_BYTES) : -1;
    if (n < 0 || n == PB_FILES_PATH_BYTES)
        return rc ? rc : n < 0 ? -errno : -ENAMETOOLONG;
    out_from[n] = '\0';
    return 0;
}

const char *pb_origin_stream(const char *from)
{
    const size_t n = sizeof PB_ORIGIN_STREAM - 1;
    return strncmp(from, PB_ORIGIN_STREAM, n) == 0 ? from + n : NULL;
}

void pb_origin_end(const char *claim)
{
    char link[PB_FILES_PATH_BYTES];
    pb_companion_end(claim);
    if (rmdir(claim) == 0 || errno != ENOTEMPTY || pb_files_join(link, claim, LINK) != 0)
        return;
    char from[PB_FILES_PATH_BYTES];
    int rc = pb_origin_read(claim, from);
    if (rc != 0 || unlink(link) != 0)
        return;
    if (rmdir(claim) != 0 && errno == ENOTEMPTY)
        (void)symlink(from, link); /* another entry has that name */
}
