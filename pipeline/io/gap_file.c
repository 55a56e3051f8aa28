/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The checksum of a file with gaps is taken before they are closed, as most of the file is in the
 * page cache then: removing a range drops it from there. A thread of its own hashes one half of a
 * buffer while the other is read. */
#include "pipeline/io/gap_file.h"
#include "pipeline/io/background.h"
#include "pipeline/io/file_room.h"
#include "pipeline/io/file_made.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/io_watch.h"
#include "pipeline/profile/trace.h"
#include "pipeline/profile/work.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define HALF_BYTES        ((size_t)PB_GAP_FILE_BYTES / 2)
#define PROBE_BYTES       (UINT64_C(1) << 20)
#define WRITE_EACH_BYTES  (UINT64_C(8) << 20)
#define HASH_BESIDE_BYTES ((size_t)1 << 20) /* shorter parts are not worth a thread */

struct pb_gap_file {
    struct pb_file_made made;
    bool move;
    struct pb_file_progress *progress;
    _Atomic uint64_t written;
    struct pb_sum *sum; /* of what is written in order; NULL: it is read back */
    enum pb_checksum checksum;
    struct pb_background hash;             /* of a long part, while it is written */
    struct iovec hashed[PB_GAP_PARTS_MAX]; /* the part */
    int n_hashed;
};

static int hash_parts(void *user, const struct pb_background_part *part)
{
    const struct pb_gap_file *file = user;
    (void)part;
    pb_work_begin(PB_WORK_CHECKSUM, 0);
    for (int i = 0; i < file->n_hashed; i++)
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

/* A file system without holes (FAT, exFAT, some servers) takes the space of what was never written,
 * and fills it with zeros. */
static bool has_holes(int fd, uint64_t bytes)
{
    struct stat st;
    return ftruncate(fd, (off_t)bytes) == 0 && fstat(fd, &st) == 0 &&
           (uint64_t)st.st_blocks * 512 < bytes;
}

bool pb_gap_file_may_reach(const struct pb_gap_file *file, uint64_t end)
{
    struct rlimit most;
    const int fd = file->made.fd;
    if (!file->made.regular || end > INT64_MAX ||
        (getrlimit(RLIMIT_FSIZE, &most) == 0 && end > most.rlim_cur)) /* infinity is the largest */
        return false;
    pb_io_begin();
    bool may =
        has_holes(fd, end < PROBE_BYTES ? end : PROBE_BYTES) && ftruncate(fd, (off_t)end) == 0;
    bool empty = ftruncate(fd, 0) == 0;
    pb_io_end();
    return may && empty;
}

void pb_gap_file_move(struct pb_gap_file *file)
{
    file->move = true;
}

/* Counts, and hints at every few megabytes, wherever they went: the disk starts to write what is
 * dirty. Errors are reported by fsync. */
static void count(struct pb_gap_file *file, uint64_t bytes)
{
    uint64_t before = atomic_fetch_add_explicit(&file->written, bytes, memory_order_relaxed);
    if (file->progress != NULL)
        atomic_fetch_add_explicit(&file->progress->bytes, bytes, memory_order_relaxed);
    if (before / WRITE_EACH_BYTES == (before + bytes) / WRITE_EACH_BYTES)
        return;
    pb_io_begin();
    (void)sync_file_range(file->made.fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    pb_io_end();
}

int pb_gap_file_sum(struct pb_gap_file *file, enum pb_checksum checksum, struct pb_err *err)
{
    file->checksum = checksum;
    file->sum = pb_sum_create(checksum);
    return file->sum != NULL
               ? 0
               : pb_fail(err, PB_E_MEMORY, "no memory for the checksum of '%s'", file->made.path);
}

static int stopped(const struct pb_gap_file *file, struct pb_err *err)
{
    return pb_fail(err, PB_E_JOB_DISMISSED, "cancelled while writing '%s'", file->made.path);
}

/* Until pb_background_wait. */
static void begin_hash(struct pb_gap_file *file, const struct iovec *parts, int n)
{
    const struct pb_background_part part = {.at = 0};
    size_t bytes = 0;
    file->n_hashed = n;
    for (int i = 0; i < n; i++) {
        file->hashed[i] = parts[i]; /* writing changes them */
        bytes += parts[i].iov_len;
    }
    if (bytes < HASH_BESIDE_BYTES || file->checksum == PB_CHECKSUM_NONE)
        (void)hash_parts(file, &part);
    else
        pb_background_give(&file->hash, &part);
}

static int write_parts(struct pb_gap_file *file, uint64_t at, struct iovec *parts, int n,
                       struct pb_err *err)
{
    const uint64_t from = at;
    while (n > 0) {
        pb_io_begin();
        ssize_t done = pwritev(file->made.fd, parts, n, (off_t)at);
        pb_io_end();
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return pb_io_fail(err, done == 0 ? ENOSPC : errno, "cannot write", file->made.path);
        pb_trace_add(PB_TRACE_WRITTEN, (uint64_t)done);
        at += (uint64_t)done;
        for (; n > 0 && (size_t)done >= parts->iov_len; n--)
            done -= (ssize_t)parts++->iov_len;
        if (n > 0) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
    count(file, at - from);
    return 0;
}

int pb_gap_file_write(struct pb_gap_file *file, uint64_t at, struct iovec *parts, int n,
                      struct pb_err *err)
{
    assert(n <= PB_GAP_PARTS_MAX);
    if (file->sum == NULL)
        return write_parts(file, at, parts, n, err);
    if (file->progress != NULL && atomic_load(&file->progress->stop))
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

static int hash_part(void *user, const struct pb_background_part *part)
{
    pb_work_begin(PB_WORK_CHECKSUM, 0);
    pb_sum_add(user, part->data, part->bytes);
    pb_work_end();
    return 0;
}

/* A file's checksum while it is read. */
struct reading {
    struct pb_gap_file *file;
    uint64_t total;
    const struct pb_gap *gaps;
    size_t n_gaps;
    char *buffer; /* two halves */
};

/* Bytes from `at` on that are read at once: no further than the next gap. */
static size_t part_bytes(const struct reading *r, uint64_t at)
{
    uint64_t end = r->total;
    for (size_t i = 0; i < r->n_gaps; i++)
        if (r->gaps[i].at > at && r->gaps[i].at < end)
            end = r->gaps[i].at;
    return end - at < HALF_BYTES ? (size_t)(end - at) : HALF_BYTES;
}

static int take_sum(const struct reading *r, struct pb_sum *sum, struct pb_err *err)
{
    struct pb_file_progress *progress = r->file->progress;
    struct pb_background hash;
    unsigned half = 0;
    int rc = 0;
    pb_background_init(&hash, hash_part, sum);
    for (uint64_t at = 0; rc == 0 && at < r->total; half ^= 1) {
        struct pb_background_part part = {r->buffer + half * HALF_BYTES, part_bytes(r, at), at};
        rc = read_back(r->file, pb_gap_before(r->gaps, r->n_gaps, at),
                       r->buffer + half * HALF_BYTES, part.bytes, err);
        (void)pb_background_wait(&hash);
        if (rc != 0)
            break;
        if (progress != NULL && atomic_load(&progress->stop))
            rc = stopped(r->file, err);
        else if (r->total <= HALF_BYTES) /* a thread would not help */
            (void)hash_part(sum, &part);
        else
            pb_background_give(&hash, &part);
        at += part.bytes;
    }
    pb_background_fini(&hash);
    return rc;
}

static int write_sum(const struct pb_gap_file *file, struct pb_err *err,
                     char out_checksum[PB_CHECKSUM_TEXT_BYTES])
{
    return pb_sum_text(file->sum, out_checksum) == 0
               ? 0
               : pb_fail(err, PB_E_MEMORY, "no memory for the checksum of '%s'", file->made.path);
}

static int make_sum(const struct reading *r, enum pb_checksum checksum, struct pb_err *err)
{
    struct pb_gap_file *file = r->file;
    int rc = pb_gap_file_sum(file, checksum, err);
    return rc == 0 && checksum != PB_CHECKSUM_NONE ? take_sum(r, file->sum, err) : rc;
}

static int close_gaps(const struct reading *r, struct pb_err *err)
{
    const struct pb_gap_file *file = r->file;
    struct pb_gap_close close = {
        .fd = file->made.fd,
        .gaps = r->gaps,
        .n = r->n_gaps,
        .total = r->total,
        .move = file->move,
        .buffer = r->buffer,
        .buffer_bytes = PB_GAP_FILE_BYTES,
        .stop = file->progress != NULL ? &file->progress->stop : NULL,
    };
    pb_work_begin(PB_WORK_SYNC, 0); /* a file system writes what is dirty first */
    int error = file->made.regular ? pb_gap_close(&close) : 0;
    pb_work_end();
    if (error == ECANCELED)
        return stopped(file, err);
    return error == 0 ? 0 : pb_io_fail(err, error, "cannot put together", file->made.path);
}

static int finish_gaps(struct pb_gap_file *file, uint64_t total, const struct pb_gap *gaps,
                       size_t n_gaps, enum pb_checksum checksum, struct pb_err *err)
{
    struct reading reading = {file, total, gaps, n_gaps, malloc(PB_GAP_FILE_BYTES)};
    if (reading.buffer == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to write '%s'", file->made.path);
    int rc = make_sum(&reading, checksum, err);
    if (rc == 0)
        rc = close_gaps(&reading, err);
    free(reading.buffer);
    return rc;
}

int pb_gap_file_finish(struct pb_gap_file *file, uint64_t total, const struct pb_gap *gaps,
                       size_t n_gaps, enum pb_checksum checksum, struct pb_err *err,
                       char out_checksum[PB_CHECKSUM_TEXT_BYTES])
{
    const bool dismissed = file->progress != NULL && atomic_load(&file->progress->stop);
    int rc = dismissed           ? stopped(file, err)
             : file->sum != NULL ? 0 /* written in order: it has no gaps, and its length */
                                 : finish_gaps(file, total, gaps, n_gaps, checksum, err);
    rc = rc ? rc : write_sum(file, err, out_checksum);
    return rc ? rc : pb_file_made_finish(&file->made, err);
}

void pb_gap_file_destroy(struct pb_gap_file *file)
{
    if (file == NULL)
        return;
    pb_background_fini(&file->hash);
    pb_file_made_drop(&file->made);
    pb_sum_destroy(file->sum);
    free(file);
}
