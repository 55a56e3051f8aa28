/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* While products are finished, which takes one thread each, cores are idle. What of the input may
 * be left for that time is hashed when a core has nothing else to do (SCHED_IDLE), so that it takes
 * no time from the tiles. Whoever waits for the sum would wait for an idle core, too: the thread
 * then leaves the rest to another one of usual priority. It cannot raise its own, as a process
 * without privileges may only lower it. */
#include "pipeline/raster/input_sum.h"
#include "config/base/clock.h"
#include "pipeline/io/sha256.h"
#include "pipeline/io/text_clean.h"
#include "pipeline/io/thread.h"
#include "pipeline/profile/work.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHUNK_BYTES (256u << 10)
#define ALIVE_MS    500

struct part {
    struct pb_raster_file file; /* its descriptor and path are own copies */
    char *name;                 /* NULL: the file is the whole input */
    enum pb_input_role role;
    bool beside;
    uint64_t bytes; /* written by the thread, read after join, as hex */
    char hex[65];
};

struct pb_input_sum {
    struct part *part;
    size_t n;
    pthread_t thread;
    bool started, joined;
    uint64_t total;         /* bytes of all parts */
    _Atomic uint64_t leave; /* how many of them may wait for idle cores */
    atomic_bool awaited;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done; /* protected by lock */
    atomic_bool stop;
    _Atomic uint64_t bytes;
    void (*alive)(void *user, uint64_t bytes);
    void *user;
    /* Of the thread; read after join, also by the thread that continues. */
    int rc; /* 1: it left the rest */
    bool yields;
    size_t next;
    struct pb_sha256 *own, *all; /* of part[next], of all lines */
    char hex[65];
    unsigned char chunk[CHUNK_BYTES];
};

static int copy_part(struct part *part, const struct pb_input_part *from, struct pb_err *err)
{
    const struct pb_raster_file *file = from->file;
    const char *name = from->name;
    part->role = from->role;
    part->beside = from->beside;
    part->file = (struct pb_raster_file){.fd = -1,
                                         .base = file->base,
                                         .bytes = file->bytes,
                                         .path = strdup(file->path),
                                         .stat = file->stat,
                                         .handed = file->handed};
    part->name = name != NULL ? strdup(name) : NULL;
    if (part->file.path == NULL || (name != NULL && part->name == NULL))
        return pb_fail(err, PB_E_MEMORY, "out of memory for the checksum of %s", file->path);
    part->file.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
    return part->file.fd >= 0
               ? 0
               : pb_raster_file_fail(err, errno, file->path, "cannot open the file once more");
}

int pb_input_sum_create(const struct pb_input_part *part, size_t n, struct pb_err *err,
                        struct pb_input_sum **out_sum)
{
    struct pb_input_sum *sum = calloc(1, sizeof *sum);
    if (sum != NULL)
        sum->part = calloc(n, sizeof *sum->part);
    if (sum == NULL || sum->part == NULL) {
        free(sum);
        return pb_fail(err, PB_E_MEMORY, "out of memory for the checksum of %s",
                       part[0].file->path);
    }
    (void)pthread_mutex_init(&sum->lock, NULL);
    (void)pthread_cond_init(&sum->ended, NULL);
    int rc = 0;
    for (; sum->n < n && rc == 0; sum->n++) {
        rc = copy_part(&sum->part[sum->n], &part[sum->n], err);
        sum->total += part[sum->n].file->bytes;
    }
    if (rc < 0) {
        pb_input_sum_destroy(sum);
        return rc;
    }
    *out_sum = sum;
    return 0;
}

/* Whether the thread leaves the rest to another: it runs on idle cores, and somebody waits. */
static bool gives_up(struct pb_input_sum *sum)
{
    const struct sched_param none = {0};
    if (atomic_load(&sum->awaited))
        return sum->yields;
    uint64_t done = atomic_load(&sum->bytes), leave = atomic_load(&sum->leave);
    if (!sum->yields && leave > 0 && sum->total - done <= leave)
        sum->yields = sched_setscheduler(0, SCHED_IDLE, &none) == 0;
    return false;
}

/* The part's own sum. 1: the rest is left to another thread. */
static int add_file(struct pb_input_sum *sum, struct part *part)
{
    if (sum->own == NULL)
        sum->own = pb_sha256_create();
    int rc = sum->own == NULL ? -ENOMEM : 1;
    while (rc > 0 && !atomic_load(&sum->stop)) {
        if (gives_up(sum))
            return 1;
        ssize_t n = pb_raster_file_read(&part->file, part->bytes, sum->chunk, sizeof sum->chunk);
        rc = n < 0 ? (int)n : n > 0;
        if (n > 0) {
            pb_sha256_add(sum->own, sum->chunk, (size_t)n);
            part->bytes += (uint64_t)n;
            atomic_fetch_add(&sum->bytes, (uint64_t)n);
        }
    }
    rc = rc > 0 ? -ECANCELED : rc;
    rc = rc ? rc : pb_sha256_hex(sum->own, part->hex);
    pb_sha256_destroy(sum->own);
    sum->own = NULL;
    return rc;
}

/* The line of sha256sum(1): sum, two spaces, name. */
static void add_line(const struct part *part, struct pb_sha256 *all)
{
    pb_sha256_add(all, part->hex, 64);
    pb_sha256_add(all, "  ", 2);
    pb_sha256_add(all, part->name, strlen(part->name));
    pb_sha256_add(all, "\n", 1);
}

static int add_all(struct pb_input_sum *sum)
{
    const struct part *whole = NULL;
    int rc = 0;
    if (sum->all == NULL && (sum->all = pb_sha256_create()) == NULL)
        return -ENOMEM;
    while (sum->next < sum->n) {
        struct part *part = &sum->part[sum->next];
        rc = add_file(sum, part);
        if (rc != 0)
            return rc;
        if (part->name != NULL && !part->beside)
            add_line(part, sum->all);
        sum->next++;
    }
    for (size_t i = 0; i < sum->n; i++)
        whole = sum->part[i].name == NULL ? &sum->part[i] : whole;
    rc = pb_sha256_hex(sum->all, sum->hex);
    if (rc == 0 && whole != NULL)
        (void)memcpy(sum->hex, whole->hex, sizeof sum->hex);
    return rc;
}

static void *body(void *arg)
{
    struct pb_input_sum *sum = arg;
    (void)pthread_setname_np(pthread_self(), "pb-sum");
    pb_work_begin(PB_WORK_INPUT_SUM, 0);
    sum->rc = add_all(sum);
    pb_work_end();
    (void)pthread_mutex_lock(&sum->lock);
    sum->done = true;
    (void)pthread_cond_signal(&sum->ended);
    (void)pthread_mutex_unlock(&sum->lock);
    return NULL;
}

static int start_thread(struct pb_input_sum *sum, struct pb_err *err)
{
    sum->yields = false;
    sum->done = false;
    int rc = pb_thread_start(&sum->thread, body, sum);
    if (rc < 0)
        return pb_thread_fail(err, rc);
    sum->started = true;
    sum->joined = false;
    return 0;
}

int pb_input_sum_start(struct pb_input_sum *sum, struct pb_err *err)
{
    return sum->started ? 0 : start_thread(sum, err);
}

void pb_input_sum_leave(struct pb_input_sum *sum, uint64_t bytes)
{
    atomic_store(&sum->leave, bytes);
}

void pb_input_sum_on_wait(struct pb_input_sum *sum, void (*alive)(void *user, uint64_t bytes),
                          void *user)
{
    sum->alive = alive;
    sum->user = user;
}

/* Waits until the thread is about to end, ALIVE_MS at most; whether it is. */
static bool wait_for_end(struct pb_input_sum *sum)
{
    struct timespec until = pb_clock_mono_after(ALIVE_MS);
    int rc = 0;
    (void)pthread_mutex_lock(&sum->lock);
    while (!sum->done && rc == 0)
        rc = pthread_cond_clockwait(&sum->ended, &sum->lock, CLOCK_MONOTONIC, &until);
    bool done = sum->done;
    (void)pthread_mutex_unlock(&sum->lock);
    return done;
}

/* Not pthread_clockjoin_np, which the thread sanitizer of gcc 12 does not know. */
static void join(struct pb_input_sum *sum)
{
    if (!sum->started || sum->joined)
        return;
    while (!wait_for_end(sum))
        if (sum->alive != NULL)
            sum->alive(sum->user, atomic_load(&sum->bytes));
    (void)pthread_join(sum->thread, NULL);
    sum->joined = true;
}

/* Waits for the end, of another thread where the first leaves the rest. */
static int finish(struct pb_input_sum *sum, struct pb_err *err)
{
    int rc = sum->started ? 0 : start_thread(sum, err);
    atomic_store(&sum->awaited, true);
    if (rc == 0)
        join(sum);
    if (rc == 0 && sum->rc > 0)
        rc = start_thread(sum, err);
    if (rc == 0)
        join(sum);
    return rc;
}

int pb_input_sum_get(struct pb_input_sum *sum, struct pb_err *err, char out_hex[65])
{
    int rc = finish(sum, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; sum->rc < 0 && i < sum->n; i++)
        rc = rc ? rc : pb_raster_file_check(&sum->part[i].file, err);
    if (sum->rc < 0)
        return rc ? rc : pb_fail(err, PB_E_MEMORY, "no memory for the checksum of the input");
    for (size_t i = 0; i < sum->n && rc == 0; i++)
        rc = pb_raster_file_unchanged(&sum->part[i].file, err);
    if (rc == 0)
        (void)memcpy(out_hex, sum->hex, sizeof sum->hex);
    return rc;
}

bool pb_input_sum_is_of_one(const struct pb_input_sum *sum)
{
    return sum->n == 1 && sum->part[0].name == NULL;
}

bool pb_input_sum_has(const struct pb_input_sum *sum, const char *name)
{
    char clean[sizeof((struct pb_input_file){0}.name)];
    for (size_t i = 0; i < sum->n; i++) {
        const struct part *part = &sum->part[i];
        if (part->name == NULL || part->role != PB_INPUT_PIXELS)
            continue;
        (void)pb_text_clean(part->name, clean, sizeof clean);
        if (strcmp(clean, name) == 0)
            return true;
    }
    return false;
}

void pb_input_sum_files(const struct pb_input_sum *sum, struct pb_input_files *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < sum->n && out->n < PB_INPUT_FILES_MAX; i++) {
        const struct part *part = &sum->part[i];
        struct pb_input_file *file = &out->file[out->n++];
        (void)pb_text_clean(part->name, file->name, sizeof file->name);
        file->bytes = part->bytes;
        (void)memcpy(file->sha256, part->hex, sizeof file->sha256);
        file->role = part->role;
    }
}

void pb_input_sum_destroy(struct pb_input_sum *sum)
{
    if (sum == NULL)
        return;
    atomic_store(&sum->stop, true);
    sum->alive = NULL;
    join(sum);
    for (size_t i = 0; i < sum->n; i++) {
        pb_raster_file_close(&sum->part[i].file);
        free(sum->part[i].name);
    }
    free(sum->part);
    pb_sha256_destroy(sum->own);
    pb_sha256_destroy(sum->all);
    (void)pthread_cond_destroy(&sum->ended);
    (void)pthread_mutex_destroy(&sum->lock);
    free(sum);
}
