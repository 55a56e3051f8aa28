/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/profile/trace.h"
#include "config/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHUNK_EVENTS = 256, THREADS_MAX = 4096 };
#define EVENTS_MAX (PB_TRACE_BYTES / sizeof(struct pb_trace_event))
#define CHUNKS     ((uint32_t)(EVENTS_MAX / CHUNK_EVENTS))

/* Memory shared by the processes. Values read from it are checked: indices against the sizes
 * above. */
struct memory {
    _Atomic uint32_t round; /* count of clears; chunks of earlier rounds are void */
    _Atomic uint32_t n_chunks, n_threads;
    _Atomic uint64_t left_out;
    _Atomic uint64_t counter[PB_TRACE_COUNTS];
    _Atomic uint16_t used[CHUNKS]; /* events of a chunk, each written before it is counted */
    struct pb_trace_thread thread[THREADS_MAX];
    struct pb_trace_event event[CHUNKS * CHUNK_EVENTS];
};

static struct memory *memory; /* NULL: no trace */
static uint64_t began_ns;
static enum pb_trace_role own_role;

struct recorder {
    uint32_t round; /* 0 = not yet recording */
    uint32_t thread, chunk, used;
    bool has_thread, has_chunk;
};

static _Thread_local struct recorder self;

/* --- memory ----------------------------------------------------------------------------------*/

uint64_t pb_trace_bytes(void)
{
    return memory != NULL ? sizeof *memory : 0;
}

bool pb_trace_is_on(void)
{
    return memory != NULL && pb_work_ledger() != NULL;
}

int pb_trace_open(void)
{
    void *at =
        mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return -ENOMEM;
    memory = at;
    began_ns = pb_clock_mono_ns();
    pb_trace_clear();
    return 0;
}

void pb_trace_close(void)
{
    if (memory != NULL)
        (void)munmap(memory, sizeof *memory);
    memory = NULL;
}

void pb_trace_clear(void)
{
    uint32_t chunks = atomic_load(&memory->n_chunks);
    for (uint32_t i = 0; i < chunks && i < CHUNKS; i++)
        atomic_store(&memory->used[i], 0);
    for (int i = 0; i < PB_TRACE_COUNTS; i++)
        atomic_store(&memory->counter[i], 0);
    atomic_store(&memory->left_out, 0);
    atomic_store(&memory->n_threads, 0);
    atomic_store(&memory->n_chunks, 0);
    atomic_fetch_add(&memory->round, 1);
}

void pb_trace_become(enum pb_trace_role role)
{
    own_role = role;
    self = (struct recorder){.round = 0};
}

/* --- recording -------------------------------------------------------------------------------*/

static bool take_thread(struct recorder *r)
{
    uint32_t i = atomic_fetch_add(&memory->n_threads, 1);
    if (i >= THREADS_MAX)
        return false;
    struct pb_trace_thread *thread = &memory->thread[i];
    *thread = (struct pb_trace_thread){
        .process = getpid(), .thread = gettid(), .role = (uint8_t)own_role};
    (void)pthread_getname_np(pthread_self(), thread->name, sizeof thread->name);
    r->thread = i;
    r->has_thread = true;
    return true;
}

static bool take_chunk(struct recorder *r)
{
    if (r->has_chunk && r->used < CHUNK_EVENTS)
        return true;
    /* Checked before the increment, so that the number does not overflow. */
    if (atomic_load(&memory->n_chunks) >= CHUNKS)
        return false;
    r->chunk = atomic_fetch_add(&memory->n_chunks, 1);
    r->used = 0;
    r->has_chunk = r->chunk < CHUNKS;
    return r->has_chunk;
}

static void record(struct pb_trace_event event)
{
    struct recorder *r = &self;
    uint32_t round = atomic_load(&memory->round);
    if (r->round != round)
        *r = (struct recorder){.round = round};
    if ((!r->has_thread && !take_thread(r)) || !take_chunk(r)) {
        atomic_fetch_add(&memory->left_out, 1);
        return;
    }
    event.thread = (uint16_t)r->thread;
    memory->event[r->chunk * CHUNK_EVENTS + r->used++] = event;
    atomic_store(&memory->used[r->chunk], (uint16_t)r->used);
}

void pb_trace_part(enum pb_work work, uint32_t number, uint64_t start_ns, uint64_t end_ns)
{
    if (memory != NULL)
        record((struct pb_trace_event){.start_ns = start_ns,
                                       .span_ns = end_ns - start_ns,
                                       .number = number,
                                       .kind = PB_TRACE_PART,
                                       .what = (uint8_t)work});
}

void pb_trace_tile(enum pb_trace_kind kind, uint32_t tile)
{
    if (pb_trace_is_on())
        record((struct pb_trace_event){
            .start_ns = pb_clock_mono_ns(), .number = tile, .kind = (uint8_t)kind});
}

void pb_trace_set(enum pb_trace_count count, uint64_t value)
{
    if (pb_trace_is_on() && atomic_exchange(&memory->counter[count], value) != value)
        record((struct pb_trace_event){.start_ns = pb_clock_mono_ns(),
                                       .span_ns = value,
                                       .kind = PB_TRACE_COUNT,
                                       .what = (uint8_t)count});
}

void pb_trace_add(enum pb_trace_count count, uint64_t more)
{
    if (pb_trace_is_on())
        record((struct pb_trace_event){.span_ns =
                                           atomic_fetch_add(&memory->counter[count], more) + more,
                                       .start_ns = pb_clock_mono_ns(),
                                       .kind = PB_TRACE_COUNT,
                                       .what = (uint8_t)count});
}

/* --- reading ---------------------------------------------------------------------------------*/

static int by_start(const void *a, const void *b)
{
    const struct pb_trace_event *first = a, *second = b;
    if (first->start_ns != second->start_ns)
        return first->start_ns < second->start_ns ? -1 : 1;
    return first->span_ns > second->span_ns ? -1 : first->span_ns < second->span_ns;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

const struct pb_trace_event *pb_trace_events(size_t *out_n, uint64_t *out_left_out)
{
    uint32_t chunks = least(atomic_load(&memory->n_chunks), CHUNKS), n = 0;
    uint32_t threads = least(atomic_load(&memory->n_threads), THREADS_MAX);
    for (uint32_t c = 0; c < chunks; c++) {
        uint32_t used = least(atomic_load(&memory->used[c]), CHUNK_EVENTS);
        for (uint32_t i = 0; i < used; i++) {
            const struct pb_trace_event event = memory->event[c * CHUNK_EVENTS + i];
            if (event.thread < threads)
                memory->event[n++] = event;
        }
        atomic_store(&memory->used[c], 0);
    }
    qsort(memory->event, n, sizeof memory->event[0], by_start);
    *out_n = n;
    *out_left_out = atomic_load(&memory->left_out);
    return memory->event;
}

const struct pb_trace_thread *pb_trace_threads(size_t *out_n)
{
    *out_n = least(atomic_load(&memory->n_threads), THREADS_MAX);
    return memory->thread;
}

uint64_t pb_trace_began_ns(void)
{
    return began_ns;
}
