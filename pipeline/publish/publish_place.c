/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish_place.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/file_name.h"
#include "pipeline/io/path.h"
#include "pipeline/product/product.h"
#include "pipeline/raster/input_sum.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/scene_inputs.h"
#include "pipeline/scene/manifest_match.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSIONS_MAX    100000
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

__attribute__((format(printf, 2, 3))) static int another(struct pb_place_look *look,
                                                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(look->why, sizeof look->why, format, args);
    va_end(args);
    look->state = PB_PLACE_ANOTHER;
    return 0;
}

/* Returns 1: opened; 0: absent, or *look describes the entry; negative: cannot be examined. */
static int open_directory(int at, const char *name, const char *what, struct pb_place_look *look,
                          int *out_fd)
{
    *out_fd = openat(at, name, DIRECTORY_FLAGS);
    if (*out_fd >= 0)
        return 1;
    if (errno == ENOENT)
        return 0;
    if (errno == ENOTDIR || errno == ELOOP)
        return another(look, "%sis not a directory", what);
    return -errno;
}

/* Returns 1: read; 0: not ours, *look gives the reason; negative: cannot be examined. */
static int read_manifest(int fd, const char *what, struct pb_place_look *look,
                         struct pb_manifest *out)
{
    int rc = pb_manifest_read(fd, out);
    if (rc == 0)
        return 1;
    if (rc == -ENOENT || rc == -EINVAL)
        return another(look, "%swas not made by pushbroom (it has no " PB_MANIFEST_FILE ")", what);
    return rc;
}

static bool names_file(const struct pb_manifest *m, const char *name)
{
    if (pb_path_is_dots(name) || strcmp(name, PB_MANIFEST_FILE) == 0)
        return true;
    for (size_t i = 0; i < m->n_files; i++)
        if (strcmp(m->file[i].file, name) == 0)
            return true;
    return false;
}

/* Checks that every entry is the manifest's; else *look names one that is not. Negative: cannot
 * be examined. */
static int holds_only(int fd, const char *what, const struct pb_manifest *m,
                      struct pb_place_look *look)
{
    const struct dirent *e;
    DIR *dir = pb_path_entries(fd);
    if (dir == NULL)
        return -errno;
    int rc = 1;
    while (rc == 1 && (errno = 0, e = readdir(dir)) != NULL)
        if (!names_file(m, e->d_name))
            rc = another(look, "%sholds '%.160s', which pushbroom did not make", what, e->d_name);
    if (rc == 1 && errno != 0)
        rc = -errno;
    (void)closedir(dir);
    return rc;
}

/* Checks that the files are the published ones; else *look names one that is not. */
static bool is_unchanged(int fd, const char *what, const struct pb_manifest *m,
                         struct pb_place_look *look)
{
    for (size_t i = 0; i < m->n_files; i++)
        if (pb_manifest_is_changed(fd, &m->file[i])) {
            (void)another(look,
                          "%sholds '%.160s', which was changed since pushbroom made it; move it "
                          "away to have it made again",
                          what, m->file[i].file);
            return false;
        }
    return true;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Finds the directory that contains the input. Loose files of a scene are represented by the
 * scene's name in their directory; a file of that name need not exist. */
static bool directory_of(const char *path, char real[PATH_MAX])
{
    char parent[PATH_MAX];
    if (realpath(path, real) != NULL) {
        char *slash = strrchr(real, '/');
        slash[slash == real ? 1 : 0] = '\0';
        return true;
    }
    if (errno != ENOENT)
        return false;
    pb_path_parent(path, parent);
    return realpath(parent, real) != NULL;
}

/* Returns true if the file is in the directory or below it, by any path. Unknown counts as true. */
static bool lies_in(const char *path, const struct stat *directory)
{
    char real[PATH_MAX];
    struct stat here, above;
    if (path == NULL)
        return false;
    if (!directory_of(path, real))
        return true;
    int fd = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool found = fd < 0 || fstat(fd, &here) != 0;
    while (!found && !(found = is_same(&here, directory))) {
        int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close(fd);
        fd = up;
        if (fd < 0 || fstat(fd, &above) != 0) {
            found = true;
        } else if (is_same(&here, &above)) {
            break; /* the root */
        }
        here = above;
    }
    if (fd >= 0)
        (void)close(fd);
    return found;
}

/* Selects a kind of checksum that is known of the found input, preferably the kind that the
 * wanted one gets in any case. */
static bool needs(const struct pb_input_id *found, const struct pb_place_wanted *wanted,
                  enum pb_checksum *out)
{
    bool any = false;
    for (int k = 0; k < PB_CHECKSUM_KINDS && !wanted->is_final; k++)
        if (found->checksum[k][0] != '\0' && (!any || k == (int)wanted->checksum)) {
            *out = (enum pb_checksum)k;
            any = true;
        }
    return any;
}

static int of_another(const struct pb_input_id *found, const struct pb_place_wanted *wanted,
                      struct pb_place_look *look)
{
    const char *why = "";
    if (pb_input_id_alike(found, wanted->input)) {
        bool comparable = pb_input_id_comparable(found, wanted->input);
        if (!comparable && needs(found, wanted, &look->needs)) {
            look->state = PB_PLACE_ALIKE;
            return 0;
        }
        why = comparable ? " with other content" : " without a checksum of its content";
    }
    return another(look, "holds the products of another input, '%.200s' of %llu bytes%s",
                   found->name, (unsigned long long)found->bytes, why);
}

/* Returns true if the products were made from one file, whose identity is the input's. The manifest
 * of a scene directory has no files either. */
static bool is_of_one(const struct pb_scene_manifest *found)
{
    return found->n_entries == 0 || pb_scene_manifest_is_image(found);
}

/* Finds the kind of the checksums that the files of products have. */
static enum pb_checksum kind_of(const struct pb_scene_manifest *files, enum pb_checksum other)
{
    enum pb_checksum kind = other;
    const char *digits;
    for (size_t i = 0; i < files->n_entries; i++)
        if (files->entry[i].checksum != NULL &&
            pb_checksum_parse(files->entry[i].checksum, &kind, &digits) == 0)
            break;
    return kind;
}

static bool has_name(const struct pb_scene_manifest *files, const char *name)
{
    char other[PB_SCENE_MANIFEST_NAME_BYTES];
    bool has = false;
    for (size_t i = 0; i < files->n_entries && !has; i++) {
        pb_scene_manifest_name(files, &files->entry[i], other);
        has = strcmp(other, name) == 0;
    }
    return has;
}

/* Adds the files of the products that were delivered with the wanted set and are not read now. */
static int add_unused(const struct pb_scene_manifest *found, const struct pb_place_wanted *wanted,
                      struct pb_scene_manifest *now)
{
    int rc = wanted->set != NULL ? pb_scene_manifest_root(now, "/") : 0;
    const int root = rc;
    for (size_t i = 0; wanted->set != NULL && i < found->n_entries && rc >= 0; i++) {
        struct pb_manifest_entry file = found->entry[i];
        if (!pb_role_is_pixels(pb_scene_manifest_role(found, i)) || has_name(now, file.path) ||
            !pb_scene_files_has(wanted->set, file.path, (uint64_t)file.bytes))
            continue;
        file.root = (uint16_t)root;
        file.checksum = NULL;
        rc = pb_scene_manifest_add(now, &file);
        const struct pb_member member = {.entry = (uint32_t)rc, .role = PB_ROLE_UNUSED};
        rc = rc < 0 ? rc : pb_scene_manifest_assign(now, &member);
    }
    return rc < 0 ? rc : 0;
}

/* Compares the files from which products were made with those of the wanted input, by the kind of
 * checksum of the products. Files that a scene in a folder lacks are not missing: the folder is the
 * scene, and its pipeline was changed to read fewer. */
static int compare_files(const struct pb_scene_manifest *found,
                         const struct pb_place_wanted *wanted, struct pb_manifest_comparison *out)
{
    struct pb_scene_manifest now = {.n_roots = 0};
    int rc = wanted->files != NULL ? pb_scene_manifest_copy(&now, wanted->files) : 0;
    if (rc == 0 && wanted->files != NULL && wanted->sum != NULL)
        rc = pb_scene_inputs_know(wanted->sum, kind_of(found, wanted->checksum), &now);
    rc = rc ? rc : add_unused(found, wanted, &now);
    rc = rc ? rc : pb_scene_manifest_compare(found, &now, out);
    pb_scene_manifest_fini(&now);
    if (rc == 0 && (wanted->set == NULL || is_of_one(found)))
        out->missing = NULL;
    return rc;
}

/* Returns true if at least one file of the products is read now and all such files have
 * unchanged content; else *look gives the reason. */
static bool has_content(const struct pb_manifest *found, const struct pb_manifest_comparison *files,
                        struct pb_place_look *look)
{
    if (files->changed != NULL)
        (void)another(look,
                      "holds the products of another input, '%.100s': its '%.160s' has other "
                      "content",
                      found->input.name, files->changed->path);
    else if (files->relation == PB_MANIFEST_UNKNOWN) {
        look->state = PB_PLACE_ALIKE;
        look->needs = files->kind;
    } else if (files->relation == PB_MANIFEST_OTHER)
        (void)another(look,
                      "holds the products of another input, '%.200s', and this input is read "
                      "without any of its files",
                      found->input.name);
    else
        return true;
    return false;
}

/* Returns true if products of an input with another checksum belong to this input, of which
 * other files are read now; else *look gives the reason. Products of another pipeline are not
 * exchanged, and may be of files that the input lacks. */
static bool is_of_same_files(const struct pb_manifest *found,
                             const struct pb_manifest_comparison *files,
                             const struct pb_place_wanted *wanted, struct pb_place_look *look)
{
    const bool is_exchanged = strcmp(found->pipeline, wanted->pipeline) == 0;
    (void)of_another(&found->input, wanted, look);
    return wanted->files != NULL && !is_of_one(&found->inputs) && look->state != PB_PLACE_ALIKE &&
           (!is_exchanged || files->missing == NULL) && has_content(found, files, look);
}

/* Returns true if the products were made by the wanted jobs from a part of the set. */
static bool is_part_of_jobs(const struct pb_manifest *found, const struct pb_place_wanted *wanted)
{
    return wanted->is_open && !is_of_one(&found->inputs) &&
           pb_scene_manifest_pixels(&found->inputs) > 0 && wanted->earlier != NULL &&
           found->job[0] != '\0' && strstr(wanted->earlier, found->job) != NULL;
}

/* Returns true if a command made the products, like the wanted ones. No job guarantees names
 * then. */
static bool is_of_commands(const struct pb_manifest *found, const struct pb_place_wanted *wanted)
{
    return wanted->is_open && !is_of_one(&found->inputs) &&
           pb_scene_manifest_pixels(&found->inputs) > 0 && wanted->earlier == NULL &&
           found->job[0] == '\0';
}

/* Returns true if products of that input may be exchanged for the wanted one's; else *look gives
 * the reason. */
static bool may_replace(const struct pb_manifest *found, const struct pb_place_wanted *wanted,
                        struct pb_place_look *look)
{
    const bool by_rule = wanted->existing == PB_EXISTING_REPLACE || is_part_of_jobs(found, wanted);
    struct pb_manifest_comparison files;
    if (pb_input_id_equal(&found->input, wanted->input))
        return true;
    if (compare_files(&found->inputs, wanted, &files) != 0) {
        (void)another(look, "holds products that cannot be compared: out of memory");
        return false;
    }
    if (!by_rule && !is_of_commands(found, wanted))
        return is_of_same_files(found, &files, wanted, look);
    if (files.missing == NULL)
        return by_rule || has_content(found, &files, look);
    (void)another(look,
                  "holds products of %zu files, and this input lacks '%.160s' of them; bring "
                  "all of them together, or remove these products",
                  pb_scene_manifest_pixels(&found->inputs), files.missing->path);
    return false;
}

/* Returns true if the products are those of this run's job, by a run that is not earlier. */
static bool is_later(const struct pb_manifest *found, const struct pb_place_wanted *wanted)
{
    return wanted->epoch > 0 && wanted->job[0] != '\0' && found->epoch >= wanted->epoch &&
           strcmp(found->job, wanted->job) == 0 && strcmp(found->pipeline, wanted->pipeline) == 0;
}

/* Examines the open directory of existing products, which messages describe by `what`. */
static int look_at_products(int fd, const char *what, const struct pb_place_wanted *wanted,
                            struct pb_place_look *look)
{
    struct pb_manifest found = {0};
    int rc = read_manifest(fd, what, look, &found);
    if (rc == 1 && is_later(&found, wanted))
        rc = -ESTALE;
    if (rc == 1 && strcmp(found.pipeline, wanted->pipeline) != 0)
        rc = another(look, "%sholds %s%.64s", what,
                     found.pipeline[0] ? "the products of pipeline " : "directories of products",
                     found.pipeline);
    if (rc == 1)
        rc = may_replace(&found, wanted, look);
    if (rc == 1)
        rc = holds_only(fd, what, &found, look);
    if (rc == 1 && !is_unchanged(fd, what, &found, look))
        rc = 0;
    if (rc == 1 && fstat(fd, &look->products) != 0)
        rc = -errno;
    if (rc == 1 && lies_in(wanted->input_path, &look->products))
        rc = another(look, "%sholds the input itself", what);
    if (rc == 1)
        look->state = PB_PLACE_HOLDS;
    pb_manifest_fini(&found);
    return rc < 0 ? rc : 0;
}

/* Examines the inner name in the scene directory. */
static int look_inside(int scene_fd, const struct pb_place_wanted *wanted,
                       struct pb_place_look *look)
{
    char what[80];
    int fd = -1;
    look->state = PB_PLACE_OURS;
    (void)snprintf(what, sizeof what, "is this input's, but '%.48s' in it ", wanted->inner);
    int rc = open_directory(scene_fd, wanted->inner, what, look, &fd);
    if (rc <= 0)
        return rc;
    rc = look_at_products(fd, what, wanted, look);
    (void)close(fd);
    return rc;
}

/* Returns -ESTALE if the inner directory of another input's scene directory has products of a later
 * run of the job, else 0: files may have joined the input between both runs. */
static int look_for_later(int scene_fd, const struct pb_place_wanted *wanted)
{
    struct pb_manifest found = {0};
    int fd = wanted->epoch > 0 ? openat(scene_fd, wanted->inner, DIRECTORY_FLAGS) : -1;
    const bool later = fd >= 0 && pb_manifest_read(fd, &found) == 0 && is_later(&found, wanted);
    pb_manifest_fini(&found);
    if (fd >= 0)
        (void)close(fd);
    return later ? -ESTALE : 0;
}

/* Returns true if the entry of a scene directory contains products, of any pipeline, of this
 * input; else *look describes the content. */
static bool is_own_entry(int scene_fd, const char *name, const struct pb_place_wanted *wanted,
                         struct pb_place_look *look)
{
    struct pb_manifest found = {0};
    struct pb_manifest_comparison files;
    int fd = name[0] == '.' ? -1 : openat(scene_fd, name, DIRECTORY_FLAGS);
    bool own = fd >= 0 && pb_manifest_read(fd, &found) == 0 && found.pipeline[0] != '\0' &&
               (pb_input_id_equal(&found.input, wanted->input) ||
                (compare_files(&found.inputs, wanted, &files) == 0 &&
                 is_of_same_files(&found, &files, wanted, look)));
    pb_manifest_fini(&found);
    if (fd >= 0)
        (void)close(fd);
    return own;
}

/* Returns true if a scene directory whose manifest names another input contains products of this
 * one. *out: ALIKE if a checksum decides, else the file that differs. */
static bool holds_own(int scene_fd, const struct pb_place_wanted *wanted, struct pb_place_look *out)
{
    const struct dirent *e;
    DIR *dir = wanted->files != NULL ? pb_path_entries(scene_fd) : NULL;
    bool own = false;
    while (!own && dir != NULL && (e = readdir(dir)) != NULL) {
        struct pb_place_look look = {.state = PB_PLACE_FREE, .scene_fd = -1};
        own = is_own_entry(scene_fd, e->d_name, wanted, &look);
        if (!own && look.state != PB_PLACE_FREE && out->state != PB_PLACE_ALIKE)
            *out = look;
    }
    if (dir != NULL)
        (void)closedir(dir);
    return own;
}

/* Returns true if the scene directory of that input may become the wanted one's; else *out gives
 * the reason. A directory of several files is identified by the products in it. */
static bool may_take(int fd, const struct pb_manifest *marker, const struct pb_place_wanted *wanted,
                     struct pb_place_look *out)
{
    struct pb_place_look before = *out;
    if (may_replace(marker, wanted, out))
        return true;
    if (out->state == PB_PLACE_ALIKE)
        return false;
    if (holds_own(fd, wanted, out)) {
        *out = before;
        return true;
    }
    struct pb_place_look inside = before;
    if (!wanted->is_open || out->state == PB_PLACE_ALIKE || look_inside(fd, wanted, &inside) < 0 ||
        inside.state == PB_PLACE_OURS)
        return false;
    *out = inside.state == PB_PLACE_HOLDS ? before : inside;
    return inside.state == PB_PLACE_HOLDS;
}

/* Examines the scene directory, whose manifest names its input. */
static int look_at_scene(int fd, const struct pb_place_wanted *wanted, struct pb_place_look *out)
{
    struct pb_manifest marker = {0};
    int rc = read_manifest(fd, "", out, &marker);
    if (rc == 1 && marker.pipeline[0] != '\0')
        rc = another(out, "is a directory of products itself");
    if (rc == 1 && !may_take(fd, &marker, wanted, out))
        rc = look_for_later(fd, wanted);
    out->same_input = rc == 1;
    out->takes_over = rc == 1 && !pb_input_id_equal(&marker.input, wanted->input);
    if (rc == 1)
        rc = look_inside(fd, wanted, out);
    pb_manifest_fini(&marker);
    return rc < 0 ? rc : 0;
}

/* Returns true for an input that is a folder at the place of its products' directory. */
static bool is_input(int fd, const char *input_path)
{
    struct stat there, input;
    return input_path != NULL && fstat(fd, &there) == 0 && stat(input_path, &input) == 0 &&
           is_same(&there, &input);
}

int pb_place_look(int base_fd, const char *place, const struct pb_place_wanted *wanted,
                  struct pb_place_look *out)
{
    int fd = -1;
    *out = (struct pb_place_look){.state = PB_PLACE_FREE, .scene_fd = -1};
    int rc = base_fd < 0 ? 0 : open_directory(base_fd, place, "", out, &fd);
    if (rc <= 0)
        return rc;
    if (is_input(fd, wanted->input_path)) {
        rc = another(out, "is the input itself");
    } else if (wanted->inner[0] != '\0') {
        rc = look_at_scene(fd, wanted, out);
    } else {
        rc = look_at_products(fd, "", wanted, out);
        out->same_input = out->state == PB_PLACE_HOLDS;
    }
    if (rc == 0 && (out->state == PB_PLACE_OURS || out->state == PB_PLACE_HOLDS))
        out->scene_fd = wanted->inner[0] != '\0' ? fd : openat(base_fd, ".", DIRECTORY_FLAGS);
    if (out->scene_fd != fd)
        (void)close(fd);
    return rc;
}

/* Examines a place and closes its directory. */
static int only_look(int base_fd, const char *place, const struct pb_place_wanted *wanted,
                     struct pb_place_look *out)
{
    int rc = pb_place_look(base_fd, place, wanted, out);
    if (rc == 0 && out->scene_fd >= 0)
        (void)close(out->scene_fd);
    out->scene_fd = -1;
    return rc;
}

/* Finds the version that belongs, or may belong, to this input: 1, its name and its state; 0 =
 * not found; -ESTALE as pb_place_look. */
static int find_own(int base_fd, const struct pb_place_wanted *wanted, char out_place[256],
                    struct pb_place_look *out)
{
    const struct dirent *e;
    int found = 0;
    DIR *dir = pb_path_entries(base_fd);
    if (dir == NULL)
        return -errno;
    while (found == 0 && (e = readdir(dir)) != NULL) {
        if (!pb_file_name_is_place(e->d_name, wanted->scene))
            continue;
        const int rc = only_look(base_fd, e->d_name, wanted, out);
        found = rc == -ESTALE ? rc : 0;
        if (rc < 0)
            continue;
        found = out->state == PB_PLACE_OURS || out->state == PB_PLACE_HOLDS ||
                out->state == PB_PLACE_ALIKE;
        if (found)
            (void)snprintf(out_place, 256, "%s", e->d_name);
    }
    (void)closedir(dir);
    return found;
}

static int cannot_look(int rc, const struct pb_place_wanted *wanted, const char *place,
                       struct pb_err *err)
{
    if (rc == -ESTALE)
        return pb_fail(err, PB_E_OUTPUT_WRITE,
                       "cannot publish '%s': %s/%s has the products of a later run of the job",
                       wanted->scene, wanted->shown, place);
    return pb_io_fail(err, -rc, "cannot look at", place);
}

static int chosen(const struct pb_place_look *look, enum pb_checksum *out_needs)
{
    *out_needs = look->needs;
    return look->state == PB_PLACE_ALIKE;
}

int pb_place_choose(int base_fd, const struct pb_place_wanted *wanted, struct pb_err *err,
                    char out_place[256], enum pb_checksum *out_needs)
{
    struct pb_place_look look;
    pb_file_name_place(wanted->scene, 1, out_place);
    int rc = only_look(base_fd, out_place, wanted, &look);
    if (rc < 0)
        return cannot_look(rc, wanted, out_place, err);
    if (look.state != PB_PLACE_ANOTHER)
        return chosen(&look, out_needs);
    const bool versions = wanted->existing == PB_EXISTING_VERSION;
    struct pb_place_look first = look;
    if (versions || wanted->existing == PB_EXISTING_OWN)
        rc = find_own(base_fd, wanted, out_place, &look);
    if (rc == -ESTALE)
        return cannot_look(rc, wanted, wanted->scene, err);
    if (rc == 0 && !versions)
        return pb_fail(err, PB_E_OUTPUT_EXISTS, "%s/%s %s", wanted->shown, wanted->scene,
                       first.why);
    for (unsigned n = 2; rc == 0 && n < VERSIONS_MAX; n++) {
        pb_file_name_place(wanted->scene, n, out_place);
        rc = only_look(base_fd, out_place, wanted, &look);
        if (rc == 0 && look.state != PB_PLACE_ANOTHER)
            return chosen(&look, out_needs);
    }
    if (rc == 1)
        return chosen(&look, out_needs);
    return pb_io_fail(err, rc < 0 ? -rc : EEXIST, "cannot find a free place for", wanted->scene);
}
