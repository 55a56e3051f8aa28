/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/file_out.h"
#include "pipeline/io/io_watch.h"
#include "pipeline/io/background.h"
#include "pipeline/io/file_made.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/profile/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HALF_BYTES ((size_t)PB_FILE_OUT_BYTES / 2)

struct pb_file_out {
    struct pb_file_made made;
    struct pb_file_progress *progress;
    struct pb_sum *sum;
    char *buffer; /* two halves: one is filled while the other is written and hashed */
    unsigned half;
    size_t held; /* bytes in the half being filled */
    uint64_t flushed;
    struct pb_background store, check; /* used only by files longer than a half */
};

static int store_part(void *user, const struct pb_background_part *part)
{
    const struct pb_file_out *file = user;
    for (size_t done = 0; done < part->bytes;) {
        pb_io_begin();
        ssize_t n =
            pwrite(file->made.fd, part->data + done, part->bytes - done, (off_t)(part->at + done));
        pb_io_end();
        if (n > 0) {
            pb_trace_add(PB_TRACE_WRITTEN, (uint64_t)n);
            done += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            return n == 0 ? ENOSPC : errno;
        }
    }
    /* A hint: the disk writes while the rest is hashed; therefore fsync is shorter. fsync still
     * reports all errors. */
    (void)sync_file_range(file->made.fd, (off_t)part->at, (off_t)part->bytes,
                          SYNC_FILE_RANGE_WRITE);
    return 0;
}

static int check_part(void *user, const struct pb_background_part *part)
{
    const struct pb_file_out *file = user;
    pb_work_begin(PB_WORK_CHECKSUM, 0);
    pb_sum_add(file->sum, part->data, part->bytes);
    pb_work_end();
    return 0;
}

int pb_file_out_create(const char *path, enum pb_checksum checksum, struct pb_err *err,
                       struct pb_file_out **out_file)
{
    struct pb_file_out *file = calloc(1, sizeof *file);
    if (file == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to write '%s'", path);
    file->made.fd = -1;
    pb_background_init(&file->store, store_part, file);
    pb_background_init(&file->check, check_part, file);
    file->sum = pb_sum_create(checksum);
    file->buffer = malloc(PB_FILE_OUT_BYTES);
    int rc = 0;
    if (file->sum == NULL || file->buffer == NULL) {
        rc = pb_fail(err, PB_E_MEMORY, "no memory to write '%s'", path);
        goto out;
    }
    rc = pb_file_made_open(&file->made, path, err);
    if (rc != 0)
        goto out;
    *out_file = file;
    return 0;
out:
    pb_file_out_destroy(file);
    return rc;
}

int pb_file_progress_add(struct pb_file_progress *progress, uint64_t bytes, struct pb_err *err)
{
    if (progress == NULL)
        return 0;
    const uint64_t before =
        atomic_fetch_add_explicit(&progress->bytes, bytes, memory_order_relaxed);
    if (progress->most == 0 || before + bytes <= progress->most)
        return 0;
    return pb_fail(err, PB_E_OUTPUT_LIMIT,
                   "the products of the scene have more than %llu bytes (limits.output)",
                   (unsigned long long)progress->most);
}

void pb_file_out_watch(struct pb_file_out *file, struct pb_file_progress *progress)
{
    file->progress = progress;
}

/* Waits for the threads and returns the buffered bytes as a part. Fails if the run was aborted. */
static int cut_part(struct pb_file_out *file, struct pb_err *err,
                    struct pb_background_part *out_part)
{
    struct pb_file_progress *progress = file->progress;
    if (progress != NULL && atomic_load(&progress->stop))
        return pb_fail(err, PB_E_JOB_DISMISSED, "cancelled while writing '%s'", file->made.path);
    (void)pb_background_wait(&file->check);
    int error = pb_background_wait(&file->store);
    if (error != 0)
        return pb_io_fail(err, error, "cannot write", file->made.path);
    *out_part = (struct pb_background_part){file->buffer + file->half * HALF_BYTES, file->held,
                                            file->flushed};
    int rc = pb_file_progress_add(progress, file->held, err);
    if (rc != 0)
        return rc;
    file->flushed += file->held;
    file->held = 0;
    return 0;
}

/* Passes the filled half to the threads and continues with the other. */
static int hand_over(struct pb_file_out *file, struct pb_err *err)
{
    struct pb_background_part part;
    int rc = cut_part(file, err, &part);
    if (rc != 0)
        return rc;
    pb_background_give(&file->store, &part);
    pb_background_give(&file->check, &part);
    file->half ^= 1;
    return 0;
}

/* Writes the last, partly filled half and waits for the threads. */
static int flush(struct pb_file_out *file, struct pb_err *err)
{
    struct pb_background_part part;
    int rc = cut_part(file, err, &part);
    if (rc != 0)
        return rc;
    int error = store_part(file, &part);
    if (error != 0)
        return pb_io_fail(err, error, "cannot write", file->made.path);
    return check_part(file, &part);
}

int pb_file_out_add(struct pb_file_out *file, const void *data, size_t bytes, struct pb_err *err)
{
    const char *from = data;
    while (bytes > 0) {
        int rc = file->held == HALF_BYTES ? hand_over(file, err) : 0;
        if (rc != 0)
            return rc;
        size_t room = HALF_BYTES - file->held, n = bytes < room ? bytes : room;
        memcpy(file->buffer + file->half * HALF_BYTES + file->held, from, n);
        file->held += n;
        from += n;
        bytes -= n;
    }
    return 0;
}

uint64_t pb_file_out_at(const struct pb_file_out *file)
{
    return file->flushed + file->held;
}

int pb_file_out_finish(struct pb_file_out *file, struct pb_err *err,
                       char out_checksum[PB_CHECKSUM_TEXT_BYTES])
{
    int rc = flush(file, err);
    if (rc != 0)
        return rc;
    if (pb_sum_text(file->sum, out_checksum) != 0)
        return pb_fail(err, PB_E_MEMORY, "no memory for the checksum of '%s'", file->made.path);
    return pb_file_made_finish(&file->made, err);
}

void pb_file_out_destroy(struct pb_file_out *file)
{
    if (file == NULL)
        return;
    pb_background_fini(&file->store);
    pb_background_fini(&file->check);
    pb_file_made_drop(&file->made);
    pb_sum_destroy(file->sum);
    free(file->buffer);
    free(file);
}
