/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish_inside.h"

#include "pipeline/io/file_name.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/sync_all.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/publish/collection.h"
#include "pipeline/publish/publish_mode.h"
#include "pipeline/publish/publish_move.h"
#include "pipeline/publish/publish_temp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACE_TRIES 100 /* others may come and go */

/* Both directories, the manifest and the mark. Nobody sees them yet, so the order is free. */
static int sync_sealed(struct pb_publish *p, int fd, int manifest_fd, struct pb_err *err)
{
    const int all[] = {fd, p->temp_fd, manifest_fd, p->mark_fd};
    int rc = pb_sync_all(all, p->mark_fd >= 0 ? 4 : 3);
    pb_publish_drop_mark(p);
    return rc ? pb_io_fail(err, -rc, "cannot sync", p->directory) : 0;
}

/* Manifests, permissions, and all of it on disk. */
static int seal(struct pb_publish *p, const struct pb_manifest_file *file, size_t n_files,
                struct pb_err *err)
{
    struct pb_manifest m = {.input = p->input, .inputs = &p->inputs, .n_files = n_files};
    (void)snprintf(m.job, sizeof m.job, "%s", p->job);
    (void)snprintf(m.scene, sizeof m.scene, "%s", p->place);
    (void)snprintf(m.pipeline, sizeof m.pipeline, "%s", p->pipeline);
    (void)snprintf(m.path, sizeof m.path, "%s%s%s", p->shown, p->path.inner[0] ? "/" : "",
                   p->path.inner);
    m.file = calloc(n_files + 1, sizeof *m.file);
    int fd = openat(p->temp_fd, p->leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = 0, manifest_fd = -1;
    if (fd < 0)
        rc = pb_io_fail(err, errno, "cannot open", p->directory);
    else if (m.file == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory while publishing %s", p->place);
    if (rc == 0 && m.file != NULL) {
        for (size_t i = 0; i < n_files; i++)
            m.file[i] = file[i];
        if (strcmp(p->marked, p->place) != 0 || !p->identified)
            rc = pb_publish_write_mark(p, err);
        rc = rc ? rc : pb_manifest_put(fd, &m, 0644, p->directory, err, &manifest_fd);
    }
    if (rc == 0 && (rc = pb_publish_set_modes(p->temp_fd, fd, &m, p->mode)) < 0)
        rc = pb_io_fail(err, -rc, "cannot sync", p->directory);
    rc = rc ? rc : sync_sealed(p, fd, manifest_fd, err);
    if (manifest_fd >= 0)
        (void)close(manifest_fd);
    if (fd >= 0)
        (void)close(fd);
    pb_manifest_fini(&m);
    return rc;
}

/* Another has the place. PB_PUBLISH_MOVED when there is a next one. */
static int move_on(struct pb_publish *p, struct pb_err *err)
{
    char was[256];
    (void)memcpy(was, p->place, sizeof was);
    int rc = pb_publish_choose_place(p, err);
    if (rc < 0)
        return rc;
    return strcmp(was, p->place) == 0 ? -EAGAIN : PB_PUBLISH_MOVED;
}

/* The scene directory that another input had is this one's from now on. A crash between this and
 * the exchange leaves products of another input in it, which are never taken for this one's. */
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
    *move = (struct pb_publish_move){.products_fd = p->products_fd,
                                     .temp_fd = p->temp_fd,
                                     .base_fd = p->base_fd,
                                     .scene_fd = look->scene_fd,
                                     .temp = p->temp,
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

/* What is left of the temporary directory: nothing, or the older products. */
static void remove_rest(struct pb_publish *p)
{
    if (!pb_publish_temp_discard(p->products_fd, p->temp) && p->warning[0] == '\0')
        (void)snprintf(p->warning, sizeof p->warning,
                       "the older products could not all be removed; what is left lies in %s/%s",
                       p->products, p->temp);
}

/* Another program put a file among the older products, e.g. a viewer its .aux.xml: they stay with
 * it, and these products go to another directory. A warning says so, as the user expects them in
 * the old one. */
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
        (void)snprintf(p->warning, sizeof p->warning,
                       "the products lie in %s, as older ones in %s could not be replaced: it %s",
                       p->place, first, look.why);
}

/* The path that came late may call the directory of the files otherwise. */
static int name_leaf(struct pb_publish *p, struct pb_err *err)
{
    const char *wanted = pb_publish_leaf_of(p);
    if (strcmp(wanted, p->leaf) == 0)
        return 0;
    if (renameat(p->temp_fd, p->leaf, p->temp_fd, wanted) != 0)
        return pb_io_fail(err, errno, "cannot rename", p->directory);
    (void)snprintf(p->leaf, sizeof p->leaf, "%s", wanted);
    return 0;
}

static bool is_item(const char *type)
{
    const struct pb_product_kind *kind = pb_product_kind_find(type);
    return kind != NULL && kind->describes_others;
}

/* Of the first item. The products appear whatever becomes of it: a success with a warning. */
static void write_collection(struct pb_publish *p, const struct pb_manifest_file *file, size_t n)
{
    struct pb_collection_extent extent;
    const char *why = "holds no item of the collection";
    size_t i = 0;
    while (i < n && !is_item(file[i].type))
        i++;
    if (p->collection[0] == '\0' || i == n)
        return;
    int fd = openat(p->temp_fd, p->leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd < 0 ? -errno : pb_collection_extent_read(fd, file[i].file, p->collection, &extent);
    rc = rc ? rc : pb_collection_write(p->products_fd, p->collection, &extent, p->mode, &why);
    if (fd >= 0)
        (void)close(fd);
    if (rc != 0)
        (void)snprintf(
            p->warning, sizeof p->warning,
            rc > 0 ? "the collection %s has no " PB_COLLECTION_FILE
                     ": what lies in %s under that name %s"
                   : "the item is not in the extent of the collection %s, " PB_COLLECTION_FILE
                     " in %s: %s",
            p->collection, p->products, rc > 0 ? why : strerror(-rc));
}

int pb_publish_commit(struct pb_publish *p, const struct pb_manifest_file *file, size_t n_files,
                      struct pb_err *err, char *out_path)
{
    const struct pb_input_files *inputs;
    char final[PATH_MAX + PB_OUTPUT_PATH_BYTES + 520];
    int rc = p->placed ? name_leaf(p, err)
                       : pb_fail(err, PB_E_OUTPUT_PATH, "the place of the products is not known");
    rc = rc ? rc : pb_publish_inputs(p, err, &inputs);
    rc = rc ? rc : seal(p, file, n_files, err);
    if (rc < 0)
        return rc;
    write_collection(p, file, n_files);
    rc = -EAGAIN;
    for (int i = 0; i < PLACE_TRIES && rc == -EAGAIN; i++)
        rc = try_place(p, err);
    if (rc == PB_PUBLISH_MOVED || (rc < 0 && err != NULL && err->code != PB_OK))
        return rc;
    (void)snprintf(final, sizeof final, "%s/%s%s%s", p->products, p->shown,
                   p->path.inner[0] ? "/" : "", p->path.inner);
    if (rc < 0)
        return pb_io_fail(err, -rc, "cannot publish", final);
    p->committed = true;
    explain_place(p);
    if (!p->unsynced) /* else a crash could bring back the older directory without its files */
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
    pb_publish_drop_mark(p);
    if (p->made && !p->committed)
        (void)pb_publish_temp_discard(p->products_fd, p->temp);
    if (p->temp_fd >= 0)
        (void)close(p->temp_fd);
    if (p->base_fd >= 0)
        (void)close(p->base_fd);
    if (p->products_fd >= 0)
        (void)close(p->products_fd);
    free(p);
}
