/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/dirs.h"
#include "service/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(PB_FILES_PATH_BYTES >= PATH_MAX, "realpath writes PATH_MAX bytes");

static int make(const char *path, const char *what, char out[PB_FILES_PATH_BYTES],
                struct pb_err *err)
{
    int rc = pb_files_make_directory(path, what, err);
    if (rc == 0 && realpath(path, out) == NULL)
        rc = pb_fail(err, PB_E_SYSTEM, "%s directory %s: %s", what, path, strerror(errno));
    return rc;
}

/* Renames an empty dot-file from one directory into the other. */
static int try_rename(const char *from, const char *to, const char *from_what, const char *to_what,
                      struct pb_err *err)
{
    char source[PB_FILES_PATH_BYTES], target[PB_FILES_PATH_BYTES];
    struct stat a, b;
    if (stat(from, &a) != 0 || stat(to, &b) != 0)
        return pb_fail(err, PB_E_SYSTEM, "%s or %s: %s", from, to, strerror(errno));
    if (pb_files_join(source, from, ".pushbroomd.probe") != 0 ||
        pb_files_join(target, to, ".pushbroomd.probe") != 0)
        return pb_fail(err, PB_E_CONFIG_VALUE, "%s or %s: path too long", from, to);
    int fd = open(source, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot write in the %s directory %s: %s", from_what, from,
                       strerror(errno));
    (void)close(fd);
    int rc = strcmp(from, to) == 0 || rename(source, target) == 0 ? 0 : -errno;
    (void)unlink(rc == 0 ? target : source);
    if (rc == -EXDEV)
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "%s (%s) and %s (%s) are on different %s; files move between them by "
                       "rename, so put both on one",
                       from_what, from, to_what, to,
                       a.st_dev == b.st_dev ? "mounts" : "filesystems");
    if (rc != 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot move a file from %s (%s) to %s (%s): %s",
                       from_what, from, to_what, to, strerror(-rc));
    return 0;
}

static bool is_inside(const char *a, const char *b)
{
    size_t length = strcmp(a, "/") == 0 ? 0 : strlen(a);
    return strncmp(a, b, length) == 0 && b[length] == '/';
}

/* The config's own check compares texts; links and ".." are seen only here. */
int pb_dirs_check_inbox(const char *inbox, const char *other, const char *what, struct pb_err *err)
{
    if (strcmp(inbox, other) == 0)
        return pb_fail(err, PB_E_CONFIG_VALUE, "inbox and %s are the same directory (%s)", what,
                       inbox);
    if (is_inside(inbox, other))
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "%s (%s) lies inside inbox (%s); give each a directory of its own", what,
                       other, inbox);
    if (is_inside(other, inbox))
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "inbox (%s) lies inside %s (%s); give each a directory of its own", inbox,
                       what, other);
    return 0;
}

int pb_dirs_prepare(const struct pb_service_config *config, struct pb_err *err,
                    struct pb_dirs *out_dirs)
{
    struct pb_dirs *dirs = calloc(1, sizeof *dirs);
    if (dirs == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    int rc = make(config->inbox, "inbox", dirs->inbox, err);
    rc = rc ? rc : make(config->work, "work", dirs->work, err);
    rc = rc ? rc : make(config->archive, "archive", dirs->archive, err);
    rc = rc ? rc : make(config->quarantine, "quarantine", dirs->quarantine, err);
    rc = rc ? rc : make(config->products, "products", dirs->products, err);
    rc = rc ? rc : make(config->state, "state", dirs->state, err);
    rc = rc ? rc : pb_dirs_check_inbox(dirs->inbox, dirs->work, "work", err);
    rc = rc ? rc : pb_dirs_check_inbox(dirs->inbox, dirs->archive, "archive", err);
    rc = rc ? rc : pb_dirs_check_inbox(dirs->inbox, dirs->quarantine, "quarantine", err);
    rc = rc ? rc : pb_dirs_check_inbox(dirs->inbox, dirs->products, "products", err);
    rc = rc ? rc : pb_dirs_check_inbox(dirs->inbox, dirs->state, "state", err);
    rc = rc ? rc : try_rename(dirs->inbox, dirs->work, "inbox", "work", err);
    rc = rc ? rc : try_rename(dirs->work, dirs->archive, "work", "archive", err);
    rc = rc ? rc : try_rename(dirs->work, dirs->quarantine, "work", "quarantine", err);
    if (rc == 0)
        *out_dirs = *dirs;
    free(dirs);
    return rc;
}

static bool try_lock(void *user)
{
    return flock(*(int *)user, LOCK_EX | LOCK_NB) == 0;
}

int pb_dirs_lock_state(const char *state, struct pb_err *err, int *out_fd)
{
    char path[PB_FILES_PATH_BYTES], owner[32] = "";
    int rc = pb_files_make_directory(state, "state", err);
    if (rc == 0 && pb_files_join(path, state, "lock") != 0)
        rc = pb_fail(err, PB_E_CONFIG_VALUE, "the path of the state directory is too long");
    if (rc != 0)
        return rc;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return pb_fail(err, PB_E_SERVICE_STATE, "cannot open %s: %s", path, strerror(errno));
    if (!pb_clock_retry(PB_DIRS_PATIENCE_MS, try_lock, &fd)) {
        ssize_t n = read(fd, owner, sizeof owner - 1);
        owner[n > 0 ? strcspn(owner, "\n") : 0] = '\0';
        (void)close(fd);
        return pb_fail(err, PB_E_SERVICE_STATE,
                       "another pushbroomd (pid %s) works on %s; stop it, or give this one its own "
                       "directories",
                       owner[0] ? owner : "?", state);
    }
    int n = snprintf(owner, sizeof owner, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) != 0 || write(fd, owner, (size_t)n) != n) {
        rc = pb_fail(err, PB_E_SERVICE_STATE, "cannot write %s: %s", path, strerror(errno));
        (void)close(fd);
        return rc;
    }
    *out_fd = fd;
    return 0;
}
