/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/file_out.h"

#include "pipeline/product.h"
#include "pipeline/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct pb_file_out {
    int fd;
    int error; /* first errno, 0 = none */
    uint64_t bytes;
    struct pb_sha256 *sum;
    char *path;
};

int pb_file_out_create(const char *directory, const char *file, struct pb_err *err,
                       struct pb_file_out **out_file)
{
    struct pb_file_out *out = calloc(1, sizeof *out);
    if (out == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to write %s", file);
    out->fd = -1;
    out->sum = pb_sha256_create();
    if (asprintf(&out->path, "%s/%s", directory, file) < 0)
        out->path = NULL;
    if (out->sum == NULL || out->path == NULL) {
        pb_file_out_destroy(out);
        return pb_fail(err, PB_E_MEMORY, "no memory to write %s", file);
    }
    out->fd = open(out->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (out->fd < 0) {
        int rc = pb_product_io_fail(err, errno, "cannot create", out->path);
        pb_file_out_destroy(out);
        return rc;
    }
    *out_file = out;
    return 0;
}

void pb_file_out_write(struct pb_file_out *out, const void *data, size_t bytes)
{
    const char *at = data;
    if (out->error != 0)
        return;
    pb_sha256_add(out->sum, data, bytes);
    out->bytes += bytes;
    while (bytes > 0) {
        ssize_t n = write(out->fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            out->error = n < 0 ? errno : EIO;
            return;
        }
        at += n;
        bytes -= (size_t)n;
    }
}

int pb_file_out_close(struct pb_file_out *out, struct pb_err *err, uint64_t *out_bytes,
                      char out_sha256[65])
{
    char sha256[65];
    if (out->error == 0 && fsync(out->fd) != 0)
        out->error = errno;
    if (close(out->fd) != 0 && out->error == 0)
        out->error = errno;
    out->fd = -1;
    if (out->error != 0)
        return pb_product_io_fail(err, out->error, "cannot write", out->path);
    if (pb_sha256_hex(out->sum, sha256) != 0)
        return pb_fail(err, PB_E_MEMORY, "no memory for the checksum of %s", out->path);
    for (int i = 0; i < 65; i++)
        out_sha256[i] = sha256[i];
    *out_bytes = out->bytes;
    return 0;
}

void pb_file_out_destroy(struct pb_file_out *out)
{
    if (out == NULL)
        return;
    if (out->fd >= 0)
        (void)close(out->fd);
    pb_sha256_destroy(out->sum);
    free(out->path);
    free(out);
}

int pb_file_out_text(const char *directory, const char *file, const char *text, size_t bytes,
                     struct pb_err *err, uint64_t *out_bytes, char out_sha256[65])
{
    struct pb_file_out *out = NULL;
    int rc = pb_file_out_create(directory, file, err, &out);
    if (rc < 0)
        return rc;
    pb_file_out_write(out, text, bytes);
    rc = pb_file_out_close(out, err, out_bytes, out_sha256);
    pb_file_out_destroy(out);
    return rc;
}
