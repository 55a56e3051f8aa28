/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/claim_set.h"

#include "config/base/base_name.h"
#include "service/inbox/inbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* A rename changes ctime. */
static bool is_as_settled(const struct pb_entry *file, const struct stat *st, bool moved)
{
    return S_ISREG(st->st_mode) && st->st_nlink == 1 && (uint64_t)st->st_ino == file->inode &&
           (uint64_t)st->st_size == file->bytes && ns_of(&st->st_mtim) == file->mtime_ns &&
           (moved || ns_of(&st->st_ctim) == file->ctime_ns);
}

static int check_file(struct pb_intake *intake, const struct pb_inbox *inbox,
                      const struct pb_entry *file, const char *directory, bool moved,
                      struct stat *st, struct pb_err *err)
{
    char path[PB_FILES_PATH_BYTES];
    struct pb_err why = {0};
    const struct pb_settle_file settled = {.name = file->path};
    bool leased = false;
    const char *name = pb_base_name(file->path);
    if (pb_files_join(path, directory, name) != 0)
        return pb_fail(err, PB_E_INPUT_MISSING, "path too long: %s", name);
    int fd = pb_intake_open(path, &why);
    if (fd < 0)
        return fd == -EAGAIN ? fd : pb_fail(err, why.code, "%.100s: %s", name, why.msg);
    int rc = fstat(fd, st) == 0 && is_as_settled(file, st, moved) ? 0 : -EAGAIN;
    rc = rc ? rc : pb_intake_check_writers(intake, inbox, fd, &settled, &leased);
    (void)close(fd); /* releases the lease */
    return rc;
}

int pb_claim_set_check(struct pb_intake *intake, const struct pb_inbox *inbox,
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

int pb_claim_set_move(const struct pb_intake *intake, const struct pb_assembled *set,
                      const struct pb_claim_place *place, const struct pb_job *job, const char *to,
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
