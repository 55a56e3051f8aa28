/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/raster_file.h"

#include "config/base/clock.h"
#include "config/input_values.h"
#include "pipeline/io/file_identity.h"
#include "pipeline/io/io_watch.h"
#include "pipeline/lines/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int pb_raster_file_fail(struct pb_err *err, int error, const char *path, const char *what)
{
    enum pb_code code = PB_E_INPUT_IO;
    if (error == EMFILE || error == ENFILE)
        code = PB_E_SYSTEM_FILES;
    else if (error == ENOMEM)
        code = PB_E_MEMORY;
    return pb_fail_at(err, code, path, 0, 0, "%s: %s", what, strerror(error));
}

/* Returns true for errors of a path, as opposed to errors of the machine. */
static bool is_path_error(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM ||
           error == ELOOP || error == ENAMETOOLONG || error == ENXIO || error == EINVAL;
}

struct handed {
    char path[4096];
    int fd; /* negative errno: it could not be opened */
    bool is_part;
    uint64_t base, bytes; /* base and bytes of a part */
    int64_t mtime_ns;
};
/* The scene's file, then the files of sources. */
static struct handed handed[PB_FILES_MAX];

static void hand(struct handed *place, const char *path, int fd)
{
    (void)snprintf(place->path, sizeof place->path, "%s",
                   strlen(path) < sizeof place->path ? path : "");
    place->fd = fd;
    place->is_part = false;
}

void pb_raster_file_hand(const char *path, int fd)
{
    hand(&handed[0], fd >= 0 ? path : "", fd);
}

void pb_raster_file_hand_source(size_t number, const char *path, int fd)
{
    if (number + 1 < PB_FILES_MAX)
        hand(&handed[number + 1], path, fd);
}

void pb_raster_file_hand_open(size_t number, const struct pb_raster_file *file)
{
    if (number >= PB_FILES_MAX)
        return;
    hand(&handed[number], file != NULL ? file->path : "", file != NULL ? file->fd : -EBADF);
    handed[number].is_part = file != NULL;
    handed[number].base = file != NULL ? file->base : 0;
    handed[number].bytes = file != NULL ? file->bytes : 0;
    handed[number].mtime_ns = file != NULL ? file->mtime_ns : 0;
}

static const struct pb_raster_file *sidecars;
static size_t n_sidecars;

void pb_raster_file_hand_sidecars(const struct pb_raster_file *file, size_t n)
{
    sidecars = file;
    n_sidecars = n;
}

const struct pb_raster_file *pb_raster_file_sidecar(size_t i)
{
    return i < n_sidecars ? &sidecars[i] : NULL;
}

static const struct handed *find_handed(const char *path)
{
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        if (handed[i].path[0] != '\0' && strcmp(handed[i].path, path) == 0)
            return &handed[i];
    return NULL;
}

/* Duplicates the descriptor; returns -1 and sets errno like open(). */
static int open_handed(const struct handed *place)
{
    if (place->fd < 0)
        errno = -place->fd;
    return place->fd < 0 ? -1 : fcntl(place->fd, F_DUPFD_CLOEXEC, 3);
}

/* Opens the segment that the file is, unless it is closed. */
static int open_segment(struct pb_raster_file *file, struct pb_err *err)
{
    int rc = file->base == 0 ? pb_segment_is_growing(file->fd) : 0;
    if (rc < 0)
        return pb_raster_file_fail(err, -rc, file->path, "cannot read the file");
    if (rc == 0)
        return 0;
    rc = pb_segment_open(file->fd, file->path, err, &file->segment);
    if (rc < 0)
        return rc;
    pb_segment_head(file->segment, file->head);
    file->head_bytes = PB_SEGMENT_HEAD_BYTES;
    file->bytes = pb_segment_bytes(file->segment);
    return 0;
}

int pb_raster_file_open(struct pb_raster_file *file, const char *path, struct pb_err *err)
{
    *file = (struct pb_raster_file){.fd = -1};
    file->path = strdup(path);
    if (file->path == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to open %s", path);
    const struct handed *place = find_handed(path);
    file->handed = place != NULL;
    file->fd = place != NULL ? open_handed(place)
                             : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file->fd < 0 && is_path_error(errno))
        return pb_fail_at(err, PB_E_INPUT_MISSING, path, 0, 0, "cannot open the file: %s",
                          strerror(errno));
    if (file->fd < 0)
        return pb_raster_file_fail(err, errno, path, "cannot open the file");
    if (fstat(file->fd, &file->stat) < 0)
        return pb_raster_file_fail(err, errno, path, "cannot stat the file");
    if (!S_ISREG(file->stat.st_mode))
        return pb_fail_at(err, PB_E_INPUT_NOT_TIFF, path, 0, 0, "not a regular file");
    bool is_part = place != NULL && place->is_part;
    file->base = is_part ? place->base : 0;
    file->bytes = is_part ? place->bytes : (uint64_t)file->stat.st_size;
    file->mtime_ns = is_part ? place->mtime_ns : pb_raster_file_mtime_ns(&file->stat);
    /* A handed descriptor was checked by the process that passed it. */
    if (!file->handed && !pb_file_identity_is_expected(&file->stat))
        return pb_fail_at(err, PB_E_INPUT_CHANGED, path, 0, 0,
                          "it is not the file that was submitted: replaced or written to since; "
                          "submit it again");
    return open_segment(file, err);
}

int pb_raster_file_again(struct pb_raster_file *file, const struct pb_raster_file *first,
                         struct pb_err *err)
{
    *file = (struct pb_raster_file){.fd = fcntl(first->fd, F_DUPFD_CLOEXEC, 3),
                                    .path = strdup(first->path),
                                    .base = first->base,
                                    .bytes = first->bytes,
                                    .head_bytes = first->head_bytes,
                                    .segment = first->segment,
                                    .segment_is_borrowed = true,
                                    .mtime_ns = first->mtime_ns,
                                    .stat = first->stat,
                                    .handed = first->handed};
    memcpy(file->head, first->head, sizeof file->head);
    if (file->path == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to open %s", first->path);
    return file->fd >= 0 ? 0 : pb_raster_file_fail(err, errno, first->path, "cannot open the file");
}

void pb_raster_file_close(struct pb_raster_file *file)
{
    if (file->fd >= 0)
        (void)close(file->fd);
    if (!file->segment_is_borrowed)
        pb_segment_destroy(file->segment);
    free(file->path);
    *file = (struct pb_raster_file){.fd = -1};
}

int64_t pb_raster_file_mtime_ns(const struct stat *stat)
{
    return pb_clock_ns(&stat->st_mtim);
}

struct pb_file_part pb_raster_file_part(const struct pb_raster_file *file)
{
    return (struct pb_file_part){.fd = file->fd,
                                 .base = file->base,
                                 .bytes = file->bytes,
                                 .head = file->head,
                                 .head_bytes = file->head_bytes,
                                 .is_growing = file->segment != NULL};
}

ssize_t pb_raster_file_read(struct pb_raster_file *file, uint64_t at, void *out, size_t bytes)
{
    struct pb_file_part part = pb_raster_file_part(file);
    size_t done = 0;
    ssize_t n = pb_file_part_read(&part, at, out, bytes, &done);
    if (n < 0 && file->error == 0) {
        file->error = (int)-n;
        file->error_at = at + done;
    }
    return n;
}

int pb_raster_file_check(const struct pb_raster_file *file, struct pb_err *err)
{
    char what[64];
    if (file->error == 0)
        return 0;
    (void)snprintf(what, sizeof what, "cannot read it at byte %llu",
                   (unsigned long long)file->error_at);
    return pb_raster_file_fail(err, file->error, file->path, what);
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

int pb_raster_file_unchanged(const struct pb_raster_file *file, struct pb_err *err)
{
    const struct stat *was = &file->stat;
    struct stat is;
    /* A handed file that is replaced or removed loses a link, which changes its ctime. */
    int error = (file->handed ? fstat(file->fd, &is) : stat(file->path, &is)) < 0 ? errno : 0;
    if (error != 0 && !is_path_error(error))
        return pb_raster_file_fail(err, error, file->path, "cannot stat the file");
    if (error != 0)
        return pb_fail_at(err, PB_E_INPUT_CHANGED, file->path, 0, 0,
                          "the file is no longer there: %s", strerror(error));
    if (is.st_dev != was->st_dev || is.st_ino != was->st_ino)
        return pb_fail_at(err, PB_E_INPUT_CHANGED, file->path, 0, 0,
                          "the file was replaced by another one while it was read");
    if (file->segment != NULL)
        return 0;
    if (is.st_size != was->st_size || !same_time(is.st_mtim, was->st_mtim))
        return pb_fail_at(err, PB_E_INPUT_CHANGED, file->path, 0, 0,
                          "the file was written to while it was read (%lld bytes, then %lld)",
                          (long long)was->st_size, (long long)is.st_size);
    if (!same_time(is.st_ctim, was->st_ctim))
        return pb_fail_at(err, PB_E_INPUT_CHANGED, file->path, 0, 0,
                          "the file's inode was changed while it was read (ctime): written to "
                          "with its mtime restored, renamed, linked or given other permissions");
    return 0;
}
