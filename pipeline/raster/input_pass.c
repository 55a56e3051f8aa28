/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/input_pass.h"
#include "pipeline/io/pages.h"
#include "pipeline/lines/segment.h"
#include "pipeline/profile/work.h"
#include "pipeline/raster/input_sum.h"
#include "wic/futex.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* Data just read is in a core's own cache when the same thread hashes it. */
#define CHUNK_BYTES (256u << 10)
#define RING_BYTES  ((size_t)CHUNK_BYTES * PB_BACKGROUND_PARTS)

static int copy_file(struct pb_input_pass_file *to, const struct pb_input_part *from,
                     struct pb_err *err)
{
    const struct pb_raster_file *file = from->file;
    const char *name = from->name;
    to->beside = from->beside;
    to->is_growing = file->segment != NULL;
    to->file = (struct pb_raster_file){.fd = -1,
                                       .base = file->base,
                                       .bytes = file->bytes,
                                       .path = strdup(file->path),
                                       .stat = file->stat,
                                       .handed = file->handed};
    to->name = name != NULL ? strdup(name) : NULL;
    enum pb_checksum kind;
    const char *digits = NULL;
    if (from->checksum != NULL && pb_checksum_parse(from->checksum, &kind, &digits) == 0 &&
        digits != NULL)
        (void)snprintf(to->checksum[kind], sizeof to->checksum[kind], "%s", from->checksum);
    if (to->file.path == NULL || (name != NULL && to->name == NULL))
        return pb_fail(err, PB_E_MEMORY, "out of memory for the checksum of %s", file->path);
    to->file.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
    return to->file.fd >= 0 ? 0
                            : pb_raster_file_fail(err, errno, file->path,
                                                  "cannot duplicate the file's descriptor");
}

static int hash_chunk(void *user, const struct pb_background_part *chunk)
{
    const struct pb_input_pass *pass = user;
    pb_work_begin(PB_WORK_INPUT_SUM, 0);
    for (int k = 0; k < PB_CHECKSUM_KINDS; k++)
        if (pass->own[k] != NULL)
            pb_sum_add(pass->own[k], chunk->data, chunk->bytes);
    pb_work_end();
    return 0;
}

/* Ring of an ended pass, for the next one: a worker makes a pass for each job. */
static char *_Atomic spare;

static char *take_ring(void)
{
    char *ring = atomic_exchange(&spare, NULL);
    return ring != NULL ? ring : pb_pages_alloc(RING_BYTES);
}

static void give_ring(char *ring)
{
    pb_pages_free(atomic_exchange(&spare, ring), RING_BYTES);
}

int pb_input_pass_init(struct pb_input_pass *pass, const struct pb_input_part *part, size_t n,
                       struct pb_err *err)
{
    int rc = 0;
    pb_background_init(&pass->hash, hash_chunk, pass);
    pass->file = calloc(n, sizeof *pass->file);
    pass->chunk = take_ring();
    if (pass->file == NULL || pass->chunk == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the checksum of %s",
                       part[0].file->path);
    for (; pass->n < n && rc == 0; pass->n++) {
        rc = copy_file(&pass->file[pass->n], &part[pass->n], err);
        pass->total += part[pass->n].file->bytes;
    }
    return rc;
}

/* Returns true if the pass needs that kind of checksum of the file, which is not known yet. */
static bool is_needed(const struct pb_input_pass *pass, const struct pb_input_pass_file *file,
                      int kind)
{
    return pass->kinds[kind] && file->checksum[kind][0] == '\0';
}

static bool has_to_be_read(const struct pb_input_pass *pass, const struct pb_input_pass_file *file)
{
    bool is = false;
    for (int k = 0; k < PB_CHECKSUM_KINDS; k++)
        is = is || is_needed(pass, file, k);
    return is;
}

uint64_t pb_input_pass_unread(const struct pb_input_pass *pass)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < pass->n; i++)
        bytes += has_to_be_read(pass, &pass->file[i]) ? pass->file[i].file.bytes : 0;
    return bytes;
}

/* Creates the sums of the pass's kinds that do not exist yet. file: the sums are its own; NULL:
 * those of all lines. */
static int begin_sums(const struct pb_input_pass *pass, const struct pb_input_pass_file *file,
                      struct pb_sum *sum[PB_CHECKSUM_KINDS])
{
    for (int k = 0; k < PB_CHECKSUM_KINDS; k++)
        if ((file != NULL ? is_needed(pass, file, k) : pass->kinds[k]) && sum[k] == NULL &&
            (sum[k] = pb_sum_create((enum pb_checksum)k)) == NULL)
            return -ENOMEM;
    return 0;
}

static void drop_sums(struct pb_sum *sum[PB_CHECKSUM_KINDS])
{
    for (int k = 0; k < PB_CHECKSUM_KINDS; k++) {
        pb_sum_destroy(sum[k]);
        sum[k] = NULL;
    }
}

static int end_sums(struct pb_sum *sum[PB_CHECKSUM_KINDS],
                    char out[PB_CHECKSUM_KINDS][PB_CHECKSUM_TEXT_BYTES])
{
    int rc = 0;
    for (int k = 0; k < PB_CHECKSUM_KINDS && rc == 0; k++)
        rc = sum[k] != NULL ? pb_sum_text(sum[k], out[k]) : 0;
    drop_sums(sum);
    return rc;
}

/* Reads the next chunk from the page cache. Returns -EAGAIN if that may have to wait, and for an
 * error, which the usual read reports. */
static ssize_t read_cached(const struct pb_input_pass_file *file, char *data)
{
    const uint64_t left = file->file.bytes - file->bytes;
    const struct iovec part = {data, left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES};
    if (left == 0)
        return 0;
    ssize_t n =
        preadv2(file->file.fd, &part, 1, (off_t)(file->file.base + file->bytes), RWF_NOWAIT);
    return n > 0 ? n : -EAGAIN;
}

/* Adds the next chunk. Returns 1; 0 at the end of the file; negative errno. */
static int add_chunk(struct pb_input_pass *pass, struct pb_input_pass_file *file,
                     enum pb_input_pass_way way)
{
    const bool beside = way == PB_INPUT_PASS_BESIDE;
    char *data = pass->chunk + (size_t)(pass->turn % PB_BACKGROUND_PARTS) * CHUNK_BYTES;
    pb_background_wait_for(&pass->hash, beside ? PB_BACKGROUND_PARTS - 1 : 0);
    ssize_t n = pass->cached_only
                    ? read_cached(file, data)
                    : pb_raster_file_read(&file->file, file->bytes, data, CHUNK_BYTES);
    if (n <= 0)
        return (int)n;
    const struct pb_background_part chunk = {data, (size_t)n, file->bytes};
    pass->turn += beside;
    if (beside)
        pb_background_give(&pass->hash, &chunk);
    else
        (void)hash_chunk(pass, &chunk);
    file->bytes += (uint64_t)n;
    atomic_fetch_add(&pass->bytes, (uint64_t)n);
    return 1;
}

static int add_chunks(struct pb_input_pass *pass, struct pb_input_pass_file *file,
                      enum pb_input_pass_way (*way)(void *user), void *user)
{
    int rc = 1;
    while (rc > 0) {
        enum pb_input_pass_way now = way(user);
        if (atomic_load(&pass->stop))
            return -ECANCELED;
        if (now == PB_INPUT_PASS_LEAVE)
            return 1;
        rc = add_chunk(pass, file, now);
    }
    return rc == -EAGAIN && pass->cached_only ? 1 : rc;
}

/* Computes the file's own sums. Returns 1 if the pass was interrupted. */
static int add_file(struct pb_input_pass *pass, struct pb_input_pass_file *file,
                    enum pb_input_pass_way (*way)(void *user), void *user)
{
    if (!has_to_be_read(pass, file)) {
        file->bytes = file->file.bytes;
        return 0;
    }
    int rc = begin_sums(pass, file, pass->own);
    rc = rc ? rc : add_chunks(pass, file, way, user);
    (void)pb_background_wait(&pass->hash);
    return rc ? rc : end_sums(pass->own, file->checksum);
}

/* Adds lines in the format of sha256sum(1) and b3sum(1): digits, two spaces, name. */
static void add_lines(const struct pb_input_pass_file *file, struct pb_sum *all[PB_CHECKSUM_KINDS])
{
    for (int k = 0; k < PB_CHECKSUM_KINDS; k++) {
        if (all[k] == NULL)
            continue;
        pb_sum_add(all[k], pb_checksum_digits(file->checksum[k]),
                   strlen(pb_checksum_digits(file->checksum[k])));
        pb_sum_add(all[k], "  ", 2);
        pb_sum_add(all[k], file->name, strlen(file->name));
        pb_sum_add(all[k], "\n", 1);
    }
}

/* Completes the checksums of the input. A file that is the whole input has the same ones. */
static int end_pass(struct pb_input_pass *pass)
{
    int rc = end_sums(pass->all, pass->checksum);
    for (size_t i = 0; i < pass->n; i++)
        if (pass->file[i].name == NULL)
            memcpy(pass->checksum, pass->file[i].checksum, sizeof pass->checksum);
    return rc;
}

/* Waits for the end of a segment: its writer closes it after the last line. */
static int settle(struct pb_input_pass_file *file, int64_t deadline_ns, struct pb_err *err)
{
    struct pb_segment *segment = NULL;
    int rc = pb_segment_open(file->file.fd, file->file.path, err, &segment);
    rc = rc ? rc : pb_segment_wait_end(segment, deadline_ns);
    pb_segment_destroy(segment);
    if (rc < 0)
        return rc;
    if (fstat(file->file.fd, &file->file.stat) < 0)
        return pb_raster_file_fail(err, errno, file->file.path, "cannot stat the file");
    file->file.bytes = (uint64_t)file->file.stat.st_size;
    file->is_growing = false;
    return 0;
}

int pb_input_pass_settle(struct pb_input_pass *pass, int64_t timeout_ms, struct pb_err *err)
{
    const int64_t deadline_ns = wic_now_ns() + timeout_ms * 1000000;
    int rc = 0;
    pass->total = 0;
    for (size_t i = 0; i < pass->n && rc == 0; i++) {
        rc = pass->file[i].is_growing ? settle(&pass->file[i], deadline_ns, err) : 0;
        pass->total += pass->file[i].file.bytes;
    }
    return rc;
}

void pb_input_pass_begin(struct pb_input_pass *pass, const bool kinds[PB_CHECKSUM_KINDS])
{
    drop_sums(pass->own);
    drop_sums(pass->all);
    memcpy(pass->kinds, kinds, sizeof pass->kinds);
    for (size_t i = 0; i < pass->n; i++)
        pass->file[i].bytes = 0;
    pass->next = 0;
    atomic_store(&pass->bytes, 0);
}

int pb_input_pass_run(struct pb_input_pass *pass, enum pb_input_pass_way (*way)(void *user),
                      void *user)
{
    int rc = begin_sums(pass, NULL, pass->all);
    while (rc == 0 && pass->next < pass->n) {
        struct pb_input_pass_file *file = &pass->file[pass->next];
        rc = add_file(pass, file, way, user);
        if (rc == 0 && file->name != NULL && !file->beside)
            add_lines(file, pass->all);
        pass->next += rc == 0;
    }
    pb_background_rest(&pass->hash);
    return rc ? rc : end_pass(pass);
}

void pb_input_pass_fini(struct pb_input_pass *pass)
{
    pb_background_fini(&pass->hash);
    for (size_t i = 0; i < pass->n; i++) {
        pb_raster_file_close(&pass->file[i].file);
        free(pass->file[i].name);
    }
    free(pass->file);
    give_ring(pass->chunk);
    drop_sums(pass->own);
    drop_sums(pass->all);
}
