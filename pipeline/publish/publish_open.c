/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish_inside.h"

#include "pipeline/io/io_fail.h"
#include "pipeline/io/path.h"
#include "pipeline/io/sync_all.h"
#include "pipeline/publish/publish_mode.h"
#include "pipeline/publish/publish_parents.h"
#include "pipeline/publish/publish_root.h"
#include "pipeline/publish/publish_temp.h"
#include "pipeline/scene/scene_inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The kind of checksum that the input has, or gets. */
static enum pb_checksum kind_of(const struct pb_publish_options *options)
{
    int kind = 0;
    if (options->sum != NULL)
        return pb_input_sum_kind(options->sum);
    while (kind + 1 < PB_CHECKSUM_KINDS && options->input.checksum[kind][0] == '\0')
        kind++;
    return (enum pb_checksum)kind;
}

static int take_options(struct pb_publish *p, const struct pb_publish_options *options,
                        struct pb_err *err)
{
    p->input = options->input;
    p->sum = options->sum;
    p->files = options->files;
    p->mode = p->rows.mode = options->mode;
    p->request_permit = options->request_permit;
    p->permit = options->permit;
    p->permit_user = options->permit_user;
    p->wanted =
        (struct pb_place_wanted){.shown = p->base,
                                 .scene = p->path.scene,
                                 .inner = p->path.inner,
                                 .pipeline = p->pipeline,
                                 .input = &p->input,
                                 .checksum = kind_of(options),
                                 .is_final = options->sum == NULL,
                                 .input_path = options->input_path ? p->input_path : NULL,
                                 .existing = options->existing,
                                 .sum = p->sum,
                                 .files = options->is_folder || options->set ? &p->files : NULL,
                                 .set = options->set,
                                 .is_open = options->is_open,
                                 .earlier = options->earlier,
                                 .job = p->job,
                                 .epoch = options->epoch};
    int rc = copy(p->products, sizeof p->products, options->products, "path", err);
    rc = rc ? rc : copy(p->pipeline, sizeof p->pipeline, options->pipeline, "name", err);
    rc = rc ? rc : copy(p->job, sizeof p->job, options->job, "job", err);
    rc = rc ? rc : copy(p->input_path, sizeof p->input_path, options->input_path, "path", err);
    rc = rc ? rc
            : copy(p->rows.collection, sizeof p->rows.collection, options->collection, "name", err);
    rc = rc ? rc : copy(p->scene, sizeof p->scene, options->scene, "name", err);
    (void)snprintf(p->rows.scene, sizeof p->rows.scene, "%s", p->scene);
    rc = rc ? rc
            : copy(p->form, sizeof p->form, options->path ? options->path : PB_OUTPUT_PATH_DEFAULT,
                   "path", err);
    rc = rc ? rc : check_names(p, err);
    if (rc == 0 && !(options->late && pb_output_path_needs_metadata(p->form)))
        rc = take_path(p, options->sensor, options->has_time, options->time_s, err);
    return rc;
}

/* Name of the directory of the files, in the temporary directory and when published. */
const char *pb_publish_leaf_of(const struct pb_publish *p)
{
    return !p->placed ? p->pipeline : p->path.inner[0] != '\0' ? p->path.inner : p->path.scene;
}

int pb_publish_know_input(struct pb_publish *p, enum pb_checksum kind, struct pb_err *err)
{
    if (p->sum == NULL || p->input.checksum[kind][0] != '\0')
        return 0;
    return pb_input_sum_get(p->sum, kind, err, p->input.checksum[kind]);
}

int pb_publish_inputs(struct pb_publish *p, struct pb_err *err,
                      const struct pb_scene_manifest **out)
{
    int rc = pb_publish_know_input(p, p->wanted.checksum, err);
    if (rc < 0)
        return rc;
    if (p->sum != NULL && pb_scene_inputs_know(p->sum, pb_input_sum_kind(p->sum), &p->files) != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the list of files");
    *out = &p->files;
    return 0;
}

void pb_publish_show_place(struct pb_publish *p)
{
    (void)snprintf(p->shown, sizeof p->shown, "%s%s%s", p->path.parents,
                   p->path.parents[0] ? "/" : "", p->place);
}

int pb_publish_choose_place(struct pb_publish *p, struct pb_err *err)
{
    enum pb_checksum kind;
    int rc;
    while ((rc = pb_place_choose(p->base_fd, &p->wanted, err, p->place, &kind)) == 1)
        if ((rc = pb_publish_know_input(p, kind, err)) < 0)
            break;
    pb_publish_show_place(p);
    return rc;
}

/* Closes the descriptor of the mark. */
void pb_publish_drop_mark(struct pb_publish *p)
{
    if (p->mark_fd >= 0)
        (void)close(p->mark_fd);
    p->mark_fd = -1;
}

int pb_publish_write_mark(struct pb_publish *p, struct pb_err *err)
{
    struct pb_manifest marker = {.input = p->input};
    (void)snprintf(marker.scene, sizeof marker.scene, "%s", p->place);
    pb_publish_drop_mark(p);
    int rc = pb_manifest_put(p->temp.scene_fd, &marker, 0644, p->directory, err, &p->mark_fd);
    p->identified = rc == 0 && marker.input.checksum[p->wanted.checksum][0] != '\0';
    if (rc == 0)
        (void)snprintf(p->marked, sizeof p->marked, "%s", p->place);
    return rc;
}

static int make_directory(struct pb_publish *p, struct pb_err *err)
{
    const struct pb_publish_run run = {p->scene, p->job, p->wanted.epoch};
    int rc = pb_publish_temp_make(p->products_fd, p->products, &run, err, &p->temp);
    if (rc < 0)
        return rc;
    (void)snprintf(p->leaf, sizeof p->leaf, "%s", pb_publish_leaf_of(p));
    if (snprintf(p->directory, sizeof p->directory, "%s/%s/" PB_PUBLISH_SCENE "/%s", p->products,
                 p->temp.name, pb_publish_leaf_of(p)) >= (int)sizeof p->directory)
        return pb_fail(err, PB_E_OUTPUT_NAME, "the path %s is too long", p->products);
    rc = pb_publish_write_mark(p, err);
    if (rc == 0 && mkdirat(p->temp.scene_fd, p->leaf, 0755) != 0)
        rc = pb_io_fail(err, errno, "cannot create", p->directory);
    return rc;
}

/* Opens the parents. make: creates them if missing; otherwise p->base_fd is -1 then. */
int pb_publish_open_base(struct pb_publish *p, bool make, struct pb_err *err)
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

/* Chooses the place before anything is written. */
static int choose_first(struct pb_publish *p, struct pb_err *err)
{
    int rc = pb_publish_open_base(p, false, err);
    return rc ? rc : pb_publish_choose_place(p, err);
}

/* All that follows uses this descriptor: if another file system is mounted or unmounted there
 * later, the products are nevertheless published in the directory whose token was checked. */
static int open_products(struct pb_publish *p, const char *root, struct pb_err *err)
{
    if (root != NULL) {
        p->products_fd = pb_publish_root_open(p->products, root, err);
        return p->products_fd < 0 ? p->products_fd : 0;
    }
    const int rc = pb_path_make(p->products);
    if (rc < 0)
        return pb_io_fail(err, -rc, "cannot create", p->products);
    p->products_fd = open(p->products, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return p->products_fd < 0 ? pb_io_fail(err, errno, "cannot open", p->products) : 0;
}

int pb_publish_open(const struct pb_publish_options *options, struct pb_err *err,
                    struct pb_publish **out_publish)
{
    struct pb_publish *p = calloc(1, sizeof *p);
    if (p == NULL) {
        struct pb_scene_manifest files = options->files;
        pb_input_sum_destroy(options->sum);
        pb_scene_manifest_fini(&files);
        return pb_fail(err, PB_E_MEMORY, "out of memory while opening %s", options->products);
    }
    p->mark_fd = p->base_fd = p->products_fd = -1;
    p->temp = (struct pb_publish_temp){.fd = -1, .lock_fd = -1, .scene_fd = -1};
    int rc = take_options(p, options, err);
    if (rc == 0)
        rc = open_products(p, options->root, err);
    if (rc == 0 && !pb_publish_temp_is_left())
        (void)pb_publish_sweep(p->products); /* directories of runs that were killed */
    if (rc == 0 && p->sum != NULL && pb_input_sum_at_once(p->sum)) /* a mark with the checksum */
        rc = pb_publish_know_input(p, p->wanted.checksum, err);
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

void pb_publish_leave_temp(struct pb_publish *p)
{
    p->leaves_temp = true;
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

static int sync_mark(struct pb_publish *p, struct pb_err *err)
{
    int rc = p->mark_fd >= 0 ? pb_sync_all(&p->mark_fd, 1) : 0;
    pb_publish_drop_mark(p);
    return rc ? pb_io_fail(err, -rc, "cannot sync", p->directory) : 0;
}

int pb_publish_identify(struct pb_publish *p, struct pb_err *err)
{
    int rc = p->sum != NULL ? pb_input_sum_start(p->sum, err) : 0;
    return rc ? rc : sync_mark(p, err);
}

void pb_publish_expect(struct pb_publish *p, uint64_t bytes)
{
    if (p->sum != NULL)
        pb_input_sum_leave(p->sum, bytes);
}

int pb_publish_prepare(struct pb_publish *p, struct pb_err *err)
{
    int rc = p->placed ? pb_publish_know_input(p, p->wanted.checksum, err) : 0;
    if (rc != 0 || !p->placed || (strcmp(p->marked, p->place) == 0 && p->identified))
        return rc;
    rc = pb_publish_write_mark(p, err);
    return rc ? rc : sync_mark(p, err);
}

int pb_publish_append(struct pb_publish *p, const char *table, const char *series,
                      struct pb_err *err)
{
    struct pb_publish_rows *rows = &p->rows;
    struct pb_publish_series *more =
        realloc(rows->series, (rows->n_series + 1) * sizeof *rows->series);
    if (more == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the rows of %s", series);
    rows->series = more;
    struct pb_publish_series *one = &more[rows->n_series];
    int rc = copy(one->table, sizeof one->table, table, "name", err);
    rc = rc ? rc : copy(one->name, sizeof one->name, series, "name", err);
    rows->n_series += rc == 0;
    return rc;
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
