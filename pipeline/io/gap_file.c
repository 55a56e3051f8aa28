/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The checksum of a file with gaps is computed before they are closed, because most of the file
 * is in the page cache then: removing a range drops it from the cache. In the order of the file a
 * separate thread hashes the data being written, or parts of a buffer while others are read. For a
 * tree each thread reads and hashes: data just read are in its core's cache. */
#include "pipeline/io/gap_file.h"
#include "pipeline/io/background.h"
#include "pipeline/io/file_room.h"
#include "pipeline/io/file_made.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/io_watch.h"
#include "pipeline/io/pages.h"
#include "pipeline/io/thread.h"
#include "pipeline/io/tree_sum.h"
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
#define UNIT_GRANULES     16 /* granules that a thread takes at a time */
#define LET_GO_BYTES      (UINT64_C(4) << 20)
#define PROBE_BYTES       (UINT64_C(1) << 20)
#define WRITE_EACH_BYTES  (UINT64_C(8) << 20)
#define WRITERS           2 /* one writes, and one waits for the lock that a file has */
#define HASH_BESIDE_BYTES ((size_t)1 << 20) /* shorter parts do not justify a thread */
_Static_assert(PART_BYTES == PB_TREE_GRANULE && PB_GAP_FILE_THREADS <= PB_BACKGROUND_PARTS,
               "each thread has a part of the buffer for a granule");

/* Threads that hash the granules of a file, in units, the last one first: it is written first. */
struct hashing {
    struct pb_gap_file_tree tree;
    pthread_t helper[PB_GAP_FILE_THREADS];
    uint32_t n_helpers;

    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t changed;
    uint64_t left;     /* units that no thread has taken */
    bool written;      /* all bytes are written */
    uint32_t parts;    /* parts of the buffer that threads have */
    int rc;            /* the first failure and ... */
    struct pb_err err; /* ... its error */
};

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
    struct pb_tree_sum *tree; /* instead of the sum */
    bool counts;              /* writes are counted in the tree */
    atomic_uint taken;        /* bits of the buffer's parts that are in use during writes */
    struct hashing hashing;
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
    (void)pthread_mutex_init(&file->hashing.lock, NULL);
    (void)pthread_cond_init(&file->hashing.changed, NULL);
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

/* Sets the kind of the checksum and allocates the buffer. state: the sum or the tree; NULL if its
 * allocation failed. */
static int set_checksum(struct pb_gap_file *file, enum pb_checksum checksum, const void *state,
                        struct pb_err *err)
{
    file->checksum = checksum;
    file->buffer = pb_pages_alloc(PB_GAP_FILE_BYTES);
    return state != NULL && file->buffer != NULL
               ? 0
               : pb_fail(err, PB_E_MEMORY, "no memory for the checksum of '%s'", file->made.path);
}

int pb_gap_file_sum(struct pb_gap_file *file, enum pb_checksum checksum, struct pb_err *err)
{
    file->sum = pb_sum_create(checksum);
    return set_checksum(file, checksum, file->sum, err);
}

static int create_tree(struct pb_gap_file *file, uint64_t total, struct pb_err *err)
{
    file->tree = pb_tree_sum_create(total);
    const int rc = set_checksum(file, PB_CHECKSUM_BLAKE3, file->tree, err);
    if (rc == 0)
        file->hashing.left = (pb_tree_sum_granules(file->tree) - 1) / UNIT_GRANULES + 1;
    return rc;
}

int pb_gap_file_tree_early(struct pb_gap_file *file, uint64_t total, struct pb_err *err)
{
    file->counts = true;
    return create_tree(file, total, err);
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

static void hash_granule(const struct pb_gap_file *file, uint64_t granule, const void *data)
{
    pb_work_begin(PB_WORK_CHECKSUM, 0);
    pb_tree_sum_add(file->tree, granule, data);
    pb_work_end();
}

/* Hashes the granules that are whole in one of the buffers. */
static void hash_buffers(const struct pb_gap_file *file, uint64_t at, const struct iovec *parts,
                         int n)
{
    for (int i = 0; i < n; at += parts[i++].iov_len) {
        const uint64_t end = at + parts[i].iov_len;
        for (uint64_t g = (at + PB_TREE_GRANULE - 1) / PB_TREE_GRANULE;
             (g + 1) * PB_TREE_GRANULE <= end; g++)
            hash_granule(file, g, (const char *)parts[i].iov_base + (g * PB_TREE_GRANULE - at));
    }
}

/* Reads back and hashes a complete granule of a file without gaps; if all parts of the buffer are
 * in use, the granule is left for finish. */
static int hash_written(struct pb_gap_file *file, uint64_t granule, struct pb_err *err)
{
    for (unsigned i = 0; i < PB_BACKGROUND_PARTS; i++) {
        if (atomic_fetch_or(&file->taken, 1u << i) >> i & 1)
            continue;
        char *data = file->buffer + i * PART_BYTES;
        int rc = read_back(file, granule * PB_TREE_GRANULE, data,
                           pb_tree_sum_bytes(file->tree, granule), err);
        if (rc == 0)
            hash_granule(file, granule, data);
        (void)atomic_fetch_and(&file->taken, ~(1u << i));
        return rc;
    }
    return 0;
}

/* Counts bytes that were written, and hashes the granules that they complete. */
static int count_granules(struct pb_gap_file *file, uint64_t at, uint64_t bytes, struct pb_err *err)
{
    const uint64_t end = at + bytes;
    int rc = 0;
    while (at < end && rc == 0) {
        const uint64_t granule = at / PB_TREE_GRANULE, next = (granule + 1) * PB_TREE_GRANULE;
        const uint64_t stop = next < end ? next : end;
        if (!pb_tree_sum_has(file->tree, granule) &&
            pb_tree_sum_count(file->tree, granule, (size_t)(stop - at)))
            rc = hash_written(file, granule, err);
        at = stop;
    }
    return rc;
}

static int write_in_order(struct pb_gap_file *file, uint64_t at, struct iovec *parts, int n,
                          struct pb_err *err)
{
    if (is_stopped(file))
        return stopped(file, err);
    begin_hash(file, parts, n);
    int rc = write_parts(file, at, parts, n, err);
    (void)pb_background_wait(&file->hash);
    return rc;
}

int pb_gap_file_write(struct pb_gap_file *file, uint64_t at, struct iovec *parts, int n,
                      struct pb_err *err)
{
    assert(n <= PB_GAP_PARTS_MAX);
    if (file->sum != NULL)
        return write_in_order(file, at, parts, n, err);
    const size_t bytes = bytes_of(parts, n);
    if (file->counts)
        hash_buffers(file, at, parts, n);
    int rc = write_parts(file, at, parts, n, err);
    return rc == 0 && file->counts ? count_granules(file, at, bytes, err) : rc;
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
    if (file->checksum == PB_CHECKSUM_NONE || file->tree != NULL)
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

/* Reads bytes of the finished file while it has gaps. */
static int read_across(const struct pb_gap_file *file, uint64_t at, char *to, size_t bytes,
                       struct pb_err *err)
{
    const struct pb_gap_file_tree *tree = &file->hashing.tree;
    int rc = 0;
    for (uint64_t end = at + bytes, stop; at < end && rc == 0; to += stop - at, at = stop) {
        stop = end;
        for (size_t i = 0; i < tree->n_gaps; i++)
            if (tree->gap[i].at > at && tree->gap[i].at < stop)
                stop = tree->gap[i].at;
        rc = read_back(file, pb_gap_before(tree->gap, tree->n_gaps, at), to, (size_t)(stop - at),
                       err);
    }
    return rc;
}

static int hash_unit(const struct pb_gap_file *file, uint64_t unit, char *data, struct pb_err *err)
{
    const struct pb_gap_file_tree *tree = &file->hashing.tree;
    const uint64_t n = pb_tree_sum_granules(file->tree), first = unit * UNIT_GRANULES;
    const uint64_t end = first + UNIT_GRANULES < n ? first + UNIT_GRANULES : n;
    int rc = 0;
    for (uint64_t g = first; g < end && rc == 0; g++) {
        if (pb_tree_sum_has(file->tree, g))
            continue;
        rc = read_across(file, g * PB_TREE_GRANULE, data, pb_tree_sum_bytes(file->tree, g), err);
        if (rc == 0 && is_stopped(file))
            rc = stopped(file, err);
        if (rc == 0)
            hash_granule(file, g, data);
    }
    if (rc == 0)
        let_go(file, pb_gap_before(tree->gap, tree->n_gaps, first * PB_TREE_GRANULE),
               (end - first) * PB_TREE_GRANULE);
    return rc;
}

/* Call it with the lock held: takes the last unit that is left, when it is written. Returns false
 * at the end of the work. */
static bool take_unit(struct hashing *h, uint64_t *out_unit)
{
    while (h->left > 0 && !h->written &&
           (h->left - 1) * UNIT_GRANULES * PB_TREE_GRANULE < h->tree.ready) {
        pb_work_begin(PB_WORK_WAIT, 0);
        (void)pthread_cond_wait(&h->changed, &h->lock);
        pb_work_end();
    }
    if (h->left == 0)
        return false;
    *out_unit = --h->left;
    return true;
}

static void *hash_units(void *arg)
{
    struct pb_gap_file *file = arg;
    struct hashing *h = &file->hashing;
    struct pb_err err = {0};
    uint64_t unit;
    (void)pthread_mutex_lock(&h->lock);
    char *data = file->buffer + h->parts++ * PART_BYTES;
    while (take_unit(h, &unit)) {
        (void)pthread_mutex_unlock(&h->lock);
        int rc = hash_unit(file, unit, data, &err);
        (void)pthread_mutex_lock(&h->lock);
        if (rc != 0 && h->rc == 0) {
            h->rc = rc;
            h->err = err;
        }
        h->left = rc != 0 ? 0 : h->left;
    }
    (void)pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void *help(void *arg)
{
    (void)pthread_setname_np(pthread_self(), "pb-file");
    return hash_units(arg);
}

int pb_gap_file_tree(struct pb_gap_file *file, const struct pb_gap_file_tree *tree,
                     struct pb_err *err)
{
    struct hashing *h = &file->hashing;
    int rc = create_tree(file, tree->total, err);
    if (rc != 0)
        return rc;
    h->tree = *tree;
    while (h->n_helpers + 1 < PB_GAP_FILE_THREADS && h->n_helpers + 1 < tree->threads &&
           pb_thread_start(&h->helper[h->n_helpers], help, file) == 0)
        h->n_helpers++;
    return 0;
}

/* Wakes the threads because all bytes are written; stops: they take no other unit. */
static void note_written(struct hashing *h, bool stops)
{
    (void)pthread_mutex_lock(&h->lock);
    h->written = true;
    h->left = stops ? 0 : h->left;
    (void)pthread_cond_broadcast(&h->changed);
    (void)pthread_mutex_unlock(&h->lock);
}

/* Waits for the end of the threads. */
static void end_helpers(struct hashing *h)
{
    pb_work_begin(PB_WORK_WAIT, 0);
    while (h->n_helpers > 0)
        (void)pthread_join(h->helper[--h->n_helpers], NULL);
    pb_work_end();
}

/* Hashes the granules that were not hashed yet, while the disk writes. */
static int hash_rest(struct pb_gap_file *file, struct pb_err *err)
{
    struct hashing *h = &file->hashing;
    (void)sync_file_range(file->made.fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    note_written(h, false);
    (void)hash_units(file);
    end_helpers(h);
    if (h->rc != 0 && err != NULL && err->code == PB_OK)
        *err = h->err;
    return h->rc;
}

static int write_sum(const struct pb_gap_file *file, struct pb_err *err,
                     char out_checksum[PB_CHECKSUM_TEXT_BYTES])
{
    if (file->tree != NULL) {
        pb_tree_sum_text(file->tree, out_checksum);
        return 0;
    }
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
    assert(file->sum != NULL || file->tree != NULL);
    int rc = is_stopped(file) ? stopped(file, err) : 0;
    if (rc == 0 && file->tree != NULL)
        rc = hash_rest(file, err);
    rc = rc ? rc : close_gaps(file, total, gaps, n_gaps, err);
    rc = rc ? rc : write_sum(file, err, out_checksum);
    return rc ? rc : pb_file_made_finish(&file->made, err);
}

void pb_gap_file_destroy(struct pb_gap_file *file)
{
    if (file == NULL)
        return;
    pb_background_fini(&file->hash);
    note_written(&file->hashing, true);
    end_helpers(&file->hashing);
    (void)pthread_cond_destroy(&file->hashing.changed);
    (void)pthread_mutex_destroy(&file->hashing.lock);
    (void)sem_destroy(&file->writers);
    pb_file_made_drop(&file->made);
    pb_sum_destroy(file->sum);
    pb_tree_sum_destroy(file->tree);
    pb_pages_free(file->buffer, PB_GAP_FILE_BYTES);
    free(file);
}
