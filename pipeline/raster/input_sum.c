/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* With SHA-256 cores are idle while products are finished, because that takes one thread each. A
 * part of the input may be deferred until then: it is hashed by a thread of priority SCHED_IDLE,
 * which takes no time from the tiles. A caller that waits for the sum would then wait for an idle
 * core; therefore the thread hands the rest over to a new thread of normal priority. It cannot
 * raise its own priority, because a process without privileges may only lower it. */
#include "pipeline/raster/input_sum.h"
#include "config/base/clock.h"
#include "pipeline/device/device.h"
#include "pipeline/io/thread.h"
#include "pipeline/profile/work.h"
#include "pipeline/raster/input_pass.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ALIVE_MS = 500, SETTLE_MS = 60000, FEW_CORES = 3 };

/* Size up to which a sum takes little more time than a thread and a second mark of the temporary
 * directory. */
#define AT_ONCE_BYTES ((uint64_t)4 << 20)

struct pb_input_sum {
    struct pb_input_pass pass; /* the thread's; read after join, also by its successor */
    enum pb_checksum kind;     /* kind of the input's checksum */
    pthread_t thread;
    bool started, joined;
    _Atomic uint64_t leave; /* bytes that may wait for idle cores */
    atomic_bool awaited;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done; /* protected by lock */
    void (*alive)(void *user, uint64_t bytes);
    void *user;
    int rc;      /* result of pb_input_pass_run; read after join */
    bool yields; /* true if the thread runs on idle cores only */
    uint32_t cores;
};

int pb_input_sum_create(const struct pb_input_part *part, size_t n, enum pb_checksum kind,
                        struct pb_err *err, struct pb_input_sum **out_sum)
{
    struct pb_input_sum *sum = calloc(1, sizeof *sum);
    if (sum == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the checksum of %s",
                       part[0].file->path);
    (void)pthread_mutex_init(&sum->lock, NULL);
    (void)pthread_cond_init(&sum->ended, NULL);
    sum->kind = kind;
    sum->cores = pb_device_cores();
    sum->pass.kinds[kind] = true;
    int rc = pb_input_pass_init(&sum->pass, part, n, err);
    if (rc < 0) {
        pb_input_sum_destroy(sum);
        return rc;
    }
    *out_sum = sum;
    return 0;
}

enum pb_checksum pb_input_sum_kind(const struct pb_input_sum *sum)
{
    return sum->kind;
}

void pb_input_sum_want(struct pb_input_sum *sum, enum pb_checksum kind)
{
    if (!sum->started && sum->pass.next == 0 && sum->pass.file[0].bytes == 0)
        sum->pass.kinds[kind] = true;
}

/* Hands the rest over to another thread if this thread runs on idle cores only and a caller
 * waits. A second thread is used if a core is probably idle: while a caller waits, or during the
 * tiles if there are many cores. Neither is worthwhile for BLAKE3: it takes about as long as
 * copying the data to another core, and while products are finished their own BLAKE3 uses all
 * cores. */
static enum pb_input_pass_way way(void *user)
{
    struct pb_input_sum *sum = user;
    const struct sched_param none = {0};
    const bool awaited = atomic_load(&sum->awaited), sha256 = sum->pass.kinds[PB_CHECKSUM_SHA2_256];
    if (awaited && sum->yields)
        return PB_INPUT_PASS_LEAVE;
    uint64_t done = atomic_load(&sum->pass.bytes), leave = atomic_load(&sum->leave);
    if (sha256 && !awaited && !sum->yields && leave > 0 && sum->pass.total - done <= leave)
        sum->yields = sched_setscheduler(0, SCHED_IDLE, &none) == 0;
    const bool beside = sha256 && !sum->yields && sum->cores > (awaited ? 1 : FEW_CORES);
    return beside ? PB_INPUT_PASS_BESIDE : PB_INPUT_PASS_ALONE;
}

static enum pb_input_pass_way alone(void *user)
{
    (void)user;
    return PB_INPUT_PASS_ALONE;
}

static void run_pass(struct pb_input_sum *sum, enum pb_input_pass_way (*choose)(void *user))
{
    pb_work_begin(PB_WORK_INPUT_SUM, 0);
    sum->rc = pb_input_pass_run(&sum->pass, choose, sum);
    pb_work_end();
}

static void *body(void *arg)
{
    struct pb_input_sum *sum = arg;
    (void)pthread_setname_np(pthread_self(), "pb-sum");
    run_pass(sum, way);
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

bool pb_input_sum_is_growing(const struct pb_input_sum *sum)
{
    bool is = false;
    for (size_t i = 0; i < sum->pass.n; i++)
        is = is || sum->pass.file[i].is_growing;
    return is;
}

bool pb_input_sum_at_once(struct pb_input_sum *sum)
{
    if (!sum->started && !pb_input_sum_is_growing(sum) &&
        pb_input_pass_unread(&sum->pass) <= AT_ONCE_BYTES) {
        sum->pass.cached_only = true;
        run_pass(sum, alone);
        sum->pass.cached_only = false;
        /* otherwise the thread continues from there */
        sum->started = sum->joined = sum->done = sum->rc == 0;
    }
    return sum->started && sum->joined && sum->rc == 0;
}

int pb_input_sum_start(struct pb_input_sum *sum, struct pb_err *err)
{
    return sum->started || pb_input_sum_is_growing(sum) ? 0 : start_thread(sum, err);
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

/* Waits for the end of the thread, ALIVE_MS at most. Returns true if it is about to end. */
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

/* Avoids pthread_clockjoin_np, which the thread sanitizer of gcc 12 does not support. */
static void join(struct pb_input_sum *sum)
{
    if (!sum->started || sum->joined)
        return;
    while (!wait_for_end(sum))
        if (sum->alive != NULL)
            sum->alive(sum->user, atomic_load(&sum->pass.bytes));
    (void)pthread_join(sum->thread, NULL);
    sum->joined = true;
}

/* A segment is complete when the run has read its lines; its writer closes it soon afterwards. */
static int settle(struct pb_input_sum *sum, struct pb_err *err)
{
    int rc = -ETIMEDOUT;
    for (int64_t waited_ms = 0; rc == -ETIMEDOUT; waited_ms += ALIVE_MS) {
        if (waited_ms >= SETTLE_MS)
            return pb_fail_at(err, PB_E_INPUT_CHANGED, sum->pass.file[0].file.path, 0, 0,
                              "its lines are complete, but its writer does not close it");
        if (waited_ms > 0 && sum->alive != NULL)
            sum->alive(sum->user, 0);
        rc = pb_input_pass_settle(&sum->pass, ALIVE_MS, err);
    }
    return rc;
}

/* Waits for the end of the thread, and of a second thread if the first one hands over the rest. */
static int finish(struct pb_input_sum *sum, struct pb_err *err)
{
    int rc = pb_input_sum_is_growing(sum) ? settle(sum, err) : 0;
    if (rc == 0 && !sum->started)
        rc = start_thread(sum, err);
    atomic_store(&sum->awaited, true);
    if (rc == 0)
        join(sum);
    if (rc == 0 && sum->rc > 0)
        rc = start_thread(sum, err);
    if (rc == 0)
        join(sum);
    return rc;
}

/* Computes a kind that was not requested before the first pass. */
static int finish_kind(struct pb_input_sum *sum, enum pb_checksum kind, struct pb_err *err)
{
    bool only[PB_CHECKSUM_KINDS] = {false};
    pb_input_sum_want(sum, kind);
    int rc = finish(sum, err);
    if (rc < 0 || sum->rc < 0 || sum->pass.checksum[kind][0] != '\0')
        return rc;
    only[kind] = true;
    pb_input_pass_begin(&sum->pass, only);
    rc = start_thread(sum, err);
    if (rc == 0)
        join(sum);
    return rc;
}

int pb_input_sum_get(struct pb_input_sum *sum, enum pb_checksum kind, struct pb_err *err,
                     char out_checksum[PB_CHECKSUM_TEXT_BYTES])
{
    const struct pb_input_pass *pass = &sum->pass;
    int rc = finish_kind(sum, kind, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; sum->rc < 0 && i < pass->n; i++)
        rc = rc ? rc : pb_raster_file_check(&pass->file[i].file, err);
    if (sum->rc < 0)
        return rc ? rc : pb_fail(err, PB_E_MEMORY, "no memory for the checksum of the input");
    rc = rc ? rc : pb_input_sum_unchanged(sum, err);
    if (rc == 0)
        (void)memcpy(out_checksum, pass->checksum[kind], PB_CHECKSUM_TEXT_BYTES);
    return rc;
}

int pb_input_sum_unchanged(const struct pb_input_sum *sum, struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < sum->pass.n && rc == 0; i++)
        rc = sum->pass.file[i].is_growing ? 0
                                          : pb_raster_file_unchanged(&sum->pass.file[i].file, err);
    return rc;
}

/* Returns true if the thread has ended and has computed the kind. */
static bool has_checksums(const struct pb_input_sum *sum, enum pb_checksum kind)
{
    return sum->started && sum->joined && sum->rc == 0 && sum->pass.checksum[kind][0] != '\0';
}

size_t pb_input_sum_count(const struct pb_input_sum *sum)
{
    return sum->pass.n;
}

void pb_input_sum_file(const struct pb_input_sum *sum, size_t i, enum pb_checksum kind,
                       struct pb_input_sum_file *out)
{
    const struct pb_input_pass_file *file = &sum->pass.file[i];
    *out = (struct pb_input_sum_file){.bytes = file->file.bytes};
    if (!has_checksums(sum, kind))
        return;
    out->bytes = file->bytes;
    (void)memcpy(out->checksum, file->checksum[kind], sizeof out->checksum);
}

void pb_input_sum_destroy(struct pb_input_sum *sum)
{
    if (sum == NULL)
        return;
    atomic_store(&sum->pass.stop, true);
    sum->alive = NULL;
    join(sum);
    pb_input_pass_fini(&sum->pass);
    (void)pthread_cond_destroy(&sum->ended);
    (void)pthread_mutex_destroy(&sum->lock);
    free(sum);
}
