/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Searches the directories that match output.path. A component whose value is known is opened by
 * its name; for a component that depends on metadata (a date) every matching directory is
 * searched. */
#include "pipeline/publish/manifest.h"
#include "pipeline/io/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct walk {
    const struct pb_manifest_job *job;
    struct pb_output_pattern pattern;
    char path[PATH_MAX]; /* path of the current directory */
    struct pb_manifest found;
};

/* Returns true if the open directory is the job's. */
static int look_into(struct walk *walk, int fd)
{
    struct pb_manifest m = {0};
    int rc = pb_manifest_read(fd, &m);
    if (rc == 0 &&
        (strcmp(m.job, walk->job->id) != 0 || strcmp(m.pipeline, walk->job->pipeline) != 0))
        rc = -ENOENT;
    if (rc == 0)
        rc = pb_manifest_check(fd, &m);
    if (rc == 0) {
        walk->found = m;
        return 0;
    }
    pb_manifest_fini(&m);
    return rc == -EINVAL || rc == -ESTALE ? -ENOENT : rc;
}

static int look_below(struct walk *walk, int fd, size_t part);

static int look_at(struct walk *walk, int at, const char *name, size_t part)
{
    size_t length = strlen(walk->path);
    int fd = openat(at, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return errno == ENOTDIR || errno == ELOOP || errno == ENOENT ? -ENOENT : -errno;
    if (length + strlen(name) + 2 > sizeof walk->path) {
        (void)close(fd);
        return -ENAMETOOLONG;
    }
    (void)snprintf(walk->path + length, sizeof walk->path - length, "/%s", name);
    int rc = part + 1 == walk->pattern.n ? look_into(walk, fd) : look_below(walk, fd, part + 1);
    (void)close(fd);
    if (rc != 0)
        walk->path[length] = '\0';
    return rc;
}

/* Tries the names that match a part: a single one, or those of the directory, first the one
 * without a version. */
static int look_below(struct walk *walk, int fd, size_t part)
{
    const struct pb_output_part *wanted = &walk->pattern.part[part];
    const struct dirent *entry;
    int rc = -ENOENT;
    if (wanted->exact[0] != '\0')
        rc = look_at(walk, fd, wanted->exact, part);
    if (rc != -ENOENT || (wanted->exact[0] != '\0' && part != walk->pattern.scene))
        return rc;
    DIR *dir = pb_path_entries(fd);
    if (dir == NULL)
        return -errno;
    while (rc == -ENOENT && (errno = 0, entry = readdir(dir)) != NULL)
        if (pb_output_part_fits(&walk->pattern, part, entry->d_name))
            rc = look_at(walk, dirfd(dir), entry->d_name, part);
    if (rc == -ENOENT && errno != 0 && entry == NULL)
        rc = -errno;
    (void)closedir(dir);
    return rc;
}

int pb_manifest_find(const char *products, const struct pb_manifest_job *job, char *out_directory,
                     struct pb_manifest *out_manifest)
{
    const struct pb_output_facts facts = {.scene = job->scene, .pipeline = job->pipeline};
    char why[200];
    if (job->id[0] == '\0' || job->scene[0] == '\0' || job->scene[0] == '.' ||
        strchr(job->scene, '/') != NULL || !pb_output_path_check(job->path, why))
        return -ENOENT;
    struct walk *walk = calloc(1, sizeof *walk);
    if (walk == NULL)
        return -ENOMEM;
    walk->job = job;
    pb_output_path_pattern(job->path, &facts, &walk->pattern);
    (void)snprintf(walk->path, sizeof walk->path, "%s", products);
    int fd = open(products, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? -errno : look_below(walk, fd, 0);
    if (fd >= 0)
        (void)close(fd);
    if (rc == 0 && realpath(walk->path, out_directory) == NULL)
        rc = -errno;
    if (rc == 0 && out_manifest != NULL)
        *out_manifest = walk->found;
    else
        pb_manifest_fini(&walk->found);
    free(walk);
    return rc;
}
