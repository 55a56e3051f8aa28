/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish_inside.h"

#include "config/base/clock.h"
#include "pipeline/io/file_name.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/sync_all.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/publish/publish_lock.h"
#include "pipeline/publish/publish_mode.h"
#include "pipeline/publish/publish_move.h"
#include "pipeline/publish/publish_temp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE_TRIES 100 /* other processes may use places meanwhile */

/* Syncs the directories, the manifest, the mark and the record in any order, because they are
 * not visible yet. */
static int sync_sealed(struct pb_publish *p, int fd, int manifest_fd, int record_fd,
                       struct pb_err *err)
{
    int all[PB_SYNC_ALL_MAX] = {fd, p->temp.scene_fd, manifest_fd};
    size_t n = 3;
    if (p->mark_fd >= 0)
        all[n++] = p->mark_fd;
    if (record_fd >= 0) {
        all[n++] = record_fd;
        all[n++] = p->temp.fd;
    }
    int rc = pb_sync_all(all, n);
    pb_publish_drop_mark(p);
    return rc ? pb_io_fail(err, -rc, "cannot sync", p->directory) : 0;
}

static bool is_item(const char *type)
{
    const struct pb_product_kind *kind = pb_product_kind_find(type);
    return kind != NULL && kind->describes_others;
}

/* Records the files with their current times, which prove later that they were not changed. */
static int take_files(struct pb_publish *p, int fd, const struct pb_manifest_file *file,
                      struct pb_manifest *m)
{
    int rc = 0;
    p->rows.n_items = 0;
    for (size_t i = 0; i < m->n_files && rc == 0; i++) {
        struct stat st;
        m->file[i] = file[i];
        if (fstatat(fd, file[i].file, &st, AT_SYMLINK_NOFOLLOW) == 0)
            m->file[i].mtime_ns = pb_clock_ns(&st.st_mtim);
        if (is_item(file[i].type))
            rc = pb_publish_rows_add_item(&p->rows, file[i].file);
    }
    return rc;
}

static int write_record(struct pb_publish *p, int fd, struct pb_err *err, int *out_fd)
{
    if (pb_publish_rows_are_none(&p->rows))
        return 0;
    int rc = pb_publish_rows_record(&p->rows, p->temp.fd, fd, out_fd);
    return rc < 0 ? pb_io_fail(err, -rc, "cannot write", p->directory) : 0;
}

/* Writes manifests and permissions, and syncs everything. fd: directory of the files. */
static int seal(struct pb_publish *p, int fd, const struct pb_manifest_file *file, size_t n_files,
                struct pb_err *err)
{
    struct pb_manifest m = {.input = p->input, .inputs = p->files, .n_files = n_files};
    int rc = 0, manifest_fd = -1, record_fd = -1;
    (void)snprintf(m.job, sizeof m.job, "%s", p->job);
    m.epoch = p->job[0] != '\0' ? p->wanted.epoch : 0;
    (void)snprintf(m.scene, sizeof m.scene, "%s", p->place);
    (void)snprintf(m.pipeline, sizeof m.pipeline, "%s", p->pipeline);
    (void)snprintf(m.path, sizeof m.path, "%s%s%s", p->shown, p->path.inner[0] ? "/" : "",
                   p->path.inner);
    (void)snprintf(p->rows.directory, sizeof p->rows.directory, "%s", m.path);
    m.file = calloc(n_files + 1, sizeof *m.file);
    if (m.file == NULL || take_files(p, fd, file, &m) < 0) {
        free(m.file);
        return pb_fail(err, PB_E_MEMORY, "out of memory while publishing %s", p->place);
    }
    if (strcmp(p->marked, p->place) != 0 || !p->identified)
        rc = pb_publish_write_mark(p, err);
    rc = rc ? rc : pb_manifest_put(fd, &m, 0644, p->directory, err, &manifest_fd);
    if (rc == 0 && (rc = pb_publish_set_modes(p->temp.scene_fd, fd, &m, p->mode)) < 0)
        rc = pb_io_fail(err, -rc, "cannot sync", p->directory);
    rc = rc ? rc : write_record(p, fd, err, &record_fd);
    rc = rc ? rc : sync_sealed(p, fd, manifest_fd, record_fd, err);
    if (manifest_fd >= 0)
        (void)close(manifest_fd);
    if (record_fd >= 0)
        (void)close(record_fd);
    free(m.file); /* inputs are those of p */
    return rc;
}

/* Handles a place used by another input. Returns PB_PUBLISH_MOVED if there is a next place. */
static int move_on(struct pb_publish *p, struct pb_err *err)
{
    char was[256];
    (void)memcpy(was, p->place, sizeof was);
    int rc = pb_publish_choose_place(p, err);
    if (rc < 0)
        return rc;
    return strcmp(was, p->place) == 0 ? -EAGAIN : PB_PUBLISH_MOVED;
}

/* Assigns the scene directory of another input to this one. After a crash between this and the
 * exchange it contains products of another input, whose own manifest identifies them. */
static int take_over(const struct pb_publish *p, int scene_fd, struct pb_err *err)
{
    struct pb_manifest marker = {.input = p->input};
    (void)snprintf(marker.scene, sizeof marker.scene, "%s", p->place);
    return pb_manifest_write(scene_fd, &marker, p->mode ? p->mode : 0644, p->shown, err);
}

static int move_to(struct pb_publish *p, const struct pb_place_look *look,
                   struct pb_publish_move *move)
{
    bool flat = p->path.inner[0] == '\0';
    *move = (struct pb_publish_move){.temp_fd = p->temp.fd,
                                     .from_fd = p->temp.scene_fd,
                                     .base_fd = p->base_fd,
                                     .scene_fd = look->scene_fd,
                                     .leaf = p->leaf,
                                     .place = p->place,
                                     .name = flat ? p->place : p->path.inner};
    if (look->state == PB_PLACE_HOLDS)
        return pb_publish_move_exchange(move, &look->products);
    if (look->state == PB_PLACE_OURS)
        return pb_publish_move_leaf(move);
    move->scene_fd = p->base_fd;
    return flat ? pb_publish_move_leaf(move) : pb_publish_move_scene(move);
}

static int try_place(struct pb_publish *p, struct pb_err *err)
{
    struct pb_place_look look = {.scene_fd = -1};
    struct pb_publish_move move = {.unsynced = 0};
    int rc = pb_publish_open_base(p, true, err);
    rc = rc ? rc : pb_place_look(p->base_fd, p->place, &p->wanted, &look);
    if (rc < 0)
        return rc;
    if (look.state == PB_PLACE_ANOTHER)
        return move_on(p, err);
    if (look.state == PB_PLACE_ALIKE) { /* published meanwhile, with another kind of checksum */
        rc = pb_publish_know_input(p, look.needs, err);
        return rc ? rc : -EAGAIN;
    }
    rc = look.takes_over ? take_over(p, look.scene_fd, err) : 0;
    rc = rc ? rc : move_to(p, &look, &move);
    if (look.scene_fd >= 0)
        (void)close(look.scene_fd);
    p->unsynced = rc == 0 && move.unsynced != 0;
    if (p->unsynced)
        (void)snprintf(p->warning, sizeof p->warning,
                       "the products are in place, but may be lost when the machine fails: the "
                       "directory above could not be synced: %s",
                       strerror(move.unsynced));
    return rc;
}

/* Leaves the temporary directory for the next publication. Returns false if it is to be removed. */
static bool leave_temp(struct pb_publish *p)
{
    return p->leaves_temp && pb_publish_rows_are_none(&p->rows) &&
           pb_publish_temp_empty(p->products_fd, p->temp.fd) &&
           pb_publish_temp_leave(p->products_fd, &p->temp);
}

/* Removes the rest of the temporary directory: nothing, or the older products. A record of
 * pending rows is preserved for a sweep. */
static void remove_rest(struct pb_publish *p)
{
    if (leave_temp(p))
        return;
    pb_publish_temp_unlock(&p->temp);
    bool gone = p->rows_left ? pb_publish_temp_empty(p->products_fd, p->temp.fd)
                             : pb_publish_temp_discard(p->products_fd, p->temp.name);
    if (!gone && p->warning[0] == '\0')
        (void)snprintf(p->warning, sizeof p->warning,
                       "the older products could not all be removed; the rest is in %s/%s",
                       p->products, p->temp.name);
}

/* Another program added a file to the older products, e.g. a viewer its .aux.xml: they are
 * preserved with it, and these products are published in another directory. A warning reports
 * it, because the user expects them in the old one. */
static void explain_place(struct pb_publish *p)
{
    struct pb_place_look look;
    char first[256];
    pb_file_name_place(p->path.scene, 1, first);
    if (strcmp(p->place, first) == 0 || p->warning[0] != '\0' ||
        pb_place_look(p->base_fd, first, &p->wanted, &look) != 0)
        return;
    if (look.scene_fd >= 0)
        (void)close(look.scene_fd);
    if (look.same_input && look.state == PB_PLACE_ANOTHER)
        (void)snprintf(
            p->warning, sizeof p->warning,
            "the products are in %s, because older ones in %s could not be replaced: it %s",
            p->place, first, look.why);
}

/* The path known late may give another name to the directory of the files. */
static int name_leaf(struct pb_publish *p, struct pb_err *err)
{
    const char *wanted = pb_publish_leaf_of(p);
    if (strcmp(wanted, p->leaf) == 0)
        return 0;
    if (renameat(p->temp.scene_fd, p->leaf, p->temp.scene_fd, wanted) != 0)
        return pb_io_fail(err, errno, "cannot rename", p->directory);
    (void)snprintf(p->leaf, sizeof p->leaf, "%s", wanted);
    return 0;
}

static void warn_of_rows(struct pb_publish *p, const char *why)
{
    if (p->warning[0] == '\0' && why[0] != '\0')
        (void)snprintf(p->warning, sizeof p->warning, "%s", why);
}

/* Publishes the rows after the products are visible. A lock that was broken meanwhile is taken
 * again; rows of products that others have replaced since are theirs. */
static void place_rows(struct pb_publish *p, int fd, struct pb_publish_lock *lock,
                       enum pb_publish_rows_collection state, const char *why)
{
    struct pb_err err = {0};
    char again[400];
    int rc;
    p->rows_left = state == PB_ROWS_COLLECTION_FAILED;
    warn_of_rows(p, why);
    while ((rc = pb_publish_lock_place(lock)) == -ESTALE) {
        pb_publish_lock_drop(lock);
        lock = NULL;
        const int staged =
            pb_publish_rows_stage(&p->rows, p->products_fd, p->products, fd,
                                  PB_PUBLISH_LOCK_WAIT_MS, &err, &lock, &state, again);
        if (!pb_publish_rows_are_of(&p->rows, p->products_fd, fd)) {
            p->rows_left = false;
            rc = 0;
            break;
        }
        if (staged < 0)
            break;
    }
    pb_publish_lock_drop(lock);
    if (rc == 0)
        return;
    p->rows_left = true;
    (void)snprintf(p->warning, sizeof p->warning,
                   "the products are in place, but their rows are not in the series of %s yet; the "
                   "next run or start of the service puts them in: %.250s",
                   p->products, err.msg[0] != '\0' ? err.msg : strerror(-rc));
}

/* Makes the sealed files visible; their additions to shared files are written before, and
 * renamed after. */
static int make_visible(struct pb_publish *p, int fd, struct pb_err *err)
{
    struct pb_publish_lock *lock = NULL;
    enum pb_publish_rows_collection state = PB_ROWS_COLLECTION_FINE;
    char why[400] = "";
    int rc = pb_publish_rows_are_none(&p->rows)
                 ? 0
                 : pb_publish_rows_stage(&p->rows, p->products_fd, p->products, fd,
                                         PB_PUBLISH_LOCK_WAIT_MS, err, &lock, &state, why);
    if (rc < 0)
        return rc;
    rc = -EAGAIN;
    for (int i = 0; i < PLACE_TRIES && rc == -EAGAIN; i++)
        rc = try_place(p, err);
    if (rc == 0 && lock != NULL)
        place_rows(p, fd, lock, state, why);
    else
        pb_publish_lock_drop(lock);
    return rc;
}

/* Sets the error of a failed commit unless it is set. */
static int cannot_publish(const struct pb_publish *p, int error, const char *final,
                          struct pb_err *err)
{
    if (error == ESTALE)
        return pb_fail(err, PB_E_OUTPUT_WRITE,
                       "cannot publish '%s': a later run of the job has taken its place, or "
                       "another program removed %s",
                       final, p->temp.name);
    return pb_io_fail(err, error, "cannot publish", final);
}

int pb_publish_commit(struct pb_publish *p, const struct pb_manifest_file *file, size_t n_files,
                      struct pb_err *err, char *out_path)
{
    const struct pb_scene_manifest *files;
    char final[PATH_MAX + PB_OUTPUT_PATH_BYTES + 520];
    int rc = p->placed ? name_leaf(p, err)
                       : pb_fail(err, PB_E_OUTPUT_PATH, "the place of the products is not known");
    rc = rc ? rc : pb_publish_inputs(p, err, &files);
    if (rc == 0 && p->sum != NULL) /* the checksum may be older than the computation */
        rc = pb_input_sum_unchanged(p->sum, err);
    if (rc < 0)
        return rc;
    int fd = openat(p->temp.scene_fd, p->leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? cannot_publish(p, ESTALE, p->shown, err)
                               : pb_io_fail(err, errno, "cannot open", p->directory);
    if (p->request_permit != NULL) /* the store decides while the files are synced */
        p->request_permit(p->permit_user);
    rc = seal(p, fd, file, n_files, err);
    if (rc == 0 && p->permit != NULL) /* not under the lock of shared files: it may take long */
        rc = p->permit(p->permit_user, err);
    rc = rc ? rc : make_visible(p, fd, err);
    (void)close(fd);
    if (rc == PB_PUBLISH_MOVED || (rc < 0 && err != NULL && err->code != PB_OK))
        return rc;
    (void)snprintf(final, sizeof final, "%s/%s%s%s", p->products, p->shown,
                   p->path.inner[0] ? "/" : "", p->path.inner);
    if (rc < 0)
        return cannot_publish(p, -rc, final, err);
    p->committed = true;
    explain_place(p);
    if (!p->unsynced) /* otherwise a crash could restore the older directory without its files */
        remove_rest(p);
    if (realpath(final, out_path) == NULL)
        (void)snprintf(out_path, PATH_MAX, "%.*s", PATH_MAX - 1, final);
    return 0;
}

void pb_publish_close(struct pb_publish *p)
{
    if (p == NULL)
        return;
    pb_input_sum_destroy(p->sum);
    pb_scene_manifest_fini(&p->files);
    pb_publish_drop_mark(p);
    pb_publish_temp_unlock(&p->temp);
    if (p->temp.fd >= 0 && !p->committed)
        (void)pb_publish_temp_discard(p->products_fd, p->temp.name);
    pb_publish_temp_close(&p->temp);
    pb_publish_rows_fini(&p->rows);
    if (p->base_fd >= 0)
        (void)close(p->base_fd);
    if (p->products_fd >= 0)
        (void)close(p->products_fd);
    free(p);
}
