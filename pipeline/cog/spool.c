/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* An atomic addition reserves the extent, pwrite fills it. */
#include "pipeline/cog/spool.h"
#include "pipeline/io/io_watch.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/nameless.h"
#include "pipeline/profile/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct pb_spool {
    pthread_mutex_t making; /* held while the file is made */
    _Atomic int fd;         /* -1 = not created yet */
    const char *directory;
    _Atomic uint64_t end;
};
_Static_assert(sizeof(struct pb_spool) <= PB_SPOOL_BYTES, "the plan counts it");

int pb_spool_create(const char *directory, struct pb_err *err, struct pb_spool **out_spool)
{
    struct pb_spool *spool = calloc(1, sizeof *spool);
    if (spool == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a spool file");
    pthread_mutex_init(&spool->making, NULL);
    spool->directory = directory;
    spool->fd = -1;
    *out_spool = spool;
    return 0;
}

static int open_file(struct pb_spool *spool, struct pb_err *err)
{
    int error = 0;
    pthread_mutex_lock(&spool->making);
    if (spool->fd < 0) {
        int fd = pb_nameless_open(spool->directory);
        spool->fd = fd < 0 ? -1 : fd;
        error = fd < 0 ? -fd : 0;
    }
    pthread_mutex_unlock(&spool->making);
    return error == 0 ? 0
                      : pb_io_fail(err, error, "cannot make a temporary file in", spool->directory);
}

int pb_spool_append(struct pb_spool *spool, const void *data, size_t bytes, struct pb_err *err,
                    uint64_t *out_offset)
{
    int rc = spool->fd < 0 ? open_file(spool, err) : 0;
    if (rc != 0)
        return rc;
    uint64_t at = atomic_fetch_add_explicit(&spool->end, bytes, memory_order_relaxed);
    const char *from = data;
    for (size_t done = 0; done < bytes;) {
        pb_io_begin();
        ssize_t n = pwrite(spool->fd, from + done, bytes - done, (off_t)(at + done));
        pb_io_end();
        if (n > 0) {
            pb_trace_add(PB_TRACE_WRITTEN, (uint64_t)n);
            done += (size_t)n;
        } else if (n == 0 || errno != EINTR)
            return pb_io_fail(err, n == 0 ? ENOSPC : errno, "cannot write a temporary file in",
                              spool->directory);
    }
    *out_offset = at;
    return 0;
}

int pb_spool_read(const struct pb_spool *spool, uint64_t offset, void *data, size_t bytes,
                  struct pb_err *err)
{
    char *to = data;
    for (size_t done = 0; done < bytes;) {
        pb_io_begin();
        ssize_t n = pread(spool->fd, to + done, bytes - done, (off_t)(offset + done));
        pb_io_end();
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return pb_io_fail(err, n == 0 ? EIO : errno, "cannot read back a temporary file in",
                              spool->directory);
    }
    return 0;
}

void pb_spool_drop(const struct pb_spool *spool, uint64_t offset, uint64_t bytes)
{
    (void)fallocate(spool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                    (off_t)bytes);
}

void pb_spool_destroy(struct pb_spool *spool)
{
    if (spool == NULL)
        return;
    if (spool->fd >= 0)
        close(spool->fd);
    pthread_mutex_destroy(&spool->making);
    free(spool);
}
