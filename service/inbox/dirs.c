/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/dirs.h"

#include "service/base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES_MAX = PB_INBOXES_MAX + 6 };

struct place {
    const char *what, *path;
    /* length of the longest mount point above the path */
    size_t mount_bytes;
    char device[32];                         /* "8:1"; "" = unknown */
    char on_device[2 * PB_FILES_PATH_BYTES]; /* path within its file system; "" = its root */
};

/* --- place of a path in its file system ---------------------------------------------------- */

/* Replaces octal escapes such as \040 by the characters that they encode, in place. */
static void unescape(char *text)
{
    char *out = text;
    for (const char *in = text; *in != '\0';) {
        if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' &&
            in[3] >= '0' && in[3] <= '7') {
            *out++ = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
            in += 4;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
}

/* Returns the bytes of the mount point if it contains the path or equals it, otherwise -1. "/" has
 * 0. */
static long below(const char *mount, const char *path)
{
    size_t n = strcmp(mount, "/") == 0 ? 0 : strlen(mount);
    return strncmp(mount, path, n) == 0 && (path[n] == '/' || path[n] == '\0') ? (long)n : -1;
}

/* Keeps the longest mount point; of two equal ones the later, which covers the other. */
static void apply_mount(struct place *place, const char *device, const char *root,
                        const char *mount)
{
    long n = below(mount, place->path);
    if (n < 0 || (place->device[0] != '\0' && (size_t)n < place->mount_bytes))
        return;
    place->mount_bytes = (size_t)n;
    (void)snprintf(place->device, sizeof place->device, "%s", device);
    (void)snprintf(place->on_device, sizeof place->on_device, "%s%s",
                   strcmp(root, "/") == 0 ? "" : root, place->path + n);
}

/* Finds device and path on it for each place. Without /proc the mounts are unknown, and only the
 * paths are compared. */
static void find_on_devices(struct place *place, size_t n)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t room = 0;
    while (file != NULL && getline(&line, &room, file) > 0) {
        char *save = NULL, *field[5] = {NULL};
        for (int i = 0; i < 5; i++)
            field[i] = strtok_r(i == 0 ? line : NULL, " \n", &save);
        if (field[4] == NULL) /* id parent device root mount-point */
            continue;
        unescape(field[3]);
        unescape(field[4]);
        for (size_t i = 0; i < n; i++)
            apply_mount(&place[i], field[2], field[3], field[4]);
    }
    free(line);
    if (file != NULL)
        (void)fclose(file);
}

/* --- comparing ---------------------------------------------------------------------------- */

/* Returns true if b equals a or is inside it. */
static bool holds(const char *a, const char *b)
{
    size_t n = strcmp(a, "/") == 0 ? 0 : strlen(a);
    return strncmp(a, b, n) == 0 && (b[n] == '/' || b[n] == '\0');
}

static bool place_holds(const struct place *a, const struct place *b)
{
    return holds(a->path, b->path) || (a->device[0] != '\0' && strcmp(a->device, b->device) == 0 &&
                                       holds(a->on_device, b->on_device));
}

/* Compares the name and the place in the file system: a bind mount of products at work/done is not
 * the default archive. */
static bool is_default_archive(const struct place *work, const struct place *archive)
{
    size_t n = strlen(work->path), m = strlen(work->on_device);
    return strcmp(archive->what, "archive") == 0 && strcmp(work->what, "work") == 0 &&
           strncmp(work->path, archive->path, n) == 0 && strcmp(archive->path + n, "/done") == 0 &&
           strcmp(work->device, archive->device) == 0 &&
           strncmp(work->on_device, archive->on_device, m) == 0;
}

static int check_pair(const struct place *a, const struct place *b, struct pb_err *err)
{
    bool a_holds = place_holds(a, b), b_holds = place_holds(b, a);
    if (a_holds && b_holds)
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "%s (%s) and %s (%s) are the same directory; give each one of its own",
                       a->what, a->path, b->what, b->path);
    const struct place *in = a_holds ? b : a, *out = a_holds ? a : b;
    if ((!a_holds && !b_holds) || is_default_archive(out, in))
        return 0;
    return pb_fail(err, PB_E_CONFIG_VALUE,
                   "%s (%s) is inside %s (%s); give each a directory of its own", in->what,
                   in->path, out->what, out->path);
}

/* Finds the real path of the directory of the socket; false if it is absent. */
static bool socket_directory(const char *socket, char out[PB_FILES_PATH_BYTES])
{
    char path[PB_FILES_PATH_BYTES];
    if (socket == NULL || (size_t)snprintf(path, sizeof path, "%s", socket) >= sizeof path)
        return false;
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return realpath(".", out) != NULL;
    slash[slash == path] = '\0';
    return realpath(path, out) != NULL;
}

/* Lists the directories; returns their count. */
static size_t list_places(const struct pb_dirs *dirs, struct place *place)
{
    const struct place others[] = {{.what = "work", .path = dirs->work},
                                   {.what = "archive", .path = dirs->archive},
                                   {.what = "quarantine", .path = dirs->quarantine},
                                   {.what = "products", .path = dirs->products},
                                   {.what = "state", .path = dirs->state}};
    size_t n = 0;
    for (; n < dirs->n_inboxes; n++)
        place[n] = (struct place){.what = "inbox", .path = dirs->inbox[n]};
    (void)memcpy(&place[n], others, sizeof others);
    return n + sizeof others / sizeof others[0];
}

int pb_dirs_check_apart(const struct pb_dirs *dirs, const char *socket, struct pb_err *err)
{
    char directory[PB_FILES_PATH_BYTES];
    struct place *place = calloc(PLACES_MAX, sizeof *place);
    if (place == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    size_t n_dirs = list_places(dirs, place);
    place[n_dirs] = (struct place){.what = "the socket's directory", .path = directory};
    size_t n = n_dirs + socket_directory(socket, directory);
    find_on_devices(place, n);
    int rc = 0;
    for (size_t i = 0; i < n_dirs; i++)
        for (size_t k = i + 1; k < n_dirs && rc == 0; k++)
            rc = check_pair(&place[i], &place[k], err);
    for (size_t i = 0; i < n_dirs && n > n_dirs && rc == 0; i++)
        if (place_holds(&place[i], &place[n_dirs]))
            rc = pb_fail(err, PB_E_CONFIG_VALUE,
                         "the socket (%s) is inside %s (%s); give it a directory of its own",
                         socket, place[i].what, place[i].path);
    free(place);
    return rc;
}

/* --- directories ------------------------------------------------------------------------------ */

static_assert(PB_FILES_PATH_BYTES >= PATH_MAX, "realpath writes PATH_MAX bytes");

static int make(const char *path, const char *what, char out[PB_FILES_PATH_BYTES],
                struct pb_err *err)
{
    int rc = pb_files_make_directory(path, what, err);
    if (rc == 0 && realpath(path, out) == NULL)
        rc = pb_fail(err, PB_E_SYSTEM, "%s directory %s: %s", what, path, strerror(errno));
    return rc;
}

/* Makes a directory that other users cannot read: jobs and their errors are private. */
static int make_private(const char *path, const char *what, char out[PB_FILES_PATH_BYTES],
                        struct pb_err *err)
{
    bool was_there = path != NULL && access(path, F_OK) == 0;
    int rc = make(path, what, out, err);
    if (rc == 0 && !was_there && chmod(out, 0700) != 0)
        rc = pb_fail(err, PB_E_SYSTEM, "%s directory %s: %s", what, path, strerror(errno));
    return rc;
}

/* Files move between the two directories by rename. That needs one filesystem and one mount of it,
 * and a bind mount has the same device number. The check writes nothing. If the kernel does not
 * report the mount, the first claim fails with the same message. */
static int check_same_mount(const char *a, const char *b, const char *a_what, const char *b_what,
                            struct pb_err *err)
{
    struct statx x, y;
    if (statx(AT_FDCWD, a, 0, STATX_BASIC_STATS | STATX_MNT_ID, &x) != 0 ||
        statx(AT_FDCWD, b, 0, STATX_BASIC_STATS | STATX_MNT_ID, &y) != 0)
        return pb_fail(err, PB_E_SYSTEM, "%s or %s: %s", a, b, strerror(errno));
    bool one_device = x.stx_dev_major == y.stx_dev_major && x.stx_dev_minor == y.stx_dev_minor;
    bool told = (x.stx_mask & y.stx_mask & STATX_MNT_ID) != 0;
    if (one_device && (!told || x.stx_mnt_id == y.stx_mnt_id))
        return 0;
    return pb_fail(err, PB_E_CONFIG_VALUE,
                   "%s (%s) and %s (%s) are on different %s; files move between them by rename, so "
                   "put both on one",
                   a_what, a, b_what, b, one_device ? "mounts" : "filesystems");
}

/* Checks links, ".." and mounts; the configuration's own check only compares the texts of paths. */
static int check_all(const struct pb_dirs *dirs, const struct pb_dirs *there, const char *socket,
                     struct pb_err *err)
{
    int rc = pb_dirs_check_apart(dirs, socket, err);
    for (size_t i = 0; i < there->n_inboxes && rc == 0; i++)
        rc = check_same_mount(there->inbox[i], there->work, "inbox", "work", err);
    rc = rc ? rc : check_same_mount(there->work, there->archive, "work", "archive", err);
    return rc ? rc : check_same_mount(there->work, there->quarantine, "work", "quarantine", err);
}

int pb_dirs_prepare(const struct pb_service_config *config, struct pb_err *err,
                    struct pb_dirs *out_dirs)
{
    struct pb_dirs *dirs = calloc(1, sizeof *dirs);
    if (dirs == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    int rc = 0;
    for (size_t i = 0; i < config->n_inboxes; i++)
        if (config->has_store && config->inboxes[i].node != NULL)
            (void)snprintf(dirs->inbox_node[i], PB_INBOX_NODE_BYTES, "%s", config->inboxes[i].node);
    for (size_t i = 0; i < config->n_inboxes && rc == 0; i++)
        rc = make(config->inboxes[i].path, "inbox", dirs->inbox[dirs->n_inboxes++], err);
    rc = rc ? rc : make(config->work, "work", dirs->work, err);
    rc = rc ? rc : make(config->archive, "archive", dirs->archive, err);
    rc = rc ? rc : make(config->quarantine, "quarantine", dirs->quarantine, err);
    rc = rc ? rc : make(config->products, "products", dirs->products, err);
    rc = rc ? rc : make_private(config->state, "state", dirs->state, err);
    rc = rc ? rc : check_all(dirs, dirs, config->socket, err);
    if (rc == 0)
        *out_dirs = *dirs;
    free(dirs);
    return rc;
}

/* Result that `make` would have: the real path of a directory, which need not exist yet, and that
 * of its existing part (there). */
static int foresee(const char *path, const char *what, char out[PB_FILES_PATH_BYTES],
                   char there[PB_FILES_PATH_BYTES], struct pb_err *err)
{
    char whole[PB_FILES_PATH_BYTES], part[PB_FILES_PATH_BYTES];
    if (path == NULL || (size_t)snprintf(whole, sizeof whole, "%s%s", path[0] == '/' ? "" : "./",
                                         path) >= sizeof whole)
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "the path of the %s directory is missing or too long", what);
    (void)memcpy(part, whole, sizeof part);
    char *end = part + strlen(part);
    while (realpath(part, there) == NULL) {
        char *slash = strrchr(part, '/');
        if (errno != ENOENT || slash == NULL)
            return pb_fail(err, PB_E_SYSTEM, "%s directory %s: %s", what, path, strerror(errno));
        end = slash;
        *end = '\0';
        if (part[0] == '\0')
            (void)snprintf(part, sizeof part, "/");
    }
    const char *missing = whole + (end - part);
    int n =
        snprintf(out, PB_FILES_PATH_BYTES, "%s%s", strcmp(there, "/") == 0 ? "" : there, missing);
    if (n >= PB_FILES_PATH_BYTES)
        return pb_fail(err, PB_E_CONFIG_VALUE, "the path of the %s directory is too long", what);
    if (out[0] == '\0')
        (void)snprintf(out, PB_FILES_PATH_BYTES, "/");
    return pb_files_check_directory(there, what, err);
}

size_t pb_dirs_inbox_of(const struct pb_dirs *dirs, const char *directory)
{
    for (size_t i = 0; i < dirs->n_inboxes; i++) {
        const size_t n = strlen(dirs->inbox[i]);
        if (strncmp(directory, dirs->inbox[i], n) == 0 &&
            (directory[n] == '/' || directory[n] == '\0'))
            return i;
    }
    return dirs->n_inboxes;
}

int pb_dirs_check(const struct pb_service_config *config, struct pb_err *err)
{
    struct pb_dirs *dirs = calloc(2, sizeof *dirs), *there = dirs + 1;
    if (dirs == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    int rc = 0;
    dirs->n_inboxes = there->n_inboxes = config->n_inboxes;
    for (size_t i = 0; i < config->n_inboxes && rc == 0; i++)
        rc = foresee(config->inboxes[i].path, "inbox", dirs->inbox[i], there->inbox[i], err);
    rc = rc ? rc : foresee(config->work, "work", dirs->work, there->work, err);
    rc = rc ? rc : foresee(config->archive, "archive", dirs->archive, there->archive, err);
    rc = rc ? rc
            : foresee(config->quarantine, "quarantine", dirs->quarantine, there->quarantine, err);
    rc = rc ? rc : foresee(config->products, "products", dirs->products, there->products, err);
    rc = rc ? rc : foresee(config->state, "state", dirs->state, there->state, err);
    rc = rc ? rc : check_all(dirs, there, config->socket, err);
    free(dirs);
    return rc;
}

static int lock(const char *directory, const char *file, struct pb_dirs_locks *locks,
                struct pb_err *err)
{
    int rc = pb_dir_lock(directory, file, err, &locks->fd[locks->n]);
    locks->n += rc == 0;
    return rc;
}

static void lock_inbox(const char *inbox, struct pb_dirs_locks *locks)
{
    if (!pb_dir_lock_try(inbox, &locks->fd[locks->n]))
        pb_log(PB_LOG_WARNING,
               "inbox: another process holds a lock on %s; if that is another pushbroomd, each "
               "file is taken by one of the two",
               inbox);
    else if (locks->fd[locks->n] >= 0)
        locks->n++;
}

int pb_dirs_lock(const struct pb_dirs *dirs, struct pb_dirs_locks *locks, struct pb_err *err)
{
    int rc = lock(dirs->state, PB_DIR_LOCK_STATE_FILE, locks, err);
    rc = rc ? rc : lock(dirs->work, PB_DIR_LOCK_FILE, locks, err);
    rc = rc ? rc : lock(dirs->quarantine, PB_DIR_LOCK_FILE, locks, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < dirs->n_inboxes; i++)
        if (dirs->inbox_node[i][0] == '\0')
            lock_inbox(dirs->inbox[i], locks);
    return 0;
}

void pb_dirs_unlock(struct pb_dirs_locks *locks)
{
    while (locks->n > 0)
        (void)close(locks->fd[--locks->n]);
}

bool pb_dirs_inbox_is_open(const char *inbox)
{
    struct stat st;
    return stat(inbox, &st) == 0 && (st.st_mode & 022) != 0 && (st.st_mode & S_ISVTX) == 0;
}
