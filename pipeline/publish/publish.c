/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish.h"
#include "pipeline/publish/collection.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/file_name.h"
#include "pipeline/io/path.h"
#include "pipeline/product/product.h"
#include "pipeline/publish/publish_mode.h"
#include "pipeline/publish/publish_move.h"
#include "pipeline/publish/publish_parents.h"
#include "pipeline/publish/publish_place.h"
#include "pipeline/publish/publish_temp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE_TRIES 100 /* others may come and go */

struct pb_publish {
    struct pb_input_id input;
    struct pb_input_sum *sum;
    struct pb_place_wanted wanted; /* its strings are those below */
    struct pb_output_place path;   /* without a version */
    unsigned mode;
    char form[PB_OUTPUT_PATH_BYTES]; /* output.path */
    char scene[256], leaf[256];      /* leaf: of the temporary directory, holds the files */
    char products[PATH_MAX], pipeline[256], job[64], input_path[PATH_MAX];
    char base[PATH_MAX + PB_OUTPUT_PATH_BYTES + 1]; /* products/parents */
    char directory[PATH_MAX];                       /* products/temp/leaf */
    char place[256];                                /* name of the scene directory */
    char shown[PB_OUTPUT_PATH_BYTES + 260];         /* parents/place */
    char marked[256]; /* the place that the temporary directory's manifest names */
    char temp[256];
    int products_fd, base_fd; /* base_fd: -1 until the parents exist */
    int temp_fd;              /* of temp, flock'd; after it became the scene directory, of that */
    bool placed;              /* path, base_fd and place are chosen */
    bool made, committed, unsynced, identified; /* the marker has the checksum */
    char warning[PATH_MAX + 400];
    char collection[256]; /* "" = none */
};

/* --- opening ---------------------------------------------------------------------------------*/

static bool is_usable_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

static int copy(char *to, size_t bytes, const char *from, const char *what, struct pb_err *err)
{
    if ((size_t)snprintf(to, bytes, "%s", from ? from : "") >= bytes)
        return pb_fail(err, PB_E_OUTPUT_NAME, "the %s %.200s... is too long", what, from);
    return 0;
}

static int take_path(struct pb_publish *p, const char *sensor, bool has_time, int64_t time_s,
                     struct pb_err *err)
{
    const struct pb_output_facts facts = {.scene = p->scene,
                                          .pipeline = p->pipeline,
                                          .sensor = sensor,
                                          .has_time = has_time,
                                          .time_s = time_s};
    int rc = pb_output_path_expand(p->form, &facts, err, &p->path);
    (void)snprintf(p->base, sizeof p->base, "%s%s%s", p->products, p->path.parents[0] ? "/" : "",
                   p->path.parents);
    p->placed = rc == 0;
    return rc;
}

static int check_names(const struct pb_publish *p, struct pb_err *err)
{
    if (is_usable_name(p->scene) && is_usable_name(p->pipeline))
        return 0;
    return pb_fail(err, PB_E_OUTPUT_NAME,
                   "products cannot be named '%s'; give the input a name without a leading dot",
                   is_usable_name(p->scene) ? p->pipeline : p->scene);
}

static int take_options(struct pb_publish *p, const struct pb_publish_options *options,
                        struct pb_err *err)
{
    p->input = options->input;
    p->sum = options->sum;
    p->mode = options->mode;
    p->wanted = (struct pb_place_wanted){.shown = p->base,
                                         .scene = p->path.scene,
                                         .inner = p->path.inner,
                                         .pipeline = p->pipeline,
                                         .input = &p->input,
                                         .input_path = options->input_path ? p->input_path : NULL,
                                         .existing = options->existing};
    int rc = copy(p->products, sizeof p->products, options->products, "path", err);
    rc = rc ? rc : copy(p->pipeline, sizeof p->pipeline, options->pipeline, "name", err);
    rc = rc ? rc : copy(p->job, sizeof p->job, options->job, "job", err);
    rc = rc ? rc : copy(p->input_path, sizeof p->input_path, options->input_path, "path", err);
    rc = rc ? rc : copy(p->collection, sizeof p->collection, options->collection, "name", err);
    rc = rc ? rc : copy(p->scene, sizeof p->scene, options->scene, "name", err);
    rc = rc ? rc
            : copy(p->form, sizeof p->form, options->path ? options->path : PB_OUTPUT_PATH_DEFAULT,
                   "path", err);
    rc = rc ? rc : check_names(p, err);
    if (rc == 0 && !(options->late && pb_output_path_needs_metadata(p->form)))
        rc = take_path(p, options->sensor, options->has_time, options->time_s, err);
    return rc;
}

/* The name of the directory of the files, in the temporary one and when it is published. */
static const char *leaf_of(const struct pb_publish *p)
{
    return !p->placed ? p->pipeline : p->path.inner[0] != '\0' ? p->path.inner : p->path.scene;
}

/* Completes the input's identity. */
static int identify(struct pb_publish *p, struct pb_err *err)
{
    if (p->sum == NULL || p->input.sha256[0] != '\0')
        return 0;
    return pb_input_sum_get(p->sum, err, p->input.sha256);
}

static void show_place(struct pb_publish *p)
{
    (void)snprintf(p->shown, sizeof p->shown, "%s%s%s", p->path.parents,
                   p->path.parents[0] ? "/" : "", p->place);
}

static int choose_place(struct pb_publish *p, struct pb_err *err)
{
    int rc = pb_place_choose(p->base_fd, &p->wanted, err, p->place);
    if (rc == 1 && (rc = identify(p, err)) == 0)
        rc = pb_place_choose(p->base_fd, &p->wanted, err, p->place);
    show_place(p);
    return rc;
}

/* The manifest that makes the temporary directory ours, and later the scene directory this
 * input's. */
static int write_mark(struct pb_publish *p, struct pb_err *err)
{
    struct pb_manifest marker = {.input = p->input};
    (void)snprintf(marker.scene, sizeof marker.scene, "%s", p->place);
    int rc = pb_manifest_write(p->temp_fd, &marker, 0644, p->directory, err);
    p->identified = rc == 0 && marker.input.sha256[0] != '\0';
    if (rc == 0)
        (void)snprintf(p->marked, sizeof p->marked, "%s", p->place);
    return rc;
}

static int make_directory(struct pb_publish *p, struct pb_err *err)
{
    int rc = pb_publish_temp_make(p->products_fd, p->products, p->scene, err, p->temp, &p->temp_fd);
    if (rc < 0)
        return rc;
    p->made = true;
    (void)snprintf(p->leaf, sizeof p->leaf, "%s", leaf_of(p));
    if (snprintf(p->directory, sizeof p->directory, "%s/%s/%s", p->products, p->temp, leaf_of(p)) >=
        (int)sizeof p->directory)
        return pb_fail(err, PB_E_OUTPUT_NAME, "the path %s is too long", p->products);
    rc = write_mark(p, err);
    if (rc == 0 && mkdirat(p->temp_fd, p->leaf, 0755) != 0)
        rc = pb_io_fail(err, errno, "cannot create", p->directory);
    return rc;
}

/* make: the parents are created when they are missing, else p->base_fd stays -1. */
static int open_base(struct pb_publish *p, bool make, struct pb_err *err)
{
    if (p->base_fd >= 0)
        return 0;
    int fd =
        pb_publish_parents(p->products_fd, p->path.parents, make, pb_publish_search_mode(p->mode));
    if (fd < 0 && (make || fd != -ENOENT))
        return pb_io_fail(err, -fd, make ? "cannot create" : "cannot open", p->base);
    p->base_fd = fd < 0 ? -1 : fd;
    return 0;
}

/* Before anything is written there. */
static int choose_first(struct pb_publish *p, struct pb_err *err)
{
    int rc = open_base(p, false, err);
    return rc ? rc : choose_place(p, err);
}

int pb_publish_open(const struct pb_publish_options *options, struct pb_err *err,
                    struct pb_publish **out_publish)
{
    struct pb_publish *p = calloc(1, sizeof *p);
    if (p == NULL) {
        pb_input_sum_destroy(options->sum);
        return pb_fail(err, PB_E_MEMORY, "out of memory while opening %s", options->products);
    }
    p->temp_fd = p->base_fd = p->products_fd = -1;
    int rc = take_options(p, options, err);
    if (rc == 0 && (rc = pb_path_make(p->products)) < 0)
        rc = pb_io_fail(err, -rc, "cannot create", p->products);
    if (rc == 0) {
        p->products_fd = open(p->products, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (p->products_fd < 0)
            rc = pb_io_fail(err, errno, "cannot open", p->products);
    }
    if (rc == 0)
        (void)pb_publish_sweep(p->products); /* of runs that were killed */
    if (rc == 0 && p->placed)
        rc = choose_first(p, err);
    if (rc == 0)
        rc = make_directory(p, err);
    if (rc < 0) {
        pb_publish_close(p);
        return rc;
    }
    *out_publish = p;
    return 0;
}

bool pb_publish_is_placed(const struct pb_publish *p)
{
    return p->placed;
}

int pb_publish_locate(struct pb_publish *p, const char *sensor, bool has_time, int64_t time_s,
                      struct pb_err *err)
{
    int rc = p->placed ? 0 : take_path(p, sensor, has_time, time_s, err);
    return rc ? rc : choose_first(p, err);
}

int pb_publish_identify(struct pb_publish *p, struct pb_err *err)
{
    return p->sum != NULL ? pb_input_sum_start(p->sum, err) : 0;
}

const char *pb_publish_directory(const struct pb_publish *publish)
{
    return publish->directory;
}

const char *pb_publish_place(const struct pb_publish *publish)
{
    return publish->shown;
}

const char *pb_publish_warning(const struct pb_publish *publish)
{
    return publish->warning;
}

/* --- committing ------------------------------------------------------------------------------*/

/* Manifests, permissions, and all of it on disk. */
static int seal(struct pb_publish *p, const struct pb_manifest_file *file, size_t n_files,
                struct pb_err *err)
{
    struct pb_manifest m = {.input = p->input, .n_files = n_files};
    (void)snprintf(m.job, sizeof m.job, "%s", p->job);
    (void)snprintf(m.scene, sizeof m.scene, "%s", p->place);
    (void)snprintf(m.pipeline, sizeof m.pipeline, "%s", p->pipeline);
    (void)snprintf(m.path, sizeof m.path, "%s%s%s", p->shown, p->path.inner[0] ? "/" : "",
                   p->path.inner);
    m.file = calloc(n_files + 1, sizeof *m.file);
    int fd = openat(p->temp_fd, p->leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = 0;
    if (fd < 0)
        rc = pb_io_fail(err, errno, "cannot open", p->directory);
    else if (m.file == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory while publishing %s", p->place);
    if (rc == 0 && m.file != NULL) {
        for (size_t i = 0; i < n_files; i++)
            m.file[i] = file[i];
        if (strcmp(p->marked, p->place) != 0 || !p->identified)
            rc = write_mark(p, err);
        rc = rc ? rc : pb_manifest_write(fd, &m, 0644, p->directory, err);
    }
    if (rc == 0 && ((rc = pb_publish_set_modes(p->temp_fd, fd, &m, p->mode)) < 0 ||
                    (rc = pb_publish_sync(fd)) < 0 || (rc = pb_publish_sync(p->temp_fd)) < 0))
        rc = pb_io_fail(err, -rc, "cannot sync", p->directory);
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
    int rc = pb_place_choose(p->base_fd, &p->wanted, err, p->place);
    show_place(p);
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
    int rc = open_base(p, true, err);
    rc = rc ? rc : pb_place_look(p->base_fd, p->place, &p->wanted, &look);
    if (rc < 0)
        return rc;
    if (look.state == PB_PLACE_ANOTHER)
        return move_on(p, err);
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
    const char *wanted = leaf_of(p);
    if (strcmp(wanted, p->leaf) == 0)
        return 0;
    if (renameat(p->temp_fd, p->leaf, p->temp_fd, wanted) != 0)
        return pb_io_fail(err, errno, "cannot rename", p->directory);
    (void)snprintf(p->leaf, sizeof p->leaf, "%s", wanted);
    return 0;
}

/* The products are there whatever becomes of it: a success with a warning. */
static void write_collection(struct pb_publish *p)
{
    const char *why = NULL;
    int rc = p->collection[0] != '\0'
                 ? pb_collection_write(p->products_fd, p->collection, p->mode, &why)
                 : 0;
    if (rc != 0 && p->warning[0] == '\0')
        (void)snprintf(p->warning, sizeof p->warning,
                       "there is no " PB_COLLECTION_FILE " of the collection %s: what lies in %s "
                       "under that name %s",
                       p->collection, p->products, rc > 0 ? why : strerror(-rc));
}

int pb_publish_commit(struct pb_publish *p, const struct pb_manifest_file *file, size_t n_files,
                      struct pb_err *err, char *out_path)
{
    char final[PATH_MAX + PB_OUTPUT_PATH_BYTES + 520];
    int rc = p->placed ? name_leaf(p, err)
                       : pb_fail(err, PB_E_OUTPUT_PATH, "the place of the products is not known");
    rc = rc ? rc : identify(p, err);
    rc = rc ? rc : seal(p, file, n_files, err);
    if (rc < 0)
        return rc;
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
    write_collection(p);
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
