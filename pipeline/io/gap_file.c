/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The checksum of a file with gaps is computed before they are closed, because most of the file
 * is in the page cache then: removing a range drops it from the cache. A separate thread hashes
 * the data being written, or parts of a buffer while others are read. */
#include "pipeline/io/gap_file.h"
#include "pipeline/io/background.h"
#include "pipeline/io/file_room.h"
#include "pipeline/io/file_made.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/io_watch.h"
#include "pipeline/io/pages.h"
#include "pipeline/profile/trace.h"
#include "pipeline/profile/work.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_BYTES        ((size_t)PB_GAP_FILE_BYTES / PB_BACKGROUND_PARTS)
#define LET_GO_BYTES      (UINT64_C(4) << 20)
#define PROBE_BYTES       (UINT64_C(1) << 20)
#define WRITE_EACH_BYTES  (UINT64_C(8) << 20)
#define WRITERS           2 /* one writes, and one waits for the lock that a file has */
#define HASH_BESIDE_BYTES ((size_t)1 << 20) /* shorter parts do not justify a thread */

struct pb_gap_file {
    struct pb_file_made made;
    bool move;
    struct pb_file_progress *progress;
    _Atomic uint64_t written;
    sem_t writers;      /* WRITERS less those that write: more would spin for the file's lock */
    bool collapses;     /* the file system removes a gap, and drops the cached pages after it */
    char *buffer;       /* parts that are read back, or for moving; allocated with the sum */
    struct pb_sum *sum; /* NULL: parts are written in any order */
    enum pb_checksum checksum;
    struct pb_background hash;             /* hash of a long part while it is written */
    struct iovec hashed[PB_GAP_PARTS_MAX]; /* the part */
    int n_hashed;
};

static int hash_parts(void *user, const struct pb_background_part *part)
{
    const struct pb_gap_file *file = user;
    pb_work_begin(PB_WORK_CHECKSUM, 0);
    if (part->data != NULL)
        pb_sum_add(file->sum, part->data, part->bytes);
    for (int i = 0; i < file->n_hashed && part->data == NULL; i++)
        pb_sum_add(file->sum, file->hashed[i].iov_base, file->hashed[i].iov_len);
    pb_work_end();
    return 0;
}

int pb_gap_file_create(const char *path, uint64_t expected_bytes, struct pb_err *err,
                       struct pb_gap_file **out_file)
{
    struct pb_gap_file *file = calloc(1, sizeof *file);
    if (file == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to write '%s'", path);
    pb_background_init(&file->hash, hash_parts, file);
    (void)sem_init(&file->writers, 0, WRITERS);
    int rc = pb_file_made_open(&file->made, path, err);
    if (rc == 0 && file->made.regular)
        rc = pb_file_room(file->made.fd, path, expected_bytes, err);
    if (rc != 0) {
        pb_gap_file_destroy(file);
        return rc;
    }
    *out_file = file;
    return 0;
}

void pb_gap_file_watch(struct pb_gap_file *file, struct pb_file_progress *progress)
{
    file->progress = progress;
}

/* Returns false for a file system without holes (FAT, exFAT, some servers), which allocates
 * ranges that were never written, and fills them with zeros. */
static bool has_holes(int fd, uint64_t bytes)
{
    struct stat st;
    return ftruncate(fd, (off_t)bytes) == 0 && fstat(fd, &st) == 0 &&
           (uint64_t)st.st_blocks * 512 < bytes;
}

bool pb_gap_file_may_reach(struct pb_gap_file *file, uint64_t end)
{
    struct rlimit most;
    const int fd = file->made.fd;
    if (!file->made.regular || end > INT64_MAX ||
        (getrlimit(RLIMIT_FSIZE, &most) == 0 && end > most.rlim_cur)) /* infinity is the largest */
        return false;
    pb_io_begin();
    bool may =
        has_holes(fd, end < PROBE_BYTES ? end : PROBE_BYTES) && ftruncate(fd, (off_t)end) == 0;
    file->collapses = may && !file->move && end > 2 * PB_GAP_ALIGN &&
                      fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, (off_t)PB_GAP_ALIGN) == 0;
    bool empty = ftruncate(fd, 0) == 0;
    pb_io_end();
    return may && empty;
}

void pb_gap_file_move(struct pb_gap_file *file)
{
    file->move = true;
}

/* Counts bytes, and hints every few megabytes, at any offsets: the disk starts to write dirty
 * pages. Errors are reported by fsync. */
static int count(struct pb_gap_file *file, uint64_t bytes, struct pb_err *err)
{
    uint64_t before = atomic_fetch_add_explicit(&file->written, bytes, memory_order_relaxed);
    int rc = pb_file_progress_add(file->progress, bytes, err);
    if (rc != 0 || before / WRITE_EACH_BYTES == (before + bytes) / WRITE_EACH_BYTES)
        return rc;
    pb_io_begin();
    (void)sync_file_range(file->made.fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    pb_io_end();
    return 0;
}

int pb_gap_file_sum(struct pb_gap_file *file, enum pb_checksum checksum, struct pb_err *err)
{
    file->checksum = checksum;
    file->sum = pb_sum_create(checksum);
    file->buffer = pb_pages_alloc(PB_GAP_FILE_BYTES);
    return file->sum != NULL && file->buffer != NULL
               ? 0
               : pb_fail(err, PB_E_MEMORY, "no memory for the checksum of '%s'", file->made.path);
}

static int stopped(const struct pb_gap_file *file, struct pb_err *err)
{
    return pb_fail(err, PB_E_JOB_DISMISSED, "cancelled while writing '%s'", file->made.path);
}

static bool is_stopped(const struct pb_gap_file *file)
{
    return file->progress != NULL && atomic_load(&file->progress->stop);
}

static size_t bytes_of(const struct iovec *parts, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += parts[i].iov_len;
    return bytes;
}

/* Runs until pb_background_wait. */
static void begin_hash(struct pb_gap_file *file, const struct iovec *parts, int n)
{
    const struct pb_background_part part = {.data = NULL};
    file->n_hashed = n;
    memcpy(file->hashed, parts, (size_t)n * sizeof *parts); /* writing changes them */
    if (bytes_of(parts, n) >= HASH_BESIDE_BYTES && file->checksum != PB_CHECKSUM_NONE)
        pb_background_give(&file->hash, &part);
    else
        (void)hash_parts(file, &part);
}

static int cannot_write(const struct pb_gap_file *file, int error, struct pb_err *err)
{
    const uint64_t own = file->progress != NULL ? atomic_load(&file->progress->bytes) : 0;
    if (error == ENOSPC && pb_file_room_never(file->made.fd, own))
        return pb_fail(err, PB_E_OUTPUT_LIMIT,
                       "the products of the scene have more bytes than their file system: it is "
                       "full after %llu",
                       (unsigned long long)own);
    return pb_io_fail(err, error, "cannot write", file->made.path);
}

static void wait_for_turn(struct pb_gap_file *file)
{
    if (sem_trywait(&file->writers) == 0)
        return;
    pb_work_begin(PB_WORK_WAIT, 0);
    while (sem_wait(&file->writers) != 0)
        ;
    pb_work_end();
}

static ssize_t write_some(struct pb_gap_file *file, uint64_t at, const struct iovec *parts, int n)
{
    wait_for_turn(file);
    pb_io_begin();
    ssize_t done = pwritev(file->made.fd, parts, n, (off_t)at);
    const int error = errno;
    pb_io_end();
    (void)sem_post(&file->writers);
    errno = error;
    return done;
}

static int write_parts(struct pb_gap_file *file, uint64_t at, struct iovec *parts, int n,
                       struct pb_err *err)
{
    const uint64_t from = at;
    while (n > 0) {
        ssize_t done = write_some(file, at, parts, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return cannot_write(file, done == 0 ? ENOSPC : errno, err);
        pb_trace_add(PB_TRACE_WRITTEN, (uint64_t)done);
        at += (uint64_t)done;
        for (; n > 0 && (size_t)done >= parts->iov_len; n--)
            done -= (ssize_t)parts++->iov_len;
        if (n > 0) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
    return count(file, at - from, err);
}

int pb_gap_file_write(struct pb_gap_file *file, uint64_t at, struct iovec *parts, int n,
                      struct pb_err *err)
{
    assert(n <= PB_GAP_PARTS_MAX);
    if (file->sum == NULL)
        return write_parts(file, at, parts, n, err);
    if (is_stopped(file))
        return stopped(file, err);
    begin_hash(file, parts, n);
    int rc = write_parts(file, at, parts, n, err);
    (void)pb_background_wait(&file->hash);
    return rc;
}

static int read_back(const struct pb_gap_file *file, uint64_t at, char *to, size_t bytes,
                     struct pb_err *err)
{
    for (size_t done = 0; done < bytes;) {
        pb_io_begin();
        ssize_t n = pread(file->made.fd, to + done, bytes - done, (off_t)(at + done));
        pb_io_end();
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return pb_io_fail(err, n == 0 ? EIO : errno, "cannot read back", file->made.path);
    }
    return 0;
}

/* Drops pages from `at` on that will not be needed from the page cache: closing a gap drops them
 * too, but while everything else waits. */
static void let_go(const struct pb_gap_file *file, uint64_t at, uint64_t bytes)
{
    pb_work_begin(PB_WORK_SYNC, 0);
    if (file->collapses)
        (void)posix_fadvise(file->made.fd, (off_t)at, (off_t)bytes, POSIX_FADV_DONTNEED);
    pb_work_end();
}

/* Hashes part i of the data that is read back. */
static int take_part(struct pb_gap_file *file, unsigned i, uint64_t at, size_t bytes, bool beside,
                     struct pb_err *err)
{
    char *data = file->buffer + i % PB_BACKGROUND_PARTS * PART_BYTES;
    const struct pb_background_part part = {data, bytes, at};
    pb_background_wait_for(&file->hash, PB_BACKGROUND_PARTS - 1);
    int rc = read_back(file, at, data, bytes, err);
    if (rc == 0 && is_stopped(file))
        rc = stopped(file, err);
    if (rc == 0 && beside)
        pb_background_give(&file->hash, &part);
    else if (rc == 0)
        (void)hash_parts(file, &part);
    return rc;
}

int pb_gap_file_take(struct pb_gap_file *file, uint64_t at, uint64_t bytes, struct pb_err *err)
{
    const uint64_t end = at + bytes;
    uint64_t kept = at; /* pages from there on are not yet dropped */
    int rc = 0;
    if (file->checksum == PB_CHECKSUM_NONE)
        return 0;
    for (unsigned i = 0; rc == 0 && at < end; i++) {
        size_t n = end - at < PART_BYTES ? (size_t)(end - at) : PART_BYTES;
        rc = take_part(file, i, at, n, bytes > PART_BYTES, err);
        at += n;
        if (at - kept >= LET_GO_BYTES) {
            let_go(file, kept, at - kept);
            kept = at;
        }
    }
    (void)pb_background_wait(&file->hash);
    return rc;
}

static int write_sum(const struct pb_gap_file *file, struct pb_err *err,
                     char out_checksum[PB_CHECKSUM_TEXT_BYTES])
{
    return pb_sum_text(file->sum, out_checksum) == 0
               ? 0
               : pb_fail(err, PB_E_MEMORY, "no memory for the checksum of '%s'", file->made.path);
}

static int close_gaps(const struct pb_gap_file *file, uint64_t total, const struct pb_gap *gaps,
                      size_t n_gaps, struct pb_err *err)
{
    struct pb_gap_close close = {
        .fd = file->made.fd,
        .gaps = gaps,
        .n = n_gaps,
        .total = total,
        .move = file->move,
        .buffer = file->buffer,
        .buffer_bytes = PB_GAP_FILE_BYTES,
        .stop = file->progress != NULL ? &file->progress->stop : NULL,
    };
    pb_work_begin(PB_WORK_SYNC, 0); /* a file system writes dirty pages first */
    int error = file->made.regular ? pb_gap_close(&close) : 0;
    pb_work_end();
    if (error == ECANCELED)
        return stopped(file, err);
    return error == 0 ? 0 : pb_io_fail(err, error, "cannot put together", file->made.path);
}

int pb_gap_file_finish(struct pb_gap_file *file, uint64_t total, const struct pb_gap *gaps,
                       size_t n_gaps, struct pb_err *err, char out_checksum[PB_CHECKSUM_TEXT_BYTES])
{
    assert(file->sum != NULL);
    int rc = is_stopped(file) ? stopped(file, err) : close_gaps(file, total, gaps, n_gaps, err);
    rc = rc ? rc : write_sum(file, err, out_checksum);
    return rc ? rc : pb_file_made_finish(&file->made, err);
}

void pb_gap_file_destroy(struct pb_gap_file *file)
{
    if (file == NULL)
        return;
    pb_background_fini(&file->hash);
    (void)sem_destroy(&file->writers);
    pb_file_made_drop(&file->made);
    pb_sum_destroy(file->sum);
    pb_pages_free(file->buffer, PB_GAP_FILE_BYTES);
    free(file);
}
