/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/file_out.h"
#include "pipeline/product.h"
#include "pipeline/sha256.h"
#include "pipeline/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HALF_BYTES ((size_t)PB_FILE_OUT_BYTES / 2)

struct pb_file_out {
    const char *path;
    int fd;       /* -1 once closed */
    bool regular; /* only such a file is removed after a failure: never a device */
    struct pb_file_progress *progress;
    struct pb_sha256 *sum;
    char *buffer; /* two halves: one is filled and hashed while the other is written */
    unsigned half;
    size_t held; /* in the half being filled */
    uint64_t flushed;

    bool threaded; /* the second thread runs: only files longer than a half need it */
    pthread_t thread;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    const char *pending; /* NULL = the writing side is idle */
    size_t pending_bytes;
    int error; /* first errno of the writing side */
    bool stop;
};

static int write_all(int fd, const char *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(fd, from + done, bytes - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return n == 0 ? ENOSPC : errno;
    }
    return 0;
}

static void *write_side(void *arg)
{
    struct pb_file_out *file = arg;
    pthread_mutex_lock(&file->lock);
    for (;;) {
        while (file->pending == NULL && !file->stop)
            pthread_cond_wait(&file->changed, &file->lock);
        if (file->pending == NULL)
            break;
        const char *from = file->pending;
        size_t bytes = file->pending_bytes;
        pthread_mutex_unlock(&file->lock);
        int error = write_all(file->fd, from, bytes);
        pthread_mutex_lock(&file->lock);
        if (file->error == 0)
            file->error = error;
        file->pending = NULL;
        pthread_cond_broadcast(&file->changed);
    }
    pthread_mutex_unlock(&file->lock);
    return NULL;
}

int pb_file_out_create(const char *path, uint64_t expected_bytes, struct pb_err *err,
                       struct pb_file_out **out_file)
{
    struct pb_file_out *file = calloc(1, sizeof *file);
    if (file == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to write '%s'", path);
    file->path = path;
    file->fd = -1;
    pthread_mutex_init(&file->lock, NULL);
    pthread_cond_init(&file->changed, NULL);
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

void pb_file_out_watch(struct pb_file_out *file, struct pb_file_progress *progress)
{
    file->progress = progress;
}

/* The filled half goes into the checksum and the count; fails when nobody wants it any more. */
static int account(struct pb_file_out *file, struct pb_err *err)
{
    struct pb_file_progress *progress = file->progress;
    if (progress != NULL && atomic_load(&progress->stop))
        return pb_fail(err, PB_E_JOB_DISMISSED, "cancelled while writing '%s'", file->path);
    pb_sha256_add(file->sum, file->buffer + file->half * HALF_BYTES, file->held);
    if (progress != NULL)
        atomic_fetch_add(&progress->bytes, file->held);
    return 0;
}

/* Waits until the writing side is idle; its error, 0 = none. */
static int wait_idle(struct pb_file_out *file)
{
    pthread_mutex_lock(&file->lock);
    while (file->pending != NULL)
        pthread_cond_wait(&file->changed, &file->lock);
    int error = file->error;
    pthread_mutex_unlock(&file->lock);
    return error;
}

static void stop_writing(struct pb_file_out *file)
{
    if (!file->threaded)
        return;
    pthread_mutex_lock(&file->lock);
    file->stop = true;
    pthread_cond_broadcast(&file->changed);
    pthread_mutex_unlock(&file->lock);
    (void)pthread_join(file->thread, NULL);
    file->threaded = false;
}

/* Gives the filled half to the writing side and goes on with the other. Without a second thread
 * (none could be started) it writes here and now. */
static int hand_over(struct pb_file_out *file, struct pb_err *err)
{
    const char *from = file->buffer + file->half * HALF_BYTES;
    int rc = account(file, err);
    if (rc != 0)
        return rc;
    if (!file->threaded)
        file->threaded = pb_thread_start(&file->thread, write_side, file) == 0;
    int error = file->threaded ? wait_idle(file) : write_all(file->fd, from, file->held);
    if (error != 0)
        return pb_product_io_fail(err, error, "cannot write", file->path);
    if (file->threaded) {
        pthread_mutex_lock(&file->lock);
        file->pending = from;
        file->pending_bytes = file->held;
        pthread_cond_broadcast(&file->changed);
        pthread_mutex_unlock(&file->lock);
    }
    file->half ^= 1;
    file->flushed += file->held;
    file->held = 0;
    return 0;
}

/* The last, partly filled half; nothing is under way afterwards. */
static int flush(struct pb_file_out *file, struct pb_err *err)
{
    const char *from = file->buffer + file->half * HALF_BYTES;
    int rc = account(file, err);
    if (rc != 0)
        return rc;
    int error = wait_idle(file);
    if (error == 0)
        error = write_all(file->fd, from, file->held);
    if (error != 0)
        return pb_product_io_fail(err, error, "cannot write", file->path);
    file->flushed += file->held;
    file->held = 0;
    return 0;
}

int pb_file_out_room(struct pb_file_out *file, struct pb_err *err, void **out_room,
                     size_t *out_bytes)
{
    if (file->held == HALF_BYTES) {
        int rc = hand_over(file, err);
        if (rc != 0)
            return rc;
    }
    *out_room = file->buffer + file->half * HALF_BYTES + file->held;
    *out_bytes = HALF_BYTES - file->held;
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
    stop_writing(file);
    if (file->fd >= 0) {
        close(file->fd);
        discard(file);
    }
    pthread_cond_destroy(&file->changed);
    pthread_mutex_destroy(&file->lock);
    pb_sha256_destroy(file->sum);
    free(file->buffer);
    free(file);
}
