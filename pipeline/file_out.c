/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/file_out.h"
#include "pipeline/product.h"
#include "pipeline/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pb_file_out {
    const char *path;
    int fd;       /* -1 once closed */
    bool regular; /* only such a file is removed after a failure: never a device */
    struct pb_sha256 *sum;
    char *buffer;
    size_t held;
    uint64_t flushed;
};

int pb_file_out_create(const char *path, uint64_t expected_bytes, struct pb_err *err,
                       struct pb_file_out **out_file)
{
    struct pb_file_out *file = calloc(1, sizeof *file);
    if (file == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to write '%s'", path);
    file->path = path;
    file->fd = -1;
    file->sum = pb_sha256_create();
    file->buffer = malloc(PB_FILE_OUT_BYTES);
    int rc = 0;
    if (file->sum == NULL || file->buffer == NULL) {
        rc = pb_fail(err, PB_E_MEMORY, "no memory to write '%s'", path);
        goto out;
    }
    file->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file->fd < 0) {
        rc = pb_product_io_fail(err, errno, "cannot create", path);
        goto out;
    }
    struct stat status;
    file->regular = fstat(file->fd, &status) == 0 && S_ISREG(status.st_mode);
    /* Not posix_fallocate: where there is no such thing it would write zeros instead. */
    if (expected_bytes > 0 && fallocate(file->fd, 0, 0, (off_t)expected_bytes) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
        rc = pb_product_io_fail(err, errno, "cannot reserve the space of", path);
        goto out;
    }
    *out_file = file;
    return 0;
out:
    pb_file_out_destroy(file);
    return rc;
}

static int flush(struct pb_file_out *file, struct pb_err *err)
{
    pb_sha256_add(file->sum, file->buffer, file->held);
    for (size_t done = 0; done < file->held;) {
        ssize_t n = write(file->fd, file->buffer + done, file->held - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return pb_product_io_fail(err, n == 0 ? ENOSPC : errno, "cannot write", file->path);
    }
    file->flushed += file->held;
    file->held = 0;
    return 0;
}

int pb_file_out_room(struct pb_file_out *file, struct pb_err *err, void **out_room,
                     size_t *out_bytes)
{
    if (file->held == PB_FILE_OUT_BYTES) {
        int rc = flush(file, err);
        if (rc != 0)
            return rc;
    }
    *out_room = file->buffer + file->held;
    *out_bytes = PB_FILE_OUT_BYTES - file->held;
    return 0;
}

void pb_file_out_commit(struct pb_file_out *file, size_t bytes)
{
    file->held += bytes;
}

int pb_file_out_add(struct pb_file_out *file, const void *data, size_t bytes, struct pb_err *err)
{
    const char *from = data;
    while (bytes > 0) {
        void *room;
        size_t n;
        int rc = pb_file_out_room(file, err, &room, &n);
        if (rc != 0)
            return rc;
        n = bytes < n ? bytes : n;
        memcpy(room, from, n);
        pb_file_out_commit(file, n);
        from += n;
        bytes -= n;
    }
    return 0;
}

uint64_t pb_file_out_at(const struct pb_file_out *file)
{
    return file->flushed + file->held;
}

static void discard(const struct pb_file_out *file)
{
    if (file->regular)
        (void)unlink(file->path);
}

int pb_file_out_finish(struct pb_file_out *file, struct pb_err *err, char out_sha256[65])
{
    int rc = flush(file, err);
    if (rc != 0)
        return rc;
    if (pb_sha256_hex(file->sum, out_sha256) != 0)
        return pb_fail(err, PB_E_MEMORY, "no memory for the checksum of '%s'", file->path);
    if (fsync(file->fd) != 0 && errno != EINVAL && errno != EROFS)
        return pb_product_io_fail(err, errno, "cannot sync", file->path);
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0) {
        rc = pb_product_io_fail(err, errno, "cannot close", file->path);
        discard(file);
        return rc;
    }
    return 0;
}

void pb_file_out_destroy(struct pb_file_out *file)
{
    if (file == NULL)
        return;
    if (file->fd >= 0) {
        close(file->fd);
        discard(file);
    }
    pb_sha256_destroy(file->sum);
    free(file->buffer);
    free(file);
}
