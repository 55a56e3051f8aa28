/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish_temp.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/publish/holder.h"
#include "pipeline/publish/manifest.h"
#include "pipeline/io/path.h"
#include "pipeline/product/product.h"
#include "pipeline/publish/publish.h"
#include "pipeline/publish/publish_lock.h"
#include "pipeline/publish/publish_parents.h"
#include "pipeline/publish/publish_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMP_TRIES      1000
#define LOCK_MS_MAX     2000
#define SHOWN_BYTES     140 /* bytes of the scene in the temporary name */
#define JOB_BYTES       32
#define OF_COMMAND      "run"
#define LOCK_FILE       ".lock"
#define FENCED          "fenced"
#define FENCED_MAX      100
#define EARLIER_S       86400 /* age of directories of earlier versions */
#define DIGITS          "0123456789"
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* --- names -----------------------------------------------------------------------------------*/

struct temp_name {
    char job[JOB_BYTES];
    uint64_t epoch;
    struct pb_holder holder;
};

/* Cuts the text at its last dot. NULL if it has no dot. */
static char *cut_last(char *text)
{
    char *dot = strrchr(text, '.');
    if (dot == NULL)
        return NULL;
    *dot = '\0';
    return dot + 1;
}

/* .<scene>.<job>.<epoch>.<node>.<pid>-<start>-<n>.tmp */
static bool parse_name(const char *name, struct temp_name *out)
{
    char text[256];
    if (name[0] != '.' || (size_t)snprintf(text, sizeof text, "%s", name) >= sizeof text)
        return false;
    const char *suffix = cut_last(text);
    char *process = suffix != NULL && strcmp(suffix, "tmp") == 0 ? cut_last(text) : NULL;
    char *node = process != NULL ? cut_last(text) : NULL;
    const char *epoch = node != NULL ? cut_last(text) : NULL;
    const char *job = epoch != NULL ? cut_last(text) : NULL;
    if (job == NULL || text[0] != '.' || text[1] == '\0' || job[0] == '\0' ||
        strlen(job) >= JOB_BYTES || epoch[0] == '\0' || strlen(epoch) > 18 ||
        epoch[strspn(epoch, DIGITS)] != '\0')
        return false;
    process[-1] = '.'; /* the two parts are the holder again */
    if (!pb_holder_parse(node, &out->holder))
        return false;
    (void)snprintf(out->job, sizeof out->job, "%s", job);
    out->epoch = strtoull(epoch, NULL, 10);
    return true;
}

/* Returns true for .<scene>.<pid>-<n>.tmp, the form of earlier versions. */
static bool is_earlier_name(const char *name)
{
    size_t n = strlen(name), used;
    if (n < 9 || name[0] != '.' || strcmp(name + n - 4, ".tmp") != 0)
        return false;
    const char *at = name + n - 4;
    while (at > name && at[-1] != '.')
        at--;
    if (at - name < 3 || (used = strspn(at, DIGITS)) == 0 || at[used] != '-')
        return false;
    at += used + 1;
    used = strspn(at, DIGITS);
    return used > 0 && at + used == name + n - 4;
}

/* --- making ----------------------------------------------------------------------------------*/

/* A concurrent sweep holds the lock while it reads the manifest. */
static int lock_soon(int fd)
{
    for (int ms = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; ms++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (ms >= LOCK_MS_MAX)
            return -EAGAIN;
        (void)usleep(1000);
    }
    return 0;
}

/* Without support by the file system, .lock is not locked. */
static int make_lock_file(int fd, int *out_fd)
{
    *out_fd = openat(fd, LOCK_FILE, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*out_fd < 0)
        return errno == ENOENT ? -EAGAIN : -errno;
    return pb_holder_lock_file(*out_fd) == -EAGAIN ? -EAGAIN : 0;
}

static bool is_named(int products_fd, const char *name, int fd)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && fstatat(products_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == there.st_ino;
}

void pb_publish_temp_unlock(struct pb_publish_temp *temp)
{
    if (temp->lock_fd >= 0)
        (void)close(temp->lock_fd);
    temp->lock_fd = -1;
}

void pb_publish_temp_close(struct pb_publish_temp *temp)
{
    int *const all[] = {&temp->scene_fd, &temp->lock_fd, &temp->fd};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] >= 0)
            (void)close(*all[i]);
        *all[i] = -1;
    }
}

static int make_scene(struct pb_publish_temp *temp)
{
    if (mkdirat(temp->fd, PB_PUBLISH_SCENE, 0755) == 0 &&
        (temp->scene_fd = openat(temp->fd, PB_PUBLISH_SCENE, DIRECTORY_FLAGS)) >= 0)
        return 0;
    return errno == ENOENT ? -EAGAIN : -errno;
}

/* Locks the directory just made, and makes scene/ in it. -EAGAIN: another process has locked or
 * removed it. */
static int fill(int products_fd, struct pb_publish_temp *temp)
{
    temp->fd = openat(products_fd, temp->name, DIRECTORY_FLAGS);
    int rc = temp->fd < 0 ? (errno == ENOENT ? -EAGAIN : -errno) : lock_soon(temp->fd);
    if (rc == 0 && !is_named(products_fd, temp->name, temp->fd))
        rc = -EAGAIN;
    rc = rc ? rc : make_lock_file(temp->fd, &temp->lock_fd);
    rc = rc ? rc : make_scene(temp);
    if (rc == 0)
        return 0;
    if (temp->fd >= 0) { /* just made, and empty */
        (void)unlinkat(temp->fd, PB_PUBLISH_SCENE, AT_REMOVEDIR);
        (void)unlinkat(temp->fd, LOCK_FILE, 0);
    }
    (void)unlinkat(products_fd, temp->name, AT_REMOVEDIR);
    pb_publish_temp_close(temp);
    return rc;
}

/* --- leaving ---------------------------------------------------------------------------------*/

struct left {
    struct pb_publish_temp temp; /* scene_fd is -1 */
    int products_fd;             /* -1 = no directory is left */
};

static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER; /* protects left_one */
static struct left left_one = {.products_fd = -1};

static struct left exchange_left(struct left next)
{
    (void)pthread_mutex_lock(&left_lock);
    const struct left before = left_one;
    left_one = next;
    (void)pthread_mutex_unlock(&left_lock);
    return before;
}

static void remove_left(struct left *left)
{
    if (left->products_fd < 0)
        return;
    pb_publish_temp_unlock(&left->temp);
    (void)pb_publish_temp_discard(left->products_fd, left->temp.name);
    pb_publish_temp_close(&left->temp);
    (void)close(left->products_fd);
}

bool pb_publish_temp_leave(int products_fd, struct pb_publish_temp *temp)
{
    struct left left = {.temp = *temp, .products_fd = fcntl(products_fd, F_DUPFD_CLOEXEC, 3)};
    if (left.products_fd < 0)
        return false;
    if (left.temp.scene_fd >= 0) /* published */
        (void)close(left.temp.scene_fd);
    left.temp.scene_fd = -1;
    *temp = (struct pb_publish_temp){.fd = -1, .lock_fd = -1, .scene_fd = -1};
    left = exchange_left(left);
    remove_left(&left);
    return true;
}

bool pb_publish_temp_is_left(void)
{
    (void)pthread_mutex_lock(&left_lock);
    const bool is = left_one.products_fd >= 0;
    (void)pthread_mutex_unlock(&left_lock);
    return is;
}

void pb_publish_drop_temp(void)
{
    struct left left = exchange_left((struct left){.products_fd = -1});
    remove_left(&left);
}

/* Gives the directory that was left the name out->name and makes scene/ in it. Returns false if
 * none was left here; one elsewhere is removed. */
static bool take_left(int products_fd, struct pb_publish_temp *out)
{
    struct left left = exchange_left((struct left){.products_fd = -1});
    if (left.products_fd < 0)
        return false;
    bool taken = is_named(products_fd, left.temp.name, left.temp.fd) &&
                 renameat(products_fd, left.temp.name, products_fd, out->name) == 0;
    if (taken)
        (void)memcpy(left.temp.name, out->name, sizeof left.temp.name);
    if (!taken || make_scene(&left.temp) != 0) {
        remove_left(&left);
        return false;
    }
    (void)close(left.products_fd);
    *out = left.temp;
    return true;
}

static int fence_runs(int products_fd, const char *job, uint64_t epoch);

static bool is_job(const char *job)
{
    return job != NULL && job[0] != '\0' && strlen(job) < JOB_BYTES && strpbrk(job, "./") == NULL;
}

/* Writes the name for a directory of the run, by a new holder. */
static void name_directory(const struct pb_publish_run *run, char out[256])
{
    struct pb_holder holder;
    char text[PB_HOLDER_BYTES];
    /* The scene is only informative; therefore a long name is cut, but not within a character. */
    int bytes = (int)strnlen(run->scene, SHOWN_BYTES);
    while (bytes == SHOWN_BYTES && ((unsigned char)run->scene[bytes] & 0xc0) == 0x80)
        bytes--;
    pb_holder_make(&holder);
    pb_holder_print(&holder, text);
    (void)snprintf(out, 256, ".%.*s.%s.%" PRIu64 ".%s.tmp", bytes, run->scene,
                   is_job(run->job) ? run->job : OF_COMMAND, is_job(run->job) ? run->epoch : 0,
                   text);
}

int pb_publish_temp_make(int products_fd, const char *shown, const struct pb_publish_run *run,
                         struct pb_err *err, struct pb_publish_temp *out)
{
    const bool fences = is_job(run->job) && run->epoch > 1;
    *out = (struct pb_publish_temp){.fd = -1, .lock_fd = -1, .scene_fd = -1};
    int rc = fences ? fence_runs(products_fd, run->job, run->epoch) : 0;
    if (rc == -ESTALE)
        return pb_fail(err, PB_E_OUTPUT_WRITE,
                       "cannot publish '%s' in %s: a later run of the job has begun", run->scene,
                       shown);
    if (rc < 0)
        return pb_io_fail(err, -rc, "cannot keep earlier runs of the job from publishing in",
                          shown);
    rc = -EEXIST;
    for (int i = 0; i < TEMP_TRIES; i++) {
        name_directory(run, out->name);
        if (take_left(products_fd, out))
            return 0;
        rc = mkdirat(products_fd, out->name, 0755) == 0 ? fill(products_fd, out) : -errno;
        if (rc == 0)
            return 0;
        if (rc != -EEXIST && rc != -EAGAIN)
            break;
    }
    out->name[0] = '\0';
    return pb_io_fail(err, -rc, "cannot create a temporary directory in", shown);
}

/* --- removing --------------------------------------------------------------------------------*/

static bool holds_manifest_only(int fd)
{
    bool only = true;
    DIR *dir = pb_path_entries(fd);
    if (dir == NULL)
        return false;
    for (const struct dirent *e; only && (e = readdir(dir)) != NULL;)
        only = pb_path_is_dots(e->d_name) || strcmp(e->d_name, PB_MANIFEST_FILE) == 0;
    (void)closedir(dir);
    return only;
}

/* Removes a directory with only its manifest. The manifest is removed last: it identifies the
 * directory while anything else is in it. */
static bool remove_emptied(int at, const char *name, int fd)
{
    if (!holds_manifest_only(fd))
        return false;
    (void)unlinkat(fd, PB_MANIFEST_FILE, 0);
    return unlinkat(at, name, AT_REMOVEDIR) == 0;
}

/* Removes the files that a manifest names and that were not changed since. Without a manifest
 * the directory was not complete; therefore the run that made the temporary directory wrote all
 * of it. */
static bool remove_products(int at, const char *name)
{
    struct pb_manifest m = {0};
    int fd = openat(at, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return errno == ENOENT || pb_path_remove_at(at, name) == 0;
    int rc = pb_manifest_read(fd, &m);
    bool gone = false;
    if (rc == 0) {
        for (size_t i = 0; i < m.n_files; i++)
            if (!pb_manifest_is_changed(fd, &m.file[i]))
                (void)unlinkat(fd, m.file[i].file, 0);
        gone = remove_emptied(at, name, fd);
    } else if (rc == -ENOENT || rc == -EINVAL) {
        gone = pb_path_remove_at(at, name) == 0;
    }
    pb_manifest_fini(&m);
    (void)close(fd);
    return gone;
}

static bool has_manifest(int at, const char *name)
{
    struct pb_manifest m = {0};
    int fd = openat(at, name, DIRECTORY_FLAGS);
    bool found = fd >= 0 && pb_manifest_read(fd, &m) == 0;
    pb_manifest_fini(&m);
    if (fd >= 0)
        (void)close(fd);
    return found;
}

/* Handles a crash between two renames: moves the older products back to their place, unless
 * newer ones are there. If the place has foreign content, the older ones are preserved. */
static void put_back_old(int products_fd, int temp_fd)
{
    struct pb_manifest m = {0};
    int old = openat(temp_fd, PB_PUBLISH_OLD, DIRECTORY_FLAGS);
    if (old < 0)
        return;
    int rc = pb_manifest_read(old, &m);
    (void)close(old);
    if (rc == 0 && m.path[0] == '\0')
        (void)snprintf(m.path, sizeof m.path, "%s/%s", m.scene, m.pipeline);
    char *slash = strrchr(m.path, '/'), *name = slash ? slash + 1 : m.path;
    if (slash != NULL)
        *slash = '\0';
    int scene = -1;
    if (rc == 0 && m.pipeline[0] != '\0')
        scene = pb_publish_parents(products_fd, slash ? m.path : "", false, 0);
    /* The rename onto a directory that is not empty fails. */
    if (scene >= 0 && renameat(temp_fd, PB_PUBLISH_OLD, scene, name) == 0)
        (void)fsync(scene);
    else if (scene >= 0 && (errno == ENOTEMPTY || errno == EEXIST) && has_manifest(scene, name))
        (void)remove_products(temp_fd, PB_PUBLISH_OLD);
    if (scene >= 0)
        (void)close(scene);
    pb_manifest_fini(&m);
}

/* Removes scene/, or a fenced scene/ under its new name. */
static bool discard_scene(int products_fd, int at, const char *name)
{
    struct pb_manifest marker = {0};
    int fd = openat(at, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return errno == ENOENT;
    bool products = pb_manifest_read(fd, &marker) == 0 && marker.pipeline[0] != '\0';
    pb_manifest_fini(&marker);
    if (products) { /* moved back after a failed sync */
        (void)close(fd);
        return remove_products(at, name);
    }
    put_back_old(products_fd, fd);
    DIR *dir = pb_path_entries(fd);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (!pb_path_is_dots(e->d_name) && strcmp(e->d_name, PB_MANIFEST_FILE) != 0 &&
            strcmp(e->d_name, PB_PUBLISH_OLD) != 0)
            (void)remove_products(fd, e->d_name);
    if (dir != NULL)
        (void)closedir(dir);
    bool gone = remove_emptied(at, name, fd);
    (void)close(fd);
    return gone;
}

static bool is_fenced(const char *name)
{
    return strncmp(name, FENCED, sizeof FENCED - 1) == 0;
}

bool pb_publish_temp_empty(int products_fd, int temp_fd)
{
    bool gone = discard_scene(products_fd, temp_fd, PB_PUBLISH_SCENE);
    DIR *dir = pb_path_entries(temp_fd);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (is_fenced(e->d_name))
            gone = discard_scene(products_fd, temp_fd, e->d_name) && gone;
    if (dir != NULL)
        (void)closedir(dir);
    return gone;
}

bool pb_publish_temp_discard(int products_fd, const char *name)
{
    int fd = openat(products_fd, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return errno == ENOENT;
    bool gone = pb_publish_temp_empty(products_fd, fd);
    if (gone) {
        (void)unlinkat(fd, PB_PUBLISH_ROWS_FILE, 0);
        (void)unlinkat(fd, LOCK_FILE, 0);
        gone = unlinkat(products_fd, name, AT_REMOVEDIR) == 0;
    }
    (void)close(fd);
    return gone;
}

/* --- earlier runs of a job -------------------------------------------------------------------*/

/* All functions here return 0 or the negative errno of an entry that could not be fenced; then its
 * run may still publish. */

/* Reads the next entry. NULL: there is no more, or *rc, if it was 0, is set to the failure. */
static const struct dirent *next_entry(DIR *dir, int *rc)
{
    errno = 0;
    const struct dirent *e = readdir(dir);
    if (e == NULL && *rc == 0)
        *rc = -errno;
    return e;
}

/* Renames an entry to a free name that no run uses. The file system orders this and a rename by
 * the run: the second one finds no entry. */
static int fence_entry(int at, const char *name, const char *prefix)
{
    char fenced[32];
    for (int i = 0; i < FENCED_MAX; i++) {
        (void)snprintf(fenced, sizeof fenced, "%s" FENCED "-%d", prefix, i);
        if (renameat(at, name, at, fenced) == 0 || errno == ENOENT)
            return 0;
        if (errno != ENOTEMPTY && errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

/* Opens a directory of a run: its descriptor; 0: it is gone, or is no directory. */
static int open_run(int at, const char *name)
{
    int fd = openat(at, name, DIRECTORY_FLAGS);
    if (fd >= 0)
        return fd;
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
}

/* Fences the entries of an open directory; *out_any: there was one. */
static int fence_entries(int fd, bool *out_any)
{
    int rc = 0;
    DIR *dir = pb_path_entries(fd);
    if (dir == NULL)
        return -errno;
    for (const struct dirent *e; (e = next_entry(dir, &rc)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        const int one = fence_entry(fd, e->d_name, ".");
        rc = rc ? rc : one;
        *out_any = true;
    }
    (void)closedir(dir);
    return rc;
}

/* Renames the directories in a fenced scene/, to names that no directory of products can have.
 * Reads them again until all are renamed, because the run may rename one in between. */
static int fence_leaves(int temp_fd, const char *name)
{
    int fd = open_run(temp_fd, name), rc = fd < 0 ? fd : 0;
    bool again = fd > 0;
    for (int i = 0; rc == 0 && again; i++) {
        again = false;
        rc = i < FENCED_MAX ? fence_entries(fd, &again) : -EBUSY;
    }
    if (fd > 0)
        (void)close(fd);
    return rc;
}

/* Renames scene/ first, then the directories in it. Under its new name scene/ cannot be a
 * published directory; therefore published products are never touched. The run may have scene/
 * open, and would find its <leaf> without the second step. */
static int fence(int products_fd, const char *name)
{
    int fd = open_run(products_fd, name);
    if (fd <= 0)
        return fd;
    int rc = fence_entry(fd, PB_PUBLISH_SCENE, "");
    DIR *dir = pb_path_entries(fd);
    if (dir == NULL)
        rc = rc ? rc : -errno;
    for (const struct dirent *e; dir != NULL && (e = next_entry(dir, &rc)) != NULL;) {
        const int one = is_fenced(e->d_name) ? fence_leaves(fd, e->d_name) : 0;
        rc = rc ? rc : one; /* a fence may have been interrupted */
    }
    if (dir != NULL)
        (void)closedir(dir);
    (void)close(fd);
    return rc;
}

/* Adds the rows of a fenced run that has published: its machine may be gone for ever. Those that
 * cannot be added now remain for a sweep. */
static void complete_rows(int products_fd, const char *name, const struct temp_name *found)
{
    int fd = open_run(products_fd, name);
    if (fd <= 0)
        return;
    (void)pb_publish_rows_recover(products_fd, fd, found->job, found->epoch);
    (void)close(fd);
}

/* Fences the directory if it is of a run of the job up to that epoch, on any machine, and breaks
 * the lock of its process: others need not wait until it is stale. -ESTALE: it is of a later one.
 */
static int fence_if_earlier(int products_fd, const char *name, const struct temp_name *found,
                            const char *job, uint64_t epoch)
{
    if (strcmp(found->job, job) != 0)
        return 0;
    if (found->epoch > epoch)
        return -ESTALE;
    const int rc = fence(products_fd, name);
    pb_publish_lock_break(products_fd, &found->holder);
    if (rc == 0)
        complete_rows(products_fd, name, found);
    return rc;
}

/* -ESTALE: there is a directory of a later run. */
static int fence_runs(int products_fd, const char *job, uint64_t epoch)
{
    int rc = 0;
    struct temp_name found;
    DIR *dir = pb_path_entries(products_fd);
    if (dir == NULL)
        return -errno;
    for (const struct dirent *e; (e = next_entry(dir, &rc)) != NULL;) {
        const int one = parse_name(e->d_name, &found)
                            ? fence_if_earlier(products_fd, e->d_name, &found, job, epoch)
                            : 0;
        rc = rc == -ESTALE || one == 0 ? rc : one;
    }
    (void)closedir(dir);
    return rc;
}

/* --- after a crash ---------------------------------------------------------------------------*/

/* Removes the directory of a run killed between mkdir and the first manifest: it is empty, or
 * contains that manifest under its temporary name. An empty directory may be removed, whichever
 * process made it. */
static bool remove_begun(int at, const char *name, int fd)
{
    struct stat st;
    bool begun = true;
    DIR *dir = pb_path_entries(fd);
    if (dir == NULL)
        return false;
    for (const struct dirent *e; begun && (e = readdir(dir)) != NULL;)
        begun = pb_path_is_dots(e->d_name) || strcmp(e->d_name, PB_MANIFEST_NEW_FILE) == 0;
    (void)closedir(dir);
    if (begun && fstatat(fd, PB_MANIFEST_NEW_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode))
        (void)unlinkat(fd, PB_MANIFEST_NEW_FILE, 0);
    return begun && unlinkat(at, name, AT_REMOVEDIR) == 0;
}

/* Returns true if scene/ has our manifest or is absent. Removes an empty scene/. */
static bool is_ours(int temp_fd)
{
    struct pb_manifest marker = {0};
    int fd = openat(temp_fd, PB_PUBLISH_SCENE, DIRECTORY_FLAGS);
    if (fd < 0)
        return errno == ENOENT;
    int rc = pb_manifest_read(fd, &marker);
    bool ours = rc == 0 || (rc == -ENOENT && remove_begun(temp_fd, PB_PUBLISH_SCENE, fd));
    pb_manifest_fini(&marker);
    (void)close(fd);
    return ours;
}

/* Returns true if every entry is one that a run makes. */
static bool holds_own_only(int temp_fd)
{
    static const char *const own[] = {".", "..", LOCK_FILE, PB_PUBLISH_ROWS_FILE, PB_PUBLISH_SCENE};
    bool only = true;
    DIR *dir = pb_path_entries(temp_fd);
    if (dir == NULL)
        return false;
    for (const struct dirent *e; only && (e = readdir(dir)) != NULL;) {
        bool known = is_fenced(e->d_name);
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            known = known || strcmp(e->d_name, own[i]) == 0;
        only = known;
    }
    (void)closedir(dir);
    return only;
}

/* Takes the lock of the run until *out_fd is closed. Returns false if another process has it. */
static bool is_unlocked(int temp_fd, int *out_fd)
{
    *out_fd = openat(temp_fd, LOCK_FILE, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return *out_fd < 0 ? errno == ENOENT : pb_holder_lock_file(*out_fd) != -EAGAIN;
}

/* Gives the directory of a run that is over a name of this process. A run that continues, on a
 * machine whose locks are not seen here, does not find it any more, and makes another. */
static bool take_over(int products_fd, const char *name, const struct temp_name *run, char out[256])
{
    const size_t end = strlen(name);
    char text[PB_HOLDER_BYTES], before[PB_HOLDER_BYTES];
    struct pb_holder own;
    pb_holder_print(&run->holder, before);
    pb_holder_make(&own);
    pb_holder_print(&own, text);
    const size_t tail = strlen(before) + sizeof ".tmp" - 1;
    return end > tail &&
           (size_t)snprintf(out, 256, "%.*s%s.tmp", (int)(end - tail), name, text) < 256 &&
           renameat(products_fd, name, products_fd, out) == 0;
}

/* The lock of the directory is held meanwhile, so that a process that is making it detects the
 * sweep. elsewhere: the run is of another machine. */
static bool sweep_one(int products_fd, const char *name, const struct temp_name *run,
                      bool elsewhere)
{
    char own[256];
    int lock_fd = -1, fd = openat(products_fd, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return false;
    bool gone = flock(fd, LOCK_EX | LOCK_NB) == 0 && is_unlocked(fd, &lock_fd) &&
                holds_own_only(fd) && is_ours(fd) &&
                (!elsewhere || take_over(products_fd, name, run, own)) &&
                pb_publish_rows_recover(products_fd, fd, run->job, run->epoch);
    if (lock_fd >= 0)
        (void)close(lock_fd);
    gone = gone && pb_publish_temp_discard(products_fd, elsewhere ? own : name);
    (void)close(fd);
    return gone;
}

/* Removes a directory of an earlier version. Its name has no machine; therefore it must be at
 * least a day old. */
static bool sweep_earlier(int products_fd, const char *name)
{
    struct pb_manifest marker = {0};
    struct stat st;
    int fd = openat(products_fd, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return false;
    int rc = -EBUSY;
    if (fstat(fd, &st) == 0 && time(NULL) - st.st_mtim.tv_sec > EARLIER_S &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        rc = pb_manifest_read(fd, &marker);
    bool gone = rc == 0         ? discard_scene(products_fd, products_fd, name)
                : rc == -ENOENT ? remove_begun(products_fd, name, fd)
                                : false;
    pb_manifest_fini(&marker);
    (void)close(fd);
    return gone;
}

/* Pass over a directory of products. */
struct pass {
    const char *job; /* runs of this job up to the epoch are fenced; NULL = none */
    uint64_t epoch;
    pb_publish_is_over *is_over; /* for runs of other machines; NULL = they are left to these */
    void *user;
};

/* Fences a run of another machine that is over, and removes its directory. */
static bool sweep_elsewhere(int products_fd, const char *name, const struct temp_name *found,
                            const struct pass *pass)
{
    return pass->is_over != NULL && is_job(found->job) && strcmp(found->job, OF_COMMAND) != 0 &&
           !pb_holder_is_here(&found->holder) &&
           pass->is_over(pass->user, found->job, found->epoch) &&
           fence_if_earlier(products_fd, name, found, found->job, found->epoch) == 0 &&
           sweep_one(products_fd, name, found, true);
}

/* Lists the directory once for all, because it may have 100,000 entries. A later run of the job is
 * no failure here. */
static int fence_and_sweep(const char *products, const struct pass *pass)
{
    struct temp_name found;
    DIR *dir = opendir(products);
    if (dir == NULL)
        return pass->job == NULL || errno == ENOENT ? 0 : -errno;
    int removed = 0, rc = 0;
    for (const struct dirent *e; (e = next_entry(dir, &rc)) != NULL;) {
        if (parse_name(e->d_name, &found)) {
            const int one = is_job(pass->job) ? fence_if_earlier(dirfd(dir), e->d_name, &found,
                                                                 pass->job, pass->epoch)
                                              : 0;
            rc = rc == 0 && one != -ESTALE ? one : rc;
            removed += pb_holder_is_dead_here(&found.holder)
                           ? sweep_one(dirfd(dir), e->d_name, &found, false)
                           : sweep_elsewhere(dirfd(dir), e->d_name, &found, pass);
        } else if (is_earlier_name(e->d_name)) {
            removed += sweep_earlier(dirfd(dir), e->d_name);
        } else {
            pb_publish_lock_sweep(dirfd(dir), e->d_name);
        }
    }
    (void)closedir(dir);
    return rc != 0 && pass->job != NULL ? rc : removed;
}

int pb_publish_sweep(const char *products)
{
    const struct pass pass = {.job = NULL};
    return fence_and_sweep(products, &pass);
}

int pb_publish_sweep_runs(const char *products, pb_publish_is_over *is_over, void *user)
{
    const struct pass pass = {.is_over = is_over, .user = user};
    return fence_and_sweep(products, &pass);
}

int pb_publish_fence(const char *products, const char *job, uint64_t epoch)
{
    const struct pass pass = {.job = job, .epoch = epoch};
    return fence_and_sweep(products, &pass);
}
