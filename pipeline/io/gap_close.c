/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Data are moved from front to back; therefore no byte is overwritten before it was copied, and
 * blocks after both positions are released to the disk meanwhile: the file never takes twice its
 * space. */
#include "pipeline/io/gap_close.h"
#include "pipeline/io/io_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FREE_EACH_BYTES (UINT64_C(16) << 20)
#define COPY_MAX_BYTES  (UINT64_C(16) << 20) /* between two checks of the stop flag */

uint64_t pb_gap_before(const struct pb_gap *gaps, size_t n, uint64_t at)
{
    uint64_t before = at;
    for (size_t i = 0; i < n && gaps[i].at <= at; i++)
        before += gaps[i].bytes;
    return before;
}

/* Returns true for errors that a file system reports before it has changed anything. */
static bool is_refusal(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL || error == ENODEV ||
           error == ETXTBSY || error == EPERM;
}

/* Removes gaps from the last one on. *n: count of remaining ones. Returns 0 or an errno. */
static int collapse(const struct pb_gap_close *c, size_t *n)
{
    for (; *n > 0; --*n) {
        const struct pb_gap *gap = &c->gaps[*n - 1];
        uint64_t from = pb_gap_before(c->gaps, *n, gap->at) - gap->bytes;
        if (gap->bytes == 0)
            continue;
        pb_io_begin();
        int rc = fallocate(c->fd, FALLOC_FL_COLLAPSE_RANGE, (off_t)from, (off_t)gap->bytes);
        pb_io_end();
        if (rc != 0)
            return errno;
    }
    return 0;
}

static int copy_part(const struct pb_gap_close *c, uint64_t from, uint64_t to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        pb_io_begin();
        ssize_t n = pread(c->fd, c->buffer + done, bytes - done, (off_t)(from + done));
        pb_io_end();
        if (n == 0 || (n < 0 && errno != EINTR))
            return n == 0 ? EIO : errno;
        done += n > 0 ? (size_t)n : 0;
    }
    for (size_t done = 0; done < bytes;) {
        pb_io_begin();
        ssize_t n = pwrite(c->fd, c->buffer + done, bytes - done, (off_t)(to + done));
        pb_io_end();
        if (n == 0 || (n < 0 && errno != EINTR))
            return n == 0 ? ENOSPC : errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Uses block sharing or server-side copies of the file system (btrfs, NFS). Returns 0 if not
 * supported. */
static uint64_t share(const struct pb_gap_close *c, uint64_t from, uint64_t to, uint64_t bytes)
{
    off_t in = (off_t)from, out = (off_t)to;
    uint64_t most = from - to < COPY_MAX_BYTES ? from - to : COPY_MAX_BYTES; /* no overlap */
    pb_io_begin();
    ssize_t n = copy_file_range(c->fd, &in, c->fd, &out, bytes < most ? bytes : most, 0);
    pb_io_end();
    return n > 0 ? (uint64_t)n : 0;
}

/* Releases the source range of moved data that will not be written again. */
static void give_back(const struct pb_gap_close *c, uint64_t *freed, uint64_t to, uint64_t from)
{
    *freed = *freed > to ? *freed : to;
    if (from < *freed + FREE_EACH_BYTES)
        return;
    (void)fallocate(c->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)*freed,
                    (off_t)(from - *freed));
    *freed = from;
}

/* Moves bytes [at, end) of the finished file to their final offset. */
static int move_down(const struct pb_gap_close *c, size_t n, uint64_t at, uint64_t end)
{
    const uint64_t shift = pb_gap_before(c->gaps, n, at) - at;
    uint64_t freed = 0;
    bool shares = true;
    while (at < end && shift > 0) {
        uint64_t bytes = shares ? share(c, at + shift, at, end - at) : 0;
        shares = bytes > 0;
        if (bytes == 0) {
            bytes = end - at < c->buffer_bytes ? end - at : c->buffer_bytes;
            int error = copy_part(c, at + shift, at, (size_t)bytes);
            if (error != 0)
                return error;
        }
        at += bytes;
        give_back(c, &freed, at, at + shift);
        if (c->stop != NULL && atomic_load(c->stop))
            return ECANCELED;
    }
    return 0;
}

int pb_gap_close(const struct pb_gap_close *c)
{
    size_t left = c->n;
    int error = c->move ? EOPNOTSUPP : collapse(c, &left);
    if (error != 0 && !is_refusal(error))
        return error;
    for (size_t i = 0; i < left; i++) { /* later gaps were removed */
        uint64_t end = i + 1 < left ? c->gaps[i + 1].at : c->total;
        error = move_down(c, left, c->gaps[i].at, end);
        if (error != 0)
            return error;
    }
    pb_io_begin();
    int rc = ftruncate(c->fd, (off_t)c->total);
    pb_io_end();
    return rc != 0 ? errno : 0;
}
